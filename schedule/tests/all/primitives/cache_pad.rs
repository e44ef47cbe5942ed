//! Cached tensors whose rows begin at multiples of a number of elements.

use crate::args;
use crate::primitives::common::{call, check, entry, refused};
use expect_test::{Expect, expect};
use std::collections::BTreeMap;
use taffeta_ast::interp;
use taffeta_schedule::{Refusal, Schedule, Value};

fn padded(text: &str, stmt: &str, tensor: &str, by: i64, expected: Expect) {
    check(text, |s| call(s, "cache", args![stmt, tensor; pad = by]).map(drop), expected);
}

const ROWS: &str = "
def f(x: f32[n, m], y: inout[f32[n]]):
    for i in range(n):
        for j in range(m):
            y[i] += x[i, j] * x[i, m - 1 - j]
";

#[test]
fn only_the_shape_is_rounded_up() {
    padded(
        ROWS,
        "j",
        "x",
        8,
        expect![[r#"
        for i in range(n):
            x_cache = empty((1, (m + 7) // 8 * 8), f32)
            for x.cache.d1 in range(m):
                x_cache[0, x.cache.d1] = x[i, x.cache.d1]
            for j in range(m):
                y[i] += x_cache[0, j] * x_cache[0, m - 1 - j]
    "#]],
    );
    padded(
        ROWS,
        "j",
        "x",
        1,
        expect![[r#"
        for i in range(n):
            x_cache = empty((1, m), f32)
            for x.cache.d1 in range(m):
                x_cache[0, x.cache.d1] = x[i, x.cache.d1]
            for j in range(m):
                y[i] += x_cache[0, j] * x_cache[0, m - 1 - j]
    "#]],
    );
    // A box of constant size has a constant padded size.
    padded(
        "
def f(x: inout[f32[n, 6]]):
    for i in range(n):
        for j in range(5):
            x[i, j] = x[i, j + 1] * 2
",
        "j",
        "x",
        4,
        expect![[r#"
            for i in range(n):
                x_cache = empty((1, 8), f32)
                for x.cache.d1 in range(6):
                    x_cache[0, x.cache.d1] = x[i, x.cache.d1]
                for j in range(5):
                    x_cache[0, j] = x_cache[0, j + 1] * 2.0
                for x.cache.back.d1 in range(6):
                    x[i, x.cache.back.d1] = x_cache[0, x.cache.back.d1]
        "#]],
    );
    // The size is a multiple already.
    padded(
        "
def f(x: inout[f32[4 * n]]):
    for i in range(4 * n):
        x[i] = x[i] * 2
",
        "i",
        "x",
        4,
        expect![[r#"
            x_cache = empty((n * 4,), f32)
            for x.cache.d0 in range(n * 4):
                x_cache[x.cache.d0] = x[x.cache.d0]
            for i in range(n * 4):
                x_cache[i] *= 2.0
            for x.cache.back.d0 in range(n * 4):
                x[x.cache.back.d0] = x_cache[x.cache.back.d0]
        "#]],
    );
    // Boxes at the ends of the large tensor, one of them with a dimension of one element.
    check(
        "
def f(x: f32[n, m], y: inout[f32[n, m]]):
    for i in range(n):
        for j in range(m):
            y[i, j] = x[i, j] + x[i, m - 1]
",
        |s| {
            call(s, "split", args!["j", 6])?;
            call(s, "cache", args!["j~i", "y"; pad = 8])?;
            call(s, "cache", args!["i", "x"; pad = 3]).map(drop)
        },
        expect![[r#"
            x_cache = empty((n, (m + 2) // 3 * 3), f32)
            for x.cache.d0 in range(n):
                for x.cache.d1 in range(m):
                    x_cache[x.cache.d0, x.cache.d1] = x[x.cache.d0, max(min(0, m - 1), 0) + x.cache.d1]
            for i in range(n):
                for j_o in range((m + 5) // 6):
                    y_cache = empty((1, 8), f32)
                    for j_i in range(6):
                        if j_o * 6 + j_i < m:
                            y_cache[0, j_i] = x_cache[i, j_o * 6 + j_i - max(min(0, m - 1), 0)] + x_cache[i, m - 1 - max(min(0, m - 1), 0)]
                    for y.cache.back.d1 in range(6):
                        if j_o * 6 + y.cache.back.d1 < m:
                            y[i, j_o * 6 + y.cache.back.d1] = y_cache[0, y.cache.back.d1]
        "#]],
    );
}

#[test]
fn sums_are_initialised_only_in_the_box() {
    check(
        "
def f(a: f32[n, m], y: inout[f32[n, 6]]):
    for i in range(n):
        for k in range(m):
            for j in range(6):
                y[i, j] += a[i, k] * j
",
        |s| call(s, "cache_reduction", args!["k", "y"; pad = 4]).map(drop),
        expect![[r#"
            for i in range(n):
                y_partial = empty((1, 8), f32)
                for y.partial.d1 in range(6):
                    y_partial[0, y.partial.d1] = 0.0
                for k in range(m):
                    for j in range(6):
                        y_partial[0, j] += a[i, k] * cast(j, f32)
                for y.partial.back.d1 in range(6):
                    y[i, y.partial.back.d1] += y_partial[0, y.partial.back.d1]
        "#]],
    );
}

/// Checks that later steps use the shape of a padded tensor.
#[test]
fn later_steps_know_the_padded_shape() {
    check(
        ROWS,
        |s| {
            let t = call(s, "cache", args!["i", "x"; pad = 4])?;
            call(s, "var_reorder", args![t[0].clone(), Value::from(vec![1i64, 0])])?;
            call(s, "vectorize", args!["j"]).map(drop)
        },
        expect![[r#"
            x_cache = empty(((m + 3) // 4 * 4, n), f32)
            for x.cache.d0 in range(n):
                for x.cache.d1 in range(m):
                    x_cache[x.cache.d1, x.cache.d0] = x[x.cache.d0, x.cache.d1]
            for i in range(n):
                for j in range(m):  # vectorize, partial(y +)
                    y[i] += x_cache[j, i] * x_cache[m - 1 - j, i]
        "#]],
    );
    // A box of a box: the padding was never written, and is not fetched.
    check(
        ROWS,
        |s| {
            let t = call(s, "cache", args!["i", "x"; pad = 4])?;
            call(s, "cache", args!["j", t[0].clone(); pad = 16]).map(drop)
        },
        expect![[r#"
            x_cache = empty((n, (m + 3) // 4 * 4), f32)
            for x.cache.d0 in range(n):
                for x.cache.d1 in range(m):
                    x_cache[x.cache.d0, x.cache.d1] = x[x.cache.d0, x.cache.d1]
            for i in range(n):
                x_cache_cache = empty((1, (m + 15) // 16 * 16), f32)
                for x.cache.cache.d1 in range(m):
                    x_cache_cache[0, x.cache.cache.d1] = x_cache[i, x.cache.cache.d1]
                for j in range(m):
                    y[i] += x_cache_cache[0, j] * x_cache_cache[0, m - 1 - j]
        "#]],
    );
    // Data decides which elements of the small tensor are read: it would be fetched whole, with its uninitialised
    // padding.
    refused(
        "
def f(x: f32[n, 6], k: i32[m], y: inout[f32[m]]):
    for i in range(n):
        for j in range(m):
            assert 0 <= k[j] and k[j] < 6
            y[j] += x[i, k[j]]
",
        |s| {
            let t = call(s, "cache", args!["i", "x"; pad = 4])?;
            call(s, "cache", args!["j", t[0].clone()]).map(drop)
        },
        expect![[r#"
            schedule::illegal (2): elements of `x.cache` that may be unwritten would be copied before the statement
              `for j in range(m):` this statement
              help: write all of `x.cache` before the statement (`zeros` does), or choose one that writes all of it first
        "#]],
    );
}

#[test]
fn refuses() {
    let refuse = |text: &str, stmt: &str, by: Value, expected: Expect| {
        refused(text, |s| call(s, "cache", args![stmt, "x"; pad = by]).map(drop), expected)
    };
    // Invalid values of `pad`.
    for (by, expected) in [
        (
            Value::Int(0),
            expect![[r#"
            schedule::argument (0): expected at least 1 for `pad`, found 0
        "#]],
        ),
        (
            Value::Int(-8),
            expect![[r#"
            schedule::argument (0): expected at least 1 for `pad`, found -8
        "#]],
        ),
        (
            Value::Int(5000),
            expect![[r#"
            schedule::argument (0): expected at most 4096 for `pad`, found 5000
        "#]],
        ),
        (
            Value::from("8"),
            expect![[r#"
            schedule::argument (0): expected an integer for `pad`, found the string "8"
        "#]],
        ),
    ] {
        assert_eq!(refuse(ROWS, "j", by, expected).condition, 0);
    }
    // 3.
    refuse(
        "
def f(x: inout[f32]):
    for i in range(4):
        x += i
",
        "i",
        Value::Int(8),
        expect![[r#"
            schedule::illegal (3): cannot pad the scalar `x`
              `for i in range(4):` this statement
        "#]],
    );
    let gather = "
def f(x: f32[n], k: i32[n], y: inout[f32[n]]):
    for i in range(n):
        y[i] = x[k[i]]
";
    assert_eq!(
        refuse(
            gather,
            "i",
            Value::Int(8),
            expect![[r#"
        schedule::illegal (3): the subscript `k[i]` of `x` is not proved to be in range, and may reach the padding
          `y[i] = x[k[i]]` here
          help: write `assert 0 <= k[i] and k[i] < n` before the access
    "#]]
        )
        .condition,
        3
    );
    let scatter = "
def f(x: inout[f32[n]], k: i32[n], y: f32[n]):
    for i in range(n):
        x[k[i]] += y[i]
";
    refused(
        scatter,
        |s| call(s, "cache_reduction", args!["i", "x"; pad = 8]).map(drop),
        expect![[r#"
            schedule::illegal (4): the subscript `k[i]` of `x` is not proved to be in range, and may reach the padding
              `x[k[i]] += y[i]` here
              help: write `assert 0 <= k[i] and k[i] < n` before the access
        "#]],
    );
}

/// Checks that padding does not hide an access out of range.
#[test]
fn a_program_that_stops_still_stops() {
    let plain = "
def f(x: inout[f32[n]]):
    for i in range(n):
        x[i + 1] = 2
";
    let step = |by: Option<i64>| {
        move |s: &mut Schedule| call(s, "cache", args!["i", "x"; pad = by.map_or(Value::None, Value::Int)]).map(drop)
    };
    assert_eq!(stops(plain, step(None)), Some(true));
    assert_eq!(stops(plain, step(Some(8))), None);
    // The first subscript is out of range, and the padding is in the second dimension.
    let rows = "
def f(x: inout[f32[n, 3]]):
    for i in range(n):
        for j in range(3):
            x[i + 1, j] = 2
";
    assert_eq!(stops(rows, step(Some(8))), Some(true));
}

/// Returns whether the program still stops after a step; `None` if the step is refused.
fn stops(text: &str, step: impl FnOnce(&mut Schedule) -> Result<(), Refusal>) -> Option<bool> {
    let (func, _) = entry(text);
    let mut s = Schedule::new(func.clone());
    step(&mut s).ok()?;
    let inputs = crate::primitives::common::inputs(&func, &BTreeMap::from([("n".to_string(), 5)]), 1);
    assert!(interp::run(&func, &inputs).is_err());
    Some(interp::run(s.func(), &inputs).is_err())
}
