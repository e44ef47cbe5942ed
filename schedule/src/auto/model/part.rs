//! What one outermost statement of a program takes.

mod around;
mod guess;
mod overlap;
mod prices;
mod working_set;

use super::compilers::{interchanged_by_compilers, is_unswitched, may_take_lanes};
use super::recurrence::{self, Scalars};
use super::remembered::{Bytes, Remembered, Taken, hash_floats, number};
use super::touch::{Growth, Touch, Walk, is_checked};
use super::work::Work;
use super::{Around, Stage, branch, transfer};
use crate::auto::target::{LINE, Target};
use crate::auto::trips::Values;
use crate::tree::Loop;
use around::decides;
pub(super) use overlap::Inner;
use overlap::{Chain, Wait};
use rustc_hash::FxHashMap;
use std::cell::Cell;
use std::hash::Hash as _;
use taffeta_analysis::query::effects;
use taffeta_analysis::query::product::product;
use taffeta_ast::op::Op;
use taffeta_ast::poly::tidy;
use taffeta_ast::{Expr, ExprKind, LoopProps, Sharing, Stmt, StmtKind, Symbol};
pub(super) use working_set::WorkingSet;

/// A dimension of matrices with which a library is half as fast as with large ones.
const SMALL: f64 = 16.0;

/// How much longer an addition waits for one whose sum is in memory.
const FORWARDED: f64 = 2.0;

/// The part of the first level that statements between two accesses leave to what both touch.
const PART_OF_FIRST: f64 = 0.25;
/// Accesses before one that are looked at.
const MOST_WALKS: usize = 64;

/// An element: a tensor and its indices.
type Element = (Symbol, Vec<Expr>);

/// A part of a program that is estimated.
pub(super) struct Part<'a, 't> {
    target: &'t Target,
    values: &'a mut Values<'t>,
    stage: Stage,
    around: Vec<Around>,
    /// How often the present place is reached in one iteration of the loops around.
    often: f64,
    /// Elements that statements of the present iteration have touched: they are in registers, or close.
    seen: Vec<Element>,
    /// Those that were written.
    stored: Vec<Element>,
    /// The last condition that the present iteration has asked.
    asked: Option<Expr>,
    /// What scalars are that it has computed, in terms of none of themselves.
    scalars: Scalars,
    /// The accesses so far.
    walks: Vec<Walk>,
    /// What the statements directly in the present loop take.
    direct: Direct,
    /// What the present loop's iterations consist of, as far as later ones may be started meanwhile.
    inner: Inner,
    /// What all statements take at least.
    roof: Roof,
    /// What loops took before.
    remembered: Option<&'a mut Remembered>,
    /// The sizes of the program with which the present loop takes what it does.
    bytes: Cell<Bytes>,
}

/// What statements take at least.
#[derive(Default)]
struct Roof {
    /// Their operations in whole vectors, on all threads.
    arithmetic: f64,
    /// The bytes of each tensor that they touch.
    bytes: FxHashMap<Symbol, f64>,
}

/// What the statements directly in a loop take, with all that it is executed.
#[derive(Default)]
struct Direct {
    compute: f64,
    /// What reductions into elements that stay the same wait for, and recurrences.
    chains: Vec<Chain>,
    /// What the bytes take that processors see coming.
    levels: f64,
    /// What those take that it waits for.
    waited: f64,
    /// Registers for what stays the same in the innermost loop.
    held: f64,
    /// What a load in every iteration would take, for one that has no register.
    reload: f64,
}

impl Direct {
    /// What they take, and what they would take if nothing waited for anything.
    fn time(&self, registers: f64) -> [f64; 2] {
        let chain = self.chains.iter().map(|c| c.time).fold(0.0, f64::max);
        let spilled = (self.held - registers).max(0.0) * self.reload;
        let busy = (self.compute + spilled).max(self.levels) + self.waited;
        [busy.max(chain), busy]
    }

    /// Adds that what is computed waits for what was computed for the same element before.
    fn wait(&mut self, element: Element, time: f64, value: &Expr) {
        if !self.chains.iter_mut().any(|c| c.lengthen(&element, time, value)) {
            self.chains.push(Chain::new(element, time, value));
        }
    }
}

impl<'a, 't> Part<'a, 't> {
    pub fn new(target: &'t Target, values: &'a mut Values<'t>, stage: Stage) -> Part<'a, 't> {
        Part {
            target,
            values,
            stage,
            around: Vec::new(),
            often: 1.0,
            seen: Vec::new(),
            stored: Vec::new(),
            asked: None,
            scalars: Scalars::default(),
            walks: Vec::new(),
            direct: Direct::default(),
            inner: Inner::default(),
            roof: Roof::default(),
            remembered: None,
            bytes: Cell::new(Bytes::ALL),
        }
    }

    /// Knows what loops took before, and adds what they take now.
    pub fn remembering(mut self, loops: &'a mut Remembered) -> Part<'a, 't> {
        self.remembered = Some(loops);
        self
    }

    /// What a statement takes.
    pub fn whole(mut self, s: &Stmt) -> f64 {
        let inside = self.stmt(s);
        let [time, _] = self.direct.time(self.target.registers());
        inside + self.inner.waits() + time + transfer::time(self.target, self.values, s)
    }

    /// What a statement's arithmetic takes at least, and its bytes.
    pub fn roof(mut self, s: &Stmt) -> (f64, f64) {
        self.stmt(s);
        let bytes: f64 = self.roof.bytes.values().sum();
        let levels = &self.target.levels;
        // From the level that has room for all of the program's tensors.
        let from = levels.iter().find(|l| self.values.bytes() <= l.bytes).or(levels.last());
        let scales = from.map_or(1.0, |l| l.scales.min(self.target.threads as f64));
        (self.roof.arithmetic, from.map_or(0.0, |l| bytes * l.per_byte / scales))
    }

    /// What the loops of a statement take, and its branches; what else it does is added to what the loop around does.
    fn stmt(&mut self, s: &Stmt) -> f64 {
        match s.kind() {
            StmtKind::For { props, .. } => match Loop::of(s) {
                Some(l) => self.in_loop(&l, props),
                None => s.kind().children().into_iter().map(|c| self.stmt(c)).sum(),
            },
            StmtKind::If { cond, then, otherwise } => {
                let before = self.often;
                let is_bound = self.around.last().is_some_and(|l| branch::is_bound(cond, &l.bounds));
                // Lanes do both branches, with masks.
                let masked = self.around.last().is_some_and(|l| l.lanes) && !is_bound;
                let (yes, no) = match masked {
                    true => (1.0, 1.0),
                    false => {
                        let yes = branch::taken(cond, otherwise.is_some(), &self.around);
                        (yes, 1.0 - yes)
                    }
                };
                self.often = before * yes;
                let mut time = self.stmt(then);
                self.often = before * no;
                time += otherwise.as_ref().map_or(0.0, |s| self.stmt(s));
                self.often = before;
                if is_bound {
                    return time;
                }
                // Lanes keep the mask of a condition that was asked before.
                if masked && self.asked.replace(cond.clone()).as_ref() == Some(cond) {
                    return time;
                }
                match masked {
                    true => self.statement(None, None, cond),
                    false => self.ask(cond, otherwise.is_some()),
                }
                let each = match masked {
                    true => self.target.prices.simple / self.lanes(4.0),
                    false => self.target.prices.branch + self.guess(cond),
                };
                let once = self.around.last().filter(|l| is_unswitched(cond, &l.iter));
                let asked = self.executions() / once.map_or(1.0, |l| l.trips.value.max(1.0));
                time + each * asked / self.threads()
            }
            StmtKind::Store { tensor, indices, value } => {
                let at: Vec<&Expr> = indices.iter().map(|a| &a.index).collect();
                self.statement(Some((tensor, &at)), None, value);
                0.0
            }
            StmtKind::ReduceTo { tensor, indices, value, .. } => {
                let at: Vec<&Expr> = indices.iter().map(|a| &a.index).collect();
                self.statement(Some((tensor, &at)), Some(tensor), value);
                0.0
            }
            StmtKind::VarDef { tensor, body } => {
                let changes = !self.around.is_empty() && self.values.is_allocated(tensor);
                let each = if changes { self.target.prices.allocate } else { 0.0 };
                each * self.executions() / self.threads() + self.stmt(body)
            }
            _ => s.kind().children().into_iter().map(|c| self.stmt(c)).sum(),
        }
    }

    /// Computes a condition of a branch, whose operands are asked one after the other as long as they decide nothing.
    fn ask(&mut self, cond: &Expr, has_other: bool) {
        let ExprKind::Apply(op @ (Op::And | Op::Or), operands) = cond.kind() else {
            return self.statement(None, None, cond);
        };
        let before = self.often;
        for e in operands {
            self.ask(e, has_other);
            let holds = branch::taken(e, has_other, &self.around);
            self.often *= if *op == Op::And { holds } else { 1.0 - holds };
        }
        self.often = before;
    }

    /// A nest that a library does: its multiply-adds, on all threads where there are none around. Of small matrices
    /// much of the time goes into the ends of blocks.
    fn product(&mut self, nest: &Stmt) -> f64 {
        let entries = self.executions();
        let Ok(p) = product(nest, &|_| String::new()) else { return 0.0 };
        let trips: Vec<f64> = p.loops.iter().map(|l| self.values.value(&l.count).value.max(0.0)).collect();
        let own = [p.row, p.column, Some(p.sum)].into_iter().flatten();
        let whole: f64 = own.map(|l| trips[l] / (trips[l] + SMALL)).product();
        let calls = entries * p.around().into_iter().map(|l| trips[l]).product::<f64>();
        let prices = &self.target.prices;
        let lanes = (self.target.vector_bytes as f64 / p.dtype.size() as f64).max(1.0);
        let updates = entries * trips.iter().product::<f64>();
        let alone = updates * prices.simple / lanes / (prices.library * whole).max(1e-3);
        let around = self.threads();
        self.roof.arithmetic += updates * prices.simple / lanes / self.target.threads as f64;
        let worth = alone / calls.max(1.0) / prices.region;
        let threads = if around > 1.0 { 1.0 } else { worth.clamp(1.0, self.target.threads as f64) };
        let meet = if threads > 1.0 { prices.region } else { 0.0 };
        (calls * (prices.call + meet) + alone / threads) / around
    }

    fn in_loop(&mut self, l: &Loop, props: &LoopProps) -> f64 {
        if props.library {
            return self.product(&l.stmt);
        }
        if self.stage == Stage::Compiled
            && let Some(swapped) = interchanged_by_compilers(l)
        {
            return self.stmt(&swapped);
        }
        let place = self.place();
        if let Some(known) = self.remembered.as_ref().and_then(|all| all.recall(&l.stmt, place, self.values.bytes())) {
            let Taken { time, inner, walks, bytes } = known;
            self.inner.add(inner);
            self.walks.extend(walks.iter().cloned());
            self.bytes.set(self.bytes.get().and(*bytes));
            return *time;
        }
        let (before, around) = (self.walks.len(), self.bytes.replace(Bytes::ALL));
        let beside = std::mem::take(&mut self.inner);
        let time = self.entered(l, props);
        let inner = std::mem::replace(&mut self.inner, beside);
        self.inner.add(&inner);
        if let Some(all) = &mut self.remembered {
            let from = before.max(self.walks.len().saturating_sub(MOST_WALKS));
            let (walks, bytes) = (self.walks[from..].to_vec(), self.bytes.get());
            all.remember(&l.stmt, place, Taken { time, inner, walks, bytes });
        }
        self.bytes.set(self.bytes.get().and(around));
        time
    }

    /// What an estimate of a loop depends on beside the loop, as a number.
    fn place(&self) -> u64 {
        number(|hasher| {
            self.around.last().map(|l| l.number).hash(hasher);
            hash_floats(&[self.often], hasher);
            let from = self.walks.len().saturating_sub(MOST_WALKS);
            self.walks[from..].iter().for_each(|w| w.number.hash(hasher));
        })
    }

    fn entered(&mut self, l: &Loop, props: &LoopProps) -> f64 {
        let trips = self.values.enter(&l.iter, [&l.begin, &l.end, &l.step], &l.body);
        let entries = self.executions();
        let mut around = self.around_of(l, props, trips);
        self.add_working_set(l, &mut around);
        around.number = self.number_of(&around);
        let parallel = around.threads;
        let mut enter = if around.is_unrolled() { 0.0 } else { self.target.prices.enter };
        let iters = || self.around.iter().map(|l| &l.iter).chain([&l.iter]).collect::<Vec<&Symbol>>();
        if around.lanes && is_checked(l, &iters()) {
            // Lanes look at all such indices in a loop before their own.
            enter += self.target.prices.enter;
        }
        let mut events = entries * enter / self.threads();
        if parallel {
            let region = if decides(props, trips) { 0.0 } else { self.target.prices.region };
            events += entries * (region + self.sum_up(l, props));
        }
        let may_get_lanes =
            self.stage == Stage::Structure && *props == LoopProps::default() && !around.by_itself && is_innermost(l);
        let before = self.walks.len();
        let mut taken = self.body(l, props, around.clone());
        if may_get_lanes && may_take_lanes(l) {
            self.walks.truncate(before);
            let mut around = Around { lanes: true, ..around };
            around.number = self.number_of(&around);
            let with_lanes = self.body(l, props, around);
            if with_lanes.0 + with_lanes.1.waits() < taken.0 + taken.1.waits() {
                taken = with_lanes;
            }
        }
        self.values.leave();
        self.inner = taken.1;
        taken.0 + events
    }

    /// What the iterations of a loop take, and what that is to the loop around.
    fn body(&mut self, l: &Loop, props: &LoopProps, around: Around) -> (f64, Inner) {
        let atomic: Vec<Symbol> =
            props.reductions.iter().filter(|r| r.sharing == Sharing::Atomic).map(|r| r.tensor.clone()).collect();
        self.around.push(around);
        self.inner = Inner::default();
        let (seen, stored) = (std::mem::take(&mut self.seen), std::mem::take(&mut self.stored));
        let (scalars, asked) = (std::mem::take(&mut self.scalars), self.asked.take());
        let outside = std::mem::take(&mut self.direct);
        let inside = self.stmt(&l.body) + self.atomic_updates(&l.body, &atomic);
        let direct = std::mem::replace(&mut self.direct, outside);
        (self.seen, self.stored, self.scalars, self.asked) = (seen, stored, scalars, asked);
        let inner = std::mem::take(&mut self.inner);
        let executions = self.executions();
        let left = self.around.pop();
        let [time, busy] = direct.time(self.target.registers());
        let instructions = inner.instructions;
        let taken = inner.overlapped(inside + time, l, executions);
        match left.filter(|left| left.is_unrolled() && time > busy) {
            Some(_) => {
                let wait = Wait { chains: direct.chains, time: time - busy };
                (taken - wait.time, Inner { waits: vec![wait], instructions })
            }
            None => (taken, Inner { waits: Vec::new(), instructions }),
        }
    }

    /// What it takes to add up what threads have summed each for itself.
    fn sum_up(&self, l: &Loop, props: &LoopProps) -> f64 {
        let memory = self.target.levels.last().map_or(0.0, |l| l.per_byte);
        let copies = props.reductions.iter().filter(|r| r.sharing == Sharing::Partial).map(|r| {
            let elements: f64 = self.of_own(&r.tensor, l).map(|d| self.values.value(d).value).product();
            elements * 8.0 * 2.0 * memory * self.target.threads as f64
        });
        copies.sum()
    }

    /// The dimensions of a thread's part of what a loop reduces into: those whose index is the same in the whole loop
    /// have one element.
    fn of_own(&self, tensor: &Symbol, l: &Loop) -> impl Iterator<Item = &Expr> {
        let mut variant = effects::writes(&l.body);
        variant.insert(l.iter.clone());
        l.body.walk(&mut |s| variant.extend(Loop::of(s).map(|l| l.iter)));
        let variant: Vec<&Symbol> = variant.iter().collect();
        let mut varies = vec![false; self.values.shape(tensor).len()];
        l.body.walk(&mut |s| {
            if let StmtKind::ReduceTo { tensor: t, indices, .. } = s.kind()
                && t == tensor
            {
                varies.iter_mut().zip(indices).for_each(|(v, a)| *v |= effects::mentions(&a.index, &variant));
            }
        });
        self.values.shape(tensor).iter().zip(varies).filter_map(|(d, varies)| varies.then_some(d))
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
    fn statement(&mut self, target: Option<(&Symbol, &[&Expr])>, into: Option<&Symbol>, value: &Expr) {
        let executions = self.executions();
        if executions <= 0.0 {
            return;
        }
        let mut accesses: Vec<Touch> = Vec::new();
        let mut work = Work::default();
        self.expr(value, &mut work, &mut accesses);
        let mut sum = None;
        if let Some((tensor, at)) = target {
            let bytes = bytes_of(value);
            at.iter().for_each(|e| self.index(e, &mut work, &mut accesses));
            note(&mut self.seen, tensor, at);
            let touch = Touch::new(self.values, &self.around, tensor, at, bytes).written();
            if into.is_some() {
                // A multiply-add is one instruction.
                work.simple += if is_product(value) { 0.0 } else { 1.0 };
                let lanes = self.lanes(bytes.max(4.0));
                sum = self.chain(&touch, lanes).map(|additions| (element(tensor, at), additions));
            }
            // Of several stores to an element in an iteration the last one counts.
            if note(&mut self.stored, tensor, at) {
                accesses.push(touch);
            }
        }
        self.find_near(&mut accesses);
        let widest = accesses.iter().map(|a| a.bytes).fold(4.0, f64::max);
        let lanes = self.lanes(widest);
        let per_thread = executions / self.threads();
        self.inner.instructions += overlap::instructions(&work, &accesses, lanes) * executions;
        self.direct.compute += self.compute(&work, &accesses, lanes, self.tail(widest)) * per_thread;
        self.lift_roof(&work, &accesses, widest, executions);
        let [seen, waited] = self.levels(&accesses, self.threads());
        self.direct.levels += seen;
        self.direct.waited += waited;
        self.direct.reload = self.target.prices.load * per_thread / lanes;
        self.direct.held += accesses.iter().map(|a| self.registers(a)).sum::<f64>();
        if let (Some((tensor, at)), None, Some(l)) = (target, into, self.around.last()) {
            if at.is_empty() {
                self.scalars.store(tensor, value);
            } else {
                let wait = recurrence::wait(&l.iter, (tensor, at), value, &self.scalars, &self.target.prices);
                if wait > 0.0 {
                    self.direct.wait(element(tensor, at), wait * per_thread, value);
                }
            }
        }
        if let Some((element, additions)) = sum {
            self.direct.wait(element, self.target.prices.latency * additions * per_thread, value);
        }
    }

    /// Adds a statement to what all take at least.
    fn lift_roof(&mut self, work: &Work, accesses: &[Touch], widest: f64, executions: f64) {
        let lanes = (self.target.vector_bytes as f64 / widest).max(1.0);
        self.roof.arithmetic += self.compute(work, &[], lanes, 0.0) * executions / self.target.threads as f64;
        for a in accesses.iter().filter(|a| !a.in_registers) {
            let bytes = self.roof.bytes.entry(a.tensor.clone()).or_default();
            *bytes = bytes.max(a.footprint(&self.around, 0, LINE));
        }
    }

    /// Notes which accesses find what others have brought into the first level.
    fn find_near(&mut self, accesses: &mut [Touch]) {
        let room = self.target.levels.first().map_or(0.0, |l| l.bytes * PART_OF_FIRST);
        for a in accesses {
            let from = self.walks.len().saturating_sub(MOST_WALKS);
            a.near = self.walks[from..].iter().any(|w| a.follows(w, &self.around, room));
            if !a.near {
                self.walks.push(a.walk(&self.around));
            }
        }
    }

    /// The additions of a reduction that wait for each other, as a part of all. `None` if the innermost loop goes from
    /// element to element.
    fn chain(&self, touch: &Touch, lanes: f64) -> Option<f64> {
        let last = self.around.last()?;
        if touch.stays() {
            return Some(1.0 / lanes + lanes.log2() * 2.0 / last.trips.value.max(1.0));
        }
        // Loops inside go over so few elements that an iteration of the loop around meets what the one before it added
        // to.
        let own = || self.around.iter().zip(touch.growth()).filter(|(_, g)| *g != Growth::None).map(|(l, _)| l);
        let again = touch.growth().any(|g| g == Growth::None) && own().all(Around::is_unrolled);
        let through = if touch.in_registers { 1.0 } else { FORWARDED };
        again.then(|| through / own().map(|l| l.trips.value.max(1.0)).product::<f64>())
    }

    /// The registers that an access takes for as long as the innermost loop runs.
    fn registers(&self, a: &Touch) -> f64 {
        match a.in_registers {
            true => {
                let lanes = (self.target.vector_bytes as f64 / a.bytes).max(1.0);
                let row = |(l, g): (&Around, Growth)| if g == Growth::None { 1.0 } else { l.trips.value.max(1.0) };
                (self.around.iter().zip(a.growth()).map(row).product::<f64>() / lanes).max(1.0)
            }
            false => f64::from(u8::from(a.stays() && !self.around.last().is_some_and(Around::is_unrolled))),
        }
    }

    /// Counts what an expression does.
    fn expr(&mut self, e: &Expr, work: &mut Work, accesses: &mut Vec<Touch>) {
        match e.kind() {
            ExprKind::Load(t, at) => {
                let at: Vec<&Expr> = at.iter().map(|a| &a.index).collect();
                at.iter().for_each(|i| self.index(i, work, accesses));
                if !at.is_empty() && note(&mut self.seen, t, &at) {
                    accesses.push(Touch::new(self.values, &self.around, t, &at, bytes_of(e)));
                }
            }
            ExprKind::Apply(op, args) => {
                // A multiply-add is one instruction.
                if !(matches!(op, Op::Add | Op::Sub) && args.iter().any(is_product)) {
                    work.add(&Work::of(*op, bytes_of(e)));
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
            if note(&mut self.seen, t, &at) {
                accesses.push(Touch::new(self.values, &self.around, t, &at, bytes_of(&e)));
                work.simple += 1.0;
            }
        }
    }
}

fn bytes_of(e: &Expr) -> f64 {
    e.dtype().size() as f64
}

fn is_product(e: &Expr) -> bool {
    matches!(e.kind(), ExprKind::Apply(Op::Mul, _)) && e.dtype().is_float()
}

fn element(tensor: &Symbol, at: &[&Expr]) -> Element {
    (tensor.clone(), at.iter().map(|e| (*e).clone()).collect())
}

/// Notes that an element is touched. Whether it is for the first time.
fn note(known: &mut Vec<Element>, tensor: &Symbol, at: &[&Expr]) -> bool {
    // Jammed iterations write one element as `i + 1 + (k - 1)` and as `i + k`.
    let of_sums = |e: &&Expr| matches!(e.kind(), ExprKind::Apply(..));
    let at: Vec<Expr> = at.iter().map(|e| if of_sums(e) { tidy(e) } else { (*e).clone() }).collect();
    if known.iter().any(|(t, known)| t == tensor && *known == at) {
        return false;
    }
    known.push((tensor.clone(), at));
    true
}

fn is_innermost(l: &Loop) -> bool {
    let mut inner = false;
    l.body.walk(&mut |s| inner |= matches!(s.kind(), StmtKind::For { .. } | StmtKind::While { .. }));
    !inner
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
