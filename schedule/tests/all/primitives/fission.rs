use crate::args;
use crate::primitives::common::{call, check, refused};
use expect_test::expect;

#[test]
fn splits_a_loop_in_two() {
    check(
        "
def f(x: f32[n], y: inout[f32[n]], z: inout[f32[n]]):
    for i in range(n):
        label(\"A\")
        y[i] = x[i] * 2
        z[i] = y[i] + 1
",
        |s| call(s, "fission", args!["i"; after = "A"]).map(drop),
        expect![[r#"
            for i in range(n):
                label("A")
                y[i] = x[i] * 2.0
            for i in range(n):
                z[i] = y[i] + 1.0
        "#]],
    );
    // Backwards, with gaps, and a later read in the second half.
    check(
        "
def f(x: inout[f32[n]], z: inout[f32[n]]):
    for i in range(n - 1, 0, -2):
        x[i] = x[i] * 2
        label(\"B\")
        z[i] = x[i] + x[min(i + 2, n - 1)]
",
        |s| call(s, "fission", args!["i"; before = "B"]).map(drop),
        expect![[r#"
            for i in range(n - 1, 0, -2):
                x[i] *= 2.0
            for i in range(n - 1, 0, -2):
                label("B")
                z[i] = x[i] + x[min(i + 2, n - 1)]
        "#]],
    );
}

#[test]
fn expands_tensors_that_cross_the_cut() {
    check(
        "
def f(x: f32[n, m], y: inout[f32[n, m]]):
    for i in range(n):
        t = zeros((m,), f32)
        u: f32 = 0
        for j in range(m):
            t[j] += x[i, j]
            u += t[j] * t[j]
        label(\"B\")
        for j in range(m):
            y[i, j] = t[j] / u
",
        |s| call(s, "fission", args!["i"; before = "B"]).map(drop),
        expect![[r#"
            t = empty((n, m), f32)
            u = empty((n,), f32)
            for i in range(n):
                for t.d0 in range(m):
                    t[i, t.d0] = 0.0
                u[i] = 0.0
                for j in range(m):
                    t[i, j] += x[i, j]
                    u[i] += t[i, j] * t[i, j]
            for i in range(n):
                label("B")
                for j in range(m):
                    y[i, j] = t[i, j] / u[i]
        "#]],
    );
    // Backwards, with a step, a size that depends on the iterator, and an index that reads the tensor itself.
    check(
        "
def f(x: i32[n], y: inout[i32[n]]):
    for i in range(n - 1, -1, -3):
        t = empty((i + 1,), i32)
        for j in range(i + 1):
            t[j] = x[j] % (i + 1)
        label(\"B\")
        y[i] = t[t[i]]
",
        |s| call(s, "fission", args!["i"; before = "B"]).map(drop),
        expect![[r#"
            t = empty(((n + 2) // 3, n), i32)
            for i in range(n - 1, -1, -3):
                for j in range(i + 1):
                    t[(i - (n - 1)) // -3, j] = x[j] % cast(i + 1, i32)
            for i in range(n - 1, -1, -3):
                label("B")
                y[i] = t[(i - (n - 1)) // -3, cast(t[(i - (n - 1)) // -3, i], i64)]
        "#]],
    );
    // A range that may be negative.
    check(
        "
def f(x: f32[n], y: inout[f32[n]]):
    for i in range(3, n):
        t = x[i] * 2
        label(\"B\")
        y[i] = t + 1
",
        |s| call(s, "fission", args!["i"; before = "B"]).map(drop),
        expect![[r#"
            t = empty((max(n - 3, 0),), f32)
            for i in range(3, n):
                t[i - 3] = x[i] * 2.0
            for i in range(3, n):
                label("B")
                y[i] = t[i - 3] + 1.0
        "#]],
    );
}

#[test]
fn conditions_and_loops_around_the_cut() {
    check(
        "
def f(x: f32[n, m], b: bool[n], y: inout[f32[n, m]], z: inout[f32[n, m]]):
    for i in range(n):
        if b[i]:
            for j in range(m):
                t = x[i, j] * 2
                label(\"A\")
                y[i, j] = t
                z[i, j] = t + y[i, j]
        else:
            y[i, 0] = 3
",
        |s| {
            let made = call(s, "fission", args!["i"; after = "A"])?;
            call(s, "parallelize", args![made[0].clone()])?;
            call(s, "parallelize", args![made[1].clone()]).map(drop)
        },
        expect![[r#"
            t = empty((n, m), f32)
            for i in range(n):  # parallel
                if b[i]:
                    for j in range(m):
                        t[i, j] = x[i, j] * 2.0
                        label("A")
                        y[i, j] = t[i, j]
                else:
                    y[i, 0] = 3.0
            for i in range(n):  # parallel
                if b[i]:
                    for j in range(m):
                        z[i, j] = t[i, j] + y[i, j]
        "#]],
    );
    // The cut in the `else`, and at the end of the inner loop.
    check(
        "
def f(x: f32[n, m], b: bool[n], y: inout[f32[n]], z: inout[f32[n]]):
    for i in range(n):
        if b[i]:
            y[i] = 3
        else:
            for j in range(m):
                label(\"A\")
                y[i] += x[i, j]
            z[i] = y[i]
",
        |s| call(s, "fission", args!["i"; after = "A"]).map(drop),
        expect![[r#"
            for i in range(n):
                if b[i]:
                    y[i] = 3.0
                else:
                    for j in range(m):
                        label("A")
                        y[i] += x[i, j]
            for i in range(n):
                if not b[i]:
                    z[i] = y[i]
        "#]],
    );
}

#[test]
fn refuses() {
    refused(
        "
def f(x: inout[f32[n]], y: inout[f32[n]]):
    label(\"A\")
    y[0] = 1
    for i in range(n):
        y[i] = 2
",
        |s| call(s, "fission", args!["i"; after = "A"]).map(drop),
        expect![[r#"
            schedule::illegal (1): the statement is not in the loop `i`
              `y[0] = 1` this statement
              `for i in range(n):` this loop
        "#]],
    );
    refused(
        "
def f(x: inout[f32[n]], y: inout[f32[n]]):
    for i in range(n):
        label(\"A\")
        y[i] = 2
",
        |s| call(s, "fission", args!["i"; after = "A"]).map(drop),
        expect![[r#"
            schedule::illegal (1): there is nothing after the cut in the loop `i`
              `y[i] = 2` this statement
        "#]],
    );
    refused(
        "
def f(y: inout[f32[n]], k: i32):
    for i in range(0, n, k + 1):
        label(\"A\")
        y[i] = 2
        y[i] += 3
",
        |s| call(s, "fission", args!["i"; after = "A"]).map(drop),
        expect![[r#"
            schedule::illegal (2): the step of `i` is not a constant
              `for i in range(0, n, k + 1):` this loop
        "#]],
    );
    refused(
        "
def f(y: inout[f32[n]], z: inout[f32[n]]):
    for i in range(n):
        label(\"A\")
        y[i] = 2
        z[i] = y[i]
",
        |s| {
            call(s, "parallelize", args!["i"])?;
            call(s, "fission", args!["i"; after = "A"]).map(drop)
        },
        expect![[r#"
            schedule::illegal (2): the loop `i` is already parallel
              `for i in range(n):` this loop
              help: take this step before `parallelize`, `vectorize`, `unroll` and `blend`
        "#]],
    );
    refused(
        "
def f(y: inout[f32[n]], z: inout[f32[n]]):
    for i in range(n):
        if y[i] > 1:
            label(\"A\")
            y[i] = 0
            z[i] = y[i]
",
        |s| call(s, "fission", args!["i"; after = "A"]).map(drop),
        expect![[r#"
            schedule::illegal (3): a condition around the cut reads values that the first half writes
              `if y[i] > 1:` this statement
        "#]],
    );
    refused(
        "
def f(k: inout[i32], y: inout[f32[n]], z: inout[f32[n]]):
    for i in range(min(k, n)):
        label(\"A\")
        k[...] = 2
        z[i] = y[i]
",
        |s| call(s, "fission", args!["i"; after = "A"]).map(drop),
        expect![[r#"
            schedule::illegal (3): the bounds of `i` change in the first half
              `for i in range(min(k, n)):` this loop
        "#]],
    );
    refused(
        "
def f(y: inout[f32[n]], z: inout[f32[n]]):
    for i in range(n):
        t = zeros((i % 3 + 1,), f32)
        label(\"A\")
        t[i % 3] = y[i]
        z[i] += t[i % 3]
",
        |s| call(s, "fission", args!["i"; after = "A"]).map(drop),
        expect![[r#"
            schedule::illegal (4): `t` is used in both halves, and its size i % 3 + 1 is not known before the loop `i`
              `t = zeros((i % 3 + 1,), f32)` declared here
        "#]],
    );
}

#[test]
fn refuses_loops_with_changing_begin() {
    refused(
        "
def f(x: inout[f32[n]], k: inout[i64]):
    for i in range(k % 3, n):
        t = x[i] * 2
        label(\"B\")
        x[i] = t
        k[...] = i
",
        |s| call(s, "fission", args!["i"; before = "B"]).map(drop),
        expect![[r#"
            schedule::illegal (4): the bounds of `i` change in its body
              `for i in range(k % 3, n):` this loop
              help: compute the bound before the loop: write `last = …`, then `range(…, last)`
        "#]],
    );
}

#[test]
fn refuses_dependences() {
    // The first half reads a value that the second half wrote one iteration before.
    refused(
        "
def f(x: inout[f32[n]], y: inout[f32[n]]):
    for i in range(1, n):
        label(\"A\")
        x[i] = y[i - 1]
        y[i] = x[i] + 1
",
        |s| call(s, "fission", args!["i"; after = "A"]).map(drop),
        expect![[r#"
            schedule::dependence (5): the first half depends on the second half in earlier iterations of `i`
              `y[i] = x[i] + 1` first writes `y[i]` at i = 1
              `x[i] = y[i - 1]` then reads `y[i - 1]` at i = 2
              note: flow dependence (RAW), carried by the loop `i`
              note: the element is y[1] with n = 3
        "#]],
    );
    // Through an index.
    refused(
        "
def f(x: inout[f32[n]], y: inout[f32[n]], k: i32[n]):
    for i in range(n):
        label(\"A\")
        x[i] = y[i]
        y[k[i]] = 1
",
        |s| call(s, "fission", args!["i"; after = "A"]).map(drop),
        expect![[r#"
            schedule::dependence (5): the first half depends on the second half in earlier iterations of `i`
              `y[k[i]] = 1` first writes `y[k[i]]` at i = 0
              `x[i] = y[i]` then reads `y[i]` at i = 1
              note: flow dependence (RAW), carried by the loop `i`
              note: the element is y[1] with n = 2, if `k[0]` is 1
        "#]],
    );
    // A scalar from outside of the loop.
    refused(
        "
def f(x: f32[n], y: inout[f32[n]]):
    t: f32 = 0
    for i in range(n):
        label(\"A\")
        t = x[i]
        y[i] = t
",
        |s| call(s, "fission", args!["i"; after = "A"]).map(drop),
        expect![[r#"
            schedule::dependence (5): the first half depends on the second half in earlier iterations of `i`
              `y[i] = t` first reads `t` at i = 0
              `t = x[i]` then writes `t` at i = 1
              note: anti dependence (WAR), carried by the loop `i`
              note: for example with n = 2
        "#]],
    );
}

#[test]
fn reductions_commute() {
    check(
        "
def f(x: f32[n], k: i32[n], y: inout[f32[n]]):
    for i in range(n):
        label(\"A\")
        y[k[i]] += x[i]
        y[i] += 1
",
        |s| call(s, "fission", args!["i"; after = "A"]).map(drop),
        expect![[r#"
            for i in range(n):
                label("A")
                y[cast(k[i], i64)] += x[i]
            for i in range(n):
                y[i] += 1.0
        "#]],
    );
}

/// Checks that a half keeps a declaration whose size may stop the program.
#[test]
fn keeps_declarations_whose_size_may_fail() {
    check(
        "
def f(x: f32[n], y: inout[f32[n]]):
    for i in range(n):
        if x[i] > 0.0:
            label(\"A\")
            y[i] = x[i]
            t = empty((n - 5,), f32)
        y[i] += 1
",
        |s| call(s, "fission", args!["i"; after = "A"]).map(drop),
        expect![[r#"
            for i in range(n):
                if x[i] > 0.0:
                    label("A")
                    y[i] = x[i]
            for i in range(n):
                if x[i] > 0.0:
                    t = empty((n - 5,), f32)
                y[i] += 1.0
        "#]],
    );
}
