use crate::args;
use crate::primitives::common::{call, check, refused};
use expect_test::{Expect, expect};

fn fused(text: &str, expected: Expect) {
    check(text, |s| call(s, "fuse", args!["i", "j"]).map(drop), expected);
}

fn not_fused(text: &str, expected: Expect) {
    refused(text, |s| call(s, "fuse", args!["i", "j"]).map(drop), expected);
}

#[test]
fn fuses_loops_of_equal_length() {
    fused(
        "
def f(x: inout[f32[n]], y: inout[f32[n]]):
    for i in range(n):
        x[i] = x[i] * 2
    for j in range(n - 1, -1, -1):
        y[j] = y[j] + x[n - 1 - j]
",
        expect![[r#"
            for i in range(n):
                x[i] *= 2.0
                y[n - i - 1] += x[n - 1 - (n - i - 1)]
        "#]],
    );
    fused(
        "
def f(x: inout[f32[n]], y: inout[f32[n]]):
    for i in range(n):
        x[i] = x[i] * 2
    for j in range(3, n):
        y[j] = x[j - 3]
",
        expect![[r#"
            for i in range(n):
                x[i] *= 2.0
                if i + 3 < n:
                    y[i + 3] = x[i]
        "#]],
    );
    fused(
        "
def f(x: inout[f32[n]], y: inout[f32[m]]):
    for i in range(1, n):
        x[i] = x[i] * 2
    for j in range(0, 2 * m, 2):
        y[j // 2] = j
",
        expect![[r#"
            for i in range(1, max(n - 1, m) + 1):
                if i < n:
                    x[i] *= 2.0
                if i * 2 - 2 < m * 2:
                    y[(i * 2 - 2) // 2] = cast(i * 2 - 2, f32)
        "#]],
    );
}

#[test]
fn fuses_with_a_shift() {
    let stencil = "
def f(x: f32[n], y: inout[f32[n]], z: inout[f32[n]]):
    for i in range(n):
        y[i] = x[i] * 2
    for j in range(n - 1):
        z[j] = y[j] + y[j + 1]
";
    not_fused(
        stencil,
        expect![[r#"
            schedule::dependence (5): it would reverse a dependence: `j` depends on later iterations of `i`
              `y[i] = x[i] * 2` first writes `y[i]` at i = 1
              `z[j] = y[j] + y[j + 1]` then reads `y[j + 1]` at j = 0
              note: flow dependence (RAW), within one iteration of the loops around both
              note: the element is y[1] with n = 2
              help: delay the second loop: `shift=1`
        "#]],
    );
    check(
        stencil,
        |s| call(s, "fuse", args!["i", "j"; shift = 1]).map(drop),
        expect![[r#"
        for i in range(n):
            y[i] = x[i] * 2.0
            if 0 <= i - 1:
                z[i - 1] = y[i - 1] + y[i]
    "#]],
    );
    check(
        stencil,
        |s| call(s, "fuse", args!["i", "j"; shift = 3]).map(drop),
        expect![[r#"
        for i in range(n + 2):
            if i < n:
                y[i] = x[i] * 2.0
            if 0 <= i - 3:
                z[i - 3] = y[i - 3] + y[i - 2]
    "#]],
    );
    check(
        "
def f(x: inout[f32[n]], z: inout[f32[n]]):
    for i in range(n - 1, 0, -2):
        x[i] = x[i] * 2
    for j in range(n - 1, 0, -2):
        z[j] = 3
",
        |s| call(s, "fuse", args!["i", "j"; shift = -2]).map(drop),
        expect![[r#"
            for i in range(n + 3, 0, -2):
                if i <= n - 1:
                    x[i] *= 2.0
                if 0 < i - 4:
                    z[i - 4] = 3.0
        "#]],
    );
}

#[test]
fn statements_between_the_loops_move() {
    fused(
        "
def f(x: inout[f32[n]], y: inout[f32[n]], z: inout[f32[n]]):
    for i in range(n):
        x[i] = x[i] * 2
    t: f32 = 3
    for k in range(n):
        z[k] = x[k] + t
    u = t * 2
    for j in range(n):
        y[j] = x[j] * u
",
        expect![[r#"
            t = empty((), f32)
            t = 3.0
            u = empty((), f32)
            u = t * 2.0
            for i in range(n):
                x[i] *= 2.0
                y[i] = x[i] * u
            for k in range(n):
                z[k] = x[k] + t
        "#]],
    );
    not_fused(
        "
def f(x: inout[f32[n]], y: inout[f32[n]]):
    s: f32 = 0
    for i in range(n):
        s += x[i]
    t = s * 2
    for j in range(n):
        y[j] = x[j] * t
",
        expect![[r#"
            schedule::dependence (3): a statement between the loops can move neither before nor after them
              `t = s * 2` first writes `t`
              `y[j] = x[j] * t` then reads `t` at j = 0
              `t = s * 2` this statement
              note: flow dependence (RAW), within one iteration of the loops around both
              note: for example with n = 1
        "#]],
    );
    // The bounds of the second loop are written in between; facts about them change when the write moves.
    fused(
        "
def f(x: inout[f32[n]], y: inout[f32[n]], k: inout[i32]):
    k[...] = n
    for i in range(n):
        x[i] = x[i] * 2
    k[...] = n // 2
    for j in range(k):
        y[j] = x[j]
",
        expect![[r#"
            k[...] = cast(n, i32)
            k[...] = cast(n // 2, i32)
            for i in range(max(n, cast(k, i64))):
                if i < n:
                    x[i] *= 2.0
                if i < cast(k, i64):
                    y[i] = x[i]
        "#]],
    );
}

#[test]
fn fuses_inside_of_loops() {
    // The begin depends on the enclosing loop.
    fused(
        "
def f(x: inout[f32[n, n]], y: inout[f32[n, n]]):
    for k in range(n):
        for i in range(k, n):
            x[k, i] = x[k, i] * 2
        for j in range(k, n):
            y[k, j] = x[k, j] + 1
",
        expect![[r#"
            for k in range(n):
                for i in range(k, n):
                    x[k, i] *= 2.0
                    y[k, i] = x[k, i] + 1.0
        "#]],
    );
    not_fused(
        "
def f(x: inout[f32[n, n]], y: inout[f32[n, n]]):
    for k in range(n):
        for i in range(n):
            x[k, i] = x[k, i] * 2
        for j in range(k, n):
            y[k, j] = x[k, j] + 1
",
        expect![[r#"
            schedule::dependence (5): it would reverse a dependence: `j` depends on later iterations of `i`
              `x[k, i] = x[k, i] * 2` first updates `x[k, i]` at k = 1, i = 1
              `y[k, j] = x[k, j] + 1` then reads `x[k, j]` at k = 1, j = 1
              note: flow dependence (RAW), within one iteration of the loops around both
              note: the element is x[1, 1] with n = 2
        "#]],
    );
}

#[test]
fn refuses() {
    not_fused(
        "
def f(x: inout[f32[n]]):
    for j in range(n):
        x[j] = 1
    for i in range(n):
        x[i] = 2
",
        expect![[r#"
            schedule::illegal (1): `j` stands before `i`
              `for i in range(n):` the first loop
              `for j in range(n):` the second loop
              help: pass the loops in the order of the text
        "#]],
    );
    not_fused(
        "
def f(x: inout[f32[n]], b: bool):
    for i in range(n):
        x[i] = 1
    if b:
        for j in range(n):
            x[j] = 2
",
        expect![[r#"
            schedule::illegal (1): `i` and `j` are not in the same block
              `for i in range(n):` the first loop
              `for j in range(n):` the second loop
        "#]],
    );
    not_fused(
        "
def f(x: inout[f32[n]], k: i32):
    for i in range(0, n, k + 1):
        x[i] = 1
    for j in range(n):
        x[j] = 2
",
        expect![[r#"
            schedule::illegal (2): the step of a loop is not a constant
              `for i in range(0, n, k + 1):` the first loop
              `for j in range(n):` the second loop
        "#]],
    );
    refused(
        "
def f(x: inout[f32[n]]):
    for i in range(n):
        x[i] = 1
    for j in range(n):
        x[j] = 2
",
        |s| {
            call(s, "parallelize", args!["i"])?;
            call(s, "fuse", args!["i", "j"]).map(drop)
        },
        expect![[r#"
            schedule::illegal (2): the loop `i` is already parallel
              `for i in range(n):` this loop
              help: take this step before `parallelize`, `vectorize`, `unroll` and `blend`
        "#]],
    );
    not_fused(
        "
def f(x: inout[f32[n]], k: inout[i32]):
    for i in range(n):
        k[...] = 1
    for j in range(min(k, n)):
        x[j] = 2
",
        expect![[r#"
            schedule::illegal (4): the bounds of the loops change in `i`
              `for i in range(n):` this loop
        "#]],
    );
    not_fused(
        "
def f(x: inout[f32[n]], k: i32[n], y: inout[f32[n]]):
    for i in range(n):
        x[k[i]] = 1
    for j in range(n):
        y[j] = x[j]
",
        expect![[r#"
            schedule::dependence (5): it would reverse a dependence: `j` depends on later iterations of `i`
              `x[k[i]] = 1` first writes `x[k[i]]` at i = 1
              `y[j] = x[j]` then reads `x[j]` at j = 0
              note: flow dependence (RAW), within one iteration of the loops around both
              note: the element is x[0] with n = 2, if `k[1]` is 0
        "#]],
    );
    // A sum is complete only after its loop.
    not_fused(
        "
def f(x: inout[f32[n]], y: inout[f32[n]]):
    s: f32 = 0
    for i in range(n):
        s += x[i]
    for j in range(n):
        y[j] = x[j] / s
",
        expect![[r#"
            schedule::dependence (5): it would reverse a dependence: `j` depends on later iterations of `i`
              `s += x[i]` first updates `s` at i = 1
              `y[j] = x[j] / s` then reads `s` at j = 0
              note: flow dependence (RAW), within one iteration of the loops around both
              note: for example with n = 2
        "#]],
    );
}

/// Checks a witness that rests on a disjunction of which one part cannot hold: the other one is a comparison of floats.
#[test]
fn witnesses_that_need_float_comparisons_are_not_exact() {
    refused(
        "
def f(c: f32[n], t: inout[i64[n]], y: inout[i64[n]]):
    for i in range(n):
        t[i] = 1
    for k in range(1):
        if 9.0 < c[0] or (k * 2 + 1) % 2 == 0:
            for j in range(k // 2, n):
                y[j] = t[j]
",
        |s| call(s, "fuse", args!["i", "k"; shift = -2]).map(drop),
        expect![[r#"
            schedule::dependence (5): it would reverse a dependence: `k` depends on later iterations of `i`
              `t[i] = 1` first writes `t[i]` at i = 0
              `y[j] = t[j]` then reads `t[j]` at k = 0, j = 0
              note: flow dependence (RAW), within one iteration of the loops around both
              note: the element is t[0] with n = 1, but this is not certain
        "#]],
    );
}
