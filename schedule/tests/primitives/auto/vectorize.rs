//! `auto_vectorize`: innermost loops on lanes.

use super::decides;
use crate::common::entry;
use expect_test::expect;
use std::sync::Arc;
use taffeta_schedule::Schedule;
use taffeta_schedule::auto::Target;

#[test]
fn sums_and_functions_are_made_of_vector_instructions() {
    let text = "
def f(a: f32[n, n], b: f32[n], k: i32[n], y: inout[f32[n]], z: inout[f32[n]], w: inout[f32[n, 3]]):
    for i in range(n):
        for j in range(n):
            y[i] += a[i, j]
        for j in range(n):
            z[j] = exp(a[i, j])
        for j in range(3):
            w[i, j] += a[i, j]
        for j in range(n):
            y[i] += a[j, i]
        for j in range(n):
            y[k[j]] += a[i, j]
";
    decides(
        text,
        "auto_vectorize",
        &[("n", 1000)],
        expect![[r#"
            `j#1`
                keep                                         10.1 ms
              * vectorize("j#1")                             8.99 ms
            `j#2`
                keep                                         8.99 ms
              * vectorize("j#2")                             3.68 ms
            `j#3`
              * keep                                         3.68 ms
                vectorize("j#3")                             not tried: at best 3.68 ms
            `j#4`
                keep                                         3.68 ms
              * vectorize("j#4")                             3.34 ms
            `j#5`
              * keep                                         3.34 ms
                vectorize("j#5")                             refused: the loop `j#5` has a reduction that lanes cannot keep apart
            for i in range(n):
                for j in range(n):  # vectorize, partial(y +)
                    y[i] += a[i, j]
                for j in range(n):  # vectorize
                    z[j] = exp(a[i, j])
                for j in range(3):
                    w[i, j] += a[i, j]
                for j in range(n):  # vectorize, partial(y +)
                    y[i] += a[j, i]
                for j in range(n):
                    y[cast(k[j], i64)] += a[i, j]
        "#]],
    );
}

/// Integers that lie apart are loaded one by one: compilers put vectors of them together in memory.
#[test]
fn integers_that_lie_apart_are_no_vectors() {
    let program = |dtype: &str| {
        format!(
            "
def f(a: {dtype}[n, n], y: inout[{dtype}[n]]):
    for i in range(n):
        for k in range(n):
            y[i] = max(y[i], a[i, k] + a[k, i])
"
        )
    };
    decides(
        &program("i32"),
        "auto_vectorize",
        &[("n", 100)],
        expect![[r#"
        `k`
          * keep                                         13.2 µs
            vectorize("k")                               not tried: at best 17.0 µs
        for i in range(n):
            for k in range(n):
                y[i] = max(y[i], a[i, k] + a[k, i])
    "#]],
    );
    decides(
        &program("f32"),
        "auto_vectorize",
        &[("n", 100)],
        expect![[r#"
        `k`
            keep                                         13.2 µs
          * vectorize("k")                               4.97 µs
        for i in range(n):
            for k in range(n):  # vectorize, partial(y max)
                y[i] = max(y[i], a[i, k] + a[k, i])
    "#]],
    );
}

/// Elements that lie apart, stored where a condition says so, have no vector instruction on most machines: compilers
/// give each lane a branch.
#[test]
fn masked_stores_that_lie_apart_take_no_lanes() {
    let text = "
def f(x: f32[n, m], y: inout[f32[m, n, 2]]):
    for j in range(m):
        for i in range(n):
            if 2 * i + j < n:
                y[j, i, 0] = 2.0 * exp(x[i, j])
";
    decides(
        text,
        "auto_vectorize",
        &[("n", 3000), ("m", 3000)],
        expect![[r#"
        for j in range(m):
            for i in range(n):
                if i * 2 + j < n:
                    y[j, i, 0] = 2.0 * exp(x[i, j])
    "#]],
    );
    // Which of them are stored is the same for all lanes.
    let text = "
def f(x: f32[n, m], y: inout[f32[m, n, 2]]):
    for j in range(m):
        for i in range(n):
            if j < 7:
                y[j, i, 0] = 2.0 * exp(x[i, j])
";
    decides(
        text,
        "auto_vectorize",
        &[("n", 3000), ("m", 3000)],
        expect![[r#"
        `i`
            keep                                         55.6 ms
          * vectorize("i")                               54.1 ms
        for j in range(m):
            for i in range(n):  # vectorize
                if j < 7:
                    y[j, i, 0] = 2.0 * exp(x[i, j])
    "#]],
    );
}

/// A ray goes on step by step, and rays are not as long as each other: that is said of the loop over them.
#[test]
fn loops_around_what_runs_in_order() {
    let text = "
def f(x: f64[n], steps: i32, y: inout[f64[n]]):
    for i in range(n):
        t = x[i]
        for k in range(steps):
            t = t + sqrt(t * t + x[i])
        y[i] = t
";
    let (func, _) = entry(text);
    let mut s = Schedule::new(func).aimed_at(Arc::new(Target::portable(2)));
    s.call("auto_vectorize", &[]).unwrap_or_else(|r| panic!("{}", r.message));
    let decided = |site: &str| s.decisions().iter().find(|d| d.site == site).map(ToString::to_string);
    assert!(decided("k").is_some_and(|d| d.contains("refused: ")), "{:?}", decided("k"));
    let outer = decided("i").unwrap_or_default();
    let why = "not tried: the loop `k` in it runs in order, and lanes are for innermost loops";
    assert!(outer.contains("  * keep ") && outer.contains(why), "{outer}");
}
