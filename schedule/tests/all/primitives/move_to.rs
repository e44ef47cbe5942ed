use crate::args;
use crate::primitives::common::{call, check, refused};
use expect_test::expect;

#[test]
fn within_a_block() {
    check(
        "
def f(x: inout[f32[n]], y: inout[f32[n]]):
    label(\"A\")
    x[...] = x * 2
    t = y + 1
    y[...] = t * t
",
        |s| call(s, "move_to", args!["A"; after = "y.d0"]).map(drop),
        expect![[r#"
            t = empty((n,), f32)
            for t.d0 in range(n):
                t[t.d0] = y[t.d0] + 1.0
            for y.d0 in range(n):
                y[y.d0] = t[y.d0] * t[y.d0]
            label("A")
            for x.d0 in range(n):
                x[x.d0] *= 2.0
        "#]],
    );
    check(
        "
def f(x: inout[f32[n]], y: inout[f32[n]]):
    for i in range(n):
        x[i] = x[i] * 2
    t = y + 1
    y[...] = t * t
",
        |s| call(s, "move_to", args!["t.d0"; before = "i"]).map(drop),
        expect![[r#"
            t = empty((n,), f32)
            for t.d0 in range(n):
                t[t.d0] = y[t.d0] + 1.0
            for i in range(n):
                x[i] *= 2.0
            for y.d0 in range(n):
                y[y.d0] = t[y.d0] * t[y.d0]
        "#]],
    );
}

#[test]
fn out_of_loops() {
    check(
        "
def f(x: f32[n, m], y: inout[f32[n]], z: inout[f32[n, m]]):
    for k in range(n):
        y[k] = 0
    for i in range(n):
        for j in range(m):
            t = x[i, j] * 2
            y[i] += t
            label(\"A\")
            z[i, j] = x[i, j] + 1
            y[i] += t * t
",
        |s| {
            let moved = call(s, "move_to", args!["A"; before = "k"])?;
            call(s, "parallelize", args![moved[0].clone()]).map(drop)
        },
        expect![[r#"
            for i in range(n):  # parallel
                for j in range(m):
                    label("A")
                    z[i, j] = x[i, j] + 1.0
            for k in range(n):
                y[k] = 0.0
            t = empty((n, m), f32)
            for i in range(n):
                for j in range(m):
                    t[i, j] = x[i, j] * 2.0
                    y[i] += t[i, j]
            for i in range(n):
                for j in range(m):
                    y[i] += t[i, j] * t[i, j]
        "#]],
    );
}

#[test]
fn refuses() {
    refused(
        "
def f(x: inout[f32[n]], y: inout[f32[n]]):
    label(\"A\")
    x[0] = 2
    for i in range(n):
        label(\"B\")
        y[i] = 3
",
        |s| call(s, "move_to", args!["A"; after = "B"]).map(drop),
        expect![[r#"
            schedule::illegal (1): the statement is not in the block of the other one
              `x[0] = 2` this statement
              `y[i] = 3` the other one
              help: statements move out of loops, not into them: use `s.fuse(…)` to join loops
        "#]],
    );
    refused(
        "
def f(x: inout[f32[n]], y: inout[f32[n]]):
    for k in range(n):
        y[k] = 0
    for i in range(1, n):
        label(\"A\")
        x[i] = y[i - 1]
        label(\"B\")
        y[i] = x[i] + 1
",
        |s| call(s, "move_to", args!["A"; before = "k"]).map(drop),
        expect![[r#"
            schedule::dependence (2): the first half depends on the second half in earlier iterations of `i`
              `y[i] = x[i] + 1` first writes `y[i]` at i = 1
              `x[i] = y[i - 1]` then reads `y[i - 1]` at i = 2
              note: flow dependence (RAW), carried by the loop `i`
              note: the element is y[1] with n = 3
        "#]],
    );
    refused(
        "
def f(x: inout[f32[n]], y: inout[f32[n]]):
    for k in range(n):
        y[k] = 0
    for i in range(n):
        x[i] = y[i]
",
        |s| call(s, "move_to", args!["i"; before = "k"]).map(drop),
        expect![[r#"
            schedule::dependence (3): it would reverse a dependence
              `y[k] = 0` first writes `y[k]` at k = 0
              `x[i] = y[i]` then reads `y[i]` at i = 0
              note: flow dependence (RAW), within one iteration of the loops around both
              note: the element is y[0] with n = 1
        "#]],
    );
    refused(
        "
def f(x: inout[f32[n]], y: inout[f32[n]], b: bool):
    for k in range(n):
        y[k] = 0
    if b:
        for i in range(n):
            x[i] = 1
",
        |s| call(s, "move_to", args!["i"; before = "k"]).map(drop),
        expect![[r#"
            schedule::illegal (2): the statement is inside a statement that is not a loop over integers
              `if b:` this one
              `for i in range(n):` the statement
        "#]],
    );
}
