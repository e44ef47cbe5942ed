//! Random programs under automatic schedules: for machines and sizes that are right, wrong, and unknown.

use crate::tried::{again, fault, runs};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;
use taffeta_ast::print;
use taffeta_ast::random::nest::{Class, nest};
use taffeta_schedule::Schedule;
use taffeta_schedule::auto::Target;

/// What programs are said to run with: nothing, or sizes that they do not have.
const EXPECTED: [Option<i64>; 4] = [None, Some(2), Some(3000), Some(0)];

fn automatic(seed: u64, class: Class, taken: &mut BTreeMap<&'static str, u64>) -> Option<String> {
    let func = nest(seed, class);
    let mut target = Target::portable(1 + seed as usize % 4);
    if let Some(n) = EXPECTED[(seed / 4) as usize % EXPECTED.len()] {
        target.sizes = func.sizes.iter().map(|s| (s.name().to_string(), n)).collect();
    }
    let target = Arc::new(target);
    let run = || {
        let mut s = Schedule::new(func.clone()).aimed_at(target.clone());
        s.auto().map(|()| s)
    };
    let s = match run() {
        Ok(s) => s,
        Err(r) => return Some(format!("auto is refused: {}", r.message)),
    };
    for d in s.decisions().iter().filter(|d| d.taken > 0) {
        *taken.entry(d.rule).or_default() += 1;
    }
    let twice = run().expect("it was done before");
    if twice.trace() != s.trace() {
        return Some("another schedule the second time".into());
    }
    if !s.marks_hold() {
        return Some("a marked loop may not run so".into());
    }
    let steps: Vec<String> = s.trace().steps.iter().map(ToString::to_string).collect();
    let wrong = fault(&runs(&func, seed), s.func()).or_else(|| again(&func, &s));
    wrong.map(|what| format!("{what}\n{}\n{}\n{}", print::func(&func), steps.join("\n"), print::func(s.func())))
}

#[test]
fn automatic_schedules() {
    let number = |name: &str, or: u64| std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(or);
    let (first, most) = (number("FIRST", 0), number("MOST", 400));
    let mut all: BTreeMap<&'static str, u64> = BTreeMap::new();
    for class in [Class::Affine, Class::Wild, Class::Private, Class::Dense] {
        let one = |seed: u64| {
            let mut taken = BTreeMap::new();
            let wrong = automatic(seed, class, &mut taken);
            (wrong.map(|what| format!("{class:?}, seed {seed}: {what}")), taken)
        };
        for (wrong, taken) in (first..first + most).into_par_iter().map(one).collect::<Vec<_>>() {
            assert!(wrong.is_none(), "{}", wrong.unwrap_or_default());
            taken.into_iter().for_each(|(rule, n)| *all.entry(rule).or_default() += n);
        }
    }
    println!("taken: {all:?}");
    // Random programs hardly have products of large matrices.
    let random = |rule: &&str| *rule != "auto_use_lib" && !all.contains_key(rule);
    let never: Vec<&str> = taffeta_schedule::auto::rules().map(|r| r.method).filter(random).collect();
    assert!(never.is_empty(), "never taken: {never:?}");
}
