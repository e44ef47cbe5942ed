use crate::args;
use crate::primitives::common::{call, check, refused};
use expect_test::expect;

const SCALE: &str = "
def f(x: inout[f32[n]]):
    for i in range(n):
        x[i] = x[i] * 2
";

#[test]
fn guards_the_tail() {
    check(
        SCALE,
        |s| call(s, "split", args!["i", 4]).map(drop),
        expect![[r#"
                for i_o in range((n + 3) // 4):
                    for i_i in range(4):
                        if i_o * 4 + i_i < n:
                            x[i_o * 4 + i_i] *= 2.0
        "#]],
    );
}

#[test]
fn splits_into_parts() {
    check(
        SCALE,
        |s| call(s, "split", args!["i"; parts = 4]).map(drop),
        expect![[r#"
                for i_o in range(4):
                    for i_i in range((n + 3) // 4):
                        if i_o * ((n + 3) // 4) + i_i < n:
                            x[i_o * ((n + 3) // 4) + i_i] *= 2.0
        "#]],
    );
}

#[test]
fn splits_with_a_shift() {
    check(
        SCALE,
        |s| call(s, "split", args!["i", 4; shift = 3]).map(drop),
        expect![[r#"
                for i_o in range((n + 6) // 4):
                    for i_i in range(4):
                        if 0 <= i_o * 4 + i_i - 3:
                            if i_o * 4 + i_i - 3 < n:
                                x[i_o * 4 + i_i - 3] *= 2.0
        "#]],
    );
}

#[test]
fn needs_no_guard_where_the_length_is_a_multiple() {
    let text = "
def f(x: inout[f32[n, 64]], y: inout[f32[m]]):
    for i in range(n):
        for j in range(64):
            x[i, j] = x[i, j] + 1
    assert m % 8 == 0
    for k in range(m):
        y[k] = 0
";
    check(
        text,
        |s| {
            call(s, "split", args!["j", 16])?;
            call(s, "split", args!["k", 8])?;
            Ok(())
        },
        expect![[r#"
                for i in range(n):
                    for j_o in range(4):
                        for j_i in range(16):
                            x[i, j_o * 16 + j_i] += 1.0
                assert m % 8 == 0
                for k_o in range((m + 7) // 8):
                    for k_i in range(8):
                        y[k_o * 8 + k_i] = 0.0
        "#]],
    );
}

#[test]
fn keeps_steps_and_handles() {
    let text = "
def f(x: inout[f32[n]]):
    for i in range(n - 1, 1, -3):
        x[i] = x[i - 1]
";
    check(
        text,
        |s| {
            let made = call(s, "split", args!["i", 2])?;
            // Both handles are valid in the next step.
            call(s, "split", args![made[0].clone(), 2])?;
            call(s, "split", args![made[1].clone(), 2])?;
            Ok(())
        },
        expect![[r#"
                for i_o_o in range(((n // 3 + 1) // 2 + 1) // 2):
                    for i_o_i in range(2):
                        if i_o_o * 2 + i_o_i < (n // 3 + 1) // 2:
                            for i_i_o in range(1):
                                for i_i_i in range(2):
                                    if (i_o_o * 2 + i_o_i) * 2 + (i_i_o * 2 + i_i_i) < n // 3:
                                        x[n - 1 + ((i_o_o * 2 + i_o_i) * 2 + (i_i_o * 2 + i_i_i)) * -3] = x[n - 1 + ((i_o_o * 2 + i_o_i) * 2 + (i_i_o * 2 + i_i_i)) * -3 - 1]
        "#]],
    );
}

#[test]
fn refuses() {
    let steps = "
def f(x: inout[f32[n]], k: i64):
    for i in range(0, n, k):
        x[i] = 1
";
    refused(
        steps,
        |s| call(s, "split", args!["i", 4]).map(drop),
        expect![[r#"
            schedule::illegal (1): the step of `i` is not a constant
              `for i in range(0, n, k):` this loop
        "#]],
    );
    refused(
        SCALE,
        |s| {
            call(s, "parallelize", args!["i"])?;
            call(s, "split", args!["i", 4]).map(drop)
        },
        expect![[r#"
            schedule::illegal (2): the loop `i` is already parallel
              `for i in range(n):` this loop
              help: take this step before `parallelize`, `vectorize`, `unroll` and `blend`
        "#]],
    );
    refused(
        SCALE,
        |s| call(s, "split", args!["i"]).map(drop),
        expect![[r#"
        schedule::argument (0): neither `factor` nor `parts` is given
    "#]],
    );
    refused(
        SCALE,
        |s| call(s, "split", args!["i", 0]).map(drop),
        expect![[r#"
        schedule::argument (0): expected at least 1 for `factor`, found 0
    "#]],
    );
    refused(
        SCALE,
        |s| call(s, "split", args!["k", 4]).map(drop),
        expect![[r#"
        schedule::target (0): there is no loop `k`
          help: choose one of i
    "#]],
    );
    refused(
        SCALE,
        |s| call(s, "split", args!["i", 4; part = 3]).map(drop),
        expect![[r#"
        schedule::argument (0): there is no parameter `part`
          help: write `outer, inner = s.split(L, factor)`
    "#]],
    );
    refused(
        SCALE,
        |s| call(s, "spilt", args!["i", 4]).map(drop),
        expect![[r#"
        schedule::argument (0): a schedule has no method `spilt`
          help: did you mean `split`?
    "#]],
    );
}
