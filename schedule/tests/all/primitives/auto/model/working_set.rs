//! Estimates of loops whose iterations touch several tensors.

use crate::primitives::common::entry;
use std::collections::BTreeMap;
use taffeta_schedule::Schedule;
use taffeta_schedule::auto::Target;

const SCORES: &str = "
        for j in range(65):
            for c in range(64):
                s[i, c] += x[i + j, c] * t[j]
";
const GRADIENT: &str = "
        for j in range(65):
            for c in range(64):
                y[i + j, c] += z[i, c] * t[j]
";

/// Returns the estimate of a loop over windows in which bytes from behind a first level of this capacity dominate.
fn time(inside: &[&str], bytes: f64) -> f64 {
    let text = format!(
        "def f(x: f32[m, 64], z: f32[m, 64], t: f32[65], s: inout[f32[m, 64]], y: inout[f32[m, 64]], n: i64):\n    \
         for i in range(n):\n{}",
        inside.concat(),
    );
    let sizes = BTreeMap::from([("n".to_string(), 10_000), ("m".to_string(), 10_064)]);
    let mut target = Target { sizes, ..Target::portable(1) };
    target.levels[0].bytes = bytes;
    target.levels.iter_mut().skip(1).for_each(|l| l.per_byte = 100.0);
    Schedule::new(entry(&text).0).estimate(&target)
}

#[test]
fn tensors_of_other_statements_take_cache_space() {
    // Windows of 17 KB: the level holds both of them, or one.
    let apart = |bytes| time(&[SCORES], bytes) + time(&[GRADIENT], bytes);
    let together = |bytes| time(&[SCORES, GRADIENT], bytes);
    let (large, small) = (40e3, 20e3);
    assert!((together(large) / apart(large) - 1.0).abs() < 0.01, "{} {}", together(large), apart(large));
    assert!((apart(small) / apart(large) - 1.0).abs() < 0.01, "{} {}", apart(small), apart(large));
    assert!(together(small) > 10.0 * apart(small), "{} {}", together(small), apart(small));
}
