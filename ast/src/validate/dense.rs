//! Invariants of programs whose structured tensors have become arrays: the logical list without `LogicalOnly`, and
//!
//! - `Stored`: every tensor is dense.

use super::checker::Checker;
use super::violation::{Invalid, Invariant};
use crate::func::Func;
use crate::stmt::{Origin, StmtKind, Tensor};

/// Checks the invariants above.
///
/// # Errors
///
/// All violations.
pub fn dense(func: &Func) -> Result<(), Invalid> {
    let mut checker = Checker::new(func);
    let mut check = |t: &Tensor, origin: &Origin| {
        if !t.format.is_dense() {
            checker.violation(Invariant::Stored, origin, format!("`{}` is not dense", t.symbol));
        }
    };
    func.interface().for_each(|t| check(t, &Origin::none()));
    func.body.walk(&mut |s| {
        if let StmtKind::VarDef { tensor, .. } = s.kind() {
            check(tensor, s.origin());
        }
    });
    checker.finish()
}
