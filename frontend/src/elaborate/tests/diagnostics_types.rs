//! What is said of types, shapes and subscripts that are wrong.

use super::check;
use expect_test::expect;

#[test]
fn operands() {
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    return b + b
",
        expect![[r#"
            [type::bool] `+` computes with numbers, and `bool` is none
              at t.ft:2 `b + b`
              help: `|` is true if one of them is; to count, `cast(x, i32)`
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    return -b
",
        expect![[r#"
            [type::bool] `-` computes with numbers, and `bool` is none
              at t.ft:2 `-b`
              help: convert first: `cast(x, i32)`
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    return x & 1
",
        expect![[r#"
            [type::operand] `&` takes integers, and this is `f32` and an integer
              at t.ft:2 `x & 1`
              help: convert first: `cast(x, i64)`
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    return x and b
",
        expect![[r#"
            [type::operand] `and` takes `bool`, and this is `f32` and `bool`
              at t.ft:2 `x and b`
              help: compare first: `x != 0`; for the bits of integers there are `&`, `|` and `~`
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    return not x
",
        expect![[r#"
            [type::operand] `not` takes `bool`, and this is `f32`
              at t.ft:2 `not x`
              help: compare first: `x != 0`; for the bits of integers there are `&`, `|` and `~`
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    return x + \"a\"
",
        expect![[r#"
            [type::operand] `+` takes tensors and numbers, and this is a string
              at t.ft:2 `"a"`
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    return x << 1
",
        expect![[r#"
            [type::operand] `<<` takes integers, and this is `f32` and an integer
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
            [type::literal] 300 does not fit in `u8`, which goes from 0 to 255
              at t.ft:2 `300`
              help: convert the other operand to a wider type with `cast`
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    return k + 99999999999
",
        expect![[r#"
            [type::literal] 99999999999 does not fit in `i32`, which goes from -2147483648 to 2147483647
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
            [type::literal] 10000000000 has no value in `i32`
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
            [type::literal] 3000000000 does not fit in `i32`, which goes from -2147483648 to 2147483647
              at t.ft:2 `3000000000`
              help: convert the other operand to a wider type with `cast`
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
            [type::store] `f32` is stored into `i32`, which needs a conversion
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
            [type::store] a float is stored into `i32`, which needs a conversion
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
            [type::store] `i32` is stored into `bool`, which needs a conversion
              at t.ft:3 `k`
              help: compare: `x != 0`
            [type::bool] arithmetic computes with numbers, and `bool` is none
              at t.ft:4 `c += b`
              help: write `|=` or `&=`
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    y[...] = \"a\"
",
        expect![[r#"
            [type::store] a tensor holds numbers, and this is a string
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
            [type::condition] a condition is a `bool`, and this is `f32`
              at t.ft:2 `x[0]`
              help: compare it with something: `x != 0`
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    if b:
        pass
",
        expect![[r#"
            [type::condition] a condition is one `bool`, and this is a tensor of 1 dimension
              at t.ft:2 `b`
              help: reduce it with `any(…)` or `all(…)`
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    assert x > 0
",
        expect![[r#"
            [type::condition] a condition is one `bool`, and this is a tensor of 1 dimension
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
            [type::condition] a condition is a `bool`, and this is a string
              at t.ft:2 `"a"`
              help: compare it with something: `x != 0`
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    s = 1.0 if k else 2.0
",
        expect![[r#"
            [type::condition] a condition is a `bool`, and this is `i32`
              at t.ft:2 `k`
              help: compare it with something: `x != 0`
        "#]],
    );
}

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
              note: the target has shape [n, 2], and the value [n, 3]
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    t = zeros((n,), f32)
    t = zeros((n, 2), f32)
",
        expect![[r#"
            [shape::assign] `t` has shape [n], and the value has shape [n, 2]
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
            [shape::assign] the target has shape [], and the value [n]
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
            [shape::type] a size is an integer expression over sizes, and this is a float
              at t.ft:2 `(1.5,)`
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    return zeros((\"a\",), f32)
",
        expect![[r#"
            [shape::type] a size is an integer expression over sizes, and this is a string
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
            [index::rank] `x` has 1 dimension, and 2 indices are given
              at t.ft:2 `x[0, 0]`
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    return x[0.5]
",
        expect![[r#"
            [index::type] an index is an integer, and this is a float
              at t.ft:2 `0.5`
              help: convert it: `cast(x, i64)`
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    return x[x]
",
        expect![[r#"
            [index::type] an index is an integer, and this is a float
              at t.ft:2 `x`
              help: convert it: `cast(x, i64)`
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    return x[b]
",
        expect![[r#"
            [index::type] a `bool` is no index
              at t.ft:2 `b`
              help: shapes are known before the program runs, so there are no masks; choose with `where(mask, a, b)`
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    return x[[0, 1]]
",
        expect![[r#"
            [index::type] an index is an integer, and this is a list
              at t.ft:2 `[0, 1]`
              help: for one index in each dimension write a tuple: `x[tuple(at)]`; to gather, index with a tensor of integers
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
            [index::range] this slice goes from 2 to 5, and dimension 0 has size 3
              at t.ft:2 `2:5`
              help: slices do not clamp: 0 <= a <= b <= n must hold for `x[a:b]`
        "#]],
    );
    check(
        "def f(a: f32[3]):
    return a[2:1]
",
        expect![[r#"
            [index::range] this slice goes from 2 to 1, and dimension 0 has size 3
              at t.ft:2 `2:1`
              help: slices do not clamp: 0 <= a <= b <= n must hold for `x[a:b]`
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    return x[::0]
",
        expect![[r#"
            [index::slice] the step of a slice is an integer that is not 0
              at t.ft:2 `0`
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    return x[..., ...]
",
        expect![[r#"
            [index::slice] `...` stands once in a subscript
              at t.ft:2 `..., ...`
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    y[k][0] = 1
",
        expect![[r#"
            [assign::gathered] an index tensor makes a copy, which would be written in place of the tensor
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
            [index::type] an index is an integer, and this is a string
              at t.ft:2 `"a"`
        "#]],
    );
}

#[test]
fn loops() {
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    for i in x:
        pass
",
        expect![[r#"
            [type::iterate] a loop runs over a range, and this is a tensor of 1 dimension
              at t.ft:2 `x`
              help: write `for i in range(x.shape[0]):` and `x[i]` inside
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    for i in n:
        pass
",
        expect![[r#"
            [type::iterate] a loop runs over a range, and this is a scalar
              at t.ft:2 `n`
              help: write `for i in range(x.shape[0]):` and `x[i]` inside
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    for i in range(0, n, 0):
        pass
",
        expect![[r#"
            [range::step] the step of a range is not 0
              at t.ft:2 `range(0, n, 0)`
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    for i, j in range(n):
        pass
",
        expect![[r#"
            [type::unpack] a `range` gives one number at a time
              at t.ft:2 `for i, j in range(n):`
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    for i in ndrange(n, n):
        pass
",
        expect![[r#"
            [type::unpack] 1 name stands here for 2 ranges
              at t.ft:2 `i`
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    for i in range(x[0]):
        pass
",
        expect![[r#"
            [range::type] the bounds of a range are integers, and this is `f32`
              at t.ft:2 `x[0]`
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    for i in static([(1, 2)]):
        pass
    for a, c, d in static([(1, 2)]):
        pass
",
        expect![[r#"
            [type::unpack] 3 names stand here for a tuple
              at t.ft:4 `static([(1, 2)])`
        "#]],
    );
}

#[test]
fn returns() {
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    if x[0] > 0:
        return x
    return x
",
        expect![[r#"
            [syntax::return] `return` stands here under a condition or in a loop of the running program
              at t.ft:3 `return x`
              help: assign the result to a name, and return it at the end of the function
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    for i in range(n):
        return x
",
        expect![[r#"
            [syntax::return] `return` stands here under a condition or in a loop of the running program
              at t.ft:3 `return x`
              help: assign the result to a name, and return it at the end of the function
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    return \"a\"
",
        expect![[r#"
            [return::type] result 0 is a string; an entry returns tensors and numbers
              at t.ft:2 `return "a"`
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    return x, relu
",
        expect![[r#"
            [return::type] result 1 is a function; an entry returns tensors and numbers
              at t.ft:2 `return x, relu`
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    return empty((n,), f32)
",
        expect![[r#"
            [value::empty] a tensor made by `empty` has no values yet
              at t.ft:2 `return empty((n,), f32)`
        "#]],
    );
    check(
        "def f(x: f32[n]) -> f32[n + 1]:
    return x
",
        expect![[r#"
            [return::shape] dimension 0 of the result x is annotated as n + 1 and is n
              at t.ft:1 `f32[n + 1]`
        "#]],
    );
    check(
        "def f(x: f32[n]) -> f32:
    return x
",
        expect![[r#"
            [return::rank] result 0 is annotated with 0 dimensions, and a tensor of 1 dimension is returned
              at t.ft:1 `f32`
        "#]],
    );
    check(
        "def f(x: f32[n]) -> (f32, f32):
    return x[0]
",
        expect![[r#"
            [return::count] `f` returns 1 value, and its annotation says 2
              at t.ft:1 `(f32, f32)`
        "#]],
    );
    check(
        "def f(x: f32[n]) -> i32[n]:
    return x
",
        expect![[r#"
            [type::store] `f32` is stored into `i32`, which needs a conversion
              at t.ft:1 `i32[n]`
              help: write `cast(…, i32)`, which truncates, or make the target a float
        "#]],
    );
    check(
        "def f(x: f32[n]) -> i32:
    pass
",
        expect![[r#"
            [return::count] `f` returns 0 values, and its annotation says 1
              at t.ft:1 `i32`
        "#]],
    );
}

#[test]
fn annotations() {
    check(
        "def f(x: float32[n]):
    return x
",
        expect![[r#"
            [annotation::type] `float32` is no element type
              at t.ft:1 `float32`
              help: did you mean `f32`?
        "#]],
    );
    check(
        "def f(n: i32, x: f32[n]):
    return x
",
        expect![[r#"
            [shape::data] `n` is a parameter whose value is known only when the program runs, and no size
              at t.ft:1 `n`
              at t.ft:1 `n`: declared here
              help: leave the parameter out: `n` is then the size of the dimension; or annotate it `static`
        "#]],
    );
    check(
        "def f(x: f32[n:m]):
    return x
",
        expect![[r#"
            [annotation::size] a size is an integer expression over names
              at t.ft:1 `n:m`
              help: give every dimension a size: `f32[n, 3]`
        "#]],
    );
    check(
        "def f(x: \"f32\"):
    return x
",
        expect![[r#"
            [annotation::form] this is no type of a tensor
              at t.ft:1 `"f32"`
              help: write `f32`, `f32[n, m]`, `inout[f32[n]]` or `static`
        "#]],
    );
    check(
        "def f(x: f32[n, m], y: f32 = 3.0):
    return x
",
        expect![[r#"
            [entry::default] `y` is a tensor, which has no default in an entry
              at t.ft:1 `3.0`
              help: annotate it `static` if its value is known when compiling
        "#]],
    );
    check(
        "def f(x: f32[n / 2]):
    return x
",
        expect![[r#"
            [shape::type] a size is an integer expression over sizes, and this is a scalar
              at t.ft:1 `n / 2`
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
fn assertions_that_fail_now() {
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
            [assert::message] a message shows scalars, and this is a tensor of 1 dimension
              at t.ft:2 `x`
        "#]],
    );
}

#[test]
fn statements_without_effect() {
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    x + 1
",
        expect![[r#"
            [syntax::no_effect] this statement has no effect
              at t.ft:2 `x + 1`
              help: assign the value to a name, or leave it out
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    \"text\" + \"text\"
",
        expect![[r#"
            [syntax::no_effect] this statement has no effect
              at t.ft:2 `"text" + "text"`
              help: assign the value to a name, or leave it out
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    label(3)
",
        expect![[r#"
            [type::operand] `label` takes a string, and this is an integer
              at t.ft:2 `3`
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    t = label(\"a\")
",
        expect![[r#"
            [syntax::label] `label` is a statement of its own
              at t.ft:2 `label("a")`
              help: put `label("L1")` on the line before the statement that it names
        "#]],
    );
}

#[test]
fn several() {
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    a = x + qq
    for i in range(n):
        c = x[i, i]
        d = b[i] + b[i]
    if k[0] > 0:
        e = rr
    else:
        e = ss
    return a, c
",
        expect![[r#"
            [name::unknown] there is no `qq` here
              at t.ft:2 `qq`
            [index::rank] `x` has 1 dimension, and 2 indices are given
              at t.ft:4 `x[i, i]`
            [type::bool] `+` computes with numbers, and `bool` is none
              at t.ft:5 `b[i] + b[i]`
              help: `|` is true if one of them is; to count, `cast(x, i32)`
            [name::unknown] there is no `rr` here
              at t.ft:7 `rr`
            [name::unknown] there is no `ss` here
              at t.ft:9 `ss`
        "#]],
    );
}

#[test]
fn too_large() {
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
            [static::sequence] a static sequence has at most 1048576 items, and this has 100000000
              at t.ft:2 `range(100000000)`
        "#]],
    );
}

#[test]
fn element_types_are_no_names() {
    check(
        "def f(x: f32[f64]):\n    return x\n",
        expect![[r#"
        [annotation::size] `f64` is an element type, and no size
          at t.ft:1 `f64`
          help: give the size another name
    "#]],
    );
    check(
        "def f(f32: f32[n]):\n    return f32\n",
        expect![[r#"
        [entry::parameter] `f32` is an element type, and no name for a parameter
          at t.ft:1 `f32`
          help: use another name
    "#]],
    );
}
