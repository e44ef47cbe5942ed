//! Printer of constants: the shortest text that reads back as the same value, with its precedence.

use crate::dtype::DType;
use crate::literal::Literal;

/// Text with the precedence of its outermost operator.
pub(super) type Bound = (String, u8);

/// Precedence of text that never needs parentheses.
pub(super) const ATOM: u8 = 20;

/// Precedence of unary minus.
pub(super) const UNARY: u8 = 11;

pub(super) fn literal(v: Literal, dtype: DType) -> Bound {
    let signed = |text: String| {
        let strength = if text.starts_with('-') { UNARY } else { ATOM };
        (text, strength)
    };
    match v {
        Literal::Bool(b) => (if b { "True" } else { "False" }.to_string(), ATOM),
        // The digits without their sign exceed i64.
        Literal::Int(i) if i == i128::from(i64::MIN) => (format!("{} - 1", i + 1), 9),
        Literal::Int(i) if is_wide(v) => (format!("cast({}, {dtype})", i - (1 << 64)), ATOM),
        Literal::Int(i) => signed(i.to_string()),
        Literal::Float(f) if f.is_nan() => signed(if f.is_sign_negative() { "-nan" } else { "nan" }.to_string()),
        Literal::Float(f) if f.is_infinite() => signed(if f < 0.0 { "-inf" } else { "inf" }.to_string()),
        Literal::Float(f) => signed(float(f, dtype)),
    }
}

/// Formats the shortest text that is read back, through f64, as the same number of the type.
pub(super) fn float(f: f64, dtype: DType) -> String {
    let long = format!("{f:?}");
    if dtype == DType::F64 {
        return long;
    }
    let short = format!("{:?}", f as f32);
    match short.parse::<f64>() {
        Ok(read) if f64::from(read as f32) == f => short,
        _ => long,
    }
}

/// Returns whether an integer exceeds i64, and is always printed with a cast.
pub(super) fn is_wide(v: Literal) -> bool {
    matches!(v, Literal::Int(i) if i > i128::from(i64::MAX))
}

/// Returns whether bare literals, sizes and iterators have this type.
pub(super) fn is_native(dtype: DType) -> bool {
    matches!(dtype, DType::Bool | DType::I64 | DType::F64)
}

/// Prints a constant of a type.
pub(crate) fn text(v: Literal, dtype: DType) -> String {
    literal(v, dtype).0
}
