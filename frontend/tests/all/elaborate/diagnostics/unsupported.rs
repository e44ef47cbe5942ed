//! Diagnostics for parts of the language that are not implemented.

use super::check;
use expect_test::expect;

#[test]
fn schedules_and_gradients() {
    check(
        "@schedule(f)
def s1(s):
    s.parallelize(\"i\")

def f(x: f32[n]):
    s1(x)
",
        expect![[r#"
            [call::decorated] cannot call `s1` in a program: it has a decorator
              at t.ft:6 `s1(x)`
              help: choose a schedule with `--schedule s1`, or call it in another schedule
        "#]],
    );
    check(
        "def loss(w: f32) -> f32:
    return w * w

dloss = grad(loss, wrt=[\"w\"])
",
        expect![[r#"
            [unsupported] gradients are not supported yet
              at t.ft:4 `grad(loss, wrt=["w"])`
        "#]],
    );
    check(
        "def loss(w: f32) -> f32:
    return w * w

dloss = grad(loss, wrt=[\"v\"])
",
        expect![[r#"
            [grad::wrt] `loss` has no parameter `v`
              at t.ft:4 `grad(loss, wrt=["v"])`
              help: its parameters are w
        "#]],
    );
    check(
        "def loss(w: f32) -> f32:
    return w * w

def f(w: f32):
    l, d = value_and_grad(loss, wrt=\"w\")(w)
    return l, d
",
        expect![[r#"
            [unsupported] gradients are not supported yet
              at t.ft:5 `value_and_grad(loss, wrt="w")`
        "#]],
    );
}

#[test]
fn written_structured_and_continuous_tensors() {
    check(
        "def f(x: inout[f64[n] @ hashmap]):
    return 1
",
        expect![[r#"
            [unsupported] a structured tensor that is written is not supported yet
              at t.ft:1 `inout[f64[n] @ hashmap]`
        "#]],
    );
    check(
        "def f(x: f64[real]):
    return 1
",
        expect![[r#"
            [unsupported] a continuous dimension (`real`) is not supported yet
              at t.ft:1 `real`
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    for t in reals:
        pass
",
        expect![[r#"
            [unsupported] a loop over the reals is not supported yet
              at t.ft:2 `reals`
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    return x[walk(0)]
",
        expect![[r#"
            def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]) -> f32:
                out = empty((), f32)
                out = x[walk(0)]
                return out
        "#]],
    );
}
