//! Recognition of reductions in stores.

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

fn program(params: &str, body: &str) -> String {
    let text = format!("def f({params}):\n    for i in range(n):\n        {body}\n");
    let program = Program::load(Source::inline("f.ft", text), &NoLoader);
    let f: Func = program.elaborate("f", &Default::default(), &NoHooks).expect("it elaborates");
    let all = taffeta_ast::print::func(&f);
    all.lines().last().unwrap_or_default().trim().to_string()
}

#[test]
fn and_and_or_are_reductions() {
    assert_eq!(reductions("y[...] = y or i > 3"), 1);
    assert_eq!(reductions("y[...] = x[i + 1] or y"), 1);
    assert_eq!(reductions("y |= x[i + 1]"), 1);
    assert_eq!(reductions("y[...] = y or x[i + 1]"), 1);
    assert_eq!(reductions("y[...] = y and x[i + 1]"), 1);
    assert_eq!(reductions("y[...] = y or x[i] or i > 3"), 1);
    assert_eq!(reductions("y[...] = x[i] and y and i > 3"), 1);
    assert_eq!(reductions("y[...] = y and x[i] or i > 3"), 0);
    assert_eq!(reductions("y[...] = not y or x[i]"), 0);
    assert_eq!(reductions("y[...] = y or x[i] and y"), 0);
}

#[test]
fn sums_and_extrema_of_several_terms() {
    let one = |body: &str| program("a: inout[f64[n]], v: f64[n], w: f64[n]", body);
    assert_eq!(one("a[i] = a[i] - v[i]"), "a[i] += -v[i]");
    assert_eq!(one("a[i] = a[i] + v[i] - w[i]"), "a[i] += v[i] - w[i]");
    assert_eq!(one("a[i] = v[i] + a[i] - w[i]"), "a[i] += v[i] - w[i]");
    assert_eq!(one("a[i] = v[i] - w[i] + a[i]"), "a[i] += v[i] - w[i]");
    assert_eq!(one("a[i] = v[i] + (a[i] - w[i])"), "a[i] += v[i] + -w[i]");
    assert_eq!(one("a[i] = a[i] - v[i] - w[i]"), "a[i] += -v[i] - w[i]");
    assert_eq!(one("a[i] = min(v[i], w[i], a[i])"), "a[i] = min(a[i], min(v[i], w[i]))");
    assert_eq!(one("a[i] = max(v[i], a[i], w[i])"), "a[i] = max(a[i], max(v[i], w[i]))");
    // The element is subtracted, or read again, or the operators are mixed.
    assert_eq!(one("a[i] = v[i] - a[i]"), "a[i] = v[i] - a[i]");
    assert_eq!(one("a[i] = v[i] - (w[i] - a[i])"), "a[i] = v[i] - (w[i] - a[i])");
    assert_eq!(one("a[i] = a[i] + v[i] * a[i]"), "a[i] = a[i] + v[i] * a[i]");
    assert_eq!(one("a[i] = a[i] - a[i]"), "a[i] = a[i] - a[i]");
    assert_eq!(one("a[i] = min(a[i], max(a[i], v[i]))"), "a[i] = min(a[i], max(a[i], v[i]))");
    assert_eq!(one("a[i] = a[i] * v[i] * w[i]"), "a[i] = a[i] * v[i] * w[i]");
    assert_eq!(one("a[i] = a[i] / v[i]"), "a[i] = a[i] / v[i]");
    // A different element of the same tensor is an ordinary operand.
    assert_eq!(one("a[i] = a[i - 1] - v[i]"), "a[i] = a[i - 1] - v[i]");
    assert_eq!(one("a[i] = a[i] - a[i - 1]"), "a[i] += -a[i - 1]");
    let ints = |body: &str| program("a: inout[u8[n]], v: u8[n], at: i32[n]", body);
    assert_eq!(ints("a[i] = a[i] - v[i]"), "a[i] += -v[i]");
    assert_eq!(ints("a[i] = v[i] & a[i] & 3"), "a[i] &= v[i] & 3");
    assert_eq!(ints("a[at[i]] = a[at[i]] - v[i]"), "a[cast(at[i], i64)] += -v[i]");
}

#[test]
fn calls_in_operands_of_and_and_or() {
    let count = |functions: &str, body: &str| {
        let text = format!(
            "{functions}\ndef f(x: i32[n, m], y: inout[bool[n]], z: inout[i32[m]]):\n    for i in range(n):\n        {body}\n"
        );
        let program = Program::load(Source::inline("f.ft", text), &NoLoader);
        let f: Func = program.elaborate("f", &Default::default(), &NoHooks).expect("it elaborates");
        let mut found = 0;
        f.body.walk(&mut |s| {
            found += usize::from(matches!(s.kind(), StmtKind::ReduceTo { tensor, .. } if tensor.name() == "y"));
        });
        found
    };
    let some =
        "def some(v):\n    r: bool = False\n    for k in range(v.shape[0]):\n        r |= v[k] > 0\n    return r\n";
    assert_eq!(count(some, "y[i] = y[i] or some(x[i])"), 1);
    assert_eq!(count(some, "y[i] = y[i] and i > 3 and some(x[i])"), 1);
    assert_eq!(count(some, "y[i] = y[0] or some(x[i])"), 0);
    // Writes of the call do not happen where the element decides.
    let counting = "def some(v, z):\n    z[0] += 1\n    return v[0] > 0\n";
    assert_eq!(count(counting, "y[i] = y[i] or some(x[i], z)"), 0);
}
