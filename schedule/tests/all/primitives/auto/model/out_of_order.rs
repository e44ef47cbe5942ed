//! Estimates of loops whose iterations processors overlap.

use crate::primitives::common::entry_named;
use std::collections::BTreeMap;
use std::sync::Arc;
use taffeta_schedule::Schedule;
use taffeta_schedule::auto::Target;

const PROGRAM: &str = "
def rows(q: f32[64], k: f32[n, 64], s: inout[f32[n]]):
    for j in range(n):
        dot: f32 = 0.0
        for c in range(64):
            dot += q[c] * k[j, c]
        s[j] = dot / 8.0

def in_place(q: f32[64], k: f32[n, 64], s: inout[f32[n]]):
    for j in range(n):
        for c in range(64):
            s[j] += q[c] * k[j, c]

def total(q: f32[64], k: f32[n, 64], s: inout[f32[n]]):
    dot: f32 = 0.0
    for j in range(n):
        for c in range(64):
            dot += q[c] * k[j, c]
    s[0] = dot

def from_the_last(q: f32[64], k: f32[n, 64], s: inout[f32[n]]):
    for j in range(1, n):
        dot: f32 = s[j - 1]
        for c in range(64):
            dot += q[c] * k[j, c]
        s[j] = dot / 8.0

def of_the_last(q: f32[64], k: f32[n, 64], s: inout[f32[n]]):
    for j in range(1, n):
        dot: f32 = 0.0
        for c in range(64):
            dot += s[j - 1] * k[j, c]
        s[j] = dot / 8.0

def long(q: f32[4096], k: f32[n, 4096], s: inout[f32[n]]):
    for j in range(n):
        dot: f32 = 0.0
        for c in range(4096):
            dot += q[c] * k[j, c]
        s[j] = dot / 8.0
";

/// Returns the estimate of a program with lanes, for this latency of an addition.
fn time(entry: &str, latency: f64) -> f64 {
    let mut target = Target { sizes: BTreeMap::from([("n".to_string(), 50)]), ..Target::portable(1) };
    target.prices.latency = latency;
    let mut s = Schedule::new(entry_named(PROGRAM, entry)).aimed_at(Arc::new(target.clone()));
    s.vectorize("c").unwrap_or_else(|r| panic!("{}", r.message));
    s.estimate(&target)
}

#[test]
fn short_independent_sums_overlap() {
    for entry in ["rows", "in_place"] {
        assert_eq!(time(entry, 1.0), time(entry, 1.5), "{entry}");
    }
    // The sum spans all iterations, starts from the last result, has it as an operand, or is too long.
    for entry in ["total", "from_the_last", "of_the_last", "long"] {
        assert!(time(entry, 1.5) > 1.2 * time(entry, 1.0), "{entry}");
    }
}
