//! Estimates of branches that processors guess wrong.

use crate::primitives::common::entry_named;
use std::collections::BTreeMap;
use taffeta_schedule::Schedule;
use taffeta_schedule::auto::Target;

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
    let s = Schedule::new(entry_named(PROGRAM, entry));
    let sizes = BTreeMap::from([("m".to_string(), 100_000), ("n".to_string(), n)]);
    let time = |latency: f64| {
        let mut target = Target { sizes: sizes.clone(), ..Target::portable(1) };
        target.prices.latency = latency;
        s.estimate(&target)
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
