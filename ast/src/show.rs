//! Display of values in messages: the interpreter and generated C print the same text.
//!
//! - Integers in decimal; `bool` as `True` and `False`.
//! - Floats: the first of C's `%.6g`, `%.7g`, … `%.17g` that reads back as the same number of the type (`f16` and
//!   `bf16` as `f32`); `inf`, `-inf`, and `nan` without a sign.
//! - Tensors as NumPy prints them, but without aligned columns: brackets for each dimension, one line per row, and
//!   above 1000 elements the first three and last three of each dimension.

use crate::dtype::DType;
use crate::literal::Literal;
use crate::value::Value;
use std::convert::Infallible;
use std::fmt;

/// Formats a value of type `dtype`.
pub fn value(v: Literal, dtype: DType) -> String {
    match v {
        Literal::Bool(b) => if b { "True" } else { "False" }.to_string(),
        Literal::Int(i) => i.to_string(),
        Literal::Float(f) => float(f, dtype),
    }
}

/// Formats a dense value like [`tensor`]. A sparse one shows its type and number of stored elements, then these with
/// their indices: all of them, or the first and the last ones.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let element = |k: usize| value(self.data().get(k), self.dtype());
        let Some(places) = self.places() else {
            let text = tensor(self.shape(), &mut |k| Ok::<_, Infallible>(element(k)));
            return f.write_str(&text.unwrap_or_else(|never| match never {}));
        };
        let join = |numbers: Vec<String>| numbers.join(", ");
        let dims = join(self.shape().iter().map(usize::to_string).collect());
        let count = self.data().len();
        let stored = if count == 1 { "1 element".to_string() } else { format!("{count} elements") };
        write!(f, "{}[{dims}], {stored} stored, all others {}", self.dtype(), value(places.fill, self.dtype()))?;
        for (k, at) in places.indices.chunks_exact(self.shape().len()).enumerate() {
            if count > 4 * EDGE && (2 * EDGE..count - EDGE).contains(&k) {
                if k == 2 * EDGE {
                    f.write_str("\n...")?;
                }
                continue;
            }
            write!(f, "\n({}) {}", join(at.iter().map(i64::to_string).collect()), element(k))?;
        }
        Ok(())
    }
}

/// Maximum number of elements of a tensor that is shown whole.
const MAX_SHOWN: usize = 1000;
/// Number of elements shown at either end of each dimension of a larger tensor.
const EDGE: usize = 3;

/// Formats a tensor; `element` formats one element, given its row-major offset.
///
/// # Errors
///
/// The first error of `element`.
pub fn tensor<E>(shape: &[usize], element: &mut dyn FnMut(usize) -> Result<String, E>) -> Result<String, E> {
    if shape.contains(&0) {
        return Ok("[]".to_string());
    }
    let all = shape.iter().fold(1usize, |n, d| n.saturating_mul(*d)) <= MAX_SHOWN;
    let mut out = String::new();
    below(shape, 0, 0, all, element, &mut out)?;
    Ok(out)
}

fn below<E>(
    shape: &[usize],
    dim: usize,
    start: usize,
    all: bool,
    element: &mut dyn FnMut(usize) -> Result<String, E>,
    out: &mut String,
) -> Result<(), E> {
    let Some(&size) = shape.get(dim) else {
        out.push_str(&element(start)?);
        return Ok(());
    };
    let stride: usize = shape[dim + 1..].iter().product();
    let rest = shape.len() - dim - 1;
    let next = if rest == 0 { " ".to_string() } else { "\n".repeat(rest) + &" ".repeat(dim + 1) };
    out.push('[');
    let mut k = 0;
    while k < size {
        if k > 0 {
            out.push_str(&next);
        }
        if !all && k == EDGE && size > 2 * EDGE {
            out.push_str("...");
            k = size - EDGE;
            continue;
        }
        below(shape, dim + 1, start + k * stride, all, element, out)?;
        k += 1;
    }
    out.push(']');
    Ok(())
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

/// Formats like C's `%.{digits}g`.
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

/// Strips trailing zeros of the fraction.
fn trim(number: &str) -> &str {
    if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number }
}
