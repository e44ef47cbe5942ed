//! Figures of the FreeTensor paper (section 4.2) about legality, each under its number: outputs are compared before and
//! after, and a transformation that the paper calls incorrect is refused with two instances that a run shows.

use crate::args;
use crate::primitives::common::{call, check, list, refused};
use expect_test::{Expect, expect};

fn reordered(text: &str, expected: Expect) {
    check(text, |s| call(s, "reorder", args![list(&["j", "i"])]).map(drop), expected);
}

fn not_reordered(text: &str, expected: Expect) {
    refused(text, |s| call(s, "reorder", args![list(&["j", "i"])]).map(drop), expected);
}

fn parallel(text: &str, expected: Expect) {
    check(text, |s| call(s, "parallelize", args!["i"]).map(drop), expected);
}

fn not_parallel(text: &str, expected: Expect) {
    refused(text, |s| call(s, "parallelize", args!["i"]).map(drop), expected);
}

/// Checks that Figure 8 becomes Figure 10: the second loop starts `w` later.
#[test]
fn figure_10() {
    check(
        "
def f(q: f32[n, d], key: f32[n, d], like: f32[w], y: inout[f32[n, 2 * w + 1]]):
    for j in range(n):
        dot = empty((2 * w + 1,), f32)
        for k in range(2 * w + 1):
            dot[k] = 0
        label(\"scores\")
        for k in range(-w, w + 1):
            if j + k >= 0 and j + k < n:
                dot[k + w] = 0
                for p in range(d):
                    dot[k + w] += q[j, p] * key[j + k, p]
        dot_max: f32 = -1000
        label(\"max\")
        for k in range(2 * w + 1):
            dot_max = max(dot_max, dot[k])
        dot_norm = empty((2 * w + 1,), f32)
        for k in range(2 * w + 1):
            dot_norm[k] = dot[k] - dot_max
        for k in range(2 * w + 1):
            y[j, k] = dot_norm[k]
",
        |s| call(s, "fuse", args!["scores", "max"]).map(drop),
        expect![[r#"
            for j in range(n):
                dot = empty((w * 2 + 1,), f32)
                for k in range(w * 2 + 1):
                    dot[k] = 0.0
                dot_max = empty((), f32)
                dot_max = -1000.0
                label("scores")
                for k in range(-w, w + 1):
                    if j + k >= 0 and j + k < n:
                        dot[k + w] = 0.0
                        for p in range(d):
                            dot[k + w] += q[j, p] * key[j + k, p]
                    dot_max = max(dot_max, dot[k + w])
                dot_norm = empty((w * 2 + 1,), f32)
                for k in range(w * 2 + 1):
                    dot_norm[k] = dot[k] - dot_max
                for k in range(w * 2 + 1):
                    y[j, k] = dot_norm[k]
        "#]],
    );
}

#[test]
fn figure_11() {
    not_reordered(
        "
def f(a: inout[f32[N, M]]):
    for i in range(1, N - 1):
        for j in range(1, M - 1):
            a[i + 1, j] = a[i - 1, j + 1] + a[i - 1, j - 1]
",
        expect![[r#"
            schedule::dependence (6): it would reverse a dependence
              `a[i + 1, j] = a[i - 1, j + 1] + a[i - 1, j - 1]` writes `a[i + 1, j]` at i = 1, j = 2, then reads `a[i - 1, j + 1]` at i = 3, j = 1
              note: flow dependence (RAW), carried by the loop `i`
              note: the element is a[2, 2] with N = 5, M = 4
              help: write instead: `s.permute(["i", "j"], lambda i0, i1: (i0 + i1, i0))`
        "#]],
    );
}

#[test]
fn figure_12a() {
    reordered(
        "
def a(x: inout[f32[N, M]], b: f32[N, M]):
    for i in range(N):
        for j in range(M):
            x[i, j] = b[i, j] + 1
",
        expect![[r#"
                for j in range(M):
                    for i in range(N):
                        x[i, j] = b[i, j] + 1.0
        "#]],
    );
}

#[test]
fn figure_12b() {
    not_reordered(
        "
def b(x: inout[f32], b: f32[N, M]):
    for i in range(N):
        for j in range(M):
            x[...] = x * b[i, j] + 1
",
        expect![[r#"
            schedule::dependence (6): it would reverse a dependence
              `x[...] = x * b[i, j] + 1` reads `x` at i = 0, j = 1, then writes `x` at i = 1, j = 0
              note: anti dependence (WAR), carried by the loop `i`
              note: for example with N = 2, M = 2
        "#]],
    );
}

#[test]
fn figure_12c() {
    reordered(
        "
def c(x: inout[f32], b: f32[N, M]):
    for i in range(N):
        for j in range(M):
            x += b[i, j]
",
        expect![[r#"
                for j in range(M):
                    for i in range(N):
                        x += b[i, j]
        "#]],
    );
}

#[test]
fn figure_12d() {
    reordered(
        "
def d(x: inout[f32[N, M, K]], b: f32[N, M, K]):
    for i in range(N):
        for j in range(M):
            t = zeros((K,), f32)
            for k in range(K):
                t[k] = b[i, j, k] * 2
            for k in range(K):
                x[i, j, k] = t[k]
",
        expect![[r#"
                for j in range(M):
                    for i in range(N):
                        t = empty((K,), f32)
                        for t.d0 in range(K):
                            t[t.d0] = 0.0
                        for k in range(K):
                            t[k] = b[i, j, k] * 2.0
                        for k in range(K):
                            x[i, j, k] = t[k]
        "#]],
    );
}

#[test]
fn figure_13a() {
    parallel(
        "
def f(a: inout[f32[n]], b: f32[n]):
    for i in range(n):
        a[i] = b[i] + 1
",
        expect![[r#"
            for i in range(n):  # parallel
                a[i] = b[i] + 1.0
        "#]],
    );
}

#[test]
fn figure_13b() {
    not_parallel(
        "
def f(a: inout[f32], b: f32[n]):
    for i in range(n):
        a[...] = a * 2 + b[i]
",
        expect![[r#"
            schedule::dependence (2): the loop `i` has a loop-carried dependence
              `a[...] = a * 2 + b[i]` reads `a` at i = 0, then writes `a` at i = 1
              note: anti dependence (WAR), carried by the loop `i`
              note: for example with n = 2
        "#]],
    );
}

/// Checks a scalar `b` shared by all threads.
#[test]
fn figure_13c_shared() {
    parallel(
        "
def f(a: inout[f32[n]], x: f32):
    b: f32 = 0
    b = x * 2
    for i in range(n):
        a[i] = b
",
        expect![[r#"
            b = empty((), f32)
            b = 0.0
            b = x * 2.0
            for i in range(n):  # parallel
                a[i] = b
        "#]],
    );
}

/// Checks a `b` local to one thread: the enclosing loop runs on threads, so that this one runs on one of them.
#[test]
fn figure_13c_thread_local() {
    refused(
        "
def f(a: inout[f32[m, n]], x: f32[m]):
    for t in range(m):
        b: f32 = x[t] * 2
        for i in range(n):
            a[t, i] = b
",
        |s| {
            call(s, "parallelize", args!["t"])?;
            call(s, "parallelize", args!["i"]).map(drop)
        },
        expect![[r#"
            schedule::illegal (1): a parallel loop would be nested in another parallel loop
              `for t in range(m):` this loop is already parallel
              help: merge both loops (`s.merge`), and make the result parallel
        "#]],
    );
}

/// Checks a partial sum for every thread.
#[test]
fn figure_13d() {
    parallel(
        "
def f(a: inout[f32], b: f32[n]):
    for i in range(n):
        a += b[i]
",
        expect![[r#"
            for i in range(n):  # parallel, partial(a +)
                a += b[i]
        "#]],
    );
}

#[test]
fn figure_13d_into_an_array() {
    parallel(
        "
def f(a: inout[f32[m]], b: f32[n, m]):
    for i in range(n):
        for j in range(m):
            a[j] += b[i, j]
",
        expect![[r#"
            for i in range(n):  # parallel, partial(a +)
                for j in range(m):
                    a[j] += b[i, j]
        "#]],
    );
}

/// Checks elements chosen by the input: the updates are atomic.
#[test]
fn figure_13e() {
    parallel(
        "
def f(a: inout[f32[m]], idx: i32[n], b: f32[n]):
    for i in range(n):
        a[idx[i]] += b[i]
",
        expect![[r#"
            for i in range(n):  # parallel, atomic(a +)
                a[cast(idx[i], i64)] += b[i]
        "#]],
    );
}

#[test]
fn figure_14() {
    check(
        "
def f(a: inout[f32[n + m]]):
    for i in range(n):
        for j in range(m):
            a[i + j] = a[i + j] * 2 + 1
",
        |s| call(s, "cache", args!["j", "a"]).map(drop),
        expect![[r#"
            for i in range(n):
                a_cache = empty((m,), f32)
                for a.cache.d0 in range(m):
                    a_cache[a.cache.d0] = a[i + a.cache.d0]
                for j in range(m):
                    a_cache[j] = a_cache[j] * 2.0 + 1.0
                for a.cache.back.d0 in range(m):
                    a[i + a.cache.back.d0] = a_cache[a.cache.back.d0]
        "#]],
    );
}
