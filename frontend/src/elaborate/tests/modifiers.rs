//! Index modifiers: integers that are made of others.

use super::check;
use expect_test::expect;

#[test]
fn windows_and_offsets_are_sums() {
    check(
        "def f(x: f64[n], w: f64[k], at: i64):
    s = 0.0
    for j in range(k):
        s += x[window(at, at + k)[j]] * w[j] + x[window(2, 5)[1]] + x[offset(3)[at]]
    for j in range(n - 2):
        s += x[offset(-2)[j]] * x[window(2, n)[j]]
    y = x[window(1, n)]
    return s, y
",
        expect![[r#"
            def f(x: f64[n], w: f64[k], at: i64) -> (f64, f64[n - 1]):
                s = empty((), f64)
                y = empty((n - 1,), f64)
                s = 0.0
                for j in range(k):
                    s += x[at + j] * w[j] + x[3] + x[at - 3]
                for j in range(n - 2):
                    s += x[j + 2] * x[j + 2]
                for y.d0 in range(n - 1):
                    y[y.d0] = x[y.d0 + 1]
                return s, y
        "#]],
    );
}

/// What is not proved to be in a window is asserted.
#[test]
fn windows_have_ends() {
    check(
        "def f(x: f64[n], k: i64):
    return x[window(k, k + 2)[2]]
",
        expect![[r#"
            [index::range] index 2 is out of range: the dimension has size 2
              at t.ft:2 `2`
        "#]],
    );
    check(
        "def f(x: f64[n], k: i64):
    s = 0.0
    for j in range(5):
        s += x[window(k, k + 4)[j]]
    return s
",
        expect![[r#"
            def f(x: f64[n], k: i64) -> f64:
                s = empty((), f64)
                s = 0.0
                for j in range(5):
                    assert j < 4, f"index {j} is out of range: the dimension has size 4"
                    s += x[k + j]
                return s
        "#]],
    );
}

#[test]
fn they_are_of_integers() {
    check(
        "def f(x: f64[n]):\n    return x[window(1.5, n)[0]]\n",
        expect![[r#"
        [range::type] the bounds of a range are integers, and this is `f64`
          at t.ft:2 `1.5`
    "#]],
    );
    check(
        "def f(x: f64[n]):\n    return x[window(1)[0]]\n",
        expect![[r#"
        [call::arguments] `window` needs its parameter `end`
          at t.ft:2 `window(1)`
    "#]],
    );
    check(
        "def f(x: f64[n]):\n    return x[offset(1)]\n",
        expect![[r#"
        [index::type] an index is an integer, and this is an offset, which is for indices: `offset(d)[j]`
          at t.ft:2 `offset(1)`
    "#]],
    );
    check(
        "def f(x: f64[n]):\n    return x[offset(1)[0.5]]\n",
        expect![[r#"
        [index::type] an index is an integer, and this is a float
          at t.ft:2 `0.5`
    "#]],
    );
    check(
        "def f(x: f64[n]):\n    return x[offset(1)[0, 1]]\n",
        expect![[r#"
        [type::subscript] `offset(d)` has one index
          at t.ft:2 `offset(1)[0, 1]`
    "#]],
    );
    check(
        "def f(x: f64[n]):\n    return offset(1) + 1\n",
        expect![[r#"
        [type::operand] `+` takes tensors and numbers, and this is an offset, which is for indices: `offset(d)[j]`
          at t.ft:2 `offset(1)`
    "#]],
    );
}
