//! How often a branch is taken, and which are none.

use super::Around;
use crate::tree::Loop;
use taffeta_analysis::query::effects;
use taffeta_analysis::query::guard::{bound, guards};
use taffeta_ast::op::Op;
use taffeta_ast::{Expr, ExprKind, StmtKind};

/// Of a condition of which nothing is known.
const HALF: f64 = 0.5;
/// Of a bound, which mostly holds.
const BOUND: f64 = 0.9;

/// In which part of the iterations of the loops around a condition holds: an iterator is equal to something in one of
/// them; conditions that are combined have nothing to do with each other.
pub(super) fn taken(cond: &Expr, has_other: bool, around: &[Around]) -> f64 {
    if let Some(known) = cond.as_bool() {
        return f64::from(u8::from(known));
    }
    let part = |e: &Expr| taken(e, has_other, around);
    match cond.kind() {
        ExprKind::Apply(Op::And, all) => all.iter().map(part).product(),
        ExprKind::Apply(Op::Or, all) => 1.0 - all.iter().map(|e| 1.0 - part(e)).product::<f64>(),
        ExprKind::Apply(Op::Not, all) => 1.0 - all.first().map_or(HALF, part),
        ExprKind::Apply(Op::Eq, _) if once(cond, around).is_some() => once(cond, around).unwrap_or(HALF),
        ExprKind::Apply(Op::Ne, _) if once(cond, around).is_some() => 1.0 - once(cond, around).unwrap_or(HALF),
        _ if !has_other && !reads(cond) => BOUND,
        _ => HALF,
    }
}

/// The guards of all that is in a loop that lowering makes bounds of it.
pub(in crate::auto) fn bounds(l: &Loop) -> Vec<Expr> {
    let unrolled = matches!(l.stmt.kind(), StmtKind::For { props, .. } if props.unroll);
    if unrolled || l.step.as_int() != Some(1) {
        return Vec::new();
    }
    guards(&l.body).into_iter().filter(|g| bound(g, &l.iter).is_some()).collect()
}

/// Whether a condition consists of bounds.
pub(super) fn is_bound(cond: &Expr, bounds: &[Expr]) -> bool {
    !bounds.is_empty() && cond.conjuncts().iter().all(|c| bounds.contains(c))
}

/// One iteration of the innermost loop around whose iterator is compared, as a part of all.
fn once(cond: &Expr, around: &[Around]) -> Option<f64> {
    let own = around.iter().rev().find(|l| effects::mentions(cond, &[&l.iter]))?;
    (!reads(cond)).then(|| 1.0 / own.trips.value.max(1.0))
}

fn reads(cond: &Expr) -> bool {
    let mut read = false;
    cond.walk(&mut |e| read |= matches!(e.kind(), ExprKind::Load(..)));
    read
}
