//! Types in which derivatives are computed and accumulated: at least as wide as those of the program's own sums, so
//! that an adjoint is rounded once, when it is returned.
//!
//! | value | is computed in | is accumulated in |
//! |---|---|---|
//! | `f16`, `bf16` | `f32` | `f32` |
//! | a scalar that loops read repeatedly, a vector (a bias) that they add | its own type, halves in `f32` | `f64` |
//! | other `f32`; `f64` | its own type | its own type |
//!
//! The operator library's sums and products have the same rules. The adjoint of one of many elements is accumulated in
//! the type in which it is computed if the element is multiplied by a value that varies in the loop, as in a product of
//! matrices, or if its index is loaded: only small tensors are widened.

use crate::expression;
use crate::facts::Facts;
use crate::partials::working;
use rustc_hash::FxHashSet;
use taffeta_analysis::query::effects;
use taffeta_ast::{Access, DType, Expr, ExprKind, Stmt, StmtId, StmtKind, Symbol, Tensor};

/// Maximum number of contributions to an element that are accumulated in the type in which they are computed.
const FEW: i64 = 64;

/// Accumulation types of a program's adjoints.
pub(crate) struct AccumulationTypes {
    /// Tensors whose adjoints are accumulated in `f64`: a loop reads single elements of them repeatedly.
    sums: FxHashSet<Symbol>,
}

impl AccumulationTypes {
    pub fn new(facts: &Facts<'_>, active: &FxHashSet<Symbol>) -> AccumulationTypes {
        let mut sums = FxHashSet::default();
        facts.func.body.walk(&mut |s| {
            if let StmtKind::Store { tensor, value, .. } | StmtKind::ReduceTo { tensor, value, .. } = s.kind()
                && active.contains(tensor)
            {
                let mut loads = Vec::new();
                differentiated(value, &mut loads);
                for (t, at) in loads {
                    let read = Read { facts, stmt: s, t, at };
                    if active.contains(t) && !sums.contains(t) && read.is_summed(value) {
                        sums.insert(t.clone());
                    }
                }
            }
        });
        AccumulationTypes { sums }
    }

    /// Returns the accumulation type of a tensor's adjoint.
    pub fn of(&self, t: &Tensor) -> DType {
        if self.sums.contains(&t.symbol) { DType::F64 } else { working(t.dtype) }
    }
}

/// Collects the loads of a value that carry derivatives: none in conditions or indices.
fn differentiated<'e>(e: &'e Expr, out: &mut Vec<(&'e Symbol, &'e [Access])>) {
    match e.kind() {
        _ if !e.dtype().is_float() => {}
        ExprKind::Load(t, at) => out.push((t, at)),
        ExprKind::Cast(inner) => differentiated(inner, out),
        ExprKind::Apply(_, args) => args.iter().for_each(|a| differentiated(a, out)),
        _ => {}
    }
}

/// Load in the value of a statement.
struct Read<'a, 'f> {
    facts: &'a Facts<'f>,
    stmt: &'a Stmt,
    t: &'a Symbol,
    at: &'a [Access],
}

impl Read<'_, '_> {
    /// Returns whether the element's adjoint is a sum over loops inside the tensor's scope that do not store into the
    /// tensor. Any such sum counts if the element is the only one of its tensor. For an element of a vector, or a
    /// scalar with an instance per iteration of an outer loop, the sum counts if no factor of its terms varies over
    /// these loops.
    fn is_summed(&self, value: &Expr) -> bool {
        let declared = &self.facts.declared[self.t];
        if declared.tensor.dtype == DType::F64 || !declared.tensor.format.is_dense() {
            return false;
        }
        let around = &self.facts.around[&self.stmt.id()];
        let inside = around.get(declared.loops.len()..).unwrap_or_default();
        let (along, others): (Vec<StmtId>, Vec<StmtId>) = inside.iter().partition(|l| self.goes_along(**l));
        let over: Vec<StmtId> = others.into_iter().filter(|l| !self.is_stored_in(*l)).collect();
        if over.is_empty() || self.iterations(&over).is_some_and(|n| n <= FEW) {
            return false;
        }
        let picked = self.at.iter().any(|a| is_loaded(&a.index));
        // A scalar with an instance per iteration of an outer loop is one of many.
        match along.len() + usize::from(!declared.loops.is_empty()) {
            0 => !picked,
            1 => !picked && declared.tensor.ndim() <= 1 && !self.is_multiplied(value, &over),
            _ => false,
        }
    }

    /// Returns whether the iterations of the loop read different elements.
    fn goes_along(&self, l: StmtId) -> bool {
        let iter = &self.facts.loops[&l].iter;
        self.at.iter().any(|a| effects::mentions(&a.index, &[iter]))
    }

    fn is_stored_in(&self, l: StmtId) -> bool {
        let stores = |s: &&Stmt| matches!(s.kind(), StmtKind::Store { .. });
        self.facts.writers(self.t).filter(stores).any(|s| self.facts.around[&s.id()].contains(&l))
    }

    /// Returns the joint trip count of the loops, if it is constant.
    fn iterations(&self, loops: &[StmtId]) -> Option<i64> {
        let one = |l: &StmtId| self.facts.loops[l].most.as_ref()?.as_int();
        loops.iter().try_fold(1i64, |n, l| n.checked_mul(one(l)?))
    }

    /// Returns whether the derivative with respect to the element varies over the loops.
    fn is_multiplied(&self, value: &Expr, over: &[StmtId]) -> bool {
        let seed = Expr::load(&Symbol::new("seed"), Vec::new(), working(value.dtype()));
        let active = FxHashSet::from_iter([self.t.clone()]);
        let ExprKind::Load(mark, _) = seed.kind() else { unreachable!("the seed is a load") };
        let differs = |t: &Symbol, at: &[Access]| {
            let inner = self.facts.declared.get(t).is_some_and(|d| over.iter().any(|l| d.loops.contains(l)));
            let along = |l: &StmtId| at.iter().any(|a| effects::mentions(&a.index, &[&self.facts.loops[l].iter]));
            *t != *mark && (inner || over.iter().any(along))
        };
        let at = |c: &expression::Contribution| matches!(c.load.kind(), ExprKind::Load(_, at) if at == self.at);
        expression::reverse(value, &seed, &active).iter().filter(|c| at(c)).any(|c| {
            let mut loads = Vec::new();
            differentiated(&c.value, &mut loads);
            loads.iter().any(|(t, at)| differs(t, at))
        })
    }
}

fn is_loaded(e: &Expr) -> bool {
    matches!(e.kind(), ExprKind::Load(..)) || e.children().into_iter().any(is_loaded)
}
