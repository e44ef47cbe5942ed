//! Random programs: forward and reverse mode are each other's transpose, with tapes and with recomputation.

use crate::check::transposed;
use taffeta_ast::DType;
use taffeta_ast::interp::run;
use taffeta_ast::random::{Floats, Options, dense, nest, program};

/// Returns the seeds of a family of programs; `COUNT` in the environment overrides their number, `FIRST` the first one.
fn seeds(most: u64) -> impl Iterator<Item = u64> {
    let number = |name: &str, or| std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(or);
    let first = number("FIRST", 0);
    first..first + number("COUNT", most)
}

#[test]
fn random_programs_with_every_statement() {
    let options = Options {
        dtypes: vec![DType::F64, DType::I64, DType::Bool],
        floats: Floats::Exact,
        errors: false,
        statements: 16,
    };
    let mut asked = 0;
    for seed in seeds(125) {
        let case = program(seed, &options);
        asked += u32::from(transposed(&case.func, &case.inputs, seed));
    }
    assert!(asked > 12, "only {asked} of these programs have gradients");
}

#[test]
fn random_programs_of_typical_form() {
    let mut asked = 0;
    for seed in seeds(75) {
        let func = dense::dense(seed);
        for sizes in [[3, 4], [1, 2], [0, 3]] {
            let inputs = nest::inputs(&func, &sizes, seed);
            if run(&func, &inputs).is_ok() {
                asked += u32::from(transposed(&func, &inputs, seed));
            }
        }
    }
    assert!(asked > 100, "only {asked} of these programs have gradients");
}
