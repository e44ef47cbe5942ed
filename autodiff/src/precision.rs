//! The types in which derivatives are computed and collected: at least those in which the program's own sums are, so
//! that an adjoint is rounded once, when it is handed over.
//!
//! | of | is computed in | is collected in |
//! |---|---|---|
//! | `f16`, `bf16` | `f32` | `f32` |
//! | a scalar that loops read again and again, a vector (a bias) that they add | its own type, halves in `f32` | `f64` |
//! | other `f32`; `f64` | its own type | its own type |
//!
//! These are the rules of the operator library's sums and products. Where one of many elements is multiplied with
//! something else that the loop goes through, as in a product of matrices, it is collected as it is computed, and so
//! are elements that are picked by data: only what is small is wider.

use crate::expression;
use crate::facts::Facts;
use crate::partials::working;
use rustc_hash::FxHashSet;
use taffeta_ast::{Access, DType, Expr, ExprKind, Stmt, StmtId, StmtKind, Symbol, Tensor};

/// So many contributions to an element are few: they are added up in the type in which they are computed.
const FEW: i64 = 64;

/// The types in which the adjoints of a program are collected.
pub(crate) struct Collected {
    /// Tensors single elements of which a loop reads again and again.
    sums: FxHashSet<Symbol>,
}

impl Collected {
    pub fn new(facts: &Facts<'_>, active: &FxHashSet<Symbol>) -> Collected {
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
        Collected { sums }
    }

    /// The type in which the adjoint of a tensor is collected.
    pub fn of(&self, t: &Tensor) -> DType {
        if self.sums.contains(&t.symbol) { DType::F64 } else { working(t.dtype) }
    }
}

/// The loads of a value that are numbers with derivatives: none in conditions or indices.
fn differentiated<'e>(e: &'e Expr, out: &mut Vec<(&'e Symbol, &'e [Access])>) {
    match e.kind() {
        _ if !e.dtype().is_float() => {}
        ExprKind::Load(t, at) => out.push((t, at)),
        ExprKind::Cast(inner) => differentiated(inner, out),
        ExprKind::Apply(_, args) => args.iter().for_each(|a| differentiated(a, out)),
        _ => {}
    }
}

/// A load in the value of a statement.
struct Read<'a, 'f> {
    facts: &'a Facts<'f>,
    stmt: &'a Stmt,
    t: &'a Symbol,
    at: &'a [Access],
}

impl Read<'_, '_> {
    /// Whether what arrives in the element is a sum over loops inside of the tensor's scope in which nothing stores
    /// into the tensor: of anything where it is the only element, of what is not multiplied with anything else that
    /// these loops go through where it is one of a vector, or a scalar that an outer loop has in each iteration.
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
        // A scalar that each iteration of an outer loop has for itself is one of many.
        match along.len() + usize::from(!declared.loops.is_empty()) {
            0 => !picked,
            1 => !picked && declared.tensor.ndim() <= 1 && !self.is_multiplied(value, &over),
            _ => false,
        }
    }

    /// Whether another iteration of the loop reads another element.
    fn goes_along(&self, l: StmtId) -> bool {
        let iter = &self.facts.loops[&l].iter;
        self.at.iter().any(|a| mentions(&a.index, iter))
    }

    fn is_stored_in(&self, l: StmtId) -> bool {
        let stores = |s: &&Stmt| matches!(s.kind(), StmtKind::Store { .. });
        self.facts.writers(self.t).filter(stores).any(|s| self.facts.around[&s.id()].contains(&l))
    }

    /// How often the loops run together, where that is in the program.
    fn iterations(&self, loops: &[StmtId]) -> Option<i64> {
        let one = |l: &StmtId| self.facts.loops[l].most.as_ref()?.as_int();
        loops.iter().try_fold(1i64, |n, l| n.checked_mul(one(l)?))
    }

    /// Whether the derivative with respect to the element is made of what differs between iterations of the loops.
    fn is_multiplied(&self, value: &Expr, over: &[StmtId]) -> bool {
        let seed = Expr::load(&Symbol::new("seed"), Vec::new(), working(value.dtype()));
        let active = FxHashSet::from_iter([self.t.clone()]);
        let ExprKind::Load(mark, _) = seed.kind() else { unreachable!("it is made a load above") };
        let differs = |t: &Symbol, at: &[Access]| {
            let inner = self.facts.declared.get(t).is_some_and(|d| over.iter().any(|l| d.loops.contains(l)));
            let along = |l: &StmtId| at.iter().any(|a| mentions(&a.index, &self.facts.loops[l].iter));
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

fn mentions(e: &Expr, iter: &Symbol) -> bool {
    match e.kind() {
        ExprKind::Var(s) => s == iter,
        _ => e.children().into_iter().any(|c| mentions(c, iter)),
    }
}

fn is_loaded(e: &Expr) -> bool {
    matches!(e.kind(), ExprKind::Load(..)) || e.children().into_iter().any(is_loaded)
}
