//! Affine forms `Σ c · e + constant` of integer expressions, in which primitives compare, solve and normalise bounds
//! and indices. A term `e` is any expression that is not itself a sum: an iterator, a size, a quotient.

use taffeta_analysis::query::effects;
use taffeta_ast::op::Op;
use taffeta_ast::{Expr, ExprKind, Symbol};

/// Affine form `Σ c · e + constant`. It wraps at run time exactly like the expression, so either may replace the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Affine {
    /// Terms in order of first appearance; no coefficient is 0, and no expression occurs twice.
    pub terms: Vec<(Expr, i64)>,
    /// Constant term.
    pub constant: i64,
}

impl Affine {
    /// Creates a constant form.
    pub fn constant(constant: i64) -> Affine {
        Affine { terms: Vec::new(), constant }
    }

    /// Converts an expression to its affine form; `None` if a coefficient or the constant overflows.
    pub fn of(e: &Expr) -> Option<Affine> {
        if let Some(c) = e.as_int() {
            return Some(Affine::constant(c));
        }
        let atom = || Some(Affine { terms: vec![(e.clone(), 1)], constant: 0 });
        let ExprKind::Apply(op, a) = e.kind() else { return atom() };
        match op {
            Op::Add => Affine::of(&a[0])?.plus(&Affine::of(&a[1])?, 1),
            Op::Sub => Affine::of(&a[0])?.plus(&Affine::of(&a[1])?, -1),
            Op::Neg => Affine::constant(0).plus(&Affine::of(&a[0])?, -1),
            Op::Mul => match (a[0].as_int(), a[1].as_int()) {
                (_, Some(c)) => Affine::constant(0).plus(&Affine::of(&a[0])?, c),
                (Some(c), _) => Affine::constant(0).plus(&Affine::of(&a[1])?, c),
                _ => atom(),
            },
            _ => atom(),
        }
    }

    /// Returns `self + k * other`; `None` on overflow.
    pub fn plus(mut self, other: &Affine, k: i64) -> Option<Affine> {
        self.constant = self.constant.checked_add(other.constant.checked_mul(k)?)?;
        for (e, c) in &other.terms {
            let c = c.checked_mul(k)?;
            match self.terms.iter_mut().find(|(o, _)| o == e) {
                Some((_, o)) => *o = o.checked_add(c)?,
                None => self.terms.push((e.clone(), c)),
            }
        }
        self.terms.retain(|(_, c)| *c != 0);
        Some(self)
    }

    /// Returns the coefficient of an iterator.
    pub fn coefficient(&self, of: &Symbol) -> i64 {
        let iter = Expr::var(of);
        self.terms.iter().find(|(e, _)| *e == iter).map_or(0, |(_, c)| *c)
    }

    /// Removes the iterator's term.
    pub fn without(&self, of: &Symbol) -> Affine {
        let iter = Expr::var(of);
        let terms = self.terms.iter().filter(|(e, _)| *e != iter).cloned().collect();
        Affine { terms, constant: self.constant }
    }

    /// Returns whether one of the iterators occurs within a term that is not itself a variable.
    pub fn is_nonlinear_in(&self, iters: &[&Symbol]) -> bool {
        let inside = |e: &Expr| !matches!(e.kind(), ExprKind::Var(_)) && effects::mentions(e, iters);
        self.terms.iter().any(|(e, _)| inside(e))
    }

    /// Converts the form to an expression: terms with positive coefficients first, then those with negative ones.
    pub fn expr(&self) -> Expr {
        let added = self.terms.iter().filter(|(_, c)| *c > 0);
        let taken = self.terms.iter().filter(|(_, c)| *c < 0);
        let mut sum: Option<Expr> = None;
        for (e, c) in added {
            let e = e.times(&Expr::int(*c));
            sum = Some(sum.map_or(e.clone(), |s| s.plus(&e)));
        }
        let mut constant = self.constant;
        for (e, c) in taken {
            let start = sum.unwrap_or_else(|| Expr::int(std::mem::take(&mut constant)));
            sum = Some(start.minus(&e.times(&Expr::int(c.wrapping_neg()))));
        }
        match sum {
            None => Expr::int(constant),
            Some(s) if constant < 0 && constant != i64::MIN => s.minus(&Expr::int(-constant)),
            Some(s) => s.plus(&Expr::int(constant)),
        }
    }
}

/// Normalises a sum: orders its terms and cancels opposite ones.
pub fn tidy(e: &Expr) -> Expr {
    Affine::of(e).map_or(e.clone(), |a| a.expr())
}
