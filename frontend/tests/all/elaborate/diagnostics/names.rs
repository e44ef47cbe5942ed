//! Diagnostics for faulty names.

use super::{check, check_file};
use expect_test::expect;

#[test]
fn unknown_names() {
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    return x + yy
",
        expect![[r#"
            [name::unknown] there is no `yy` here
              at t.ft:2 `yy`
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    return sofmax(x)
",
        expect![[r#"
            [name::unknown] there is no `sofmax` here
              at t.ft:2 `sofmax`
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    return relo(x)
",
        expect![[r#"
            [name::unknown] there is no `relo` here
              at t.ft:2 `relo`
              help: did you mean `relu`?
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    return np.sum(x)
",
        expect![[r#"
            [name::unknown] there is no `np` here
              at t.ft:2 `np`
              help: write the operator's name alone: `exp(x)`, `sum(x, axis=0)`
        "#]],
    );
}

#[test]
fn an_error_is_reported_once() {
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    t = qq + 1
    u = t * 2
    t[0] = 1
    v = x + zz
    return t, u, v
",
        expect![[r#"
            [name::unknown] there is no `qq` here
              at t.ft:2 `qq`
            [name::unknown] there is no `zz` here
              at t.ft:5 `zz`
        "#]],
    );
}

#[test]
fn names_after_their_block() {
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    for i in range(n):
        t = x[i]
    return t
",
        expect![[r#"
            [name::unknown] there is no `t` here
              at t.ft:4 `t`
              at t.ft:3 `t`: this one ended with its block
              help: give `t` its first value before the block
        "#]],
    );
}

#[test]
fn assignments_to_other_targets_than_tensors() {
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    x[0] = 1
",
        expect![[r#"
            [assign::read_only] cannot write to `x`: it is a read-only parameter
              at t.ft:2 `x[0]`
              help: annotate it with `inout[f32[n]]` to write it, or copy it: `t = x`
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    n = 3
",
        expect![[r#"
            [assign::size] cannot assign to `n`: it is a size
              at t.ft:2 `n`
              help: use another name
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    for i in range(n):
        i = 2
",
        expect![[r#"
            [assign::iterator] cannot assign to `i`: it is the iterator of an enclosing loop
              at t.ft:3 `i`
              help: use another name; the next value comes from the `range`
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    t = [1, 2]
    t[0] = 3
",
        expect![[r#"
            [assign::static] cannot write to items of `t`: it is a list known when compiling
              at t.ft:3 `t`
              help: make a tensor: `zeros((n,), f32)`
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    t = [1]
    for i in range(n):
        t = [2]
",
        expect![[r#"
            [assign::static] cannot change `t` at run time: it is a list known when compiling
              at t.ft:4 `t`
              help: use another name, or assign it under static conditions
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    relu = 3
    f[0] = 1
",
        expect![[r#"
            [assign::target] cannot write to `f`: it is a function
              at t.ft:3 `f`
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    x = y
",
        expect![[r#"
            [assign::parameter] cannot assign to `x`: it is a parameter, which names a tensor of the caller
              at t.ft:2 `x`
              help: use another name for a new tensor: `x_new = …`; to write into the caller's, `x[...] = …` (in an entry, annotate the parameter with `inout[…]`)
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    total(x)[0] = 1
",
        expect![[r#"
            [assign::target] cannot write to the result of a call
              at t.ft:2 `total(x)`
              help: give it a name first
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    3 = x
",
        expect![[r#"
            [syntax::target] cannot assign to a literal
              at t.ft:2 `3`
              help: assign to a name or to elements: `t = e`, `t[i] = e`, `t[...] = e`
        "#]],
    );
}

#[test]
fn declarations() {
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    t: f64 = 0.0
    t: f64 = 1.0
",
        expect![[r#"
            [assign::declared] `t` is already declared
              at t.ft:3 `t`
              at t.ft:2 `t`: first here
              help: use another name for a new tensor, or leave out the type to write into the existing one
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    t: f64[n]
",
        expect![[r#"
            [assign::no_value] expected a value for `t`
              at t.ft:2 `t`
              help: write `= empty(shape, dtype)` if it is written later
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    t: static = 3
",
        expect![[r#"
            [annotation::static] `static` is only for parameters
              at t.ft:2 `static`
              help: write `t = …`: it is static if its value is
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    t: f64[n, 2] = empty((n, 3), f64)
",
        expect![[r#"
            [shape::declare] `t` is declared as `f64[n, 2]`, but its value is `f64[n, 3]`
              at t.ft:2 `empty((n, 3), f64)`
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    t: float = 1.0
",
        expect![[r#"
            [annotation::type] `float` is not an element type
              at t.ft:2 `float`
              help: did you mean `f64`?
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    t: f64[k[0]] = 0.0
",
        expect![[r#"
            [shape::data] this size depends on values of tensors
              at t.ft:2 `k[0]`
              help: a tensor's shape is known before the program runs: use sizes of parameters, or `static` parameters
        "#]],
    );
}

#[test]
fn attributes() {
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    return x.sum()
",
        expect![[r#"
            [name::attribute] a tensor has no `sum`
              at t.ft:2 `sum`
              help: methods are not supported; write `sum(x)`
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    return x.size
",
        expect![[r#"
            [name::attribute] a tensor has no `size`
              at t.ft:2 `size`
              help: methods are not supported; write `x.shape[0]`, with the number of the dimension
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    return x.total()
",
        expect![[r#"
            [name::attribute] a tensor has no `total`
              at t.ft:2 `total`
              help: methods are not supported; write `total(x)`
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    return n.shape[0]
",
        expect![[r#"
            [index::range] index 0 is out of range: the sequence has 0 items
              at t.ft:2 `0`
        "#]],
    );
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], y: inout[f32[n]]):
    return x.shape[1]
",
        expect![[r#"
            [index::range] index 1 is out of range: the sequence has 1 item
              at t.ft:2 `1`
        "#]],
    );
}

#[test]
fn modules() {
    check(
        "N = M
M = N

def f(x: f32[n]):
    return x * N
",
        expect![[r#"
            [name::cycle] `N` is defined in terms of itself
              at t.ft:1 `N`
        "#]],
    );
    check(
        "N = zeros((3,), f32)

def f(x: f32[n]):
    return x * N
",
        expect![[r#"
            [static::module] expected a static value for `N`, found a tensor of 1 dimension
              at t.ft:1 `zeros((3,), f32)`
              help: move it into a function: values at the top level of a file are known when compiling
        "#]],
    );
}

#[test]
fn files_are_checked_as_a_whole() {
    check_file(
        "def g(a, w):\n    return aa + w\n\ndef h(a: f32[n], w: static):\n    t = [i * n for i in range(w)]\n    return a + tt\n\ndef f(x: f32[n]):\n    return g(x, 1) + qq\n\n@schedule(f)\ndef s1(s):\n    s.parallelize(whatever)\n",
        expect![[r#"
            [name::unknown] there is no `aa` here
              at t.ft:2 `aa`
              note: in `g`, called at t.ft:9
            [name::unknown] there is no `tt` here
              at t.ft:6 `tt`
            [name::unknown] there is no `qq` here
              at t.ft:9 `qq`
            [name::unknown] there is no `whatever` here
              at t.ft:13 `whatever`
              help: write names of loops, statements and tensors as strings: `"whatever"`
        "#]],
    );
}

#[test]
fn one_mistake_is_reported_once() {
    // The mistake stands in a template that is called twice, then in a static value used later, then in a name assigned
    // again.
    check_file(
        "def t(x):
    if x.ndim == 1:
        return x + \"a\"
    return x

def f(x: f32[n]):
    a = t(x)
    b = t(x)
    return a + b

def g(x: f32[n]):
    shape = (2, 3)
    shape += missing
    y = zeros(shape, f32)
    return y[0, 0, 0]

def h(x: f32[n]):
    k = 1
    k = x + \"b\"
    return x[k, k]
",
        expect![[r#"
            [type::operand] `+` takes tensors and numbers, found a string
              at t.ft:3 `"a"`
              note: in `t`, called at t.ft:7
            [name::unknown] there is no `missing` here
              at t.ft:13 `missing`
            [type::operand] `+` takes tensors and numbers, found a string
              at t.ft:19 `"b"`
        "#]],
    );
    check_file(
        "def keep(x: f32[m]):
    x[...] = 7

def main(x: f32[n]):
    t = x
    keep(t)
    return t
",
        expect![[r#"
            [assign::read_only] cannot write to `x`: it is a read-only parameter
              at t.ft:2 `x[...]`
              help: annotate it with `inout[f32[m]]` to write it, or copy it: `t = x`
        "#]],
    );
}
