//! `auto_accumulate`: sums in registers.

use super::decides;
use expect_test::expect;

/// Sums of 16 columns in registers; those of all columns are too many.
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
