//! `auto_polyhedral`: nests in which every loop carries a dependence.

use super::decides;
use expect_test::expect;

const SEIDEL: &str = "
def f(a: inout[f64[n, n]], steps: i32):
    for t in range(steps):
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                a[i, j] = (a[i - 1, j] + a[i, j - 1] + a[i, j] + a[i, j + 1] + a[i + 1, j]) / 5.0
";

#[test]
fn sweeps_in_place_are_tiled_in_wavefronts() {
    decides(
        SEIDEL,
        "auto_polyhedral",
        &[("n", 2000)],
        expect![[r#"
            `t`
                keep                                         2.68 s
              * parallelize(tile(polyhedral("t"), [16, 32, 32], wavefront=True)[1]) 1.33 s
            for t_w in range((cast(steps, i64) * 3 + n - 5) // 32 + 1):
                for t_i_o in range(max(t_w + (0 - cast(steps, i64)) // 16 + 1, (t_w + 1) // 3), min(min(t_w, (cast(steps, i64) + n - 3) // 32), (n + t_w * 16 + 13) // 48) + 1):  # parallel
                    for t_i_j_o in range(max(max(t_w - t_i_o, t_i_o * 2 - (n + 28) // 32), (t_w + t_i_o) // 2), min(min(min(min(t_w + (n + 13) // 16 - t_i_o, (cast(steps, i64) + n - 3) // 16), t_i_o * 2 + (n + 27) // 32 + 1), t_i_o + (cast(steps, i64) + n + 28) // 32), (n + t_w * 16 + t_i_o * 16 + 12) // 32 + 1) + 1):
                        for t_i in range(max(max(max(t_w * 16 - t_i_o * 16, t_i_o * 32 - n + 2), t_i_j_o * 32 - n - t_i_o * 32 - 29), t_i_j_o * 16 - n + 2), min(min(min(min(cast(steps, i64) - 1, t_w * 16 - t_i_o * 16 + 15), t_i_o * 32 + 30), t_i_j_o * 16 + 14), t_i_j_o * 32 - t_i_o * 32 + 30) + 1):
                            for t_i_i in range(max(max(t_i_o * 32, t_i + 1), t_i_j_o * 32 - n - t_i + 2), min(min(t_i_o * 32 + 31, n + t_i - 2), t_i_j_o * 32 - t_i + 30) + 1):
                                for t_i_j_i in range(max(t_i_j_o * 32, t_i + t_i_i + 1), min(t_i_j_o * 32 + 31, n + t_i + t_i_i - 2) + 1):
                                    a[t_i_i - t_i, t_i_j_i - t_i - t_i_i] = (a[t_i_i - t_i - 1, t_i_j_i - t_i - t_i_i] + a[t_i_i - t_i, t_i_j_i - t_i - t_i_i - 1] + a[t_i_i - t_i, t_i_j_i - t_i - t_i_i] + a[t_i_i - t_i, t_i_j_i - t_i - t_i_i + 1] + a[t_i_i - t_i + 1, t_i_j_i - t_i - t_i_i]) / 5.0
        "#]],
    );
}

/// Checks the decision on a small grid.
#[test]
fn small_grids_are_left_alone() {
    decides(
        SEIDEL,
        "auto_polyhedral",
        &[("n", 20)],
        expect![[r#"
            `t`
                keep                                         220 µs
              * parallelize(tile(polyhedral("t"), [16, 32, 32], wavefront=True)[1]) 100 µs
            for t_w in range((cast(steps, i64) * 3 + n - 5) // 32 + 1):
                for t_i_o in range(max(t_w + (0 - cast(steps, i64)) // 16 + 1, (t_w + 1) // 3), min(min(t_w, (cast(steps, i64) + n - 3) // 32), (n + t_w * 16 + 13) // 48) + 1):  # parallel
                    for t_i_j_o in range(max(max(t_w - t_i_o, t_i_o * 2 - (n + 28) // 32), (t_w + t_i_o) // 2), min(min(min(min(t_w + (n + 13) // 16 - t_i_o, (cast(steps, i64) + n - 3) // 16), t_i_o * 2 + (n + 27) // 32 + 1), t_i_o + (cast(steps, i64) + n + 28) // 32), (n + t_w * 16 + t_i_o * 16 + 12) // 32 + 1) + 1):
                        for t_i in range(max(max(max(t_w * 16 - t_i_o * 16, t_i_o * 32 - n + 2), t_i_j_o * 32 - n - t_i_o * 32 - 29), t_i_j_o * 16 - n + 2), min(min(min(min(cast(steps, i64) - 1, t_w * 16 - t_i_o * 16 + 15), t_i_o * 32 + 30), t_i_j_o * 16 + 14), t_i_j_o * 32 - t_i_o * 32 + 30) + 1):
                            for t_i_i in range(max(max(t_i_o * 32, t_i + 1), t_i_j_o * 32 - n - t_i + 2), min(min(t_i_o * 32 + 31, n + t_i - 2), t_i_j_o * 32 - t_i + 30) + 1):
                                for t_i_j_i in range(max(t_i_j_o * 32, t_i + t_i_i + 1), min(t_i_j_o * 32 + 31, n + t_i + t_i_i - 2) + 1):
                                    a[t_i_i - t_i, t_i_j_i - t_i - t_i_i] = (a[t_i_i - t_i - 1, t_i_j_i - t_i - t_i_i] + a[t_i_i - t_i, t_i_j_i - t_i - t_i_i - 1] + a[t_i_i - t_i, t_i_j_i - t_i - t_i_i] + a[t_i_i - t_i, t_i_j_i - t_i - t_i_i + 1] + a[t_i_i - t_i + 1, t_i_j_i - t_i - t_i_i]) / 5.0
        "#]],
    );
}

/// Checks that a loop without a carried dependence is left to threads.
#[test]
fn nests_with_a_parallel_loop_are_left_alone() {
    let text = "
def f(a: inout[f64[n, n]]):
    for i in range(1, n):
        for j in range(n):
            a[i, j] = a[i - 1, j] * 0.5 + a[i, j]
";
    decides(
        text,
        "auto_polyhedral",
        &[("n", 2000)],
        expect![[r#"
        for i in range(1, n):
            for j in range(n):
                a[i, j] += a[i - 1, j] * 0.5
    "#]],
    );
}
