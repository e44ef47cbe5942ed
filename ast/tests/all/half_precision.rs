//! Conversion of wider floats to 16 bits.

use half::{bf16, f16};
use taffeta_ast::half_precision::{to_bf16, to_f16};

/// Returns whether `v` is nearer to `got` than to its neighbours, or as near and `got` is even, by exact
/// arithmetic.
fn is_nearest(v: f64, got: u16, value: impl Fn(u16) -> f64) -> bool {
    let distance = |bits: u16| (value(bits) - v).abs();
    [got.wrapping_sub(1), got + 1].into_iter().filter(|b| value(*b).is_finite()).all(|b| {
        let (mine, other) = (distance(got), distance(b));
        mine < other || (mine == other && got.is_multiple_of(2))
    })
}

#[test]
fn rounds_ties_and_their_neighbours() {
    let f16_value = |b: u16| f16::from_bits(b).to_f64();
    let bf16_value = |b: u16| bf16::from_bits(b).to_f64();
    for bits in (0x0001..0x7bff).step_by(7) {
        let tie = (f16_value(bits) + f16_value(bits + 1)) / 2.0;
        for v in [tie.next_down(), tie, tie.next_up()] {
            assert!(is_nearest(v, to_f16(v).to_bits(), f16_value), "{v:e}");
            assert_eq!(to_f16(-v), -to_f16(v));
        }
    }
    for bits in (0x0001..0x7f7f).step_by(7) {
        let tie = (bf16_value(bits) + bf16_value(bits + 1)) / 2.0;
        for v in [tie.next_down(), tie, tie.next_up()] {
            assert!(is_nearest(v, to_bf16(v).to_bits(), bf16_value), "{v:e}");
        }
    }
}

#[test]
fn rounds_at_the_ends_of_the_range() {
    assert_eq!(to_f16(65_519.999_999).to_f64(), 65504.0);
    assert_eq!(to_f16(65520.0), f16::INFINITY);
    assert_eq!(to_f16(1e300), f16::INFINITY);
    assert_eq!(to_bf16(-1e300), bf16::NEG_INFINITY);
    assert_eq!(to_f16(1e-300).to_bits(), 0);
    assert_eq!(to_f16(-1e-300).to_bits(), 0x8000);
    assert!(to_f16(f64::NAN).is_nan() && to_bf16(f64::NAN).is_nan());
    assert_eq!(to_f16(f64::NEG_INFINITY), f16::NEG_INFINITY);
}
