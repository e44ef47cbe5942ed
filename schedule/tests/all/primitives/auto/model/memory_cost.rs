//! Estimates of accesses by loaded indices.

use crate::primitives::common::entry_named;
use std::collections::BTreeMap;
use taffeta_schedule::Schedule;
use taffeta_schedule::auto::Target;

const PROGRAM: &str = "
def rows(h: f32[n, 32], to: i64[m], s: inout[f32[32]]):
    for e in range(m):
        for d in range(32):
            s[d] = h[to[e], d]

def long_rows(h: f32[n, 1024], to: i64[m], s: inout[f32[1024]]):
    for e in range(m):
        for d in range(1024):
            s[d] = h[to[e], d]

def beside(h: f32[n, 32], g: f32[n, 32], to: i64[m], s: inout[f32[32]]):
    for e in range(m):
        for d in range(32):
            s[d] = h[to[e], d]
        for d in range(32):
            s[d] = g[to[e], d]
";

/// Returns the estimate of an entry with this many rows and indices, whose tensors together exceed every level.
fn time(entry: &str, rows: i64, pointers: i64) -> f64 {
    let sizes = BTreeMap::from([("n".to_string(), rows), ("m".to_string(), pointers)]);
    let mut target = Target { sizes, ..Target::portable(1) };
    target.prices.page = 0.0;
    Schedule::new(entry_named(PROGRAM, entry)).estimate(&target)
}

#[test]
fn gathered_rows_larger_than_the_cache_are_reloaded() {
    // 6 MB in a level of 8 MB, and 64 MB.
    let [kept, gone] = [50_000, 500_000].map(|rows| time("rows", rows, 5_000_000) / 5e6);
    assert!(gone > kept + 10.0, "{kept} {gone}");
    // No index returns to a row.
    let once = time("rows", 500_000, 500_000) / 5e5;
    assert!(once < kept + 10.0, "{kept} {once}");
}

#[test]
fn gathered_tensors_share_the_cache() {
    // Two tensors of 6 MB, each of which fits alone.
    let (alone, both) = (time("rows", 50_000, 5_000_000), time("beside", 50_000, 5_000_000));
    assert!(both > 2.2 * alone, "{alone} {both}");
}

#[test]
fn long_gathered_rows_are_prefetched() {
    let [short, long] = [("rows", 500_000), ("long_rows", 500_000 / 32)].map(|(entry, rows)| {
        let pointers = 10 * rows;
        time(entry, rows, pointers) / (pointers * if entry == "rows" { 32 } else { 1024 }) as f64
    });
    assert!(long < 0.7 * short, "{short} {long}");
}
