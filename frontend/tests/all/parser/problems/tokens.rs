//! Strings, numbers and characters.

use super::check;
use expect_test::expect;
use taffeta_ast::span::FileId;
use taffeta_frontend::parse::parse;

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
            syntax::escape: the escape has too few digits
              2:6 `\\x4`
              help: `\x` takes 2 hexadecimal digits, `\u` 4 and `\U` 8; write `\\` for a backslash
            syntax::escape: the escape has too few digits
              2:12 `\\u12`
              help: `\x` takes 2 hexadecimal digits, `\u` 4 and `\U` 8; write `\\` for a backslash
            syntax::escape: the escape is not a Unicode character
              2:19 `\\ud800`
              help: write the number of a Unicode character
            syntax::escape: the escape is not a Unicode character
              2:28 `\\U00110000`
              help: write the number of a Unicode character
            syntax::escape: a character name in an escape is not supported
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
            syntax::format_string: `{` in an f-string is not closed
              2:11 `{`
              help: close the field with `}`, or write `{{` for the character
            syntax::format_string: an empty field in an f-string
              2:18 ``
              help: write an expression between the braces, or `{{}}` for the characters
            syntax::format_string: a single `}` in an f-string
              2:23 `}`
              help: write `}}` for the character
            syntax::format_string: a format after `:` in an f-string is not supported
              2:30 `:`
              help: write the value alone: `{x}`
            syntax::format_string: a conversion after `!` in an f-string is not supported
              2:39 `!`
              help: write the value alone: `{x}`
            syntax::format_string: `=` at the end of a field of an f-string is not supported
              2:47 `x=`
              help: write the text yourself: `x={x}`
            syntax::unexpected: expected an expression, found the end of the line
              3:14 `+`
              help: write the right operand; to count, write `i += 1`
            syntax::format_string: `\` and `#` are not supported in a field of an f-string
              3:22 `\'\\n\'`
              help: give the value a name first, and write `{name}`
            syntax::format_string: an f-string inside an f-string is not supported
              3:32 `f\'{x}\'`
              help: write its pieces into the outer one
            syntax::unexpected: expected an operator, a comma or the end of the line, found `b`
              3:46 `b`
              help: is an operator missing before `b`, or the end of the line?
            syntax::format_string: `{` in an f-string is not closed
              4:11 `{`
              help: close the field with `}`, or write `{{` for the character
            syntax::format_string: `{` in an f-string is not closed
              4:16 `{`
              help: close the field with `}`, or write `{{` for the character
            syntax::format_string: an empty field in an f-string
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
            syntax::number: `012` is not a number
              1:5 `012`
              help: remove the leading zeros, or write `0o17` for octal
            syntax::number: `1_` is not a number
              2:5 `1_`
              help: write `_` only between two digits: `1_000`
            syntax::number: `1__0` is not a number
              3:5 `1__0`
              help: write `_` only between two digits: `1_000`
            syntax::number: `0x` is not a number
              4:5 `0x`
              help: write `12`, `1.5`, `1e-3`, `0xff`, `0o17` or `0b11`; put a space before a word that follows
            syntax::number: `0b12` is not a number
              5:5 `0b12`
              help: write `12`, `1.5`, `1e-3`, `0xff`, `0o17` or `0b11`; put a space before a word that follows
            syntax::number: `1.5f` is not a number
              6:5 `1.5f`
              help: leave out the `f`: a literal takes the type of the operand beside it
            syntax::number: `1e` is not a number
              7:5 `1e`
              help: write `12`, `1.5`, `1e-3`, `0xff`, `0o17` or `0b11`; put a space before a word that follows
            syntax::number: `3x` is not a number
              8:5 `3x`
              help: write `12`, `1.5`, `1e-3`, `0xff`, `0o17` or `0b11`; put a space before a word that follows
            syntax::number: the integer does not fit in any integer type
              9:5 `340282366920938463463374607431768211456`
              help: write at most 18446744073709551615 (u64), or a float such as `1e40`
            syntax::number: `1e999` does not fit in a 64-bit float
              10:5 `1e999`
              help: the largest is about 1.797e308; write `inf` for infinity
            syntax::number: the integer does not fit in any integer type
              11:5 `0xfffffffffffffffffffffffffffffffff`
              help: write at most 18446744073709551615 (u64), or a float such as `1e40`
            syntax::unexpected: expected a name, found `.1`
              12:6 `.1`
              help: write a name here
        "#]],
    );
}

#[test]
fn numbers_of_many_digits() {
    check(
        &format!("x = {}.0\n", "1".repeat(1000)),
        expect![[r#"
        syntax::number: a number is longer than 1000 characters
          1:5 `1111111111111111111111111111111111111111…`
          help: write it shorter: a 64-bit float has 17 significant digits
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
            syntax::character: unexpected `é`
              1:1 `é`
              help: write names in ASCII letters, digits and `_`: `alpha`, `dx`
            syntax::character: unexpected `“`
              2:5 `“`
              help: enclose strings in `"` or `'`
            syntax::character: unexpected `?`
              3:7 `?`
              help: write `a if cond else b`
            syntax::character: unexpected `$`
              4:5 `$`
              help: remove it
            syntax::character: unexpected `−`
              5:7 `−`
              help: outside strings and comments, write ASCII
            syntax::character: unexpected `\`
              6:7 `\\`
              help: remove it
            syntax::character: unexpected `√`
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
        syntax::character: unexpected invisible character U+200B
          1:5 `\u{200b}`
          help: replace it with a space
        syntax::character: unexpected invisible character U+00A0
          2:4 `\u{a0}`
          help: replace it with a space
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
            syntax::encoding: expected UTF-8, found a declaration of the encoding `latin-1`
              1:1 `# -*- coding: latin-1 -*-\n`
              help: save the file as UTF-8, and remove this line
        "#]],
    );
}

#[test]
fn nul_characters() {
    check(
        "x = 1 # \0\n",
        expect![[r#"
        syntax::character: the file contains a NUL character, so it is not a text file
          1:9 `\0`
          help: save it as UTF-8 text
    "#]],
    );
}

#[test]
fn every_problem_of_a_binary_file_is_counted() {
    let (_, diags) = parse(&"?\n".repeat(1000), FileId(0));
    assert_eq!(diags.len(), 1000);
}
