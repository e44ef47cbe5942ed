//! Evaluation of every operator and conversion on constants: a single definition for folding in the smart constructors,
//! the simplifier, static values and the interpreter. [`crate::op`] documents the semantics; generated C agrees with
//! them.
//!
//! A scalar is a [`Literal`] with the type of the expression it belongs to: integers are in the range of their type,
//! floats rounded to it. `f32` is computed in `f32`; `f16` and `bf16` in `f32`, rounded after each operation.

use crate::dtype::{DType, Kind};
use crate::literal::{Literal, int_to_float, round_to, wrap_to};
use crate::op::Op;
use crate::show;
use std::cmp::Ordering;

/// Reason why an operation has no value.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum Fault {
    /// `1 // 0`, `1 % 0`
    #[error("division by zero")]
    DivisionByZero,
    /// Smallest integer divided by -1.
    #[error("{0} divided by -1 does not fit its type {1}")]
    DivisionOverflow(i128, DType),
    /// `1 << -1`
    #[error("shift by the negative count {0}")]
    NegativeShift(i128),
    /// `2 ** -1` on integers.
    #[error("an integer to the power of {0}, which is negative; cast to a float first")]
    NegativeExponent(i128),
    /// Float outside of the integer type's range, or NaN.
    #[error("cannot cast {} to {to}", show::value(Literal::Float(*.value), *.from))]
    Cast {
        /// Float.
        value: f64,
        /// Type of the float.
        from: DType,
        /// Integer type.
        to: DType,
    },
    /// Operands of a type that the operator does not take. Validated programs have none.
    #[error("`{0}` does not take operands of type {1}")]
    Operands(&'static str, DType),
}

/// Applies `op` to operands of type `dtype` (for `select`, the type of the last two). All operands are given; lazy
/// evaluation is up to the caller.
pub fn apply(op: Op, dtype: DType, args: &[Literal]) -> Result<Literal, Fault> {
    let value = match (op, args) {
        (Op::Select, [Literal::Bool(c), a, b]) => Some(if *c { *a } else { *b }),
        (_, [Literal::Bool(a)]) => boolean(op, *a, *a),
        (_, [Literal::Bool(a), Literal::Bool(b)]) => boolean(op, *a, *b),
        (_, [Literal::Int(a)]) => unary_int(op, dtype, *a),
        (_, [Literal::Int(a), Literal::Int(b)]) => int(op, dtype, *a, *b)?,
        (_, [Literal::Float(a)]) => float(op, dtype, [*a, 0.0, 0.0]),
        (_, [Literal::Float(a), Literal::Float(b)]) => float(op, dtype, [*a, *b, 0.0]),
        (_, [Literal::Float(a), Literal::Float(b), Literal::Float(c)]) => float(op, dtype, [*a, *b, *c]),
        _ => None,
    };
    match value {
        Some(value) => Ok(value),
        None => Err(Fault::Operands(op.info().name, dtype)),
    }
}

/// Converts `v` of type `from` to type `to`.
pub fn cast(v: Literal, from: DType, to: DType) -> Result<Literal, Fault> {
    Ok(match (v, to.kind()) {
        (Literal::Bool(_), Kind::Bool) => v,
        (Literal::Bool(b), Kind::Int) => Literal::Int(i128::from(b)),
        (Literal::Bool(b), Kind::Float) => Literal::Float(f64::from(u8::from(b))),
        (Literal::Int(i), Kind::Bool) => Literal::Bool(i != 0),
        (Literal::Int(i), Kind::Int) => Literal::Int(wrap_to(i, to)),
        (Literal::Int(i), Kind::Float) => Literal::Float(int_to_float(i, to)),
        (Literal::Float(f), Kind::Bool) => Literal::Bool(f != 0.0),
        (Literal::Float(f), Kind::Float) => Literal::Float(round_to(f, to)),
        (Literal::Float(f), Kind::Int) => {
            // `as` truncates, and saturates far outside of every type's range.
            let i = f as i128;
            if f.is_nan() || to.int_range().is_none_or(|(lo, hi)| i < lo || i > hi) {
                return Err(Fault::Cast { value: f, from, to });
            }
            Literal::Int(i)
        }
    })
}

fn compare(op: Op, order: Option<Ordering>) -> Option<Literal> {
    use Ordering::{Equal, Greater, Less};
    // Unordered operands (NaN) compare false, except for `!=`.
    let holds = match op {
        Op::Eq => order == Some(Equal),
        Op::Ne => order != Some(Equal),
        Op::Lt => order == Some(Less),
        Op::Le => matches!(order, Some(Less | Equal)),
        Op::Gt => order == Some(Greater),
        Op::Ge => matches!(order, Some(Greater | Equal)),
        _ => return None,
    };
    Some(Literal::Bool(holds))
}

fn boolean(op: Op, a: bool, b: bool) -> Option<Literal> {
    Some(Literal::Bool(match op {
        Op::And | Op::BitAnd => a & b,
        Op::Or | Op::BitOr => a | b,
        Op::BitXor | Op::Ne => a != b,
        Op::Eq => a == b,
        Op::Not | Op::BitNot => !a,
        _ => return None,
    }))
}

fn unary_int(op: Op, dtype: DType, a: i128) -> Option<Literal> {
    exact_unary(op, a).map(|value| Literal::Int(wrap_to(value, dtype)))
}

/// Applies an operator to an integer without wrapping; `None` where the operator does not take integers.
pub fn exact_unary(op: Op, a: i128) -> Option<i128> {
    Some(match op {
        Op::Neg => -a,
        Op::BitNot => !a,
        Op::Abs => a.abs(),
        Op::Sign => a.signum(),
        _ => return None,
    })
}

/// Integer result of an operator, before wrapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exact {
    /// Value.
    Value(i128),
    /// Value of more than 128 bits.
    Overflow,
}

/// Applies an operator to integers of at most 65 bits without wrapping; `None` where the result is not an integer
/// (comparisons) or the operator does not take integers.
pub fn exact_int(op: Op, a: i128, b: i128) -> Result<Option<Exact>, Fault> {
    let checked = |value: Option<i128>| value.map_or(Exact::Overflow, Exact::Value);
    Ok(Some(match op {
        Op::Add => Exact::Value(a + b),
        Op::Sub => Exact::Value(a - b),
        Op::Mul => match (i64::try_from(a), i64::try_from(b)) {
            // A checked product of 128 bits is a slow call.
            (Ok(_), Ok(_)) => Exact::Value(a * b),
            _ => checked(a.checked_mul(b)),
        },
        Op::FloorDiv | Op::Mod if b == 0 => return Err(Fault::DivisionByZero),
        Op::FloorDiv => Exact::Value(floor_div(a, b)),
        Op::Mod => Exact::Value(a - b * floor_div(a, b)),
        Op::Pow if b < 0 => return Err(Fault::NegativeExponent(b)),
        Op::Pow => checked(u32::try_from(b).ok().and_then(|b| a.checked_pow(b))),
        Op::Shl | Op::Shr if b < 0 => return Err(Fault::NegativeShift(b)),
        Op::Shl => checked(u32::try_from(b).ok().filter(|b| *b < 127).and_then(|b| a.checked_mul(1i128 << b))),
        Op::Shr => Exact::Value(a >> b.min(127)),
        Op::Min => Exact::Value(a.min(b)),
        Op::Max => Exact::Value(a.max(b)),
        Op::BitAnd => Exact::Value(a & b),
        Op::BitOr => Exact::Value(a | b),
        Op::BitXor => Exact::Value(a ^ b),
        _ => return Ok(None),
    }))
}

fn int(op: Op, dtype: DType, a: i128, b: i128) -> Result<Option<Literal>, Fault> {
    let wrapped = |value: i128| Ok(Some(Literal::Int(wrap_to(value, dtype))));
    match op {
        Op::FloorDiv | Op::Mod if b == -1 && dtype.int_range().is_some_and(|(lo, _)| a == lo) => {
            return Err(Fault::DivisionOverflow(a, dtype));
        }
        // All bits are shifted out.
        Op::Shl if b >= dtype.size() as i128 * 8 => return wrapped(0),
        // Wrapping needs only the lowest bits, which are exact modulo 2^128.
        Op::Pow if b >= 0 => return wrapped(power(a, b)),
        _ => {}
    }
    match exact_int(op, a, b)? {
        Some(Exact::Value(value)) => wrapped(value),
        // Only products can overflow here.
        Some(Exact::Overflow) => wrapped(a.wrapping_mul(b)),
        None => Ok(compare(op, Some(a.cmp(&b)))),
    }
}

/// Divides and rounds down, for nonzero `b` and operands of at most 65 bits.
fn floor_div(a: i128, b: i128) -> i128 {
    let (q, r) = match (i64::try_from(a), i64::try_from(b)) {
        // A division of 128 bits is a slow call.
        (Ok(x), Ok(y)) if y != -1 => (i128::from(x / y), i128::from(x % y)),
        _ => (a / b, a % b),
    };
    if r != 0 && (a < 0) != (b < 0) { q - 1 } else { q }
}

/// Computes `base ** exponent` modulo 2^128, for a nonnegative exponent.
fn power(mut base: i128, mut exponent: i128) -> i128 {
    let mut product = 1i128;
    while exponent > 0 {
        if exponent & 1 == 1 {
            product = product.wrapping_mul(base);
        }
        base = base.wrapping_mul(base);
        exponent >>= 1;
    }
    product
}

fn float(op: Op, dtype: DType, [a, b, c]: [f64; 3]) -> Option<Literal> {
    if op.is_comparison() {
        return compare(op, a.partial_cmp(&b));
    }
    if op == Op::IsNan {
        return Some(Literal::Bool(a.is_nan()));
    }
    let value = match dtype {
        DType::F64 => in_f64(op, a, b, c)?,
        _ => round_to(f64::from(in_f32(op, a as f32, b as f32, c as f32)?), dtype),
    };
    Some(Literal::Float(value))
}

macro_rules! float_operators {
    ($name:ident, $t:ty) => {
        fn $name(op: Op, a: $t, b: $t, c: $t) -> Option<$t> {
            /// Computes the remainder as NumPy does: with the sign of the divisor, even for a zero.
            fn modulo(a: $t, b: $t) -> $t {
                let r = a % b;
                if b == 0.0 || r.is_nan() {
                    r
                } else if r == 0.0 {
                    (0.0 as $t).copysign(b)
                } else if (b < 0.0) != (r < 0.0) {
                    r + b
                } else {
                    r
                }
            }
            /// Divides as NumPy does: from the remainder, so that both agree where `a / b` would round up.
            fn floor_divide(a: $t, b: $t) -> $t {
                if b == 0.0 {
                    return a / b;
                }
                let r = a % b;
                let mut q = (a - r) / b;
                if r != 0.0 && (b < 0.0) != (r < 0.0) {
                    q -= 1.0;
                }
                if q == 0.0 {
                    return (0.0 as $t).copysign(a / b);
                }
                let floor = q.floor();
                if q - floor > 0.5 { floor + 1.0 } else { floor }
            }
            Some(match op {
                Op::Add => a + b,
                Op::Sub => a - b,
                Op::Mul => a * b,
                Op::Div => a / b,
                Op::FloorDiv => floor_divide(a, b),
                Op::Mod => modulo(a, b),
                Op::Neg => -a,
                Op::Min => {
                    if a < b || a.is_nan() {
                        a
                    } else {
                        b
                    }
                }
                Op::Max => {
                    if a > b || a.is_nan() {
                        a
                    } else {
                        b
                    }
                }
                Op::Sign => {
                    if a > 0.0 {
                        1.0
                    } else if a < 0.0 {
                        -1.0
                    } else if a == 0.0 {
                        0.0
                    } else {
                        a
                    }
                }
                _ => return Some(op.info().function?.$name([a, b, c])),
            })
        }
    };
}

float_operators!(in_f64, f64);
float_operators!(in_f32, f32);
