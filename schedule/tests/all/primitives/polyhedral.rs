use crate::args;
use crate::primitives::common::{call, check, refused};
use expect_test::{Expect, expect};

fn taken(text: &str, region: &str, expected: Expect) {
    check(text, |s| call(s, "polyhedral", args![region]).map(drop), expected);
}

#[test]
fn skews_stencils_in_time() {
    taken(
        "
def f(steps: i32, A: inout[f64[n]], B: inout[f64[n]]):
    for t in range(min(steps, 6)):
        for i in range(1, n - 1):
            B[i] = 0.5 * (A[i - 1] + A[i] + A[i + 1])
        for i in range(1, n - 1):
            A[i] = 0.5 * (B[i - 1] + B[i] + B[i + 1])
",
        "t",
        expect![[r#"
            if 3 <= n:
                for t in range(cast(min(steps, 6), i64)):
                    for t_i in range(t * 2 + 1, n + t * 2):
                        if t_i + 2 <= n + t * 2:
                            B[t_i - t * 2] = 0.5 * (A[t_i - t * 2 - 1] + A[t_i - t * 2] + A[t_i - t * 2 + 1])
                        if t * 2 + 2 <= t_i:
                            A[t_i - t * 2 - 1] = 0.5 * (B[t_i - t * 2 - 2] + B[t_i - t * 2 - 1] + B[t_i - t * 2])
        "#]],
    );
    taken(
        "
def f(steps: i32, A: inout[f64[n, n]]):
    for t in range(min(steps, 5)):
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                A[i, j] = A[i - 1, j - 1] + A[i - 1, j] + A[i - 1, j + 1] + A[i, j - 1] + A[i, j] + A[i, j + 1] + A[i + 1, j - 1] + A[i + 1, j] + A[i + 1, j + 1]
",
        "t",
        expect![[r#"
            for t in range(cast(min(steps, 5), i64)):
                for t_i in range(t + 1, n + t - 1):
                    for t_i_j in range(t + t_i + 1, n + t + t_i - 1):
                        A[t_i - t, t_i_j - t - t_i] += A[t_i - t - 1, t_i_j - t - t_i - 1] + A[t_i - t - 1, t_i_j - t - t_i] + A[t_i - t - 1, t_i_j - t - t_i + 1] + A[t_i - t, t_i_j - t - t_i - 1] + A[t_i - t, t_i_j - t - t_i + 1] + A[t_i - t + 1, t_i_j - t - t_i - 1] + A[t_i - t + 1, t_i_j - t - t_i] + A[t_i - t + 1, t_i_j - t - t_i + 1]
        "#]],
    );
}

#[test]
fn keeps_good_orders() {
    taken(
        "
def f(a: f32[n, m], b: f32[m, k]) -> f32[n, k]:
    c = zeros((n, k), f32)
    for i in range(n):
        for j in range(k):
            for p in range(m):
                c[i, j] += a[i, p] * b[p, j]
    return c
",
        "i",
        expect![[r#"
            c = empty((n, k), f32)
            for c.d0 in range(n):
                for c.d1 in range(k):
                    c[c.d0, c.d1] = 0.0
            for i in range(n):
                for j in range(k):
                    for p in range(m):
                        c[i, j] += a[i, p] * b[p, j]
            return c
        "#]],
    );
}

#[test]
fn accepts_stencils_in_many_forms() {
    // Values in arrays of one time step, declared in it; the array moves out of the loop.
    check(
        "
def f(steps: i32, x: inout[f64[n]]):
    for t in range(min(steps, 5)):
        y = zeros((n,), f64)
        for i in range(1, n - 1):
            y[i] = x[i - 1] + x[i + 1]
        for i in range(1, n - 1):
            x[i] = 0.5 * y[i]
",
        |s| {
            let band = call(s, "polyhedral", args!["t"])?;
            assert_eq!(band.len(), 2);
            Ok(())
        },
        expect![[r#"
            y = empty((n,), f64)
            for t in range(cast(min(steps, 5), i64)):
                for t_y.d0 in range(t * 2, n + t * 2):
                    y[t_y.d0 - t * 2] = 0.0
                    if t_y.d0 + 2 <= n + t * 2 and t * 2 + 1 <= t_y.d0:
                        y[t_y.d0 - t * 2] = x[t_y.d0 - t * 2 - 1] + x[t_y.d0 - t * 2 + 1]
                    if t * 2 + 2 <= t_y.d0:
                        x[t_y.d0 - t * 2 - 1] = 0.5 * y[t_y.d0 - t * 2 - 1]
        "#]],
    );
    // Branches, triangles, steps, backward loops, a local.
    taken(
        "
def f(x: inout[f64[n, n]], y: inout[f64[n]]):
    for i in range(n - 1, -1, -1):
        for j in range(0, i + 1, 2):
            t = x[i, j] * 2.0
            if (i + j) % 3 == 0 or j > 2:
                x[i, j] = t + 1.0
            else:
                y[j] = t
",
        "i",
        expect![[r#"
            for j in range((n + 1) // 2):
                for i in range(n - j * 2):
                    t = empty((), f64)
                    t = x[n - 1 + i * -1, j * 2] * 2.0
                    if (n - 1 + i * -1 + j * 2) % 3 == 0 or j * 2 > 2:
                        x[n - 1 + i * -1, j * 2] = t + 1.0
                    else:
                        y[j * 2] = t
        "#]],
    );
    // Producer and consumer; reductions.
    taken(
        "
def f(a: f64[n, m], b: f64[m, n]) -> f64[n, n]:
    c = zeros((n, n), f64)
    for i in range(n):
        for j in range(n):
            for k in range(m):
                c[i, j] += a[i, k] * b[k, j]
        for j in range(n):
            c[i, j] = c[i, j] * 2.0
    return c
",
        "i",
        expect![[r#"
            c = empty((n, n), f64)
            for c.d0 in range(n):
                for c.d1 in range(n):
                    c[c.d0, c.d1] = 0.0
            for i in range(n):
                for j in range(n):
                    for k in range(m):
                        c[i, j] += a[i, k] * b[k, j]
                    c[i, j] *= 2.0
            return c
        "#]],
    );
    // A loaded index and a loaded bound stay as they are.
    taken(
        "
def f(x: inout[f64[n]], k: i32[n], m: i32):
    for t in range(m):
        for i in range(n):
            for p in range(k[i]):
                x[k[p]] = x[i] + p
",
        "t",
        expect![[r#"
            for t in range(cast(m, i64)):
                for i in range(n):
                    for p in range(cast(k[i], i64)):
                        x[cast(k[p], i64)] = x[i] + cast(p, f64)
        "#]],
    );
}

#[test]
fn bands_can_run_in_parallel() {
    check(
        "
def f(x: inout[f64[n, m]]):
    for i in range(1, n):
        for j in range(m):
            x[i, j] = x[i - 1, j] + 1.0
",
        |s| {
            let band = call(s, "polyhedral", args!["i"])?;
            call(s, "parallelize", args![band[0].clone()]).map(drop)
        },
        expect![[r#"
            for j in range(m):  # parallel
                for i in range(1, n):
                    x[i, j] = x[i - 1, j] + 1.0
        "#]],
    );
}

#[test]
fn refuses() {
    // 1.
    refused(
        "
def f(x: inout[f64[n]], k: i64):
    for i in range(k):
        x[i] = 0.0
",
        |s| call(s, "polyhedral", args!["i"]).map(drop),
        expect![[r#"
            schedule::illegal (1): the region is not affine: sums of `k` may overflow: it has no bounds; write, say, `assert 0 <= k and k <= 1000000` before the loops
              `for i in range(k):` this statement
        "#]],
    );
    refused(
        "
def f(x: inout[f64[n]], k: i32[n]):
    for i in range(1, n, k[0]):
        x[i] = 0.0
",
        |s| call(s, "polyhedral", args!["i"]).map(drop),
        expect![[r#"
            schedule::illegal (1): the region is not affine: the step of `i` is not a constant
              `for i in range(1, n, k[0]):` this statement
        "#]],
    );
    refused(
        "
def f(x: inout[f64[n]]):
    label(\"here\")
    x[0] = 1.0
",
        |s| call(s, "polyhedral", args!["here"]).map(drop),
        expect![[r#"
            schedule::illegal (1): there is no loop in the region
              `x[0] = 1.0` this statement
        "#]],
    );
    // 2.
    refused(
        "
def f(x: inout[f64[n]]):
    for t in range(3):
        for i in range(n):
            x[i] = 0.0
",
        |s| {
            call(s, "parallelize", args!["i"])?;
            call(s, "polyhedral", args!["t"]).map(drop)
        },
        expect![[r#"
            schedule::illegal (2): the loop `i` is already parallel
              `for i in range(n):` this loop
              help: take this step before `parallelize`, `vectorize`, `unroll` and `blend`
        "#]],
    );
}

/// Checks that a bound which may not be written is not used: it would be evaluated before the loops, even in runs that
/// never reach it.
#[test]
fn bounds_that_may_be_unwritten_are_not_used() {
    let counted = |otherwise: &str| {
        format!(
            "
def f(x: inout[f32[n, n]]):
    k = empty((), i32)
    if n > 3:
        k = 5{otherwise}
    for i in range(2, n - 2):
        for j in range(1, min(k, 4)):
            x[i, j] = x[i - 1, j + 1] + x[i - 1, j - 1]
"
        )
    };
    taken(
        &counted(""),
        "i",
        expect![[r#"
        k = empty((), i32)
        if n > 3:
            k = 5
        for i in range(2, n - 2):
            for j in range(1, cast(min(k, 4), i64)):
                x[i, j] = x[i - 1, j + 1] + x[i - 1, j - 1]
    "#]],
    );
    taken(
        &counted("\n    else:\n        k = 2"),
        "i",
        expect![[r#"
        k = empty((), i32)
        if n > 3:
            k = 5
        else:
            k = 2
        for i in range(2, n - 2):
            for i_j in range(i + 1, cast(min(k, 4), i64) + i):
                x[i, i_j - i] = x[i - 1, i_j - i + 1] + x[i - 1, i_j - i - 1]
    "#]],
    );
}
