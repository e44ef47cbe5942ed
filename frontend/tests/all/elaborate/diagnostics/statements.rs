//! Diagnostics for faulty loops, results, annotations and statements.

use super::check;
use expect_test::expect;

#[test]
fn loops() {
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    for i in x:
        pass
",
        expect![[r#"
            [type::iterate] expected a range to loop over, found a tensor of 1 dimension
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
            [type::iterate] expected a range to loop over, found a scalar
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
            [range::step] the step of a range cannot be 0
              at t.ft:2 `range(0, n, 0)`
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    for i, j in range(n):
        pass
",
        expect![[r#"
            [type::unpack] a loop over a `range` takes one loop variable
              at t.ft:2 `for i, j in range(n):`
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    for i in ndrange(n, n):
        pass
",
        expect![[r#"
            [type::unpack] found 1 loop variable for 2 ranges
              at t.ft:2 `i`
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    for i in range(x[0]):
        pass
",
        expect![[r#"
            [range::type] expected an integer as a bound of a range, found `f32`
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
            [type::unpack] expected 3 values to unpack, found a tuple
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
            [syntax::return] `return` under a run-time condition or in a run-time loop is not supported
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
            [syntax::return] `return` under a run-time condition or in a run-time loop is not supported
              at t.ft:3 `return x`
              help: assign the result to a name, and return it at the end of the function
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    return \"a\"
",
        expect![[r#"
            [return::type] expected a tensor or a number as result 0, found a string
              at t.ft:2 `return "a"`
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    return x, relu
",
        expect![[r#"
            [return::type] expected a tensor or a number as result 1, found a function
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
            [return::shape] dimension 0 of the result x is annotated as n + 1, but is n
              at t.ft:1 `f32[n + 1]`
        "#]],
    );
    check(
        "def f(x: f32[n]) -> f32:
    return x
",
        expect![[r#"
            [return::rank] result 0 is annotated with 0 dimensions, but is a tensor of 1 dimension
              at t.ft:1 `f32`
        "#]],
    );
    check(
        "def f(x: f32[n]) -> (f32, f32):
    return x[0]
",
        expect![[r#"
            [return::count] `f` returns 1 value, but its annotation has 2
              at t.ft:1 `(f32, f32)`
        "#]],
    );
    check(
        "def f(x: f32[n]) -> i32[n]:
    return x
",
        expect![[r#"
            [type::store] cannot store `f32` into `i32` without a conversion
              at t.ft:1 `i32[n]`
              help: write `cast(…, i32)`, which truncates, or make the target a float
        "#]],
    );
    check(
        "def f(x: f32[n]) -> i32:
    pass
",
        expect![[r#"
            [return::count] `f` returns 0 values, but its annotation has 1
              at t.ft:1 `i32`
              help: end it with `return …`
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
            [annotation::type] `float32` is not an element type
              at t.ft:1 `float32`
              help: did you mean `f32`?
        "#]],
    );
    check(
        "def f(n: i32, x: f32[n]):
    return x
",
        expect![[r#"
            [shape::data] expected a size, found the parameter `n`, whose value is known only at run time
              at t.ft:1 `n`
              at t.ft:1 `n`: declared here
              help: leave out the parameter, so that `n` is the size of the dimension, or annotate it `static`
        "#]],
    );
    check(
        "def f(x: f32[n:m]):
    return x
",
        expect![[r#"
            [annotation::size] expected a size: an integer expression over names
              at t.ft:1 `n:m`
              help: give every dimension a size: `f32[n, 3]`
        "#]],
    );
    check(
        "def f(x: \"f32\"):
    return x
",
        expect![[r#"
            [annotation::form] expected the type of a tensor
              at t.ft:1 `"f32"`
              help: write `f32`, `f32[n, m]`, `inout[f32[n]]` or `static`
        "#]],
    );
    check(
        "def f(x: f32[n, m], y: f32 = 3.0):
    return x
",
        expect![[r#"
            [entry::default] `y` is a tensor and cannot have a default in an entry
              at t.ft:1 `3.0`
              help: annotate it `static` if its value is known when compiling
        "#]],
    );
    check(
        "def f(x: f32[n / 2]):
    return x
",
        expect![[r#"
            [shape::type] expected an integer expression over sizes, found a scalar
              at t.ft:1 `n / 2`
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
            [type::operand] `label` takes a string, found an integer
              at t.ft:2 `3`
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    t = label(\"a\")
",
        expect![[r#"
            [syntax::label] `label` cannot be part of an expression
              at t.ft:2 `label("a")`
              help: put `label("L1")` on the line before the statement that it names
        "#]],
    );
}

#[test]
fn several_mistakes() {
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
            [index::rank] `x` has 1 dimension, but 2 indices are given
              at t.ft:4 `x[i, i]`
            [type::bool] `+` takes numbers, found `bool`
              at t.ft:5 `b[i] + b[i]`
              help: write `|` for a logical or, or convert with `cast(x, i32)` to count
            [name::unknown] there is no `rr` here
              at t.ft:7 `rr`
            [name::unknown] there is no `ss` here
              at t.ft:9 `ss`
        "#]],
    );
}
