use crate::args;
use crate::primitives::common::{call, check, refused};
use expect_test::{Expect, expect};

fn blended(text: &str, expected: Expect) {
    check(text, |s| call(s, "blend", args!["i"]).map(drop), expected);
}

fn not_blended(text: &str, expected: Expect) {
    refused(text, |s| call(s, "blend", args!["i"]).map(drop), expected);
}

#[test]
fn interleaves() {
    blended(
        "
def f(x: f32[3], y: inout[f32[3]], z: inout[f32[3]]):
    for i in range(3):
        t = x[i] * 2
        y[i] = t
        z[i] = t + y[i]
",
        expect![[r#"
            t = empty((), f32)
            t = x[0] * 2.0
            t_1 = empty((), f32)
            t_1 = x[1] * 2.0
            t_2 = empty((), f32)
            t_2 = x[2] * 2.0
            y[0] = t
            y[1] = t_1
            y[2] = t_2
            z[0] = t + y[0]
            z[1] = t_1 + y[1]
            z[2] = t_2 + y[2]
        "#]],
    );
}

#[test]
fn joins_loops_inside() {
    // Unroll and jam: two rows of a product at once. The loop `l` has other bounds in each copy.
    blended(
        "
def f(a: f32[2, k], b: f32[k, m], c: inout[f32[2, m]]):
    for i in range(2):
        for j in range(m):
            s: f32 = 0
            for p in range(k):
                s += a[i, p] * b[p, j]
            if s > 0:
                c[i, j] = s
        for l in range(min(i, m)):
            c[i, l] += 1
",
        expect![[r#"
            for j in range(m):
                s = empty((), f32)
                s = 0.0
                s_1 = empty((), f32)
                s_1 = 0.0
                for p in range(k):
                    s += a[0, p] * b[p, j]
                    s_1 += a[1, p] * b[p, j]
                if s > 0.0:
                    c[0, j] = s
                if s_1 > 0.0:
                    c[1, j] = s_1
            for l in range(min(0, m)):
                c[0, l] += 1.0
            for l in range(min(1, m)):
                c[1, l] += 1.0
        "#]],
    );
}

#[test]
fn after_a_split() {
    check(
        "
def f(x: inout[f32[n]], y: f32[n]):
    for i in range(n):
        t = y[i] * y[i]
        x[i] += t
",
        |s| {
            let two = call(s, "split", args!["i", 2])?;
            call(s, "blend", args![two[1].clone()]).map(drop)
        },
        expect![[r#"
            for i_o in range((n + 1) // 2):
                if i_o * 2 < n:
                    t = empty((), f32)
                    t = y[i_o * 2] * y[i_o * 2]
                    x[i_o * 2] += t
                if i_o * 2 + 1 < n:
                    t = empty((), f32)
                    t = y[i_o * 2 + 1] * y[i_o * 2 + 1]
                    x[i_o * 2 + 1] += t
        "#]],
    );
}

#[test]
fn refuses() {
    not_blended(
        "
def f(x: inout[f32[n]]):
    for i in range(n):
        x[i] = 0
",
        expect![[r#"
            schedule::illegal (1): the length of `i` is not a constant
              `for i in range(n):` this loop
              help: give a factor, or split the loop and unroll the inner one
        "#]],
    );
    // The first statement of the next iteration needs the second one of this iteration.
    not_blended(
        "
def f(x: inout[f32[4]], y: inout[f32[4]]):
    for i in range(1, 4):
        x[i] = y[i - 1]
        y[i] = x[i] + 1
",
        expect![[r#"
            schedule::dependence (4): interleaving iterations of `i` would reverse a dependence
              `y[i] = x[i] + 1` first writes `y[i]` at i = 1
              `x[i] = y[i - 1]` then reads `y[i - 1]` at i = 2
              note: flow dependence (RAW), carried by the loop `i`
              note: the element is y[1]
        "#]],
    );
    // A loop that would be jammed: a later row needs an earlier one to the right of it.
    not_blended(
        "
def f(x: inout[f32[4, m]]):
    for i in range(1, 4):
        for j in range(m - 1):
            x[i, j] = x[i - 1, j + 1]
",
        expect![[r#"
            schedule::dependence (4): interleaving iterations of `i` would reverse a dependence
              `x[i, j] = x[i - 1, j + 1]` writes `x[i, j]` at i = 1, j = 1, then reads `x[i - 1, j + 1]` at i = 2, j = 0
              note: flow dependence (RAW), carried by the loop `i`
              note: the element is x[1, 1] with m = 3
        "#]],
    );
    // In the body of a jammed loop.
    not_blended(
        "
def f(x: inout[f32[4, m]], y: inout[f32[4, m]]):
    for i in range(1, 4):
        for j in range(m):
            x[i, j] = y[i - 1, j]
            y[i, j] = x[i, j] + 1
",
        expect![[r#"
            schedule::dependence (4): interleaving iterations of `i` would reverse a dependence
              `y[i, j] = x[i, j] + 1` first writes `y[i, j]` at i = 1, j = 0
              `x[i, j] = y[i - 1, j]` then reads `y[i - 1, j]` at i = 2, j = 0
              note: flow dependence (RAW), carried by the loop `i`
              note: the element is y[1, 0] with m = 1
        "#]],
    );
    not_blended(
        "
def f(x: inout[f32[n]], k: inout[i32]):
    for i in range(k % 8, k % 8 + 2):
        k[...] = i % 5
        x[i % n] = 0
",
        expect![[r#"
            schedule::illegal (3): the begin of `i` changes in its body
              `for i in range(k % 8, k % 8 + 2):` this loop
        "#]],
    );
    refused(
        "
def f(x: inout[f32[4]]):
    for i in range(4):
        x[i] = 0
",
        |s| {
            call(s, "parallelize", args!["i"])?;
            call(s, "blend", args!["i"]).map(drop)
        },
        expect![[r#"
            schedule::illegal (2): the loop `i` is already parallel
              `for i in range(4):` this loop
              help: take this step before `parallelize`, `vectorize`, `unroll` and `blend`
        "#]],
    );
}
