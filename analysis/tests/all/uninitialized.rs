//! Tests of reads of uninitialised elements: only reads that no run precedes by a write are reported.

use taffeta_analysis::query::depend::Dependences;
use taffeta_analysis::query::uninitialized;
use taffeta_frontend::{NoHooks, NoLoader, Program, Source};

/// Returns the tensors that are read uninitialised, with the lines of the body (from 1).
fn found(body: &str) -> Vec<(String, usize)> {
    let text = format!("def f(x: f32[n], p: i32[n], y: inout[f32[n]], k: i32):\n{body}");
    let program = Program::load(Source::inline("test.ft", text), &NoLoader);
    let func = program.elaborate("f", &Default::default(), &NoHooks).unwrap_or_else(|d| panic!("{d}"));
    let line = |s: &taffeta_ast::Stmt| program.sources().line_col(s.origin().span()).map_or(0, |at| at.line - 1);
    uninitialized::reads(&Dependences::new(&func))
        .iter()
        .map(|u| (u.tensor.name().to_string(), line(&u.read)))
        .collect()
}

fn one(tensor: &str, line: usize) -> Vec<(String, usize)> {
    vec![(tensor.to_string(), line)]
}

#[test]
fn reads_before_any_write_are_found() {
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
fn reads_after_possible_writes_are_not_reported() {
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

/// Prints the elements that are read and never written in a program.
fn never_written(text: &str) -> Vec<String> {
    let program = Program::load(Source::inline("test.ft", text.to_string()), &NoLoader);
    let func = program.elaborate("f", &Default::default(), &NoHooks).unwrap_or_else(|d| panic!("{d}"));
    let line = |s: &taffeta_ast::Stmt| program.sources().line_col(s.origin().span()).map_or(0, |at| at.line);
    let show = |u: &uninitialized::Element| {
        let sizes: Vec<String> = u.sizes.iter().map(|(s, v)| format!("{} = {v}", s.name())).collect();
        let by = u.read.as_ref().map_or("the caller".to_string(), |s| format!("line {}", line(s)));
        format!("{}{:?} with {}, by {by}", u.tensor.name(), u.indices, sizes.join(", "))
    };
    uninitialized::elements(&Dependences::new(&func)).iter().map(show).collect()
}

#[test]
fn single_unwritten_elements_are_found() {
    let head = "def f(x: f32[n], p: i32[n], y: inout[f32[n]]):\n    t = empty((n,), f32)\n";
    let of = |body: &str| never_written(&format!("{head}{body}"));
    let whole = "    for i in range(n):\n        y[i] = t[i]\n";
    let last = of(&format!("    for i in range(n - 1):\n        t[i] = x[i]\n{whole}"));
    assert_eq!(last, ["t[0] with n = 1, by line 6"]);
    let first = of(&format!("    for i in range(1, n):\n        t[i] = x[i]\n{whole}"));
    assert_eq!(first, ["t[0] with n = 1, by line 6"]);
    let odd =
        of(&format!("    for i in range(n // 2):\n        t[2 * i] = x[i]\n        t[2 * i + 1] = x[i]\n{whole}"));
    assert_eq!(odd, ["t[0] with n = 1, by line 7"]);
    let gap =
        of(&format!("    for i in range(3, n):\n        t[i] = x[i]\n    if n > 1:\n        t[0:2] = 0.0\n{whole}"));
    assert_eq!(gap, ["t[0] with n = 1, by line 8"]);
    let far = of(
        "    for i in range(n):\n        if i < 5:\n            t[i] = x[i]\n    for i in range(n):\n        if i >= 7:\n            y[i] = t[i]\n        elif i < 6:\n            y[i] = t[i]\n",
    );
    assert_eq!(far, ["t[7] with n = 8, by line 8"]);
    // The tensor is another one in every iteration of the loop.
    let inner = "def f(y: inout[f32[n]]):\n    for i in range(n):\n        t = empty((2,), f32)\n        t[i % 2] = 1.0\n        y[i] = t[0]\n";
    assert_eq!(never_written(inner), ["t[0] with n = 2, by line 5"]);
}

#[test]
fn unwritten_elements_of_results_are_found() {
    let border = "def f(x: f32[n, m]) -> f32[n, m]:
    y = empty((n, m), f32)
    for i in range(1, n - 1):
        for j in range(m):
            y[i, j] = x[i, j]
    return y
";
    assert_eq!(never_written(border), ["y[0, 0] with n = 1, m = 1, by the caller"]);
    let even = "def f(x: f32[n]) -> f32[n]:
    assert n % 2 == 0
    y = empty((n,), f32)
    for i in range(n // 2):
        y[2 * i] = x[i]
        y[2 * i + 1] = x[i]
    return y
";
    assert_eq!(never_written(even), Vec::<String>::new());
    assert_eq!(never_written(&even.replace("    assert n % 2 == 0\n", "")), ["y[0] with n = 1, by the caller"]);
}

#[test]
fn elements_that_may_be_written_are_not_reported() {
    let head = "def f(x: f32[n], p: i32[n], y: inout[f32[n]]):\n    t = empty((n,), f32)\n";
    let whole = "    for i in range(n):\n        y[i] = t[i]\n";
    for body in [
        "    for i in range(n):\n        if x[i] > 0.0:\n            t[i] = x[i]\n",
        "    for i in range(n):\n        t[p[i]] = x[i]\n",
        "    for i in range(n // 2):\n        t[i] = x[i]\n    for i in range(n // 2, n):\n        t[i] = x[i]\n",
        "    for i in range(n):\n        t[n - 1 - i] = x[i]\n",
        "    for i in range(0, n, 2):\n        t[i] = x[i]\n        if i + 1 < n:\n            t[i + 1] = x[i]\n",
    ] {
        assert_eq!(never_written(&format!("{head}{body}{whole}")), Vec::<String>::new(), "{body}");
    }
    // The read depends on loaded values.
    let some = "    t[0:n // 2] = 0.0\n    for i in range(n):\n        if x[i] > 0.0:\n            y[i] = t[i]\n";
    assert_eq!(never_written(&format!("{head}{some}")), Vec::<String>::new());
}
