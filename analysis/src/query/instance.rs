//! Two instances of statements in one set of facts: the source of a dependence, and its sink.
//!
//! An instance has its own symbols for the iterators of the loops around it. If both instances are in the same
//! iteration of a loop, they share its symbol, so that expressions of it are structurally equal: `adj[i, j]` is one
//! unknown value for both (equal arguments give equal values). This holds as long as nothing writes `adj` in between; a
//! load of a tensor that may be written gets a fresh symbol at every place where it is evaluated.

use super::Context;
use super::definition::Definitions;
use super::feasibility::Assumptions;
use super::reference::{Reference, Step, asserted};
use rustc_hash::{FxHashMap, FxHashSet};
use std::rc::Rc;
use taffeta_ast::format::Identity;
use taffeta_ast::{Expr, ExprKind, Stmt, StmtId, StmtKind, Symbol, Tensor};

/// Iteration of the sink relative to the source's, for a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Relation {
    /// Same iteration.
    Same,
    /// Later iteration.
    Later,
    /// Earlier iteration.
    Earlier,
    /// Any iteration.
    Any,
}

impl Relation {
    pub(super) fn allows(self, other: Relation) -> bool {
        self == other || self == Relation::Any
    }
}

/// Side of a dependence that an instance is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Side {
    Source,
    Sink,
    /// The only instance, or an instance with the program's iterators. The other instance shares them, except those of
    /// loops in which its iteration may be another one.
    Shared,
}

/// Symbols of instances for iterators and for loads that may change: the same ones in every query, so that the table of
/// atoms does not grow from query to query.
#[derive(Default)]
pub(super) struct Names {
    iters: FxHashMap<(Symbol, Side), Symbol>,
    values: FxHashMap<(Expr, Side, usize), Symbol>,
    originals: FxHashMap<Symbol, Expr>,
    /// Assertions among the statements of sequences, with their positions.
    assertions: FxHashMap<StmtId, Rc<[(usize, Expr)]>>,
}

/// Instance of a statement: its iterators under other names.
pub(super) struct Instance {
    side: Side,
    iters: FxHashMap<Symbol, Expr>,
    by_loop: FxHashMap<StmtId, Expr>,
    /// Counter of the places where expressions are evaluated.
    place: usize,
}

/// Facts about two instances, added step by step. Conditions that are no conjunctions are collected in `assumed`.
pub(super) struct Pair<'a> {
    pub(super) ctx: &'a mut Context,
    pub(super) names: &'a mut Names,
    /// Definitions of integer scalars.
    pub(super) definitions: &'a Definitions,
    /// Tensors whose elements may change between the evaluations that the query is about.
    pub(super) unstable: FxHashSet<Symbol>,
    /// Assumptions that facts cannot express.
    pub(super) assumed: Assumptions,
}

impl Instance {
    pub(super) fn new(side: Side) -> Instance {
        Instance { side, iters: FxHashMap::default(), by_loop: FxHashMap::default(), place: 0 }
    }

    /// Returns the value of the loop's iterator in this instance, if the loop is around it.
    pub(super) fn iterator(&self, stmt: StmtId) -> Option<&Expr> {
        self.by_loop.get(&stmt)
    }
}

impl Pair<'_> {
    /// Enters the common path of both instances, with these relations for its loops.
    pub(super) fn enter_common<'s>(
        &mut self,
        steps: impl IntoIterator<Item = &'s Step>,
        relations: &[Relation],
        source: &mut Instance,
        sink: &mut Instance,
    ) {
        let mut relations = relations.iter();
        for step in steps {
            let Step::Loop { stmt, iter, bounds } = step else {
                self.enter(step, source);
                self.enter(step, sink);
                continue;
            };
            let relation = relations.next().copied().unwrap_or(Relation::Any);
            let ours = self.bounds(bounds.as_ref(), source);
            let theirs = self.bounds(bounds.as_ref(), sink);
            if relation == Relation::Same && ours == theirs {
                // Both share one symbol.
                self.iterate(stmt, iter, iter.clone(), ours.as_ref(), source);
                self.name(stmt, iter, iter.clone(), sink);
                continue;
            }
            let (p, q) = (self.names.iterator(iter, Side::Source), self.names.iterator(iter, Side::Sink));
            self.iterate(stmt, iter, p.clone(), ours.as_ref(), source);
            self.iterate(stmt, iter, q.clone(), theirs.as_ref(), sink);
            self.relate(relation, &Expr::var(&p), &Expr::var(&q), ours.as_ref().map(|b| &b[2]));
        }
    }

    /// Enters the common path of an instance that precedes the shared one. Returns the instance's own iterators.
    pub(super) fn enter_before<'s>(
        &mut self,
        steps: impl IntoIterator<Item = &'s Step>,
        relations: &[Relation],
        source: &mut Instance,
    ) -> Vec<Symbol> {
        let mut own = Vec::new();
        let mut relations = relations.iter();
        for step in steps {
            let Step::Loop { stmt, iter, bounds } = step else {
                self.enter(step, source);
                continue;
            };
            let relation = relations.next().copied().unwrap_or(Relation::Any);
            if relation == Relation::Same {
                self.name(stmt, iter, iter.clone(), source);
                continue;
            }
            let bounds = self.bounds(bounds.as_ref(), source);
            let p = self.names.iterator(iter, source.side);
            self.iterate(stmt, iter, p.clone(), bounds.as_ref(), source);
            self.relate(relation, &Expr::var(&p), &Expr::var(iter), bounds.as_ref().map(|b| &b[2]));
            own.push(p);
        }
        own
    }

    /// Enters the rest of an instance's path.
    pub(super) fn enter_rest<'s>(&mut self, steps: impl IntoIterator<Item = &'s Step>, instance: &mut Instance) {
        for step in steps {
            self.enter(step, instance);
        }
    }

    /// Adds the facts of a reference's execution: its guards hold, and its indices are in range. Returns its indices.
    pub(super) fn execute(&mut self, r: &Reference, instance: &mut Instance) -> Option<Vec<Expr>> {
        for (cond, holds) in &r.guards {
            let cond = self.rename(cond, instance);
            self.suppose(&cond, *holds);
        }
        let indices: Vec<Expr> = r.indices.as_ref()?.iter().map(|e| self.rename(e, instance)).collect();
        instance.place += 1;
        for (index, dim) in indices.iter().zip(&r.declared.shape) {
            let dim = self.rename(dim, instance);
            self.suppose(&Expr::int(0).less_eq(index), true);
            self.suppose(&index.less(&dim), true);
        }
        Some(indices)
    }

    /// Assumes that both elements of a tensor share one stored value.
    pub(super) fn suppose_one(&mut self, tensor: &Tensor, here: &[Expr], there: &[Expr]) {
        let Identity { same, exchanged } = tensor.format.identity(here.len());
        for (x, y) in same.into_iter().map(|k| (&here[k], &there[k])) {
            self.assumed.impossible |= self.ctx.differ(x, y);
            self.suppose(&x.equals(y), true);
            self.ctx.assume_congruent(x, y);
        }
        if let Some([p, q]) = exchanged {
            let equal = |k: usize, l: usize| here[k].equals(&there[l]);
            let (straight, crossed) = (equal(p, p).and(&equal(q, q)), equal(p, q).and(&equal(q, p)));
            self.suppose(&straight.or(&crossed), true);
        }
    }

    /// Assumes that a condition holds, or does not.
    pub(super) fn suppose(&mut self, cond: &Expr, holds: bool) {
        self.ctx.decompose(cond, holds, &mut self.assumed);
    }

    fn enter(&mut self, step: &Step, instance: &mut Instance) {
        instance.place += 1;
        match step {
            Step::Child { asserted: false, .. } => {}
            Step::Child { seq, position, .. } => {
                for (_, cond) in self.names.assertions(seq).iter().take_while(|(k, _)| k < position) {
                    instance.place += 1;
                    let cond = self.rename(cond, instance);
                    self.suppose(&cond, true);
                }
            }
            Step::Scope { .. } => {}
            Step::Loop { stmt, iter, bounds } => {
                let bounds = self.bounds(bounds.as_ref(), instance);
                let own = self.names.iterator(iter, instance.side);
                self.iterate(stmt, iter, own, bounds.as_ref(), instance);
            }
            Step::Branch { cond, then, .. } => {
                let cond = self.rename(cond, instance);
                self.suppose(&cond, *then);
            }
        }
    }

    fn bounds(&mut self, bounds: Option<&[Expr; 3]>, instance: &mut Instance) -> Option<[Expr; 3]> {
        instance.place += 1;
        bounds.map(|b| [0, 1, 2].map(|k| self.rename(&b[k], instance)))
    }

    /// Assumes that the instance is in an iteration of a loop.
    fn iterate(
        &mut self,
        stmt: &Stmt,
        iter: &Symbol,
        own: Symbol,
        bounds: Option<&[Expr; 3]>,
        instance: &mut Instance,
    ) {
        // Without a constant step, the values of the iterator are only partly known.
        self.assumed.vague |= bounds.is_none_or(|[_, _, step]| self.ctx.linear(step).as_constant().is_none());
        if let Some([begin, end, step]) = bounds {
            let extent = taffeta_ast::Extent::Range { begin: begin.clone(), end: end.clone(), step: step.clone() };
            // Writes of the body are accounted for by `unstable`.
            self.ctx.enter_loop(&own, &extent, &Stmt::nop());
        }
        self.name(stmt, iter, own, instance);
    }

    fn name(&mut self, stmt: &Stmt, iter: &Symbol, own: Symbol, instance: &mut Instance) {
        let value = Expr::var(&own);
        instance.iters.insert(iter.clone(), value.clone());
        instance.by_loop.insert(stmt.id(), value);
    }

    fn relate(&mut self, relation: Relation, p: &Expr, q: &Expr, step: Option<&Expr>) {
        let forward = step.map_or(0, |s| {
            let range = self.ctx.bounds(s).interval;
            i32::from(range.lo > 0) - i32::from(range.hi < 0)
        });
        let cond = match (relation, forward) {
            (Relation::Any, _) => return,
            (Relation::Same, _) => p.equals(q),
            (Relation::Later, 1) | (Relation::Earlier, -1) => p.less(q),
            (Relation::Later, -1) | (Relation::Earlier, 1) => q.less(p),
            // The order is unknown, but the iterators differ.
            _ => {
                self.assumed.vague = true;
                p.equals(q).negate()
            }
        };
        self.suppose(&cond, true);
    }

    /// Rewrites an expression to the symbols of this instance, at the current place.
    pub(super) fn rename(&mut self, e: &Expr, instance: &Instance) -> Expr {
        self.rename_in(e, instance, &mut FxHashMap::default())
    }

    fn rename_in(&mut self, e: &Expr, instance: &Instance, done: &mut FxHashMap<usize, Expr>) -> Expr {
        if let Some(known) = done.get(&e.address()) {
            return known.clone();
        }
        let new = match e.kind() {
            ExprKind::Var(s) => match instance.iters.get(s) {
                Some(v) if e.dtype().is_int() => v.clone(),
                Some(v) => Expr::raw(v.kind().clone(), e.dtype()),
                None => e.clone(),
            },
            ExprKind::Load(t, _) if self.definitions.value(t).is_some() => {
                let value = self.definitions.value(t).cloned().unwrap_or_else(|| e.clone());
                self.rename_in(&value, instance, done)
            }
            ExprKind::Load(t, _) if self.unstable.contains(t) => {
                let own = self.names.value(e, t, instance);
                Expr::load(&own, Vec::new(), e.dtype())
            }
            _ => e.map_children(&mut |c| self.rename_in(c, instance, done)),
        };
        done.insert(e.address(), new.clone());
        new
    }
}

impl Names {
    fn assertions(&mut self, seq: &Stmt) -> Rc<[(usize, Expr)]> {
        let found = || match seq.kind() {
            StmtKind::Seq(all) => asserted(all).map(|(k, cond)| (k, cond.clone())).collect(),
            _ => Rc::from([]),
        };
        self.assertions.entry(seq.id()).or_insert_with(found).clone()
    }

    pub(super) fn iterator(&mut self, iter: &Symbol, side: Side) -> Symbol {
        let fresh = || match side {
            Side::Shared => iter.clone(),
            Side::Source => iter.fresh(),
            Side::Sink => Symbol::new(format!("{}'", iter.name())),
        };
        self.iters.entry((iter.clone(), side)).or_insert_with(fresh).clone()
    }

    /// Returns whether the symbol stands for a load whose value may change between source and sink.
    pub(super) fn may_change(&self, symbol: &Symbol) -> bool {
        self.originals.contains_key(symbol)
    }

    fn value(&mut self, load: &Expr, tensor: &Symbol, instance: &Instance) -> Symbol {
        let key = (load.clone(), instance.side, instance.place);
        let symbol = self.values.entry(key).or_insert_with(|| tensor.fresh()).clone();
        self.originals.insert(symbol.clone(), load.clone());
        symbol
    }

    /// Returns the program's load for a symbol that replaced it.
    pub(super) fn original(&self, e: Expr) -> Expr {
        match e.kind() {
            ExprKind::Load(t, _) => self.originals.get(t).cloned().unwrap_or(e),
            _ => e,
        }
    }
}

/// Tensors that a reference loads: in conditions and bounds on its path, and in its own indices and guards.
pub(super) struct Loaded {
    /// Tensors that a condition or bound on the path loads, and that the statement which evaluates it writes.
    unstable: FxHashSet<Symbol>,
    /// Other tensors loaded by the path and by the reference itself.
    others: FxHashSet<Symbol>,
}

impl Loaded {
    pub(super) fn by(r: &Reference) -> Loaded {
        let own = r.guards.iter().map(|(cond, _)| cond).chain(r.indices.iter().flatten()).chain(&r.declared.shape);
        let mut others: FxHashSet<Symbol> = own.flat_map(super::effects::loads).collect();
        let (mut unstable, mut seen) = (FxHashSet::default(), FxHashSet::default());
        for (_, step) in r.site.path.constraints() {
            for t in step.evaluated().into_iter().flat_map(super::effects::loads) {
                // Each step is inside the ones before, so the first one that loads a tensor decides.
                if seen.insert(t.clone()) && step.stmt().writes_to(&t) {
                    unstable.insert(t);
                }
            }
        }
        others.extend(seen);
        others.retain(|t| !unstable.contains(t));
        Loaded { unstable, others }
    }

    /// Collects the tensors whose elements may change between the evaluations that a query is about: loaded tensors
    /// that are written inside `outermost`, which contains everything between source and sink. Conditions on the path
    /// are evaluated outside of it: a tensor that such a condition loads is unstable if the statement that evaluates
    /// the condition writes it.
    pub(super) fn unstable(&self, outermost: &Stmt, out: &mut FxHashSet<Symbol>) {
        out.extend(self.unstable.iter().cloned());
        out.extend(self.others.iter().filter(|t| outermost.writes_to(t)).cloned());
    }
}
