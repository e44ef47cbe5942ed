//! Constant folding of floats, exactly as the program would compute, in the type of the expression; otherwise no
//! folding.
//!
//! Only operations that IEEE 754 rounds correctly are folded (`OpInfo::exact`). A NaN result is left to the program, so
//! that no output depends on how a NaN is written; so are `min` and `max` of zeros of both signs.

use taffeta_ast::expr::Literal;
use taffeta_ast::op::Op;
use taffeta_ast::scalar;
use taffeta_ast::{DType, Expr};

/// Evaluates an operator on constants of a floating-point type.
pub fn fold(op: Op, args: &[Expr]) -> Option<Expr> {
    let values: Vec<Literal> = args.iter().map(Expr::as_literal).collect::<Option<_>>()?;
    let dtype = args.first()?.dtype();
    if !op.info().exact || !dtype.is_float() {
        return None;
    }
    match (op, &values[..]) {
        (Op::Min | Op::Max, [Literal::Float(a), Literal::Float(b)]) if a == b => return None,
        _ => {}
    }
    match scalar::apply(op, dtype, &values).ok()? {
        Literal::Float(f) if f.is_nan() => None,
        value => Some(Expr::literal(value, op.result(dtype))),
    }
}

/// Evaluates a cast of a constant from float to integer, unless it stops the program.
pub fn to_int(value: &Expr, dtype: DType) -> Option<Expr> {
    let folded = scalar::cast(value.as_literal()?, value.dtype(), dtype).ok()?;
    dtype.is_int().then(|| Expr::literal(folded, dtype))
}
