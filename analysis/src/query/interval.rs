//! Abstract values of a single integer: an interval and a residue class. Both over-approximate, and saturate instead of
//! overflowing, so that every operation is total.

/// Absence of a bound: far beyond every value of a program and every sum of a few hundred products of them.
pub(crate) const INFINITY: i128 = 1 << 120;

/// Integers `lo <= v <= hi`. A bound at or beyond `INFINITY` is open. Empty if `lo > hi`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// Smallest value.
    pub lo: i128,
    /// Largest value.
    pub hi: i128,
}

fn clamp(v: i128) -> i128 {
    v.clamp(-INFINITY, INFINITY)
}

/// Returns `a * b`, where infinities absorb everything but 0.
fn times(a: i128, b: i128) -> i128 {
    clamp(a.saturating_mul(b))
}

impl Interval {
    /// All integers.
    pub const ALL: Interval = Interval { lo: -INFINITY, hi: INFINITY };

    /// Returns the interval from `lo` to `hi`, both included.
    pub fn new(lo: i128, hi: i128) -> Interval {
        Interval { lo: clamp(lo), hi: clamp(hi) }
    }

    /// Returns the interval of one value.
    pub fn point(v: i128) -> Interval {
        Interval::new(v, v)
    }

    /// Returns the value, if there is only one.
    pub fn as_point(self) -> Option<i128> {
        (self.lo == self.hi).then_some(self.lo)
    }

    /// Returns whether the interval is empty.
    pub fn is_empty(self) -> bool {
        self.lo > self.hi
    }

    /// Returns whether every value of `self` is in `other`.
    pub fn within(self, other: Interval) -> bool {
        self.lo >= other.lo && self.hi <= other.hi
    }

    /// Returns the intersection.
    pub fn meet(self, other: Interval) -> Interval {
        Interval { lo: self.lo.max(other.lo), hi: self.hi.min(other.hi) }
    }

    /// Returns the smallest interval that contains both.
    pub fn join(self, other: Interval) -> Interval {
        Interval { lo: self.lo.min(other.lo), hi: self.hi.max(other.hi) }
    }

    /// Returns the interval of sums.
    pub fn plus(self, other: Interval) -> Interval {
        // An infinite bound absorbs every summand.
        let add = |a: i128, b: i128| if a.abs() >= INFINITY { a } else { clamp(a + b) };
        let lo = if other.lo <= -INFINITY { -INFINITY } else { add(self.lo, other.lo) };
        let hi = if other.hi >= INFINITY { INFINITY } else { add(self.hi, other.hi) };
        Interval { lo, hi }
    }

    /// Returns the interval of multiples by a constant.
    pub fn scale(self, k: i128) -> Interval {
        if k == 0 {
            return Interval::point(0);
        }
        let (a, b) = (times(self.lo, k), times(self.hi, k));
        Interval { lo: a.min(b), hi: a.max(b) }
    }

    /// Returns the interval of products.
    pub fn multiply(self, other: Interval) -> Interval {
        let all =
            [times(self.lo, other.lo), times(self.lo, other.hi), times(self.hi, other.lo), times(self.hi, other.hi)];
        Interval { lo: all.into_iter().fold(INFINITY, i128::min), hi: all.into_iter().fold(-INFINITY, i128::max) }
    }

    /// Returns the interval of floored quotients by a positive constant.
    pub fn floor_div(self, k: i128) -> Interval {
        let div = |a: i128| if a.abs() >= INFINITY { a } else { a.div_euclid(k) };
        Interval { lo: div(self.lo), hi: div(self.hi) }
    }
}

/// Integers `v` with `v ≡ residue (mod modulus)`. Modulus 0 means the residue itself, modulus 1 every integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Congruence {
    /// Modulus, at least 0.
    pub modulus: i128,
    /// Residue, in `0..modulus` where the modulus is not 0.
    pub residue: i128,
}

/// Returns the greatest common divisor, at least 0; `gcd(0, a) = |a|`.
pub(crate) fn gcd(a: i128, b: i128) -> i128 {
    let (mut a, mut b) = (a.abs(), b.abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

impl Congruence {
    /// All integers.
    pub const ALL: Congruence = Congruence { modulus: 1, residue: 0 };

    /// Returns the class of one value.
    pub fn point(v: i128) -> Congruence {
        Congruence { modulus: 0, residue: v }
    }

    /// Returns the class `v ≡ residue (mod modulus)`, for a modulus of at least 0.
    pub fn new(modulus: i128, residue: i128) -> Congruence {
        match modulus {
            0 => Congruence::point(residue),
            m if m >= INFINITY => Congruence::ALL,
            m => Congruence { modulus: m, residue: residue.rem_euclid(m) },
        }
    }

    /// Returns a class that contains all sums.
    pub fn plus(self, other: Congruence) -> Congruence {
        match self.residue.checked_add(other.residue) {
            Some(r) => Congruence::new(gcd(self.modulus, other.modulus), r),
            None => Congruence::ALL,
        }
    }

    /// Returns a class that contains all multiples by a constant.
    pub fn scale(self, k: i128) -> Congruence {
        match (self.modulus.checked_mul(k), self.residue.checked_mul(k)) {
            (Some(m), Some(r)) => Congruence::new(m.abs(), r),
            _ => Congruence::ALL,
        }
    }

    /// Returns a class that contains all products.
    pub fn multiply(self, other: Congruence) -> Congruence {
        let product = || {
            let m = gcd(
                gcd(self.modulus.checked_mul(other.residue)?, other.modulus.checked_mul(self.residue)?),
                self.modulus.checked_mul(other.modulus)?,
            );
            Some(Congruence::new(m, self.residue.checked_mul(other.residue)?))
        };
        product().unwrap_or(Congruence::ALL)
    }

    /// Returns the smallest class that contains both.
    pub fn join(self, other: Congruence) -> Congruence {
        match self.residue.checked_sub(other.residue) {
            Some(d) => Congruence::new(gcd(gcd(self.modulus, other.modulus), d), self.residue),
            None => Congruence::ALL,
        }
    }

    /// Returns the remainder of every value by `m > 0`, if all have the same one.
    pub fn remainder(self, m: i128) -> Option<i128> {
        (self.modulus % m == 0).then(|| self.residue.rem_euclid(m))
    }
}
