//! Which stores are reductions.

use taffeta_ast::{Func, StmtKind};
use taffeta_frontend::{NoHooks, NoLoader, Program, Source};

fn reductions(body: &str) -> usize {
    let text = format!("def f(x: bool[n], y: inout[bool]):\n    for i in range(n):\n        {body}\n");
    let program = Program::load(Source::inline("f.ft", text), &NoLoader);
    let f: Func = program.elaborate("f", &Default::default(), &NoHooks).expect("it elaborates");
    let mut found = 0;
    f.body.walk(&mut |s| found += usize::from(matches!(s.kind(), StmtKind::ReduceTo { .. })));
    found
}

#[test]
fn a_lazy_operand_that_may_fail_is_no_reduction() {
    assert_eq!(reductions("y[...] = y or i > 3"), 1);
    assert_eq!(reductions("y[...] = x[i + 1] or y"), 1);
    assert_eq!(reductions("y |= x[i + 1]"), 1);
    // Where `y` is True, `x[i + 1]` is not read.
    assert_eq!(reductions("y[...] = y or x[i + 1]"), 0);
    assert_eq!(reductions("y[...] = y and x[i + 1]"), 0);
}
