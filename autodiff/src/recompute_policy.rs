//! Choice between a tape and recomputation for each tensor (FreeTensor, section 5.2).
//!
//! A tensor that is declared in a loop has a value for every iteration. It is recomputed in the body of the innermost
//! loop around its declaration if that costs less than to write and read all values: the arithmetic of its statements
//! per element is compared with the cost of an element on a tape.

use crate::data::{Choice, Plan, RecomputeScope};
use crate::extent::{self, Ranges};
use crate::facts::{Declared, Facts};
use crate::request::{Request, Tape};
use rustc_hash::FxHashMap;
use taffeta_ast::{Expr, ExprKind, Stmt, StmtId, StmtKind, Symbol};

/// Number of operations that take as long as an element of a tape on its way to memory and back.
const WORTH_A_TAPE: f64 = 16.0;
/// Assumed trip count of a loop of unknown length.
const USUAL_LENGTH: f64 = 64.0;

/// Chooses the scopes of the tensors that are declared in loops.
pub(crate) fn choose(facts: &Facts<'_>, request: &Request<'_>, plan: &Plan) -> FxHashMap<Symbol, Choice> {
    let numbers = numbers(facts);
    let of = |(symbol, declared): (&Symbol, &Declared)| {
        let innermost = declared.loops.last()?;
        let number = numbers.get(symbol).copied();
        let (keep, why, number) = match given(facts, symbol, plan) {
            Some(why) => (false, why, None),
            None => {
                let flipped = number.is_some_and(|n| request.flipped.contains(&n));
                let (keep, why) = decide(facts, symbol, &request.tape);
                if flipped { (!keep, "estimated to take less time".into(), number) } else { (keep, why, number) }
            }
        };
        // A segment is recomputed as a whole; a tensor kept in it is kept for that long.
        let segment = declared.loops.iter().rev().find(|l| plan.segments.contains(l));
        let scope = match (keep, segment) {
            (true, None) => RecomputeScope::Program,
            (true, Some(l)) => RecomputeScope::Body(*l),
            (false, _) => RecomputeScope::Body(*innermost),
        };
        Some((symbol.clone(), Choice { scope, number, why }))
    };
    facts.declared.iter().filter_map(of).collect()
}

/// Numbers the tensors that are declared in loops, in the order of the text.
fn numbers(facts: &Facts<'_>) -> FxHashMap<Symbol, usize> {
    let mut numbers = FxHashMap::default();
    facts.func.body.walk(&mut |s| {
        if let StmtKind::VarDef { tensor, .. } = s.kind()
            && facts.declared.get(&tensor.symbol).is_some_and(|d| !d.loops.is_empty())
        {
            numbers.insert(tensor.symbol.clone(), numbers.len());
        }
    });
    numbers
}

/// Returns the reason why a tensor must be recomputed, if it must.
fn given(facts: &Facts<'_>, symbol: &Symbol, plan: &Plan) -> Option<String> {
    let declared = &facts.declared[symbol];
    if let Some(l) = declared.loops.iter().find(|l| facts.loops[l].most.is_none()) {
        return Some(format!("the trip count of the loop `{}` is not known from the sizes", facts.called(l)));
    }
    if plan.states.contains(symbol) {
        return Some("the state of a loop that runs in segments".into());
    }
    if let Some(of) = plan.scattered.get(symbol) {
        return Some(format!("needed only where `{of}` is stored, and its tape cannot have that pattern"));
    }
    plan.recomputed.contains(symbol).then(|| "its tape exceeds the memory budget".into())
}

/// Decides whether all values of a tensor are kept, and why.
fn decide(facts: &Facts<'_>, symbol: &Symbol, tape: &Tape) -> (bool, String) {
    let listed = |names: &[String]| names.iter().any(|n| n == symbol.name());
    let operations = cost(facts, symbol);
    match tape {
        Tape::All => (true, "`tape=\"all\"`".into()),
        Tape::None => (false, "`tape=\"none\"`".into()),
        Tape::Named(names) => (listed(names), "`tape=` names the tensors that are kept".into()),
        Tape::Auto if operations > WORTH_A_TAPE => {
            (true, format!("{operations:.0} operations an element, more than the {WORTH_A_TAPE} that a tape costs"))
        }
        Tape::Auto => {
            (false, format!("{operations:.0} operations an element, less than the {WORTH_A_TAPE} that a tape costs"))
        }
    }
}

/// Estimates the operations for each element of a tensor, in units of an addition.
pub(crate) fn cost(facts: &Facts<'_>, symbol: &Symbol) -> f64 {
    for_each_element(facts, symbol, &operations)
}

/// Counts the operations for each element of a tensor: cheap ones; functions, roots and divisions.
pub(crate) fn work(facts: &Facts<'_>, symbol: &Symbol) -> [f64; 2] {
    let is_costly = |e: &Expr| matches!(e.kind(), ExprKind::Apply(op, _) if op.info().cost > 2);
    [false, true].map(|costly| {
        let counted = |e: &Expr| {
            let mut n = 0.0;
            e.walk(&mut |e| {
                let counts = matches!(e.kind(), ExprKind::Apply(..)) && e.dtype().is_float() && is_costly(e) == costly;
                n += f64::from(u8::from(counts));
            });
            n
        };
        for_each_element(facts, symbol, &counted)
    })
}

/// Sums a measure of expressions over the statements that write a tensor, for each of its elements.
fn for_each_element(facts: &Facts<'_>, symbol: &Symbol, of_expression: &dyn Fn(&Expr) -> f64) -> f64 {
    let declared = &facts.declared[symbol];
    let outside = declared.loops.len();
    let of = |s: &Stmt| {
        let times: f64 = facts.around[&s.id()][outside..].iter().map(|l| length(facts, l)).product();
        times * s.kind().exprs().into_iter().map(of_expression).sum::<f64>()
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
