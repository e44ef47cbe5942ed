//! `var_split`, `var_merge`, `var_reorder`, `var_squeeze`, `var_unsqueeze`.

use crate::args;
use crate::primitives::common::{call, check, refused};
use expect_test::expect;

const TEXT: &str = "
def f(x: f32[n, m], y: inout[f32[n, m]], k: i32[n]):
    t = zeros((n, m), f32)
    for i in range(n):
        for j in range(m):
            t[i, j] += x[i, j] * 2
    for i in range(n):
        for j in range(m):
            y[i, j] = t[i, m - 1 - j] + 1
";

/// Program whose first index may be out of range, or negative.
const INDIRECT: &str = "
def f(x: f32[n, m], y: inout[f32[n, m]], k: i32[n]):
    t = zeros((n, m), f32)
    for i in range(n):
        for j in range(m):
            t[k[i] + k[0] - 1, j] += x[i, j] * 2
    for i in range(n):
        for j in range(m):
            y[i, j] = t[i, j]
";

/// Program with a size that is negative for n = 0.
const NEGATIVE: &str = "
def f(y: inout[f32[n, 8]]):
    t = zeros((n - 1, 8), f32)
    for i in range(n - 1):
        for j in range(8):
            t[i, j] = y[i, j] + y[i + 1, j]
    for i in range(n - 1):
        for j in range(8):
            y[i, j] = t[i, j]
";

#[test]
fn split() {
    check(
        TEXT,
        |s| call(s, "var_split", args!["t", 1, 4]).map(drop),
        expect![[r#"
        t = empty((n, (m + 3) // 4, 4), f32)
        for t.d0 in range(n):
            for t.d1 in range(m):
                t[t.d0, t.d1 // 4, t.d1 % 4] = 0.0
        for i in range(n):
            for j in range(m):
                t[i, j // 4, j % 4] += x[i, j] * 2.0
        for i in range(n):
            for j in range(m):
                y[i, j] = t[i, (m - 1 - j) // 4, (m - 1 - j) % 4] + 1.0
    "#]],
    );
    check(
        NEGATIVE,
        |s| call(s, "var_split", args!["t", 0, 3]).map(drop),
        expect![[r#"
        assert 0 <= n - 1, "dimension 0 of `t` has a negative size"
        t = empty(((n + 1) // 3, 3, 8), f32)
        for t.d0 in range(n - 1):
            for t.d1 in range(8):
                t[t.d0 // 3, t.d0 % 3, t.d1] = 0.0
        for i in range(n - 1):
            for j in range(8):
                t[i // 3, i % 3, j] = y[i, j] + y[i + 1, j]
        for i in range(n - 1):
            for j in range(8):
                y[i, j] = t[i // 3, i % 3, j]
    "#]],
    );
    // The dimension is a multiple of the factor: an index out of range stays out of range.
    check(
        "
def f(x: inout[f32[n]], k: i32[n]):
    t = zeros((4 * n,), f32)
    for i in range(n):
        t[k[i] * 5 - 2] = x[i]
    for i in range(n):
        x[i] = t[i]
",
        |s| call(s, "var_split", args!["t", -1, 4]).map(drop),
        expect![[r#"
            t = empty(((n * 4 + 3) // 4, 4), f32)
            for t.d0 in range(n * 4):
                t[t.d0 // 4, t.d0 % 4] = 0.0
            for i in range(n):
                t[cast(k[i] * 5 - 2, i64) // 4, cast(k[i] * 5 - 2, i64) % 4] = x[i]
            for i in range(n):
                x[i] = t[i // 4, i % 4]
        "#]],
    );
    refused(
        INDIRECT,
        |s| call(s, "var_split", args!["t", 0, 4]).map(drop),
        expect![[r#"
        schedule::illegal (2): the index `cast(k[i] + k[0] - 1, i64)` of `t` is not proved to be in range, and its check would be lost
          `t = zeros((n, m), f32)` declared here
          help: assert before the access that it is in range
    "#]],
    );
    check(
        INDIRECT,
        |s| call(s, "var_split", args!["t", 1, 4]).map(drop),
        expect![[r#"
        t = empty((n, (m + 3) // 4, 4), f32)
        for t.d0 in range(n):
            for t.d1 in range(m):
                t[t.d0, t.d1 // 4, t.d1 % 4] = 0.0
        for i in range(n):
            for j in range(m):
                t[cast(k[i] + k[0] - 1, i64), j // 4, j % 4] += x[i, j] * 2.0
        for i in range(n):
            for j in range(m):
                y[i, j] = t[i, j // 4, j % 4]
    "#]],
    );
    refused(
        TEXT,
        |s| call(s, "var_split", args!["x", 1, 4]).map(drop),
        expect![[r#"
        schedule::illegal (1): `x` is a parameter or a result, which the caller lays out
          help: use `t = s.cache(…, "x")`, and take this step on `t`
    "#]],
    );
    refused(
        TEXT,
        |s| call(s, "var_split", args!["t", 2, 4]).map(drop),
        expect![[r#"
        schedule::argument (0): expected `dim` from 0 to 1 for `t`, found 2
    "#]],
    );
    refused(
        TEXT,
        |s| call(s, "var_split", args!["t", 1, 0]).map(drop),
        expect![[r#"
        schedule::argument (0): expected at least 1 for `factor`, found 0
    "#]],
    );
    refused(
        TEXT,
        |s| call(s, "var_split", args!["t", 1]).map(drop),
        expect![[r#"
        schedule::argument (0): `factor` is missing
          help: write `s.var_split(T, dim, factor)`
    "#]],
    );
}

#[test]
fn merge() {
    check(
        TEXT,
        |s| call(s, "var_merge", args!["t", 0]).map(drop),
        expect![[r#"
        t = empty((n * m,), f32)
        for t.d0 in range(n):
            for t.d1 in range(m):
                t[t.d0 * m + t.d1] = 0.0
        for i in range(n):
            for j in range(m):
                t[i * m + j] += x[i, j] * 2.0
        for i in range(n):
            for j in range(m):
                y[i, j] = t[i * m + (m - 1 - j)] + 1.0
    "#]],
    );
    check(
        NEGATIVE,
        |s| call(s, "var_merge", args!["t", 0]).map(drop),
        expect![[r#"
        assert 0 <= n - 1, "dimension 0 of `t` has a negative size"
        t = empty(((n - 1) * 8,), f32)
        for t.d0 in range(n - 1):
            for t.d1 in range(8):
                t[t.d0 * 8 + t.d1] = 0.0
        for i in range(n - 1):
            for j in range(8):
                t[i * 8 + j] = y[i, j] + y[i + 1, j]
        for i in range(n - 1):
            for j in range(8):
                y[i, j] = t[i * 8 + j]
    "#]],
    );
    refused(
        INDIRECT,
        |s| call(s, "var_merge", args!["t", 0]).map(drop),
        expect![[r#"
        schedule::illegal (2): the index `cast(k[i] + k[0] - 1, i64)` of `t` is not proved to be in range, and its check would be lost
          `t = zeros((n, m), f32)` declared here
          help: assert before the access that it is in range
    "#]],
    );
    refused(
        TEXT,
        |s| call(s, "var_merge", args!["t", 1]).map(drop),
        expect![[r#"
        schedule::argument (0): expected `dim` from 0 to 0 for `t`, found 1
    "#]],
    );
    // Split, and merged the other way.
    check(
        TEXT,
        |s| {
            call(s, "var_split", args!["t", 0, 2])?;
            call(s, "var_merge", args!["t", 1])?;
            call(s, "var_reorder", args!["t", vec![1i64, 0]]).map(drop)
        },
        expect![[r#"
            t = empty((m * 2, (n + 1) // 2), f32)
            for t.d0 in range(n):
                for t.d1 in range(m):
                    t[t.d0 % 2 * m + t.d1, t.d0 // 2] = 0.0
            for i in range(n):
                for j in range(m):
                    t[i % 2 * m + j, i // 2] += x[i, j] * 2.0
            for i in range(n):
                for j in range(m):
                    y[i, j] = t[i % 2 * m + (m - 1 - j), i // 2] + 1.0
        "#]],
    );
}

#[test]
fn reorder() {
    check(
        TEXT,
        |s| call(s, "var_reorder", args!["t", vec![1i64, 0]]).map(drop),
        expect![[r#"
        t = empty((m, n), f32)
        for t.d0 in range(n):
            for t.d1 in range(m):
                t[t.d1, t.d0] = 0.0
        for i in range(n):
            for j in range(m):
                t[j, i] += x[i, j] * 2.0
        for i in range(n):
            for j in range(m):
                y[i, j] = t[m - 1 - j, i] + 1.0
    "#]],
    );
    check(
        INDIRECT,
        |s| call(s, "var_reorder", args!["t", vec![1i64, 0]]).map(drop),
        expect![[r#"
        t = empty((m, n), f32)
        for t.d0 in range(n):
            for t.d1 in range(m):
                t[t.d1, t.d0] = 0.0
        for i in range(n):
            for j in range(m):
                t[j, cast(k[i] + k[0] - 1, i64)] += x[i, j] * 2.0
        for i in range(n):
            for j in range(m):
                y[i, j] = t[j, i]
    "#]],
    );
    check(
        NEGATIVE,
        |s| call(s, "var_reorder", args!["t", vec![1i64, 0]]).map(drop),
        expect![[r#"
        t = empty((8, n - 1), f32)
        for t.d0 in range(n - 1):
            for t.d1 in range(8):
                t[t.d1, t.d0] = 0.0
        for i in range(n - 1):
            for j in range(8):
                t[j, i] = y[i, j] + y[i + 1, j]
        for i in range(n - 1):
            for j in range(8):
                y[i, j] = t[j, i]
    "#]],
    );
    refused(
        TEXT,
        |s| call(s, "var_reorder", args!["t", vec![1i64, 1]]).map(drop),
        expect![[r#"
        schedule::argument (0): expected each dimension of `t` once in `order`: 0, 1
    "#]],
    );
    refused(
        TEXT,
        |s| call(s, "var_reorder", args!["t", vec![0i64]]).map(drop),
        expect![[r#"
        schedule::argument (0): expected each dimension of `t` once in `order`: 0, 1
    "#]],
    );
    refused(
        TEXT,
        |s| call(s, "var_reorder", args!["y", vec![1i64, 0]]).map(drop),
        expect![[r#"
        schedule::illegal (1): `y` is a parameter or a result, which the caller lays out
          help: use `t = s.cache(…, "y")`, and take this step on `t`
    "#]],
    );
    // `cache` makes a shape that depends on data.
    refused(
        "
def f(start: i32[n + 1], value: f32[n], y: inout[f32[n]]):
    for i in range(n):
        for j in range(start[i], start[i + 1]):
            y[i] += value[j]
",
        |s| {
            let t = call(s, "cache", args!["j", "value"])?;
            call(s, "var_split", args![t[0].clone(), 0, 4]).map(drop)
        },
        expect![[r#"
            schedule::illegal (1): the shape of `value.cache` depends on data
              `for j in range(start[i], start[i + 1]):` declared here
        "#]],
    );
}

#[test]
fn squeeze_and_unsqueeze() {
    check(
        TEXT,
        |s| {
            let t = call(s, "cache", args!["j#2", "t"])?;
            call(s, "var_squeeze", args![t[0].clone(), 0]).map(drop)
        },
        expect![[r#"
            t = empty((n, m), f32)
            for t.d0 in range(n):
                for t.d1 in range(m):
                    t[t.d0, t.d1] = 0.0
            for i in range(n):
                for j in range(m):
                    t[i, j] += x[i, j] * 2.0
            for i in range(n):
                t_cache = empty((m,), f32)
                for t.cache.d1 in range(m):
                    t_cache[t.cache.d1] = t[i, t.cache.d1]
                for j in range(m):
                    y[i, j] = t_cache[m - 1 - j] + 1.0
        "#]],
    );
    check(
        TEXT,
        |s| call(s, "var_unsqueeze", args!["t", 2]).map(drop),
        expect![[r#"
        t = empty((n, m, 1), f32)
        for t.d0 in range(n):
            for t.d1 in range(m):
                t[t.d0, t.d1, 0] = 0.0
        for i in range(n):
            for j in range(m):
                t[i, j, 0] += x[i, j] * 2.0
        for i in range(n):
            for j in range(m):
                y[i, j] = t[i, m - 1 - j, 0] + 1.0
    "#]],
    );
    check(
        TEXT,
        |s| call(s, "var_unsqueeze", args!["t", 0]).map(drop),
        expect![[r#"
        t = empty((1, n, m), f32)
        for t.d0 in range(n):
            for t.d1 in range(m):
                t[0, t.d0, t.d1] = 0.0
        for i in range(n):
            for j in range(m):
                t[0, i, j] += x[i, j] * 2.0
        for i in range(n):
            for j in range(m):
                y[i, j] = t[0, i, m - 1 - j] + 1.0
    "#]],
    );
    refused(
        TEXT,
        |s| call(s, "var_squeeze", args!["t", 0]).map(drop),
        expect![[r#"
        schedule::illegal (2): dimension 0 of `t` has size `n`, which is not proved to be 1
          `t = zeros((n, m), f32)` declared here
    "#]],
    );
    refused(
        TEXT,
        |s| call(s, "var_unsqueeze", args!["t", 3]).map(drop),
        expect![[r#"
        schedule::argument (0): expected `dim` from 0 to 2 for `t`, found 3
    "#]],
    );
    let row = "
def f(x: inout[f32[n]], k: i32[n]):
    t = zeros((1, n), f32)
    for i in range(n):
        t[k[i], i] = x[i]
        x[i] = t[0, i]
";
    refused(
        row,
        |s| call(s, "var_squeeze", args!["t", 0]).map(drop),
        expect![[r#"
        schedule::illegal (3): the index `cast(k[i], i64)` of `t` is not proved to be in range, and its check would be lost
          `t = zeros((1, n), f32)` declared here
          help: assert before the access that it is in range
    "#]],
    );
    // A scalar gets a dimension, and loses it again.
    check(
        "
def f(x: inout[f32[n]]):
    a: f32 = 0
    for i in range(n):
        a += x[i]
    for i in range(n):
        x[i] = a
",
        |s| {
            call(s, "var_unsqueeze", args!["a", 0])?;
            call(s, "var_unsqueeze", args!["a", -1])?;
            call(s, "var_squeeze", args!["a", 0]).map(drop)
        },
        expect![[r#"
            a = empty((1,), f32)
            a[0] = 0.0
            for i in range(n):
                a[0] += x[i]
            for i in range(n):
                x[i] = a[0]
        "#]],
    );
}

/// Checks that an index is kept that is 0 where it has a value, but stops the program where it has none.
#[test]
fn refuses_to_remove_failing_indices() {
    refused(
        "
def f(x: f32[n], k: i64[n], y: inout[f32[n]]):
    t = zeros((1,), f32)
    for i in range(n):
        t[min(max(k[i + 1], 0), 0)] = x[i]
        y[i] = t[0]
",
        |s| call(s, "var_squeeze", args!["t", 0]).map(drop),
        expect![[r#"
            schedule::illegal (3): evaluating the index `min(max(k[i + 1], 0), 0)` of `t` may stop the program, and the step would drop it
              `t = zeros((1,), f32)` declared here
              help: assert before the access that the elements that the index reads are in range
        "#]],
    );
}
