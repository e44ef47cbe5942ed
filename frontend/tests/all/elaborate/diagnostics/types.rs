//! Diagnostics for faulty element types and static values.

use super::check;
use expect_test::expect;

#[test]
fn operands() {
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    return b + b
",
        expect![[r#"
            [type::bool] `+` takes numbers, found `bool`
              at t.ft:2 `b + b`
              help: write `|` for a logical or, or convert with `cast(x, i32)` to count
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    return -b
",
        expect![[r#"
            [type::bool] `-` takes numbers, found `bool`
              at t.ft:2 `-b`
              help: convert first: `cast(x, i32)`
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    return x & 1
",
        expect![[r#"
            [type::operand] `&` takes integers, found `f32` and an integer
              at t.ft:2 `x & 1`
              help: convert first: `cast(x, i64)`
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    return x and b
",
        expect![[r#"
            [type::operand] `and` takes `bool`, found `f32` and `bool`
              at t.ft:2 `x and b`
              help: compare first: `x != 0`; for the bits of integers, write `&`, `|` or `~`
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    return not x
",
        expect![[r#"
            [type::operand] `not` takes `bool`, found `f32`
              at t.ft:2 `not x`
              help: compare first: `x != 0`; for the bits of integers, write `&`, `|` or `~`
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    return x + \"a\"
",
        expect![[r#"
            [type::operand] `+` takes tensors and numbers, found a string
              at t.ft:2 `"a"`
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    return x << 1
",
        expect![[r#"
            [type::operand] `<<` takes integers, found `f32` and an integer
              at t.ft:2 `x << 1`
              help: convert first: `cast(x, i64)`
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    return x % b
",
        expect![[r#"
            def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]) -> f32[n]:
                out = empty((n,), f32)
                for out.d0 in range(n):
                    out[out.d0] = x[out.d0] % cast(b[out.d0], f32)
                return out
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    return empty((n,), f32) + x
",
        expect![[r#"
            [value::empty] a tensor made by `empty` has no values yet
              at t.ft:2 `empty((n,), f32)`
              help: give it a name and write its elements first, or use `zeros`
        "#]],
    );
}

#[test]
fn literals() {
    check(
        "def f(u: u8[n]):
    return u + 300, u - 1, u + -1
",
        expect![[r#"
            [type::literal] 300 does not fit in `u8`, which ranges from 0 to 255
              at t.ft:2 `300`
              help: convert the other operand to a wider type with `cast`
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    return k + 99999999999
",
        expect![[r#"
            [type::literal] 99999999999 does not fit in `i32`, which ranges from -2147483648 to 2147483647
              at t.ft:2 `99999999999`
              help: convert the other operand to a wider type with `cast`
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    return x / 0 + 1 // 0
",
        expect![[r#"
            [static::arithmetic] division by zero
              at t.ft:2 `1 // 0`
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    return cast(1e10, i32)
",
        expect![[r#"
            [type::literal] 10000000000 does not fit in `i32`
              at t.ft:2 `1e10`
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    s = 3000000000
    for i in range(n):
        s += 1
    return s
",
        expect![[r#"
            [type::literal] 3000000000 does not fit in `i32`, the type of `s`, which ranges from -2147483648 to 2147483647
              at t.ft:2 `3000000000`
              help: declare its type: `s: i64 = 3000000000`
        "#]],
    );
}

#[test]
fn stores() {
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    k2 = zeros((n,), i32)
    k2[...] = x
",
        expect![[r#"
            [type::store] cannot store `f32` into `i32` without a conversion
              at t.ft:3 `x`
              help: write `cast(…, i32)`, which truncates, or make the target a float
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    k2 = zeros((n,), i32)
    k2 += 0.5
",
        expect![[r#"
            [type::store] cannot store a float into `i32` without a conversion
              at t.ft:3 `0.5`
              help: write `cast(…, i32)`, which truncates, or make the target a float
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    c = zeros((n,), bool)
    c[...] = k
    c += b
",
        expect![[r#"
            [type::store] cannot store `i32` into `bool` without a conversion
              at t.ft:3 `k`
              help: compare: `x != 0`
            [type::bool] arithmetic takes numbers, found `bool`
              at t.ft:4 `c += b`
              help: write `|=` or `&=`
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    y[...] = \"a\"
",
        expect![[r#"
            [type::store] expected a number to store, found a string
              at t.ft:2 `"a"`
        "#]],
    );
}

#[test]
fn conditions() {
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    if x[0]:
        pass
",
        expect![[r#"
            [type::condition] expected a `bool` as a condition, found `f32`
              at t.ft:2 `x[0]`
              help: compare it: `x != 0`
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    if b:
        pass
",
        expect![[r#"
            [type::condition] expected one `bool` as a condition, found a tensor of 1 dimension
              at t.ft:2 `b`
              help: reduce it with `any(…)` or `all(…)`
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    assert x > 0
",
        expect![[r#"
            [type::condition] expected one `bool` as a condition, found a tensor of 1 dimension
              at t.ft:2 `x > 0`
              help: reduce it with `any(…)` or `all(…)`
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    if \"a\":
        pass
",
        expect![[r#"
            [type::condition] expected a `bool` as a condition, found a string
              at t.ft:2 `"a"`
              help: compare it: `x != 0`
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    s = 1.0 if k else 2.0
",
        expect![[r#"
            [type::condition] expected a `bool` as a condition, found `i32`
              at t.ft:2 `k`
              help: compare it: `x != 0`
        "#]],
    );
}

#[test]
fn static_parameters() {
    check(
        "def f(x: f32[n], w: static):
    return x * w
",
        expect![[r#"
            [entry::static] the static parameter `w` needs a value
              at t.ft:1 `w`
              help: give it: `--set w=…`
        "#]],
    );
}

#[test]
fn statically_failing_assertions() {
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    assert x.ndim == 2, f\"{x.ndim} dimensions\"
",
        expect![[r#"
            [assert::failed] 1 dimensions
              at t.ft:2 `assert x.ndim == 2, f"{x.ndim} dimensions"`
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    assert x.ndim == 2
",
        expect![[r#"
            [assert::failed] `x.ndim == 2` does not hold
              at t.ft:2 `assert x.ndim == 2`
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    assert k[0] > 0, x
",
        expect![[r#"
            [assert::message] expected a scalar in the message, found a tensor of 1 dimension
              at t.ft:2 `x`
        "#]],
    );
}

#[test]
fn element_types_as_names() {
    check(
        "def f(x: f32[f64]):\n    return x\n",
        expect![[r#"
        [annotation::size] expected a size, found the element type `f64`
          at t.ft:1 `f64`
          help: give the size another name
    "#]],
    );
    check(
        "def f(f32: f32[n]):\n    return f32\n",
        expect![[r#"
        [entry::parameter] cannot name a parameter `f32`: it is an element type
          at t.ft:1 `f32`
          help: use another name
    "#]],
    );
}
