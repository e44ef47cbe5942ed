//! List of a gradient's residuals, as data: `plan` measures them, and `explain` shows them.

use crate::data::{Decision, RecomputeScope, Residual, Saved};
use crate::facts::{AccessedValue, Facts};
use crate::recompute_policy;
use crate::value_sources::Values;
use std::sync::Arc;
use taffeta_ast::{Expr, ExprKind, Span, StmtId, Symbol, Tensor};

/// Lists all residuals: kept tensors in the order of first need, inverted ones by name, snapshots in the order of first
/// need.
pub(crate) fn list(facts: &Facts<'_>, values: &Values) -> Vec<Residual> {
    let mut out = Vec::new();
    for (symbol, scope, kept) in values.kept.iter().filter(|(t, ..)| !values.inverted.contains_key(t)) {
        let choice = values.scopes.get(symbol);
        let (decision, why) = match (scope, choice) {
            (RecomputeScope::Program, None) => (Decision::Unchanged, "nothing overwrites it".to_string()),
            (RecomputeScope::Program, Some(c)) => (Decision::Tape, c.why.clone()),
            (RecomputeScope::Body(_), Some(c)) => (Decision::Recompute, c.why.clone()),
            (RecomputeScope::Body(_), None) => unreachable!("tensors with a scope in a loop are declared in it"),
        };
        let loops = kept.loops.clone();
        let one = residual(facts, symbol, decision, why, (kept.tensor.clone(), loops, *scope), Vec::new());
        out.push(Residual { choice: choice.and_then(|c| c.number), ..one });
    }
    let mut inverted: Vec<_> = values.inverted.iter().filter(|(t, _)| values.used.contains(t)).collect();
    inverted.sort_by_key(|(t, _)| t.name().to_string());
    for (symbol, inverted) in inverted {
        let why = "integer additions, which subtractions undo exactly".to_string();
        let place = (inverted.now.clone(), Vec::new(), RecomputeScope::Program);
        out.push(residual(facts, symbol, Decision::Inverted, why, place, Vec::new()));
    }
    for s in &values.snapshots {
        let mut reads = Vec::new();
        let mut of = |e: &Expr| {
            e.walk(&mut |e| {
                if let ExprKind::Load(t, _) = e.kind() {
                    reads.push(t.clone());
                }
            });
        };
        let (symbol, decision, why) = match &s.saved {
            Saved::Whole(t) => {
                reads.push(t.clone());
                let what = match facts.loops.contains_key(&s.anchor) {
                    true => format!("the loop `{}`", facts.called(&s.anchor)),
                    false => "a statement".to_string(),
                };
                (t.clone(), Decision::Copies, format!("overwritten later: copied whole before {what}"))
            }
            Saved::Value(e) => {
                of(e);
                let symbol = match e.kind() {
                    ExprKind::Load(t, _) => t.clone(),
                    _ => facts.tensor_of(s.anchor, &AccessedValue::Target),
                };
                (symbol, Decision::Copies, "overwritten later: the element is copied before the statement".into())
            }
            Saved::Last { cond, .. } => {
                of(cond);
                let symbol = facts.tensor_of(s.anchor, &AccessedValue::Target);
                (symbol, Decision::Marks, "the iteration that set the minimum or maximum".into())
            }
        };
        let reads = reads.iter().map(|t| (facts.declared[t].tensor.clone(), facts.declared[t].loops.clone())).collect();
        out.push(residual(facts, &symbol, decision, why, (s.tensor.clone(), s.loops.clone(), s.scope), reads));
    }
    out
}

fn residual(
    facts: &Facts<'_>,
    symbol: &Symbol,
    decision: Decision,
    why: String,
    (kept, loops, scope): (Arc<Tensor>, Vec<StmtId>, RecomputeScope),
    reads: Vec<(Arc<Tensor>, Vec<StmtId>)>,
) -> Residual {
    let declared = &facts.declared[symbol];
    let operations = recompute_policy::cost(facts, symbol);
    let span = facts.writers(symbol).map(|s| s.origin().span()).min_by_key(|s| s.start).unwrap_or(Span::NONE);
    Residual {
        decision,
        choice: None,
        why,
        tensor: declared.tensor.clone(),
        kept,
        loops,
        scope,
        reads,
        operations,
        work: recompute_policy::work(facts, symbol),
        amount: None,
        span,
    }
}
