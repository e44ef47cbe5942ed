//! Conversion of wider floats to `f16` and `bf16` with a single rounding, to nearest, ties to even.
//!
//! The conversions of the crate `half` from `f64` truncate before they round, so they may round twice.

use half::{bf16, f16};

/// Converts `v` to `f16`.
pub fn to_f16(v: f64) -> f16 {
    f16::from_f32(to_odd(v))
}

/// Converts `v` to `bf16`.
pub fn to_bf16(v: f64) -> bf16 {
    bf16::from_f32(to_odd(v))
}

/// Rounds `v` to odd: truncates to `f32`, and sets the last bit if the conversion is inexact. The result rounds to the
/// same shorter float as `v`, because an inexact result is odd and hence never a tie.
fn to_odd(v: f64) -> f32 {
    let near = v as f32;
    if v.is_nan() || f64::from(near) == v {
        return near;
    }
    let beyond = f64::from(near).abs() > v.abs();
    f32::from_bits((near.to_bits() - u32::from(beyond)) | 1)
}
