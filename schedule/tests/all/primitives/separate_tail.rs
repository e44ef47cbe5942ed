use crate::args;
use crate::primitives::common::{call, check, list, refused};
use expect_test::{Expect, expect};

fn separated(text: &str, expected: Expect) {
    check(text, |s| call(s, "separate_tail", args!["i"]).map(drop), expected);
}

fn not_separated(text: &str, expected: Expect) {
    refused(text, |s| call(s, "separate_tail", args!["i"]).map(drop), expected);
}

#[test]
fn removes_tails_that_never_run() {
    check(
        "
def f(x: inout[f32[n]]):
    for i in range(n):
        x[i] = x[i] * 2
",
        |s| {
            let two = call(s, "split", args!["i", 4])?;
            assert_eq!(call(s, "separate_tail", args![two[1].clone()])?.len(), 1);
            Ok(())
        },
        expect![[r#"
            for i_o in range((n + 3) // 4):
                for i_i in range(min(n - i_o * 4, 4)):
                    x[i_o * 4 + i_i] *= 2.0
        "#]],
    );
}

#[test]
fn after_splits() {
    check(
        "
def f(x: inout[f32[n]]):
    for i in range(n):
        x[i] = x[i] * 2
",
        |s| {
            let two = call(s, "split", args!["i", 4])?;
            let parts = call(s, "separate_tail", args![two[0].clone()])?;
            assert_eq!(parts.len(), 2);
            // The old handle refers to the main part.
            call(s, "unroll", args![two[1].clone()]).map(drop)
        },
        expect![[r#"
            for i_o in range(n // 4):
                x[i_o * 4] *= 2.0
                x[i_o * 4 + 1] *= 2.0
                x[i_o * 4 + 2] *= 2.0
                x[i_o * 4 + 3] *= 2.0
            for i_o in range(n // 4, (n + 3) // 4):
                for i_i in range(4):
                    if i_o * 4 + i_i < n:
                        x[i_o * 4 + i_i] *= 2.0
        "#]],
    );
    check(
        "
def f(x: inout[f32[n, m]]):
    for i in range(n):
        for j in range(m):
            x[i, j] = x[i, j] * 2
",
        |s| {
            let i = call(s, "split", args!["i", 4])?;
            let j = call(s, "split", args!["j"; factor = 8, shift = 3])?;
            let order = vec![i[0].clone(), j[0].clone(), i[1].clone(), j[1].clone()];
            call(s, "reorder", args![taffeta_schedule::Value::List(order)])?;
            call(s, "separate_tail", args![j[0].clone()])?;
            call(s, "separate_tail", args![i[0].clone()]).map(drop)
        },
        expect![[r#"
            for i_o in range(n // 4):
                for j_o in range(1):
                    for i_i in range(4):
                        for j_i in range(8):
                            if 0 <= j_o * 8 + j_i - 3:
                                if j_o * 8 + j_i - 3 < m:
                                    x[i_o * 4 + i_i, j_o * 8 + j_i - 3] *= 2.0
                for j_o in range(1, (m + 3) // 8):
                    for i_i in range(4):
                        for j_i in range(8):
                            x[i_o * 4 + i_i, j_o * 8 + j_i - 3] *= 2.0
                for j_o in range(max((m + 3) // 8, 1), (m + 10) // 8):
                    for i_i in range(4):
                        for j_i in range(8):
                            if j_o * 8 + j_i - 3 < m:
                                x[i_o * 4 + i_i, j_o * 8 + j_i - 3] *= 2.0
            for i_o in range(n // 4, (n + 3) // 4):
                for j_o in range(1):
                    for i_i in range(4):
                        for j_i in range(8):
                            if i_o * 4 + i_i < n:
                                if 0 <= j_o * 8 + j_i - 3:
                                    if j_o * 8 + j_i - 3 < m:
                                        x[i_o * 4 + i_i, j_o * 8 + j_i - 3] *= 2.0
                for j_o in range(1, (m + 3) // 8):
                    for i_i in range(4):
                        for j_i in range(8):
                            if i_o * 4 + i_i < n:
                                x[i_o * 4 + i_i, j_o * 8 + j_i - 3] *= 2.0
                for j_o in range(max((m + 3) // 8, 1), (m + 10) // 8):
                    for i_i in range(4):
                        for j_i in range(8):
                            if i_o * 4 + i_i < n:
                                if j_o * 8 + j_i - 3 < m:
                                    x[i_o * 4 + i_i, j_o * 8 + j_i - 3] *= 2.0
        "#]],
    );
}

#[test]
fn conditions() {
    // A padded convolution: a head, a main part, a tail.
    separated(
        "
def f(x: f32[n], w: f32[5], y: inout[f32[n]]):
    for i in range(n):
        for k in range(5):
            if i + k >= 2 and i + k - 2 < n:
                y[i] += x[i + k - 2] * w[k]
",
        expect![[r#"
            for i in range(min(2, n)):
                for k in range(5):
                    if i + k >= 2 and i + k - 2 < n:
                        y[i] += x[i + k - 2] * w[k]
            for i in range(2, n - 2):
                for k in range(5):
                    y[i] += x[i + k - 2] * w[k]
            for i in range(max(n - 2, 2), n):
                for k in range(5):
                    if i + k - 2 < n:
                        y[i] += x[i + k - 2] * w[k]
        "#]],
    );
    // A condition that fails in one part, with an `else`, and a range that may be empty.
    separated(
        "
def f(x: inout[f32[n]], y: f32[m]):
    for i in range(2, n):
        if i < m:
            x[i] = y[i]
        else:
            x[i] = 3
",
        expect![[r#"
            for i in range(2, min(m, n)):
                x[i] = y[i]
            for i in range(max(min(m, n), 2), n):
                if i < m:
                    x[i] = y[i]
                else:
                    x[i] = 3.0
        "#]],
    );
    // Bounds of a loop inside.
    separated(
        "
def f(x: inout[f32[n, n]]):
    for i in range(n):
        for j in range(max(0, i - 2), min(n, i + 3)):
            x[i, j] = x[i, j] + 1
",
        expect![[r#"
            for i in range(min(2, n)):
                for j in range(min(n, i + 3)):
                    x[i, j] += 1.0
            for i in range(2, n - 2):
                for j in range(i - 2, i + 3):
                    x[i, j] += 1.0
            for i in range(max(n - 2, 2), n):
                for j in range(i - 2, n):
                    x[i, j] += 1.0
        "#]],
    );
    // A skewed nest whose two bounds never change with the loop at once: the middle part has constant bounds.
    separated(
        "
def f(x: inout[f32[n, 16]]):
    for i in range(19):
        for j in range(max(0, i - 15), min(4, i + 1)):
            if j < n:
                x[j, i - j] = x[j, i - j] + 1
",
        expect![[r#"
            for i in range(3):
                for j in range(i + 1):
                    if j < n:
                        x[j, i - j] += 1.0
            for i in range(3, 16):
                for j in range(4):
                    if j < n:
                        x[j, i - j] += 1.0
            for i in range(16, 19):
                for j in range(i - 15, 4):
                    if j < n:
                        x[j, i - j] += 1.0
        "#]],
    );
    // The first and the last iteration, from a nest that was made perfect.
    check(
        "
def f(x: inout[f32[n, 8]], y: inout[f32[n]]):
    for k in range(n):
        y[k] = 0
        for i in range(8):
            y[k] += x[k, i]
        x[k, 0] = y[k]
",
        |s| {
            call(s, "reorder", args![list(&["i", "k"])])?;
            call(s, "separate_tail", args!["i"]).map(drop)
        },
        expect![[r#"
            for i in range(1):
                for k in range(n):
                    y[k] = 0.0
                    y[k] += x[k, i]
            for i in range(1, 7):
                for k in range(n):
                    y[k] += x[k, i]
            for i in range(7, 8):
                for k in range(n):
                    y[k] += x[k, i]
                    x[k, 0] = y[k]
        "#]],
    );
}

#[test]
fn refuses() {
    not_separated(
        "
def f(x: inout[f32[n]]):
    for i in range(n - 1, -1, -1):
        if i > 3:
            x[i] = 0
",
        expect![[r#"
            schedule::illegal (1): the step of `i` is not 1
              `for i in range(n - 1, -1, -1):` this loop
        "#]],
    );
    not_separated(
        "
def f(x: inout[f32[n]], k: inout[i64]):
    for i in range(min(k, n)):
        k[...] = 3
        if i > 3:
            x[i] = 0
",
        expect![[r#"
            schedule::illegal (1): the bounds of `i` change in its body
              `for i in range(min(k, n)):` this loop
        "#]],
    );
    not_separated(
        "
def f(x: inout[f32[n]], k: i32[n]):
    for i in range(n):
        if k[i] > 3 and i % 2 == 0:
            x[i] = 0
",
        expect![[r#"
            schedule::illegal (2): no condition in `i` becomes constant in a part of its range
              `for i in range(n):` this loop
        "#]],
    );
    not_separated(
        "
def f(x: inout[f32[n]]):
    for i in range(n):
        if i < 3:
            x[i] = 0
        if i > 5:
            x[i] = 1
",
        expect![[r#"
            schedule::illegal (3): the conditions in `i` do not hold together in any part of its range
              `for i in range(n):` this loop
        "#]],
    );
}

#[test]
fn conditions_that_may_fail_stay() {
    separated(
        "
def f(x: inout[f32[n]], k: i32[m]):
    for i in range(n):
        if i < m and k[i] > 0:
            x[i] = 0
",
        expect![[r#"
            for i in range(min(m, n)):
                if k[i] > 0:
                    x[i] = 0.0
            for i in range(min(m, n), n):
                if i < m and k[i] > 0:
                    x[i] = 0.0
        "#]],
    );
}
