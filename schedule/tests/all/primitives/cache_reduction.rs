use crate::args;
use crate::primitives::common::{call, check, refused};
use expect_test::{Expect, expect};

fn taken(text: &str, stmt: &str, tensor: &str, expected: Expect) {
    check(text, |s| call(s, "cache_reduction", args![stmt, tensor]).map(drop), expected);
}

fn not_taken(text: &str, stmt: &str, tensor: &str, expected: Expect) {
    refused(text, |s| call(s, "cache_reduction", args![stmt, tensor]).map(drop), expected);
}

#[test]
fn sums_into_a_window() {
    taken(
        "
def f(a: inout[f32[n + m]], w: f32[n, m]):
    for i in range(n):
        for j in range(m):
            a[i + j] += w[i, j]
",
        "j",
        "a",
        expect![[r#"
            for i in range(n):
                a_partial = empty((m,), f32)
                for a.partial.d0 in range(m):
                    a_partial[a.partial.d0] = 0.0
                for j in range(m):
                    a_partial[j] += w[i, j]
                for a.partial.back.d0 in range(m):
                    a[i + a.partial.back.d0] += a_partial[a.partial.back.d0]
        "#]],
    );
}

#[test]
fn every_operator_starts_from_its_identity() {
    let text = "
def f(a: inout[f32], b: inout[i32], c: inout[bool], d: inout[i64], x: f32[n], k: i32[n]):
    for i in range(n):
        a[...] = min(a, x[i])
        b[...] = max(b, k[i])
        c |= k[i] > 1
        d &= k[i]
";
    taken(
        text,
        "i",
        "a",
        expect![[r#"
        a_partial = empty((), f32)
        a_partial = inf
        for i in range(n):
            a_partial = min(a_partial, x[i])
            b[...] = max(b, k[i])
            c |= k[i] > 1
            d &= cast(k[i], i64)
        a[...] = min(a, a_partial)
    "#]],
    );
    check(
        text,
        |s| {
            for tensor in ["b", "c", "d"] {
                call(s, "cache_reduction", args!["i", tensor])?;
            }
            Ok(())
        },
        expect![[r#"
            b_partial = empty((), i32)
            b_partial = -2147483648
            c_partial = empty((), bool)
            c_partial = False
            d_partial = empty((), i64)
            d_partial = -1
            for i in range(n):
                a[...] = min(a, x[i])
                b_partial = max(b_partial, k[i])
                c_partial |= k[i] > 1
                d_partial &= cast(k[i], i64)
            d &= d_partial
            del d_partial
            c |= c_partial
            del c_partial
            b[...] = max(b, b_partial)
        "#]],
    );
}

#[test]
fn scatters_need_the_whole_dimension() {
    taken(
        "
def f(x: f32[m], k: i32[m]) -> f32[n + 1]:
    y = zeros((n + 1,), f32)
    for i in range(m):
        y[k[i]] += x[i]
    return y
",
        "i",
        "y",
        expect![[r#"
            y = empty((n + 1,), f32)
            for y.d0 in range(n + 1):
                y[y.d0] = 0.0
            y_partial = empty((n + 1,), f32)
            for y.partial.d0 in range(n + 1):
                y_partial[y.partial.d0] = 0.0
            for i in range(m):
                y_partial[cast(k[i], i64)] += x[i]
            for y.partial.back.d0 in range(n + 1):
                y[y.partial.back.d0] += y_partial[y.partial.back.d0]
            return y
        "#]],
    );
}

#[test]
fn makes_a_loop_parallel() {
    check(
        "
def f(x: f32[n, m]) -> f32[m]:
    y = zeros((m,), f32)
    for i in range(n):
        for j in range(m):
            y[j] += x[i, j]
    return y
",
        |s| {
            let i = call(s, "split", args!["i", 4])?;
            call(s, "cache_reduction", args![i[1].clone(), "y"]).map(drop)
        },
        expect![[r#"
            y = empty((m,), f32)
            for y.d0 in range(m):
                y[y.d0] = 0.0
            for i_o in range((n + 3) // 4):
                y_partial = empty((m,), f32)
                for y.partial.d0 in range(m):
                    y_partial[y.partial.d0] = 0.0
                for i_i in range(4):
                    if i_o * 4 + i_i < n:
                        for j in range(m):
                            y_partial[j] += x[i_o * 4 + i_i, j]
                for y.partial.back.d0 in range(m):
                    y[y.partial.back.d0] += y_partial[y.partial.back.d0]
            return y
        "#]],
    );
}

#[test]
fn refuses_other_uses() {
    not_taken(
        "
def f(a: inout[f32[n]], x: f32[n]):
    for i in range(n):
        a[i] += x[i]
        a[i] = max(a[i], 0)
",
        "i",
        "a",
        expect![[r#"
            schedule::illegal (2): `a` is reduced into by another operator in the statement
              `a[i] = max(a[i], 0)` here
              help: use `cache`, which is legal here
        "#]],
    );
    not_taken(
        "
def f(a: inout[f32[n]], x: f32[n]):
    for i in range(1, n):
        a[i] += a[i - 1]
",
        "i",
        "a",
        expect![[r#"
            schedule::illegal (2): `a` is read in the statement
              `a[i] += a[i - 1]` here
              help: use `cache`, which is legal here
        "#]],
    );
    not_taken(
        "
def f(a: inout[f32[n]], x: f32[n]):
    for i in range(n):
        a[i] = 0
        a[i] += x[i]
",
        "i",
        "a",
        expect![[r#"
            schedule::illegal (2): `a` is overwritten in the statement
              `a[i] = 0` here
              help: use `cache`, which is legal here
        "#]],
    );
    not_taken(
        "
def f(a: inout[f32[n]], x: f32[n]):
    for i in range(n):
        a[i] += x[i]
",
        "i",
        "x",
        expect![[r#"
            schedule::illegal (2): `x` is read in the statement
              `a[i] += x[i]` here
              help: use `cache`, which is legal here
        "#]],
    );
}

#[test]
fn refuses_to_reduce_into_unwritten_elements() {
    not_taken(
        "
def f(x: f32[n]) -> f32[n]:
    y = empty((n,), f32)
    for i in range(1, n):
        if x[i] > 0:
            y[i] += x[i]
    return y
",
        "i",
        "y",
        expect![[r#"
            schedule::illegal (3): elements of `y` that may be unwritten would be reduced into
              `for i in range(1, n):` this statement
              help: write all of `y` before the statement (`zeros` does)
        "#]],
    );
}
