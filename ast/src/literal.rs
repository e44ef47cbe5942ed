//! Constants of expressions, and the functions that round or wrap them to an element type.

use crate::dtype::{DType, Kind};
use std::hash::{Hash, Hasher};

/// Constant; the expression that holds it has its type.
#[derive(Clone, Copy, Debug)]
pub enum Literal {
    /// Value of type `bool`.
    Bool(bool),
    /// Value of an integer type, in its range.
    Int(i128),
    /// Value of a floating-point type, already rounded to it.
    Float(f64),
}

impl Literal {
    /// Returns 0 (or false) of that type.
    pub fn zero(dtype: DType) -> Literal {
        match dtype.kind() {
            Kind::Bool => Literal::Bool(false),
            Kind::Int => Literal::Int(0),
            Kind::Float => Literal::Float(0.0),
        }
    }

    /// Returns whether two elements may share one stored value: all NaNs are equal, and 0 differs from -0.
    pub fn is_same(self, other: Literal) -> bool {
        match (self, other) {
            (Literal::Float(a), Literal::Float(b)) => a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan(),
            _ => self == other,
        }
    }
}

impl PartialEq for Literal {
    /// Compares bit by bit: NaN equals itself, and -0 differs from 0.
    fn eq(&self, other: &Literal) -> bool {
        match (self, other) {
            (Literal::Bool(a), Literal::Bool(b)) => a == b,
            (Literal::Int(a), Literal::Int(b)) => a == b,
            (Literal::Float(a), Literal::Float(b)) => a.to_bits() == b.to_bits(),
            _ => false,
        }
    }
}

impl Eq for Literal {}

impl Hash for Literal {
    fn hash<H: Hasher>(&self, h: &mut H) {
        match self {
            Literal::Bool(b) => b.hash(h),
            Literal::Int(i) => i.hash(h),
            Literal::Float(f) => f.to_bits().hash(h),
        }
    }
}

/// Rounds `v` to the precision of `dtype`.
pub fn round_to(v: f64, dtype: DType) -> f64 {
    match dtype {
        DType::F32 => f64::from(v as f32),
        DType::F16 => crate::half_precision::to_f16(v).to_f64(),
        DType::Bf16 => crate::half_precision::to_bf16(v).to_f64(),
        _ => v,
    }
}

/// Wraps an integer into the range of `dtype`.
pub fn wrap_to(v: i128, dtype: DType) -> i128 {
    match dtype.int_range() {
        Some((lo, hi)) if v < lo || v > hi => {
            // Reduction modulo 2^128 first (a multiple of the type's own modulus) keeps the difference from
            // overflowing.
            let modulus = (hi - lo) as u128 + 1;
            lo + ((v as u128).wrapping_sub(lo as u128) % modulus) as i128
        }
        _ => v,
    }
}

pub(crate) fn int_to_float(i: i128, dtype: DType) -> f64 {
    match dtype {
        // The conversion goes straight to f32: through f64 it would round twice.
        DType::F32 => f64::from(i as f32),
        _ => round_to(i as f64, dtype),
    }
}
