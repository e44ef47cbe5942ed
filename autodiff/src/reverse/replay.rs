//! Forward pass of a scope (a [`RecomputeScope`]): the program itself, or the part of a loop's body that is recomputed
//! before the backward pass of the same iteration. Kept tensors are declared around both passes, and snapshots are made
//! on the way.

use super::Reverse;
use crate::build;
use crate::data::{Kept, RecomputeScope, Saved, Snapshot};
use crate::facts::AccessedValue;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;
use taffeta_ast::{
    Access, Expr, ExprKind, Extent, Literal, LoopProps, Origin, PrintPart, Stmt, StmtId, StmtKind, Symbol, Tensor,
};

/// Forward pass under construction.
#[derive(Default)]
pub(super) struct ForwardPass {
    /// Tensors that this pass redirects to others.
    pub(super) tensors: FxHashMap<Symbol, Kept>,
    /// Tensors that this pass accesses under the program's names.
    pub(super) current: FxHashSet<Symbol>,
    /// Snapshots, by the statements before which they are made.
    snapshots: FxHashMap<StmtId, Vec<Snapshot>>,
    /// Tensors whose declarations are hoisted around both passes.
    hoisted: FxHashSet<Symbol>,
    /// Whether the whole program runs; otherwise only the slice on which the needed values depend.
    whole: bool,
}

impl Reverse<'_, '_> {
    /// Builds both passes of a scope: the part of `body` that computes the values which `back` reads, then `back`.
    pub(super) fn at_scope(&mut self, scope: RecomputeScope, body: &Stmt, back: Stmt) -> Stmt {
        let origin = body.origin().derive("grad", "forward");
        let kept: Vec<(Symbol, Kept)> =
            self.values.kept.iter().filter(|(_, h, _)| *h == scope).map(|(t, _, k)| (t.clone(), k.clone())).collect();
        let snapshots: Vec<Snapshot> = self.values.snapshots.iter().filter(|s| s.scope == scope).cloned().collect();
        let whole = scope == RecomputeScope::Program;
        if !whole && kept.is_empty() && snapshots.is_empty() {
            return back;
        }
        let interface: FxHashSet<Symbol> = self.facts.func.interface().map(|t| t.symbol.clone()).collect();
        let mut declared: Vec<Arc<Tensor>> =
            kept.iter().filter(|(_, k)| !interface.contains(&k.tensor.symbol)).map(|(_, k)| k.tensor.clone()).collect();
        declared.extend(snapshots.iter().map(|s| s.tensor.clone()));
        let last = snapshots.iter().filter(|s| matches!(s.saved, Saved::Last { .. }));
        let unchanged: Vec<Stmt> = last.map(|s| build::fill(&s.tensor, Literal::Int(-1), &origin)).collect();
        let mut replayed = ForwardPass { whole, ..ForwardPass::default() };
        if whole {
            replayed.current = self.facts.declared.keys().cloned().collect();
        } else {
            for t in self.needed_tensors(scope, &kept, &snapshots) {
                let old = &self.facts.declared[&t].tensor;
                let tensor = Arc::new(Tensor { symbol: t.fresh(), ..(**old).clone() });
                replayed.tensors.insert(t, Kept { tensor, loops: Vec::new() });
            }
        }
        replayed.hoisted = kept.iter().map(|(t, _)| t.clone()).collect();
        replayed.tensors.extend(kept.into_iter().filter(|(t, k)| k.tensor.symbol != *t));
        for s in snapshots {
            replayed.snapshots.entry(s.anchor).or_default().push(s);
        }
        self.replayed = Some(replayed);
        let forward = self.replay_stmt(body);
        self.replayed = None;
        let both = Stmt::seq(unchanged.into_iter().chain(forward).chain([back]), origin.clone());
        build::declared(declared, both, &origin)
    }

    /// Returns the tensors declared in a scope that its kept tensors and snapshots depend on, themselves included.
    fn needed_tensors(
        &self,
        scope: RecomputeScope,
        kept: &[(Symbol, Kept)],
        snapshots: &[Snapshot],
    ) -> FxHashSet<Symbol> {
        let mut all: FxHashSet<Symbol> = FxHashSet::default();
        let mut todo: Vec<Symbol> = kept.iter().map(|(t, _)| t.clone()).collect();
        let mut places: Vec<StmtId> = Vec::new();
        // An enclosing statement of several writes is visited once.
        let mut seen: FxHashSet<StmtId> = FxHashSet::default();
        for s in snapshots {
            places.push(s.anchor);
            match &s.saved {
                Saved::Whole(t) => todo.push(t.clone()),
                Saved::Value(e) => self.collect_local_loads(scope, e, &mut todo),
                Saved::Last { cond, .. } => {
                    self.collect_local_loads(scope, cond, &mut todo);
                    todo.push(self.facts.tensor_of(s.anchor, &AccessedValue::Target));
                }
            }
        }
        loop {
            while let Some(place) = places.pop() {
                // Visit the statement, and the loops and branches around it.
                let mut at = Some(place);
                while let Some(id) = at.filter(|id| scope != RecomputeScope::Body(*id) && seen.insert(*id)) {
                    let stmt = &self.facts.stmts[&id];
                    for e in stmt.kind().exprs() {
                        self.collect_local_loads(scope, e, &mut todo);
                    }
                    at = self.facts.parents.get(&id).copied();
                }
            }
            let Some(t) = todo.pop() else { break };
            if all.insert(t.clone()) {
                places.extend(self.facts.writers(&t).map(Stmt::id));
            }
        }
        all
    }

    /// Collects the tensors in an expression that are declared in a scope and have that scope or one further in.
    fn collect_local_loads(&self, scope: RecomputeScope, e: &Expr, out: &mut Vec<Symbol>) {
        let RecomputeScope::Body(here) = scope else { return };
        e.walk(&mut |e| {
            let ExprKind::Load(t, _) = e.kind() else { return };
            let loops = &self.facts.declared[t].loops;
            let Some(position) = loops.iter().position(|l| *l == here) else { return };
            if let RecomputeScope::Body(l) = self.values.scope_of(t)
                && loops.iter().position(|x| *x == l).is_some_and(|k| k >= position)
            {
                out.push(t.clone());
            }
        });
    }

    fn replaying(&self) -> &ForwardPass {
        self.replayed.as_ref().expect("a forward pass is being made")
    }

    /// Builds a statement of the forward pass, after the snapshots that are made before it.
    fn replay_stmt(&mut self, s: &Stmt) -> Option<Stmt> {
        let copies: Vec<Snapshot> = self.replaying().snapshots.get(&s.id()).cloned().unwrap_or_default();
        let origin = s.origin().derive("grad", "forward");
        let mut out: Vec<Stmt> = copies.iter().map(|c| self.copy(s.id(), c, &origin)).collect();
        out.extend(self.forward(s));
        (!out.is_empty()).then(|| Stmt::seq(out, origin))
    }

    fn forward(&mut self, s: &Stmt) -> Option<Stmt> {
        let whole = self.replaying().whole;
        let made = |kind| if whole { s.with_kind(kind) } else { Stmt::new(kind, s.origin().derive("grad", "again")) };
        let kind = match s.kind() {
            StmtKind::Seq(all) => {
                let all: Vec<Stmt> = all.iter().filter_map(|s| self.replay_stmt(s)).collect();
                return (whole || !all.is_empty()).then(|| Stmt::seq(all, s.origin().clone()));
            }
            StmtKind::VarDef { tensor, body } => {
                let replay = self.replaying();
                let own = replay.tensors.get(&tensor.symbol).map(|k| k.tensor.clone());
                if replay.hoisted.contains(&tensor.symbol) || (!whole && own.is_none()) {
                    return self.replay_stmt(body);
                }
                let own = own.unwrap_or_else(|| tensor.clone());
                let shape = own.shape.iter().map(|d| self.renamed(d)).collect();
                StmtKind::VarDef { tensor: Arc::new(Tensor { shape, ..(*own).clone() }), body: self.replay_stmt(body)? }
            }
            StmtKind::For { iter, extent: Extent::Range { begin, end, step }, props, body } => {
                let [begin, end, step] = [begin, end, step].map(|e| self.value(s.id(), e));
                let extent = Extent::Range { begin, end, step };
                if whole {
                    let body = self.replay_stmt(body).unwrap_or_else(Stmt::nop);
                    let props = if self.disturbed(s.id(), props) { LoopProps::default() } else { self.moved(props) };
                    return Some(made(StmtKind::For { iter: iter.clone(), extent, props, body }));
                }
                let fresh = iter.fresh();
                self.iters.insert(iter.clone(), Expr::var(&fresh));
                let body = self.replay_stmt(body);
                self.iters.remove(iter);
                StmtKind::For { iter: fresh, extent, props: LoopProps::default(), body: body? }
            }
            StmtKind::If { cond, then, otherwise } => {
                let then = self.replay_stmt(then);
                let otherwise = otherwise.as_ref().and_then(|o| self.replay_stmt(o));
                if !whole && then.is_none() && otherwise.is_none() {
                    return None;
                }
                let cond = self.value(s.id(), cond);
                StmtKind::If { cond, then: then.unwrap_or_else(Stmt::nop), otherwise }
            }
            StmtKind::Store { tensor, indices, value } => {
                let (tensor, indices) = self.target(s.id(), tensor, indices)?;
                StmtKind::Store { tensor, indices, value: self.value(s.id(), value) }
            }
            StmtKind::ReduceTo { tensor, indices, op, value } => {
                let (tensor, indices) = self.target(s.id(), tensor, indices)?;
                StmtKind::ReduceTo { tensor, indices, op: *op, value: self.value(s.id(), value) }
            }
            _ if !whole => return None,
            StmtKind::Print { parts } => {
                StmtKind::Print { parts: parts.iter().map(|p| self.shown(s.id(), p)).collect() }
            }
            _ => return Some(s.map(&mut Stmt::clone, &mut |e| self.value(s.id(), e))),
        };
        Some(made(kind))
    }

    /// Translates a part of a print, whose tensor may be redirected.
    fn shown(&mut self, stmt: StmtId, part: &PrintPart) -> PrintPart {
        let kept = match part {
            PrintPart::Tensor { tensor, .. } => self.replaying().tensors.get(tensor).cloned(),
            PrintPart::Text(_) | PrintPart::Value(_) => None,
        };
        let new = part.map(&mut Symbol::clone, &mut |e| self.value(stmt, e));
        match (new, kept) {
            (PrintPart::Tensor { at, shape, .. }, Some(kept)) => {
                let slots = self.slots(&kept.loops).into_iter().map(|a| a.index);
                PrintPart::Tensor { tensor: kept.tensor.symbol.clone(), at: slots.chain(at).collect(), shape }
            }
            (new, _) => new,
        }
    }

    /// Returns the target of a statement's write in this pass; `None` if there is no write.
    fn target(&mut self, stmt: StmtId, tensor: &Symbol, indices: &[Access]) -> Option<(Symbol, Vec<Access>)> {
        let kept = self.replaying().tensors.get(tensor).cloned();
        if kept.is_none() && !self.replaying().whole {
            return None;
        }
        let at = self.accesses(stmt, indices);
        let Some(kept) = kept else { return Some((tensor.clone(), at)) };
        let all = self.slots(&kept.loops).into_iter().chain(at).collect();
        Some((kept.tensor.symbol.clone(), all))
    }

    /// Returns whether a snapshot inside a concurrent loop would read a reduction of its threads or lanes, or write an
    /// element that they share; the loop then runs in order.
    fn disturbed(&self, l: StmtId, props: &LoopProps) -> bool {
        let shared = |t: &Symbol| props.reductions.iter().any(|r| r.tensor == *t);
        let within = |c: &&Snapshot| self.facts.around[&c.anchor].contains(&l);
        props.is_concurrent()
            && self.replaying().snapshots.values().flatten().filter(within).any(|c| match &c.saved {
                Saved::Last { .. } => true,
                Saved::Whole(t) => shared(t),
                Saved::Value(e) => e.any(&mut |e| matches!(e.kind(), ExprKind::Load(t, _) if shared(t))),
            })
    }

    /// Redirects the tensors in a loop's properties.
    fn moved(&self, props: &LoopProps) -> LoopProps {
        let mut props = props.clone();
        for r in &mut props.reductions {
            if let Some(kept) = self.replaying().tensors.get(&r.tensor) {
                r.tensor = kept.tensor.symbol.clone();
            }
        }
        props
    }

    /// Builds the copy that a snapshot describes.
    fn copy(&mut self, stmt: StmtId, c: &Snapshot, origin: &Origin) -> Stmt {
        let slots = self.slots(&c.loops);
        match &c.saved {
            Saved::Whole(t) => {
                let declared = self.facts.declared[t].tensor.clone();
                let shape = declared.shape.iter().map(|d| self.renamed(d)).collect();
                let here = Tensor { shape, ..(*declared).clone() };
                build::every(&here, origin, |at| {
                    let to = slots.into_iter().chain(at.clone()).collect();
                    let from = match self.replaying().tensors.get(t).cloned() {
                        Some(kept) => self.in_kept(&kept, at, declared.dtype),
                        None => Expr::load(t, at, declared.dtype),
                    };
                    build::store(&c.tensor.symbol, to, from, origin)
                })
            }
            Saved::Last { cond, iteration } => {
                let at = match self.facts.stmts[&stmt].kind() {
                    StmtKind::ReduceTo { indices, .. } => self.accesses(stmt, indices),
                    _ => unreachable!("reductions change their elements"),
                };
                let to = slots.into_iter().chain(at).collect();
                let now = self.slots(&[*iteration]).swap_remove(0).index;
                let copied = build::store(&c.tensor.symbol, to, now, origin);
                let cond = self.value(stmt, cond);
                Stmt::new(StmtKind::If { cond, then: copied, otherwise: None }, origin.clone())
            }
            Saved::Value(e) => {
                let value = self.value(stmt, e);
                let copied = build::store(&c.tensor.symbol, slots, value, origin);
                let Some(cond) = self.facts.guarded(stmt, e) else { return copied };
                let cond = self.value(stmt, &cond);
                Stmt::new(StmtKind::If { cond, then: copied, otherwise: None }, origin.clone())
            }
        }
    }
}
