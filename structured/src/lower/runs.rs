//! Loops over a run: where the body is the same at every coordinate, a sum is a product, and what changes nothing the
//! second time is done once (Looplets, section 6.1).
//!
//! ```text
//! for j in range(3, 8):                      if 3 < 8:
//!     s += v                      →              s += v * 5
//!     m = max(m, v)                              m = max(m, v)
//! ```

use rustc_hash::FxHashSet;
use taffeta_analysis::query::effects;
use taffeta_ast::{Expr, ExprKind, Origin, ReduceOp, Stmt, StmtKind, Symbol};

/// What the loop comes to; `None` if its body changes from one coordinate to the next, or if it adds up floats, one by
/// one, in a program that is `strict`.
pub(super) fn summed(body: &Stmt, iter: &Symbol, [begin, end]: [&Expr; 2], strict: bool) -> Option<Stmt> {
    let all: Vec<&Stmt> = match body.kind() {
        StmtKind::Seq(all) => all.iter().filter(|s| !matches!(s.kind(), StmtKind::Assume { .. })).collect(),
        _ => vec![body],
    };
    let length = end.minus(begin);
    let written = effects::writes(body);
    let steady = |e: &Expr| {
        let mut steady = true;
        e.walk(&mut |e| match e.kind() {
            ExprKind::Var(s) => steady &= s != iter,
            ExprKind::Load(t, _) => steady &= !written.contains(t),
            _ => {}
        });
        steady
    };
    let mut out = Vec::new();
    // What is written twice changes in turns.
    let mut once = FxHashSet::default();
    for s in all {
        if let StmtKind::Store { tensor, indices, value } = s.kind()
            && steady(value)
            && indices.iter().all(|a| steady(&a.index))
            && once.insert(tensor)
        {
            out.push(s.clone());
            continue;
        }
        let StmtKind::ReduceTo { tensor, indices, op, value } = s.kind() else { return None };
        if !once.insert(tensor) {
            return None;
        }
        if !steady(value) || !indices.iter().all(|a| steady(&a.index)) {
            return None;
        }
        let value = match op {
            ReduceOp::Add if strict && value.dtype().is_float() => return None,
            ReduceOp::Add => value.times(&length.clone().cast(value.dtype())),
            ReduceOp::Min | ReduceOp::Max | ReduceOp::And | ReduceOp::Or | ReduceOp::BitAnd | ReduceOp::BitOr => {
                value.clone()
            }
            ReduceOp::Mul => return None,
        };
        out.push(s.with_kind(StmtKind::ReduceTo { tensor: tensor.clone(), indices: indices.clone(), op: *op, value }));
    }
    let origin = |role| -> Origin { body.origin().derive("structured", role) };
    let then = Stmt::seq(out, origin("run"));
    Some(Stmt::new(StmtKind::If { cond: begin.less(end), then, otherwise: None }, origin("run")))
}
