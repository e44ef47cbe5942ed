use crate::args;
use crate::primitives::common::{call, check, refused};
use expect_test::expect;

#[test]
fn makes_one_loop() {
    check(
        "
def f(x: inout[f32[n, m]]):
    for i in range(n):
        for j in range(m):
            x[i, j] = x[i, j] * 2 + i
",
        |s| {
            let l = call(s, "merge", args!["i", "j"])?;
            call(s, "parallelize", args![l[0].clone()]).map(drop)
        },
        expect![[r#"
            for i_j in range(n * m):  # parallel
                x[i_j // m, i_j % m] = x[i_j // m, i_j % m] * 2.0 + cast(i_j // m, f32)
        "#]],
    );
    // Negative steps, a range that may be negative, statements beside the inner loop, a local in between.
    check(
        "
def f(x: inout[f32[n, m]], y: inout[f32[n]]):
    for i in range(n - 1, 2, -2):
        t = y[i]
        for j in range(3, 9, 4):
            t += x[i, j % m]
        y[i] = t
",
        |s| call(s, "merge", args!["i", "j"]).map(drop),
        expect![[r#"
            t = empty((), f32)
            for i_j in range((n - 2) // 2 * 2):
                if i_j % 2 * 4 + 3 == 3:
                    t = y[n - 1 + i_j // 2 * -2]
                t += x[n - 1 + i_j // 2 * -2, (i_j % 2 * 4 + 3) % m]
                if i_j % 2 * 4 + 3 == 7:
                    y[n - 1 + i_j // 2 * -2] = t
        "#]],
    );
    check(
        "
def f(x: inout[f32[n, m]]):
    for i in range(4, n):
        for j in range(3, m):
            x[i, j] = x[i, j - 1] * 2 + i
",
        |s| call(s, "merge", args!["i", "j"]).map(drop),
        expect![[r#"
            for i_j in range((n - 4) * max(m - 3, 0)):
                x[i_j // (m - 3) + 4, i_j % (m - 3) + 3] = x[i_j // (m - 3) + 4, i_j % (m - 3) + 2] * 2.0 + cast(i_j // (m - 3) + 4, f32)
        "#]],
    );
}

#[test]
fn handles_of_both_loops_refer_to_the_merged_loop() {
    check(
        "
def f(x: inout[f32[n, m]]):
    for i in range(n):
        for j in range(m):
            x[i, j] = x[i, j] * 2 + i
",
        |s| {
            let two = call(s, "split", args!["j", 4])?;
            call(s, "merge", args!["i", two[0].clone()])?;
            call(s, "split", args![two[0].clone(), 3]).map(drop)
        },
        expect![[r#"
            for i_j_o_o in range((n * ((m + 3) // 4) + 2) // 3):
                for i_j_o_i in range(3):
                    if i_j_o_o * 3 + i_j_o_i < n * ((m + 3) // 4):
                        for j_i in range(4):
                            if (i_j_o_o * 3 + i_j_o_i) % ((m + 3) // 4) * 4 + j_i < m:
                                x[(i_j_o_o * 3 + i_j_o_i) // ((m + 3) // 4), (i_j_o_o * 3 + i_j_o_i) % ((m + 3) // 4) * 4 + j_i] = x[(i_j_o_o * 3 + i_j_o_i) // ((m + 3) // 4), (i_j_o_o * 3 + i_j_o_i) % ((m + 3) // 4) * 4 + j_i] * 2.0 + cast((i_j_o_o * 3 + i_j_o_i) // ((m + 3) // 4), f32)
        "#]],
    );
}

#[test]
fn refuses() {
    refused(
        "
def f(x: inout[f32[n, m]]):
    for i in range(n):
        for j in range(m):
            x[i, j] = 0
",
        |s| call(s, "merge", args!["j", "i"]).map(drop),
        expect![[r#"
            schedule::illegal (1): `i` is not inside `j`
              `for i in range(n):` the inner loop
        "#]],
    );
    refused(
        "
def f(x: inout[f32[n, m, k]]):
    for i in range(n):
        for j in range(m):
            for l in range(k):
                x[i, j, l] = 0
",
        |s| call(s, "merge", args!["i", "l"]).map(drop),
        expect![[r#"
            schedule::illegal (1): another loop stands between `i` and `l`
              `for l in range(k):` the inner loop
        "#]],
    );
    refused(
        "
def f(x: inout[f32[n, m]], y: inout[f32[n]]):
    for i in range(n):
        y[i] = 0
        for j in range(m):
            x[i, j] = 0
",
        |s| call(s, "merge", args!["i", "j"]).map(drop),
        expect![[r#"
            schedule::illegal (2): the nest is not perfect, and `j` may not run at all
              `y[i] = 0` stands beside the loop `j`
              help: split the nest there first: `s.fission(…)`, or move the statement out of the loop `j`
        "#]],
    );
    refused(
        "
def f(x: inout[f32[n, m]]):
    for i in range(n):
        for j in range(m):
            x[i, j] = 0
",
        |s| {
            call(s, "parallelize", args!["i"])?;
            call(s, "merge", args!["i", "j"]).map(drop)
        },
        expect![[r#"
            schedule::illegal (3): the loop `i` is already parallel
              `for i in range(n):` this loop
              help: take this step before `parallelize`, `vectorize`, `unroll` and `blend`
        "#]],
    );
    refused(
        "
def f(x: inout[f32[n, n]]):
    for i in range(n):
        for j in range(i):
            x[i, j] = 0
",
        |s| call(s, "merge", args!["i", "j"]).map(drop),
        expect![[r#"
            schedule::illegal (4): the bounds of `j` change in the loop `i`
              `for j in range(i):` the inner loop
        "#]],
    );
    refused(
        "
def f(x: inout[f32[n]], k: inout[i64]):
    for i in range(k % 3, n):
        for j in range(4):
            k[...] = j
            x[i] = 0
",
        |s| call(s, "merge", args!["i", "j"]).map(drop),
        expect![[r#"
            schedule::illegal (4): the bounds of `i` change in its body
              `for i in range(k % 3, n):` this loop
              help: compute the bound before the loop: write `last = …`, then `range(…, last)`
        "#]],
    );
}
