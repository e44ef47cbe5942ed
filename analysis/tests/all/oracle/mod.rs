//! Tests of the dependence analysis on random loop nests, against brute force: it must always be sound, and its
//! precision is measured.
//!
//! `FIRST` and `COUNT` in the environment choose other seeds.

use rayon::prelude::*;
use taffeta_ast::random::nest::Class;
use testkit::dependences::{Counts, either, fault};
use testkit::direct;

/// Runs the seeds of a class and sums up the counts.
fn campaign(class: Class, most: u64) -> Counts {
    let number = |name: &str, or: u64| std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(or);
    let first = number("FIRST", 0);
    let most = number("COUNT", most);
    let start = std::time::Instant::now();
    let one = |seed| {
        let mut counts = Counts::default();
        (fault(seed, class, &mut counts), counts)
    };
    let all: Vec<(Option<String>, Counts)> = (first..first + most).into_par_iter().map(one).collect();
    let mut counts = Counts::default();
    let mut failures = Vec::new();
    for (failure, of) in all {
        failures.extend(failure);
        counts.add(&of);
    }
    println!("{class:?}, {most} programs in {:.0?}: {counts:?}", start.elapsed());
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures[..failures.len().min(5)].join("\n\n"));
    counts
}

#[test]
fn affine_nests_match_brute_force() {
    let c = campaign(Class::Affine, 120);
    // Dependences that no run shows need other sizes, or follow an assertion that fails.
    assert!(c.seen * 100 >= c.reported * 97, "precision fell: {c:?}");
    assert!(c.exact * 100 >= c.reported * 98, "fewer witnesses are exact: {c:?}");
}

#[test]
fn the_long_campaign_covers_every_class() {
    assert!((0..3).all(|seed| either(seed, &mut Counts::default()).is_none()));
}

#[test]
fn indirect_nests_match_brute_force() {
    let c = campaign(Class::Wild, 100);
    assert!(c.seen * 100 >= c.reported * 33, "precision fell: {c:?}");
}

#[test]
fn private_tensors_match_brute_force() {
    let c = campaign(Class::Private, 200);
    assert!(c.private > 30, "too few are private: {c:?}");
    assert!(c.killed * 100 >= c.private * 70, "precision fell: {c:?}");
}

#[test]
fn direct_dependences_imply_all_dependences() {
    let classes = [Class::Affine, Class::Wild, Class::Private];
    let all: Vec<(Option<String>, direct::Counts)> = (0..60u64)
        .into_par_iter()
        .map(|seed| {
            let mut counts = direct::Counts::default();
            (direct::fault(seed, classes[(seed % 3) as usize], &mut counts), counts)
        })
        .collect();
    let failures: Vec<&String> = all.iter().filter_map(|(failure, _)| failure.as_ref()).collect();
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures[0]);
    let sum = |f: fn(&direct::Counts) -> u64| all.iter().map(|(_, c)| f(c)).sum::<u64>();
    let (direct, every, chains) = (sum(|c| c.direct), sum(|c| c.all), sum(|c| c.chains));
    println!("{direct} of {every} dependences are direct, {chains} pairs of touches are ordered by chains");
    assert!(
        direct * 100 < every * 95 && chains > 400,
        "too few dependences are transitive: {direct} of {every} are direct, {chains} chains"
    );
}
