//! Which reads are of elements that nothing has written: those alone that no run writes before.

use taffeta_analysis::query::unwritten;
use taffeta_frontend::{NoHooks, NoLoader, Program, Source};

/// The tensors that are read unwritten, with the lines (from 1) of the body on which they are.
fn found(body: &str) -> Vec<(String, usize)> {
    let text = format!("def f(x: f32[n], p: i32[n], y: inout[f32[n]], k: i32):\n{body}");
    let program = Program::load(Source::inline("test.ft", text), &NoLoader);
    let func = program.elaborate("f", &Default::default(), &NoHooks).unwrap_or_else(|d| panic!("{d}"));
    let line = |s: &taffeta_ast::Stmt| program.sources().line_col(s.origin().span()).map_or(0, |at| at.line - 1);
    unwritten::reads(&func).iter().map(|u| (u.tensor.name().to_string(), line(&u.read))).collect()
}

fn one(tensor: &str, line: usize) -> Vec<(String, usize)> {
    vec![(tensor.to_string(), line)]
}

#[test]
fn what_no_run_writes_before_is_found() {
    let never = "    t = empty((n,), f32)\n    for i in range(n):\n        y[i] = t[i]\n";
    assert_eq!(found(never), one("t", 3));
    let later = "    t = empty((n,), f32)\n    for i in range(n):\n        y[i] = t[i]\n    t[...] = x\n";
    assert_eq!(found(later), one("t", 3));
    let beside = "    t = empty((2 * n,), f32)
    for i in range(n):
        t[2 * i] = x[i]
    for i in range(n):
        y[i] = t[2 * i + 1]
";
    assert_eq!(found(beside), one("t", 5));
    let ahead = "    t = empty((n + 1,), f32)\n    for i in range(n):\n        t[i] = x[i]\n        y[i] = t[i + 1]\n";
    assert_eq!(found(ahead), one("t", 4));
    let summed = "    s = empty((), f32)\n    for i in range(n):\n        s += x[i]\n    y[0] = 1.0\n";
    assert_eq!(found(summed), one("s", 3));
    // A tensor of the loop's body is another one in every iteration.
    let fresh = "    for i in range(n):\n        t = empty((2,), f32)\n        y[i] = t[0]\n        t[0] = x[i]\n";
    assert_eq!(found(fresh), one("t", 3));
}

#[test]
fn what_some_run_writes_before_is_not() {
    let whole = "    t = empty((n,), f32)\n    t[...] = x\n    for i in range(n):\n        y[i] = t[i]\n";
    let some = "    t = empty((n,), f32)\n    for i in range(n):\n        if x[i] > 0.0:\n            t[i] = x[i]\n        y[i] = t[i]\n";
    let gathered = "    t = empty((n,), f32)\n    for i in range(n):\n        t[p[i]] = x[i]\n    for i in range(n):\n        y[i] = t[i]\n";
    let earlier = "    t = empty((n + 1,), f32)\n    for i in range(n):\n        y[i] = t[i] if i > 0 else 0.0\n        t[i + 1] = x[i]\n";
    let unreached = "    t = empty((n,), f32)\n    for i in range(n):\n        if i < 0:\n            y[i] = t[i]\n";
    let guarded = "    t = empty((n,), f32)\n    for i in range(n):\n        y[i] = t[i] if i < 0 else 0.0\n";
    let overlapping = "    t = empty((n,), f32)\n    for i in range(5):\n        t[i] = 1.0\n    for i in range(4, n):\n        y[i] = t[i]\n";
    let summed = "    s = empty((), f32)\n    s = 0.0\n    for i in range(n):\n        s += x[i]\n    y[0] = s\n";
    for body in [whole, some, gathered, earlier, unreached, guarded, overlapping, summed] {
        assert_eq!(found(body), [], "{body}");
    }
}
