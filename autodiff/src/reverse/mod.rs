//! Backward pass of a program, statement by statement from its end to its beginning (FreeTensor, section 5.1).
//!
//! For `x[I] = e` with the adjoint `x.grad`, from the last statement to the first:
//!
//! ```text
//! y.grad[J] += x.grad[I] * ∂e/∂y[J]     for every element y[J] that e reads
//! x.grad[I] = 0                          unless nothing has written x[I] before
//! ```
//!
//! `x[I] += e` leaves `x.grad[I]` as it is. `x[I] *= e` multiplies it by `e`. `x[I] = max(x[I], e)` passes it on to the
//! `e` that became the maximum last. Loops run backwards, branches stay, declarations declare adjoints. The forward
//! values of operands come from `value_sources`.

mod custom_vjp;
mod invert;
mod replay;

use crate::custom_vjp::Calls;
use crate::data::{BackwardInfo, Kept, RecomputeScope, Saved, Snapshot, ValueSource};
use crate::expression::{self, Contribution};
use crate::facts::{AccessedValue, Facts, LoopFacts};
use crate::partials::working;
use crate::precision::AccumulationTypes;
use crate::value_sources::Values;
use crate::{build, extent, partials};
use replay::ForwardPass;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;
use taffeta_ast::func::CustomVjp;
use taffeta_ast::op::Op;
use taffeta_ast::stmt::Role;
use taffeta_ast::{
    Access, DType, Diagnostic, Diagnostics, Expr, ExprKind, Extent, Literal, LoopProps, Origin, ReduceOp, Span, Stmt,
    StmtId, StmtKind, Symbol, Tensor,
};

/// Inputs of the construction of a backward pass.
pub(crate) struct Forward<'a, 'f> {
    pub facts: &'a Facts<'f>,
    /// Calls with custom gradients.
    pub calls: &'a Calls,
    /// Tensors that have adjoints.
    pub active: FxHashSet<Symbol>,
    /// Accumulation types of adjoints.
    pub collected: AccumulationTypes,
    /// Adjoints of parameters and results.
    pub adjoints: FxHashMap<Symbol, Arc<Tensor>>,
    pub values: Values,
    /// Statements before the backward pass: zeros and seeds.
    pub first: Vec<Stmt>,
    /// Statements after the backward pass: roundings of adjoints.
    pub last: Vec<Stmt>,
    /// Whether the gradient records which of its calls have custom gradients.
    pub differentiable: bool,
    pub origin: &'a Origin,
}

/// Forward pass and backward pass.
pub(crate) struct Passes {
    pub body: Stmt,
    pub info: BackwardInfo,
    /// Adjoints that the backward pass writes.
    pub written: FxHashSet<Symbol>,
    /// Forward values that the backward pass reads.
    pub values: Values,
    /// Calls in `body` that have custom gradients, if the gradient records them.
    pub calls: Vec<CustomVjp>,
}

/// Builds the forward pass of a program and its backward pass.
///
/// # Errors
///
/// `grad::…` if the number of values to keep is not known.
pub(crate) fn run(from: Forward<'_, '_>) -> Result<Passes, Diagnostics> {
    let Forward { facts, calls, active, collected, adjoints, values, first, last, differentiable, origin } = from;
    let mut reverse = Reverse {
        facts,
        active,
        collected,
        adjoints,
        initial: facts.func.params.iter().map(|p| p.tensor.symbol.clone()).collect(),
        values,
        iters: FxHashMap::default(),
        replayed: None,
        written: FxHashSet::default(),
        marks: Vec::new(),
        calls,
        calls_done: FxHashSet::default(),
        calls_made: Vec::new(),
        info: BackwardInfo::default(),
        problems: Vec::new(),
        reported: FxHashSet::default(),
    };
    let back = reverse.stmt(&facts.func.body);
    let back = Stmt::seq(first.into_iter().chain(back).chain(last), origin.clone());
    let back = invert::begin(facts, &reverse.values.inverted, back, origin);
    reverse.info.backward = match back.kind() {
        StmtKind::Seq(all) => all.iter().map(Stmt::id).collect(),
        _ => [back.id()].into_iter().collect(),
    };
    let body = reverse.at_scope(RecomputeScope::Program, &facts.func.body, back);
    if differentiable {
        reverse.calls_of_forward_pass();
    }
    if !reverse.problems.is_empty() {
        return Err(Diagnostics(reverse.problems));
    }
    let calls = if differentiable { reverse.calls_made } else { Vec::new() };
    Ok(Passes { body, info: reverse.info, written: reverse.written, values: reverse.values, calls })
}

/// Builder of the backward pass.
struct Reverse<'a, 'f> {
    facts: &'a Facts<'f>,
    /// Tensors that have adjoints.
    active: FxHashSet<Symbol>,
    collected: AccumulationTypes,
    adjoints: FxHashMap<Symbol, Arc<Tensor>>,
    /// Tensors whose initial contents carry a derivative: every store to one resets the element's adjoint.
    initial: FxHashSet<Symbol>,
    values: Values,
    /// Iterators of the program, as expressions in the backward pass.
    iters: FxHashMap<Symbol, Expr>,
    /// Part of the program that is being replayed, if any.
    replayed: Option<ForwardPass>,
    /// Adjoints that the backward pass writes.
    written: FxHashSet<Symbol>,
    /// Placeholders in derivatives, with the expressions of the backward pass that they stand for.
    marks: Vec<(Expr, Expr)>,
    /// Calls with custom gradients.
    calls: &'a Calls,
    /// Calls whose backward pass is built.
    calls_done: FxHashSet<usize>,
    /// Calls in the gradient: those of its forward pass, and those that custom backward passes make.
    calls_made: Vec<CustomVjp>,
    info: BackwardInfo,
    problems: Vec<Diagnostic>,
    /// Messages and positions of `problems`, so that each is reported once.
    reported: FxHashSet<(String, Span)>,
}

/// Element that a statement writes.
struct WrittenElement<'t> {
    stmt: &'t Stmt,
    tensor: &'t Symbol,
    indices: &'t [Access],
    dtype: DType,
    /// Origin of the statements generated from it.
    origin: Origin,
}

impl WrittenElement<'_> {
    fn load(&self) -> Expr {
        Expr::load(self.tensor, self.indices.to_vec(), self.dtype)
    }
}

impl Reverse<'_, '_> {
    /// Builds the backward pass of a statement; returns `None` if there is nothing to do.
    fn stmt(&mut self, s: &Stmt) -> Option<Stmt> {
        if let Some(call) = self.calls.at(s.id()) {
            return self.custom_vjp(call, s);
        }
        let origin = s.origin().derive("grad", "backward");
        match s.kind() {
            StmtKind::Seq(all) => {
                let back: Vec<Stmt> = all.iter().rev().filter_map(|s| self.stmt(s)).collect();
                (!back.is_empty()).then(|| Stmt::seq(back, origin))
            }
            StmtKind::VarDef { tensor, body } => self.scope(tensor, body, origin),
            StmtKind::For { iter, extent: Extent::Range { begin, end, step }, body, .. } => {
                self.looped(s, iter, [begin, end, step], body, origin)
            }
            StmtKind::If { cond, then, otherwise } => {
                let then = self.stmt(then);
                let otherwise = otherwise.as_ref().and_then(|o| self.stmt(o));
                if then.is_none() && otherwise.is_none() {
                    return None;
                }
                let cond = self.value(s.id(), cond);
                let kind = StmtKind::If { cond, then: then.unwrap_or_else(Stmt::nop), otherwise };
                Some(Stmt::new(kind, origin))
            }
            StmtKind::Store { tensor, indices, value } if self.active.contains(tensor) => {
                Some(self.store(&WrittenElement { stmt: s, tensor, indices, dtype: value.dtype(), origin }, value))
            }
            StmtKind::ReduceTo { tensor, indices, value, .. } if self.values.inverted.contains_key(tensor) => {
                let in_turn = self.values.inverted[tensor].first_in.is_none();
                in_turn.then(|| self.undo(s, tensor, indices, value))
            }
            StmtKind::ReduceTo { tensor, indices, op, value } if self.active.contains(tensor) => {
                self.reduce(&WrittenElement { stmt: s, tensor, indices, dtype: value.dtype(), origin }, *op, value)
            }
            _ => None,
        }
    }

    fn scope(&mut self, tensor: &Arc<Tensor>, body: &Stmt, origin: Origin) -> Option<Stmt> {
        if self.active.contains(&tensor.symbol) {
            let shape = tensor.shape.iter().map(|d| self.renamed(d)).collect();
            let here = Tensor { shape, dtype: self.collected.of(tensor), ..(**tensor).clone() };
            self.adjoints.insert(tensor.symbol.clone(), build::adjoint(&here, Role::Adjoint));
        }
        let body = self.stmt(body)?;
        let Some(adjoint) = self.adjoints.get(&tensor.symbol) else { return Some(body) };
        let zeros = build::fill(adjoint, Literal::Float(0.0), &origin);
        self.info.zeros.push((adjoint.symbol.clone(), zeros.id()));
        let body = Stmt::seq([zeros, body], origin.clone());
        Some(Stmt::new(StmtKind::VarDef { tensor: adjoint.clone(), body }, origin))
    }

    fn looped(&mut self, s: &Stmt, iter: &Symbol, range: [&Expr; 3], body: &Stmt, origin: Origin) -> Option<Stmt> {
        let backwards = Symbol::new(format!("{iter}~b"));
        self.iters.insert(iter.clone(), Expr::var(&backwards));
        let back = self.stmt(body).map(|b| self.at_scope(RecomputeScope::Body(s.id()), body, b));
        let undone = self.invert_iteration(s.id(), body);
        self.iters.remove(iter);
        if back.is_none() && undone.is_none() {
            return None;
        }
        let body = Stmt::seq(undone.into_iter().chain(back), origin.clone());
        let [begin, end, step] = range.map(|e| self.value(s.id(), e));
        let made = |[begin, end, step]: [Expr; 3], iter, body| {
            let extent = Extent::Range { begin, end, step };
            Stmt::new(StmtKind::For { iter, extent, props: LoopProps::default(), body }, origin.clone())
        };
        let small = self.facts.loops.get(&s.id()).map_or([false; 3], |l| l.small);
        if let Some(range) = extent::reversed([&begin, &end, &step], [small[0], small[1]]) {
            let turned = made(range, backwards, body);
            self.info.forwards.insert(turned.id(), [begin, end, step]);
            return Some(turned);
        }
        // With an unknown step, or near the ends of i64, the loop counts iteration numbers down.
        let count = Symbol::new(format!("{iter}~k"));
        let value = begin.plus(&Expr::var(&count).times(&step));
        let body = taffeta_analysis::pass::substitute::variable(&body, &backwards, &value);
        let one = Expr::int(1);
        let sign = Expr::int(0).less(&step).select(&one, &Expr::int(-1));
        let times = match small {
            [true, true, true] => end.minus(&begin).plus(&step).minus(&sign).floor_div(&step),
            _ => extent::trip_count([&begin, &end, &step]),
        };
        Some(made([times.minus(&one), Expr::int(-1), Expr::int(-1)], count, body))
    }

    fn store(&mut self, x: &WrittenElement<'_>, e: &Expr) -> Stmt {
        let mut found = expression::reverse(e, &self.seed(x), &self.active);
        self.reuse(x, e, &mut found);
        let ends = self.initial.contains(x.tensor) || self.facts.overwrites(x.stmt.id());
        let zero = Expr::float(0.0, x.dtype);
        let out = self.contributions(x, found, ends.then_some((None, zero)));
        self.marks.clear();
        out
    }

    /// Reuses the written value where a derivative would recompute it (`exp` is its own derivative), unless the value
    /// is overwritten later.
    fn reuse(&mut self, x: &WrittenElement<'_>, e: &Expr, found: &mut [Contribution]) {
        let costly = matches!(e.kind(), ExprKind::Apply(op, _) if !matches!(op, Op::Add | Op::Sub | Op::Mul | Op::Neg));
        let mark = Expr::load(&Symbol::new("written"), Vec::new(), x.dtype);
        let again: Vec<Expr> = found.iter().map(|c| replaced(&c.value, e, &mark)).collect();
        let repeated = again.iter().zip(found.iter()).any(|(a, c)| *a != c.value);
        if !costly || !repeated || self.facts.overwritten(x.stmt.id(), &AccessedValue::Written) {
            return;
        }
        for (c, value) in found.iter_mut().zip(again) {
            c.value = value;
        }
        let written = self.element(x.stmt.id(), &AccessedValue::Written, &x.load());
        self.marks.push((mark, written));
    }

    fn reduce(&mut self, x: &WrittenElement<'_>, op: ReduceOp, e: &Expr) -> Option<Stmt> {
        let seed = self.seed(x);
        match op {
            ReduceOp::Add => {
                let found = expression::reverse(e, &seed, &self.active);
                (!found.is_empty()).then(|| self.contributions(x, found, None))
            }
            ReduceOp::Mul => {
                // The element before the statement is one of the factors.
                let mark = Expr::load(&Symbol::new("old"), Vec::new(), x.dtype);
                let others = seed.times(&mark.clone().cast(seed.dtype()));
                let found = expression::reverse(e, &others, &self.active);
                if !found.is_empty() {
                    let old = self.element(x.stmt.id(), &AccessedValue::Target, &x.load());
                    self.marks.push((mark, old));
                }
                let out = self.contributions(x, found, Some((Some(ReduceOp::Mul), e.clone())));
                self.marks.clear();
                Some(out)
            }
            ReduceOp::Min | ReduceOp::Max => Some(self.extremum(x, op, e)),
            ReduceOp::And | ReduceOp::Or | ReduceOp::BitAnd | ReduceOp::BitOr => None,
        }
    }

    /// Differentiates `x[I] = max(x[I], e)`: the adjoint goes to the last `e` that became the maximum, and to the
    /// initial value if none did.
    fn extremum(&mut self, x: &WrittenElement<'_>, op: ReduceOp, e: &Expr) -> Stmt {
        let id = x.stmt.id();
        // Only the final extremum is ever read, so that only the `e` that produced it matters.
        let whole = !self.facts.overwritten(id, &AccessedValue::Reduced) && !self.facts.read_before_final(id);
        let old = x.load();
        let changes = partials::is_first(op.info().op, &old, e).negate();
        let loaded = matches!(e.kind(), ExprKind::Load(t, _) if self.values.scope_of(t) == RecomputeScope::Program);
        let won = if whole && loaded {
            // A loaded value is bitwise equal to the one that the reduction saw. A recomputed value need not be.
            let last = self.element(id, &AccessedValue::Reduced, &old);
            self.value(id, e).equals(&last)
        } else if let Some(last) = whole.then(|| self.values.last_change(self.facts, id, x.tensor, &changes)).flatten()
        {
            self.is_last(x, &last)
        } else {
            match self.values.condition(self.facts, id, x.tensor, &changes) {
                Ok(snapshot) => self.in_snapshot(&snapshot, &[]),
                Err(d) => {
                    self.problem(d);
                    Expr::bool(false)
                }
            }
        };
        let found = expression::reverse(e, &self.seed(x), &self.active);
        let then = self.contributions(x, found, Some((None, Expr::float(0.0, x.dtype))));
        Stmt::new(StmtKind::If { cond: won, then, otherwise: None }, x.origin.clone())
    }

    /// Builds the test whether this iteration was the last one to change the element.
    fn is_last(&mut self, x: &WrittenElement<'_>, last: &[Snapshot]) -> Expr {
        let at = self.accesses(x.stmt.id(), x.indices);
        let one = |r: &mut Self, s: &Snapshot| {
            let Saved::Last { iteration, .. } = &s.saved else { unreachable!("the snapshots are `Last`") };
            let now = r.slots(&[*iteration]).swap_remove(0).index;
            r.in_snapshot(s, &at).equals(&now)
        };
        last.iter().map(|s| one(self, s)).reduce(|a, b| a.and(&b)).unwrap_or_else(|| Expr::bool(true))
    }

    /// Returns the adjoint of the element, in the program's names.
    fn adjoint(&self, x: &WrittenElement<'_>) -> Expr {
        let adjoint = &self.adjoints[x.tensor];
        Expr::load(&adjoint.symbol, x.indices.to_vec(), adjoint.dtype)
    }

    /// Returns the adjoint of the element, in the type in which derivatives are computed.
    fn seed(&self, x: &WrittenElement<'_>) -> Expr {
        self.adjoint(x).cast(working(x.dtype))
    }

    /// Adds contributions to adjoints, and then sets the adjoint of the element itself to `next` (or combines both by
    /// an operator).
    fn contributions(
        &mut self,
        x: &WrittenElement<'_>,
        found: Vec<Contribution>,
        next: Option<(Option<ReduceOp>, Expr)>,
    ) -> Stmt {
        let (id, origin) = (x.stmt.id(), &x.origin);
        let itself = (next.is_some() || found.len() > 1)
            && found.iter().any(|c| matches!(c.load.kind(), ExprKind::Load(t, _) if t == x.tensor));
        let (adjoint, dtype) = (self.adjoints[x.tensor].symbol.clone(), self.adjoints[x.tensor].dtype);
        let place = self.accesses(id, x.indices);
        let mut out = Vec::new();
        // If the statement reads the element that it writes, its adjoint is saved before the update.
        let now = Arc::new(Tensor::dense(Symbol::new(format!("{}.now", adjoint)), dtype, Vec::new(), Role::Adjoint));
        if itself {
            out.push(build::store(&now.symbol, Vec::new(), Expr::load(&adjoint, place.clone(), dtype), origin));
        }
        let written = next.map(|(op, value)| {
            let value = self.value(id, &value).cast(dtype);
            self.written.insert(adjoint.clone());
            build::update(&adjoint, place, op, value, origin)
        });
        let (before, after) = if itself { (written, None) } else { (None, written) };
        out.extend(before);
        let whole = self.adjoint(x);
        let taken = Expr::load(&now.symbol, Vec::new(), dtype);
        for c in found {
            let value = if itself { replaced(&c.value, &whole, &taken) } else { c.value.clone() };
            out.push(self.contribution(id, &c, &value, origin));
        }
        out.extend(after);
        let all = Stmt::seq(out, origin.clone());
        if itself { Stmt::new(StmtKind::VarDef { tensor: now, body: all }, origin.clone()) } else { all }
    }

    fn contribution(&mut self, id: StmtId, c: &Contribution, value: &Expr, origin: &Origin) -> Stmt {
        let ExprKind::Load(y, at) = c.load.kind() else { unreachable!("contributions are to elements") };
        let mut value = self.value(id, value);
        for (mark, meant) in &self.marks {
            value = replaced(&value, mark, meant);
        }
        let (target, dtype) = (self.adjoints[y].symbol.clone(), self.adjoints[y].dtype);
        self.written.insert(target.clone());
        let at = self.accesses(id, at);
        let mut added = build::update(&target, at, Some(ReduceOp::Add), collected(value, dtype), origin);
        for (cond, holds) in c.guards.iter().rev() {
            let cond = self.value(id, cond);
            let cond = if *holds { cond } else { cond.negate() };
            added = Stmt::new(StmtKind::If { cond, then: added, otherwise: None }, origin.clone());
        }
        added
    }

    fn problem(&mut self, d: Diagnostic) {
        if self.reported.insert((d.message.clone(), d.span())) {
            self.problems.push(d);
        }
    }

    // ---- forward values

    /// Translates an expression of a statement for the backward pass of that statement.
    fn value(&mut self, stmt: StmtId, e: &Expr) -> Expr {
        match e.kind() {
            ExprKind::Var(s) => self.iters.get(s).cloned().unwrap_or_else(|| e.clone()),
            ExprKind::Load(t, accesses) => {
                // Adjoints, and tensors that this pass declares, are not tensors of the program.
                if self.facts.declared.contains_key(t) && !self.is_replayed(t) {
                    return self.element(stmt, &AccessedValue::Loaded(e.clone()), e);
                }
                let at = self.accesses(stmt, accesses);
                match self.replayed.as_ref().and_then(|r| r.tensors.get(t)).cloned() {
                    Some(kept) => self.in_kept(&kept, at, e.dtype()),
                    None => Expr::load(t, at, e.dtype()),
                }
            }
            _ => e.map_children(&mut |c| self.value(stmt, c)),
        }
    }

    fn accesses(&mut self, stmt: StmtId, all: &[Access]) -> Vec<Access> {
        all.iter().map(|a| a.map(&mut |e| self.value(stmt, e))).collect()
    }

    fn is_replayed(&self, t: &Symbol) -> bool {
        self.replayed.as_ref().is_some_and(|r| r.tensors.contains_key(t) || r.current.contains(t))
    }

    /// Returns the value of an element that a statement reads or writes; `load` names the element.
    fn element(&mut self, stmt: StmtId, what: &AccessedValue, load: &Expr) -> Expr {
        let ExprKind::Load(_, accesses) = load.kind() else { unreachable!("elements are loads") };
        match self.values.find(self.facts, stmt, what) {
            Ok(ValueSource::Kept(kept)) => {
                let at = self.accesses(stmt, accesses);
                self.in_kept(&kept, at, load.dtype())
            }
            Ok(ValueSource::Snapshot(snapshot)) => {
                let whole = matches!(snapshot.saved, Saved::Whole(_));
                let at = if whole { self.accesses(stmt, accesses) } else { Vec::new() };
                self.in_snapshot(&snapshot, &at)
            }
            Err(d) => {
                self.problem(d);
                load.clone()
            }
        }
    }

    fn in_kept(&mut self, kept: &Kept, at: Vec<Access>, dtype: DType) -> Expr {
        let all = self.slots(&kept.loops).into_iter().chain(at).collect();
        Expr::load(&kept.tensor.symbol, all, dtype)
    }

    fn in_snapshot(&mut self, s: &Snapshot, at: &[Access]) -> Expr {
        let all = self.slots(&s.loops).into_iter().chain(at.iter().cloned()).collect();
        Expr::load(&s.tensor.symbol, all, s.tensor.dtype)
    }

    /// Returns the iteration numbers of loops, which together are the version number of a tensor.
    fn slots(&mut self, loops: &[StmtId]) -> Vec<Access> {
        let slot = |r: &mut Self, l: &StmtId| {
            let facts = r.facts;
            let LoopFacts { iter, begin, step, .. } = &facts.loops[l];
            let (begin, step) = (r.value(*l, begin), r.value(*l, step));
            let here = r.iters.get(iter).cloned().unwrap_or_else(|| Expr::var(iter));
            Access::from(here.minus(&begin).floor_div(&step))
        };
        loops.iter().map(|l| slot(self, l)).collect()
    }

    /// Translates an expression over sizes and iterators alone.
    fn renamed(&self, e: &Expr) -> Expr {
        e.rewrite(&mut |e| match e.kind() {
            ExprKind::Var(s) => self.iters.get(s).cloned().unwrap_or(e),
            _ => e,
        })
    }
}

/// Casts a contribution to its accumulation type; an intermediate rounding by a final cast is dropped.
fn collected(value: Expr, dtype: DType) -> Expr {
    match value.kind() {
        ExprKind::Cast(inner) if inner.dtype() == dtype => inner.clone(),
        _ => value.cast(dtype),
    }
}

/// Replaces `old` by `new` in `e`.
fn replaced(e: &Expr, old: &Expr, new: &Expr) -> Expr {
    e.rewrite(&mut |e| if e == *old { new.clone() } else { e })
}
