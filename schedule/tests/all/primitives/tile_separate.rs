//! Full tiles separated from partial ones.

use crate::args;
use crate::primitives::common::{call, check, entry, handles, list, refused};
use expect_test::{Expect, expect};
use taffeta_schedule::{Refusal, Schedule, Value};

const TRIANGLE: &str = "
def f(a: f32[n, m], c: inout[f32[n, n]]):
    for i in range(n):
        for k in range(m):
            for j in range(i + 1):
                c[i, j] += a[i, k] * a[j, k]
";

const STENCIL: &str = "
def f(steps: i32, A: inout[f64[n]], B: inout[f64[n]]):
    for t in range(min(steps, 6)):
        for i in range(1, n - 1):
            B[i] = 0.5 * (A[i - 1] + A[i] + A[i + 1])
        for i in range(1, n - 1):
            A[i] = 0.5 * (B[i - 1] + B[i] + B[i + 1])
";

const SEIDEL: &str = "
def f(A: inout[f64[n, n]]):
    for t in range(4):
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                A[i, j] = 0.25 * (A[i - 1, j] + A[i, j - 1] + A[i, j + 1] + A[i + 1, j])
";

fn sizes(of: &[i64]) -> Value {
    Value::from(of.to_vec())
}

/// Returns the loops over tiles, those of full tiles, and those of partial tiles.
fn parts(made: &[Value]) -> [Vec<Value>; 3] {
    let [tiles, full, partial] = made else { panic!("three lists, not {made:?}") };
    [tiles, full, partial].map(handles)
}

/// Tiles the loops, and checks that there are as many loops of full tiles as of partial ones.
fn separated(text: &str, loops: &[&str], by: &[i64], expected: Expect) {
    check(
        text,
        |s| {
            let made = call(s, "tile", args![list(loops), sizes(by); separate = true])?;
            let [_, full, partial] = parts(&made);
            assert_eq!(full.len(), partial.len());
            Ok(())
        },
        expected,
    );
}

/// Returns the lengths of the loops of full tiles, which must be constant.
fn lengths(s: &mut Schedule, full: &[Value]) -> Result<Vec<Value>, Refusal> {
    full.iter().map(|l| s.call("length", args![l.clone()])).collect()
}

#[test]
fn separates_rectangles() {
    separated(
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
                    if i_o * 4 + 4 <= n and j_o * 3 + 3 <= m:
                        for i_i in range(4):
                            for j_i in range(3):
                                x[i_o * 4 + i_i, j_o * 3 + j_i] = x[i_o * 4 + i_i, j_o * 3 + j_i] * 2.0 + cast(i_o * 4 + i_i, f32)
                    else:
                        for i_i in range(i_o * 4, min(n - 1, i_o * 4 + 3) + 1):
                            for j_i in range(j_o * 3, min(m - 1, j_o * 3 + 2) + 1):
                                x[i_i, j_i] = x[i_i, j_i] * 2.0 + cast(i_i, f32)
        "#]],
    );
}

#[test]
fn separates_triangles() {
    separated(
        TRIANGLE,
        &["i", "j"],
        &[4, 2],
        expect![[r#"
        for i_o in range((n - 1) // 4 + 1):
            for j_o in range(min(i_o * 2 + 1, (n + 1) // 2 - 1) + 1):
                if i_o * 4 + 4 <= n and j_o * 2 + 1 <= i_o * 4:
                    for i_i in range(4):
                        for k_i in range(m):
                            for j_i in range(2):
                                c[i_o * 4 + i_i, j_o * 2 + j_i] += a[i_o * 4 + i_i, k_i] * a[j_o * 2 + j_i, k_i]
                else:
                    for i_i in range(max(i_o * 4, j_o * 2), min(n - 1, i_o * 4 + 3) + 1):
                        for k_i in range(m):
                            for j_i in range(j_o * 2, min(j_o * 2 + 1, i_i) + 1):
                                c[i_i, j_i] += a[i_i, k_i] * a[j_i, k_i]
    "#]],
    );
    check(
        TRIANGLE,
        |s| {
            let made = call(s, "tile", args![list(&["i", "k", "j"]), sizes(&[4, 3, 8]); separate = true])?;
            let [tiles, full, partial] = parts(&made);
            assert_eq!(lengths(s, &full)?, [4, 3, 8].map(Value::Int));
            assert_eq!(lengths(s, &partial)?, [Value::None, Value::None, Value::None]);
            call(s, "vectorize", args![full[2].clone()])?;
            call(s, "unroll", args![full[1].clone()])?;
            call(s, "parallelize", args![tiles[0].clone()]).map(drop)
        },
        expect![[r#"
            for i_o in range((n - 1) // 4 + 1):  # parallel
                for k_o in range((m - 1) // 3 + 1):
                    for j_o in range(i_o // 2 + 1):
                        if i_o * 4 + 4 <= n and k_o * 3 + 3 <= m and j_o * 8 + 7 <= i_o * 4:
                            for i_i in range(4):
                                for j_i in range(8):  # vectorize
                                    c[i_o * 4 + i_i, j_o * 8 + j_i] += a[i_o * 4 + i_i, k_o * 3] * a[j_o * 8 + j_i, k_o * 3]
                                for j_i in range(8):  # vectorize
                                    c[i_o * 4 + i_i, j_o * 8 + j_i] += a[i_o * 4 + i_i, k_o * 3 + 1] * a[j_o * 8 + j_i, k_o * 3 + 1]
                                for j_i in range(8):  # vectorize
                                    c[i_o * 4 + i_i, j_o * 8 + j_i] += a[i_o * 4 + i_i, k_o * 3 + 2] * a[j_o * 8 + j_i, k_o * 3 + 2]
                        else:
                            for i_i in range(i_o * 4, min(n - 1, i_o * 4 + 3) + 1):
                                for k_i in range(k_o * 3, min(m - 1, k_o * 3 + 2) + 1):
                                    for j_i in range(j_o * 8, min(j_o * 8 + 7, i_i) + 1):
                                        c[i_i, j_i] += a[i_i, k_i] * a[j_i, k_i]
        "#]],
    );
    // Backward loops, and steps other than 1.
    separated(
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
                    if j_o * 6 + i_o * 4 + 9 <= n:
                        for i_i in range(4):
                            for j_i in range(3):
                                x[n - 1 + (i_o * 4 + i_i) * -1, (j_o * 3 + j_i) * 2] = x[n - 1 + (i_o * 4 + i_i) * -1, (j_o * 3 + j_i) * 2] * 2.0 + cast(n - 1 + (i_o * 4 + i_i) * -1, f32)
                    else:
                        for i_i in range(i_o * 4, min(i_o * 4 + 3, n - j_o * 6 - 2) + 1):
                            for j_i in range(j_o * 3, min(j_o * 3 + 2, (n + i_i) // 2 - i_i - 1) + 1):
                                x[n - 1 + i_i * -1, j_i * 2] = x[n - 1 + i_i * -1, j_i * 2] * 2.0 + cast(n - 1 + i_i * -1, f32)
        "#]],
    );
}

#[test]
fn separates_skewed_bands() {
    let band = |text: &'static str, by: &'static [i64], wavefront: bool, expected: Expect| {
        check(
            text,
            |s| {
                let band = call(s, "polyhedral", args!["t"])?;
                let made =
                    call(s, "tile", args![Value::List(band), sizes(by); wavefront = wavefront, separate = true])?;
                let [tiles, full, _] = parts(&made);
                assert!(!lengths(s, &full)?.contains(&Value::None));
                if wavefront {
                    call(s, "parallelize", args![tiles[1].clone()])?;
                }
                Ok(())
            },
            expected,
        );
    };
    band(
        STENCIL,
        &[2, 4],
        false,
        expect![[r#"
        if 3 <= n:
            for t_o in range((cast(min(steps, 6), i64) + 1) // 2):
                for t_i_o in range(t_o, min(t_o + (n + 1) // 4, (cast(min(steps, 6), i64) * 2 + n + 1) // 4 - 1) + 1):
                    if t_o * 2 + 2 <= cast(min(steps, 6), i64) and t_o * 4 + 3 <= t_i_o * 4 and t_i_o * 4 + 5 <= n + t_o * 4:
                        for t_i in range(2):
                            for t_i_i in range(4):
                                B[t_i_o * 4 + t_i_i - (t_o * 2 + t_i) * 2] = 0.5 * (A[t_i_o * 4 + t_i_i - (t_o * 2 + t_i) * 2 - 1] + A[t_i_o * 4 + t_i_i - (t_o * 2 + t_i) * 2] + A[t_i_o * 4 + t_i_i - (t_o * 2 + t_i) * 2 + 1])
                            for t_i_i in range(4):
                                A[t_i_o * 4 + t_i_i - (t_o * 2 + t_i) * 2 - 1] = 0.5 * (B[t_i_o * 4 + t_i_i - (t_o * 2 + t_i) * 2 - 2] + B[t_i_o * 4 + t_i_i - (t_o * 2 + t_i) * 2 - 1] + B[t_i_o * 4 + t_i_i - (t_o * 2 + t_i) * 2])
                    else:
                        for t_i in range(max(t_o * 2, t_i_o * 2 + n // 2 - n + 1), min(cast(min(steps, 6), i64) - 1, t_o * 2 + 1) + 1):
                            for t_i_i in range(max(t_i_o * 4, t_i * 2 + 1), min(t_i_o * 4 + 3, n + t_i * 2 - 2) + 1):
                                B[t_i_i - t_i * 2] = 0.5 * (A[t_i_i - t_i * 2 - 1] + A[t_i_i - t_i * 2] + A[t_i_i - t_i * 2 + 1])
                            for t_i_i in range(max(t_i_o * 4, t_i * 2 + 2), min(t_i_o * 4 + 3, n + t_i * 2 - 1) + 1):
                                A[t_i_i - t_i * 2 - 1] = 0.5 * (B[t_i_i - t_i * 2 - 2] + B[t_i_i - t_i * 2 - 1] + B[t_i_i - t_i * 2])
    "#]],
    );
    band(
        STENCIL,
        &[2, 4],
        true,
        expect![[r#"
        if 3 <= n:
            for t_w in range(cast(min(steps, 6), i64) + (n - 1) // 4):
                for t_i_o in range(max(t_w + cast(min(steps, 6), i64) // 2 - cast(min(steps, 6), i64) + 1, (t_w + 1) // 2), min(t_w, (n + t_w * 4 + 1) // 8) + 1):  # parallel
                    if t_w * 2 + 2 <= cast(min(steps, 6), i64) + t_i_o * 2 and t_w * 4 + 3 <= t_i_o * 8 and t_i_o * 8 + 5 <= n + t_w * 4:
                        for t_i in range(2):
                            for t_i_i in range(4):
                                B[t_i_o * 4 + t_i_i - (t_w * 2 - t_i_o * 2 + t_i) * 2] = 0.5 * (A[t_i_o * 4 + t_i_i - (t_w * 2 - t_i_o * 2 + t_i) * 2 - 1] + A[t_i_o * 4 + t_i_i - (t_w * 2 - t_i_o * 2 + t_i) * 2] + A[t_i_o * 4 + t_i_i - (t_w * 2 - t_i_o * 2 + t_i) * 2 + 1])
                            for t_i_i in range(4):
                                A[t_i_o * 4 + t_i_i - (t_w * 2 - t_i_o * 2 + t_i) * 2 - 1] = 0.5 * (B[t_i_o * 4 + t_i_i - (t_w * 2 - t_i_o * 2 + t_i) * 2 - 2] + B[t_i_o * 4 + t_i_i - (t_w * 2 - t_i_o * 2 + t_i) * 2 - 1] + B[t_i_o * 4 + t_i_i - (t_w * 2 - t_i_o * 2 + t_i) * 2])
                    else:
                        for t_i in range(max(t_w * 2 - t_i_o * 2, t_i_o * 2 + n // 2 - n + 1), min(cast(min(steps, 6), i64) - 1, t_w * 2 - t_i_o * 2 + 1) + 1):
                            for t_i_i in range(max(t_i_o * 4, t_i * 2 + 1), min(t_i_o * 4 + 3, n + t_i * 2 - 2) + 1):
                                B[t_i_i - t_i * 2] = 0.5 * (A[t_i_i - t_i * 2 - 1] + A[t_i_i - t_i * 2] + A[t_i_i - t_i * 2 + 1])
                            for t_i_i in range(max(t_i_o * 4, t_i * 2 + 2), min(t_i_o * 4 + 3, n + t_i * 2 - 1) + 1):
                                A[t_i_i - t_i * 2 - 1] = 0.5 * (B[t_i_i - t_i * 2 - 2] + B[t_i_i - t_i * 2 - 1] + B[t_i_i - t_i * 2])
    "#]],
    );
    band(
        SEIDEL,
        &[2, 2, 4],
        false,
        expect![[r#"
        for t_o in range(2):
            for t_i_o in range(t_o, t_o + (n + 1) // 2):
                for t_i_j_o in range(max(t_i_o - (n + 4) // 4 + 1, (t_o + t_i_o) // 2), min(t_i_o + (n - 1) // 4, (n + t_o * 2 + t_i_o * 2) // 4) + 1):
                    if t_o * 2 + 2 <= t_i_o * 2 and t_i_o * 2 + 3 <= n + t_o * 2 and t_o * 2 + t_i_o * 2 + 3 <= t_i_j_o * 4 and t_i_j_o * 4 + 5 <= n + t_o * 2 + t_i_o * 2:
                        for t_i in range(2):
                            for t_i_i in range(2):
                                for t_i_j_i in range(4):
                                    A[t_i_o * 2 + t_i_i - (t_o * 2 + t_i), t_i_j_o * 4 + t_i_j_i - (t_o * 2 + t_i) - (t_i_o * 2 + t_i_i)] = 0.25 * (A[t_i_o * 2 + t_i_i - (t_o * 2 + t_i) - 1, t_i_j_o * 4 + t_i_j_i - (t_o * 2 + t_i) - (t_i_o * 2 + t_i_i)] + A[t_i_o * 2 + t_i_i - (t_o * 2 + t_i), t_i_j_o * 4 + t_i_j_i - (t_o * 2 + t_i) - (t_i_o * 2 + t_i_i) - 1] + A[t_i_o * 2 + t_i_i - (t_o * 2 + t_i), t_i_j_o * 4 + t_i_j_i - (t_o * 2 + t_i) - (t_i_o * 2 + t_i_i) + 1] + A[t_i_o * 2 + t_i_i - (t_o * 2 + t_i) + 1, t_i_j_o * 4 + t_i_j_i - (t_o * 2 + t_i) - (t_i_o * 2 + t_i_i)])
                    else:
                        for t_i in range(max(max(t_o * 2, t_i_o * 2 - n + 2), t_i_j_o * 4 - n - t_i_o * 2 + 1), min(min(t_o * 2 + 1, t_i_o * 2), t_i_j_o * 4 - t_i_o * 2 + 2) + 1):
                            for t_i_i in range(max(max(t_i_o * 2, t_i + 1), t_i_j_o * 4 - n - t_i + 2), min(min(t_i_o * 2 + 1, n + t_i - 2), t_i_j_o * 4 - t_i + 2) + 1):
                                for t_i_j_i in range(max(t_i_j_o * 4, t_i + t_i_i + 1), min(t_i_j_o * 4 + 3, n + t_i + t_i_i - 2) + 1):
                                    A[t_i_i - t_i, t_i_j_i - t_i - t_i_i] = 0.25 * (A[t_i_i - t_i - 1, t_i_j_i - t_i - t_i_i] + A[t_i_i - t_i, t_i_j_i - t_i - t_i_i - 1] + A[t_i_i - t_i, t_i_j_i - t_i - t_i_i + 1] + A[t_i_i - t_i + 1, t_i_j_i - t_i - t_i_i])
    "#]],
    );
}

#[test]
fn separates_tiles_of_several_statements() {
    // Statements beside the inner loop, which surely runs; a local of one iteration; a branch.
    separated(
        "
def f(x: f32[n, m], y: inout[f32[n]]):
    for i in range(n):
        y[i] = 0
        for j in range(3):
            t = y[i] * 2
            if i + j < 6:
                y[i] = t + j
",
        &["i", "j"],
        &[4, 2],
        expect![[r#"
            for i_o in range((n - 1) // 4 + 1):
                if i_o * 4 + 4 <= n:
                    for i_i in range(4):
                        y[i_o * 4 + i_i] = 0.0
                else:
                    for i_i in range(i_o * 4, min(n - 1, i_o * 4 + 3) + 1):
                        y[i_i] = 0.0
                for j_o in range(2):
                    if i_o * 4 + 4 <= n and j_o * 2 <= 1:
                        for i_i in range(4):
                            for j_i in range(2):
                                t = empty((), f32)
                                t = y[i_o * 4 + i_i] * 2.0
                                if i_o * 4 + i_i + (j_o * 2 + j_i) < 6:
                                    y[i_o * 4 + i_i] = t + cast(j_o * 2 + j_i, f32)
                    else:
                        for i_i in range(i_o * 4, min(n - 1, i_o * 4 + 3) + 1):
                            for j_i in range(j_o * 2, min(2, j_o * 2 + 1) + 1):
                                t = empty((), f32)
                                t = y[i_i] * 2.0
                                if i_i + j_i < 6:
                                    y[i_i] = t + cast(j_i, f32)
        "#]],
    );
    // Of two statements that are never in one full tile together, the first one decides.
    separated(
        "
def f(x: inout[f32[n, n]]):
    for i in range(n):
        for j in range(n):
            if j < i:
                x[i, j] = 1
            else:
                x[i, j] += 2
",
        &["i", "j"],
        &[2, 2],
        expect![[r#"
            for i_o in range((n + 1) // 2):
                for j_o in range(min(i_o, n // 2 - 1) + 1):
                    if i_o * 2 + 2 <= n and j_o * 2 + 2 <= i_o * 2:
                        for i_i in range(2):
                            for j_i in range(2):
                                x[i_o * 2 + i_i, j_o * 2 + j_i] = 1.0
                    else:
                        for i_i in range(max(i_o * 2, j_o * 2 + 1), min(n - 1, i_o * 2 + 1) + 1):
                            for j_i in range(j_o * 2, min(j_o * 2 + 1, i_i - 1) + 1):
                                x[i_i, j_i] = 1.0
                for j_o in range(i_o, (n + 1) // 2):
                    if j_o * 2 + 2 <= n and i_o * 2 + 1 <= j_o * 2:
                        for i_i in range(2):
                            for j_i in range(2):
                                x[i_o * 2 + i_i, j_o * 2 + j_i] += 2.0
                    else:
                        for i_i in range(i_o * 2, min(n - 1, i_o * 2 + 1) + 1):
                            for j_i in range(max(j_o * 2, i_i), min(n - 1, j_o * 2 + 1) + 1):
                                x[i_i, j_i] += 2.0
        "#]],
    );
    let two = "
def f(x: inout[f32[n, n]], y: inout[f32[n, n]]):
    for i in range(n):
        for j in range(i, n):
            x[i, j] = x[i, j] + 1
            y[i, j] = x[i, j] * 2
";
    separated(
        two,
        &["i", "j"],
        &[2, 4],
        expect![[r#"
        for i_o in range((n + 1) // 2):
            for j_o in range(i_o // 2, (n - 1) // 4 + 1):
                if i_o * 2 + 1 <= j_o * 4 and j_o * 4 + 4 <= n:
                    for i_i in range(2):
                        for j_i in range(4):
                            x[i_o * 2 + i_i, j_o * 4 + j_i] += 1.0
                    for i_i in range(2):
                        for j_i in range(4):
                            y[i_o * 2 + i_i, j_o * 4 + j_i] = x[i_o * 2 + i_i, j_o * 4 + j_i] * 2.0
                else:
                    for i_i in range(i_o * 2, min(n - 1, i_o * 2 + 1) + 1):
                        for j_i in range(max(j_o * 4, i_i), min(n - 1, j_o * 4 + 3) + 1):
                            x[i_i, j_i] += 1.0
                    for i_i in range(i_o * 2, min(n - 1, i_o * 2 + 1) + 1):
                        for j_i in range(max(j_o * 4, i_i), min(n - 1, j_o * 4 + 3) + 1):
                            y[i_i, j_i] = x[i_i, j_i] * 2.0
    "#]],
    );
    check(
        two,
        |s| {
            let args = args![list(&["i", "j"]), sizes(&[2, 4]); distribute = false, separate = true];
            call(s, "tile", args).map(drop)
        },
        expect![[r#"
            for i_o in range((n + 1) // 2):
                for j_o in range(i_o // 2, (n - 1) // 4 + 1):
                    if i_o * 2 + 1 <= j_o * 4 and j_o * 4 + 4 <= n:
                        for i_i in range(2):
                            for j_i in range(4):
                                x[i_o * 2 + i_i, j_o * 4 + j_i] += 1.0
                                y[i_o * 2 + i_i, j_o * 4 + j_i] = x[i_o * 2 + i_i, j_o * 4 + j_i] * 2.0
                    else:
                        for i_i in range(i_o * 2, min(n - 1, i_o * 2 + 1) + 1):
                            for j_i in range(max(j_o * 4, i_i), min(n - 1, j_o * 4 + 3) + 1):
                                x[i_i, j_i] += 1.0
                                y[i_i, j_i] = x[i_i, j_i] * 2.0
        "#]],
    );
}

#[test]
fn loops_that_are_not_tiled_stay() {
    // A loop of the nest between the tiled ones, and one that is not affine.
    separated(
        "
def f(x: inout[f32[n, n]], y: f32[n, n], d: i32[n]):
    for i in range(n):
        for k in range(i):
            for j in range(k, n):
                for l in range(d[j]):
                    x[i, j] += y[k, l]
",
        &["i", "j"],
        &[4, 2],
        expect![[r#"
            for i_o in range((n - 1) // 4 + 1):
                for j_o in range((n + 1) // 2):
                    if i_o * 4 + 4 <= n and j_o * 2 + 2 <= n:
                        for i_i in range(max(1, i_o * 4), i_o * 4 + 4):
                            for k_i in range(min(j_o * 2 + 1, i_i - 1) + 1):
                                for j_i in range(max(j_o * 2, k_i), j_o * 2 + 2):
                                    for l in range(cast(d[j_i], i64)):
                                        x[i_i, j_i] += y[k_i, l]
                    else:
                        for i_i in range(max(1, i_o * 4), min(n - 1, i_o * 4 + 3) + 1):
                            for k_i in range(min(j_o * 2 + 1, i_i - 1) + 1):
                                for j_i in range(max(j_o * 2, k_i), min(n - 1, j_o * 2 + 1) + 1):
                                    for l in range(cast(d[j_i], i64)):
                                        x[i_i, j_i] += y[k_i, l]
        "#]],
    );
    // One dimension has no full tile.
    separated(
        "
def f(x: inout[f32[n, 5]]):
    for i in range(n):
        for j in range(5):
            x[i, j] = x[i, j] * 2
",
        &["i", "j"],
        &[4, 8],
        expect![[r#"
            for i_o in range((n - 1) // 4 + 1):
                if i_o * 4 + 4 <= n:
                    for i_i in range(4):
                        for j_i in range(5):
                            x[i_o * 4 + i_i, j_i] *= 2.0
                else:
                    for i_i in range(i_o * 4, min(n - 1, i_o * 4 + 3) + 1):
                        for j_i in range(5):
                            x[i_i, j_i] *= 2.0
        "#]],
    );
}

#[test]
fn handles_of_duplicated_loops_are_refused() {
    refused(
        TRIANGLE,
        |s| {
            let old = call(s, "loops", args![])?;
            call(s, "tile", args![list(&["i", "k", "j"]), sizes(&[4, 4, 4]); separate = true])?;
            call(s, "vectorize", args![old[2].clone()]).map(drop)
        },
        expect![[r#"
            schedule::target (0): step 1 (`tile`) replaced the statement of this handle by 2 statements
              help: use one of the statements that `tile` returned
        "#]],
    );
}

#[test]
fn refuses() {
    let refuse = |text: &str, loops: &[&str], by: &[i64], expected: Expect| {
        let r = refused(text, |s| call(s, "tile", args![list(loops), sizes(by); separate = true]).map(drop), expected);
        assert_eq!(r.condition, 7);
        // Without `separate` the step is legal.
        let (func, _) = entry(text);
        assert!(matches!(Schedule::new(func).can("tile", args![list(loops), sizes(by)]), Ok(true)));
    };
    // All tiles are full.
    refuse(
        "
def f(x: inout[f32[8 * n, 12]]):
    for i in range(8 * n):
        for j in range(12):
            x[i, j] = 0
",
        &["i", "j"],
        &[4, 6],
        expect![[r#"
            schedule::illegal (7): full tiles are not proved to have simpler bounds or conditions than partial tiles
              `for i in range(8 * n):` the nest
              help: leave `separate` out: there is nothing to gain
        "#]],
    );
    // No tile is full.
    refuse(
        "
def f(x: inout[f32[5, 7]]):
    for i in range(5):
        for j in range(7):
            x[i, j] = 0
",
        &["i", "j"],
        &[8, 8],
        expect![[r#"
            schedule::illegal (7): full tiles are not proved to have simpler bounds or conditions than partial tiles
              `for i in range(5):` the nest
              help: leave `separate` out: there is nothing to gain
        "#]],
    );
    // Tiles of one iteration.
    refuse(
        "
def f(x: inout[f32[n, n]]):
    for i in range(n):
        for j in range(i, n):
            x[i, j] = 0
",
        &["i", "j"],
        &[1, 1],
        expect![[r#"
            schedule::illegal (7): full tiles are not proved to have simpler bounds or conditions than partial tiles
              `for i in range(n):` the nest
              help: leave `separate` out: there is nothing to gain
        "#]],
    );
}
