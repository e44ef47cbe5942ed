//! Directional derivatives by finite differences: central differences at decreasing steps, extrapolated to step 0
//! (Richardson), with detection of kinks by the one-sided differences.

use itertools::Itertools as _;

/// Floating-point precision of a program, with the tolerances that follow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Precision {
    /// Distance from 1 to the next number.
    pub epsilon: f64,
    /// Initial steps in descending order; the first whose differences settle is used. Large steps are accurate where
    /// the program is smooth, small ones do not reach the next kink.
    pub steps: [f64; 3],
    /// Tolerance between finite differences and a gradient, relative to the scale of the summed terms.
    pub differences: f64,
    /// Tolerance between forward and reverse mode.
    pub modes: f64,
}

impl Precision {
    pub const DOUBLE: Precision =
        Precision { epsilon: f64::EPSILON, steps: [1e-2, 1e-4, 1e-6], differences: 1e-6, modes: 1e-9 };
    pub const SINGLE: Precision =
        Precision { epsilon: f32::EPSILON as f64, steps: [1e-1, 1e-2, 1e-3], differences: 1e-2, modes: 1e-3 };
}

/// Derivative of `Σ seeds * f` along a line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Difference {
    pub value: f64,
    /// Sum of the absolute changes, which errors are relative to.
    pub scale: f64,
    /// Distance between extrapolations of different orders.
    pub estimate: f64,
    /// Distance between the plain differences at the smallest steps: a rough bound on the error, whatever the
    /// extrapolation estimates.
    pub spread: f64,
    /// Error from rounding of the results alone, at the smallest step.
    pub rounding: f64,
    /// Whether the one-sided derivatives differ.
    pub kink: bool,
    /// Whether the estimate is small enough for a comparison.
    pub settled: bool,
}

/// Number of steps from an initial one.
const LEVELS: usize = 4;
/// Ratio of successive steps. Not 2: halved numbers round alike, which would hide rounding errors.
const RATIO: f64 = 1.7;

/// Returns the difference of the first initial step that settles without a kink, or else the one with the smallest
/// relative estimate; `None` if the program has no finite results on both sides at any step. `f` takes the distance
/// from the point, where the results are `base`.
pub(super) fn along<E>(
    mut f: impl FnMut(f64) -> Result<Vec<f64>, E>,
    base: &[f64],
    seeds: &[f64],
    steps: &[f64],
    precision: &Precision,
) -> Result<Option<Difference>, E> {
    let mut best: Option<Difference> = None;
    for step in steps {
        let Some(found) = at_scale(&mut f, base, seeds, *step, precision)? else { continue };
        if found.scale == 0.0 && best.is_some_and(|b| b.scale > 0.0) {
            // A step without any change is lost in rounding.
            continue;
        }
        if found.settled && !found.kink {
            return Ok(Some(found));
        }
        let inexact = |d: &Difference| d.estimate / d.scale.max(f64::MIN_POSITIVE);
        if best.is_none_or(|b| inexact(&found) < inexact(&b)) {
            best = Some(found);
        }
    }
    Ok(best)
}

/// Computes the difference of one initial step; `None` unless all results are finite.
fn at_scale<E>(
    f: &mut impl FnMut(f64) -> Result<Vec<f64>, E>,
    base: &[f64],
    seeds: &[f64],
    step: f64,
    precision: &Precision,
) -> Result<Option<Difference>, E> {
    let (mut central, mut jumps) = ([0.0; LEVELS], [0.0; LEVELS]);
    let (mut scale, mut rounding) = (0f64, 0f64);
    for level in 0..LEVELS {
        let h = step / RATIO.powi(level as i32);
        let (above, below) = (f(h)?, f(-h)?);
        let (mut variation, mut size) = (0.0, 0.0);
        for (((p, m), b), s) in above.iter().zip_eq(&below).zip_eq(base).zip_eq(seeds) {
            central[level] += s * (p - m) / (2.0 * h);
            jumps[level] += s * ((p - b) - (b - m)) / h;
            variation += (s * (p - b) / (2.0 * h)).abs() + (s * (b - m) / (2.0 * h)).abs();
            size += s.abs() * p.abs().max(m.abs()).max(b.abs());
        }
        if !central[level].is_finite() || !size.is_finite() {
            return Ok(None);
        }
        scale = scale.max(variation);
        rounding = precision.epsilon * size / h;
    }
    let (value, estimate) = extrapolated(central);
    let spread = central[1..].windows(2).map(|pair| (pair[1] - pair[0]).abs()).fold(0f64, f64::max);
    let jump = jump_at_zero(jumps);
    let mut kink = jump > precision.differences * scale + 128.0 * rounding + 16.0 * estimate;
    // A difference that is as large over small steps as over large ones is a jump, unless it is rounding.
    let over = |level: usize| (central[level] / RATIO.powi(level as i32)).abs();
    kink |= over(LEVELS - 1) > 0.9 * over(0) && central[LEVELS - 1].abs() > 64.0 * rounding;
    let settled = estimate <= precision.differences / 4.0 * scale + 16.0 * rounding;
    Ok(Some(Difference { value, scale, estimate, spread, rounding, kink, settled }))
}

/// Returns the distance between the one-sided derivatives at step 0; 0 if they converge there, at any order.
///
/// Where the program is smooth, the two sides differ by powers of the step. The first and second powers are eliminated;
/// the remainder is a jump if it is as large at smaller steps as at larger ones. Higher powers (the only ones in
/// `abs(x) ** 3` and in products of zeros) and roots change with the step.
fn jump_at_zero(jumps: [f64; LEVELS]) -> f64 {
    let without = |order: i32, a: f64, b: f64| (RATIO.powi(order) * b - a) / (RATIO.powi(order) - 1.0);
    let left = |level: usize| {
        let [a, b, c] = [jumps[level - 2], jumps[level - 1], jumps[level]];
        without(2, without(1, a, b), without(1, b, c))
    };
    let (larger, smaller) = (left(LEVELS - 2), left(LEVELS - 1));
    if (larger - smaller).abs() <= 0.15 * smaller.abs() { smaller.abs() } else { 0.0 }
}

/// Extrapolates by Richardson's method, choosing the order that changes least (Ridders). Returns the value and an error
/// estimate: the distance to lower orders and to the best value at larger steps, or the distance between the highest
/// orders if that is larger, since some orders agree by accident where numbers are rounded to few values.
fn extrapolated(central: [f64; LEVELS]) -> (f64, f64) {
    let (mut value, mut estimate) = (central[LEVELS - 1], f64::INFINITY);
    let (mut before, mut highest) = (vec![central[0]], 0.0);
    for (level, first) in central.iter().enumerate().skip(1) {
        let mut row = vec![*first];
        let mut factor = RATIO * RATIO;
        for (k, older) in before.iter().enumerate() {
            let better = row[k] + (row[k] - older) / (factor - 1.0);
            let others = [row[k], *older, before[before.len() - 1]];
            let apart = others.iter().fold(0f64, |apart, other| apart.max((better - other).abs()));
            if level > 1 && apart <= estimate {
                (value, estimate) = (better, apart);
            }
            row.push(better);
            factor *= RATIO * RATIO;
        }
        highest = (row[level] - before[level - 1]).abs();
        before = row;
    }
    (value, estimate.max(highest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(f: impl Fn(f64) -> f64) -> Option<Difference> {
        let p = Precision::DOUBLE;
        along(|h| Ok::<_, ()>(vec![f(h)]), &[f(0.0)], &[1.0], &p.steps, &p).expect("it cannot fail")
    }

    #[test]
    fn differences_of_smooth_functions_converge() {
        for (f, expected) in [
            (&(|h: f64| (1.0 + h).exp()) as &dyn Fn(f64) -> f64, 1f64.exp()),
            (&|h| (3.0 * h).sin(), 3.0),
            (&|h| 1.0 / (1e-3 + h), -1e6),
            (&|h| (2.0 + h).powi(5), 80.0),
            (&|h| h * h, 0.0),
            (&|h| h.cosh() - 1.0, 0.0),
            (&|_| 7.0, 0.0),
        ] {
            let d = of(f).expect("it is finite");
            assert!(d.settled && !d.kink, "{d:?}");
            assert!((d.value - expected).abs() <= 1e-7 * (expected.abs() + 1e-2), "{d:?}, {expected}");
        }
    }

    #[test]
    fn kinks_are_detected_at_the_point_and_avoided_near_it() {
        assert!(of(f64::abs).expect("it is finite").kink);
        assert!(of(|h| h.max(0.0) + h * h).expect("it is finite").kink);
        assert!(of(|h| (h + 1e-9).abs()).expect("it is finite").kink);
        assert!(of(f64::floor).expect("it is finite").kink);
        let beside = of(|h| (h + 1e-3).abs()).expect("it is finite");
        assert!(beside.settled && !beside.kink && (beside.value - 1.0).abs() < 1e-9, "{beside:?}");
        assert_eq!(of(f64::sqrt), None);
        for small in [1e-4, 1e-2] {
            assert!(of(|h| small * h.abs() + h * h + h).expect("it is finite").kink);
            assert!(of(|h| small * h.abs() + h.powi(4) + h.powi(3)).expect("it is finite").kink);
        }
    }

    #[test]
    fn powers_that_vanish_on_both_sides_are_not_kinks() {
        for power in [1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0] {
            for p in [Precision::DOUBLE, Precision::SINGLE] {
                let f = |h: f64| h.abs().powf(power);
                let found = along(|h| Ok::<_, ()>(vec![f(h)]), &[0.0], &[1.0], &p.steps, &p).expect("it cannot fail");
                let found = found.expect("it is finite");
                assert!(!found.kink && found.value == 0.0, "{power}: {found:?}");
            }
        }
    }

    #[test]
    fn differences_dominated_by_rounding_do_not_converge() {
        let d = of(|h| (1e10 + h) - 1e10).expect("it is finite");
        assert!(!d.settled, "{d:?}");
    }
}
