//! Invariants of logical programs:
//!
//! - `Scope`: a size is used anywhere, a parameter or result in the whole body, an iterator in its loop's body, a
//!   tensor in the body of its `VarDef` (its own shape excluded); iterators and sizes as `Var` (i64; f64 over the
//!   reals), tensors as `Load`, `Store`, `ReduceTo` of their type.
//! - `BoundOnce`: a symbol is bound by one size, parameter, result, `VarDef` or loop.
//! - `UniqueIds`: no two statements share an id.
//! - `NestedSeq`: no `Seq` is directly in a `Seq`.
//! - `Literal`: a constant is of its expression's type, in range, and rounded to it.
//! - `Operands`: an operator has its row's number of operands, in its domain, all of one type (except the condition of
//!   `select`, which is `bool`), and its result has the type given by the row.
//! - `Index`: indices, bounds and steps of loops are i64 (an index along real dimensions is f64).
//! - `Dimensions`: an access has one index per dimension.
//! - `Condition`: conditions of `If`, `Assert`, `Assume` and `While` are `bool`.
//! - `StoredType`: a stored or combined value has the tensor's type.
//! - `Reduction`: a reduction's operator accepts the tensor's type, and only concurrent loops list reductions, each
//!   once.
//! - `Library`: a loop replaced by a library call has no other execution property.
//! - `ReadOnly`: only `inout` parameters are written.
//! - `Protocol`: only reads have access protocols.
//! - `Shape`: shapes are i64.
//! - `Interface`: shapes of parameters and results mention sizes only.
//! - `Format`: a format is valid for its number of dimensions, and half matrices are halves of square ones.
//! - `Role`: parameters have the role of their mode, results are results, and a `VarDef` is neither, unless it declares
//!   an array that is made for the caller.
//! - `Made`: a flat array that is made for the caller is declared once, in no loop or branch.
//! - `Routine`: a run-time routine has its numbers of tensors and operands; it grows or fits arrays whose shape is the
//!   scalar before them, and sorts an array of integers.
//! - `LogicalOnly`: there is no `While`, and no `Call`.

use super::checker::Checker;
use super::violation::{Invalid, Invariant};
use crate::func::Func;
use crate::stmt::StmtKind;

/// Checks the invariants above.
///
/// # Errors
///
/// All violations.
pub fn logical(func: &Func) -> Result<(), Invalid> {
    let mut checker = Checker::new(func);
    func.body.walk(&mut |s| {
        if matches!(s.kind(), StmtKind::While { .. } | StmtKind::Call { .. }) {
            checker.violation(Invariant::LogicalOnly, s.origin(), "a statement that only structured lowering makes");
        }
    });
    checker.finish()
}
