//! Estimator of a single outermost statement of a program: a walk that sums the terms of the cost model's formula (see
//! `model`) over the statements of each loop, and the times of the loops.

mod loop_context;
mod memory_cost;
mod misprediction;
pub(super) mod out_of_order;
mod working_set;

use super::access::{AccessPattern, Element, ReuseKey, StrideClass, is_checked};
use super::c_compiler::{interchanged_by_compilers, is_unswitched, may_take_lanes};
use super::hash::{hash_floats, number};
use super::memo::{Bytes, LoopEstimate, Memo};
use super::recurrence::{self, Scalars};
use super::work::Work;
use super::{branch, coherence};
use crate::auto::model::enclosing::{EnclosingLoop, Stage};
use crate::auto::target::{LINE, Target};
use crate::auto::trip_counts::Values;
use crate::tree::Loop;
use loop_context::starts_conditionally;
use out_of_order::{Chain, LoopCost, Stall};
use rustc_hash::FxHashMap;
use std::cell::Cell;
use std::hash::Hash as _;
use taffeta_analysis::query::effects;
use taffeta_analysis::query::product::product;
use taffeta_ast::op::Op;
use taffeta_ast::poly::tidy;
use taffeta_ast::{Expr, ExprKind, LoopProps, Sharing, Stmt, StmtKind, Symbol};

/// Matrix dimension at which a library has half the throughput that it has for large matrices.
const SMALL: f64 = 16.0;

/// Latency of an addition to a sum in memory, relative to a sum in a register.
const FORWARDED: f64 = 2.0;

/// Fraction of the first level that statements between two accesses leave to the common footprint of both.
const PART_OF_FIRST: f64 = 0.25;
/// Maximum number of earlier accesses searched.
const MAX_WALKS: usize = 64;

/// Estimator of a part of a program.
pub(super) struct Estimator<'a, 't> {
    target: &'t Target,
    values: &'a mut Values<'t>,
    stage: Stage,
    around: Vec<EnclosingLoop>,
    /// Number of executions of the current place in one iteration of the enclosing loops.
    often: f64,
    /// Elements touched in the current iteration: they are in registers, or close.
    seen: Vec<Element>,
    /// Elements written in the current iteration.
    stored: Vec<Element>,
    /// Condition evaluated last in the current iteration.
    asked: Option<Expr>,
    /// Symbolic values of the scalars computed in the current iteration.
    scalars: Scalars,
    /// Patterns of the accesses so far.
    walks: Vec<ReuseKey>,
    /// Costs of the statements directly in the current loop.
    direct: Direct,
    /// Stalls and instructions of the current loop, for overlap with later iterations.
    inner: LoopCost,
    /// Lower bounds over all statements.
    roof: Roof,
    /// Memo of loop estimates.
    remembered: Option<&'a mut Memo>,
    /// Total tensor sizes for which the current loop's estimate holds.
    bytes: Cell<Bytes>,
}

/// Lower bounds of the costs of statements.
#[derive(Default)]
struct Roof {
    /// Time of the operations in full vectors, on all threads.
    arithmetic: f64,
    /// Bytes touched of each tensor.
    bytes: FxHashMap<Symbol, f64>,
}

/// Costs of the statements directly in a loop, over all executions of the loop.
#[derive(Default)]
struct Direct {
    compute: f64,
    /// Dependence chains of recurrences and of reductions into fixed elements.
    chains: Vec<Chain>,
    /// Transfer time of prefetched bytes.
    levels: f64,
    /// Stall cost of demand misses.
    waited: f64,
    /// Number of registers for invariants of the innermost loop.
    held: f64,
    /// Cost of reloading an invariant without a register in every iteration.
    reload: f64,
}

impl Direct {
    /// Returns the total time, and the time without dependence chains.
    fn time(&self, registers: f64) -> [f64; 2] {
        let chain = self.chains.iter().map(|c| c.time).fold(0.0, f64::max);
        let spilled = (self.held - registers).max(0.0) * self.reload;
        let busy = (self.compute + spilled).max(self.levels) + self.waited;
        [busy.max(chain), busy]
    }

    /// Adds the latency of a value that depends on the previous value of the same element.
    fn wait(&mut self, element: Element, time: f64, value: &Expr) {
        if !self.chains.iter_mut().any(|c| c.lengthen(&element, time, value)) {
            self.chains.push(Chain::new(element, time, value));
        }
    }
}

impl<'a, 't> Estimator<'a, 't> {
    pub fn new(target: &'t Target, values: &'a mut Values<'t>, stage: Stage) -> Estimator<'a, 't> {
        Estimator {
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
            inner: LoopCost::default(),
            roof: Roof::default(),
            remembered: None,
            bytes: Cell::new(Bytes::ALL),
        }
    }

    /// Uses a memo of loop estimates, and extends it.
    pub fn remembering(mut self, loops: &'a mut Memo) -> Estimator<'a, 't> {
        self.remembered = Some(loops);
        self
    }

    /// Returns the estimate of a statement.
    pub fn whole(mut self, s: &Stmt) -> f64 {
        let inside = self.stmt(s);
        let [time, _] = self.direct.time(self.target.registers());
        inside + self.inner.stall_time() + time + coherence::time(self.target, self.values, s)
    }

    /// Returns the lower bounds of a statement's arithmetic and of its memory transfers.
    pub fn roof(mut self, s: &Stmt) -> (f64, f64) {
        self.stmt(s);
        let bytes: f64 = self.roof.bytes.values().sum();
        let levels = &self.target.levels;
        // Bytes come from the first level that holds all of the program's tensors.
        let from = levels.iter().find(|l| self.values.bytes() <= l.bytes).or(levels.last());
        let scales = from.map_or(1.0, |l| l.scales.min(self.target.threads as f64));
        (self.roof.arithmetic, from.map_or(0.0, |l| bytes * l.per_byte / scales))
    }

    /// Returns the time of a statement's loops and branches; its other costs are added to those of the enclosing loop.
    fn stmt(&mut self, s: &Stmt) -> f64 {
        match s.kind() {
            StmtKind::For { props, .. } => match Loop::of(s) {
                Some(l) => self.in_loop(&l, props),
                None => s.kind().children().into_iter().map(|c| self.stmt(c)).sum(),
            },
            StmtKind::If { cond, then, otherwise } => {
                let before = self.often;
                let is_bound = self.around.last().is_some_and(|l| branch::is_bound(cond, &l.bounds));
                // Lanes execute both branches, with masks.
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
                // Lanes keep the mask of the condition evaluated last.
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

    /// Adds the evaluation of a branch condition with short-circuit operands.
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

    /// Returns the time of a nest that a library executes: its multiply-adds, on all threads unless an enclosing loop
    /// has threads. For small matrices, much of the time goes into partial blocks.
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
            let LoopEstimate { time, inner, walks, bytes } = known;
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
            let from = before.max(self.walks.len().saturating_sub(MAX_WALKS));
            let (walks, bytes) = (self.walks[from..].to_vec(), self.bytes.get());
            all.remember(&l.stmt, place, LoopEstimate { time, inner, walks, bytes });
        }
        self.bytes.set(self.bytes.get().and(around));
        time
    }

    /// Hashes the inputs of a loop's estimate other than the loop.
    fn place(&self) -> u64 {
        number(|hasher| {
            self.around.last().map(|l| l.number).hash(hasher);
            hash_floats(&[self.often], hasher);
            let from = self.walks.len().saturating_sub(MAX_WALKS);
            self.walks[from..].iter().for_each(|w| w.number.hash(hasher));
        })
    }

    fn entered(&mut self, l: &Loop, props: &LoopProps) -> f64 {
        let trips = self.values.enter(&l.iter, [&l.begin, &l.end, &l.step], &l.body);
        let entries = self.executions();
        let mut around = self.enclosing_loop(l, props, trips);
        self.add_working_set(l, &mut around);
        around.number = self.context_hash(&around);
        let parallel = around.threads;
        let mut enter = if around.is_unrolled() { 0.0 } else { self.target.prices.enter };
        let iters = || self.around.iter().map(|l| &l.iter).chain([&l.iter]).collect::<Vec<&Symbol>>();
        if around.lanes && is_checked(l, &iters()) {
            // Vectorised code checks these indices for all iterations in a loop of its own beforehand.
            enter += self.target.prices.enter;
        }
        let mut events = entries * enter / self.threads();
        if parallel {
            let region = if starts_conditionally(props, trips) { 0.0 } else { self.target.prices.region };
            events += entries * (region + self.sum_up(l, props));
        }
        let may_get_lanes = self.stage == Stage::Structure
            && *props == LoopProps::default()
            && !around.auto_vectorized
            && is_innermost(l);
        let before = self.walks.len();
        let mut taken = self.body(l, props, around.clone());
        if may_get_lanes && may_take_lanes(l) {
            self.walks.truncate(before);
            let mut around = EnclosingLoop { lanes: true, ..around };
            around.number = self.context_hash(&around);
            let with_lanes = self.body(l, props, around);
            if with_lanes.0 + with_lanes.1.stall_time() < taken.0 + taken.1.stall_time() {
                taken = with_lanes;
            }
        }
        self.values.leave();
        self.inner = taken.1;
        taken.0 + events
    }

    /// Returns the time of a loop's iterations, and the stalls and instructions that it passes to the enclosing loop.
    fn body(&mut self, l: &Loop, props: &LoopProps, around: EnclosingLoop) -> (f64, LoopCost) {
        let atomic: Vec<Symbol> =
            props.reductions.iter().filter(|r| r.sharing == Sharing::Atomic).map(|r| r.tensor.clone()).collect();
        self.around.push(around);
        self.inner = LoopCost::default();
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
                let stall = Stall { chains: direct.chains, time: time - busy };
                (taken - stall.time, LoopCost { stalls: vec![stall], instructions })
            }
            None => (taken, LoopCost { stalls: Vec::new(), instructions }),
        }
    }

    /// Returns the cost of merging the partial results of threads.
    fn sum_up(&self, l: &Loop, props: &LoopProps) -> f64 {
        let memory = self.target.levels.last().map_or(0.0, |l| l.per_byte);
        let copies = props.reductions.iter().filter(|r| r.sharing == Sharing::Partial).map(|r| {
            let elements: f64 = self.partial_result_shape(&r.tensor, l).map(|d| self.values.value(d).value).product();
            elements * 8.0 * 2.0 * memory * self.target.threads as f64
        });
        copies.sum()
    }

    /// Returns the dimensions of a thread's partial result of a reduction, without the dimensions whose index is fixed
    /// in the whole loop, which have one element.
    fn partial_result_shape(&self, tensor: &Symbol, l: &Loop) -> impl Iterator<Item = &Expr> {
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

    /// Returns the number of executions of the current place.
    fn executions(&self) -> f64 {
        self.around.iter().map(|l| l.trips.value).product::<f64>() * self.often
    }

    /// Returns the cost of atomic updates in the body of a loop. (Conditions around them are ignored.)
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

    /// Adds the costs of one statement: a store, a reduction (`into` is its tensor), or a condition.
    fn statement(&mut self, target: Option<(&Symbol, &[&Expr])>, into: Option<&Symbol>, value: &Expr) {
        let executions = self.executions();
        if executions <= 0.0 {
            return;
        }
        let mut accesses: Vec<AccessPattern> = Vec::new();
        let mut work = Work::default();
        self.expr(value, &mut work, &mut accesses);
        let mut sum = None;
        if let Some((tensor, at)) = target {
            let bytes = bytes_of(value);
            at.iter().for_each(|e| self.index(e, &mut work, &mut accesses));
            note(&mut self.seen, tensor, at);
            let touch = AccessPattern::new(self.values, &self.around, tensor, at, bytes).written();
            if into.is_some() {
                // A multiply-add is one instruction.
                work.simple += if is_product(value) { 0.0 } else { 1.0 };
                let lanes = self.lanes(bytes.max(4.0));
                sum = self.chain(&touch, lanes).map(|additions| (element(tensor, at), additions));
            }
            // Several stores to an element in an iteration count once.
            if note(&mut self.stored, tensor, at) {
                accesses.push(touch);
            }
        }
        self.mark_reuse(&mut accesses);
        let widest = accesses.iter().map(|a| a.bytes).fold(4.0, f64::max);
        let lanes = self.lanes(widest);
        let per_thread = executions / self.threads();
        self.inner.instructions += out_of_order::instructions(&work, &accesses, lanes) * executions;
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

    /// Adds a statement to the lower bounds.
    fn lift_roof(&mut self, work: &Work, accesses: &[AccessPattern], widest: f64, executions: f64) {
        let lanes = (self.target.vector_bytes as f64 / widest).max(1.0);
        self.roof.arithmetic += self.compute(work, &[], lanes, 0.0) * executions / self.target.threads as f64;
        for a in accesses.iter().filter(|a| !a.in_registers) {
            let bytes = self.roof.bytes.entry(a.tensor.clone()).or_default();
            *bytes = bytes.max(a.footprint(&self.around, 0, LINE));
        }
    }

    /// Marks the accesses whose data earlier accesses have brought into the first level, and records the patterns of
    /// the others.
    fn mark_reuse(&mut self, accesses: &mut [AccessPattern]) {
        let room = self.target.levels.first().map_or(0.0, |l| l.bytes * PART_OF_FIRST);
        for a in accesses {
            let from = self.walks.len().saturating_sub(MAX_WALKS);
            a.near = self.walks[from..].iter().any(|w| a.follows(w, &self.around, room));
            if !a.near {
                self.walks.push(a.walk(&self.around));
            }
        }
    }

    /// Returns the number of dependent additions that each execution of a reduction contributes to a chain; `None` if
    /// iterations move from element to element.
    fn chain(&self, touch: &AccessPattern, lanes: f64) -> Option<f64> {
        let last = self.around.last()?;
        if touch.stays() {
            return Some(1.0 / lanes + lanes.log2() * 2.0 / last.trips.value.max(1.0));
        }
        // Unrolled loops inside cover so few elements that consecutive iterations of an enclosing loop reduce into the
        // same ones.
        let own = || self.around.iter().zip(touch.growth()).filter(|(_, g)| *g != StrideClass::None).map(|(l, _)| l);
        let again = touch.growth().any(|g| g == StrideClass::None) && own().all(EnclosingLoop::is_unrolled);
        let through = if touch.in_registers { 1.0 } else { FORWARDED };
        again.then(|| through / own().map(|l| l.trips.value.max(1.0)).product::<f64>())
    }

    /// Returns the number of registers that an access occupies while the innermost loop runs.
    fn registers(&self, a: &AccessPattern) -> f64 {
        match a.in_registers {
            true => {
                let lanes = (self.target.vector_bytes as f64 / a.bytes).max(1.0);
                let row = |(l, g): (&EnclosingLoop, StrideClass)| {
                    if g == StrideClass::None { 1.0 } else { l.trips.value.max(1.0) }
                };
                (self.around.iter().zip(a.growth()).map(row).product::<f64>() / lanes).max(1.0)
            }
            false => f64::from(u8::from(a.stays() && !self.around.last().is_some_and(EnclosingLoop::is_unrolled))),
        }
    }

    /// Counts the operations and accesses of an expression.
    fn expr(&mut self, e: &Expr, work: &mut Work, accesses: &mut Vec<AccessPattern>) {
        match e.kind() {
            ExprKind::Load(t, at) => {
                let at: Vec<&Expr> = at.iter().map(|a| &a.index).collect();
                at.iter().for_each(|i| self.index(i, work, accesses));
                if !at.is_empty() && note(&mut self.seen, t, &at) {
                    accesses.push(AccessPattern::new(self.values, &self.around, t, &at, bytes_of(e)));
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

    /// Counts the loads of an index; its arithmetic is hoisted out of the loop, or overlaps.
    fn index(&mut self, e: &Expr, work: &mut Work, accesses: &mut Vec<AccessPattern>) {
        let mut loads = Vec::new();
        e.walk(&mut |e| loads.extend(matches!(e.kind(), ExprKind::Load(_, at) if !at.is_empty()).then(|| e.clone())));
        for e in loads {
            let ExprKind::Load(t, at) = e.kind() else { continue };
            let at: Vec<&Expr> = at.iter().map(|a| &a.index).collect();
            if note(&mut self.seen, t, &at) {
                accesses.push(AccessPattern::new(self.values, &self.around, t, &at, bytes_of(&e)));
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

/// Records a touched element. Returns whether it is touched for the first time.
fn note(known: &mut Vec<Element>, tensor: &Symbol, at: &[&Expr]) -> bool {
    // Jammed iterations spell one element as `i + 1 + (k - 1)` and as `i + k`.
    let of_sums = |e: &&Expr| matches!(e.kind(), ExprKind::Apply(..));
    let at: Vec<Expr> = at.iter().map(|e| if of_sums(e) { tidy(e) } else { (*e).clone() }).collect();
    if known.iter().any(|(t, known)| t == tensor && *known == at) {
        return false;
    }
    known.push((tensor.clone(), at));
    true
}

fn is_innermost(l: &Loop) -> bool {
    let inner = l.body.any(&mut |s| matches!(s.kind(), StmtKind::For { .. } | StmtKind::While { .. }));
    !inner
}

/// Calls `f` on a statement and all statements inside of it, with the number of executions of each.
fn count(s: &Stmt, values: &mut Values<'_>, often: f64, f: &mut dyn FnMut(&Stmt, f64)) {
    f(s, often);
    if let Some(l) = Loop::of(s) {
        let trips = values.enter(&l.iter, [&l.begin, &l.end, &l.step], &l.body);
        count(&l.body, values, often * trips.value, f);
        return values.leave();
    }
    s.kind().children().into_iter().for_each(|c| count(c, values, often, f));
}
