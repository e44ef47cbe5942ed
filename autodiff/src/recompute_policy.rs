//! Which tensors are kept for the backward pass, and which are computed again (FreeTensor, section 5.2).
//!
//! A tensor that is declared in a loop has a value for every iteration. It is computed again in the body of the
//! innermost loop around its declaration where that costs less than to write and read all values: arithmetic of its
//! statements, per element, against the bytes of an element.

use crate::data::{Choice, Home, Plan};
use crate::extent::{self, Ranges};
use crate::facts::{Declared, Facts};
use crate::request::Tape;
use rustc_hash::FxHashMap;
use taffeta_ast::{Expr, ExprKind, Stmt, StmtId, Symbol};

/// Operations that take as long as an element of a tape costs on its way to memory and back.
const WORTH_A_TAPE: f64 = 16.0;
/// A guess of how often a loop runs whose length is not known.
const USUAL_LENGTH: f64 = 64.0;

/// The homes of the tensors that are declared in loops.
pub(crate) fn choose(facts: &Facts<'_>, tape: &Tape, plan: &Plan) -> FxHashMap<Symbol, Choice> {
    let of = |(symbol, declared): (&Symbol, &Declared)| {
        let innermost = declared.loops.last()?;
        let (keep, why) = decide(facts, symbol, tape, plan);
        // A segment runs again as a whole; what is kept in it is kept for that long.
        let segment = declared.loops.iter().rev().find(|l| plan.segments.contains(l));
        let home = match (keep, segment) {
            (true, None) => Home::Program,
            (true, Some(l)) => Home::Body(*l),
            (false, _) => Home::Body(*innermost),
        };
        Some((symbol.clone(), Choice { home, why }))
    };
    facts.declared.iter().filter_map(of).collect()
}

/// Whether all values of a tensor are kept, and why.
fn decide(facts: &Facts<'_>, symbol: &Symbol, tape: &Tape, plan: &Plan) -> (bool, String) {
    let declared = &facts.declared[symbol];
    if let Some(l) = declared.loops.iter().find(|l| facts.loops[l].most.is_none()) {
        let why = format!("the trip count of the loop `{}` is not known from the sizes", facts.called(l));
        return (false, why);
    }
    if plan.states.contains(symbol) {
        return (false, "the state of a loop that runs in segments".into());
    }
    if plan.recomputed.contains(symbol) {
        return (false, "a tape of it is more than the budget has room for".into());
    }
    let listed = |names: &[String]| names.iter().any(|n| n == symbol.name());
    let operations = cost(facts, symbol);
    match tape {
        Tape::All => (true, "`tape=\"all\"`".into()),
        Tape::None => (false, "`tape=\"none\"`".into()),
        Tape::Named(names) => (listed(names), "`tape=` names the tensors that are kept".into()),
        Tape::Auto if operations > WORTH_A_TAPE => {
            (true, format!("{operations:.0} operations an element, and a tape costs as much as {WORTH_A_TAPE}"))
        }
        Tape::Auto => {
            (false, format!("{operations:.0} operations an element, less than the {WORTH_A_TAPE} that a tape costs"))
        }
    }
}

/// Operations for each element of a tensor, in units of an addition.
pub(crate) fn cost(facts: &Facts<'_>, symbol: &Symbol) -> f64 {
    let declared = &facts.declared[symbol];
    let outside = declared.loops.len();
    let of = |s: &Stmt| {
        let times: f64 = facts.around[&s.id()][outside..].iter().map(|l| length(facts, l)).product();
        times * s.kind().exprs().into_iter().map(operations).sum::<f64>()
    };
    let elements: f64 = declared.tensor.shape.iter().map(|d| d.as_int().map_or(USUAL_LENGTH, |v| v as f64)).product();
    facts.writers(symbol).map(of).sum::<f64>() / elements.max(1.0)
}

fn length(facts: &Facts<'_>, l: &StmtId) -> f64 {
    let l = &facts.loops[l];
    let known = extent::most_iterations([&l.begin, &l.end, &l.step], &Ranges::default());
    known.and_then(|e| e.as_int()).map_or(USUAL_LENGTH, |n| n as f64)
}

fn operations(e: &Expr) -> f64 {
    let inner: f64 = e.children().into_iter().map(operations).sum();
    let own = match e.kind() {
        ExprKind::Load(..) => 1.0,
        ExprKind::Apply(..) if !e.dtype().is_float() => 0.25,
        ExprKind::Apply(op, _) => f64::from(op.info().cost),
        _ => 0.0,
    };
    inner + own
}
