//! Errors in calls of library operators, in terms of the user's program.

use super::super::{check, check_file};
use expect_test::expect;

#[test]
fn sizes_that_never_agree() {
    check_file(
        "def multiply(x: f32[m, n], y: f32[n + 1, p]):
    return x @ y

def multiply_all(x: f32[2, m, n], y: f32[n + 1, p]):
    return matmul(x[0], y)

def asserted(x: f32[n], y: f32[n + 1]):
    assert x.shape[0] == y.shape[0], \"the same\"
    return x

def compared(x: f32[n], y: f32[n + 1]):
    assert n > n + 1
    return x

def guarded(x: f32[n], k: i32):
    if k > 0:
        assert n > n + 1
    return x + 1

def g(a: f32[k], b: f32[k]) -> f32[k]:
    return a + b

def called(x: f32[n], y: f32[n + 1]):
    return g(x, 2 * y)

def ranks(x: f32[n], y: f32[n, n]):
    return g(x, y)

def pairs(x: f32[n], y: f32[n + 1]):
    return paired(x, y)

def pairs_of_parts(x: f32[2, n], y: f32[3]):
    return paired(x[0], y) + paired(2 * y, b=x[0, 1:])

def last(x: f32[n]):
    return x[n]

def beyond(x: f32[n], i: i32):
    return x[i], x[n + 2]

def fine(x: f32[n], y: f32[m], z: f32[2 * n], none: f32[0], k: i32):
    assert n == m
    s: f32 = 0.0
    for i in range(0):
        s += none[i] + none[n]
        assert n > n + 1
    t = x[n] if k > 3 else 0.0
    return x + z, s, t
",
        expect![[r#"
            [assert::failed] the same
              at t.ft:8 `assert x.shape[0] == y.shape[0], "the same"`
            [assert::failed] `n > n + 1` does not hold
              at t.ft:12 `assert n > n + 1`
            [shape::mismatch] dimension 0 of `2 * y` (`b` of `g`) is n + 1, expected n
              at t.ft:24 `2 * y`
              note: in `g`, called at t.ft:24
            [call::argument] `y` is a tensor of 2 dimensions, but the parameter `b` of `g` has 1 dimension
              at t.ft:27 `y`
              note: in `g`, called at t.ft:27
            [assert::failed] paired: `x` (`a` of `paired`) has n elements, and `y` (`b` of `paired`) n + 1
              at t.ft:30 `paired(x, y)`: in this call of `paired`
              at <libop>/paired.ft:5 `assert x.shape[0] == y.shape[0], f"paired: `x` has {x.shape[0]} elements, and `y` {y.shape[0]}"`: found here
              note: in `paired`, called at t.ft:30
              note: in `_paired`, called at <libop>/paired.ft:2
            [index::range] index n is out of range: the dimension has size n
              at t.ft:36 `n`
            [index::range] index n + 2 is out of range: the dimension has size n
              at t.ft:39 `n + 2`
        "#]],
    );
}

#[test]
fn sizes_hidden_by_functions() {
    check(
        "def n(x):
    return x

def f(x: f32[n]) -> f32[n]:
    return x
",
        expect![[r#"
            [shape::type] expected the size `n`, found a function of that name
              at t.ft:4 `n`
              at t.ft:1 `n`: defined here
              help: give the size another name
        "#]],
    );
    check(
        "n = \"many\"

def f(x: f32[n]) -> f32[n]:
    return x
",
        expect![[r#"
            [shape::type] expected the size `n`, found a string of that name
              at t.ft:3 `n`
              help: give the size another name
        "#]],
    );
}

#[test]
fn faulty_arguments_of_gradients() {
    check_file(
        "def loss(x: f64[n]) -> f64:
    return sum(x * x)

def a(x: f64[n]):
    return grad(loss, wrt=1)(x)

def b(x: f64[n]):
    return grad(loss, out=2)(x)

def c(x: f64[n]):
    return grad(loss, tape=3)(x)
",
        expect![[r#"
            [grad::wrt] `wrt` takes a list of names of parameters
              at t.ft:5 `1`
              help: write `wrt=["W", "b"]`
            [grad::out] `out` takes a list of names of results
              at t.ft:8 `2`
              help: write `out=["loss"]`
            [grad::tape] `tape` takes a list of names of tensors, or "all", "none" or "auto"
              at t.ft:11 `3`
              help: write `tape=["hidden"]`
        "#]],
    );
}

#[test]
fn misspelt_keywords() {
    check_file(
        "def loss(x: f64[n]) -> f64:
    return sum(x * x)

def a(x: f64[n]):
    return zeros(shap=(n,), dtype=f32)

def b(x: f64[n]):
    return clip(x, low=0, hi=1)

def c(x: f64[n]):
    return grad(loss, wtr=[\"x\"])(x)

def d(x: f64[n]):
    return loss(y=x)

def e(x: f64[n]):
    return total(xx=x)
",
        expect![[r#"
            [call::arguments] `zeros` has no parameter `shap`
              at t.ft:5 `(n,)`
              help: did you mean `shape`?
            [call::arguments] `clip` has no parameter `low`
              at t.ft:8 `0`
              help: did you mean `lo`?
            [call::arguments] `grad` has no parameter `wtr`
              at t.ft:11 `["x"]`
              help: did you mean `wrt`?
            [call::arguments] `loss` has no parameter `y`
              at t.ft:14 `x`
              help: its parameters are x
            [call::arguments] `total` has no parameter `xx`
              at t.ft:17 `x`
              help: its parameters are x
        "#]],
    );
}
