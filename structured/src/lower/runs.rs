//! Loops over a run: where the body is the same at every coordinate, a sum is a product, and what changes nothing the
//! second time is done once (Looplets, section 6.1).
//!
//! ```text
//! for j in range(3, 8):                      if 3 < 8:
//!     s += v                      →              s += v * 5
//!     m = max(m, v)                              m = max(m, v)
//! ```
//!
//! A loop in the body is done once as well, if its range is the same too. If it is a run itself, nothing is left of it:
//!
//! ```text
//! for i in range(3, 8):                      if 3 < 8 and 0 < m:
//!     for j in range(m):          →              s += v * m * 5
//!         s += v
//! ```

use super::range;
use rustc_hash::{FxHashMap, FxHashSet};
use taffeta_analysis::query::effects;
use taffeta_ast::{Expr, ExprKind, Origin, ReduceOp, Stmt, StmtId, StmtKind, Symbol};

/// What a program says of its runs.
#[derive(Clone, Copy)]
pub(super) struct Rules<'r> {
    /// Whether sums of floats are computed one by one.
    pub(super) strict: bool,
    /// Fibres whose elements are not found yet.
    pub(super) fibres: &'r FxHashMap<Symbol, (Symbol, usize)>,
}

/// What the loop comes to; `None` if its body changes from one coordinate to the next, or if it adds up floats, one by
/// one, in a program that is `strict`.
pub(super) fn summed(body: &Stmt, iter: &Symbol, [begin, end]: [&Expr; 2], rules: Rules<'_>) -> Option<Stmt> {
    repeated(body, iter, [&end.minus(begin), &begin.less(end)], rules)
}

/// What a body comes to that is executed for so many values of the iterator, if there are any; `None` if it is not the
/// same for all of them.
pub(super) fn repeated(body: &Stmt, iter: &Symbol, [count, any]: [&Expr; 2], rules: Rules<'_>) -> Option<Stmt> {
    let mut run = Run { iter, count, rules, written: effects::writes(body), once: FxHashSet::default() };
    let then = run.stmt(body)?;
    let origin: Origin = body.origin().derive("structured", "run");
    Some(Stmt::new(StmtKind::If { cond: any.clone(), then, otherwise: None }, origin))
}

/// The statement in which those of these loops that are over runs are what they come to.
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

/// A body that is executed for many values of an iterator.
struct Run<'r> {
    iter: &'r Symbol,
    count: &'r Expr,
    rules: Rules<'r>,
    /// What it writes.
    written: FxHashSet<Symbol>,
    /// What was found to be written. What is written twice changes in turns.
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
                // Times a number, a value is of the fill in other cases: it must be known what it is.
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

    /// Whether a statement has elements that are not found yet.
    fn is_open(&self, s: &Stmt) -> bool {
        let mut open = false;
        s.walk_exprs(&mut |e| {
            open |= matches!(e.kind(), ExprKind::Load(t, _) if self.rules.fibres.contains_key(t));
        });
        open
    }

    /// Whether an expression is the same whatever the iterator, and before and after the body.
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
