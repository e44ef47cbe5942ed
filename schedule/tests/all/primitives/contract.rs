use crate::args;
use crate::primitives::common::{call, check, refused};
use expect_test::{Expect, expect};
use taffeta_schedule::Value;

fn contracted(text: &str, expected: Expect) {
    check(text, |s| call(s, "contract", args!["t"]).map(drop), expected);
}

fn fused(text: &str, expected: Expect) {
    check(
        text,
        |s| {
            call(s, "fuse", args!["i", "k"])?;
            call(s, "contract", args!["t"]).map(drop)
        },
        expected,
    );
}

fn not_contracted(text: &str, expected: Expect) {
    refused(text, |s| call(s, "contract", args!["t"]).map(drop), expected);
}

const TWO: &str = "
def f(x: f32[n, m], y: inout[f32[n, m]]):
    t = empty((n, m), f32)
    for i in range(n):
        for j in range(m):
            t[i, j] = x[i, j] * 2
    for k in range(n):
        for l in range(m):
            y[k, l] = t[k, l] + 1
";

#[test]
fn an_element() {
    check(
        TWO,
        |s| {
            call(s, "fuse", args!["i", "k"])?;
            call(s, "fuse", args!["j", "l"])?;
            let t = call(s, "contract", args!["t"])?;
            call(s, "set_mem_type", args![t[0].clone(), "register"]).map(drop)
        },
        expect![[r#"
            for i in range(n):
                for j in range(m):
                    t = empty((), f32)  # register
                    t = x[i, j] * 2.0
                    y[i, j] = t + 1.0
        "#]],
    );
}

#[test]
fn a_row() {
    fused(
        TWO,
        expect![[r#"
        for i in range(n):
            t = empty((m,), f32)
            for j in range(m):
                t[j] = x[i, j] * 2.0
            for l in range(m):
                y[i, l] = t[l] + 1.0
    "#]],
    );
}

/// Checks an iteration that reads three of the elements that it writes.
#[test]
fn neighbours_of_one_iteration() {
    contracted(
        "
def f(x: f32[n + 2], y: inout[f32[n]]):
    t = empty((n + 2,), f32)
    for i in range(1, n + 1):
        for d in range(-1, 2):
            t[i + d] = x[i + d] * x[i + d]
        y[i - 1] = t[i - 1] + t[i] + t[i + 1]
",
        expect![[r#"
            for i in range(1, n + 1):
                t = empty((3,), f32)
                for d_1 in range(-1, 2):
                    t[d_1 + 1] = x[i + d_1] * x[i + d_1]
                y[i - 1] = t[0] + t[1] + t[2]
        "#]],
    );
}

#[test]
fn a_tile() {
    check(
        TWO,
        |s| {
            for l in ["j", "l"] {
                call(s, "split", args![l, 8])?;
            }
            call(s, "fuse", args!["i", "k"])?;
            call(s, "fuse", args!["j~o", "l~o"])?;
            call(s, "contract", args!["t"]).map(drop)
        },
        expect![[r#"
            for i in range(n):
                for j_o in range((m + 7) // 8):
                    t = empty((8,), f32)
                    for j_i in range(8):
                        if j_o * 8 + j_i < m:
                            t[j_i] = x[i, j_o * 8 + j_i] * 2.0
                    for l_i in range(8):
                        if j_o * 8 + l_i < m:
                            y[i, j_o * 8 + l_i] = t[l_i] + 1.0
        "#]],
    );
}

/// Checks a slice that all iterations use: its declaration stays outside of the loop that carries its values.
#[test]
fn slices_carried_across_iterations() {
    contracted(
        "
def f(x: f32[n, m], y: inout[f32[n, m]]):
    t = empty((n, m), f32)
    for j in range(m):
        for i in range(n):
            t[3, j] = x[i, j] + t[3, j] if i > 0 else x[i, j]
            y[i, j] = t[3, j]
",
        expect![[r#"
            for j in range(m):
                t = empty((max(min(4, n) - 3, 0),), f32)
                for i in range(n):
                    t[0] = x[i, j] + t[0] if i > 0 else x[i, j]
                    y[i, j] = t[0]
        "#]],
    );
}

/// Checks uses in branches and other declarations, from the first statement with a use to the last one.
#[test]
fn blocks_and_branches() {
    contracted(
        "
def f(x: f32[n, m], y: inout[f32[n, m]]):
    t = empty((n, m), f32)
    for i in range(n):
        y[i, 0] = 1
        u = x[i, 0]
        if u > 0:
            y[i, 0] += u
            for j in range(m):
                t[i, j] = x[i, j]
            for j in range(m):
                y[i, j] += t[i, m - 1 - j]
            y[i, 0] += u
        else:
            y[i, 0] -= u
",
        expect![[r#"
            for i in range(n):
                y[i, 0] = 1.0
                u = empty((), f32)
                u = x[i, 0]
                if u > 0.0:
                    y[i, 0] += u
                    t = empty((m,), f32)
                    for j in range(m):
                        t[j] = x[i, j]
                    for j in range(m):
                        y[i, j] += t[m - 1 - j]
                    del t
                    y[i, 0] += u
                else:
                    y[i, 0] += -u
        "#]],
    );
    // Written and read under one condition.
    contracted(
        "
def f(x: f32[n], y: inout[f32[n]]):
    t = empty((n,), f32)
    for i in range(n):
        if x[i] > 0:
            t[i] = x[i]
        y[i] += 1
        if x[i] > 0:
            y[i] += t[i]
",
        expect![[r#"
            for i in range(n):
                t = empty((), f32)
                if x[i] > 0.0:
                    t = x[i]
                y[i] += 1.0
                if x[i] > 0.0:
                    y[i] += t
        "#]],
    );
}

#[test]
fn uses_in_bounds_and_conditions() {
    contracted(
        "
def f(x: i64[n], y: inout[f32[n]]):
    t = empty((n,), i64)
    for i in range(n):
        t[i] = x[i] % 5
        for j in range(t[i]):
            if t[i] > j + 1:
                y[i] += 1
",
        expect![[r#"
            for i in range(n):
                t = empty((), i64)
                t = x[i] % 5
                for j in range(t):
                    if t > j + 1:
                        y[i] += 1.0
        "#]],
    );
}

/// Checks loops with other steps, that run backwards, or not at all.
#[test]
fn other_loops() {
    contracted(
        "
def f(x: f32[n], y: inout[f32[n]]):
    t = empty((n, 12), f32)
    for i in range(n - 1, -1, -2):
        for j in range(9, 2, -3):
            t[i, j] = x[i] * j
        y[i] = t[i, 3] + t[i, 9]
",
        expect![[r#"
            for i in range(n - 1, -1, -2):
                t = empty((7,), f32)
                for j in range(9, 2, -3):
                    t[j - 3] = x[i] * cast(j, f32)
                y[i] = t[0] + t[6]
        "#]],
    );
    contracted(
        "
def f(x: f32[n], y: inout[f32[n]]):
    t = empty((n, n - 1), f32)
    for i in range(n):
        for j in range(n - 1):
            t[i, j] = x[j]
        for j in range(n - 1):
            y[i] += t[i, j]
",
        expect![[r#"
            assert 0 <= n - 1, "dimension 1 of `t` has a negative size"
            for i in range(n):
                t = empty((n - 1,), f32)
                for j in range(n - 1):
                    t[j] = x[j]
                for j in range(n - 1):
                    y[i] += t[j]
        "#]],
    );
}

/// Checks that a dimension stays whole if its contracted size would change with an iteration: its memory could not be
/// laid out.
#[test]
fn sizes_that_change_stay_whole() {
    contracted(
        "
def f(x: f32[n], y: inout[f32[n]]):
    t = empty((n, n), f32)
    for i in range(n):
        for j in range(i + 1):
            t[i, j] = x[j]
        for j in range(i + 1):
            y[i] += t[i, i - j]
",
        expect![[r#"
            for i in range(n):
                t = empty((n,), f32)
                for j in range(i + 1):
                    t[j] = x[j]
                for j in range(i + 1):
                    y[i] += t[i - j]
        "#]],
    );
    contracted(
        "
def f(x: f32[n], first: i64[n], y: inout[f32[n]]):
    t = empty((n,), f32)
    for i in range(n):
        for j in range(first[i] % n, n):
            t[j] = x[j]
        for j in range(first[i] % n, n):
            y[i] += t[j]
",
        expect![[r#"
            for i in range(n):
                t = empty((n,), f32)
                for j in range(first[i] % n, n):
                    t[j] = x[j]
                for j in range(first[i] % n, n):
                    y[i] += t[j]
        "#]],
    );
}

/// Checks an element that an index tensor picks; an index that may be out of range still stops the program.
#[test]
fn checks_stay() {
    contracted(
        "
def f(x: f32[n], k: i64[n], y: inout[f32[n]]):
    t = empty((n,), f32)
    for i in range(n):
        t[k[i] % n] = x[i]
        y[i] = t[k[i] % n]
",
        expect![[r#"
            for i in range(n):
                t = empty((), f32)
                t = x[i]
                y[i] = t
        "#]],
    );
    contracted(
        "
def f(x: f32[n], k: i64[n], y: inout[f32[n]]):
    t = empty((n,), f32)
    for i in range(n):
        t[k[i] + k[0]] = x[i]
        y[i] = t[k[i] + k[0]]
",
        expect![[r#"
            for i in range(n):
                t = empty((n,), f32)
                t[k[i] + k[0]] = x[i]
                y[i] = t[k[i] + k[0]]
        "#]],
    );
    // The index itself stops the program.
    contracted(
        "
def f(x: f32[n], k: i64[n], y: inout[f32[n]]):
    t = empty((n, 1), f32)
    for i in range(n):
        t[i, min(max(k[i + 1], 0), 0)] = x[i]
        y[i] = t[i, 0]
",
        expect![[r#"
            for i in range(n):
                t = empty((1,), f32)
                t[min(max(k[i + 1], 0), 0)] = x[i]
                y[i] = t[0]
        "#]],
    );
}

#[test]
fn marked_loops() {
    check(
        "
def f(x: f32[n, m], y: inout[f32[n]]):
    t = empty((n,), f32)
    for i in range(n):
        t[i] = 0
        for j in range(m):
            t[i] += x[i, j]
        y[i] = t[i]
",
        |s| {
            call(s, "parallelize", args!["i"])?;
            call(s, "vectorize", args!["j"])?;
            call(s, "contract", args!["t"]).map(drop)
        },
        expect![[r#"
            for i in range(n):  # parallel
                t = empty((), f32)
                t = 0.0
                for j in range(m):  # vectorize, partial(t +)
                    t += x[i, j]
                y[i] = t
        "#]],
    );
    refused(
        "
def f(x: f32[n], y: inout[f32[n]]):
    t = empty((n,), f32)
    for i in range(n):
        t[i] = x[i]
        y[i] = t[i]
",
        |s| {
            call(s, "vectorize", args!["i"])?;
            call(s, "contract", args!["t"]).map(drop)
        },
        expect![[r#"
            schedule::illegal (3): all of `t` is live at once, around a loop that is already vectorised
              `for i in range(n):` this loop
              help: take this step before `vectorize`
        "#]],
    );
}

#[test]
fn handles_and_places() {
    check(
        TWO,
        |s| {
            let t = call(s, "cache", args!["i", "x"])?;
            call(s, "set_mem_type", args![t[0].clone(), "arena"])?;
            call(s, "fuse", args!["x.cache.d0", "i"])?;
            let Value::Handle(h) = call(s, "contract", args![t[0].clone()])?[0].clone() else { panic!("a tensor") };
            assert_eq!(Value::Handle(h), t[0]);
            call(s, "var_unsqueeze", args![t[0].clone(), 0]).map(drop)
        },
        expect![[r#"
            t = empty((n, m), f32)
            for x.cache.d0 in range(n):
                x_cache = empty((1, m), f32)  # arena
                for x.cache.d1 in range(m):
                    x_cache[0, x.cache.d1] = x[x.cache.d0, x.cache.d1]
                for j in range(m):
                    t[x.cache.d0, j] = x_cache[0, j] * 2.0
            for k in range(n):
                for l in range(m):
                    y[k, l] = t[k, l] + 1.0
        "#]],
    );
    // A second contraction finds nothing left.
    refused(
        TWO,
        |s| {
            call(s, "fuse", args!["i", "k"])?;
            call(s, "contract", args!["t"])?;
            call(s, "contract", args!["t"]).map(drop)
        },
        expect![[r#"
            schedule::illegal (3): all of `t` is live at once, between the statements that use it
              `for j in range(m):` first used here
              `for l in range(m):` last used here
              help: fuse the loops that write and read it (`s.fuse`), then take this step
        "#]],
    );
}

#[test]
fn condition_1() {
    not_contracted(
        "
def f(x: f32[n], t: inout[f32[n]]):
    for i in range(n):
        t[i] = x[i]
",
        expect![[r#"
            schedule::illegal (1): `t` is a parameter or a result, which the caller lays out
              help: use `t = s.cache(…, "t")`, and take this step on `t`
        "#]],
    );
    not_contracted(
        "
def f(x: f32[n]):
    for i in range(n):
        t = x * i
        print(t)
",
        expect![[r#"
            schedule::illegal (1): `t` is printed whole
              `print(t)` here
              help: print a copy: write `shown = t + 0`, and print `shown`
        "#]],
    );
}

#[test]
fn condition_2() {
    not_contracted(
        "
def f(x: f32[n], y: inout[f32[n]]):
    t = empty((n,), f32)
    for i in range(n):
        y[i] = x[i]
",
        expect![[r#"
            schedule::illegal (2): `t` is never used
              `t = empty((n,), f32)` declared here
        "#]],
    );
}

#[test]
fn condition_3() {
    // An iteration reads an element that its predecessor wrote.
    not_contracted(
        "
def f(x: f32[n], y: inout[f32[n]]):
    t = empty((n,), f32)
    for i in range(n):
        t[i] = x[i] + t[i - 1] if i > 0 else x[i]
        y[i] = t[i]
",
        expect![[r#"
            schedule::dependence (3): the loop `i` carries values of `t` from iteration to iteration
              `t[i] = x[i] + t[i - 1] if i > 0 else x[i]` writes `t[i]` at i = 0, then reads `t[i - 1]` at i = 1
              note: flow dependence (RAW), carried by the loop `i`
              note: the element is t[0] with n = 2
        "#]],
    );
    not_contracted(
        TWO,
        expect![[r#"
        schedule::illegal (3): all of `t` is live at once, between the statements that use it
          `for i in range(n):` first used here
          `for k in range(n):` last used here
          help: fuse the loops that write and read it (`s.fuse`), then take this step
    "#]],
    );
    not_contracted(
        "
def f(x: f32[n], y: inout[f32[n]]):
    for i in range(n):
        t = x[i]
        y[i] = t + t
",
        expect![[r#"
            schedule::illegal (3): all of `t` is live at once, between the statements that use it
              `t = x[i]` first used here
              `y[i] = t + t` last used here
        "#]],
    );
    not_contracted(
        "
def f(x: f32[n], y: inout[f32[n]]):
    for i in range(n):
        t = x[i] * 2
",
        expect![[r#"
            schedule::illegal (3): nothing to contract: `t` is declared where it is used, and all of it is used there
              `t = x[i] * 2` declared here
        "#]],
    );
}
