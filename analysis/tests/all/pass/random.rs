//! Tests of all passes on random programs: valid before and after, with equal results in the reference interpreter.

use taffeta_analysis::pass::{dead, hoist, simplify, sroa};
use taffeta_ast::interp::{Outputs, RuntimeError, run};
use taffeta_ast::random::{Case, Floats, Options, program, shrink};
use taffeta_ast::{Func, print, validate};

/// Seeds of the programs.
const SEEDS: std::ops::Range<u64> = 0..50;

type Pass = fn(&Func) -> Func;

/// Formats the outcome of a run as text, so that NaN equals itself.
fn outcome(r: &Result<Outputs, RuntimeError>, codes: bool) -> String {
    match r {
        Ok(out) => format!("{:?} {:?}", out.params, out.results),
        Err(e) if codes => e.kind.code().to_string(),
        Err(_) => "stops".to_string(),
    }
}

/// Describes how the pass breaks the program, if it does: the program becomes invalid, or its outcome changes. The
/// codes of errors are compared only if `codes` is set.
fn breaks(case: &Case, pass: Pass, codes: bool) -> Option<String> {
    let after = pass(&case.func);
    if let Err(e) = validate::logical(&after) {
        return Some(format!("invalid: {e:?}"));
    }
    let (a, b) = (run(&case.func, &case.inputs), run(&after, &case.inputs));
    let (a, b) = (outcome(&a, codes), outcome(&b, codes));
    (a != b).then(|| format!("before: {a}\nafter: {b}"))
}

fn check(pass: Pass, codes: bool) {
    for errors in [false, true] {
        for floats in [Floats::Exact, Floats::Any] {
            let options = Options { floats, errors, ..Options::default() };
            for seed in SEEDS {
                let case = program(seed, &options);
                if breaks(&case, pass, codes).is_some() {
                    let small = shrink(&case, &mut |c| breaks(c, pass, codes).is_some());
                    let why = breaks(&small, pass, codes).unwrap_or_default();
                    let (before, after) = (print::func(&small.func), print::func(&pass(&small.func)));
                    panic!("seed {seed} of {options:?}\n{before}\nbecomes\n{after}\n{why}\n{:?}", small.inputs);
                }
            }
        }
    }
}

#[test]
fn simplify_keeps_the_meaning() {
    check(simplify::run, true);
}

#[test]
fn dead_keeps_the_meaning() {
    check(dead::run, true);
    check(dead::run_with_size_checks, true);
}

#[test]
fn hoist_keeps_the_meaning() {
    check(hoist::run, false);
}

#[test]
fn sroa_keeps_the_meaning() {
    check(sroa::run, true);
}

#[test]
fn all_passes_together_keep_the_meaning() {
    check(|f| dead::run(&simplify::run(&hoist::run(&simplify::run(f)))), false);
    check(|f| hoist::run(&dead::run_with_size_checks(&simplify::run(f))), false);
}
