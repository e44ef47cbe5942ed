//! Loops that only count.

use taffeta_ast::build::{Builder, block, branch, looped, store};
use taffeta_ast::{DType, Expr, Func, Stmt, StmtKind, Symbol};
use taffeta_codegen::{LowerOptions, lower};

/// Builds a loop that adds `step` to a count `n` times and raises `most` to it; `bounded`: whether the count is known to
/// be small at first.
fn counting(bounded: bool, step: i64) -> Func {
    let mut b = Builder::new("f");
    let n = b.size("n");
    let count = b.inout("count", DType::I64, []);
    let most = b.inout("most", DType::I64, []);
    let next = count.load([]).plus(&Expr::int(1));
    let raised = branch(&most.load([]).less(&next), store(&most, [], &next), None);
    let counted = store(&count, [], &count.load([]).plus(&Expr::int(step)));
    let small = Expr::int(0).less_eq(&count.load([])).and(&count.load([]).less(&Expr::int(1 << 40)));
    let known = Stmt::new(StmtKind::Assume { cond: small }, taffeta_ast::Origin::none());
    let l = looped(&Symbol::new("i"), &n, block([raised, counted]));
    b.finish(block(bounded.then_some(known).into_iter().chain([l])))
}

fn keeps_loop(func: &Func) -> bool {
    let lowered = lower(func, &LowerOptions::default()).expect("it is lowered");
    lowered.func().body.any(&mut |s| matches!(s.kind(), StmtKind::For { .. }))
}

#[test]
fn loops_that_count_vanish_where_no_count_wraps() {
    assert!(!keeps_loop(&counting(true, 1)));
    // The count may be so large that it wraps: the largest is not the last.
    assert!(keeps_loop(&counting(false, 1)));
    assert!(keeps_loop(&counting(true, -1)));
}
