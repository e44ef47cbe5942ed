//! Invariants of programs from which C can be printed: those of dense programs, and
//!
//! - `Flat`: every tensor is dense and has at most one dimension.
//! - `Plain`: there is no `Measure` and no loop over the reals.
//! - `Placed`: every `VarDef` has a memory: scalars, and nothing else, in registers; arrays of constant length on the
//!   stack; arrays of any length in the arena or on the heap.

use super::checker::Checker;
use super::violation::{Invalid, Invariant};
use crate::expr::{Expr, ExprKind};
use crate::func::Func;
use crate::stmt::{Extent, Memory, Origin, PrintPart, Stmt, StmtKind, Tensor};

/// Checks the invariants above.
///
/// # Errors
///
/// All violations.
pub fn lowered(func: &Func) -> Result<(), Invalid> {
    let mut checker = Checker::new(func);
    for t in func.interface() {
        flat(&mut checker, t, &Origin::none());
    }
    stmt(&mut checker, &func.body);
    checker.finish()
}

fn stmt(checker: &mut Checker<'_>, s: &Stmt) {
    match s.kind() {
        StmtKind::VarDef { tensor, .. } => {
            flat(checker, tensor, s.origin());
            placed(checker, tensor, s);
        }
        StmtKind::For { extent: Extent::Reals, .. } => {
            checker.violation(Invariant::Plain, s.origin(), "a statement without a form in C");
        }
        StmtKind::Print { parts } => {
            let begins = |p: &PrintPart| !matches!(p, PrintPart::Tensor { at, .. } if at.len() != 1);
            if !parts.iter().all(begins) {
                checker.violation(Invariant::Flat, s.origin(), "a printed tensor is not a flat buffer");
            }
        }
        _ => {}
    }
    for e in s.kind().exprs() {
        e.walk(&mut |e| check_expr(checker, e, s));
    }
    for inner in s.kind().children() {
        stmt(checker, inner);
    }
}

fn check_expr(checker: &mut Checker<'_>, e: &Expr, s: &Stmt) {
    if matches!(e.kind(), ExprKind::Measure(..)) {
        checker.violation(Invariant::Plain, s.origin(), "an expression without a form in C");
    }
}

fn flat(checker: &mut Checker<'_>, t: &Tensor, origin: &Origin) {
    if t.ndim() > 1 || !t.format.is_dense() || t.format.fill.is_some() {
        checker.violation(Invariant::Flat, origin, format!("`{}` is not a flat buffer", t.symbol));
    }
}

fn placed(checker: &mut Checker<'_>, t: &Tensor, s: &Stmt) {
    let length = t.shape.first();
    let fits = match t.memory {
        Memory::Auto => false,
        Memory::Register => length.is_none(),
        Memory::Stack => length.is_some_and(|n| n.as_int().is_some()),
        // Placement has checked that arena lengths follow from sizes, or have a bound that does.
        Memory::Arena | Memory::Heap => length.is_some(),
    };
    if !fits {
        checker.violation(Invariant::Placed, s.origin(), format!("`{}` cannot be in {:?} memory", t.symbol, t.memory));
    }
}
