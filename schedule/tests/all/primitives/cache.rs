//! Fetches and write-backs of `cache`, and its refusals.

use crate::args;
use crate::primitives::common::{call, check, list, refused};
use expect_test::{Expect, expect};

pub fn cached(text: &str, stmt: &str, tensor: &str, expected: Expect) {
    check(text, |s| call(s, "cache", args![stmt, tensor]).map(drop), expected);
}

pub fn not_cached(text: &str, stmt: &str, tensor: &str, expected: Expect) {
    refused(text, |s| call(s, "cache", args![stmt, tensor]).map(drop), expected);
}

#[test]
fn reads_are_not_stored_back() {
    cached(
        "
def f(x: f32[n, m], y: inout[f32[n]]):
    for i in range(n):
        for j in range(m):
            y[i] += x[i, j] * x[i, m - 1 - j]
",
        "j",
        "x",
        expect![[r#"
            for i in range(n):
                x_cache = empty((1, m), f32)
                for x.cache.d1 in range(m):
                    x_cache[0, x.cache.d1] = x[i, x.cache.d1]
                for j in range(m):
                    y[i] += x_cache[0, j] * x_cache[0, m - 1 - j]
        "#]],
    );
}

#[test]
fn writes_of_the_whole_box_need_no_fetch() {
    cached(
        "
def f(x: f32[n, m]) -> f32[n]:
    y = empty((n,), f32)
    for i in range(n):
        y[i] = 0
        for j in range(m):
            y[i] += x[i, j]
    return y
",
        "i",
        "y",
        expect![[r#"
            y = empty((n,), f32)
            y_cache = empty((n,), f32)
            for i in range(n):
                y_cache[i] = 0.0
                for j in range(m):
                    y_cache[i] += x[i, j]
            for y.cache.back.d0 in range(n):
                y[y.cache.back.d0] = y_cache[y.cache.back.d0]
            return y
        "#]],
    );
    cached(
        "
def f(x: inout[f32[n + 3]]):
    for i in range(n):
        for j in range(3, -1, -1):
            x[i + j] = j
",
        "j",
        "x",
        expect![[r#"
            for i in range(n):
                x_cache = empty((4,), f32)
                for j in range(3, -1, -1):
                    x_cache[j] = cast(j, f32)
                for x.cache.back.d0 in range(4):
                    x[i + x.cache.back.d0] = x_cache[x.cache.back.d0]
        "#]],
    );
    // The last iteration may not run at all: then nothing is written.
    cached(
        "
def f(x: inout[f32[n + 3]]):
    for i in range(n):
        for j in range(0, 4, 2):
            x[i + j] = j
",
        "j",
        "x",
        expect![[r#"
            for i in range(n):
                x_cache = empty((3,), f32)
                for x.cache.d0 in range(3):
                    x_cache[x.cache.d0] = x[i + x.cache.d0]
                for j in range(0, 4, 2):
                    x_cache[j] = cast(j, f32)
                for x.cache.back.d0 in range(3):
                    x[i + x.cache.back.d0] = x_cache[x.cache.back.d0]
        "#]],
    );
    // The same statement reads the tensor before it writes it.
    cached(
        "
def f(x: inout[f32[n]]):
    for i in range(n):
        x[i] = x[n - 1 - i]
",
        "i",
        "x",
        expect![[r#"
            x_cache = empty((n,), f32)
            for x.cache.d0 in range(n):
                x_cache[x.cache.d0] = x[x.cache.d0]
            for i in range(n):
                x_cache[i] = x_cache[n - 1 - i]
            for x.cache.back.d0 in range(n):
                x[x.cache.back.d0] = x_cache[x.cache.back.d0]
        "#]],
    );
}

#[test]
fn scalars_locals_and_single_statements() {
    cached(
        "
def f(x: f32[n]) -> f32:
    s: f32 = 0
    for i in range(n):
        s += x[i]
    return s
",
        "i",
        "s",
        expect![[r#"
            s = empty((), f32)
            s = 0.0
            s_cache = empty((), f32)
            s_cache = s
            for i in range(n):
                s_cache += x[i]
            s = s_cache
            return s
        "#]],
    );
    cached(
        "
def f(x: inout[f32[n]]):
    for i in range(n):
        label(\"S\")
        x[i] = x[i] * x[0]
",
        "S",
        "x",
        expect![[r#"
            for i in range(n):
                x_cache = empty((i + 1,), f32)
                for x.cache.d0 in range(i + 1):
                    x_cache[x.cache.d0] = x[x.cache.d0]
                label("S")
                x_cache[i] *= x_cache[0]
                for x.cache.back.d0 in range(i + 1):
                    x[x.cache.back.d0] = x_cache[x.cache.back.d0]
        "#]],
    );
}

#[test]
fn proofs_of_unordered_loops_survive() {
    refused(
        "
def f(x: inout[f32[n + 1]]):
    for i in range(n):
        for j in range(2):
            if j == 0:
                x[i + j] = 1
",
        |s| {
            call(s, "parallelize", args!["i"])?;
            call(s, "cache", args!["j", "x"]).map(drop)
        },
        expect![[r#"
            schedule::dependence (100): the loop `i` is already parallel or vectorised, and would get a loop-carried dependence
              `for j in range(2):` reads `x[i + x.cache.d0]` at i = 0, x.cache.d0 = 1, then writes `x[i + x.cache.back.d0]` at i = 1, x.cache.back.d0 = 0
              note: anti dependence (WAR), carried by the loop `i`
              note: the element is x[1] with n = 2
              help: take this step before `parallelize` and `vectorize`
        "#]],
    );
    check(
        "
def f(x: inout[f32[n, 4]]):
    for i in range(n):
        for j in range(4):
            x[i, j] = x[i, 3 - j]
",
        |s| {
            call(s, "parallelize", args!["i"])?;
            call(s, "cache", args!["j", "x"]).map(drop)
        },
        expect![[r#"
            for i in range(n):  # parallel
                x_cache = empty((1, 4), f32)
                for x.cache.d1 in range(4):
                    x_cache[0, x.cache.d1] = x[i, x.cache.d1]
                for j in range(4):
                    x_cache[0, j] = x_cache[0, 3 - j]
                for x.cache.back.d1 in range(4):
                    x[i, x.cache.back.d1] = x_cache[0, x.cache.back.d1]
        "#]],
    );
}

#[test]
fn a_name_selects_the_tensor_that_the_statement_uses() {
    let text = "
def f(x: inout[f32[n]], y: f32[n]):
    for i in range(n):
        t = y[i]
        for j in range(n):
            x[j] += t
    for k in range(n):
        t = y[k]
        x[k] += t
";
    let expected = expect![[r#"
        for i in range(n):
            t = empty((), f32)
            t = y[i]
            t_cache = empty((), f32)
            t_cache = t
            for j in range(n):
                x[j] += t_cache
        for k in range(n):
            t = empty((), f32)
            t = y[k]
            x[k] += t
    "#]];
    cached(text, "j", "t", expected);
    // The statement uses both tensors called `u`, one of which it declares.
    let text = "
def f(x: f32[n], y: inout[f32[n]]):
    u = x + 1
    g(u, y)

def g(t, y):
    for k in range(t.shape[0]):
        u = 2 * t[k]
        y[k] = u * u
";
    let expected = expect![[r#"
        u = empty((n,), f32)
        for u.d0 in range(n):
            u[u.d0] = x[u.d0] + 1.0
        u_cache = empty((n,), f32)
        for u.cache.d0 in range(n):
            u_cache[u.cache.d0] = u[u.cache.d0]
        for k in range(n):
            u_1 = empty((), f32)
            u_1 = 2.0 * u_cache[k]
            y[k] = u_1 * u_1
    "#]];
    cached(text, "k", "u", expected);
}

#[test]
fn refuses_tensors_outside_of_the_statement() {
    let text = "
def f(x: inout[f32[n]], y: f32[n]):
    for i in range(n):
        t = y[i]
        x[i] = t
    for k in range(n):
        t = y[k]
        x[k] += t
";
    not_cached(
        text,
        "i",
        "t#1",
        expect![[r#"
        schedule::illegal (1): `t` is declared inside the statement
          `for i in range(n):` this statement
    "#]],
    );
    not_cached(
        text,
        "i",
        "t#2",
        expect![[r#"
        schedule::illegal (1): `t` is not used in the statement
          `for i in range(n):` this statement
    "#]],
    );
    not_cached(
        text,
        "i",
        "t",
        expect![[r#"
        schedule::target (0): `t` names 2 tensors
          `t = y[i]` number 1
          `t = y[k]` number 2
          help: write "t#1", "t#2"
    "#]],
    );
    not_cached(
        text,
        "i",
        "z",
        expect![[r#"
        schedule::target (0): there is no tensor `z`
          help: choose one of x, y, t
    "#]],
    );
    not_cached(
        text,
        "i",
        "t#3",
        expect![[r#"
        schedule::target (0): expected a number from 1 to 2 for the tensor `t`, found 3
    "#]],
    );
    refused(
        text,
        |s| call(s, "cache", args!["i", list(&["x"])]).map(drop),
        expect![[r#"
        schedule::target (0): expected a tensor, found a list of length 1
          help: pass the name of a tensor ("t"), or a result of an earlier step
    "#]],
    );
}

#[test]
fn refuses_to_fetch_unwritten_elements() {
    not_cached(
        "
def f(x: f32[n]) -> f32[n]:
    y = empty((n,), f32)
    for i in range(n):
        if x[i] > 0:
            y[i] = x[i]
    return y
",
        "i",
        "y",
        expect![[r#"
            schedule::illegal (2): elements of `y` that may be unwritten would be copied before the statement
              `for i in range(n):` this statement
              help: write all of `y` before the statement (`zeros` does), or choose one that writes all of it first
        "#]],
    );
    // Only a part was written before.
    not_cached(
        "
def f(x: f32[n]) -> f32[n]:
    y = empty((n,), f32)
    for i in range(n // 2):
        y[i] = 0
    for j in range(n):
        y[j] = x[j] if j > 3 else y[0]
    return y
",
        "j",
        "y",
        expect![[r#"
            schedule::illegal (2): elements of `y` that may be unwritten would be copied before the statement
              `for j in range(n):` this statement
              help: write all of `y` before the statement (`zeros` does), or choose one that writes all of it first
        "#]],
    );
    // Written by a loop that was split.
    check(
        "
def f(x: f32[n]) -> f32[n]:
    y = empty((n,), f32)
    for i in range(n):
        y[i] = 0
    for j in range(n):
        if x[j] > 0:
            y[j] = x[j]
    return y
",
        |s| {
            call(s, "split", args!["i", 4])?;
            call(s, "cache", args!["j", "y"]).map(drop)
        },
        expect![[r#"
            y = empty((n,), f32)
            for i_o in range((n + 3) // 4):
                for i_i in range(4):
                    if i_o * 4 + i_i < n:
                        y[i_o * 4 + i_i] = 0.0
            y_cache = empty((n,), f32)
            for y.cache.d0 in range(n):
                y_cache[y.cache.d0] = y[y.cache.d0]
            for j in range(n):
                if x[j] > 0.0:
                    y_cache[j] = x[j]
            for y.cache.back.d0 in range(n):
                y[y.cache.back.d0] = y_cache[y.cache.back.d0]
            return y
        "#]],
    );
}
