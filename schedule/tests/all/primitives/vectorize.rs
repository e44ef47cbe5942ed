//! `vectorize`: its lists of partial results, its refusals, and its notes on accesses.

use crate::args;
use crate::primitives::common::{call, check, entry, refused};
use expect_test::expect;
use taffeta_schedule::Schedule;

const ROWS: &str = "
def f(x: f32[n, m], y: inout[f32[n]]):
    for i in range(n):
        for j in range(m):
            y[i] += x[i, j]
";

#[test]
fn marks_the_loop() {
    check(
        ROWS,
        |s| call(s, "vectorize", args!["j"]).map(drop),
        expect![[r#"
        for i in range(n):
            for j in range(m):  # vectorize, partial(y +)
                y[i] += x[i, j]
    "#]],
    );
    check(
        "
def f(x: f32[n], y: inout[f32[n]]):
    for i in range(n):
        y[i] = max(x[i], 0)
",
        |s| {
            let made = call(s, "split", args!["i", 32])?;
            call(s, "vectorize", &[made[1].clone().into(), taffeta_schedule::Arg::named("width", 16)])?;
            call(s, "parallelize", &[made[0].clone().into()]).map(drop)
        },
        expect![[r#"
            for i_o in range((n + 31) // 32):  # parallel
                for i_i in range(32):  # vectorize(width=16)
                    if i_o * 32 + i_i < n:
                        y[i_o * 32 + i_i] = max(x[i_o * 32 + i_i], 0.0)
        "#]],
    );
}

#[test]
fn refuses() {
    // 1.
    refused(
        ROWS,
        |s| call(s, "vectorize", args!["i"]).map(drop),
        expect![[r#"
        schedule::illegal (1): the loop `i` is not innermost
          `for j in range(m):` a loop inside
          help: vectorise the innermost loop (`s.innermost`), or `s.unroll` the loops inside
    "#]],
    );
    refused(
        "
def f(x: inout[f32[n]], k: i32):
    for i in range(0, n, k):
        x[i] = 0
",
        |s| call(s, "vectorize", args!["i"]).map(drop),
        expect![[r#"
            schedule::illegal (1): the loop `i` has a step that is not a constant
              `for i in range(0, n, k):` this loop
        "#]],
    );
    // 2.
    refused(
        "
def f(x: inout[f32[n]]):
    for i in range(1, n):
        x[i] = x[i - 1] + 1
",
        |s| call(s, "vectorize", args!["i"]).map(drop),
        expect![[r#"
            schedule::dependence (2): the loop `i` has a loop-carried dependence
              `x[i] = x[i - 1] + 1` writes `x[i]` at i = 1, then reads `x[i - 1]` at i = 2
              note: flow dependence (RAW), carried by the loop `i`
              note: the element is x[1] with n = 3
        "#]],
    );
    // 3.
    refused(
        "
def f(x: f32[n], k: i32[n], y: inout[f32[n]]):
    for i in range(n):
        y[k[i]] += x[i]
",
        |s| call(s, "vectorize", args!["i"]).map(drop),
        expect![[r#"
            schedule::dependence (3): vector lanes of the loop `i` cannot share a reduction
              `y[k[i]] += x[i]` updates `y[k[i]]` at i = 0, then updates `y[k[i]]` at i = 1
              note: flow dependence (RAW), carried by the loop `i`
              note: the element is y[0] with n = 2, if `k[0]` is 0 and `k[1]` is 0
              note: vector lanes would update the element at the same time
              help: make the loop parallel instead: its updates are then atomic, or go into partial results
        "#]],
    );
    refused(
        "
def f(x: f32[n, m], k: i32[n], y: inout[f32[n, m]]):
    for i in range(n):
        for j in range(m):
            y[k[i], j] += x[i, j]
",
        |s| {
            call(s, "parallelize", args!["i"])?;
            call(s, "vectorize", args!["j"]).map(drop)
        },
        expect![[r#"
            schedule::dependence (3): the parallel loop around `j` makes its updates atomic
              `y[k[i], j] += x[i, j]` updates `y[k[i], j]` at i = 0, j = 0, then updates `y[k[i], j]` at i = 1, j = 0
              note: flow dependence (RAW), carried by the loop `i`
              note: the element is y[0, 0] with n = 2, m = 1, if `k[0]` is 0 and `k[1]` is 0
              note: the update would be atomic inside a vectorised loop
              help: write instead: `s.cache_reduction("j", "y")`, then `s.vectorize("j")`
        "#]],
    );
    refused(
        "
def f(x: inout[i64[n + 10]]):
    for i in range(1, n, 2):
        x[3] = max(x[3], x[min(5, n)])
",
        |s| call(s, "vectorize", args!["i"]).map(drop),
        expect![[r#"
            schedule::dependence (3): vector lanes of the loop `i` cannot share a reduction
              `x[3] = max(x[3], x[min(5, n)])` reads `x[min(5, n)]` at i = 1, then updates `x[3]` at i = 1
              note: anti dependence (WAR), within one iteration of the loops around both
              note: the element is x[3] with n = 3
              note: the same iteration also uses the element, and would miss an update held in a partial result
              help: make the loop parallel instead: its updates are then atomic, or go into partial results
        "#]],
    );
    // 4.
    refused(
        "
def f(x: f32[n], k: inout[i32[n]], y: inout[f32[n]]):
    for i in range(n):
        k[i] += 1
        y[i] = x[k[i]]
",
        |s| call(s, "vectorize", args!["i"]).map(drop),
        expect![[r#"
            schedule::illegal (4): a check in the loop `i` depends on `k`, which the loop writes
              `y[i] = x[k[i]]` checked here
              help: split the loop there (`s.fission`), so that the check is in a loop of its own
        "#]],
    );
    refused(
        ROWS,
        |s| call(s, "vectorize", args!["j"; width = 12]).map(drop),
        expect![[r#"
        schedule::argument (0): expected a power of two from 2 to 64 for `width`, found 12
    "#]],
    );
    // A later step that puts a loop into it, or a dependence.
    refused(
        "
def f(x: inout[f32[n, m]]):
    for i in range(n):
        for j in range(m):
            x[i, j] = 0
",
        |s| {
            call(s, "vectorize", args!["j"])?;
            call(s, "reorder", args![crate::primitives::common::list(&["j", "i"])]).map(drop)
        },
        expect![[r#"
            schedule::illegal (100): the loop `j` is not innermost
              `for i in range(n):` a loop inside
              help: take this step before `parallelize` and `vectorize`
        "#]],
    );
}

#[test]
fn reports_strided_and_gathered_accesses() {
    let (func, _) = entry(
        "
def f(x: f32[n, m], w: f32[n], k: i32[n], y: inout[f32[n]], z: inout[f32[2 * n]]):
    for i in range(n):
        y[i] = x[i, 0] + w[k[i]] * x[0, 0] + w[n - 1 - i]
        z[2 * i] = 1
",
    );
    let mut s = Schedule::new(func);
    call(&mut s, "vectorize", args!["i"]).expect("nothing is carried");
    expect![[r#"
        `x[i, 0]` is strided: lanes are apart in dimension 0, and not in the last one alone
        `w[cast(k[i], i64)]` is gathered: every lane addresses an element of its own
        `z[i * 2]` is strided: lanes are 2 elements apart"#]]
    .assert_eq(&s.trace().steps[0].notes.join("\n"));
}

/// Checks that there are no partial results of a tensor whose shape is loaded: the loaded value may have changed by
/// then.
#[test]
fn no_partial_results_for_tensors_with_loaded_shapes() {
    let text = "
def f(p: i64[n + 1], x: inout[i64[n + 1]]):
    for i in range(n):
        x[p[n]] = max(x[p[n]], i)
";
    refused(
        text,
        |s| {
            call(s, "vectorize", args!["i"])?;
            call(s, "cache_reduction", args!["i", "x"]).map(drop)
        },
        expect![[r#"
            schedule::dependence (100): the loop `i` is already parallel or vectorised, and would get a loop-carried dependence
              `x[p[n]] = max(x[p[n]], i)` updates `x.partial[p[n] - max(p[n], 0)]`, then updates `x.partial[p[n] - max(p[n], 0)]`
              note: flow dependence (RAW), carried by the loop `i`
              note: cannot analyse the subscript `p[n] - max(p[n], 0)`: it may wrap around, or is not affine; if it cannot wrap around, add an assertion: `assert 0 <= p[n] and p[n] < n`
              note: the shape of the reduced tensor reads data that may change before partial results are allocated
              help: take this step before `parallelize` and `vectorize`
        "#]],
    );
    // On threads the updates are atomic.
    check(
        text,
        |s| {
            call(s, "parallelize", args!["i"])?;
            call(s, "cache_reduction", args!["i", "x"]).map(drop)
        },
        expect![[r#"
            x_partial = empty((max(min(p[n] + 1, n + 1), max(p[n], 0)) - max(p[n], 0),), i64)
            for x.partial.d0 in range(max(min(p[n] + 1, n + 1), max(p[n], 0)) - max(p[n], 0)):
                x_partial[x.partial.d0] = -9223372036854775807 - 1
            for i in range(n):  # parallel, atomic(x_partial max)
                x_partial[p[n] - max(p[n], 0)] = max(x_partial[p[n] - max(p[n], 0)], i)
            for x.partial.back.d0 in range(max(min(p[n] + 1, n + 1), max(p[n], 0)) - max(p[n], 0)):
                x[max(p[n], 0) + x.partial.back.d0] = max(x[max(p[n], 0) + x.partial.back.d0], x_partial[x.partial.back.d0])
        "#]],
    );
}
