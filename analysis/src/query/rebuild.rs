//! Conversion of linear forms back to expressions, of type i64.

use super::context::{Context, Def, Key};
use super::linear::{Atom, Linear};
use super::lower::range_of;
use taffeta_ast::{DType, Expr};

impl Context {
    /// Simplifies an i64 expression: sums are collected, quotients and remainders reduced by the facts here. Returns
    /// the same expression if the result is not cheaper. Operands that may stop the program may be dropped: see
    /// [`Context::may_stop`].
    pub fn shorten(&mut self, e: &Expr) -> Expr {
        if e.dtype() != DType::I64 {
            return e.clone();
        }
        let l = self.linear(e);
        match self.expression(&l) {
            Some(new) if cost(&new) < cost(e) => new,
            _ => e.clone(),
        }
    }

    /// Builds an i64 expression for a form with a value in the range of i64. Intermediate sums may wrap, and wrap back.
    fn expression(&self, l: &Linear) -> Option<Expr> {
        let mut sum: Option<Expr> = None;
        // Positive terms come first: `n - i`, not `-i + n`.
        let signed = |positive: bool| l.terms.iter().copied().filter(move |(_, c)| (*c > 0) == positive);
        for (a, c) in signed(true).chain(signed(false)) {
            let factor = Expr::int(i64::try_from(c.abs()).ok()?);
            let term = self.atom_expression(a)?.times(&factor);
            sum = Some(match sum {
                None if c > 0 => term,
                None => Expr::int(0).minus(&term),
                Some(s) if c > 0 => s.plus(&term),
                Some(s) => s.minus(&term),
            });
        }
        let constant = Expr::int(i64::try_from(l.constant).ok()?);
        Some(match sum {
            Some(s) => s.plus(&constant),
            None => constant,
        })
    }

    fn atom_expression(&self, a: Atom) -> Option<Expr> {
        let whole = range_of(DType::I64);
        let info = &self.atoms[a.0 as usize];
        let divided = |num: &Linear, den: &Linear| {
            // A dividend that wraps would have another quotient.
            if !self.interval(num).within(whole) {
                return None;
            }
            Some((self.expression(num)?, self.expression(den)?))
        };
        match (&info.key, &info.def) {
            (_, Def::Product(factors)) => {
                let mut product = Expr::int(1);
                for f in factors.iter() {
                    product = product.times(&self.atom_expression(*f)?);
                }
                Some(product)
            }
            (Key::Quotient(num, den), _) => divided(num, den).map(|(n, d)| n.floor_div(&d)),
            (Key::Remainder(num, den), _) => divided(num, den).map(|(n, d)| n.modulo(&d)),
            (Key::Min(x, y), _) => divided(x, y).map(|(x, y)| x.min_with(&y)),
            (Key::Max(x, y), _) => divided(x, y).map(|(x, y)| x.max_with(&y)),
            (Key::Expr(e) | Key::Select(e, ..), _) if e.dtype().is_int() && self.atom_interval(a).within(whole) => {
                Some(e.clone().cast(DType::I64))
            }
            _ => None,
        }
    }
}

/// Estimates the cost of evaluating an expression. The cost is capped, so that shared operands of large expressions are
/// not counted over and over.
fn cost(e: &Expr) -> u32 {
    fn add(e: &Expr, total: &mut u32) {
        use taffeta_ast::ExprKind;
        *total += match e.kind() {
            ExprKind::Apply(op, _) => 1 + op.info().cost.min(5),
            _ => 1,
        };
        for c in e.children() {
            if *total >= 200 {
                return;
            }
            add(c, total);
        }
    }
    let mut total = 0;
    add(e, &mut total);
    total.min(200)
}
