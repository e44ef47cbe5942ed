//! `auto_fission`: scattering statements, cut out of loops that threads can share.

use super::decides;
use expect_test::expect;

/// Weights of edges, which take long to compute, and sums of them at the target nodes of edges.
const WEIGHTS: &str = "
def f(x: f32[m], to: i32[m], y: inout[f32[n]]):
    for e in range(m):
        w = exp(x[e]) * tanh(x[e])
        y[to[e]] += w
";

#[test]
fn scatters_are_split_from_expensive_statements() {
    decides(
        WEIGHTS,
        "auto_fission",
        &[("m", 1000000), ("n", 1000000)],
        expect![[r#"
            `e`
                keep                                         39.0 ms
              * fission("e") around its scatters             9.82 ms
            w = empty((m,), f32)
            for e in range(m):
                w[e] = exp(x[e]) * tanh(x[e])
            for e in range(m):
                y[cast(to[e], i64)] += w[e]
        "#]],
    );
}

#[test]
fn cheap_statements_are_not_split_off() {
    let text = WEIGHTS.replace("exp(x[e]) * tanh(x[e])", "2 * x[e]");
    decides(
        &text,
        "auto_fission",
        &[("m", 1000000), ("n", 1000000)],
        expect![[r#"
            `e`
              * keep                                         3.20 ms
                fission("e") around its scatters             3.39 ms
            for e in range(m):
                w = empty((), f32)
                w = 2.0 * x[e]
                y[cast(to[e], i64)] += w
        "#]],
    );
}

/// Checks that functions are cut out to run in lanes, which scattering statements do not allow.
#[test]
fn short_loops_are_split_for_lanes() {
    decides(
        WEIGHTS,
        "auto_fission",
        &[("m", 20), ("n", 1000000)],
        expect![[r#"
            `e`
                keep                                         745 ns
              * fission("e") around its scatters             317 ns
            w = empty((m,), f32)
            for e in range(m):
                w[e] = exp(x[e]) * tanh(x[e])
            for e in range(m):
                y[cast(to[e], i64)] += w[e]
        "#]],
    );
}

/// Checks a loop as in the gradient of attention over edges: alone, the scattered rows are divided among threads by
/// columns, and the dot products by edges. In one loop neither is possible.
#[test]
fn scatters_of_rows_are_split_off() {
    let text = "
def f(h: f32[n, 32], g: f32[n, 32], w: f32[m], to: i32[m], of: i32[m], y: inout[f32[n, 32]], z: inout[f32[m]]):
    for e in range(m):
        for d in range(32):
            z[e] += h[to[e], d] * g[of[e], d]
            y[to[e], d] += w[e] * g[of[e], d]
";
    decides(
        text,
        "auto_fission",
        &[("m", 500000), ("n", 50000)],
        expect![[r#"
            `e`
                keep                                         18.8 ms
              * fission("e") around its scatters             7.37 ms
            for e in range(m):
                for d_1 in range(32):
                    z[e] += h[cast(to[e], i64), d_1] * g[cast(of[e], i64), d_1]
            for e in range(m):
                for d_1 in range(32):
                    y[cast(to[e], i64), d_1] += w[e] * g[cast(of[e], i64), d_1]
        "#]],
    );
}

/// Checks that a loop stays whole if an edge may read sums that earlier edges have written.
#[test]
fn loops_with_reads_of_earlier_sums_are_not_split() {
    let text = "
def f(x: f32[m], to: i32[m], y: inout[f32[m]], z: inout[f32[m]]):
    for e in range(m):
        y[to[e]] += exp(x[e])
        z[e] = tanh(y[e])
";
    decides(
        text,
        "auto_fission",
        &[("m", 1000000)],
        expect![[r#"
            `e`
              * keep                                         39.3 ms
                fission("e") around its scatters             refused: the first half depends on the second half in earlier iterations of `e`
            for e in range(m):
                y[cast(to[e], i64)] += exp(x[e])
                z[e] = tanh(y[e])
        "#]],
    );
}
