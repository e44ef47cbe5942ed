//! What a program takes, estimated: the cost model by which rules choose.
//!
//! A statement in a nest of loops takes
//!
//! ```text
//! max(compute, chain, levels) · executions + events
//! ```
//!
//! - *compute*: what its operations, loads and stores take, divided by the lanes of the innermost loop where that is
//!   made of vector instructions: it is marked so, or C compilers do it by themselves;
//! - *chain*: where the innermost loop reduces into one element, each addition waits for the one before, but for those
//!   of other lanes;
//! - *levels*: for every level of the cache, the bytes that come from behind it. What a part of the nest touches is
//!   loaded once while the part runs if all of it fits the level: the footprint of an access in that part is the
//!   product of the trip counts of the loops that its index grows with, in whole cache lines where it does not grow by
//!   one;
//! - *events*: loops that are entered, threads that are started, copies for partial results, atomic updates.
//!
//! What a statement touches that another one of the same iteration has touched before costs nothing again. Where all
//! tensors of the program fit a level, nothing comes from behind it.
//!
//! Threads divide compute and chain, and bytes as far as the level's bandwidth scales. Trip counts are estimates
//! (`trips`); a branch that is not known is taken half of the time.
//!
//! The parts of a program are added up, so an estimate is a sum over its outermost statements, each of which is
//! remembered as long as it stays the same node.

use super::target::{LINE, Level, Target};
use super::trips::{Estimate, Known, Values};
use crate::tree::{self, Loop};
use rustc_hash::FxHashMap;
use taffeta_analysis::query::stride::strides;
use taffeta_ast::op::Op;
use taffeta_ast::{DType, Expr, ExprKind, Func, Sharing, Stmt, StmtId, StmtKind, Symbol};

/// How often a branch is taken of which nothing is known.
const HALF: f64 = 0.5;

/// Estimates programs for a machine.
pub(super) struct Model<'t> {
    pub target: &'t Target,
    /// What outermost statements took when they were asked about, with the node that this is true of.
    known: FxHashMap<StmtId, (Stmt, f64)>,
}

/// A loop around a statement.
#[derive(Clone)]
struct Around {
    iter: Symbol,
    trips: Estimate,
    threads: bool,
    lanes: bool,
    /// Whether C compilers make it of vector instructions without being asked.
    by_itself: bool,
}

impl<'t> Model<'t> {
    pub fn new(target: &'t Target) -> Model<'t> {
        Model { target, known: FxHashMap::default() }
    }

    /// What a program takes, in nanoseconds.
    pub fn program(&mut self, func: &Func) -> f64 {
        self.parts(func, &|_| true)
    }

    /// What the outermost statement around another one takes.
    pub fn part(&mut self, func: &Func, inside: StmtId) -> f64 {
        self.parts(func, &|s| tree::find(s, inside).is_some())
    }

    fn parts(&mut self, func: &Func, which: &dyn Fn(&Stmt) -> bool) -> f64 {
        let mut parts = Vec::new();
        outermost(&func.body, &mut parts);
        let mut values = None;
        parts
            .into_iter()
            .filter(|s| which(s))
            .map(|s| match self.known.get(&s.id()) {
                Some((node, known)) if node.same_node(s) => *known,
                _ => {
                    let values = values.get_or_insert_with(|| Values::new(func, self.target));
                    let time =
                        Part { target: self.target, values, around: Vec::new(), often: 1.0, seen: Vec::new() }.stmt(s);
                    self.known.insert(s.id(), (s.clone(), time));
                    time
                }
            })
            .sum()
    }

    /// What a statement takes each time that it is executed.
    pub fn once(&self, func: &Func, around: &[Stmt], stmt: &Stmt) -> f64 {
        let mut values = Values::new(func, self.target);
        for l in around.iter().filter_map(Loop::of) {
            values.enter(&l.iter, [&l.begin, &l.end, &l.step], &l.body);
        }
        Part { target: self.target, values: &mut values, around: Vec::new(), often: 1.0, seen: Vec::new() }.stmt(stmt)
    }

    /// The trip count of a loop, in the loops around it.
    pub fn trips(&self, func: &Func, around: &[Stmt], l: &Loop) -> Estimate {
        let mut values = Values::new(func, self.target);
        for l in around.iter().filter_map(Loop::of) {
            values.enter(&l.iter, [&l.begin, &l.end, &l.step], &l.body);
        }
        values.enter(&l.iter, [&l.begin, &l.end, &l.step], &l.body)
    }
}

/// The statements that a program consists of, without the declarations around them.
fn outermost<'s>(s: &'s Stmt, out: &mut Vec<&'s Stmt>) {
    match s.kind() {
        StmtKind::Seq(all) => all.iter().for_each(|s| outermost(s, out)),
        StmtKind::VarDef { body, .. } => outermost(body, out),
        _ => out.push(s),
    }
}

/// A part of a program that is estimated.
struct Part<'a, 't> {
    target: &'t Target,
    values: &'a mut Values<'t>,
    around: Vec<Around>,
    /// How often the present place is reached in one iteration of the loops around.
    often: f64,
    /// Elements that statements of the present iteration have touched: they are in registers, or close.
    seen: Vec<(Symbol, Vec<Expr>)>,
}

impl Part<'_, '_> {
    fn stmt(&mut self, s: &Stmt) -> f64 {
        match s.kind() {
            StmtKind::For { props, .. } => match Loop::of(s) {
                Some(l) => self.in_loop(&l, props),
                None => s.kind().children().into_iter().map(|c| self.stmt(c)).sum(),
            },
            StmtKind::If { cond, then, otherwise } => {
                let before = self.often;
                // Lanes do both branches, with masks.
                let masked = self.around.last().is_some_and(|l| l.lanes);
                let (yes, no) = match cond.as_bool() {
                    _ if masked => (1.0, 1.0),
                    Some(true) => (1.0, 0.0),
                    Some(false) => (0.0, 1.0),
                    None if otherwise.is_none() && is_bound(cond) => (0.9, 0.1),
                    None => (HALF, 1.0 - HALF),
                };
                self.often = before * yes;
                let mut time = self.stmt(then);
                self.often = before * no;
                time += otherwise.as_ref().map_or(0.0, |s| self.stmt(s));
                self.often = before;
                let branch = self.target.prices.branch * self.executions() / self.threads();
                time + branch + self.statement(None, None, cond)
            }
            StmtKind::Store { tensor, indices, value } => {
                let at: Vec<&Expr> = indices.iter().map(|a| &a.index).collect();
                self.statement(Some((tensor, &at)), None, value)
            }
            StmtKind::ReduceTo { tensor, indices, value, .. } => {
                let at: Vec<&Expr> = indices.iter().map(|a| &a.index).collect();
                self.statement(Some((tensor, &at)), Some(tensor), value)
            }
            _ => s.kind().children().into_iter().map(|c| self.stmt(c)).sum(),
        }
    }

    /// A nest that a library does: its multiply-adds, on all threads where there are none around.
    fn product(&mut self, nest: &Stmt) -> f64 {
        let (mut updates, mut bytes) = (0.0, 4.0);
        let entries = self.executions();
        count(nest, self.values, 1.0, &mut |s, often| {
            if let StmtKind::ReduceTo { value, .. } = s.kind() {
                updates += often;
                bytes = bytes_of(value);
            }
        });
        let prices = &self.target.prices;
        let lanes = (self.target.vector_bytes as f64 / bytes).max(1.0);
        let alone = updates * prices.simple / lanes / prices.library;
        let around = self.threads();
        let threads = if around > 1.0 { 1.0 } else { (alone / prices.region).clamp(1.0, self.target.threads as f64) };
        entries * (prices.call + alone / threads) / around
    }

    fn in_loop(&mut self, l: &Loop, props: &taffeta_ast::LoopProps) -> f64 {
        if props.library {
            return self.product(&l.stmt);
        }
        let trips = self.values.enter(&l.iter, [&l.begin, &l.end, &l.step], &l.body);
        let entries = self.executions();
        let mut events = entries * self.target.prices.enter;
        if let Some(parallel) = props.parallel
            && parallel.above.is_none_or(|n| trips.value > n as f64)
        {
            events += entries * self.target.prices.region;
            for r in props.reductions.iter().filter(|r| r.sharing == Sharing::Partial) {
                let elements: f64 = self.values.shape(&r.tensor).iter().map(|d| self.values.value(d).value).product();
                let memory = self.target.levels.last().map_or(0.0, |l| l.per_byte);
                events += entries * elements * 8.0 * 2.0 * memory * self.target.threads as f64;
            }
        }
        let mut atomic: Vec<Symbol> = Vec::new();
        atomic.extend(props.reductions.iter().filter(|r| r.sharing == Sharing::Atomic).map(|r| r.tensor.clone()));
        let threads = props.parallel.is_some_and(|p| p.above.is_none_or(|n| trips.value > n as f64));
        self.around.push(Around {
            iter: l.iter.clone(),
            trips,
            threads,
            lanes: props.vectorize.is_some(),
            by_itself: vectorised_by_compilers(l),
        });
        let seen = std::mem::take(&mut self.seen);
        let time = self.stmt(&l.body) + self.atomic_updates(&l.body, &atomic);
        self.seen = seen;
        self.around.pop();
        self.values.leave();
        time + events
    }

    /// How often the present place is executed.
    fn executions(&self) -> f64 {
        self.around.iter().map(|l| l.trips.value).product::<f64>() * self.often
    }

    /// What the atomic updates in the body of a loop take. (Conditions around them are left out.)
    fn atomic_updates(&mut self, body: &Stmt, tensors: &[Symbol]) -> f64 {
        if tensors.is_empty() {
            return 0.0;
        }
        let mut updates = 0.0;
        count(body, self.values, 1.0, &mut |s, often| {
            if matches!(s.kind(), StmtKind::ReduceTo { tensor, .. } if tensors.contains(tensor)) {
                updates += often;
            }
        });
        self.executions() * updates * self.target.prices.atomic
    }

    /// One statement: a store or reduction (`into`: the tensor again), or a condition.
    fn statement(&mut self, target: Option<(&Symbol, &[&Expr])>, into: Option<&Symbol>, value: &Expr) -> f64 {
        let executions = self.executions();
        if executions <= 0.0 {
            return 0.0;
        }
        let mut accesses: Vec<Touch> = Vec::new();
        let mut work = Work::default();
        self.expr(value, &mut work, &mut accesses);
        if let Some((tensor, at)) = target {
            let bytes = bytes_of(value);
            at.iter().for_each(|e| self.index(e, &mut work, &mut accesses));
            // A store is one however often the element was touched.
            self.see(tensor, at);
            accesses.push(self.touch(tensor, at, bytes, true));
            work.simple += if into.is_some() { 1.0 } else { 0.0 };
        }
        let widest = accesses.iter().map(|a| a.bytes).fold(4.0, f64::max);
        let lanes = self.lanes(widest);
        let compute = self.compute(&work, &accesses, lanes);
        let chain = match (into, self.around.last(), accesses.last()) {
            (Some(_), Some(_), Some(last)) if last.growth.last() == Some(&Growth::None) => {
                let finish = lanes.log2() * 2.0 / self.around.last().map_or(1.0, |l| l.trips.value.max(1.0));
                self.target.prices.latency * (1.0 / lanes + finish)
            }
            _ => 0.0,
        };
        let threads = self.threads();
        let busy = compute.max(chain) * executions / threads;
        let bytes = self.levels(&accesses, threads);
        busy.max(bytes)
    }

    /// By how much threads divide the work.
    fn threads(&self) -> f64 {
        let p = self.target.threads as f64;
        let shares = |l: &Around| {
            let trips = l.trips.value.max(1.0);
            trips / (trips / p).ceil()
        };
        self.around.iter().filter(|l| l.threads).map(shares).fold(1.0, f64::max)
    }

    /// Iterations at once of the innermost loop, on average.
    fn lanes(&self, bytes: f64) -> f64 {
        let Some(l) = self.around.last() else { return 1.0 };
        if !(l.lanes || l.by_itself) {
            return 1.0;
        }
        let width = (self.target.vector_bytes as f64 / bytes).max(1.0);
        let trips = l.trips.value.max(1.0);
        // Whole vectors, then what is left one by one.
        let (whole, rest) = ((trips / width).floor(), trips % width);
        (trips / (whole + rest)).max(1.0)
    }

    fn compute(&self, work: &Work, accesses: &[Touch], lanes: f64) -> f64 {
        let prices = &self.target.prices;
        let vector = usize::from(lanes > 1.0);
        let mut time = work.simple * prices.simple / lanes;
        time += work.divide * prices.divide[vector] / lanes;
        time += work.transcendental * prices.transcendental[vector] / lanes;
        for a in accesses {
            let price = if a.written { prices.store } else { prices.load };
            time += match a.growth.last() {
                // It stays in a register.
                Some(Growth::None) => 0.0,
                Some(Growth::One) | None => price / lanes,
                Some(_) if lanes > 1.0 => prices.gather.max(price),
                Some(_) => price,
            };
        }
        time
    }

    /// What the bytes take that come from behind each level.
    fn levels(&self, accesses: &[Touch], threads: f64) -> f64 {
        let mut worst = 0.0f64;
        let capacities = self.target.levels.windows(2);
        for pair in capacities {
            let [fits, behind] = pair else { continue };
            worst = worst.max(self.bytes_behind(accesses, fits) * behind.per_byte / threads.min(behind.scales));
        }
        worst
    }

    /// Bytes that do not come from a level, but from behind it.
    fn bytes_behind(&self, accesses: &[Touch], level: &Level) -> f64 {
        // What one statement has brought in, the next one finds there, where there is room for everything.
        if self.values.bytes() <= level.bytes {
            return 0.0;
        }
        let depths = self.around.len();
        // The outermost part of which all that it touches fits.
        let fits = |depth: usize| accesses.iter().map(|a| a.footprint(&self.around, depth)).sum::<f64>() <= level.bytes;
        let depth = (0..=depths).find(|d| fits(*d)).unwrap_or(depths);
        let outside: f64 = self.around[..depth].iter().map(|l| l.trips.value).product::<f64>() * self.often;
        accesses.iter().map(|a| a.footprint(&self.around, depth).min(a.all.max(LINE)) * outside).sum()
    }

    /// Counts what an expression does.
    fn expr(&mut self, e: &Expr, work: &mut Work, accesses: &mut Vec<Touch>) {
        match e.kind() {
            ExprKind::Load(t, at) => {
                let at: Vec<&Expr> = at.iter().map(|a| &a.index).collect();
                at.iter().for_each(|i| self.index(i, work, accesses));
                if !at.is_empty() && self.see(t, &at) {
                    accesses.push(self.touch(t, &at, bytes_of(e), false));
                }
            }
            ExprKind::Apply(op, args) => {
                match op {
                    Op::Div | Op::Sqrt | Op::Rsqrt | Op::FloorDiv | Op::Mod => work.divide += 1.0,
                    op if op.info().function.is_some() && op.info().cost > 4 => work.transcendental += 1.0,
                    _ => work.simple += 1.0,
                }
                args.iter().for_each(|a| self.expr(a, work, accesses));
            }
            ExprKind::Cast(inner) => self.expr(inner, work, accesses),
            ExprKind::Const(_) | ExprKind::Var(_) | ExprKind::Measure(..) => {}
        }
    }

    /// What an index reads; its arithmetic is moved out of the loop, or done beside.
    fn index(&mut self, e: &Expr, work: &mut Work, accesses: &mut Vec<Touch>) {
        let mut loads = Vec::new();
        e.walk(&mut |e| loads.extend(matches!(e.kind(), ExprKind::Load(_, at) if !at.is_empty()).then(|| e.clone())));
        for e in loads {
            let ExprKind::Load(t, at) = e.kind() else { continue };
            let at: Vec<&Expr> = at.iter().map(|a| &a.index).collect();
            if self.see(t, &at) {
                accesses.push(self.touch(t, &at, bytes_of(&e), false));
                work.simple += 1.0;
            }
        }
    }

    /// Notes that an element is touched. Whether it is for the first time in this iteration.
    fn see(&mut self, tensor: &Symbol, at: &[&Expr]) -> bool {
        let known = |(t, known): &(Symbol, Vec<Expr>)| t == tensor && known.iter().eq(at.iter().copied());
        if self.seen.iter().any(known) {
            return false;
        }
        self.seen.push((tensor.clone(), at.iter().map(|e| (*e).clone()).collect()));
        true
    }

    fn touch(&self, tensor: &Symbol, at: &[&Expr], bytes: f64, written: bool) -> Touch {
        let iters: Vec<&Symbol> = self.around.iter().map(|l| &l.iter).collect();
        let mut growth = vec![Growth::None; iters.len()];
        for (k, index) in at.iter().enumerate() {
            let last = k + 1 == at.len();
            for (g, own) in growth.iter_mut().zip(grows(index, &iters)) {
                *g = match (own, last) {
                    (Growth::None, _) => *g,
                    (Growth::One, false) => Growth::Far,
                    (own, _) => own.max(*g),
                };
            }
        }
        let elements: f64 = self.values.shape(tensor).iter().map(|d| self.values.value(d).value.max(1.0)).product();
        Touch { growth, bytes, written, all: elements * bytes }
    }
}

fn bytes_of(e: &Expr) -> f64 {
    e.dtype().size() as f64
}

/// How an address grows with a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Growth {
    /// It does not.
    None,
    /// By one element.
    One,
    /// By so few that a cache line has several.
    Near,
    /// By whole rows.
    Far,
    /// By what a tensor says.
    Gather,
}

/// The growth of an index in each loop.
fn grows(index: &Expr, iters: &[&Symbol]) -> Vec<Growth> {
    let mut read = false;
    index.walk(&mut |e| read |= matches!(e.kind(), ExprKind::Load(_, at) if !at.is_empty()));
    match strides(index, iters) {
        Ok(by) => by
            .iter()
            .map(|by| match by.as_int().map(i64::abs) {
                Some(0) => Growth::None,
                Some(1) => Growth::One,
                Some(k) if k < 8 => Growth::Near,
                _ => Growth::Far,
            })
            .collect(),
        Err(_) => {
            let mentions = |i: &&Symbol| taffeta_analysis::query::effects::mentions(index, &[*i]);
            let how = if read { Growth::Gather } else { Growth::Far };
            iters.iter().map(|i| if mentions(i) { how } else { Growth::None }).collect()
        }
    }
}

/// An access to a tensor.
struct Touch {
    /// How its address grows with each loop around, outermost first.
    growth: Vec<Growth>,
    /// Of an element.
    bytes: f64,
    written: bool,
    /// The bytes of the whole tensor.
    all: f64,
}

impl Touch {
    /// Bytes that the loops from this depth on touch, in whole cache lines.
    fn footprint(&self, around: &[Around], depth: usize) -> f64 {
        let (mut lines, mut in_line) = (1.0, 1.0f64);
        for (l, growth) in around.iter().zip(&self.growth).skip(depth) {
            match growth {
                Growth::None => {}
                Growth::One | Growth::Near => in_line *= l.trips.value.max(1.0),
                Growth::Far | Growth::Gather => lines *= l.trips.value.max(1.0),
            }
        }
        let touched = lines * (in_line * self.bytes).max(LINE);
        touched.min(self.all.max(LINE))
    }
}

/// Operations of a statement.
#[derive(Default)]
struct Work {
    simple: f64,
    divide: f64,
    transcendental: f64,
}

/// A condition on integers: a bound, mostly true.
fn is_bound(cond: &Expr) -> bool {
    let mut read = false;
    cond.walk(&mut |e| read |= matches!(e.kind(), ExprKind::Load(..)));
    !read
}

/// Whether C compilers make a loop of vector instructions without a mark: it is innermost, has no branches and calls,
/// reduces into nothing that stays the same, and accesses what lies side by side.
fn vectorised_by_compilers(l: &Loop) -> bool {
    let mut simple = l.step.as_int() == Some(1);
    l.body.walk(&mut |s| {
        simple &= match s.kind() {
            StmtKind::Seq(_) | StmtKind::VarDef { .. } => true,
            StmtKind::Store { indices, value, .. } => {
                is_plain(value, l) && is_beside(indices.iter().map(|a| &a.index), l)
            }
            StmtKind::ReduceTo { indices, value, .. } => {
                let fixed = indices.iter().all(|a| grows(&a.index, &[&l.iter]) == [Growth::None]);
                (!fixed || !value.dtype().is_float())
                    && is_plain(value, l)
                    && is_beside(indices.iter().map(|a| &a.index), l)
            }
            _ => false,
        };
    });
    simple
}

/// Whether the last index alone grows with the loop, and by 1.
fn is_beside<'e>(at: impl DoubleEndedIterator<Item = &'e Expr>, l: &Loop) -> bool {
    let mut from_last = at.rev().map(|e| grows(e, &[&l.iter]).first().copied().unwrap_or(Growth::None));
    from_last.next().is_none_or(|last| last <= Growth::One) && from_last.all(|g| g == Growth::None)
}

fn is_plain(e: &Expr, l: &Loop) -> bool {
    let mut plain = true;
    e.walk(&mut |e| {
        plain &= match e.kind() {
            ExprKind::Apply(op, _) => {
                let costly = op.info().function.is_some() && op.info().cost > 4;
                !costly && !matches!(op, Op::FloorDiv | Op::Mod)
            }
            ExprKind::Load(_, at) => is_beside(at.iter().map(|a| &a.index), l),
            ExprKind::Cast(inner) => !matches!((inner.dtype(), e.dtype()), (DType::F16 | DType::Bf16, _)),
            _ => true,
        };
    });
    plain
}

/// Calls `f` on all statements inside of one, with how often each is executed when that is.
fn count(s: &Stmt, values: &mut Values<'_>, often: f64, f: &mut dyn FnMut(&Stmt, f64)) {
    f(s, often);
    if let Some(l) = Loop::of(s) {
        let trips = values.enter(&l.iter, [&l.begin, &l.end, &l.step], &l.body);
        count(&l.body, values, often * trips.value, f);
        return values.leave();
    }
    s.kind().children().into_iter().for_each(|c| count(c, values, often, f));
}

/// Whether an estimate rests on what nobody has said.
pub(super) fn is_guess(e: Estimate) -> bool {
    e.known == Known::Guess
}
