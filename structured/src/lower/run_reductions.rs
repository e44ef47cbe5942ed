//! Loops over a run: if the body is the same at every coordinate, a sum is a product, and an idempotent update is done
//! once (Looplets, section 6.1).
//!
//! ```text
//! for j in range(3, 8):                      if 3 < 8:
//!     s += v                      →              s += v * 5
//!     m = max(m, v)                              m = max(m, v)
//! ```
//!
//! A loop in the body is done once as well, if its range is invariant. If it is a run itself, it disappears:
//!
//! ```text
//! for i in range(3, 8):                      if 3 < 8 and 0 < m:
//!     for j in range(m):          →              s += v * m * 5
//!         s += v
//! ```

use super::exprs::range;
use super::state::Lower;
use rustc_hash::{FxHashMap, FxHashSet};
use taffeta_analysis::query::effects;
use taffeta_ast::{Expr, ExprKind, Origin, ReduceOp, Stmt, StmtId, StmtKind, Symbol};

/// Properties of a program that affect its runs.
#[derive(Clone, Copy)]
pub(super) struct Rules<'r> {
    /// Whether floating-point sums keep their order.
    pub(super) strict: bool,
    /// Fibres whose elements are not located yet.
    pub(super) fibres: &'r FxHashMap<Symbol, (Symbol, usize)>,
}

/// Reduces a loop over a run to a statement without the loop; `None` if its body varies with the coordinate, or if it
/// adds floats in a `strict` program.
pub(super) fn summed(body: &Stmt, iter: &Symbol, [begin, end]: [&Expr; 2], rules: Rules<'_>) -> Option<Stmt> {
    repeated(body, iter, [&end.minus(begin), &begin.less(end)], rules)
}

/// Reduces a body that is executed for `count` values of the iterator, if there are `any`, to one execution; `None` if
/// the body varies with the iterator.
pub(super) fn repeated(body: &Stmt, iter: &Symbol, [count, any]: [&Expr; 2], rules: Rules<'_>) -> Option<Stmt> {
    let mut run = Run { iter, count, rules, written: effects::writes(body), once: FxHashSet::default() };
    let then = run.stmt(body)?;
    let origin: Origin = body.origin().derive("structured", "run");
    Some(Stmt::new(StmtKind::If { cond: any.clone(), then, otherwise: None }, origin))
}

/// Reduces each of the given loops that is over a run.
pub(super) fn summed_in(s: &Stmt, loops: &FxHashSet<StmtId>, rules: Rules<'_>) -> Stmt {
    if loops.is_empty() {
        return s.clone();
    }
    let inner = s.map(&mut |s| summed_in(s, loops, rules), &mut Expr::clone);
    match inner.kind() {
        StmtKind::For { iter, extent, body, .. } if loops.contains(&s.id()) => {
            let all = range(extent).and_then(|[begin, end]| summed(body, iter, [&begin, &end], rules));
            all.unwrap_or(inner)
        }
        _ => inner,
    }
}

/// Body that is executed for many values of an iterator.
struct Run<'r> {
    iter: &'r Symbol,
    count: &'r Expr,
    rules: Rules<'r>,
    /// Tensors that it writes.
    written: FxHashSet<Symbol>,
    /// Tensors of the writes visited so far. A tensor that is written twice may alternate between two values.
    once: FxHashSet<Symbol>,
}

impl Run<'_> {
    fn stmt(&mut self, s: &Stmt) -> Option<Stmt> {
        Some(match s.kind() {
            StmtKind::Assume { .. } => Stmt::nop(),
            StmtKind::Seq(all) => {
                let all = all.iter().map(|s| self.stmt(s)).collect::<Option<Vec<Stmt>>>()?;
                Stmt::seq(all, s.origin().derive("structured", "run"))
            }
            StmtKind::If { cond, then, otherwise } if self.is_steady(cond) => {
                let then = self.stmt(then)?;
                let otherwise = match otherwise {
                    Some(otherwise) => Some(self.stmt(otherwise)?),
                    None => None,
                };
                s.with_kind(StmtKind::If { cond: cond.clone(), then, otherwise })
            }
            StmtKind::For { iter, extent, props, body } => {
                let [begin, end] = range(extent).filter(|range| range.iter().all(|e| self.is_steady(e)))?;
                if let Some(all) = summed(body, iter, [&begin, &end], self.rules) {
                    return self.stmt(&all);
                }
                // Scaling by a count changes which values derive from the fill, so elements must be located first.
                if self.is_open(body) {
                    return None;
                }
                let (iter, extent, props) = (iter.clone(), extent.clone(), props.clone());
                s.with_kind(StmtKind::For { iter, extent, props, body: self.stmt(body)? })
            }
            StmtKind::Store { tensor, indices, value } => {
                let steady = self.is_steady(value) && indices.iter().all(|a| self.is_steady(&a.index));
                (steady && self.once.insert(tensor.clone())).then(|| s.clone())?
            }
            StmtKind::ReduceTo { tensor, indices, op, value } => {
                let steady = self.is_steady(value) && indices.iter().all(|a| self.is_steady(&a.index));
                if !steady || !self.once.insert(tensor.clone()) {
                    return None;
                }
                let value = match op {
                    ReduceOp::Add if self.rules.strict && value.dtype().is_float() => return None,
                    ReduceOp::Add => value.times(&self.count.clone().cast(value.dtype())),
                    ReduceOp::Min
                    | ReduceOp::Max
                    | ReduceOp::And
                    | ReduceOp::Or
                    | ReduceOp::BitAnd
                    | ReduceOp::BitOr => value.clone(),
                    ReduceOp::Mul => return None,
                };
                let (tensor, indices) = (tensor.clone(), indices.clone());
                s.with_kind(StmtKind::ReduceTo { tensor, indices, op: *op, value })
            }
            _ => return None,
        })
    }

    /// Returns whether a statement has elements that are not located yet.
    fn is_open(&self, s: &Stmt) -> bool {
        s.any_expr(&mut |e| matches!(e.kind(), ExprKind::Load(t, _) if self.rules.fibres.contains_key(t)))
    }

    /// Returns whether an expression depends neither on the iterator nor on writes of the body.
    fn is_steady(&self, e: &Expr) -> bool {
        let mut steady = true;
        e.walk(&mut |e| match e.kind() {
            ExprKind::Var(s) => steady &= s != self.iter,
            ExprKind::Load(t, _) => steady &= !self.written.contains(t),
            _ => {}
        });
        steady
    }
}

impl Lower {
    pub(super) fn rules(&self) -> Rules<'_> {
        Rules { strict: self.strict, fibres: &self.fibres }
    }
}
