//! Diagnostics for faulty calls, arguments and templates.

use super::check;
use expect_test::expect;

#[test]
fn arguments() {
    check(
        "def g(a, b):
    return a + b

def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    return g(x)
",
        expect![[r#"
            [call::arguments] `g` needs an argument for `b`
              at t.ft:5 `g(x)`
        "#]],
    );
    check(
        "def g(a, b):
    return a + b

def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    return g(x, c=1)
",
        expect![[r#"
            [call::arguments] `g` has no parameter `c`
              at t.ft:5 `1`
              help: its parameters are a, b
        "#]],
    );
    check(
        "def g(a, b):
    return a + b

def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    return g(x, x, x)
",
        expect![[r#"
            [call::arguments] `g` takes 2 arguments, but more are given
              at t.ft:5 `x`
        "#]],
    );
    check(
        "def g(a, b):
    return a + b

def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    return g(x, a=x)
",
        expect![[r#"
            [call::arguments] `a` is given twice to `g`
              at t.ft:5 `x`
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    return exp(x, x)
",
        expect![[r#"
            [call::arguments] `exp` takes 1 positional argument, found 2
              at t.ft:2 `exp(x, x)`
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    return zeros(n, shape=n)
",
        expect![[r#"
            [call::arguments] `shape` is given twice to `zeros`
              at t.ft:2 `n`
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    return zeros((n,), type=f32)
",
        expect![[r#"
            [call::arguments] `zeros` has no parameter `type`
              at t.ft:2 `f32`
              help: did you mean `dtype`?
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    return x(0)
",
        expect![[r#"
            [type::call] cannot call a tensor of 1 dimension
              at t.ft:2 `x(0)`
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    return f32(x)
",
        expect![[r#"
            [type::call] cannot call the type `f32`
              at t.ft:2 `f32(x)`
              help: convert with `cast(x, f32)`
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    return int(x)
",
        expect![[r#"
            [type::call] cannot call a type of static values
              at t.ft:2 `int(x)`
              help: convert with `cast(x, i64)` or `cast(x, f64)`
        "#]],
    );
}

#[test]
fn static_arguments() {
    check(
        "def g(a, w: static):
    return a * w

def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    return g(x, n)
",
        expect![[r#"
            [static::argument] expected a static value for `w` of `g`, found a scalar
              at t.ft:5 `n`
              note: in `g`, called at t.ft:5
              help: static values are known when compiling; sizes and values of tensors are not
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    return [i for i in range(n)]
",
        expect![[r#"
            [static::sequence] expected a list, a tuple or a range known when compiling, found a range of sizes
              at t.ft:2 `range(n)`
              help: sizes are not static: loop over them with `for i in range(n)`
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    for i in static(range(n)):
        pass
",
        expect![[r#"
            [static::sequence] expected a list, a tuple or a range known when compiling, found a range of sizes
              at t.ft:2 `range(n)`
              help: sizes are not static: loop over them with `for i in range(n)`
        "#]],
    );
}

#[test]
fn annotated_arguments() {
    check(
        "def g(a: f32[m]) -> f32:
    return a[0]

def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    return g(x[0])
",
        expect![[r#"
            [call::argument] `x[0]` is a scalar, but the parameter `a` of `g` has 1 dimension
              at t.ft:5 `x[0]`
              note: in `g`, called at t.ft:5
        "#]],
    );
    check(
        "def g(a: f32[3], c: f32[4]) -> f32:
    return a[0]

def f(x: f32[3], y: f32[5]):
    return g(x, y)
",
        expect![[r#"
            [shape::mismatch] dimension 0 of `y` (`c` of `g`) is 5, expected 4
              at t.ft:5 `y`
              note: in `g`, called at t.ft:5
        "#]],
    );
    check(
        "def g(a: inout[f32[m]]):
    a += 1

def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    g(x)
",
        expect![[r#"
            [assign::read_only] cannot write to `x`: it is a read-only parameter
              at t.ft:5 `x`
              note: in `g`, called at t.ft:5
              help: annotate it with `inout[f32[n]]` to write it, or copy it: `t = x`
        "#]],
    );
    check(
        "def g(a: inout[f32[m]]):
    a += 1

def f(k: inout[i32[n]]):
    g(k)
",
        expect![[r#"
            [call::argument] expected a tensor of `f32` for the written parameter `a`, found `i32`
              at t.ft:5 `k`
              note: in `g`, called at t.ft:5
        "#]],
    );
}

#[test]
fn recursion() {
    check(
        "def g(a, d):
    return g(a, d + 1)

def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    return g(x, 0)
",
        expect![[r#"
            [call::depth] the recursion of `g` does not end: it calls itself more than 512 deep
              at t.ft:2 `g(a, d + 1)`
              note: in `g`, called at t.ft:5
              note: in `g`, called at t.ft:2
              note: in `g`, called at t.ft:2
              note: … 506 more calls …
              note: in `g`, called at t.ft:2
              note: in `g`, called at t.ft:2
              note: in `g`, called at t.ft:2
              help: stop the recursion by a condition on static values (`ndim`, static parameters)
        "#]],
    );
}

#[test]
fn inside_a_template() {
    check(
        "def g(a):
    return h(a) + 1

def h(a):
    return a + bb

def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    return g(x)
",
        expect![[r#"
            [name::unknown] there is no `bb` here
              at t.ft:5 `bb`
              note: in `g`, called at t.ft:8
              note: in `h`, called at t.ft:2
        "#]],
    );
}

#[test]
fn inside_the_library() {
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    return x @ x
",
        expect![[r#"
            [index::range] index 1 is out of range: the sequence has 1 item
              at t.ft:2 `x @ x`: in this call of `matmul`
              at <libop>/matmul.ft:5 `1`: found here
              note: in `matmul`, called at t.ft:2
        "#]],
    );
}

#[test]
fn parameters_of_templates() {
    check(
        "def g(p):
    p = 1

def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    g(y)
",
        expect![[r#"
            [assign::parameter] cannot assign to `p`: it is a parameter, which names a tensor of the caller
              at t.ft:2 `p`
              note: in `g`, called at t.ft:5
              help: use another name for a new tensor: `p_new = …`; to write into the caller's, `p[...] = …` (in an entry, annotate the parameter with `inout[…]`)
        "#]],
    );
    check(
        "def g(p):
    p[...] = 1

def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    g(3)
",
        expect![[r#"
            [assign::value] cannot write to `p`: it is a value, not a tensor
              at t.ft:2 `p`
              note: in `g`, called at t.ft:5
              help: pass a tensor: give the argument a name first, `t: f64 = …`
        "#]],
    );
}
