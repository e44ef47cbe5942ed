use crate::args;
use crate::common::{call, check, refused};
use expect_test::{Expect, expect};

fn taken(text: &str, region: &str, expected: Expect) {
    check(text, |s| call(s, "polyhedral", args![region]).map(drop), expected);
}

#[test]
fn skews_stencils_in_time() {
    taken(
        "
def f(steps: i32, A: inout[f64[n]], B: inout[f64[n]]):
    for t in range(min(steps, 6)):
        for i in range(1, n - 1):
            B[i] = 0.5 * (A[i - 1] + A[i] + A[i + 1])
        for i in range(1, n - 1):
            A[i] = 0.5 * (B[i - 1] + B[i] + B[i + 1])
",
        "t",
        expect![[r#"
            if 3 <= n:
                for t in range(cast(min(steps, 6), i64)):
                    for t_i in range(t * 2 + 1, n + t * 2):
                        if t_i + 2 <= n + t * 2:
                            B[t_i - t * 2] = 0.5 * (A[t_i - t * 2 - 1] + A[t_i - t * 2] + A[t_i - t * 2 + 1])
                        if t * 2 + 2 <= t_i:
                            A[t_i - t * 2 - 1] = 0.5 * (B[t_i - t * 2 - 2] + B[t_i - t * 2 - 1] + B[t_i - t * 2])
        "#]],
    );
    taken(
        "
def f(steps: i32, A: inout[f64[n, n]]):
    for t in range(min(steps, 5)):
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                A[i, j] = A[i - 1, j - 1] + A[i - 1, j] + A[i - 1, j + 1] + A[i, j - 1] + A[i, j] + A[i, j + 1] + A[i + 1, j - 1] + A[i + 1, j] + A[i + 1, j + 1]
",
        "t",
        expect![[r#"
            for t in range(cast(min(steps, 5), i64)):
                for t_i in range(t + 1, n + t - 1):
                    for t_i_j in range(t + t_i + 1, n + t + t_i - 1):
                        A[t_i - t, t_i_j - t - t_i] = A[t_i - t - 1, t_i_j - t - t_i - 1] + A[t_i - t - 1, t_i_j - t - t_i] + A[t_i - t - 1, t_i_j - t - t_i + 1] + A[t_i - t, t_i_j - t - t_i - 1] + A[t_i - t, t_i_j - t - t_i] + A[t_i - t, t_i_j - t - t_i + 1] + A[t_i - t + 1, t_i_j - t - t_i - 1] + A[t_i - t + 1, t_i_j - t - t_i] + A[t_i - t + 1, t_i_j - t - t_i + 1]
        "#]],
    );
}

#[test]
fn keeps_what_is_good() {
    taken(
        "
def f(a: f32[n, m], b: f32[m, k]) -> f32[n, k]:
    c = zeros((n, k), f32)
    for i in range(n):
        for j in range(k):
            for p in range(m):
                c[i, j] += a[i, p] * b[p, j]
    return c
",
        "i",
        expect![[r#"
            c = empty((n, k), f32)
            for c.d0 in range(n):
                for c.d1 in range(k):
                    c[c.d0, c.d1] = 0.0
            for i in range(n):
                for j in range(k):
                    for p in range(m):
                        c[i, j] += a[i, p] * b[p, j]
            return c
        "#]],
    );
}
