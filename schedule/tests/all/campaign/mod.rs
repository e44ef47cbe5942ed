//! Random programs under random schedules: after every accepted step the interpreter computes the same as before, and
//! every refusal for a dependence names two instances that a brute-force run confirms.
//!
//! A failure prints its seed, the program and the steps, shrunk. `FIRST` and `COUNT` in the environment choose other
//! seeds.

mod locals;
mod traces;

use rayon::prelude::*;
use taffeta_ast::random::nest::Class;
use testkit::automatic::{Taken, automatic};
use testkit::made::SORTS;
use testkit::steps;
use testkit::tried::{Case, Counts, random, show, small};

/// Runs the seeds of a class.
fn campaign(class: Class, most: u64) -> Counts {
    over(&format!("{class:?}"), most, &|seed, counts| random(seed, class, counts))
}

/// Function that takes steps on the program of a seed, and returns the case with its fault, if there is any.
type One<'a> = &'a (dyn Fn(u64, &mut Counts) -> (Case, Option<String>) + Sync);

/// Runs seeds, in parallel.
fn over(name: &str, most: u64, one: One<'_>) -> Counts {
    let number = |name: &str, or: u64| std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(or);
    let (first, most) = (number("FIRST", 0), number("COUNT", most));
    let start = std::time::Instant::now();
    let one = |seed: u64| {
        let mut counts = Counts::default();
        let (case, wrong) = one(seed, &mut counts);
        let failure = wrong.map(|what| {
            let (case, what) = small(&case, &what, &|_, _, _| None);
            let text = format!("{name}, {}", show(&case, &what));
            // Print at once: a long run would show its failures at the end alone.
            println!("{text}");
            text
        });
        (failure, counts)
    };
    let all: Vec<(Option<String>, Counts)> = (first..first + most).into_par_iter().map(one).collect();
    let mut counts = Counts::default();
    all.iter().for_each(|(_, of)| counts.add(of));
    println!("{name}, {most} programs in {:.0?}; {counts}", start.elapsed());
    let failures: Vec<String> = all.into_iter().filter_map(|(f, _)| f).collect();
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures[..failures.len().min(3)].join("\n\n"));
    counts
}

#[test]
fn affine_programs() {
    campaign(Class::Affine, 100);
}

#[test]
fn programs_with_indirect_accesses() {
    campaign(Class::Wild, 75);
}

#[test]
fn programs_with_private_tensors() {
    campaign(Class::Private, 75);
}

/// Checks that every primitive applies to some programs, and so does every keyword that makes another rewrite of it.
#[test]
fn dense_programs() {
    const KEYWORDS: [&str; 5] =
        ["tile wavefront", "tile distribute", "tile separate", "cache pad", "cache_reduction pad"];
    let counts = campaign(Class::Dense, 400);
    let all = steps::primitives().into_iter().chain(KEYWORDS);
    let never: Vec<&str> = all.filter(|p| counts.steps.get(*p).is_none_or(|(_, taken)| *taken == 0)).collect();
    assert!(never.is_empty(), "never taken: {never:?}\n{counts}");
}

/// Checks that automatic schedules are correct, and that every rule changes some programs.
#[test]
fn automatic_schedules() {
    let number = |name: &str, or: u64| std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(or);
    let (first, most) = (number("FIRST", 0), number("COUNT", 40));
    let mut all = Taken::new();
    for sort in SORTS {
        let one = |seed: u64| {
            let mut taken = Taken::new();
            let (case, wrong) = automatic(seed, sort, &mut taken);
            (wrong.map(|what| format!("{sort:?}: {}", show(&case, &what))), taken)
        };
        for (wrong, taken) in (first..first + most).into_par_iter().map(one).collect::<Vec<_>>() {
            assert!(wrong.is_none(), "{}", wrong.unwrap_or_default());
            taken.into_iter().for_each(|(rule, n)| *all.entry(rule).or_default() += n);
        }
    }
    println!("taken: {all:?}");
    // Random programs hardly have products of large matrices, and these have no structured tensors.
    let apart = ["auto_use_lib", "auto_storage"];
    let random = |rule: &&str| !apart.contains(rule) && !all.contains_key(rule);
    let never: Vec<&str> = taffeta_schedule::auto::rules().map(|r| r.method).filter(random).collect();
    assert!(never.is_empty(), "never taken: {never:?}");
}
