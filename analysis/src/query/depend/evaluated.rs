//! Evaluation of witnesses: the numbers of a point are substituted in the bounds, conditions and subscripts of both
//! instances. For isl, products of unknowns and divisions by unknowns only obey some of their laws, so its point may
//! not occur in the program.
use super::answer::Witness;
use crate::query::definition::Definitions;
use crate::query::reference::{Reference, Step, asserted};
use rustc_hash::FxHashMap;
use taffeta_ast::{Expr, ExprKind, StmtKind, Symbol};

/// Numbers of one instance.
struct Instance<'d> {
    values: FxHashMap<Symbol, i64>,
    definitions: &'d Definitions,
}

impl Witness {
    /// Returns whether the program, with these numbers, surely executes one of the references on another element, or
    /// not at all. Values that depend on elements of tensors are unknown.
    pub(super) fn is_refuted(&self, source: &Reference, sink: &Reference, definitions: &Definitions) -> bool {
        let instance = |own: &[(Symbol, i64)]| {
            let values = self.sizes.iter().chain(own).cloned().collect();
            Instance { values, definitions }
        };
        let (here, there) = (instance(&self.source), instance(&self.sink));
        let differ = |k: &usize| {
            let index = |r: &Reference, at: &Instance<'_>| at.number(r.indices.as_ref()?.get(*k)?);
            index(source, &here).zip(index(sink, &there)).is_some_and(|(x, y)| x != y)
        };
        here.excludes(source)
            || there.excludes(sink)
            || source.declared.format.identity(source.declared.ndim()).same.iter().any(differ)
    }
}

impl Instance<'_> {
    /// Substitutes these numbers in an expression.
    fn of(&self, e: &Expr) -> Expr {
        let meant = e.rewrite(&mut |e| match e.kind() {
            ExprKind::Load(t, _) => self.definitions.value(t).cloned().unwrap_or(e),
            _ => e,
        });
        meant.rewrite(&mut |e| match e.kind() {
            ExprKind::Var(s) if e.dtype().is_int() => self.values.get(s).map_or(e.clone(), |v| Expr::int(*v)),
            _ => e,
        })
    }

    fn number(&self, e: &Expr) -> Option<i64> {
        self.of(e).as_int()
    }

    /// Returns whether a condition surely has the opposite value.
    fn is_not(&self, cond: &Expr, holds: bool) -> bool {
        self.of(cond).as_bool() == Some(!holds)
    }

    /// Returns whether a reference surely is not executed in this instance.
    fn excludes(&self, r: &Reference) -> bool {
        let outside = |(index, size): (&Expr, &Expr)| {
            let size = self.number(size);
            self.number(index).is_some_and(|k| k < 0 || size.is_some_and(|n| k >= n))
        };
        r.site.path.constraints().into_iter().any(|(_, step)| self.passes_by(step))
            || r.guards.iter().any(|(cond, holds)| self.is_not(cond, *holds))
            || r.indices.iter().flatten().zip(&r.declared.shape).any(outside)
    }

    /// Returns whether execution surely does not take a step.
    fn passes_by(&self, step: &Step) -> bool {
        match step {
            Step::Loop { iter, bounds: Some(bounds), .. } => {
                let Some(i) = self.values.get(iter) else { return false };
                let [begin, end, step] = [0, 1, 2].map(|k| self.number(&bounds[k]));
                match step {
                    Some(s) if s > 0 => begin.is_some_and(|b| *i < b) || end.is_some_and(|e| *i >= e),
                    Some(s) if s < 0 => begin.is_some_and(|b| *i > b) || end.is_some_and(|e| *i <= e),
                    _ => false,
                }
            }
            Step::Branch { cond, then, .. } => self.is_not(cond, *then),
            Step::Child { seq, position, asserted: true } => match seq.kind() {
                StmtKind::Seq(all) => {
                    asserted(all).take_while(|(k, _)| k < position).any(|(_, cond)| self.is_not(cond, true))
                }
                _ => false,
            },
            _ => false,
        }
    }
}
