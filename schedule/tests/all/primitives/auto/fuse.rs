//! `auto_fuse`: adjacent loops that use the same tensors.

use super::decides;
use expect_test::expect;

#[test]
fn loops_over_the_same_tensors_are_fused() {
    let text = "
def f(x: f32[n, m]) -> f32[n, m]:
    t = empty((n, m), f32)
    y = empty((n, m), f32)
    for i in range(n):
        for j in range(m):
            t[i, j] = x[i, j] * 2
    for i in range(n):
        for j in range(m):
            y[i, j] = t[i, j] + x[i, j]
    return y
";
    decides(
        text,
        "auto_fuse",
        &[("n", 3000), ("m", 3000)],
        expect![[r#"
            `i#1`
                keep                                         18.0 ms
              * fuse("i#1", "i#2"), fuse("j#1", "j#2"), contract("t") 7.20 ms
            y = empty((n, m), f32)
            for i in range(n):
                for j in range(m):
                    t = empty((), f32)
                    t = x[i, j] * 2.0
                    y[i, j] = t + x[i, j]
            return y
        "#]],
    );
    // Each loop could run on threads, the fused one could not.
    let text = "
def f(x: f32[n], a: inout[f32[n]], b: inout[f32[n]]):
    for i in range(n):
        a[i] = x[i] * 2
    for i in range(n):
        b[i] = a[max(i - 1, 0)]
";
    decides(
        text,
        "auto_fuse",
        &[("n", 3000000)],
        expect![[r#"
            `i#1`
              * keep                                         4.80 ms
                fuse("i#1", "i#2")                           refused: the fused loop could no longer run on threads
            for i in range(n):
                a[i] = x[i] * 2.0
            for i in range(n):
                b[i] = a[max(i - 1, 0)]
        "#]],
    );
}
