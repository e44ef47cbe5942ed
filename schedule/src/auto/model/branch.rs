//! Branch probabilities, and guards that cost no branch.
use crate::auto::model::enclosing::EnclosingLoop;
use crate::tree::Loop;
use taffeta_analysis::query::effects;
use taffeta_analysis::query::guard::{bound, guards};
use taffeta_ast::op::Op;
use taffeta_ast::{Expr, ExprKind, StmtKind};

/// Probability of an unknown condition.
const HALF: f64 = 0.5;
/// Probability of a condition without `else` and without loads: mostly a bounds condition, which seldom fails.
const BOUND: f64 = 0.9;

/// Returns the fraction of the iterations of the enclosing loops in which a condition holds. An equality with an
/// iterator holds in one iteration; combined conditions are taken as independent.
pub(super) fn taken(cond: &Expr, has_other: bool, around: &[EnclosingLoop]) -> f64 {
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

/// Returns the guards of a whole loop body that lowering makes bounds of the loop.
pub(in crate::auto) fn bounds(l: &Loop) -> Vec<Expr> {
    let unrolled = matches!(l.stmt.kind(), StmtKind::For { props, .. } if props.unroll);
    if unrolled || l.step.as_int() != Some(1) {
        return Vec::new();
    }
    guards(&l.body).into_iter().filter(|g| bound(g, &l.iter).is_some()).collect()
}

/// Returns whether a condition consists of bounds.
pub(super) fn is_bound(cond: &Expr, bounds: &[Expr]) -> bool {
    !bounds.is_empty() && cond.conjuncts().iter().all(|c| bounds.contains(c))
}

/// Returns the share of a single iteration in the innermost loop whose iterator the condition mentions; `None` if the
/// condition loads an element or mentions no iterator.
fn once(cond: &Expr, around: &[EnclosingLoop]) -> Option<f64> {
    let own = around.iter().rev().find(|l| effects::mentions(cond, &[&l.iter]))?;
    (!reads(cond)).then(|| 1.0 / own.trips.value.max(1.0))
}

fn reads(cond: &Expr) -> bool {
    cond.any(&mut |e| matches!(e.kind(), ExprKind::Load(..)))
}
