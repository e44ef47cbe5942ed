//! `auto_inline`: intermediates that are computed where they are read.

use super::decides;
use expect_test::expect;

#[test]
fn cheap_intermediates_are_inlined() {
    let text = "
def f(x: f32[n, m]) -> f32[n, m]:
    t = empty((n, m), f32)
    u = empty((n, m), f32)
    y = empty((n, m), f32)
    for i in range(n):
        for j in range(m):
            t[i, j] = x[i, j] * 2
    for i in range(n):
        for j in range(m):
            u[i, j] = exp(t[i, j])
    for i in range(n):
        for j in range(m):
            y[i, j] = u[i, j] + u[i, m - 1 - j]
    return y
";
    decides(
        text,
        "auto_inline",
        &[("n", 3000), ("m", 3000)],
        expect![[r#"
            `t`
                keep                                         28.7 ms
              * inline("t")                                  21.7 ms
            y = empty((n, m), f32)
            u = empty((n, m), f32)
            for i in range(n):
                for j in range(m):
                    u[i, j] = exp(x[i, j] * 2.0)
            for i in range(n):
                for j in range(m):
                    y[i, j] = u[i, j] + u[i, m - 1 - j]
            return y
        "#]],
    );
}
