//! Trip counts, for primitives that count iterations. Loop bounds may lie anywhere in i64, so `end - begin` may wrap.

use crate::tree::{self, Loop};
use taffeta_analysis::query::Context;
use taffeta_ast::Expr;

impl Loop {
    /// Returns the trip count of a loop with a constant step, computed without wrapping; at most 0 if the range is
    /// empty. `facts` hold before the loop.
    ///
    /// Trip counts of 2^63 and more are returned as 2^63 - 1: no run lasts long enough to tell the difference.
    pub fn trip_count(&self, facts: &mut Context) -> Option<Expr> {
        let step = self.step.as_int().filter(|s| *s != 0)?;
        let (low, high) = if step > 0 { (&self.begin, &self.end) } else { (&self.end, &self.begin) };
        let step = step.checked_abs()?;
        if facts.sum_fits(&[(high, 1), (low, -1)], 0) {
            return Some(ceil_div(facts, &high.minus(low), step));
        }
        let (zero, one, most) = (Expr::int(0), Expr::int(1), Expr::int(i64::MAX));
        if step == 1 {
            let last = low.min_with(&zero).plus(&most);
            return Some(high.max_with(low).min_with(&last).minus(low));
        }
        // high - low = step * (high // step - low // step) + (high % step - low % step)
        let step = Expr::int(step);
        let whole = high.floor_div(&step).minus(&low.floor_div(&step));
        let rest = high.modulo(&step).minus(&low.modulo(&step));
        Some(whole.min_with(&most.minus(&one)).plus(&rest.max_with(&zero).min_with(&one)))
    }

    /// Returns the trip count if it is a constant that fits in i64.
    pub fn constant_trip_count(&self) -> Option<i64> {
        if let (Some(begin), Some(end), Some(step)) = (self.begin.as_int(), self.end.as_int(), self.step.as_int()) {
            let span = (i128::from(end) - i128::from(begin)) * i128::from(step.signum());
            let by = i128::from(step).abs();
            return (by != 0).then(|| (span + by - 1).div_euclid(by)).and_then(|n| i64::try_from(n).ok());
        }
        self.length()?.as_int()
    }
}

/// Builds `ceil(a / d)` for a positive constant `d`, computed without wrapping.
pub fn ceil_div(facts: &mut Context, a: &Expr, d: i64) -> Expr {
    if d == 1 {
        a.clone()
    } else if facts.sum_fits(&[(a, 1)], i128::from(d) - 1) {
        tree::ceil_div(a, d)
    } else {
        a.floor_div(&Expr::int(d)).plus(&a.modulo(&Expr::int(d)).min_with(&Expr::int(1)))
    }
}
