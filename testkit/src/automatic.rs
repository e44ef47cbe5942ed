//! Random programs under automatic schedules: for machines and sizes that are right, wrong, and unknown.

use crate::made::{Sort, program};
use crate::tried::{Case, again, fault, runs};
use std::collections::BTreeMap;
use std::sync::Arc;
use taffeta_schedule::Schedule;
use taffeta_schedule::auto::Target;

/// Expected sizes of programs: none, or sizes that they do not have.
const EXPECTED: [Option<i64>; 4] = [None, Some(2), Some(3000), Some(0)];

/// Number of programs that each rule has changed.
pub type Taken = BTreeMap<&'static str, u64>;

/// Schedules a program automatically; returns the case with its fault, if there is any.
pub fn automatic(seed: u64, sort: Sort, taken: &mut Taken) -> (Case, Option<String>) {
    let func = program(seed, sort);
    let mut case = Case { func: func.clone(), seed, trace: taffeta_schedule::Trace::new(&func.name) };
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
        Err(r) => return (case, Some(format!("auto is refused: {}", r.message))),
    };
    case.trace = s.trace().clone();
    for d in s.decisions().iter().filter(|d| d.taken > 0) {
        *taken.entry(d.rule).or_default() += 1;
    }
    let twice = run().expect("`auto` succeeded before");
    if twice.trace() != s.trace() {
        return (case, Some("the second run chooses another schedule".into()));
    }
    if !s.marks_hold() {
        return (case, Some("a loop mark does not hold".into()));
    }
    let wrong = fault(&runs(&func, seed), s.func()).or_else(|| again(&func, &s));
    (case, wrong)
}
