//! Every diagnostic of the parser, as people see it.

use expect_test::{Expect, expect};
use std::fmt::Write;
use weft_ast::diag::Diagnostic;
use weft_ast::span::{FileId, SourceMap};
use weft_frontend::parse::parse;

/// Code, message, place with the text there, and help of each diagnostic.
fn check(text: &str, expected: Expect) {
    let mut sources = SourceMap::default();
    let file = sources.add("x.ft", None, text);
    let (_, diags) = parse(text, file);
    let rendered: String = diags.iter().map(|d| render(&sources, d)).collect();
    expected.assert_eq(&rendered);
}

fn render(sources: &SourceMap, diag: &Diagnostic) -> String {
    let mut out = format!("{}: {}\n", diag.code, diag.message);
    for label in &diag.labels {
        let at = sources.line_col(label.span).unwrap();
        let found = sources.text(label.span).escape_debug().to_string();
        let found = if found.chars().count() > 40 { found.chars().take(40).collect::<String>() + "…" } else { found };
        let why = if label.text.is_empty() { String::new() } else { format!(" {}", label.text) };
        writeln!(out, "  {}:{} `{found}`{why}", at.line, at.column).unwrap();
    }
    writeln!(out, "  help: {}", diag.help.as_deref().unwrap_or("none")).unwrap();
    diag.notes.iter().for_each(|note| writeln!(out, "  note: {note}").unwrap());
    out
}

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
            python::while: there are no `while` loops
              2:5 `while`
              help: write `for i in range(n)` with the largest number of rounds, and `if` inside it
            python::break: a loop cannot be left early
              3:9 `break`
              help: put what must not run any more under `if not done:`, with `done` a bool
            python::continue: a round of a loop cannot be cut short
              5:9 `continue`
              help: put the rest of the body under `if`
            python::exception: there are no exceptions
              6:5 `try`
              help: test first: `if`, or `assert cond, "message"`; in a schedule `if s.can(…)`
            python::exception: there are no exceptions
              7:9 `raise`
              help: write `assert cond, "message"`
            python::exception: there are no exceptions
              8:5 `except`
              help: test first: `if`, or `assert cond, "message"`
            python::exception: there are no exceptions
              10:5 `finally`
              help: write the statements after the others
            python::with: there are no `with` blocks
              12:5 `with`
              help: write the statements one after the other; tensors end with their block
            python::generator: there are no generators
              14:5 `yield`
              help: return a tensor, or write to an `inout` parameter
            python::async: there is nothing asynchronous
              15:5 `await`
              help: write a plain call
            python::async: there is nothing asynchronous
              16:5 `async`
              help: write a plain function; loops are made parallel by a schedule
            python::global: there are no global variables
              17:5 `global`
              help: pass the tensor as a parameter, and return it or make it `inout`
            python::global: there are no variables of an enclosing function
              18:5 `nonlocal`
              help: pass the tensor as a parameter
            python::del: nothing is deleted by hand
              19:5 `del`
              help: leave it out: a tensor ends with the block where it was first assigned
            python::import: a module is not imported as a whole
              20:5 `import`
              help: import names from it: `from mymodule import f, g`; libop's need no import
            python::import: an import inside a function
              21:5 `from libop import relu`
              help: move it to the top of the file
            python::match: there is no `match`
              22:5 `match`
              help: write `if … elif … else`
            python::class: there are no type aliases
              25:5 `type`
              help: write the type where it is used
            python::closure: a function inside a function
              26:5 `def`
              help: there are no closures: move it to the top level, and pass it what it uses as parameters
            python::closure: a function inside a function
              28:5 `@`
              help: there are no closures: move it to the top level, and pass it what it uses as parameters
            python::class: there are no classes
              30:5 `class`
              help: write functions, and pass tensors to them
            python::import: a module is not imported as a whole
              31:1 `import`
              help: import names from it: `from mymodule import f, g`; libop's need no import
            python::class: there are no classes
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
            python::for-else: `else` after a `for`
              4:5 `else`
              help: loops always run to their end: write the statements after the loop
            python::while: there are no `while` loops
              6:5 `while`
              help: write `for i in range(n)` with the largest number of rounds, and `if` inside it
            python::for-else: `else` after a `while`
              8:5 `else`
              help: write the statements after the loop
            syntax::unexpected: `else` after `else`
              10:5 `else`
              help: `else` is the last branch: write `elif` for the ones before it
            syntax::unexpected: `elif` after `else`
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
            python::star: `*` among the parameters
              1:10 `*`
              help: name each parameter; every one can be given by position or by name
            python::walrus: there is no `:=`
              2:11 `:=`
              help: assign on a line of its own: `t = e`
            python::star: there is no unpacking with `*`
              3:11 `*`
              help: write the elements one by one
            python::star: there is no unpacking with `*`
              4:11 `**`
              help: write the elements one by one
            python::star: there is no unpacking with `*`
              5:8 `*`
              help: write the elements one by one
            python::dict: there are no dictionaries and sets
              6:9 `{`
              help: use a list or tuple of static values, or a tensor
            python::dict: there are no dictionaries and sets
              7:9 `{`
              help: use a list or tuple of static values, or a tensor
            python::lambda: there are no lambdas, except in `s.permute` of a schedule
              8:9 `lambda x: x`
              help: write a function with `def` and use its name
            python::generator: there are no generator expressions
              9:15 `for`
              help: write a list: `[f(k) for k in range(3)]` (static), or a loop for tensors
            python::comprehension: a comprehension has one `for`
              10:23 `for`
              help: write `for i, j in ndrange(n, m)`, or a comprehension inside the other
            python::generator: there are no generators
              11:9 `yield`
              help: return a tensor, or write to an `inout` parameter
            syntax::character: `?` cannot stand here
              12:11 `?`
              help: write `a if cond else b`
            syntax::unexpected: expected an expression, found `&`
              13:12 `&`
              help: write `and`, or `&` for bits and bools element by element
            syntax::unexpected: expected an expression, found `|`
              14:12 `|`
              help: write `or`, or `|` for bits and bools element by element
            syntax::character: `!` cannot stand here
              15:9 `!`
              help: write `not x`, or `!=` to compare
            syntax::unexpected: expected an expression, found `>`
              16:12 `>`
              help: write `!=`
            syntax::unexpected: expected an expression, found the end of the line
              17:11 `+`
              help: write the right operand; to count, write `i += 1`
            python::bytes: there are no strings of bytes
              18:9 `b\"x\"`
              help: leave the `b` out
            syntax::number: `3j` is no number
              19:9 `3j`
              help: there are no complex numbers: keep the real and the imaginary part in two tensors
            syntax::unexpected: expected an operator, a comma or a closing bracket, found the keyword `for`
              20:15 `for`
              help: a comprehension makes one expression for each: `[(i, j) for i, j in …]`
            python::async: there is nothing asynchronous
              21:9 `await`
              help: write a plain call
            python::lambda: there are no lambdas, except in `s.permute` of a schedule
              22:45 `lambda i: i`
              help: write a function with `def` and use its name
            syntax::unexpected: expected an operand, found the keyword `not`
              23:13 `not`
              help: `not` binds looser than the operator before it: write `(not x)`
        "#]],
    );
}

#[test]
fn targets() {
    check(
        r#"def f():
    f(x) = 1
    1 = x
    None = x
    a + b = c
    a < b = c
    a, = b
    () = b
    a, (b, c) = d
    [a, b] = c
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
            syntax::target: a call on the left of an assignment
              2:5 `f(x)`
              help: assign to a name or to elements: `t = e`, `t[i] = e`, `t[...] = e`
            syntax::target: a literal on the left of an assignment
              3:5 `1`
              help: assign to a name or to elements: `t = e`, `t[i] = e`, `t[...] = e`
            syntax::target: a constant on the left of an assignment
              4:5 `None`
              help: assign to a name or to elements: `t = e`, `t[i] = e`, `t[...] = e`
            syntax::target: an expression on the left of an assignment
              5:5 `a + b`
              help: assign to a name or to elements: `t = e`, `t[i] = e`, `t[...] = e`
            syntax::target: a comparison on the left of an assignment
              6:5 `a < b`
              help: assign to a name or to elements: `t = e`, `t[i] = e`, `t[...] = e`
            syntax::target: a tuple of fewer than two on the left of an assignment
              7:5 `a,`
              help: write the name without a comma
            syntax::target: a tuple of fewer than two on the left of an assignment
              8:5 `()`
              help: write the name without a comma
            syntax::target: a tuple inside a tuple or a list on the left of an assignment
              9:8 `(b, c)`
              help: unpack one level at a time: `a, b = f(x)`, then `c, d = b`
            syntax::target: a tuple inside a tuple or a list on the left of an assignment
              10:5 `[a, b]`
              help: unpack one level at a time: `a, b = f(x)`, then `c, d = b`
            python::chained-assignment: a chained assignment
              11:11 `= c`
              help: write one assignment per line
            syntax::target: a tuple on the left of an assignment
              12:5 `a, b`
              help: write one augmented assignment per element
            syntax::target: a call on the left of an assignment
              13:5 `f()`
              help: assign to a name or to elements: `t = e`, `t[i] = e`, `t[...] = e`
            syntax::target: something other than a name, with a type on the left of an assignment
              14:5 `a[i]`
              help: declare one name: `t: f32[n] = zeros((n,), f32)`
            syntax::target: something other than a name, with a type on the left of an assignment
              15:5 `(a)`
              help: declare one name: `t: f32[n] = zeros((n,), f32)`
            syntax::unexpected: expected `in`, found `[`
              16:10 `[`
              help: write `for i in range(n):`
            syntax::target: a comma after a single loop variable unpacks a tuple of one
              17:9 `i,`
              help: write `for i in …`
            syntax::target: a comma after a single loop variable unpacks a tuple of one
              18:16 `i,`
              help: write `for i in …`
        "#]],
    );
}

#[test]
fn missing_pieces() {
    check(
        r#"def f(x)
    y = 1
def g(x):
h = 2
def (x): pass
def if(x): pass
def k(x,, y): pass
def l(x) -> : pass
def m(x): return (x
def n(x):
    for i in range(n)
        y = i
    for i range(n): pass
    for in y: pass
    if x = 3: pass
    if x
        pass
    else if y: pass
    elif: pass
    x = 
    x = 1 +
    x = a if b
    x = a b
    x = f(a b)
    x = f(a, b=1, c)
    x = f(a=1, a=2)
    x = f(a.b=1)
    x = a[]
    x.if = 1
    return return
    assert
    x = = 1
    x == 1 == = 2
    pass pass
    print x
    x[i = 1] = 2
    x = a not b
    x -> y
    : x
"#,
        expect![[r#"
            syntax::unexpected: expected `:`, found the end of the line
              1:8 `)`
              help: the line starts with `def`, so it ends with `:`
            syntax::indentation: expected an indented block after `def`
              3:1 `def g(x):`
              help: indent the statements that belong to it by four spaces, or write `pass`
            syntax::unexpected: expected a name, found `(`
              5:5 `(`
              help: write a name here
            syntax::unexpected: expected a name, found the keyword `if`
              6:5 `if`
              help: choose another name: keywords cannot be names
            syntax::unexpected: expected a name, found `,`
              7:9 `,`
              help: write a name here
            syntax::unexpected: expected an expression, found `:`
              8:13 `:`
              help: write an expression before `:`, or remove it
            syntax::bracket: `(` is never closed
              9:18 `(` opened here
              help: write the matching `)`
            syntax::unexpected: expected `:`, found the end of the line
              11:21 `)`
              help: the line starts with `for`, so it ends with `:`
            syntax::unexpected: expected `in`, found `range`
              13:11 `range`
              help: write `for i in range(n):`
            syntax::unexpected: expected a name, found the keyword `in`
              14:9 `in`
              help: choose another name: keywords cannot be names
            syntax::unexpected: expected `:`, found `=`
              15:10 `=`
              help: `==` compares; `=` assigns, on a line of its own
            syntax::unexpected: expected `:`, found the end of the line
              16:8 `x`
              help: the line starts with `if`, so it ends with `:`
            syntax::unexpected: expected `:`, found the keyword `if`
              18:10 `if`
              help: write `elif cond:`
            syntax::unexpected: `elif` after `else`
              19:5 `elif`
              help: `else` is the last branch: write `elif` for the ones before it
            syntax::unexpected: expected an expression, found `:`
              19:9 `:`
              help: write an expression before `:`, or remove it
            syntax::unexpected: expected an expression, found the end of the line
              20:7 `=`
              help: write an expression after `=`
            syntax::unexpected: expected an expression, found the end of the line
              21:11 `+`
              help: write the right operand; to count, write `i += 1`
            syntax::unexpected: expected `else`, found the end of the line
              22:14 `b`
              help: a conditional expression has both cases: `a if cond else b`
            syntax::unexpected: expected an operator, a comma or the end of the line, found `b`
              23:11 `b`
              help: is an operator missing before `b`, or the end of the line?
            syntax::unexpected: expected an operator, a comma or a closing bracket, found `b`
              24:13 `b`
              help: is a comma missing before `b`?
            syntax::argument: a positional argument follows a keyword argument
              25:19 `c`
              help: put positional arguments first, or give this one its name: `name=…`
            syntax::argument: argument `a` is given twice
              26:16 `a`
              26:11 `a` first here
              help: remove one of them
            syntax::argument: expected a name before `=` in a call
              27:11 `a.b`
              help: `name=value` gives a parameter its value; `==` compares
            syntax::unexpected: expected an expression, found `]`
              28:11 `]`
              help: write an expression before `]`, or remove it
            syntax::unexpected: expected a name, found the keyword `if`
              29:7 `if`
              help: choose another name: keywords cannot be names
            syntax::unexpected: expected an expression, found the keyword `return`
              30:12 `return`
              help: `return` starts no expression; names cannot be keywords
            syntax::unexpected: expected an expression, found the end of the line
              31:5 `assert`
              help: write an expression after `assert`
            syntax::unexpected: expected an expression, found `=`
              32:9 `=`
              help: `=` follows a name or elements of a tensor: `t = e`, `t[i] = e`
            syntax::unexpected: expected an expression, found `=`
              33:15 `=`
              help: `=` follows a name or elements of a tensor: `t = e`, `t[i] = e`
            syntax::unexpected: expected an operator, a comma or the end of the line, found the keyword `pass`
              34:10 `pass`
              help: is an operator missing before `pass`, or the end of the line?
            syntax::unexpected: expected an operator, a comma or the end of the line, found `x`
              35:11 `x`
              help: there is no output while a program runs: return the value
            syntax::unexpected: expected an operator, a comma or a closing bracket, found `=`
              36:9 `=`
              help: `==` compares; `=` assigns, on a line of its own
            syntax::unexpected: expected an operator, a comma or the end of the line, found the keyword `not`
              37:11 `not`
              help: is an operator missing before `not`, or the end of the line?
            syntax::unexpected: expected an operator, a comma or the end of the line, found `->`
              38:7 `->`
              help: `->` stands before the type of a function's result: `def f(x: f32) -> f32:`
            syntax::unexpected: expected an expression, found `:`
              39:5 `:`
              help: write an expression before `:`, or remove it
        "#]],
    );
}

#[test]
fn parameters() {
    check(
        r#"def f(x, x): pass
def g(x=1, y): pass
def h(x, /, y): pass
def k(x, *, y): pass
def l(**k): pass
"#,
        expect![[r#"
            syntax::parameter: two parameters are called `x`
              1:10 `x`
              1:7 `x` first here
              help: rename one of them
            syntax::parameter: `y` has no default, but the one before has
              2:12 `y`
              help: give it a default too, or move it to the front
            python::star: `/` among the parameters
              3:10 `/`
              help: name each parameter; every one can be given by position or by name
            python::star: `*` among the parameters
              4:10 `*`
              help: name each parameter; every one can be given by position or by name
            python::star: `**` among the parameters
              5:7 `**`
              help: name each parameter; every one can be given by position or by name
        "#]],
    );
}

#[test]
fn top_level() {
    check(
        r#"x: f32 = 1
a, b = 1, 2
a.b = 1
x += 1
f(x)
return 1
assert x
if x:
    y = 
for i in range(3): pass
@schedule(f)
x = 1
@last
"#,
        expect![[r#"
            syntax::top-level: a declaration with a type at the top level of a file
              1:1 `x: f32 = 1`
              help: a file holds imports, assignments of static values (`n = 64`) and functions: put this into a function
            syntax::top-level: an assignment to something other than one name at the top level of a file
              2:1 `a, b = 1, 2`
              help: a file holds imports, assignments of static values (`n = 64`) and functions: put this into a function
            syntax::top-level: an assignment to something other than one name at the top level of a file
              3:1 `a.b = 1`
              help: a file holds imports, assignments of static values (`n = 64`) and functions: put this into a function
            syntax::top-level: an augmented assignment at the top level of a file
              4:1 `x += 1`
              help: a file holds imports, assignments of static values (`n = 64`) and functions: put this into a function
            syntax::top-level: an expression at the top level of a file
              5:1 `f(x)`
              help: a file holds imports, assignments of static values (`n = 64`) and functions: put this into a function
            syntax::top-level: `return` at the top level of a file
              6:1 `return 1`
              help: a file holds imports, assignments of static values (`n = 64`) and functions: put this into a function
            syntax::top-level: `assert` at the top level of a file
              7:1 `assert x`
              help: a file holds imports, assignments of static values (`n = 64`) and functions: put this into a function
            syntax::top-level: `if` at the top level of a file
              8:1 `if`
              help: a file holds imports, assignments of static values and functions: put this into a function
            syntax::unexpected: expected an expression, found the end of the line
              9:7 `=`
              help: write an expression after `=`
            syntax::top-level: `for` at the top level of a file
              10:1 `for`
              help: a file holds imports, assignments of static values and functions: put this into a function
            syntax::decorator: a decorator without a function after it
              11:2 `schedule(f)`
              help: write `def` on the next line
            syntax::decorator: a decorator without a function after it
              13:2 `last`
              help: write `def` on the next line
        "#]],
    );
}

#[test]
fn imports() {
    check(
        r#"from . import a
from .a import b
from a import *
from a.b import c
from a import b.c
from a
from a import
from a import (b, c
x = 1
"#,
        expect![[r#"
            python::import: a relative import
              1:6 `.`
              help: a module is a file beside this one: `from mymodule import f`
            python::import: a relative import
              2:6 `.`
              help: a module is a file beside this one: `from mymodule import f`
            python::import: a module is not imported as a whole
              3:15 `*`
              help: name what you need: `from mymodule import f, g`
            python::import: `a.b` is no module name
              4:6 `a.b`
              help: a module is a file beside this one, or `libop`: `from mymodule import f`
            syntax::unexpected: expected an operator, a comma or the end of the line, found `.`
              5:16 `.`
              help: is an operator missing before `.`, or the end of the line?
            syntax::unexpected: expected `import`, found the end of the line
              6:6 `a`
              help: write `from module import name`
            syntax::unexpected: expected a name, found the end of the line
              7:8 `import`
              help: write a name here
            syntax::bracket: `(` is never closed
              8:15 `(` opened here
              help: write the matching `)`
        "#]],
    );
}

#[test]
fn indentation() {
    check(
        r#"  x = 1
def f():
    y = 1
      z = 1
    if a:
        b = 1
      c = 1
   d = 1
def g():
pass
"#,
        expect![[r#"
            syntax::indentation: the first line of the file is indented
              1:3 `x`
              help: start it at the left margin
            syntax::indentation: unexpected indentation
              4:7 `z`
              3:5 `y` this statement takes no block
              help: indent it like the line before
            syntax::indentation: the line is indented like no block around it
              7:7 `c`
              help: indent it by 4 columns, like the block before
            syntax::indentation: the line is indented like no block around it
              8:4 `d`
              help: indent it by 0 columns, like the block before
            syntax::indentation: expected an indented block after `def`
              9:1 `def g():`
              help: indent the statements that belong to it by four spaces, or write `pass`
        "#]],
    );
}

#[test]
fn tabs() {
    check(
        r#"def f():
        x = 1
	y = 1
"#,
        expect![[r#"
            syntax::tabs: the indentation mixes tabs and spaces differently from the lines above
              3:1 `\t`
              help: indent with four spaces per block everywhere (`weft fmt` does it once the file parses)
        "#]],
    );
}

#[test]
fn brackets() {
    check(
        r#"x = (1, 2]
y = 3)
z = [1, (2, 3
def f():
    return {1
"#,
        expect![[r#"
            syntax::bracket: expected `)`, found `]`
              1:10 `]`
              1:5 `(` opened here
              help: close `(` with `)`
            syntax::bracket: `)` closes a bracket that was not opened
              2:6 `)`
              help: remove the `)`, or open it
            syntax::bracket: `(` is never closed
              3:9 `(` opened here
              help: write the matching `)`
            syntax::bracket: `{` is never closed
              5:12 `{` opened here
              help: write the matching `}`
        "#]],
    );
}

#[test]
fn strings() {
    check(
        r#"x = "abc
z = "\x4" "\u12" "\ud800" "\U00110000" "\N{DIGIT ONE}"
w = """abc
"#,
        expect![[r#"
            syntax::string: a string is not closed before the end of the line
              1:5 `\"` it starts here
              help: end it with `"`
            syntax::escape: an escape with too few digits
              2:6 `\\x4`
              help: `\x` takes 2 hexadecimal digits, `\u` 4 and `\U` 8; write `\\` for a backslash
            syntax::escape: an escape with too few digits
              2:12 `\\u12`
              help: `\x` takes 2 hexadecimal digits, `\u` 4 and `\U` 8; write `\\` for a backslash
            syntax::escape: an escape that is no character
              2:19 `\\ud800`
              help: write the number of a Unicode character
            syntax::escape: an escape that is no character
              2:28 `\\U00110000`
              help: write the number of a Unicode character
            syntax::escape: a character by its name
              2:41 `\\N{DIGIT ONE}`
              help: write the character itself, or its number: `\u03b1`
            syntax::string: a string is not closed before the end of the file
              3:5 `\"\"\"` it starts here
              help: end it with `"""`
        "#]],
    );
}

#[test]
fn format_strings() {
    check(
        r#"def f():
    a = f"{x" f"{}" f"}" f"{x:3}" f"{x!r}" f"{x=}"
    b = f"{x + }" f"{'\n'}" f"{f'{x}'}" f"{a b}"
    c = f"{" f'{(x' f"{ }"
"#,
        expect![[r#"
            syntax::format-string: `{` in an f-string is not closed
              2:11 `{`
              help: close the field with `}`, or write `{{` for the character
            syntax::format-string: an empty field in an f-string
              2:18 ``
              help: write an expression between the braces, or `{{}}` for the characters
            syntax::format-string: a single `}` in an f-string
              2:23 `}`
              help: write `}}` for the character
            syntax::format-string: a format after `:` in an f-string
              2:30 `:`
              help: write the value alone: `{x}`
            syntax::format-string: a conversion after `!` in an f-string
              2:39 `!`
              help: write the value alone: `{x}`
            syntax::format-string: a field of an f-string ends with `=`
              2:47 `x=`
              help: write the text yourself: `x={x}`
            syntax::unexpected: expected an expression, found the end of the line
              3:14 `+`
              help: write the right operand; to count, write `i += 1`
            syntax::format-string: a field of an f-string has `\` or `#`
              3:22 `\'\\n\'`
              help: give the value a name first, and write `{name}`
            syntax::format-string: an f-string inside an f-string
              3:32 `f\'{x}\'`
              help: write its pieces into the outer one
            syntax::unexpected: expected an operator, a comma or the end of the line, found `b`
              3:46 `b`
              help: is an operator missing before `b`, or the end of the line?
            syntax::format-string: `{` in an f-string is not closed
              4:11 `{`
              help: close the field with `}`, or write `{{` for the character
            syntax::format-string: `{` in an f-string is not closed
              4:16 `{`
              help: close the field with `}`, or write `{{` for the character
            syntax::format-string: an empty field in an f-string
              4:24 ` `
              help: write an expression between the braces, or `{{}}` for the characters
        "#]],
    );
}

#[test]
fn numbers() {
    check(
        r#"a = 012
b = 1_
c = 1__0
d = 0x
e = 0b12
f = 1.5f
g = 1e
h = 3x
i = 340282366920938463463374607431768211456
j = 1e999
k = 0xfffffffffffffffffffffffffffffffff
l = x.1
"#,
        expect![[r#"
            syntax::number: `012` is no number
              1:5 `012`
              help: a decimal number has no leading zeros; write `0o17` for octal
            syntax::number: `1_` is no number
              2:5 `1_`
              help: a `_` stands between two digits: `1_000`
            syntax::number: `1__0` is no number
              3:5 `1__0`
              help: a `_` stands between two digits: `1_000`
            syntax::number: `0x` is no number
              4:5 `0x`
              help: write `12`, `1.5`, `1e-3`, `0xff`, `0o17` or `0b11`; put a space before a word that follows
            syntax::number: `0b12` is no number
              5:5 `0b12`
              help: write `12`, `1.5`, `1e-3`, `0xff`, `0o17` or `0b11`; put a space before a word that follows
            syntax::number: `1.5f` is no number
              6:5 `1.5f`
              help: leave the `f` out: a literal takes the type of what it meets
            syntax::number: `1e` is no number
              7:5 `1e`
              help: write `12`, `1.5`, `1e-3`, `0xff`, `0o17` or `0b11`; put a space before a word that follows
            syntax::number: `3x` is no number
              8:5 `3x`
              help: write `12`, `1.5`, `1e-3`, `0xff`, `0o17` or `0b11`; put a space before a word that follows
            syntax::number: an integer that fits in no integer type
              9:5 `340282366920938463463374607431768211456`
              help: the largest is 18446744073709551615 (u64); write a float such as `1e40` otherwise
            syntax::number: `1e999` is larger than every 64-bit float
              10:5 `1e999`
              help: the largest is about 1.797e308; write `inf` for infinity
            syntax::number: an integer that fits in no integer type
              11:5 `0xfffffffffffffffffffffffffffffffff`
              help: the largest is 18446744073709551615 (u64); write a float such as `1e40` otherwise
            syntax::unexpected: expected a name, found `.1`
              12:6 `.1`
              help: write a name here
        "#]],
    );
}

#[test]
fn characters() {
    check(
        r#"é = 1
a = “x”
b = x ? 1
c = $x
d = x − y
g = 1 \ 2
h = √x
"#,
        expect![[r#"
            syntax::character: `é` cannot stand here
              1:1 `é`
              help: names are written in ASCII letters, digits and `_`: `alpha`, `dx`
            syntax::character: `“` cannot stand here
              2:5 `“`
              help: strings stand between `"` or `'`
            syntax::character: `?` cannot stand here
              3:7 `?`
              help: write `a if cond else b`
            syntax::character: `$` cannot stand here
              4:5 `$`
              help: remove it
            syntax::character: `−` cannot stand here
              5:7 `−`
              help: outside strings and comments, write ASCII
            syntax::character: `\` cannot stand here
              6:7 `\\`
              help: remove it
            syntax::character: `√` cannot stand here
              7:5 `√`
              help: outside strings and comments, write ASCII
        "#]],
    );
}

#[test]
fn invisible_characters() {
    check(
        "e = \u{200b}x\nf =\u{a0}x\n",
        expect![[r#"
        syntax::character: the invisible character U+200B cannot stand here
          1:5 `\u{200b}`
          help: replace it by a plain space
        syntax::character: the invisible character U+00A0 cannot stand here
          2:4 `\u{a0}`
          help: replace it by a plain space
    "#]],
    );
}

#[test]
fn encodings() {
    check(
        r#"# -*- coding: latin-1 -*-
x = 1
"#,
        expect![[r#"
            syntax::encoding: the file says that it is written in `latin-1`
              1:1 `# -*- coding: latin-1 -*-\n`
              help: write it in UTF-8, and remove the line
        "#]],
    );
}

#[test]
fn continuations() {
    check(
        r#"\
x = 1
y = 1 \
"#,
        expect![[r#"
            syntax::continuation: a line starts with `\`, which continues the line before it
              1:1 `\\`
              help: remove the `\`
            syntax::continuation: the file ends after `\`, which continues a line
              3:7 `\\\n`
              help: remove the `\`, or write the rest of the line
        "#]],
    );
}

#[test]
fn nul_characters() {
    check(
        "x = 1 # \0\n",
        expect![[r#"
        syntax::character: the file holds a NUL character, so it is not a text file
          1:9 `\0`
          help: save it as UTF-8 text
    "#]],
    );
}

#[test]
fn depth() {
    check(
        &format!("x = {}1{}\n", "(".repeat(101), ")".repeat(101)),
        expect![[r#"
        syntax::depth: an expression is more than 200 operators or 100 brackets deep
          1:105 `(`
          help: give a part of it a name first: `t = …`
    "#]],
    );
    check(
        &format!("x = a{}\n", " + a".repeat(201)),
        expect![[r#"
        syntax::depth: an expression is more than 200 operators or 100 brackets deep
          1:5 `a + a + a + a + a + a + a + a + a + a + …`
          help: give a part of it a name first: `t = …`
    "#]],
    );
    check(
        &format!("x = {}a\n", "not ".repeat(201)),
        expect![[r#"
        syntax::depth: an expression is more than 200 operators or 100 brackets deep
          1:5 `not not not not not not not not not not …`
          help: give a part of it a name first: `t = …`
    "#]],
    );
    check(
        &format!("x = {}a\n", "a if b else ".repeat(201)),
        expect![[r#"
        syntax::depth: an expression is more than 200 operators or 100 brackets deep
          1:5 `a if b else a if b else a if b else a if…`
          help: give a part of it a name first: `t = …`
    "#]],
    );
    check(
        &format!("x = a{}\n", ".b".repeat(201)),
        expect![[r#"
        syntax::depth: an expression is more than 200 operators or 100 brackets deep
          1:5 `a.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.…`
          help: give a part of it a name first: `t = …`
    "#]],
    );
    let blocks: String = (0..92).map(|i| format!("{}if a:\n", " ".repeat(i + 1))).collect();
    check(
        &format!("def f():\n{blocks}"),
        expect![[r#"
        syntax::indentation: expected an indented block after `if`
          91:91 `if a:`
          help: indent the statements that belong to it by four spaces, or write `pass`
        syntax::depth: blocks are nested more than 90 deep
          92:92 `if`
          help: move the inner blocks into a function
    "#]],
    );
    check(
        &format!("def f():\n    if a: pass\n{}", "    elif a: pass\n".repeat(200)),
        expect![[r#"
        syntax::depth: more than 200 branches of one `if`
          202:5 `elif`
          help: split the cases into groups, each with its own `if`
    "#]],
    );
}

#[test]
fn numbers_of_many_digits() {
    check(
        &format!("x = {}.0\n", "1".repeat(1000)),
        expect![[r#"
        syntax::number: a number of more than 1000 characters
          1:5 `1111111111111111111111111111111111111111…`
          help: write it shorter: a 64-bit float has 17 significant digits
    "#]],
    );
}

#[test]
fn a_binary_file_gets_no_more_than_a_hundred() {
    let (_, diags) = parse(&"?\n".repeat(1000), FileId(0));
    assert_eq!(diags.len(), 100);
    expect!["900 more problems in this file are not shown"].assert_eq(&diags[99].notes.join("\n"));
}
