//! Random programs: C agrees with the interpreter, errors included.

use crate::compiled::run::{compare, compile_with};
use taffeta_ast::random::{Case, Floats, Options, program, shrink};
use taffeta_codegen::LowerOptions;
use taffeta_codegen::toolchain::CompileOptions;

/// Returns the number of programs of each kind; `TAFFETA_RANDOM_CASES` sets it.
fn cases() -> u64 {
    std::env::var("TAFFETA_RANDOM_CASES").ok().and_then(|v| v.parse().ok()).unwrap_or(16)
}

fn agrees(seed: u64, case: &Case) -> bool {
    let sizes: Vec<(&str, i64)> = case.inputs.sizes.iter().map(|(n, v)| (n.as_str(), *v)).collect();
    let mut options = LowerOptions::default();
    if seed.is_multiple_of(2) {
        options.sizes = case.inputs.sizes.iter().map(|(n, v)| (n.clone(), *v)).collect();
    }
    let flags = CompileOptions { contract: false, optimize: seed.is_multiple_of(3), ..CompileOptions::default() };
    std::panic::catch_unwind(|| {
        let compiled = compile_with(&case.func, &options, &flags);
        // `compare` also compares errors and their locations.
        let _ = compare(&case.func, &compiled, &case.inputs.params, &sizes);
    })
    .is_ok()
}

fn check(first_seed: u64, options: &Options) {
    for seed in first_seed..first_seed + cases() {
        let case = program(seed, options);
        if agrees(seed, &case) {
            continue;
        }
        // A smaller program may read unwritten elements, which only the interpreter detects.
        let small = shrink(&case, &mut |c| {
            let unwritten = taffeta_ast::interp::run(&c.func, &c.inputs)
                .is_err_and(|e| matches!(*e.kind, taffeta_ast::interp::ErrorKind::Uninitialised { .. }));
            !unwritten && !agrees(seed, c)
        });
        panic!("seed {seed}, made smaller:\n{}\n{:?}", taffeta_ast::print::func(&small.func), small.inputs);
    }
}

#[test]
fn programs_that_do_not_fail() {
    check(1000, &Options::default());
}

#[test]
fn programs_that_may_fail() {
    check(2000, &Options { errors: true, ..Options::default() });
}

#[test]
fn integer_programs_with_all_operators() {
    let dtypes = taffeta_ast::DType::ALL.into_iter().filter(|d| !d.is_float()).collect();
    check(3000, &Options { dtypes, floats: Floats::Any, errors: true, statements: 40 });
}
