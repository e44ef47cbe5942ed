//! Diagnostics for faulty shapes and subscripts.

use super::check;
use expect_test::expect;

#[test]
fn shapes() {
    check(
        "def f(a: f32[3], c: f32[4]):
    return a + c
",
        expect![[r#"
            [shape::mismatch] `a` and `c` differ in dimension 0: 3 and 4
              at t.ft:2 `a + c`
              at t.ft:2 `a`: size 3 here
              at t.ft:2 `c`: size 4 here
              note: the shapes are [3] and [4]
              help: operands broadcast where sizes are equal or one of them is the literal 1
        "#]],
    );
    check(
        "def f(a: f32[n], c: f32[n + 1]):
    return a + c
",
        expect![[r#"
            [shape::mismatch] `a` and `c` differ in dimension 0: n and n + 1
              at t.ft:2 `a + c`
              at t.ft:2 `a`: size n here
              at t.ft:2 `c`: size n + 1 here
              note: the shapes are [n] and [n + 1]
              help: operands broadcast where sizes are equal or one of them is the literal 1
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    t = zeros((n, 2), f32)
    t[...] = zeros((n, 3), f32)
",
        expect![[r#"
            [shape::assign] `t[...]` and `zeros((n, 3), f32)` differ in dimension 1: 2 and 3
              at t.ft:3 `t[...]`
              at t.ft:3 `zeros((n, 3), f32)`: the value
              note: the target has shape [n, 2], but the value has shape [n, 3]
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    t = zeros((n,), f32)
    t = zeros((n, 2), f32)
",
        expect![[r#"
            [shape::assign] `t` has shape [n], but the value has shape [n, 2]
              at t.ft:3 `t`
              at t.ft:3 `zeros((n, 2), f32)`: the value
              help: a tensor keeps its shape; use another name for another tensor
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    t = zeros((n,), f32)
    t[0] = x
",
        expect![[r#"
            [shape::assign] the target has shape [], but the value has shape [n]
              at t.ft:3 `t[0]`
              at t.ft:3 `x`: the value
              help: reduce the value first: `sum(…)`
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    return zeros((k[0],), f32)
",
        expect![[r#"
            [shape::data] this size depends on values of tensors
              at t.ft:2 `(k[0],)`
              help: a tensor's shape is known before the program runs: use sizes of parameters, or `static` parameters
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    return zeros((-1,), f32)
",
        expect![[r#"
            [shape::negative] the size -1 is negative
              at t.ft:2 `(-1,)`
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    return zeros((1.5,), f32)
",
        expect![[r#"
            [shape::type] expected an integer expression over sizes, found a float
              at t.ft:2 `(1.5,)`
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    return zeros((\"a\",), f32)
",
        expect![[r#"
            [shape::type] expected an integer expression over sizes, found a string
              at t.ft:2 `("a",)`
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    return x[:k[0]]
",
        expect![[r#"
            [shape::data] the size k[…] depends on values of tensors
              at t.ft:2 `return x[:k[0]]`
              help: a tensor's shape is known before the program runs: use sizes of parameters, or `static` parameters
        "#]],
    );
}

#[test]
fn subscripts() {
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    return x[0, 0]
",
        expect![[r#"
            [index::rank] `x` has 1 dimension, but 2 indices are given
              at t.ft:2 `x[0, 0]`
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    return x[0.5]
",
        expect![[r#"
            [index::type] expected an integer index, found a float
              at t.ft:2 `0.5`
              help: convert it: `cast(x, i64)`
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    return x[x]
",
        expect![[r#"
            [index::type] expected an integer index, found a float
              at t.ft:2 `x`
              help: convert it: `cast(x, i64)`
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    return x[b]
",
        expect![[r#"
            [index::type] expected an integer index, found a `bool`
              at t.ft:2 `b`
              help: masks are not supported as indices; choose elements with `where(mask, a, b)`
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    return x[[0, 1]]
",
        expect![[r#"
            [index::type] expected an integer index, found a list
              at t.ft:2 `[0, 1]`
              help: index each dimension with a tuple: `x[tuple(at)]`, or gather with a tensor of integers
        "#]],
    );
    check(
        "def f(a: f32[3]):
    return a[3], a[-4]
",
        expect![[r#"
            [index::range] index 3 is out of range: the dimension has size 3
              at t.ft:2 `3`
        "#]],
    );
    check(
        "def f(a: f32[3]):
    return a[2:5]
",
        expect![[r#"
            [index::range] invalid slice from 2 to 5: dimension 0 has size 3
              at t.ft:2 `2:5`
              help: slices do not clamp: 0 <= a <= b <= n must hold for `x[a:b]`
        "#]],
    );
    check(
        "def f(a: f32[3]):
    return a[2:1]
",
        expect![[r#"
            [index::range] invalid slice from 2 to 1: dimension 0 has size 3
              at t.ft:2 `2:1`
              help: slices do not clamp: 0 <= a <= b <= n must hold for `x[a:b]`
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    return x[::0]
",
        expect![[r#"
            [index::slice] expected a nonzero integer as the step of a slice
              at t.ft:2 `0`
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    return x[..., ...]
",
        expect![[r#"
            [index::slice] a subscript can have only one `...`
              at t.ft:2 `..., ...`
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    y[k][0] = 1
",
        expect![[r#"
            [assign::gathered] cannot write through an index tensor: it makes a copy of the elements
              at t.ft:2 `y[k]`
              help: put all indices into one subscript: `x[idx, j] = …`
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    return (1, 2)[2]
",
        expect![[r#"
            [index::range] index 2 is out of range: the sequence has 2 items
              at t.ft:2 `2`
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    return x[\"a\"]
",
        expect![[r#"
            [index::type] expected an integer index, found a string
              at t.ft:2 `"a"`
        "#]],
    );
}

#[test]
fn too_large_programs() {
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    for i in static(range(1000)):
        for j in static(range(1000)):
            y[0] = i * j
",
        expect![[r#"
            [elaborate::too_large] this program becomes too large while compiling (over 200000 statements)
              at t.ft:3 `for j in static(range(1000)):`
              help: unroll less: use `range(…)` instead of `static(range(…))` where the loop is long
        "#]],
    );
    check(
        "def first(p):
    t = p
    return t[0]

def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    for i in static(range(2500)):
        y[0] += first(x * i)
",
        expect![[r#"
            [elaborate::too_large] this program becomes too large while compiling (over 2000 tensors that are alive at once)
              at t.ft:2 `t = p`
              note: in `first`, called at t.ft:7
              help: unroll less: use `range(…)` instead of `static(range(…))` where the loop is long
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    t = [i for i in range(100000000)]
",
        expect![[r#"
            [static::sequence] a static sequence can have at most 1048576 items, found 100000000
              at t.ft:2 `range(100000000)`
        "#]],
    );
}
