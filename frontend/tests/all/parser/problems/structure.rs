//! Statements, parameters, imports and top levels that are incomplete or in the wrong place.

use super::check;
use expect_test::expect;

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
              help: write `:` at the end of a line that starts with `def`
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
              help: write `:` at the end of a line that starts with `for`
            syntax::unexpected: expected `in`, found `range`
              13:11 `range`
              help: write `for i in range(n):`
            syntax::unexpected: expected a name, found the keyword `in`
              14:9 `in`
              help: choose another name: keywords cannot be names
            syntax::unexpected: expected `:`, found `=`
              15:10 `=`
              help: write `==` to compare; assign with `=` on a line of its own
            syntax::unexpected: expected `:`, found the end of the line
              16:8 `x`
              help: write `:` at the end of a line that starts with `if`
            syntax::unexpected: expected `:`, found the keyword `if`
              18:10 `if`
              help: write `elif cond:`
            syntax::unexpected: unexpected `elif` after `else`
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
              help: write both cases: `a if cond else b`
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
              help: write `name=value` to pass an argument by name, or `==` to compare
            syntax::unexpected: expected an expression, found `]`
              28:11 `]`
              help: write an expression before `]`, or remove it
            syntax::unexpected: expected a name, found the keyword `if`
              29:7 `if`
              help: choose another name: keywords cannot be names
            syntax::unexpected: expected an expression, found the keyword `return`
              30:12 `return`
              help: write an expression; the keyword `return` cannot be a name
            syntax::unexpected: expected an expression, found the end of the line
              31:5 `assert`
              help: write an expression after `assert`
            syntax::unexpected: expected an expression, found `=`
              32:9 `=`
              help: assign to a name or to elements of a tensor: `t = e`, `t[i] = e`
            syntax::unexpected: expected an expression, found `=`
              33:15 `=`
              help: assign to a name or to elements of a tensor: `t = e`, `t[i] = e`
            syntax::unexpected: expected an operator, a comma or the end of the line, found the keyword `pass`
              34:10 `pass`
              help: is an operator missing before `pass`, or the end of the line?
            syntax::unexpected: expected an operator, a comma or the end of the line, found `x`
              35:11 `x`
              help: `print` is a function: `print("x is", x)`
            syntax::unexpected: expected an operator, a comma or a closing bracket, found `=`
              36:9 `=`
              help: write `==` to compare; assign with `=` on a line of its own
            syntax::unexpected: expected an operator, a comma or the end of the line, found the keyword `not`
              37:11 `not`
              help: is an operator missing before `not`, or the end of the line?
            syntax::unexpected: expected an operator, a comma or the end of the line, found `->`
              38:7 `->`
              help: write `->` only before the type of a function's result: `def f(x: f32) -> f32:`
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
            syntax::parameter: two parameters are named `x`
              1:10 `x`
              1:7 `x` first here
              help: rename one of them
            syntax::parameter: the parameter `y` without a default follows a parameter with a default
              2:12 `y`
              help: give it a default too, or move it to the front
            python::star: `/` among the parameters is not supported
              3:10 `/`
              help: name each parameter; calls can pass any of them by position or by name
            python::star: `*` among the parameters is not supported
              4:10 `*`
              help: name each parameter; calls can pass any of them by position or by name
            python::star: `**` among the parameters is not supported
              5:7 `**`
              help: name each parameter; calls can pass any of them by position or by name
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
            syntax::top_level: a declaration with a type is not supported at the top level of a file
              1:1 `x: f32 = 1`
              help: move it into a function: a file holds imports, assignments of static values (`n = 64`) and functions
            syntax::top_level: an assignment to anything but one name is not supported at the top level of a file
              2:1 `a, b = 1, 2`
              help: move it into a function: a file holds imports, assignments of static values (`n = 64`) and functions
            syntax::top_level: an assignment to anything but one name is not supported at the top level of a file
              3:1 `a.b = 1`
              help: move it into a function: a file holds imports, assignments of static values (`n = 64`) and functions
            syntax::top_level: an augmented assignment is not supported at the top level of a file
              4:1 `x += 1`
              help: move it into a function: a file holds imports, assignments of static values (`n = 64`) and functions
            syntax::top_level: an expression is not supported at the top level of a file
              5:1 `f(x)`
              help: move it into a function: a file holds imports, assignments of static values (`n = 64`) and functions
            syntax::top_level: `return` is not supported at the top level of a file
              6:1 `return 1`
              help: move it into a function: a file holds imports, assignments of static values (`n = 64`) and functions
            syntax::top_level: `assert` is not supported at the top level of a file
              7:1 `assert x`
              help: move it into a function: a file holds imports, assignments of static values (`n = 64`) and functions
            syntax::top_level: `if` is not supported at the top level of a file
              8:1 `if`
              help: move it into a function: a file holds imports, assignments of static values and functions
            syntax::unexpected: expected an expression, found the end of the line
              9:7 `=`
              help: write an expression after `=`
            syntax::top_level: `for` is not supported at the top level of a file
              10:1 `for`
              help: move it into a function: a file holds imports, assignments of static values and functions
            syntax::decorator: expected a function after the decorator
              11:2 `schedule(f)`
              help: write `def` on the next line
            syntax::decorator: expected a function after the decorator
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
            python::import: relative imports are not supported
              1:6 `.`
              help: write `from mymodule import f` for the file `mymodule.ft` beside this one
            python::import: relative imports are not supported
              2:6 `.`
              help: write `from mymodule import f` for the file `mymodule.ft` beside this one
            python::import: importing a whole module is not supported
              3:15 `*`
              help: list the names: `from mymodule import f, g`
            python::import: `a.b` is not a module name
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
