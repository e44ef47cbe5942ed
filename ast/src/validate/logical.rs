//! What every logical program keeps to:
//!
//! - `Scope`: a size is used anywhere, a parameter or result in the whole body, an iterator in its loop's body, a
//!   tensor in the body of its `VarDef` (its own shape excluded); each as what it is: iterators and sizes as `Var`
//!   (i64; f64 over the reals), tensors as `Load`, `Store`, `ReduceTo` of their type.
//! - `BoundOnce`: a symbol is bound by one size, parameter, result, `VarDef` or loop.
//! - `UniqueIds`: no two statements have one id.
//! - `NestedSeq`: no `Seq` stands directly in a `Seq`.
//! - `Literal`: a constant is of its expression's type, in range, and rounded to it.
//! - `Operands`: an operator has as many operands as its row says, in its domain, all of one type (but for the
//!   condition of `select`, which is `bool`), and its result has the type that follows.
//! - `Index`: indices, bounds and steps of loops are i64 (an index along real dimensions is f64).
//! - `Dimensions`: an access has one index for each dimension.
//! - `Condition`: conditions of `If`, `Assert`, `Assume` and `While` are `bool`.
//! - `StoredType`: what is stored or combined has the tensor's type.
//! - `Reduction`: a reduction's operator takes the tensor's type.
//! - `Library`: a loop that is a library's runs in no other special way.
//! - `ReadOnly`: a parameter that is not `inout` is not written.
//! - `Protocol`: only what is read says how it is found.
//! - `Shape`: shapes are i64.
//! - `Interface`: shapes of parameters and results mention sizes only.
//! - `Format`: a format has one level for each dimension, and halves of matrices are halves of square ones.
//! - `Role`: parameters have the role of their mode, results are results, and a `VarDef` is neither.
//! - `LogicalOnly`: there is no `While`.

use super::checker::Checker;
use super::{Invalid, Invariant};
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
        if matches!(s.kind(), StmtKind::While { .. }) {
            checker.violation(Invariant::LogicalOnly, s.origin(), "a statement that only structured lowering makes");
        }
    });
    checker.finish()
}
