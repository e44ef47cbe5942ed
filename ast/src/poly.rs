//! Equality of sizes by normal forms: an integer expression as a polynomial with integer coefficients over its atoms
//! (sizes, iterators, and any operand that is not `+`, `-` or `*`).
//!
//! `2*n` equals `n + n`, and `(n - 1) + 1` equals `n`; `n` and `m` may or may not be equal.

use crate::dtype::DType;
use crate::expr::{Expr, ExprKind};
use crate::literal::{Literal, wrap_to};
use crate::op::Op;
use rustc_hash::FxHashMap;

/// Polynomial: the nonzero coefficient of every monomial (atoms in a fixed order).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Poly {
    terms: FxHashMap<Vec<Expr>, i128>,
}

impl Poly {
    /// Normalises an integer expression; `None` where a coefficient overflows.
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
    let difference = Poly::of(a)?.combine(&Poly::of(b)?, -1)?;
    // Integers wrap, so a difference of 2^64 is zero.
    difference.as_constant().map(|c| wrap_to(c, a.dtype()) == 0)
}
