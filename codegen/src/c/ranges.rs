//! Intervals of integer expressions, for choosing between two forms of C code: a plain `/` or the helper that rounds
//! down, a plain `for` or one that counts trips.
//!
//! Where a step of the computation may wrap, the interval is the whole range of its type.

use rustc_hash::FxHashMap;
use taffeta_ast::{Expr, ExprKind, Op, Symbol};

/// Intervals of the variables in scope.
#[derive(Debug, Default)]
pub(super) struct Ranges {
    of: FxHashMap<Symbol, (i128, i128)>,
}

impl Ranges {
    /// Adds a size parameter.
    pub fn size(&mut self, size: &Symbol) {
        self.of.insert(size.clone(), (0, i128::from(crate::lower::MAX_SIZE)));
    }

    /// Adds the iterator of `range(begin, end, step)`. Symbols are unique, so entries are never removed.
    pub fn iterator(&mut self, iter: &Symbol, begin: &Expr, end: &Expr, step: i64) {
        let (Some(b), Some(e)) = (self.interval(begin), self.interval(end)) else { return };
        let range = if step > 0 { (b.0, e.1 - 1) } else { (e.0 + 1, b.1) };
        // The iterator of a loop that never runs has no value, and gets no interval.
        if range.0 <= range.1 {
            self.of.insert(iter.clone(), range);
        }
    }

    /// Proves that no value of `e` is negative.
    pub fn is_not_negative(&self, e: &Expr) -> bool {
        self.interval(e).is_some_and(|(lo, _)| lo >= 0)
    }

    /// Proves that `e` is not negative, and less than `most`.
    pub fn is_below(&self, e: &Expr, most: i64) -> bool {
        self.interval(e).is_some_and(|(lo, hi)| lo >= 0 && hi < i128::from(most))
    }

    /// Proves that `e` is so far from the ends of i64 that a step of at most 2^32 does not wrap.
    pub fn is_far_from_overflow(&self, e: &Expr) -> bool {
        self.interval(e).is_some_and(|(lo, hi)| lo > -(1 << 62) && hi < 1 << 62)
    }

    /// Proves that `to - from` does not wrap.
    pub fn is_difference_exact(&self, from: &Expr, to: &Expr) -> bool {
        let (Some(a), Some(b)) = (self.interval(from), self.interval(to)) else { return false };
        b.1 - a.0 <= i128::from(i64::MAX) && b.0 - a.1 >= i128::from(i64::MIN)
    }

    /// Proves that the extents are never negative and their product (with 1 in place of 0) is at most the largest size.
    pub fn fits(&self, shape: &[Expr]) -> bool {
        let most = shape.iter().try_fold(1i128, |product, d| {
            let (lo, hi) = self.interval(d).filter(|_| self.is_exact(d))?;
            if lo < 0 { None } else { product.checked_mul(hi.max(1)) }
        });
        most.is_some_and(|m| m <= i128::from(crate::lower::MAX_SIZE))
    }

    /// Proves that no step of computing `e` can wrap.
    pub fn is_exact(&self, e: &Expr) -> bool {
        let mut exact = true;
        e.walk(&mut |e| {
            if let (ExprKind::Apply(op @ (Op::Add | Op::Sub | Op::Mul | Op::Neg | Op::Abs), args), Some((lo, hi))) =
                (e.kind(), e.dtype().int_range())
            {
                let value = if args.len() == 2 { self.operator(*op, args) } else { None };
                exact &= value.is_some_and(|v| lo <= v.0 && v.1 <= hi);
            }
        });
        exact
    }

    fn interval(&self, e: &Expr) -> Option<(i128, i128)> {
        let whole = e.dtype().int_range();
        let exact = match e.kind() {
            ExprKind::Const(_) => e.as_int().map(|v| (i128::from(v), i128::from(v))),
            ExprKind::Var(v) => self.of.get(v).copied(),
            ExprKind::Cast(inner) if inner.dtype().is_int() => self.interval(inner),
            ExprKind::Apply(op, args) if args.len() == 2 && args[0].dtype().is_int() => self.operator(*op, args),
            _ => None,
        };
        let (lo, hi) = whole?;
        // A wrapped value may be any of the type.
        exact.filter(|r| lo <= r.0 && r.1 <= hi).or(whole)
    }

    fn operator(&self, op: Op, args: &[Expr]) -> Option<(i128, i128)> {
        let (a, b) = (self.interval(&args[0])?, self.interval(&args[1])?);
        Some(match op {
            Op::Add => (a.0 + b.0, a.1 + b.1),
            Op::Sub => (a.0 - b.1, a.1 - b.0),
            Op::Mul => {
                let all = [a.0.checked_mul(b.0)?, a.0.checked_mul(b.1)?, a.1.checked_mul(b.0)?, a.1.checked_mul(b.1)?];
                (*all.iter().min()?, *all.iter().max()?)
            }
            Op::Min => (a.0.min(b.0), a.1.min(b.1)),
            Op::Max => (a.0.max(b.0), a.1.max(b.1)),
            Op::Mod if b.0 > 0 => (0, if a.0 >= 0 { (b.1 - 1).min(a.1) } else { b.1 - 1 }),
            Op::FloorDiv if b.0 > 0 && a.0 >= 0 => (a.0 / b.1, a.1 / b.0),
            _ => return None,
        })
    }
}
