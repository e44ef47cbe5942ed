//! Lines: indentation, brackets that stay open, continuations, and nesting that is too deep.

use super::check;
use expect_test::expect;

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
            syntax::indentation: the indentation matches no enclosing block
              7:7 `c`
              help: indent it by 4 columns, like the block before
            syntax::indentation: the indentation matches no enclosing block
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
              help: indent with four spaces per block everywhere (`taffeta fmt` does it once the file parses)
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
            syntax::bracket: unmatched closing bracket `)`
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
fn continuations() {
    check(
        r#"\
x = 1
y = 1 \
"#,
        expect![[r#"
            syntax::continuation: unexpected `\` at the start of a line
              1:1 `\\`
              help: remove the `\`
            syntax::continuation: expected a line after `\`, found the end of the file
              3:7 `\\\n`
              help: remove the `\`, or write the rest of the line
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
        syntax::depth: an `if` has more than 200 branches
          202:5 `elif`
          help: split the cases into groups, each with its own `if`
    "#]],
    );
}
