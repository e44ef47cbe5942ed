//! How values print in messages: the same text from the interpreter and from generated C.
//!
//! - Integers in decimal; `bool` as `True` and `False`.
//! - Floats: the first of `%.6g`, `%.7g`, … `%.17g` of C that reads back as the same number of the type (`f16` and
//!   `bf16` as `f32`); `inf`, `-inf`, and `nan` without a sign.

use crate::dtype::DType;
use crate::expr::Literal;

/// The text of a value of type `dtype`.
pub fn value(v: Literal, dtype: DType) -> String {
    match v {
        Literal::Bool(b) => if b { "True" } else { "False" }.to_string(),
        Literal::Int(i) => i.to_string(),
        Literal::Float(f) => float(f, dtype),
    }
}

fn float(f: f64, dtype: DType) -> String {
    if f.is_nan() {
        return "nan".to_string();
    }
    if f.is_infinite() {
        return if f < 0.0 { "-inf" } else { "inf" }.to_string();
    }
    let reads_back = |text: &str| {
        if dtype == DType::F64 { text.parse() == Ok(f) } else { text.parse() == Ok(f as f32) }
    };
    let digits = (6..17).find(|p| reads_back(&general(f, *p))).unwrap_or(17);
    general(f, digits)
}

/// C's `%.{digits}g`.
fn general(f: f64, digits: usize) -> String {
    let scientific = format!("{f:.*e}", digits - 1);
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return scientific };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if exponent < -4 || exponent >= digits as i32 {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", trim(mantissa), exponent.abs());
    }
    trim(&format!("{f:.*}", (digits as i32 - 1 - exponent) as usize)).to_string()
}

/// Without zeros at the end of the fraction.
fn trim(number: &str) -> &str {
    if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number }
}
