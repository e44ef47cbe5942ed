//! Stalls of mispredicted branches.
//!
//! ```text
//! for e in range(m):
//!     x = from[src[e]] + to[dst[e]]            # both come from the second level, while iterations behind are begun …
//!     if x > 0.0: …                            # … as a guess says that this turns out; it is wrong now and then, and
//!                                              # all of it begins anew, once `x` is there
//! ```
//!
//! Elements beside the one read last are in the first level already, so only indirect accesses count.

use super::Estimator;
use crate::auto::model::access::{AccessPattern, StrideClass};
use rustc_hash::FxHashSet;
use taffeta_ast::{Expr, ExprKind, Symbol};

/// Misprediction rate of an unknown branch: half that of chance.
const WRONG: f64 = 0.25;
/// Additional load latency from the first, second and third level and from memory, relative to the first, in dependent
/// additions.
const WAITS: [f64; 4] = [0.0, 3.0, 10.0, 60.0];

impl Estimator<'_, '_> {
    /// Returns the expected misprediction stall of a branch per execution, for the elements in its condition.
    pub(super) fn guess(&self, cond: &Expr) -> f64 {
        let mut longest = 0.0;
        self.latest(cond, &mut FxHashSet::default(), &mut longest);
        WRONG * longest * self.target.prices.latency
    }

    /// Finds the largest latency, in additions, of the elements that an expression is computed from.
    fn latest(&self, e: &Expr, scalars: &mut FxHashSet<Symbol>, longest: &mut f64) {
        e.walk(&mut |e| match e.kind() {
            ExprKind::Load(t, at) if at.is_empty() => {
                if let Some(value) = self.scalars.value(t).filter(|_| scalars.insert(t.clone())) {
                    self.latest(value, scalars, longest);
                }
            }
            ExprKind::Load(t, at) => {
                let at: Vec<&Expr> = at.iter().map(|a| &a.index).collect();
                let touch = AccessPattern::new(self.values, &self.around, t, &at, e.dtype().size() as f64);
                if touch.last() == Some(StrideClass::Gather) {
                    *longest = longest.max(self.wait_of(touch.all));
                }
            }
            _ => {}
        });
    }

    /// Returns the latency, in additions, of an element anywhere in this many bytes.
    fn wait_of(&self, bytes: f64) -> f64 {
        let levels = &self.target.levels;
        let level = levels.iter().position(|l| bytes <= l.bytes).unwrap_or(levels.len() - 1);
        // Memory is the last level, however many there are.
        WAITS[if level + 1 == levels.len() { WAITS.len() - 1 } else { level.min(WAITS.len() - 2) }]
    }
}
