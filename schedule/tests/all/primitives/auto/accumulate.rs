//! `auto_accumulate`: sums in registers.

use super::decides;
use expect_test::expect;

/// Checks that sums of 16 columns are in registers; those of all columns are too many.
#[test]
fn sums_of_a_few_elements_are_in_registers() {
    let text = "
def f(w: f32[n], h: f32[n, 16], y: inout[f32[16]], g: f32[n, m], z: inout[f32[m]]):
    for k in range(n):
        for j in range(16):
            y[j] += w[k] * h[k, j]
    for k in range(n):
        for j in range(m):
            z[j] += w[k] * g[k, j]
";
    decides(
        text,
        "auto_accumulate",
        &[("n", 1000), ("m", 20)],
        expect![[r#"
            `k#1`
                keep                                         8.12 µs
              * cache_reduction("k#1", "y"), vectorize("j#1") 6.82 µs
            y_partial = empty((16,), f32)
            for y.partial.d0 in range(16):
                y_partial[y.partial.d0] = 0.0
            for k in range(n):
                for j in range(16):  # vectorize
                    y_partial[j] += w[k] * h[k, j]
            for y.partial.back.d0 in range(16):
                y[y.partial.back.d0] += y_partial[y.partial.back.d0]
            del y_partial
            for k in range(n):
                for j in range(m):
                    z[j] += w[k] * g[k, j]
        "#]],
    );
}

/// Checks sums that are more than the registers hold (four rows of 64), as blocks of 16 columns, which are not.
#[test]
fn columns_of_several_rows_are_summed_in_blocks() {
    let rows = |k: usize| format!("            y[{k}, c] += w[j, {k}] * v[j, c]\n");
    let text = format!(
        "def f(w: f32[m, 4], v: f32[m, 64], y: inout[f32[4, 64]]):\n    for j in range(m):\n        \
         for c in range(64):\n{}",
        (0..4).map(rows).collect::<String>()
    );
    decides(
        &text,
        "auto_accumulate",
        &[("m", 65)],
        expect![[r#"
        `j`
            keep                                         1.17 µs
            cache_reduction("j", "y"), vectorize("c")    1.21 µs
          * columns of "c" in registers, 16 at a time    641 ns
        for c_o in range(4):
            y_partial = empty((4, 16), f32)
            for y.partial.d0 in range(4):
                for y.partial.d1 in range(16):
                    y_partial[y.partial.d0, y.partial.d1] = 0.0
            for j in range(m):
                for c_i in range(16):  # vectorize
                    y_partial[0, c_i] += w[j, 0] * v[j, c_o * 16 + c_i]
                    y_partial[1, c_i] += w[j, 1] * v[j, c_o * 16 + c_i]
                    y_partial[2, c_i] += w[j, 2] * v[j, c_o * 16 + c_i]
                    y_partial[3, c_i] += w[j, 3] * v[j, c_o * 16 + c_i]
            for y.partial.back.d0 in range(4):
                for y.partial.back.d1 in range(16):
                    y[y.partial.back.d0, c_o * 16 + y.partial.back.d1] += y_partial[y.partial.back.d0, y.partial.back.d1]
    "#]],
    );
}
