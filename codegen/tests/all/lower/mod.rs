//! Passes of lowering on small programs.

mod count_loops;
mod flatten;
mod parallel;

use taffeta_ast::build::{Builder, store};
use taffeta_ast::{DType, Expr};
use taffeta_codegen::testing::valid;
use taffeta_codegen::{LowerOptions, lower};

#[test]
fn broken_trees_are_reported_and_not_lowered() {
    let mut b = Builder::new("f");
    let y = b.result("y", DType::F64, [&Expr::int(4)]);
    let broken = b.finish(store(&y, [&Expr::float(0.5, DType::F64)], &Expr::float(1.0, DType::F64)));
    let told = lower(&broken, &LowerOptions::default()).expect_err("its index is a float");
    assert_eq!(told.0[0].code, "internal::tree");
    // Validation errors name the pass, in builds that validate passes.
    let told = valid("hoist", broken);
    assert_eq!(told.is_err(), cfg!(debug_assertions));
    assert!(told.err().is_none_or(|d| d.0[0].message.starts_with("hoist made")));
}
