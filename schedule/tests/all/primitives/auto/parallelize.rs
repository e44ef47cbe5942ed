//! `auto_parallelize`: loops on threads.

use super::{PRODUCT, decides};
use crate::primitives::common::{entry, same};
use expect_test::expect;
use std::sync::Arc;
use taffeta_schedule::Schedule;
use taffeta_schedule::auto::Target;

#[test]
fn outer_loops_run_on_threads() {
    decides(
        PRODUCT,
        "auto_parallelize",
        &[("n", 500)],
        expect![[r#"
            `i`
                keep                                         163 ms
              * parallelize("i")                             81.4 ms
                not tried, 82.4 ms at best: parallelize("j"), parallelize("k")
            for i in range(n):  # parallel
                for j in range(n):
                    for k in range(n):
                        c[i, j] += a[i, k] * b[k, j]
        "#]],
    );
    // Too small; of unknown size; with a dependence carried by the outer loop.
    decides(
        PRODUCT,
        "auto_parallelize",
        &[("n", 8)],
        expect![[r#"
            `i`
              * keep                                         775 ns
                not tried, 2.39 µs at best: parallelize("i"), parallelize("j"), parallelize("k")
            for i in range(n):
                for j in range(n):
                    for k in range(n):
                        c[i, j] += a[i, k] * b[k, j]
        "#]],
    );
    decides(
        PRODUCT,
        "auto_parallelize",
        &[],
        expect![[r#"
            `i`
                keep                                         1.30 s
              * parallelize("i", above=15)                   651 ms
                not tried, 651 ms at best: parallelize("j", above=63), parallelize("k", above=1023)
            for i in range(n):  # parallel(above=15)
                for j in range(n):
                    for k in range(n):
                        c[i, j] += a[i, k] * b[k, j]
        "#]],
    );
    let carried = "
def f(a: inout[f32[t, n]]):
    for i in range(1, t):
        for j in range(n):
            a[i, j] = a[i - 1, j] + 1
";
    decides(
        carried,
        "auto_parallelize",
        &[("t", 10), ("n", 1000000)],
        expect![[r#"
            `i`
                keep                                         3.60 ms
                parallelize("i")                             refused: the loop `i` has a loop-carried dependence
              * parallelize("j")                             1.82 ms
            for i in range(1, t):
                for j in range(n):  # parallel
                    a[i, j] = a[i - 1, j] + 1.0
        "#]],
    );
    let few = "
def f(a: inout[f32[3, n]]):
    for i in range(3):
        for j in range(n):
            a[i, j] = exp(a[i, j])
";
    decides(
        few,
        "auto_parallelize",
        &[("n", 1000)],
        expect![[r#"
            `i`
                keep                                         19.5 µs
                parallelize("i")                             15.0 µs
              * parallelize(merge("i", "j"))                 11.8 µs
                not tried, 15.8 µs at best: parallelize("j")
            for i_j in range(n * 3):  # parallel
                a[i_j // n, i_j % n] = exp(a[i_j // n, i_j % n])
        "#]],
    );
}

/// Checks that rows are divided among threads, and the stored elements of a row are not.
#[test]
fn loops_over_stored_elements_are_not_parallelized() {
    let text = "
def f(a: f64[n, n] @ csr, x: f64[n]) -> f64[n]:
    y = zeros((n,), f64)
    for i in range(n):
        for j in range(n):
            y[i] += a[i, j] * x[j]
    return y
";
    decides(
        text,
        "auto_vectorize",
        &[("n", 100000)],
        expect![[r#"
            `y.d0`
              * keep                                         8.55 ms
                not tried, 8.55 ms at best: vectorize("y.d0")
            y = empty((n,), f64)
            for y.d0 in range(n):
                y[y.d0] = 0.0
            for i in range(n):
                for j in range(n):
                    y[i] += a[i, j] * x[j]
            return y
        "#]],
    );
    decides(
        text,
        "auto_parallelize",
        &[("n", 100000)],
        expect![[r#"
            `y.d0`
                keep                                         8.55 ms
              * parallelize("y.d0")                          8.51 ms
            `i`
                keep                                         8.51 ms
              * parallelize("i")                             4.28 ms
            y = empty((n,), f64)
            for y.d0 in range(n):  # parallel
                y[y.d0] = 0.0
            for i in range(n):  # parallel
                for j in range(n):
                    y[i] += a[i, j] * x[j]
            return y
        "#]],
    );
}

/// Checks a row of scratch memory that all iterations share in the text.
#[test]
fn shared_tensors_are_privatized() {
    let text = "
def f(a: inout[f64[n, m]]):
    t = empty((m,), f64)
    for i in range(n):
        for j in range(m):
            t[j] = a[i, m - 1 - j]
        for j in range(m):
            a[i, j] = exp(t[j])
";
    decides(
        text,
        "auto_parallelize",
        &[("n", 1000), ("m", 100)],
        expect![[r#"
            `i`
                keep                                         1.27 ms
              * privatize("t", "i"), parallelize("i")        635 µs
                not tried, 2.72 ms at best: parallelize("j#1"), parallelize("j#2")
            for i in range(n):  # parallel
                t = empty((m,), f64)
                for j in range(m):
                    t[j] = a[i, m - 1 - j]
                for j in range(m):
                    a[i, j] = exp(t[j])
        "#]],
    );
}

/// Checks that time steps run one after the other, and each of the two loops in them on threads.
#[test]
fn loops_in_a_time_loop_are_parallelized() {
    let text = "
def f(steps: i64, a: inout[f64[n, n]], b: inout[f64[n, n]]):
    for t in range(steps):
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                b[i, j] = a[i - 1, j] + a[i + 1, j]
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                a[i, j] = b[i, j - 1] + b[i, j + 1]
";
    decides(
        text,
        "auto_parallelize",
        &[("n", 1000), ("steps", 100)],
        expect![[r#"
            `t`
                keep                                         204 ms
                parallelize("t", above=63)                   refused: the loop `t` has a loop-carried dependence
              * parallelize of 2 loops in "t"                102 ms
                not tried, 156 ms at best: parallelize("i#1") … parallelize("j#2") (4 options)
            for t in range(steps):
                for i in range(1, n - 1):  # parallel
                    for j in range(1, n - 1):
                        b[i, j] = a[i - 1, j] + a[i + 1, j]
                for i in range(1, n - 1):  # parallel
                    for j in range(1, n - 1):
                        a[i, j] = b[i, j - 1] + b[i, j + 1]
        "#]],
    );
}

/// Checks that a loop between sequential loops stays on the thread that has its data in its cache, though alone it
/// would run on threads.
#[test]
fn loops_between_sequential_loops_stay_on_their_thread() {
    let text = "
def f(a: inout[f64[m, n]], q: f64[m], r: f64[n]):
    for k in range(200):
        for i in range(1, m):
            for j in range(1, n):
                a[i, j] += a[i - 1, j] * a[i, j - 1]
        for i in range(m):
            for j in range(n):
                a[i, j] -= q[i] * r[j]
";
    let (func, _) = entry(text);
    let steps = |transfer: f64| {
        let mut target = Target::portable(2);
        target.sizes = [("m".to_string(), 300), ("n".to_string(), 200)].into();
        target.prices.transfer = transfer;
        let mut s = Schedule::new(func.clone()).aimed_at(Arc::new(target));
        s.auto_parallelize().unwrap_or_else(|r| panic!("{}", r.message));
        same(&func, s.func());
        s.trace().steps.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(steps(0.0), ["s.parallelize(\"i#2\")"]);
    assert!(steps(1.0).is_empty());
}

/// Checks that loops over one dimension, which are vectorised before this rule runs, run on threads too.
#[test]
fn vectorised_loops_are_parallelized() {
    let text = "
def f(x: f32[n], y: inout[f32[n]], s: inout[f32[1]]):
    for i in range(n):
        y[i] = exp(x[i])
        s[0] += x[i]
";
    let (func, _) = entry(text);
    let made = |n: Option<i64>| {
        let mut target = Target::portable(2);
        target.sizes = n.into_iter().map(|n| ("n".to_string(), n)).collect();
        let mut s = Schedule::new(func.clone()).aimed_at(Arc::new(target));
        s.auto().unwrap_or_else(|r| panic!("{}", r.message));
        same(&func, s.func());
        s.trace().steps.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(made(Some(1000)), ["s.vectorize(\"i\")"]);
    assert_eq!(made(Some(10_000_000)), ["s.vectorize(\"i\")", "s.parallelize(\"i\")"]);
    // A loop of unknown size.
    let unknown = made(None);
    assert!(unknown.len() == 2 && unknown[1].starts_with("s.parallelize(\"i\", above="), "{unknown:?}");
}
