//! Python constructs outside the language, with a replacement to suggest for each.
//!
//! Statements are recognised by their first word ([`statement`]), expressions by the token where parsing stopped
//! ([`expression`]). One row per construct.
use super::layout::Line;
use super::source::Source;
use super::token::{Token, TokenKind};
use taffeta_ast::diag::Diagnostic;

/// First word, diagnostic code, message, help.
type Row = (&'static str, &'static str, &'static str, &'static str);

const STATEMENTS: [Row; 20] = [
    (
        "while",
        "python::while",
        "there are no `while` loops",
        "write `for i in range(n)` with the largest number of rounds, and `if` inside it",
    ),
    (
        "break",
        "python::break",
        "a loop cannot be left early",
        "put what must not run any more under `if not done:`, with `done` a bool",
    ),
    ("continue", "python::continue", "a round of a loop cannot be cut short", "put the rest of the body under `if`"),
    ("class", "python::class", "there are no classes", "write functions, and pass tensors to them"),
    (
        "try",
        "python::exception",
        "there are no exceptions",
        "test first: `if`, or `assert cond, \"message\"`; in a schedule `if s.can(…)`",
    ),
    ("except", "python::exception", "there are no exceptions", "test first: `if`, or `assert cond, \"message\"`"),
    ("finally", "python::exception", "there are no exceptions", "write the statements after the others"),
    ("raise", "python::exception", "there are no exceptions", "write `assert cond, \"message\"`"),
    (
        "with",
        "python::with",
        "there are no `with` blocks",
        "write the statements one after the other; tensors end with their block",
    ),
    ("yield", "python::generator", "there are no generators", "return a tensor, or write to an `inout` parameter"),
    (
        "async",
        "python::async",
        "there is nothing asynchronous",
        "write a plain function; loops are made parallel by a schedule",
    ),
    ("await", "python::async", "there is nothing asynchronous", "write a plain call"),
    (
        "global",
        "python::global",
        "there are no global variables",
        "pass the tensor as a parameter, and return it or make it `inout`",
    ),
    ("nonlocal", "python::global", "there are no variables of an enclosing function", "pass the tensor as a parameter"),
    (
        "del",
        "python::del",
        "nothing is deleted by hand",
        "leave it out: a tensor ends with the block where it was first assigned",
    ),
    (
        "import",
        "python::import",
        "a module is not imported as a whole",
        "import names from it: `from mymodule import f, g`; libop's need no import",
    ),
    ("match", "python::match", "there is no `match`", "write `if … elif … else`"),
    ("case", "python::match", "there is no `match`", "write `if … elif … else`"),
    ("switch", "python::match", "there is no `switch`", "write `if … elif … else`"),
    ("type", "python::class", "there are no type aliases", "write the type where it is used"),
];

/// Soft keywords of the table: names, unless the line looks like the statement.
const SOFT: [&str; 4] = ["match", "case", "switch", "type"];

/// Returns the refusal of a line that starts a statement outside the language.
pub fn statement(source: &Source<'_>, tokens: &[Token], line: &Line) -> Option<Diagnostic> {
    let line_tokens = &tokens[line.tokens.clone()];
    let first = line_tokens.first()?;
    let word = first.text(source.text);
    let row = STATEMENTS.iter().find(|row| row.0 == word)?;
    if SOFT.contains(&word) {
        // `match x:` and `type T = …`: a name follows the word.
        let second = line_tokens.get(1)?;
        if !matches!(second.kind, TokenKind::Name | TokenKind::Number | TokenKind::Str) {
            return None;
        }
    }
    Some(Diagnostic::new(row.1, row.2).at(source.span(first.start, first.end)).help(row.3))
}

/// Returns the row (code, message, help) of the statement outside the language that this keyword starts, behind the
/// colon of an `if` or a `for`.
pub fn keyword(word: &str) -> Option<(&'static str, &'static str, &'static str)> {
    let row = STATEMENTS.iter().find(|row| row.0 == word && !SOFT.contains(&word))?;
    Some((row.1, row.2, row.3))
}

/// Returns whether the block under a line that starts with `word` holds statements worth checking for their own
/// problems.
pub fn has_statements(word: &str) -> bool {
    matches!(word, "while" | "with" | "try" | "except" | "finally")
}

/// Returns the row of the construct that starts with the token `found`; `operand` tells whether an operand was expected
/// there.
pub fn expression(found: &str, previous: &str, operand: bool) -> Option<(&'static str, &'static str, &'static str)> {
    let row = match found {
        ":=" => ("python::walrus", "there is no `:=`", "assign on a line of its own: `t = e`"),
        "*" | "**" if operand && matches!(previous, "(" | "," | "[" | "=" | "return") => {
            ("python::star", "there is no unpacking with `*`", "write the elements one by one")
        }
        "{" if operand => {
            ("python::dict", "there are no dictionaries and sets", "use a list or tuple of static values, or a tensor")
        }
        "lambda" => (
            "python::lambda",
            "there are no lambdas, except in `s.permute` of a schedule",
            "write a function with `def` and use its name",
        ),
        "yield" => {
            ("python::generator", "there are no generators", "return a tensor, or write to an `inout` parameter")
        }
        "await" | "async" => ("python::async", "there is nothing asynchronous", "write a plain call"),
        "for" if !operand => (
            "python::generator",
            "there are no generator expressions",
            "write a list: `[f(k) for k in range(3)]` (static), or a loop for tensors",
        ),
        _ => return None,
    };
    Some(row)
}
