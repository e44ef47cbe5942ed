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

#[cfg(test)]
mod tests {
    use crate::auto::Target;
    use crate::auto::model::Model;
    use crate::auto::model::enclosing::Stage;
    use std::collections::BTreeMap;
    use taffeta_frontend::{NoHooks, NoLoader, Program, Source};

    const PROGRAM: &str = "
def kept(x: f32[m], to: i32[m], y: inout[f32[n]], z: inout[f32[m]]):
    for e in range(m):
        a = x[e]
        if a > 0.0:
            z[e] += y[to[e]]

def pointed_to(x: f32[m], to: i32[m], y: inout[f32[n]], z: inout[f32[m]]):
    for e in range(m):
        a = y[to[e]]
        if a > 0.0:
            z[e] += x[e]
";

    /// Returns the increase of the estimate if additions take a nanosecond longer.
    fn stall(entry: &str, n: i64) -> f64 {
        let program = Program::load(Source::inline("f.ft", PROGRAM), &NoLoader);
        let func = program.elaborate(entry, &Default::default(), &NoHooks).unwrap_or_else(|d| panic!("{d}"));
        let sizes = BTreeMap::from([("m".to_string(), 100_000), ("n".to_string(), n)]);
        let time = |latency: f64| {
            let mut target = Target { sizes: sizes.clone(), ..Target::portable(1) };
            target.prices.latency = latency;
            Model::new(&target, Stage::Compiled).program(&func)
        };
        time(2.0) - time(1.0)
    }

    #[test]
    fn mispredicted_branches_wait_for_gathered_elements() {
        assert_eq!(stall("kept", 50_000), 0.0);
        // The tensor fits into the first level.
        assert_eq!(stall("pointed_to", 1_000), 0.0);
        let [second, memory] = [50_000, 50_000_000].map(|n| stall("pointed_to", n));
        assert!(second > 0.0 && memory > 10.0 * second, "{second} {memory}");
    }
}
