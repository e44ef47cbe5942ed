//! Normal forms of integer expressions: polynomials with integer coefficients over atoms (sizes, iterators, and any
//! operand that is not `+`, `-` or `*`), in which sizes are compared, and affine forms, in which primitives solve and
//! normalise bounds and indices.
//!
//! `2*n` equals `n + n`, and `(n - 1) + 1` equals `n`; `n` and `m` may or may not be equal.

use crate::dtype::DType;
use crate::expr::{Expr, ExprKind};
use crate::literal::{Literal, wrap_to};
use crate::op::Op;
use crate::symbol::Symbol;
use indexmap::IndexMap;
use rustc_hash::FxBuildHasher;

/// Polynomial: the nonzero coefficient of every monomial (atoms in a fixed order), in order of first appearance.
///
/// Its value wraps at run time as the expression's does, so either may replace the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Poly {
    terms: IndexMap<Vec<Expr>, i128, FxBuildHasher>,
}

impl Poly {
    /// Normalises an integer expression; `None` where a coefficient overflows.
    pub fn of(e: &Expr) -> Option<Poly> {
        Poly::normalized(e, true)
    }

    /// Normalises an integer expression to an affine form, whose atoms include products of two expressions that are
    /// not constant. `None` where a coefficient or the constant exceeds 64 bits.
    pub fn affine(e: &Expr) -> Option<Poly> {
        Poly::normalized(e, false)?.within_64_bits()
    }

    fn normalized(e: &Expr, distribute: bool) -> Option<Poly> {
        let of = |e: &Expr| Poly::normalized(e, distribute);
        match e.kind() {
            ExprKind::Const(Literal::Int(c)) => Some(Poly::constant(*c)),
            ExprKind::Apply(Op::Add, a) => of(&a[0])?.plus(&of(&a[1])?, 1),
            ExprKind::Apply(Op::Sub, a) => of(&a[0])?.plus(&of(&a[1])?, -1),
            ExprKind::Apply(Op::Neg, a) => Poly::default().plus(&of(&a[0])?, -1),
            ExprKind::Apply(Op::Mul, a) if distribute || a.iter().any(|e| e.as_int().is_some()) => {
                of(&a[0])?.times(&of(&a[1])?)
            }
            _ => Some(Poly::atom(e)),
        }
    }

    /// Returns the polynomial if all coefficients fit 64 bits.
    fn within_64_bits(self) -> Option<Poly> {
        self.terms.values().all(|c| i64::try_from(*c).is_ok()).then_some(self)
    }

    /// Creates a constant.
    pub fn constant(c: i128) -> Poly {
        let mut p = Poly::default();
        if c != 0 {
            p.terms.insert(Vec::new(), c);
        }
        p
    }

    /// Creates the polynomial of an expression that is taken whole.
    pub fn atom(e: &Expr) -> Poly {
        Poly { terms: [(vec![e.clone()], 1)].into_iter().collect() }
    }

    /// Returns the value, if the polynomial has no atoms.
    pub fn as_constant(&self) -> Option<i128> {
        match self.terms.len() {
            0 => Some(0),
            1 => self.terms.get(&Vec::new()).copied(),
            _ => None,
        }
    }

    /// Returns the terms, each with the atoms of its monomial and its coefficient, in an order that is the same in
    /// every run of the compiler.
    pub fn terms(&self) -> impl Iterator<Item = (&[Expr], i128)> {
        let mut all: Vec<(&[Expr], i128)> = self.terms.iter().map(|(m, c)| (m.as_slice(), *c)).collect();
        all.sort_by_cached_key(|(m, _)| order_of(m));
        all.into_iter()
    }

    /// Returns the constant term.
    pub fn constant_term(&self) -> i128 {
        self.terms.get(&[][..]).copied().unwrap_or(0)
    }

    /// Returns the terms of an affine form but the constant, in order of first appearance.
    pub fn linear_terms(&self) -> impl Iterator<Item = (&Expr, i128)> {
        self.terms.iter().filter_map(|(m, c)| Some((m.first()?, *c)))
    }

    /// Returns the coefficient of a symbol in an affine form.
    pub fn coefficient(&self, of: &Symbol) -> i128 {
        self.terms.get(&[Expr::var(of)][..]).copied().unwrap_or(0)
    }

    /// Removes a symbol's term.
    pub fn without(&self, of: &Symbol) -> Poly {
        let mut rest = self.clone();
        rest.terms.shift_remove(&[Expr::var(of)][..]);
        rest
    }

    fn add_term(&mut self, monomial: Vec<Expr>, c: i128) -> Option<()> {
        let sum = self.terms.get(&monomial).copied().unwrap_or(0).checked_add(c)?;
        if sum == 0 {
            self.terms.shift_remove(&monomial);
        } else {
            self.terms.insert(monomial, sum);
        }
        Some(())
    }

    /// Returns `self + k * other`; `None` on overflow.
    pub fn plus(mut self, other: &Poly, k: i128) -> Option<Poly> {
        for (m, c) in &other.terms {
            self.add_term(m.clone(), c.checked_mul(k)?)?;
        }
        Some(self)
    }

    fn times(&self, other: &Poly) -> Option<Poly> {
        let mut product = Poly::default();
        for (m1, c1) in &self.terms {
            for (m2, c2) in &other.terms {
                let mut m: Vec<Expr> = m1.iter().chain(m2).cloned().collect();
                m.sort_by_cached_key(order);
                product.add_term(m, c1.checked_mul(*c2)?)?;
            }
        }
        Some(product)
    }
}

/// Simplifies an integer expression to its normal form, where that is shorter: `i + m - 1 - i + 1` is `m`. Wrapping
/// intermediate results do not change the value. Expressions that could stop the program stay as they are.
pub fn tidy(e: &Expr) -> Expr {
    if e.may_fail() {
        return e.clone();
    }
    match Poly::of(e).and_then(|p| p.expression(e.dtype())) {
        Some(new) if nodes(&new) < nodes(e) => new,
        _ => e.clone(),
    }
}

/// Counts the nodes of an expression, up to 400.
fn nodes(e: &Expr) -> usize {
    let mut count = 0;
    visit(e, &mut |_| count += 1);
    count
}

/// Calls `f` on at most 400 nodes of an expression: a shared operand is visited once per path to it, so that there may
/// be exponentially many.
fn visit(e: &Expr, f: &mut dyn FnMut(&Expr)) {
    let mut left = vec![e];
    let mut count = 0;
    while let Some(e) = left.pop() {
        count += 1;
        if count > 400 {
            break;
        }
        f(e);
        left.extend(e.children());
    }
}

impl Poly {
    /// Builds an expression of an integer type: first the added terms, then the subtracted ones, then the constant.
    /// `None` if a coefficient does not fit the type.
    pub fn expression(&self, dtype: DType) -> Option<Expr> {
        let int = |c: i128| Expr::literal(Literal::Int(c), dtype);
        let mut terms: Vec<(&[Expr], i128)> = self.terms().collect();
        if terms.iter().any(|(_, c)| wrap_to(*c, dtype) != *c || c.checked_neg().is_none_or(|n| wrap_to(n, dtype) != n))
        {
            return None;
        }
        terms.sort_by_cached_key(|(m, c)| (m.is_empty(), *c < 0, m.iter().map(|f| order(f).0).min(), order_of(m)));
        let mut sum: Option<Expr> = None;
        for (m, c) in terms {
            let size = if sum.is_some() { c.abs() } else { c };
            let mut factors = m.iter().cloned();
            let term = match factors.next() {
                Some(first) => factors.fold(first, |p, f| p.times(&f)).times(&int(size)),
                None => int(size),
            };
            sum = Some(match sum {
                None => term,
                Some(s) if c < 0 => s.minus(&term),
                Some(s) => s.plus(&term),
            });
        }
        Some(sum.unwrap_or_else(|| int(0)))
    }

    /// Converts an affine form to an `i64` expression: terms in order of first appearance, those with positive
    /// coefficients first.
    pub fn sum(&self) -> Expr {
        let int = |c: i128| Expr::int(c as i64);
        let mut constant = self.constant_term() as i64;
        let mut sum: Option<Expr> = None;
        for (e, c) in self.linear_terms().filter(|(_, c)| *c > 0) {
            let e = e.times(&int(c));
            sum = Some(sum.map_or(e.clone(), |s| s.plus(&e)));
        }
        for (e, c) in self.linear_terms().filter(|(_, c)| *c < 0) {
            let start = sum.unwrap_or_else(|| Expr::int(std::mem::take(&mut constant)));
            sum = Some(start.minus(&e.times(&int(c.wrapping_neg()))));
        }
        match sum {
            None => Expr::int(constant),
            Some(s) if constant < 0 && constant != i64::MIN => s.minus(&Expr::int(-constant)),
            Some(s) => s.plus(&Expr::int(constant)),
        }
    }
}

/// Normalises a sum: cancels opposite terms, and orders the others by sign.
pub fn normalized_sum(e: &Expr) -> Expr {
    Poly::affine(e).map_or(e.clone(), |a| a.sum())
}

fn order_of(m: &[Expr]) -> Vec<Order> {
    m.iter().map(order).collect()
}

/// Sort key of terms and factors.
type Order = (u64, Vec<(u8, u64)>, u64);

/// Returns the sort key of an atom within a monomial; equal atoms have equal keys. Atoms are ordered by their oldest
/// symbol, which follows the order of the program's text, then by structure. So far the order is the same in every run,
/// since it depends only on the relative age of symbols. Atoms that agree so far (they are too large to visit whole, or
/// differ only in casts or float constants) are ordered by hash.
fn order(e: &Expr) -> Order {
    use std::hash::{Hash, Hasher};
    let (mut first, mut look) = (u64::MAX, Vec::new());
    visit(e, &mut |e| {
        look.push(match e.kind() {
            ExprKind::Var(s) => (0, s.id()),
            ExprKind::Load(s, _) => (1, s.id()),
            ExprKind::Const(Literal::Int(c)) => (2, *c as u64),
            ExprKind::Apply(op, _) => (3, *op as u64),
            _ => (4, 0),
        });
        if let ExprKind::Var(s) | ExprKind::Load(s, _) = e.kind() {
            first = first.min(s.id());
        }
    });
    let mut h = rustc_hash::FxHasher::default();
    e.hash(&mut h);
    (first, look, h.finish())
}

/// Compares two integer expressions: `Some(true)` if they are equal for all values of their atoms, `Some(false)` if
/// they differ by a nonzero constant, and `None` if the polynomials do not decide.
pub fn equal(a: &Expr, b: &Expr) -> Option<bool> {
    if a == b {
        return Some(true);
    }
    let difference = Poly::of(a)?.plus(&Poly::of(b)?, -1)?;
    // Integers wrap, so a difference of 2^64 is zero.
    difference.as_constant().map(|c| wrap_to(c, a.dtype()) == 0)
}
