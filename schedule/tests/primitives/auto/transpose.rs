//! `auto_transpose`: blocks where one tensor is gone through along its rows, and another one along its columns.

use super::decides;
use expect_test::expect;

#[test]
fn transposed_tensors_are_gone_through_in_blocks() {
    let text = "
def f(x: f32[n, m], y: inout[f32[m, n]]):
    for i in range(n):
        for j in range(m):
            y[j, i] = 2.0 * x[i, j]
";
    decides(
        text,
        "auto_transpose",
        &[("n", 3000), ("m", 3000)],
        expect![[r#"
            `i`
                keep                                         54.1 ms
              * blocks of "j" 16, "i" 16                     8.65 ms
            for j_o in range((m + 15) // 16):
                for i_o in range((n + 15) // 16):
                    for i_i in range(16):
                        if i_o * 16 + i_i < n:
                            if j_o * 16 < m:
                                y[j_o * 16, i_o * 16 + i_i] = 2.0 * x[i_o * 16 + i_i, j_o * 16]
                    for i_i in range(16):
                        if i_o * 16 + i_i < n:
                            if j_o * 16 + 1 < m:
                                y[j_o * 16 + 1, i_o * 16 + i_i] = 2.0 * x[i_o * 16 + i_i, j_o * 16 + 1]
                    for i_i in range(16):
                        if i_o * 16 + i_i < n:
                            if j_o * 16 + 2 < m:
                                y[j_o * 16 + 2, i_o * 16 + i_i] = 2.0 * x[i_o * 16 + i_i, j_o * 16 + 2]
                    for i_i in range(16):
                        if i_o * 16 + i_i < n:
                            if j_o * 16 + 3 < m:
                                y[j_o * 16 + 3, i_o * 16 + i_i] = 2.0 * x[i_o * 16 + i_i, j_o * 16 + 3]
                    for i_i in range(16):
                        if i_o * 16 + i_i < n:
                            if j_o * 16 + 4 < m:
                                y[j_o * 16 + 4, i_o * 16 + i_i] = 2.0 * x[i_o * 16 + i_i, j_o * 16 + 4]
                    for i_i in range(16):
                        if i_o * 16 + i_i < n:
                            if j_o * 16 + 5 < m:
                                y[j_o * 16 + 5, i_o * 16 + i_i] = 2.0 * x[i_o * 16 + i_i, j_o * 16 + 5]
                    for i_i in range(16):
                        if i_o * 16 + i_i < n:
                            if j_o * 16 + 6 < m:
                                y[j_o * 16 + 6, i_o * 16 + i_i] = 2.0 * x[i_o * 16 + i_i, j_o * 16 + 6]
                    for i_i in range(16):
                        if i_o * 16 + i_i < n:
                            if j_o * 16 + 7 < m:
                                y[j_o * 16 + 7, i_o * 16 + i_i] = 2.0 * x[i_o * 16 + i_i, j_o * 16 + 7]
                    for i_i in range(16):
                        if i_o * 16 + i_i < n:
                            if j_o * 16 + 8 < m:
                                y[j_o * 16 + 8, i_o * 16 + i_i] = 2.0 * x[i_o * 16 + i_i, j_o * 16 + 8]
                    for i_i in range(16):
                        if i_o * 16 + i_i < n:
                            if j_o * 16 + 9 < m:
                                y[j_o * 16 + 9, i_o * 16 + i_i] = 2.0 * x[i_o * 16 + i_i, j_o * 16 + 9]
                    for i_i in range(16):
                        if i_o * 16 + i_i < n:
                            if j_o * 16 + 10 < m:
                                y[j_o * 16 + 10, i_o * 16 + i_i] = 2.0 * x[i_o * 16 + i_i, j_o * 16 + 10]
                    for i_i in range(16):
                        if i_o * 16 + i_i < n:
                            if j_o * 16 + 11 < m:
                                y[j_o * 16 + 11, i_o * 16 + i_i] = 2.0 * x[i_o * 16 + i_i, j_o * 16 + 11]
                    for i_i in range(16):
                        if i_o * 16 + i_i < n:
                            if j_o * 16 + 12 < m:
                                y[j_o * 16 + 12, i_o * 16 + i_i] = 2.0 * x[i_o * 16 + i_i, j_o * 16 + 12]
                    for i_i in range(16):
                        if i_o * 16 + i_i < n:
                            if j_o * 16 + 13 < m:
                                y[j_o * 16 + 13, i_o * 16 + i_i] = 2.0 * x[i_o * 16 + i_i, j_o * 16 + 13]
                    for i_i in range(16):
                        if i_o * 16 + i_i < n:
                            if j_o * 16 + 14 < m:
                                y[j_o * 16 + 14, i_o * 16 + i_i] = 2.0 * x[i_o * 16 + i_i, j_o * 16 + 14]
                    for i_i in range(16):
                        if i_o * 16 + i_i < n:
                            if j_o * 16 + 15 < m:
                                y[j_o * 16 + 15, i_o * 16 + i_i] = 2.0 * x[i_o * 16 + i_i, j_o * 16 + 15]
        "#]],
    );
}

/// What the cache has room for is fast in any order.
#[test]
fn small_ones_stay() {
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
                blocks of "j" 16, "i" 16                     630 ns
            for i in range(n):
                for j in range(m):
                    y[j, i] = 2.0 * x[i, j]
        "#]],
    );
}

/// Loops of which one order is good for all are no matter of blocks.
#[test]
fn what_has_a_good_order_is_left_to_it() {
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
