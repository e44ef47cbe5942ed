use crate::args;
use crate::primitives::common::{call, check, list, refused};
use expect_test::{Expect, expect};
use taffeta_schedule::Value;

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

#[test]
fn tiles_loops_around_statements() {
    // Statements beside the inner loop, which surely runs; a local of one iteration; a branch; a reduction.
    tiled(
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
                for i_i in range(i_o * 4, min(n - 1, i_o * 4 + 3) + 1):
                    y[i_i] = 0.0
                for j_o in range(2):
                    for i_i in range(i_o * 4, min(n - 1, i_o * 4 + 3) + 1):
                        for j_i in range(j_o * 2, min(2, j_o * 2 + 1) + 1):
                            t = empty((), f32)
                            t = y[i_i] * 2.0
                            if i_i + j_i < 6:
                                y[i_i] = t + cast(j_i, f32)
        "#]],
    );
    tiled(
        "
def f(a: f32[n, m], b: f32[m, n], c: inout[f32[n, n]]):
    for i in range(n):
        for j in range(n):
            for k in range(m):
                c[i, j] += a[i, k] * b[k, j]
",
        &["i", "j", "k"],
        &[4, 4, 3],
        expect![[r#"
            for i_o in range((n - 1) // 4 + 1):
                for j_o in range((n - 1) // 4 + 1):
                    for k_o in range((m - 1) // 3 + 1):
                        for i_i in range(i_o * 4, min(n - 1, i_o * 4 + 3) + 1):
                            for j_i in range(j_o * 4, min(n - 1, j_o * 4 + 3) + 1):
                                for k_i in range(k_o * 3, min(m - 1, k_o * 3 + 2) + 1):
                                    c[i_i, j_i] += a[i_i, k_i] * b[k_i, j_i]
        "#]],
    );
    // One loop; an inner loop that is not affine stays whole.
    tiled(
        "
def f(x: inout[f32[n]], k: i32[n]):
    for i in range(n):
        for j in range(k[i]):
            x[i] += j
",
        &["i"],
        &[4],
        expect![[r#"
            for i_o in range((n - 1) // 4 + 1):
                for i_i in range(i_o * 4, min(n - 1, i_o * 4 + 3) + 1):
                    for j in range(cast(k[i_i], i64)):
                        x[i_i] += cast(j, f32)
        "#]],
    );
    // Statements in one body are distributed if that is legal, unless `distribute` is false.
    let two = "
def f(x: inout[f32[n, n]], y: inout[f32[n, n]]):
    for i in range(n):
        for j in range(n):
            x[i, j] = x[i, j] + 1
            y[i, j] = x[i, j] * 2
";
    tiled(
        two,
        &["i", "j"],
        &[2, 4],
        expect![[r#"
        for i_o in range((n + 1) // 2):
            for j_o in range((n - 1) // 4 + 1):
                for i_i in range(i_o * 2, min(n - 1, i_o * 2 + 1) + 1):
                    for j_i in range(j_o * 4, min(n - 1, j_o * 4 + 3) + 1):
                        x[i_i, j_i] += 1.0
                for i_i in range(i_o * 2, min(n - 1, i_o * 2 + 1) + 1):
                    for j_i in range(j_o * 4, min(n - 1, j_o * 4 + 3) + 1):
                        y[i_i, j_i] = x[i_i, j_i] * 2.0
    "#]],
    );
    check(
        two,
        |s| call(s, "tile", args![list(&["i", "j"]), sizes(&[2, 4]); distribute = false]).map(drop),
        expect![[r#"
            for i_o in range((n + 1) // 2):
                for j_o in range((n - 1) // 4 + 1):
                    for i_i in range(i_o * 2, min(n - 1, i_o * 2 + 1) + 1):
                        for j_i in range(j_o * 4, min(n - 1, j_o * 4 + 3) + 1):
                            x[i_i, j_i] += 1.0
                            y[i_i, j_i] = x[i_i, j_i] * 2.0
        "#]],
    );
    // Here the second statement must precede the first one of the next row.
    tiled(
        "
def f(x: inout[f32[n, n]], y: inout[f32[n, n]]):
    for i in range(1, n):
        for j in range(n):
            x[i, j] = y[i - 1, j] + 1
            y[i, j] = x[i, j] * 2
",
        &["i", "j"],
        &[2, 4],
        expect![[r#"
            for i_o in range((n + 1) // 2):
                for j_o in range((n - 1) // 4 + 1):
                    for i_i in range(max(1, i_o * 2), min(n - 1, i_o * 2 + 1) + 1):
                        for j_i in range(j_o * 4, min(n - 1, j_o * 4 + 3) + 1):
                            x[i_i, j_i] = y[i_i - 1, j_i] + 1.0
                        for j_i in range(j_o * 4, min(n - 1, j_o * 4 + 3) + 1):
                            y[i_i, j_i] = x[i_i, j_i] * 2.0
        "#]],
    );
}

#[test]
fn handles_stay_valid() {
    check(
        "
def f(x: inout[f32[n, n]]):
    for i in range(n):
        for j in range(n):
            x[i, j] = x[i, j] * 2 + i
",
        |s| {
            let old = call(s, "loops", args![])?;
            let new = call(s, "tile", args![list(&["i", "j"]), sizes(&[8, 8])])?;
            assert_eq!(new.len(), 4);
            call(s, "vectorize", args![old[1].clone()])?;
            call(s, "parallelize", args![new[0].clone()]).map(drop)
        },
        expect![[r#"
            for i_o in range((n - 1) // 8 + 1):  # parallel
                for j_o in range((n - 1) // 8 + 1):
                    for i_i in range(i_o * 8, min(n - 1, i_o * 8 + 7) + 1):
                        for j_i in range(j_o * 8, min(n - 1, j_o * 8 + 7) + 1):  # vectorize
                            x[i_i, j_i] = x[i_i, j_i] * 2.0 + cast(i_i, f32)
        "#]],
    );
}

#[test]
fn refuses() {
    let plain = "
def f(x: inout[f32[n, m]]):
    for i in range(n):
        for j in range(m):
            x[i, j] = 0
";
    let refuse = |text: &str, loops: &[&str], by: &[i64], expected: Expect| {
        refused(text, |s| call(s, "tile", args![list(loops), sizes(by)]).map(drop), expected);
    };
    // 1.
    refuse(
        plain,
        &["i", "j"],
        &[4],
        expect![[r#"
        schedule::illegal (1): expected one size for each loop, found 2 loops and 1 sizes
    "#]],
    );
    refuse(
        plain,
        &["i", "j"],
        &[4, 0],
        expect![[r#"
        schedule::illegal (1): expected an integer of at least 1 as a size, found the integer 0
    "#]],
    );
    refuse(
        plain,
        &["i", "i"],
        &[4, 4],
        expect![[r#"
        schedule::illegal (1): the loop `i` is given twice
    "#]],
    );
    refused(
        plain,
        |s| call(s, "tile", args![list(&["i"]), sizes(&[4]); wavefront = true]).map(drop),
        expect![[r#"
            schedule::illegal (1): expected at least two loops for a wavefront, found one
              `for i in range(n):` this loop
        "#]],
    );
    // 2.
    refuse(
        "
def f(x: inout[f32[n, m]], y: inout[f32[n]]):
    for i in range(n):
        y[i] = 0
        for j in range(m):
            x[i, j] = 0
",
        &["i", "j"],
        &[4, 4],
        expect![[r#"
            schedule::illegal (2): the nest is not perfect, and `j` may not run at all
              `y[i] = 0` stands beside the loop `j`
              help: split the nest there first: `s.fission(…)`, or move the statement out of the loop `j`
        "#]],
    );
    // 3.
    refuse(
        "
def f(x: inout[f32[n, m]], k: i32[n]):
    for i in range(n):
        for j in range(k[i]):
            x[i, j] = 0
",
        &["i", "j"],
        &[4, 4],
        expect![[r#"
            schedule::illegal (3): the nest is not affine: `cast(k[i], i64)` is not affine
              `for j in range(k[i]):` this statement
        "#]],
    );
    refuse(
        "
def f(x: inout[f32[n, m]], last: i64):
    for i in range(last):
        for j in range(m):
            x[i, j] = 0
",
        &["i", "j"],
        &[4, 4],
        expect![[r#"
            schedule::illegal (3): the region is not affine: sums of `last` may overflow: it has no bounds; write, say, `assert 0 <= last and last <= 1000000` before the loops
              `for i in range(last):` this statement
        "#]],
    );
    // 4.
    refused(
        plain,
        |s| {
            call(s, "parallelize", args!["i"])?;
            call(s, "tile", args![list(&["i", "j"]), sizes(&[4, 4])]).map(drop)
        },
        expect![[r#"
            schedule::illegal (4): the loop `i` is already parallel
              `for i in range(n):` this loop
              help: take this step before `parallelize`, `vectorize`, `unroll` and `blend`
        "#]],
    );
    // 6.
    refuse(
        "
def f(x: inout[f32[n, m]]):
    for i in range(1, n):
        for j in range(m - 2):
            x[i, j] = x[i - 1, j + 2]
",
        &["i", "j"],
        &[4, 4],
        expect![[r#"
            schedule::dependence (6): it would reverse a dependence
              `x[i, j] = x[i - 1, j + 2]` writes `x[i, j]` at i = 1, j = 4, then reads `x[i - 1, j + 2]` at i = 2, j = 2
              note: flow dependence (RAW), carried by the loop `i`
              note: the element is x[1, 4] with n = 3, m = 7
              help: try `s.polyhedral(…)`, which finds loops that can be tiled
        "#]],
    );
    refuse(
        "
def f(x: inout[f32[n, n]], k: i32[n]):
    for i in range(n):
        for j in range(n):
            x[i, j] = x[k[i], k[j]] + 1
",
        &["j", "i"],
        &[4, 4],
        expect![[r#"
            schedule::dependence (6): it would reverse a dependence
              `x[i, j] = x[k[i], k[j]] + 1` reads `x[k[i], k[j]]` at i = 0, j = 4, then writes `x[i, j]` at i = 1, j = 0
              note: anti dependence (WAR), carried by the loop `i`
              note: the element is x[1, 0] with n = 5, if `k[0]` is 1 and `k[4]` is 0
              help: try `s.polyhedral(…)`, which finds loops that can be tiled
        "#]],
    );
}

/// Checks that refusals show iterators with their values in the program, and statements at their places in it.
#[test]
fn refusals_show_the_program_as_written() {
    refused(
        "
def f(s: inout[i64]):
    for i in range(5, -1, -1):
        for j in range(0, 8, 2):
            s[...] = i
",
        |s| call(s, "tile", args![list(&["j", "i"]), sizes(&[3, 2])]).map(drop),
        expect![[r#"
            schedule::dependence (6): it would reverse a dependence
              `s[...] = i` writes `s` at i = 5, j = 6, then writes `s` at i = 4, j = 0
              note: output dependence (WAW), carried by the loop `i`
              help: try `s.polyhedral(…)`, which finds loops that can be tiled
        "#]],
    );
    // The loop around the nest counts downwards, and is not among the tiled ones.
    refused(
        "
def f(s: inout[i64]):
    for i in range(5, -1, -1):
        for j in range(i, 8):
            for k in range(i, 6):
                s[...] = j
",
        |s| call(s, "tile", args![list(&["j", "k"]), sizes(&[2, 2])]).map(drop),
        expect![[r#"
            schedule::dependence (6): it would reverse a dependence
              `s[...] = j` writes `s` at i = 0, j = 0, k = 2, then writes `s` at i = 0, j = 1, k = 0
              note: output dependence (WAW), carried by the loop `j`
              help: try `s.polyhedral(…)`, which finds loops that can be tiled
        "#]],
    );
    refused(
        "
def f(x: inout[f32[n]], y: inout[f32[n, n]]):
    for i in range(n):
        for k in range(n):
            y[i, 0] = x[k]
        for q in range(3):
            x[q] += 1
",
        |s| call(s, "tile", args![list(&["i", "q"]), sizes(&[3, 2])]).map(drop),
        expect![[r#"
            schedule::dependence (6): it would reverse a dependence
              `x[q] += 1` first updates `x[q]` at i = 0, q = 2
              `y[i, 0] = x[k]` then reads `x[k]` at i = 1, k = 2
              note: flow dependence (RAW), carried by the loop `i`
              note: the element is x[2] with n = 3
              help: try `s.polyhedral(…)`, which finds loops that can be tiled
        "#]],
    );
}
