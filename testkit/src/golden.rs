//! Comparison of lowered programs with their expected text.

use crate::programs::{elaborate, equal};
use expect_test::Expect;
use taffeta_ast::{Func, print, validate};
use taffeta_structured::{Structured, lower};

pub fn lowered(text: &str) -> (Func, Structured) {
    let func = elaborate(text);
    let lowered = lower(&func).unwrap_or_else(|e| panic!("{:?}", e.0.iter().map(|d| &d.message).collect::<Vec<_>>()));
    validate::dense(&lowered.func).expect("it is a program");
    (func, lowered)
}

/// Checks the text of the lowered program, and that it equals the logical program on random tensors.
#[track_caller]
pub fn check(text: &str, expect: Expect) {
    let (func, structured) = lowered(text);
    expect.assert_eq(&print::func(&structured.func));
    for seed in 0..20 {
        equal(&func, &structured, seed);
    }
}
