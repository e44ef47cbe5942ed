//! The dependence analysis on random loop nests, against brute force.

mod check;

use check::{Counts, fault};
use weft_ast::random::nest::Class;

/// Runs the seeds of a class and adds up what was seen.
fn campaign(class: Class, seeds: std::ops::Range<u64>) -> Counts {
    let mut counts = Counts::default();
    let start = std::time::Instant::now();
    let mut failures = Vec::new();
    for seed in seeds.clone() {
        failures.extend(fault(seed, class, &mut counts));
        if failures.len() >= 5 {
            break;
        }
    }
    println!("{class:?}: {} programs in {:?}: {counts:?}", seeds.end - seeds.start, start.elapsed());
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    counts
}

fn seeds(most: u64) -> std::ops::Range<u64> {
    let first = std::env::var("FIRST").ok().and_then(|v| v.parse().ok()).unwrap_or(0);
    let most = std::env::var("MOST").ok().and_then(|v| v.parse().ok()).unwrap_or(most);
    first..first + most
}

#[test]
fn affine_nests() {
    campaign(Class::Affine, seeds(100));
}

#[test]
fn wild_nests() {
    campaign(Class::Wild, seeds(100));
}
