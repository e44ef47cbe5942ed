//! Tests of the reads that may see a value from outside of an iteration.

use taffeta_analysis::query::depend::Dependences;
use taffeta_ast::{Expr, Func, Stmt, StmtKind, print};
use taffeta_frontend::{NoHooks, NoLoader, Program, Source};

/// Prints the read of `t` that is exposed in an iteration of the first loop over `i`.
fn exposed(body: &str) -> Option<String> {
    let head = "def f(x: i64[n], p: i32[n], y: inout[i64[n]], t: inout[i64[2 * n + 2]]):\n";
    exposed_in(&format!("{head}    for i in range(n):\n{body}"), "t")
}

/// Prints the read of a tensor that is exposed in an iteration of the first loop of a program.
fn exposed_in(text: &str, tensor: &str) -> Option<String> {
    let program = Program::load(Source::inline("test.ft", text), &NoLoader);
    let func: Func = program.elaborate("f", &Default::default(), &NoHooks).unwrap_or_else(|d| panic!("{d}"));
    let mut within: Option<Stmt> = None;
    func.body.walk(&mut |s| {
        if within.is_none() && matches!(s.kind(), StmtKind::For { .. }) {
            within = Some(s.clone());
        }
    });
    let dependences = Dependences::new(&func);
    let t = &dependences.references().iter().find(|r| r.tensor.name() == tensor)?.declared;
    let read = dependences.exposed_read(&t.symbol, &within?)?;
    let indices = read.indices.into_iter().flatten().map(Into::into).collect();
    Some(print::expr(&Expr::load(&t.symbol, indices, t.dtype)))
}

#[test]
fn reads_after_writes_of_the_iteration_are_killed() {
    let all = "
        for k in range(n):
            t[k] = x[k]
        for k in range(n - 1, -1, -1):
            y[k] = t[k]
";
    assert_eq!(exposed(all), None);
    let in_two_parts = "
        for k in range(n):
            t[2 * k] = x[k]
            t[2 * k + 1] = x[k]
        for k in range(2 * n):
            y[k // 2] = t[k]
";
    assert_eq!(exposed(in_two_parts), None);
    let earlier_in_an_inner_loop = "
        t[0] = 0
        for k in range(1, n):
            t[k] = t[k - 1] + x[k]
";
    assert_eq!(exposed(earlier_in_an_inner_loop), None);
    let both_branches = "
        for k in range(n):
            if k < 3:
                t[k] = 1
            else:
                t[k] = x[k]
        y[i] = t[i]
";
    assert_eq!(exposed(both_branches), None);
    let through_an_index = "
        t[p[i]] = 1
        y[i] = t[p[i]]
";
    assert_eq!(exposed(through_an_index), None);
}

#[test]
fn reads_of_outer_values_are_exposed() {
    let too_few = "
        for k in range(1, n):
            t[k] = x[k]
        y[i] = t[i]
";
    assert_eq!(exposed(too_few).as_deref(), Some("t[i]"));
    let too_late = "
        y[i] = t[i]
        t[i] = 1
";
    assert_eq!(exposed(too_late).as_deref(), Some("t[i]"));
    let perhaps = "
        for k in range(n):
            if x[k] > 0:
                t[k] = 1
        y[i] = t[i]
";
    assert_eq!(exposed(perhaps).as_deref(), Some("t[i]"));
    let combined = "
        t[i] += x[i]
";
    assert_eq!(exposed(combined).as_deref(), Some("t[i]"));
    // Each condition may fail in the only iteration that it selects, though one of the comparisons of `x[k]` always
    // holds.
    let one_of_two = "
        for k in range(2):
            if x[k] > 0 and k == 0:
                t[0] = 1
            if x[k] <= 0 and k == 1:
                t[0] = 2
        y[i] = t[0]
";
    assert_eq!(exposed(one_of_two).as_deref(), Some("t[0]"));
}

#[test]
fn changing_conditions_are_not_assumed_equal() {
    let changed = "
        y[i] = 1
        if y[i] > 0:
            t[0] = 1
        y[i] = 0
        if y[i] <= 0:
            t[1] = 2
        if y[i] > 0:
            y[i] = t[0]
";
    assert_eq!(exposed(changed).as_deref(), Some("t[0]"));
    let kept = "
        if x[i] > 0:
            t[0] = 1
        if x[i] > 0:
            y[i] = t[0]
";
    assert_eq!(exposed(kept), None);
}

/// Checks that a tensor that is declared in an inner loop keeps no values from earlier iterations.
#[test]
fn a_tensor_of_an_inner_loop_loses_its_values() {
    let counts = "            u = k if k == 0 else u + 1\n            y[k] = u\n";
    let outside = "        u = empty((), i64)\n        for k in range(n):\n";
    let inside = "        for k in range(n):\n            u = empty((), i64)\n";
    let exposed =
        |before: &str| exposed_in(&format!("def f(y: inout[i64[n]]):\n    for i in range(n):\n{before}{counts}"), "u");
    assert_eq!(exposed(outside), None);
    assert_eq!(exposed(inside).as_deref(), Some("u"));
}
