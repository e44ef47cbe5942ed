//! Refusals of Python constructs outside the language, each with a replacement.

use super::check;
use expect_test::expect;

#[test]
fn statements_outside_the_language() {
    check(
        r#"def f(x: f32[n]) -> f32:
    while x > 0:
        break
    for i in range(n):
        continue
    try:
        raise Error
    except E:
        pass
    finally:
        pass
    with a as b:
        pass
    yield x
    await x
    async def g(): pass
    global a
    nonlocal b
    del x
    import numpy as np
    from libop import relu
    match x:
        case 1:
            pass
    type T = f32
    def g():
        return 1
    @g
    def h(): pass
    class A: pass
import numpy
class B:
    def f(self): pass
"#,
        expect![[r#"
            python::while: `while` loops are not supported
              2:5 `while`
              help: write `for i in range(n)` with the maximum number of iterations, and an `if` in its body
            python::break: `break` is not supported
              3:9 `break`
              help: put the rest of the body under `if not done:`, with `done` a `bool`
            python::continue: `continue` is not supported
              5:9 `continue`
              help: put the rest of the body under `if`
            python::exception: exceptions are not supported
              6:5 `try`
              help: check first with `if` or `assert cond, "message"`; in a schedule, with `if s.can(…)`
            python::exception: exceptions are not supported
              7:9 `raise`
              help: write `assert cond, "message"`
            python::exception: exceptions are not supported
              8:5 `except`
              help: check first with `if` or `assert cond, "message"`
            python::exception: exceptions are not supported
              10:5 `finally`
              help: write the statements after the others
            python::with: `with` blocks are not supported
              12:5 `with`
              help: write the statements without `with`; a tensor ends with its block
            python::generator: generators are not supported
              14:5 `yield`
              help: return a tensor, or write to an `inout` parameter
            python::async: asynchronous code is not supported
              15:5 `await`
              help: write a plain call
            python::async: asynchronous code is not supported
              16:5 `async`
              help: write a plain function, and run its loops in parallel by a schedule
            python::global: global variables are not supported
              17:5 `global`
              help: pass the tensor as a parameter, and return it or make it `inout`
            python::global: variables of an enclosing function are not supported
              18:5 `nonlocal`
              help: pass the tensor as a parameter
            python::del: `del` is not supported
              19:5 `del`
              help: leave it out: a tensor ends with the block where it was first assigned
            python::import: importing a whole module is not supported
              20:5 `import`
              help: import names from it: `from mymodule import f, g`; names of libop need no import
            python::import: an import inside a function is not supported
              21:5 `from libop import relu`
              help: move it to the top of the file
            python::match: `match` is not supported
              22:5 `match`
              help: write `if … elif … else`
            python::class: type aliases are not supported
              25:5 `type`
              help: write the type where it is used
            python::closure: a function inside a function is not supported
              26:5 `def`
              help: move it to the top level, and pass the values it uses as parameters
            python::closure: a function inside a function is not supported
              28:5 `@`
              help: move it to the top level, and pass the values it uses as parameters
            python::class: classes are not supported
              30:5 `class`
              help: write functions, and pass tensors to them
            python::import: importing a whole module is not supported
              31:1 `import`
              help: import names from it: `from mymodule import f, g`; names of libop need no import
            python::class: classes are not supported
              32:1 `class`
              help: write functions, and pass tensors to them
        "#]],
    );
}

#[test]
fn for_else() {
    check(
        r#"def f():
    for i in range(3):
        pass
    else:
        pass
    while a:
        pass
    else:
        pass
    else:
        pass
    if a:
        pass
    else:
        pass
    elif b:
        pass
"#,
        expect![[r#"
            python::for_else: `else` after a `for` is not supported
              4:5 `else`
              help: loops always run to their end: write the statements after the loop
            python::while: `while` loops are not supported
              6:5 `while`
              help: write `for i in range(n)` with the maximum number of iterations, and an `if` in its body
            python::for_else: `else` after a `while` is not supported
              8:5 `else`
              help: write the statements after the loop
            syntax::unexpected: unexpected `else` after `else`
              10:5 `else`
              help: `else` is the last branch: write `elif` for the ones before it
            syntax::unexpected: unexpected `elif` after `else`
              16:5 `elif`
              help: `else` is the last branch: write `elif` for the ones before it
        "#]],
    );
}

#[test]
fn expressions_outside_the_language() {
    check(
        r#"def f(x, *args):
    if (y := 1): pass
    a = f(*x)
    b = f(**x)
    c, *d = x
    e = {1: 2}
    g = {1, 2}
    h = lambda x: x
    i = sum(x for x in y)
    j = [x for x in y for z in x]
    k = yield x
    l = x ? y : z
    m = a && b
    n = a || b
    o = !a
    p = a <> b
    q = x++
    r = b"x"
    s = 3j
    t = [a, b for a in c]
    u = await x
    v = s.permute(L, lambda i: i) + t.other(lambda i: i)
    w = 1 + not x
"#,
        expect![[r#"
            python::star: `*` among the parameters is not supported
              1:10 `*`
              help: name each parameter; calls can pass any of them by position or by name
            python::walrus: `:=` is not supported
              2:11 `:=`
              help: assign on a line of its own: `t = e`
            python::star: unpacking with `*` is not supported
              3:11 `*`
              help: write the elements one by one
            python::star: unpacking with `*` is not supported
              4:11 `**`
              help: write the elements one by one
            python::star: unpacking with `*` is not supported
              5:8 `*`
              help: write the elements one by one
            python::dict: dictionaries and sets are not supported
              6:9 `{`
              help: use a list or tuple of static values, or a tensor
            python::dict: dictionaries and sets are not supported
              7:9 `{`
              help: use a list or tuple of static values, or a tensor
            python::lambda: lambdas are not supported, except in `s.permute` of a schedule
              8:9 `lambda x: x`
              help: write a function with `def` and use its name
            python::generator: generator expressions are not supported
              9:15 `for`
              help: write a list: `[f(k) for k in range(3)]` (static), or a loop for tensors
            python::comprehension: a second `for` in a comprehension is not supported
              10:23 `for`
              help: write `for i, j in ndrange(n, m)`, or nest the comprehensions
            python::generator: generators are not supported
              11:9 `yield`
              help: return a tensor, or write to an `inout` parameter
            syntax::character: unexpected `?`
              12:11 `?`
              help: write `a if cond else b`
            syntax::unexpected: expected an expression, found `&`
              13:12 `&`
              help: write `and`, or `&` for bits and bools element by element
            syntax::unexpected: expected an expression, found `|`
              14:12 `|`
              help: write `or`, or `|` for bits and bools element by element
            syntax::character: unexpected `!`
              15:9 `!`
              help: write `not x`, or `!=` to compare
            syntax::unexpected: expected an expression, found `>`
              16:12 `>`
              help: write `!=`
            syntax::unexpected: expected an expression, found the end of the line
              17:11 `+`
              help: write the right operand; to count, write `i += 1`
            python::bytes: byte strings are not supported
              18:9 `b\"x\"`
              help: leave out the `b`
            syntax::number: `3j` is not a number
              19:9 `3j`
              help: complex numbers are not supported: keep the real and the imaginary part in two tensors
            syntax::unexpected: expected an operator, a comma or a closing bracket, found the keyword `for`
              20:15 `for`
              help: write one expression before `for`: `[(i, j) for i, j in …]`
            python::async: asynchronous code is not supported
              21:9 `await`
              help: write a plain call
            python::lambda: lambdas are not supported, except in `s.permute` of a schedule
              22:45 `lambda i: i`
              help: write a function with `def` and use its name
            syntax::unexpected: expected an operand, found the keyword `not`
              23:13 `not`
              help: `not` binds looser than the operator before it: write `(not x)`
        "#]],
    );
}

#[test]
fn invalid_targets() {
    check(
        r#"def f():
    f(x) = 1
    1 = x
    None = x
    a + b = c
    a < b = c
    a, = b
    () = b
    a, (b,) = d
    [a, f()] = c
    a = b = c
    a, b += c
    f() += 1
    a[i]: f32 = 1
    (a): f32
    for x[i] in y: pass
    for i, in y: pass
    a = [i for i, in y]
"#,
        expect![[r#"
            syntax::target: cannot assign to a call
              2:5 `f(x)`
              help: assign to a name or to elements: `t = e`, `t[i] = e`, `t[...] = e`
            syntax::target: cannot assign to a literal
              3:5 `1`
              help: assign to a name or to elements: `t = e`, `t[i] = e`, `t[...] = e`
            syntax::target: cannot assign to a constant
              4:5 `None`
              help: assign to a name or to elements: `t = e`, `t[i] = e`, `t[...] = e`
            syntax::target: cannot assign to an expression
              5:5 `a + b`
              help: assign to a name or to elements: `t = e`, `t[i] = e`, `t[...] = e`
            syntax::target: cannot assign to a comparison
              6:5 `a < b`
              help: assign to a name or to elements: `t = e`, `t[i] = e`, `t[...] = e`
            syntax::target: cannot assign to an empty tuple
              8:5 `()`
              help: leave it out: write the value alone
            syntax::target: cannot assign to a call
              10:9 `f()`
              help: assign to a name or to elements: `t = e`, `t[i] = e`, `t[...] = e`
            python::chained_assignment: chained assignment is not supported
              11:11 `= c`
              help: write one assignment per line
            syntax::target: cannot assign to a tuple
              12:5 `a, b`
              help: write one augmented assignment per element
            syntax::target: cannot assign to a call
              13:5 `f()`
              help: assign to a name or to elements: `t = e`, `t[i] = e`, `t[...] = e`
            syntax::target: cannot assign to an annotated target that is not a name
              14:5 `a[i]`
              help: declare one name: `t: f32[n] = zeros((n,), f32)`
            syntax::target: cannot assign to an annotated target that is not a name
              15:5 `(a)`
              help: declare one name: `t: f32[n] = zeros((n,), f32)`
            syntax::unexpected: expected `in`, found `[`
              16:10 `[`
              help: write `for i in range(n):`
            syntax::target: unexpected `,` after a single loop variable
              17:9 `i,`
              help: write `for i in …`
            syntax::target: unexpected `,` after a single loop variable
              18:16 `i,`
              help: write `for i in …`
        "#]],
    );
}
