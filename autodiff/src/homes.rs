//! Which tensors are kept for the backward pass, and which are computed again (FreeTensor, section 5.2).
//!
//! A tensor that is declared in a loop has a value for every iteration. It is computed again in the body of the innermost loop around
//! its declaration where that costs less than to write and read all values: arithmetic of its statements, per element, against
//! the bytes of an element.

use crate::Tape;
use crate::extent::{self, Ranges};
use crate::facts::Facts;
use crate::values::Home;
use rustc_hash::FxHashMap;
use weft_ast::op::Op;
use weft_ast::{Expr, ExprKind, Stmt, StmtId, Symbol};

/// Operations that take as long as an element of a tape costs on its way to memory and back.
const WORTH_A_TAPE: f64 = 16.0;
/// A guess of how often a loop runs whose length is not known.
const USUAL_LENGTH: f64 = 64.0;

/// The homes of the tensors that are not at home in the program.
pub(crate) fn choose(facts: &Facts<'_>, tape: &Tape) -> FxHashMap<Symbol, Home> {
    let mut homes = FxHashMap::default();
    for (symbol, declared) in &facts.declared {
        let Some(innermost) = declared.loops.last() else { continue };
        let keep = match tape {
            Tape::All => true,
            Tape::None => false,
            Tape::Named(names) => names.iter().any(|n| n == symbol.name()),
            Tape::Auto => cost(facts, symbol) > WORTH_A_TAPE,
        };
        // How many values there are must be known.
        if !keep || declared.loops.iter().any(|l| facts.loops[l].most.is_none()) {
            homes.insert(symbol.clone(), Home::Body(*innermost));
        }
    }
    homes
}

/// Operations for each element of a tensor, in units of an addition.
fn cost(facts: &Facts<'_>, symbol: &Symbol) -> f64 {
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
        ExprKind::Apply(op, _) => match op {
            _ if !e.dtype().is_float() => 0.25,
            Op::Div | Op::Sqrt | Op::Rsqrt => 4.0,
            Op::Exp | Op::Exp2 | Op::Log | Op::Log2 | Op::Sigmoid | Op::Tanh => 8.0,
            Op::Expm1 | Op::Log1p | Op::Sin | Op::Cos | Op::Tan | Op::Asin | Op::Acos | Op::Atan => 12.0,
            Op::Atan2 | Op::Sinh | Op::Cosh | Op::Erf | Op::Pow => 16.0,
            _ => 1.0,
        },
        _ => 0.0,
    };
    inner + own
}
