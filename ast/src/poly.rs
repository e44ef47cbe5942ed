//! Equality of sizes by normal forms: an integer expression as a polynomial with integer coefficients over its
//! atoms (sizes, iterators, and whatever is neither `+`, `-` nor `*`).
//!
//! `2*n` equals `n + n`, and `(n - 1) + 1` equals `n`; `n` and `m` may or may not be equal.

use crate::expr::{Expr, ExprKind, Literal, wrap_to};
use crate::op::Op;
use rustc_hash::FxHashMap;

/// A polynomial: for every monomial (atoms sorted by their hash order of first appearance) its coefficient, never 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Poly {
    terms: FxHashMap<Vec<Expr>, i128>,
}

impl Poly {
    /// The normal form of an integer expression; `None` where a coefficient overflows.
    pub fn of(e: &Expr) -> Option<Poly> {
        match e.kind() {
            ExprKind::Const(Literal::Int(c)) => Some(Poly::constant(*c)),
            ExprKind::Apply(Op::Add, a) => Poly::of(&a[0])?.combine(&Poly::of(&a[1])?, 1),
            ExprKind::Apply(Op::Sub, a) => Poly::of(&a[0])?.combine(&Poly::of(&a[1])?, -1),
            ExprKind::Apply(Op::Neg, a) => Poly::default().combine(&Poly::of(&a[0])?, -1),
            ExprKind::Apply(Op::Mul, a) => Poly::of(&a[0])?.times(&Poly::of(&a[1])?),
            _ => Some(Poly { terms: [(vec![e.clone()], 1)].into_iter().collect() }),
        }
    }

    fn constant(c: i128) -> Poly {
        let mut p = Poly::default();
        if c != 0 {
            p.terms.insert(Vec::new(), c);
        }
        p
    }

    /// The value, if no atom is left.
    pub fn as_constant(&self) -> Option<i128> {
        match self.terms.len() {
            0 => Some(0),
            1 => self.terms.get(&Vec::new()).copied(),
            _ => None,
        }
    }

    /// The terms: atoms of each monomial and its coefficient, in no particular order.
    pub fn terms(&self) -> impl Iterator<Item = (&[Expr], i128)> {
        self.terms.iter().map(|(m, c)| (m.as_slice(), *c))
    }

    fn add_term(&mut self, monomial: Vec<Expr>, c: i128) -> Option<()> {
        let sum = self.terms.get(&monomial).copied().unwrap_or(0).checked_add(c)?;
        if sum == 0 {
            self.terms.remove(&monomial);
        } else {
            self.terms.insert(monomial, sum);
        }
        Some(())
    }

    fn combine(mut self, other: &Poly, sign: i128) -> Option<Poly> {
        for (m, c) in &other.terms {
            self.add_term(m.clone(), c.checked_mul(sign)?)?;
        }
        Some(self)
    }

    fn times(&self, other: &Poly) -> Option<Poly> {
        let mut product = Poly::default();
        for (m1, c1) in &self.terms {
            for (m2, c2) in &other.terms {
                let mut m: Vec<Expr> = m1.iter().chain(m2).cloned().collect();
                m.sort_by_key(order);
                product.add_term(m, c1.checked_mul(*c2)?)?;
            }
        }
        Some(product)
    }
}

/// An order of atoms within a monomial: any will do, as long as equal atoms get equal keys.
fn order(e: &Expr) -> u64 {
    use std::hash::{Hash, Hasher};
    let mut h = rustc_hash::FxHasher::default();
    e.hash(&mut h);
    h.finish()
}

/// Whether two integer expressions are equal for all values of their atoms (`Some(true)`), for none (`Some(false)`), or it
/// depends (`None`).
pub fn equal(a: &Expr, b: &Expr) -> Option<bool> {
    if a == b {
        return Some(true);
    }
    let difference = Poly::of(a)?.combine(&Poly::of(b)?, -1)?;
    // Integers wrap, so a difference of 2^64 is none.
    difference.as_constant().map(|c| wrap_to(c, a.dtype()) == 0)
}
