//! `auto_unroll`: short innermost loops.

use super::decides;
use expect_test::expect;

#[test]
fn short_innermost_loops_are_unrolled() {
    let text = "
def f(a: f32[n, 3], b: f32[n, 40], y: inout[f32[n]]):
    for i in range(n):
        for j in range(3):
            y[i] += a[i, j]
    for i in range(n):
        for j in range(40):
            y[i] += b[i, j]
";
    decides(
        text,
        "auto_unroll",
        &[("n", 1000)],
        expect![[r#"
            `j#1`
                keep                                         5.31 µs
              * unroll("j#1")                                5.27 µs
            for i in range(n):
                y[i] += a[i, 0]
                y[i] += a[i, 1]
                y[i] += a[i, 2]
            for i in range(n):
                for j in range(40):
                    y[i] += b[i, j]
        "#]],
    );
}
