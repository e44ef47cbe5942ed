use crate::args;
use crate::primitives::common::{call, check, refused};
use expect_test::expect;

#[test]
fn copies_the_body() {
    check(
        "
def f(x: inout[f32[n, 3]]):
    for i in range(n):
        for j in range(2, -1, -1):
            t = x[i, j] * 2
            label(\"A\")
            x[i, j] = t + j
",
        |s| {
            let made = call(s, "unroll", args!["j"])?;
            assert_eq!(made.len(), 3);
            Ok(())
        },
        expect![[r#"
            for i in range(n):
                t = empty((), f32)
                t = x[i, 2] * 2.0
                label("A")
                x[i, 2] = t + 2.0
                del t
                t = empty((), f32)
                t = x[i, 1] * 2.0
                x[i, 1] = t + 1.0
                del t
                t = empty((), f32)
                t = x[i, 0] * 2.0
                x[i, 0] = t + 0.0
        "#]],
    );
    // One loop of length one, and an empty one.
    check(
        "
def f(x: inout[f32[n]]):
    for i in range(n):
        for j in range(i, i + 1):
            x[j] = x[j] * 2
        for k in range(3, 3):
            x[k] = 0
",
        |s| {
            call(s, "unroll", args!["j"])?;
            call(s, "unroll", args!["k"]).map(drop)
        },
        expect![[r#"
            for i in range(n):
                x[i] *= 2.0
        "#]],
    );
}

#[test]
fn unrolls_by_a_factor() {
    check(
        "
def f(x: inout[f32[n]]):
    for i in range(1, n, 3):
        x[i] = x[i] + x[i - 1]
",
        |s| {
            let outer = call(s, "unroll", args!["i"; factor = 2])?;
            call(s, "split", args![outer[0].clone(), 2]).map(drop)
        },
        expect![[r#"
            for i_o_o in range((((n + 1) // 3 + 1) // 2 + 1) // 2):
                for i_o_i in range(2):
                    if i_o_o * 2 + i_o_i < ((n + 1) // 3 + 1) // 2:
                        if (i_o_o * 2 + i_o_i) * 2 < (n + 1) // 3:
                            x[(i_o_o * 2 + i_o_i) * 2 * 3 + 1] += x[(i_o_o * 2 + i_o_i) * 2 * 3]
                        if (i_o_o * 2 + i_o_i) * 2 + 1 < (n + 1) // 3:
                            x[((i_o_o * 2 + i_o_i) * 2 + 1) * 3 + 1] += x[((i_o_o * 2 + i_o_i) * 2 + 1) * 3]
        "#]],
    );
    check(
        "
def f(x: inout[f32[n]]):
    for i in range(4 * n):
        x[i // 4] += i
",
        |s| call(s, "unroll", args!["i"; factor = 4]).map(drop),
        expect![[r#"
            for i_o in range((n * 4 + 3) // 4):
                x[i_o * 4 // 4] += cast(i_o * 4, f32)
                x[(i_o * 4 + 1) // 4] += cast(i_o * 4 + 1, f32)
                x[(i_o * 4 + 2) // 4] += cast(i_o * 4 + 2, f32)
                x[(i_o * 4 + 3) // 4] += cast(i_o * 4 + 3, f32)
        "#]],
    );
}

#[test]
fn refuses() {
    refused(
        "
def f(x: inout[f32[n]]):
    for i in range(n):
        x[i] = 0
",
        |s| call(s, "unroll", args!["i"]).map(drop),
        expect![[r#"
            schedule::illegal (1): the length of `i` is not a constant
              `for i in range(n):` this loop
              help: give a factor, or split the loop and unroll the inner one
        "#]],
    );
    refused(
        "
def f(x: inout[f32[n]]):
    for i in range(100):
        x[i % n] = 0
",
        |s| call(s, "unroll", args!["i"]).map(drop),
        expect![[r#"
            schedule::illegal (1): the length of `i` is 100, which is more than 64
              `for i in range(100):` this loop
              help: give a factor, or split the loop and unroll the inner one
        "#]],
    );
    refused(
        "
def f(x: inout[f32[n]]):
    for i in range(4):
        x[i % n] = 0
",
        |s| call(s, "unroll", args!["i"; factor = 65]).map(drop),
        expect![[r#"
            schedule::illegal (1): cannot unroll `i` by 65: the factor is too large, or the step of the loop is not a constant
              `for i in range(4):` this loop
        "#]],
    );
    refused(
        "
def f(x: inout[f32[n, 4]]):
    for i in range(4):
        for j in range(n):
            x[j, i] = 0
",
        |s| {
            call(s, "parallelize", args!["i"])?;
            call(s, "unroll", args!["i"; factor = 2]).map(drop)
        },
        expect![[r#"
            schedule::illegal (2): the loop `i` is already parallel
              `for i in range(4):` this loop
              help: take this step before `parallelize`, `vectorize`, `unroll` and `blend`
        "#]],
    );
    refused(
        "
def f(x: inout[f32[n]], k: inout[i32]):
    for i in range(k % 8, k % 8 + 2):
        k[...] = i % 5
        x[i % n] = 0
",
        |s| call(s, "unroll", args!["i"]).map(drop),
        expect![[r#"
            schedule::illegal (3): the begin of `i` changes in its body
              `for i in range(k % 8, k % 8 + 2):` this loop
        "#]],
    );
}
