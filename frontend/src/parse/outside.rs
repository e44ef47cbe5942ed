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
        "`while` loops are not supported",
        "write `for i in range(n)` with the maximum number of iterations, and an `if` in its body",
    ),
    (
        "break",
        "python::break",
        "`break` is not supported",
        "put the rest of the body under `if not done:`, with `done` a `bool`",
    ),
    ("continue", "python::continue", "`continue` is not supported", "put the rest of the body under `if`"),
    ("class", "python::class", "classes are not supported", "write functions, and pass tensors to them"),
    (
        "try",
        "python::exception",
        "exceptions are not supported",
        "check first with `if` or `assert cond, \"message\"`; in a schedule, with `if s.can(…)`",
    ),
    (
        "except",
        "python::exception",
        "exceptions are not supported",
        "check first with `if` or `assert cond, \"message\"`",
    ),
    ("finally", "python::exception", "exceptions are not supported", "write the statements after the others"),
    ("raise", "python::exception", "exceptions are not supported", "write `assert cond, \"message\"`"),
    (
        "with",
        "python::with",
        "`with` blocks are not supported",
        "write the statements without `with`; a tensor ends with its block",
    ),
    ("yield", "python::generator", "generators are not supported", "return a tensor, or write to an `inout` parameter"),
    (
        "async",
        "python::async",
        "asynchronous code is not supported",
        "write a plain function, and run its loops in parallel by a schedule",
    ),
    ("await", "python::async", "asynchronous code is not supported", "write a plain call"),
    (
        "global",
        "python::global",
        "global variables are not supported",
        "pass the tensor as a parameter, and return it or make it `inout`",
    ),
    (
        "nonlocal",
        "python::global",
        "variables of an enclosing function are not supported",
        "pass the tensor as a parameter",
    ),
    (
        "del",
        "python::del",
        "`del` is not supported",
        "leave it out: a tensor ends with the block where it was first assigned",
    ),
    (
        "import",
        "python::import",
        "importing a whole module is not supported",
        "import names from it: `from mymodule import f, g`; names of libop need no import",
    ),
    ("match", "python::match", "`match` is not supported", "write `if … elif … else`"),
    ("case", "python::match", "`match` is not supported", "write `if … elif … else`"),
    ("switch", "python::match", "`switch` is not supported", "write `if … elif … else`"),
    ("type", "python::class", "type aliases are not supported", "write the type where it is used"),
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

/// Returns the row (code, message, help) of the statement outside the language that this keyword starts, after the
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
        ":=" => ("python::walrus", "`:=` is not supported", "assign on a line of its own: `t = e`"),
        "*" | "**" if operand && matches!(previous, "(" | "," | "[" | "=" | "return") => {
            ("python::star", "unpacking with `*` is not supported", "write the elements one by one")
        }
        "{" if operand => (
            "python::dict",
            "dictionaries and sets are not supported",
            "use a list or tuple of static values, or a tensor",
        ),
        "lambda" => (
            "python::lambda",
            "lambdas are not supported, except in `s.permute` of a schedule",
            "write a function with `def` and use its name",
        ),
        "yield" => {
            ("python::generator", "generators are not supported", "return a tensor, or write to an `inout` parameter")
        }
        "await" | "async" => ("python::async", "asynchronous code is not supported", "write a plain call"),
        "for" if !operand => (
            "python::generator",
            "generator expressions are not supported",
            "write a list: `[f(k) for k in range(3)]` (static), or a loop for tensors",
        ),
        _ => return None,
    };
    Some(row)
}
