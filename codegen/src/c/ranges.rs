//! Intervals of integer expressions, for choosing between two forms of C code: a plain `/` or the helper that rounds
//! down, a plain `for` or one that counts trips.
//!
//! Where a step of the computation may wrap, the interval is the whole range of its type.

use rustc_hash::FxHashMap;
use taffeta_analysis::query::value_range::{self, Range};
use taffeta_ast::{Expr, ExprKind, Symbol};

/// Intervals of the variables in scope.
#[derive(Debug, Default)]
pub(super) struct Ranges {
    of: FxHashMap<Symbol, Range>,
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
        value_range::is_exact(e, &mut |leaf| self.leaf(leaf))
    }

    fn interval(&self, e: &Expr) -> Option<Range> {
        value_range::of(e, &mut |leaf| self.leaf(leaf))
    }

    fn leaf(&self, e: &Expr) -> Option<Range> {
        let known = match e.kind() {
            ExprKind::Var(v) => self.of.get(v).copied(),
            _ => None,
        };
        known.or_else(|| e.dtype().int_range())
    }
}
