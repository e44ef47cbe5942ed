//! Linear forms over atoms, the provers' representation of integers. Coefficients are checked: an operation whose
//! result is too large returns `None`, for unknown.

use super::interval::gcd;

/// Opaque mathematical integer: a size, an iterator, an element of a tensor, a product of atoms … Numbered by a
/// [`super::Context`], in order of first appearance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Atom(pub(crate) u32);

/// Upper limit of coefficients, so that sums of their products with values fit i128 with room to spare.
const LARGEST: i128 = 1 << 90;

/// Linear form `constant + Σ coefficient · atom`, with atoms in increasing order and no coefficient 0.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Linear {
    pub(crate) terms: Vec<(Atom, i128)>,
    pub(crate) constant: i128,
}

impl Linear {
    pub(crate) fn constant(c: i128) -> Linear {
        Linear { terms: Vec::new(), constant: c }
    }

    pub(crate) fn atom(a: Atom) -> Linear {
        Linear { terms: vec![(a, 1)], constant: 0 }
    }

    pub(crate) fn as_constant(&self) -> Option<i128> {
        self.terms.is_empty().then_some(self.constant)
    }

    /// Returns the atom, if the form is a single atom.
    pub(crate) fn as_atom(&self) -> Option<Atom> {
        match self.terms[..] {
            [(a, 1)] if self.constant == 0 => Some(a),
            _ => None,
        }
    }

    pub(crate) fn coefficient(&self, a: Atom) -> i128 {
        self.terms.binary_search_by_key(&a, |t| t.0).map_or(0, |i| self.terms[i].1)
    }

    /// Returns `j * self + k * other`.
    pub(crate) fn combine(&self, j: i128, other: &Linear, k: i128) -> Option<Linear> {
        let checked = |x: i128, y: i128| {
            let v = j.checked_mul(x)?.checked_add(k.checked_mul(y)?)?;
            (v.abs() < LARGEST).then_some(v)
        };
        let mut terms = Vec::with_capacity(self.terms.len() + other.terms.len());
        let (mut x, mut y) = (self.terms.iter().peekable(), other.terms.iter().peekable());
        loop {
            let (atom, c, d) = match (x.peek(), y.peek()) {
                (None, None) => break,
                (Some(&&(a, c)), None) => (a, c, 0),
                (None, Some(&&(b, d))) => (b, 0, d),
                (Some(&&(a, c)), Some(&&(b, d))) => match a.cmp(&b) {
                    std::cmp::Ordering::Less => (a, c, 0),
                    std::cmp::Ordering::Greater => (b, 0, d),
                    std::cmp::Ordering::Equal => (a, c, d),
                },
            };
            if c != 0 {
                x.next();
            }
            if d != 0 {
                y.next();
            }
            let sum = checked(c, d)?;
            if sum != 0 {
                terms.push((atom, sum));
            }
        }
        Some(Linear { terms, constant: checked(self.constant, other.constant)? })
    }

    pub(crate) fn plus(&self, other: &Linear) -> Option<Linear> {
        self.combine(1, other, 1)
    }

    pub(crate) fn minus(&self, other: &Linear) -> Option<Linear> {
        self.combine(1, other, -1)
    }

    pub(crate) fn scale(&self, k: i128) -> Option<Linear> {
        self.combine(k, &Linear::default(), 0)
    }

    pub(crate) fn plus_constant(&self, c: i128) -> Linear {
        // Constants come from programs (64 bits) and from a few sums of those.
        Linear { terms: self.terms.clone(), constant: self.constant.saturating_add(c) }
    }

    /// Substitutes `value` for an atom.
    pub(crate) fn substitute(&self, a: Atom, value: &Linear) -> Option<Linear> {
        match self.coefficient(a) {
            0 => Some(self.clone()),
            c => self.minus(&Linear { terms: vec![(a, c)], constant: 0 })?.combine(1, value, c),
        }
    }

    /// Returns the greatest common divisor of the coefficients (not the constant); 0 for a constant.
    pub(crate) fn content(&self) -> i128 {
        self.terms.iter().fold(0, |g, t| gcd(g, t.1))
    }

    /// Divides the form by its content and rounds the constant down. The result is at least 0 for the same integers:
    /// `2i - 3 >= 0` becomes `i - 2 >= 0`.
    pub(crate) fn tighten(self) -> Linear {
        let g = self.content();
        self.tighten_by(g)
    }

    /// Divides the form by a divisor of its coefficients and rounds down (0 changes nothing).
    pub(crate) fn tighten_by(mut self, g: i128) -> Linear {
        if g > 1 {
            for t in &mut self.terms {
                t.1 /= g;
            }
            self.constant = self.constant.div_euclid(g);
        }
        self
    }
}
