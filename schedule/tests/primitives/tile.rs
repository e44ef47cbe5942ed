use crate::args;
use crate::common::{call, check, list, refused};
use expect_test::{Expect, expect};
use weft_schedule::{Refusal, Schedule, Value};

const STENCIL: &str = "
def f(steps: i32, A: inout[f64[n]], B: inout[f64[n]]):
    for t in range(min(steps, 6)):
        for i in range(1, n - 1):
            B[i] = 0.5 * (A[i - 1] + A[i] + A[i + 1])
        for i in range(1, n - 1):
            A[i] = 0.5 * (B[i - 1] + B[i] + B[i + 1])
";

fn sizes(of: &[i64]) -> Value {
    Value::from(of.to_vec())
}

fn tiled(text: &str, loops: &[&str], by: &[i64], expected: Expect) {
    check(text, |s| call(s, "tile", args![list(loops), sizes(by)]).map(drop), expected);
}

#[test]
fn cuts_rectangles() {
    tiled(
        "
def f(x: inout[f32[n, m]]):
    for i in range(n):
        for j in range(m):
            x[i, j] = x[i, j] * 2 + i
",
        &["i", "j"],
        &[4, 3],
        expect![[r#"
            for i_o in range((n - 1) // 4 + 1):
                for j_o in range((m - 1) // 3 + 1):
                    for i_i in range(i_o * 4, min(n - 1, i_o * 4 + 3) + 1):
                        for j_i in range(j_o * 3, min(m - 1, j_o * 3 + 2) + 1):
                            x[i_i, j_i] = x[i_i, j_i] * 2.0 + cast(i_i, f32)
        "#]],
    );
}

#[test]
fn cuts_triangles_and_backward_loops() {
    tiled(
        "
def f(x: inout[f32[n, n]]):
    for i in range(n):
        for j in range(i, n):
            x[i, j] = x[i, j] * 2 + i
",
        &["i", "j"],
        &[4, 3],
        expect![[r#"
            for i_o in range((n - 1) // 4 + 1):
                for j_o in range(i_o + i_o // 3, (n - 1) // 3 + 1):
                    for i_i in range(i_o * 4, min(min(n - 1, i_o * 4 + 3), j_o * 3 + 2) + 1):
                        for j_i in range(max(j_o * 3, i_i), min(n - 1, j_o * 3 + 2) + 1):
                            x[i_i, j_i] = x[i_i, j_i] * 2.0 + cast(i_i, f32)
        "#]],
    );
    tiled(
        "
def f(x: inout[f32[n, n]]):
    for i in range(n - 1, -1, -1):
        for j in range(0, i, 2):
            x[i, j] = x[i, j] * 2 + i
",
        &["i", "j"],
        &[4, 3],
        expect![[r#"
            for i_o in range((n + 2) // 4):
                for j_o in range((n + i_o * 2 - 2) // 6 - i_o + 1):
                    for i_i in range(i_o * 4, min(i_o * 4 + 3, n - j_o * 6 - 2) + 1):
                        for j_i in range(j_o * 3, min(j_o * 3 + 2, (n + i_i) // 2 - i_i - 1) + 1):
                            x[n - 1 + i_i * -1, j_i * 2] = x[n - 1 + i_i * -1, j_i * 2] * 2.0 + cast(n - 1 + i_i * -1, f32)
        "#]],
    );
}

#[test]
fn cuts_stencils_in_time() {
    check(
        STENCIL,
        |s| {
            let band = call(s, "polyhedral", args!["t"])?;
            call(s, "tile", args![Value::List(band), sizes(&[2, 4])]).map(drop)
        },
        expect![[r#"
            if 3 <= n:
                for t_o in range((cast(min(steps, 6), i64) + 1) // 2):
                    for t_i_o in range(t_o, min(t_o + (n + 1) // 4, (cast(min(steps, 6), i64) * 2 + n + 1) // 4 - 1) + 1):
                        for t_i in range(max(t_o * 2, t_i_o * 2 + n // 2 - n + 1), min(cast(min(steps, 6), i64) - 1, t_o * 2 + 1) + 1):
                            for t_i_i in range(max(t_i_o * 4, t_i * 2 + 1), min(t_i_o * 4 + 3, n + t_i * 2 - 2) + 1):
                                B[t_i_i - t_i * 2] = 0.5 * (A[t_i_i - t_i * 2 - 1] + A[t_i_i - t_i * 2] + A[t_i_i - t_i * 2 + 1])
                            for t_i_i in range(max(t_i_o * 4, t_i * 2 + 2), min(t_i_o * 4 + 3, n + t_i * 2 - 1) + 1):
                                A[t_i_i - t_i * 2 - 1] = 0.5 * (B[t_i_i - t_i * 2 - 2] + B[t_i_i - t_i * 2 - 1] + B[t_i_i - t_i * 2])
        "#]],
    );
    check(
        STENCIL,
        |s| {
            let band = call(s, "polyhedral", args!["t"])?;
            let loops = call(s, "tile", args![Value::List(band), sizes(&[2, 4]); wavefront = true])?;
            call(s, "parallelize", args![loops[1].clone()]).map(drop)
        },
        expect![[r#"
            if 3 <= n:
                for t_w in range(cast(min(steps, 6), i64) + (n - 1) // 4):
                    for t_i_o in range(max(t_w + cast(min(steps, 6), i64) // 2 - cast(min(steps, 6), i64) + 1, (t_w + 1) // 2), min(t_w, (n + t_w * 4 + 1) // 8) + 1):  # parallel
                        for t_i in range(max(t_w * 2 - t_i_o * 2, t_i_o * 2 + n // 2 - n + 1), min(cast(min(steps, 6), i64) - 1, t_w * 2 - t_i_o * 2 + 1) + 1):
                            for t_i_i in range(max(t_i_o * 4, t_i * 2 + 1), min(t_i_o * 4 + 3, n + t_i * 2 - 2) + 1):
                                B[t_i_i - t_i * 2] = 0.5 * (A[t_i_i - t_i * 2 - 1] + A[t_i_i - t_i * 2] + A[t_i_i - t_i * 2 + 1])
                            for t_i_i in range(max(t_i_o * 4, t_i * 2 + 2), min(t_i_o * 4 + 3, n + t_i * 2 - 1) + 1):
                                A[t_i_i - t_i * 2 - 1] = 0.5 * (B[t_i_i - t_i * 2 - 2] + B[t_i_i - t_i * 2 - 1] + B[t_i_i - t_i * 2])
        "#]],
    );
}
