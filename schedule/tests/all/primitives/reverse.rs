use crate::args;
use crate::primitives::common::{call, check, refused};
use expect_test::expect;

#[test]
fn runs_backwards() {
    check(
        "
def f(x: inout[f32[n]], y: inout[f32[1]], k: i32[n]):
    for i in range(n):
        x[i] = x[i] * 2
        y[0] += x[i]
",
        |s| call(s, "reverse", args!["i"]).map(drop),
        expect![[r#"
            for i in range(n - 1, -1, -1):
                x[i] *= 2.0
                y[0] += x[i]
        "#]],
    );
    check(
        "
def f(x: inout[f32[n]]):
    for i in range(n - 1, 1, -3):
        x[i] = x[i - 1] + i
    for j in range(2, n, 5):
        x[j] = x[j] * 2
",
        |s| {
            call(s, "reverse", args!["i"])?;
            call(s, "reverse", args!["j"])?;
            call(s, "reverse", args!["j"]).map(drop)
        },
        expect![[r#"
            for i in range(n - n // 3 * 3 + 2, n + 2, 3):
                x[i] = x[i - 1] + cast(i, f32)
            for j in range(2, (n + 2) // 5 * 5 + 2, 5):
                x[j] *= 2.0
        "#]],
    );
}

#[test]
fn refuses() {
    refused(
        "
def f(x: inout[f32[n]]):
    for i in range(1, n):
        x[i] = x[i - 1] * 2
",
        |s| call(s, "reverse", args!["i"]).map(drop),
        expect![[r#"
            schedule::dependence (2): the loop `i` has a loop-carried dependence
              `x[i] = x[i - 1] * 2` writes `x[i]` at i = 1, then reads `x[i - 1]` at i = 2
              note: flow dependence (RAW), carried by the loop `i`
              note: the element is x[1] with n = 3
        "#]],
    );
    refused(
        "
def f(x: inout[f32[n]], k: i32[n]):
    for i in range(n):
        x[k[i]] = i
",
        |s| call(s, "reverse", args!["i"]).map(drop),
        expect![[r#"
            schedule::dependence (2): the loop `i` has a loop-carried dependence
              `x[k[i]] = i` writes `x[k[i]]` at i = 0, then writes `x[k[i]]` at i = 1
              note: output dependence (WAW), carried by the loop `i`
              note: the element is x[0] with n = 2, if `k[0]` is 0 and `k[1]` is 0
        "#]],
    );
    refused(
        "
def f(x: inout[f32[n]], k: i32):
    for i in range(0, n, k + 1):
        x[i] = 2
",
        |s| call(s, "reverse", args!["i"]).map(drop),
        expect![[r#"
            schedule::illegal (1): the step of `i` is not a constant
              `for i in range(0, n, k + 1):` this loop
        "#]],
    );
}
