//! `auto_transpose`: blocks, where one tensor is traversed along its rows and another one along its columns.

use super::decides;
use expect_test::expect;

#[test]
fn transpositions_are_tiled() {
    let text = "
def f(x: f32[n, 4096], y: inout[f32[4096, n]]):
    for i in range(n):
        for j in range(4096):
            y[j, i] = 2.0 * x[i, j]
";
    decides(
        text,
        "auto_transpose",
        &[("n", 3000)],
        expect![[r#"
            `i`
                keep                                         73.8 ms
              * blocks of "j" 8, "i" 2                       8.23 ms
            for j_o in range(512):
                for i_o in range(n // 2):
                    y[j_o * 8, i_o * 2] = 2.0 * x[i_o * 2, j_o * 8]
                    y[j_o * 8, i_o * 2 + 1] = 2.0 * x[i_o * 2 + 1, j_o * 8]
                    y[j_o * 8 + 1, i_o * 2] = 2.0 * x[i_o * 2, j_o * 8 + 1]
                    y[j_o * 8 + 1, i_o * 2 + 1] = 2.0 * x[i_o * 2 + 1, j_o * 8 + 1]
                    y[j_o * 8 + 2, i_o * 2] = 2.0 * x[i_o * 2, j_o * 8 + 2]
                    y[j_o * 8 + 2, i_o * 2 + 1] = 2.0 * x[i_o * 2 + 1, j_o * 8 + 2]
                    y[j_o * 8 + 3, i_o * 2] = 2.0 * x[i_o * 2, j_o * 8 + 3]
                    y[j_o * 8 + 3, i_o * 2 + 1] = 2.0 * x[i_o * 2 + 1, j_o * 8 + 3]
                    y[j_o * 8 + 4, i_o * 2] = 2.0 * x[i_o * 2, j_o * 8 + 4]
                    y[j_o * 8 + 4, i_o * 2 + 1] = 2.0 * x[i_o * 2 + 1, j_o * 8 + 4]
                    y[j_o * 8 + 5, i_o * 2] = 2.0 * x[i_o * 2, j_o * 8 + 5]
                    y[j_o * 8 + 5, i_o * 2 + 1] = 2.0 * x[i_o * 2 + 1, j_o * 8 + 5]
                    y[j_o * 8 + 6, i_o * 2] = 2.0 * x[i_o * 2, j_o * 8 + 6]
                    y[j_o * 8 + 6, i_o * 2 + 1] = 2.0 * x[i_o * 2 + 1, j_o * 8 + 6]
                    y[j_o * 8 + 7, i_o * 2] = 2.0 * x[i_o * 2, j_o * 8 + 7]
                    y[j_o * 8 + 7, i_o * 2 + 1] = 2.0 * x[i_o * 2 + 1, j_o * 8 + 7]
                for i_o in range(n // 2, (n + 1) // 2):
                    y[j_o * 8, i_o * 2] = 2.0 * x[i_o * 2, j_o * 8]
                    y[j_o * 8 + 1, i_o * 2] = 2.0 * x[i_o * 2, j_o * 8 + 1]
                    y[j_o * 8 + 2, i_o * 2] = 2.0 * x[i_o * 2, j_o * 8 + 2]
                    y[j_o * 8 + 3, i_o * 2] = 2.0 * x[i_o * 2, j_o * 8 + 3]
                    y[j_o * 8 + 4, i_o * 2] = 2.0 * x[i_o * 2, j_o * 8 + 4]
                    y[j_o * 8 + 5, i_o * 2] = 2.0 * x[i_o * 2, j_o * 8 + 5]
                    y[j_o * 8 + 6, i_o * 2] = 2.0 * x[i_o * 2, j_o * 8 + 6]
                    y[j_o * 8 + 7, i_o * 2] = 2.0 * x[i_o * 2, j_o * 8 + 7]
        "#]],
    );
}

/// Checks that a transposition with more computation than memory traffic is vectorised.
#[test]
fn computations_on_transposed_tensors_are_vectorised() {
    let text = "
def f(x: f32[2048, 2048], y: inout[f32[2048, 2048]]):
    for i in range(2048):
        for j in range(2048):
            y[j, i] = exp(x[i, j])
";
    decides(
        text,
        "auto_transpose",
        &[],
        expect![[r#"
            `i`
                keep                                         27.3 ms
              * blocks of "j" 16, "i" 16                     7.93 ms
            for j_o in range(128):
                for i_o in range(128):
                    for i_i in range(16):
                        y[j_o * 16, i_o * 16 + i_i] = exp(x[i_o * 16 + i_i, j_o * 16])
                    for i_i in range(16):
                        y[j_o * 16 + 1, i_o * 16 + i_i] = exp(x[i_o * 16 + i_i, j_o * 16 + 1])
                    for i_i in range(16):
                        y[j_o * 16 + 2, i_o * 16 + i_i] = exp(x[i_o * 16 + i_i, j_o * 16 + 2])
                    for i_i in range(16):
                        y[j_o * 16 + 3, i_o * 16 + i_i] = exp(x[i_o * 16 + i_i, j_o * 16 + 3])
                    for i_i in range(16):
                        y[j_o * 16 + 4, i_o * 16 + i_i] = exp(x[i_o * 16 + i_i, j_o * 16 + 4])
                    for i_i in range(16):
                        y[j_o * 16 + 5, i_o * 16 + i_i] = exp(x[i_o * 16 + i_i, j_o * 16 + 5])
                    for i_i in range(16):
                        y[j_o * 16 + 6, i_o * 16 + i_i] = exp(x[i_o * 16 + i_i, j_o * 16 + 6])
                    for i_i in range(16):
                        y[j_o * 16 + 7, i_o * 16 + i_i] = exp(x[i_o * 16 + i_i, j_o * 16 + 7])
                    for i_i in range(16):
                        y[j_o * 16 + 8, i_o * 16 + i_i] = exp(x[i_o * 16 + i_i, j_o * 16 + 8])
                    for i_i in range(16):
                        y[j_o * 16 + 9, i_o * 16 + i_i] = exp(x[i_o * 16 + i_i, j_o * 16 + 9])
                    for i_i in range(16):
                        y[j_o * 16 + 10, i_o * 16 + i_i] = exp(x[i_o * 16 + i_i, j_o * 16 + 10])
                    for i_i in range(16):
                        y[j_o * 16 + 11, i_o * 16 + i_i] = exp(x[i_o * 16 + i_i, j_o * 16 + 11])
                    for i_i in range(16):
                        y[j_o * 16 + 12, i_o * 16 + i_i] = exp(x[i_o * 16 + i_i, j_o * 16 + 12])
                    for i_i in range(16):
                        y[j_o * 16 + 13, i_o * 16 + i_i] = exp(x[i_o * 16 + i_i, j_o * 16 + 13])
                    for i_i in range(16):
                        y[j_o * 16 + 14, i_o * 16 + i_i] = exp(x[i_o * 16 + i_i, j_o * 16 + 14])
                    for i_i in range(16):
                        y[j_o * 16 + 15, i_o * 16 + i_i] = exp(x[i_o * 16 + i_i, j_o * 16 + 15])
        "#]],
    );
}

/// Checks that tensors that fit in the cache stay, as any order is fast.
#[test]
fn small_tensors_are_left_alone() {
    let text = "
def f(x: f32[n, m], y: inout[f32[m, n]]):
    for i in range(n):
        for j in range(m):
            y[j, i] = 2.0 * x[i, j]
";
    decides(
        text,
        "auto_transpose",
        &[("n", 30), ("m", 30)],
        expect![[r#"
            `i`
              * keep                                         650 ns
                blocks of "j" 8, "i" 2                       725 ns
            for i in range(n):
                for j in range(m):
                    y[j, i] = 2.0 * x[i, j]
        "#]],
    );
}

/// Checks that a nest with one order that suits all tensors is left to `auto_reorder`.
#[test]
fn nests_with_one_good_order_are_left_alone() {
    let text = "
def f(x: f32[n, m], y: inout[f32[n, m]]):
    for i in range(n):
        for j in range(m):
            y[i, j] = 2.0 * x[i, j]
";
    decides(
        text,
        "auto_transpose",
        &[("n", 3000), ("m", 3000)],
        expect![[r#"
        for i in range(n):
            for j in range(m):
                y[i, j] = 2.0 * x[i, j]
    "#]],
    );
}
