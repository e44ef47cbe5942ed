//! Guards: conditions around a whole loop body, and the bounds of the iterator that they imply.

use super::effects;
use super::stride::constant_stride;
use taffeta_ast::{DType, Expr, ExprKind, Op, Stmt, StmtKind, Symbol};

/// Bound of the iterator implied by a guard.
pub enum Bound {
    /// Exclusive upper bound: `i < e`.
    Below(Expr),
    /// Lower bound: `e <= i`.
    From(Expr),
}

/// Returns the bound that a comparison of integers implies for the iterator, if the iterator's coefficient is 1 or -1.
pub fn bound(cond: &Expr, iter: &Symbol) -> Option<Bound> {
    let ExprKind::Apply(op, args) = cond.kind() else { return None };
    let (small, large, or_equal) = match op {
        Op::Lt => (&args[0], &args[1], 0),
        Op::Le => (&args[0], &args[1], 1),
        Op::Gt => (&args[1], &args[0], 0),
        Op::Ge => (&args[1], &args[0], 1),
        _ => return None,
    };
    if small.dtype() != DType::I64 {
        return None;
    }
    // `0 < large - small (+ 1)`
    let room = large.minus(small).plus(&Expr::int(or_equal));
    let rest = room.rewrite(&mut |e| match e.kind() {
        ExprKind::Var(v) if v == iter => Expr::int(0),
        _ => e,
    });
    match constant_stride(&room, iter)? {
        -1 => Some(Bound::Below(rest)),
        1 => Some(Bound::From(Expr::int(1).minus(&rest))),
        _ => None,
    }
}

/// Returns the conditions that guard everything in a statement and that can be evaluated before it: they load nothing,
/// and cannot stop the program.
pub fn guards(s: &Stmt) -> Vec<Expr> {
    match s.kind() {
        StmtKind::If { cond, then, otherwise: None } => {
            let mut all: Vec<Expr> = cond.conjuncts().into_iter().filter(is_plain).collect();
            all.extend(guards(then));
            all
        }
        StmtKind::Seq(parts) => {
            let mut parts = parts.iter().map(guards);
            let first = parts.next().unwrap_or_default();
            parts.fold(first, |mut all, own| {
                all.retain(|g| own.contains(g));
                all
            })
        }
        StmtKind::VarDef { body, .. } => guards(body),
        _ => Vec::new(),
    }
}

fn is_plain(e: &Expr) -> bool {
    !e.may_fail() && effects::loads(e).is_empty()
}
