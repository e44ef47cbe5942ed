//! Number and string literals: their values as Python reads them.
use super::expr::Builder;
use super::source::MAX_BRACKETS;
use super::token::newline;
use crate::syntax::{Expr, ExprKind};
use taffeta_ast::Span;
use taffeta_ast::diag::Diagnostic;

/// Maximum number of digits of a literal; Python reads at most 4300.
const MAX_DIGITS: usize = 1000;

/// Evaluates a number that the grammar accepted.
pub fn number(text: &str, span: Span, diags: &mut Vec<Diagnostic>) -> ExprKind {
    let digits: String = text.chars().filter(|c| *c != '_').collect::<String>().to_ascii_lowercase();
    let (radix, rest) = match digits.get(..2) {
        Some("0x") => (16, &digits[2..]),
        Some("0o") => (8, &digits[2..]),
        Some("0b") => (2, &digits[2..]),
        _ => (10, digits.as_str()),
    };
    if text.len() > MAX_DIGITS {
        diags.push(
            Diagnostic::new("syntax::number", format!("a number is longer than {MAX_DIGITS} characters"))
                .at(span)
                .help("write it shorter: a 64-bit float has 17 significant digits"),
        );
        return ExprKind::Int(None);
    }
    if radix == 10 && rest.contains(['.', 'e']) {
        let value: f64 = rest.parse().unwrap_or(f64::INFINITY);
        if value.is_infinite() {
            diags.push(
                Diagnostic::new("syntax::number", format!("`{text}` does not fit in a 64-bit float"))
                    .at(span)
                    .help("the largest is about 1.797e308; write `inf` for infinity"),
            );
        }
        return ExprKind::Float(value);
    }
    let value = u64::from_str_radix(rest, radix).ok().map(i128::from);
    if value.is_none() {
        diags.push(
            Diagnostic::new("syntax::number", "the integer does not fit in any integer type")
                .at(span)
                .help("write at most 18446744073709551615 (u64), or a float such as `1e40`"),
        );
    }
    ExprKind::Int(value)
}

/// Appends the pieces of the string `raw` (with prefix and quotes), which stands at byte `start` of the file: one text,
/// or texts and expressions for an f-string. Returns whether it is an f-string.
pub fn string(b: &mut Builder<'_, '_>, raw: &str, start: usize, depth: usize, parts: &mut Vec<Expr>) -> bool {
    let prefix_len = raw.bytes().take_while(u8::is_ascii_alphabetic).count();
    let prefix = raw[..prefix_len].to_ascii_lowercase();
    let quotes = if raw[prefix_len..].starts_with("\"\"\"") || raw[prefix_len..].starts_with("'''") { 3 } else { 1 };
    let body = &raw[prefix_len + quotes..raw.len() - quotes];
    let body_start = start + prefix_len + quotes;
    let span = b.source.span(start, start + raw.len());
    if prefix.contains('b') {
        b.diags.push(
            Diagnostic::new("python::bytes", "byte strings are not supported").at(span).help("leave out the `b`"),
        );
        return false;
    }
    let is_raw = prefix.contains('r');
    if !prefix.contains('f') {
        let text = text(b, body, body_start, is_raw);
        parts.push(Expr { kind: ExprKind::Str(text), span });
        return false;
    }
    if b.in_format {
        b.diags.push(
            Diagnostic::new("syntax::format_string", "an f-string inside an f-string is not supported")
                .at(span)
                .help("write its pieces into the outer one"),
        );
        return true;
    }
    format_string(b, body, body_start, is_raw, depth, parts);
    true
}

/// Splits an f-string into texts and `{fields}`.
fn format_string(
    b: &mut Builder<'_, '_>,
    body: &str,
    body_start: usize,
    is_raw: bool,
    depth: usize,
    parts: &mut Vec<Expr>,
) {
    let bytes = body.as_bytes();
    let (mut at, mut piece) = (0, 0);
    let push_text = |b: &mut Builder<'_, '_>, parts: &mut Vec<Expr>, from: usize, to: usize| {
        let text = text(b, &body[from..to], body_start + from, is_raw);
        let span = b.source.span(body_start + from, body_start + to);
        parts.push(Expr { kind: ExprKind::Str(text), span });
    };
    while let Some(&byte) = bytes.get(at) {
        let next = bytes.get(at + 1);
        match byte {
            // `\{` is a backslash and then a field; any other escape takes the next character along.
            b'\\' if !is_raw && !matches!(next, Some(b'{' | b'}')) => {
                if bytes[at..].starts_with(b"\\N{") {
                    at += 2; // refused when the text is decoded, with the braces
                    at += body[at..].find('}').unwrap_or(0);
                }
                at += 1 + body[at + 1..].chars().next().map_or(0, char::len_utf8);
            }
            b'{' | b'}' if next == Some(&byte) => {
                push_text(b, parts, piece, at + 1);
                at += 2;
                piece = at;
            }
            b'{' => {
                push_text(b, parts, piece, at);
                let end = field_end(&body[at + 1..]).map(|len| at + 1 + len);
                let field = &body[at + 1..end.unwrap_or(body.len())];
                at = match end {
                    Some(end) if bytes[end] == b'}' => {
                        parts.extend(field_value(b, field, body_start + at + 1, depth));
                        end + 1
                    }
                    stop => {
                        b.diags.push(bad_field(b, body, body_start, at, stop));
                        body.len()
                    }
                };
                piece = at;
            }
            b'}' => {
                let span = b.source.span(body_start + at, body_start + at + 1);
                b.diags.push(
                    Diagnostic::new("syntax::format_string", "a single `}` in an f-string")
                        .at(span)
                        .help("write `}}` for the character"),
                );
                at += 1;
            }
            _ => at += 1,
        }
    }
    push_text(b, parts, piece, body.len());
}

/// Parses the expression of a field, unless Python or Taffeta forbids its spelling.
fn field_value(b: &mut Builder<'_, '_>, field: &str, start: usize, depth: usize) -> Option<Expr> {
    let span = b.source.span(start, start + field.len());
    let refuse =
        |message: &str, help: &str| Some(Diagnostic::new("syntax::format_string", message).at(span).help(help));
    let problem = if field.trim().is_empty() {
        refuse("an empty field in an f-string", "write an expression between the braces, or `{{}}` for the characters")
    } else if field.contains(['\\', '#']) {
        refuse(
            "`\\` and `#` are not supported in a field of an f-string",
            "give the value a name first, and write `{name}`",
        )
    } else if field.trim_end().ends_with('=') {
        refuse("`=` at the end of a field of an f-string is not supported", "write the text yourself: `x={x}`")
    } else {
        None
    };
    match problem {
        Some(problem) => {
            b.diags.push(problem);
            None
        }
        None => Some(b.format_field(field, start, depth)),
    }
}

/// Finds the end of a field: its `}`, or a `:` or `!`, which would start a format or a conversion, neither of which the
/// language has. `None` if the field does not end.
fn field_end(field: &str) -> Option<usize> {
    let bytes = field.as_bytes();
    let (mut at, mut open, mut quote) = (0, 0_usize, None);
    while let Some(&byte) = bytes.get(at) {
        match byte {
            _ if quote == Some(byte) => quote = None,
            _ if quote.is_some() => {}
            b'"' | b'\'' => quote = Some(byte),
            b'(' | b'[' | b'{' => open += 1,
            b')' | b']' | b'}' if open > 0 => open -= 1,
            b'!' if bytes.get(at + 1) == Some(&b'=') => at += 1,
            b'}' | b':' | b'!' if open == 0 => return Some(at),
            _ => {}
        }
        if open > MAX_BRACKETS / 2 {
            return None;
        }
        at += 1;
    }
    None
}

fn bad_field(b: &Builder<'_, '_>, body: &str, body_start: usize, open: usize, stop: Option<usize>) -> Diagnostic {
    let brace = b.source.span(body_start + open, body_start + open + 1);
    let Some(stop) = stop else {
        return Diagnostic::new("syntax::format_string", "`{` in an f-string is not closed")
            .at(brace)
            .help("close the field with `}`, or write `{{` for the character");
    };
    let what = if body.as_bytes()[stop] == b':' { "a format after `:`" } else { "a conversion after `!`" };
    Diagnostic::new("syntax::format_string", format!("{what} in an f-string is not supported"))
        .at(b.source.span(body_start + stop, body_start + stop + 1))
        .help("write the value alone: `{x}`")
}

/// Decodes the body of a string.
fn text(b: &mut Builder<'_, '_>, body: &str, start: usize, is_raw: bool) -> String {
    let mut out = String::with_capacity(body.len());
    let mut at = 0;
    while let Some(c) = body[at..].chars().next() {
        let rest = &body[at..];
        if let Some(len) = newline(rest) {
            out.push('\n'); // Python reads every end of line as `\n`
            at += len;
        } else if c == '\\' && !is_raw {
            let (len, value) = escape(rest);
            match value {
                Ok(value) => out.push_str(&value),
                Err((message, help)) => {
                    let span = b.source.span(start + at, start + at + len);
                    b.diags.push(Diagnostic::new("syntax::escape", message).at(span).help(help));
                }
            }
            at += len;
        } else {
            out.push(c);
            at += c.len_utf8();
        }
    }
    out
}

/// Message and help for a refused escape.
type EscapeProblem = (&'static str, &'static str);

/// Decodes the escape at the start of `rest`: its length and its value.
fn escape(rest: &str) -> (usize, Result<String, EscapeProblem>) {
    let after = &rest[1..];
    if let Some(len) = newline(after) {
        return (1 + len, Ok(String::new()));
    }
    let Some(c) = after.chars().next() else { return (1, Ok("\\".to_string())) };
    let simple = match c {
        '\\' | '\'' | '"' => c,
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        'a' => '\x07',
        'b' => '\x08',
        'f' => '\x0c',
        'v' => '\x0b',
        'x' => return code(after, 2),
        'u' => return code(after, 4),
        'U' => return code(after, 8),
        'N' => {
            let len = if after.starts_with("N{") { after.find('}').map_or(1, |i| i + 1) } else { 1 };
            return (
                1 + len,
                Err((
                    "a character name in an escape is not supported",
                    "write the character itself, or its number: `\\u03b1`",
                )),
            );
        }
        '0'..='7' => {
            let digits = after.bytes().take(3).take_while(|b| matches!(b, b'0'..=b'7')).count();
            let value = u32::from_str_radix(&after[..digits], 8).ok().and_then(char::from_u32);
            return (1 + digits, Ok(value.map(String::from).unwrap_or_default()));
        }
        // Python keeps the backslash of an unknown escape.
        other => return (1 + other.len_utf8(), Ok(format!("\\{other}"))),
    };
    (2, Ok(simple.to_string()))
}

/// Decodes `x41`, `u0041`, `U00000041`: `digits` hexadecimal digits after the letter.
fn code(after: &str, digits: usize) -> (usize, Result<String, EscapeProblem>) {
    let found = after[1..].bytes().take(digits).take_while(u8::is_ascii_hexdigit).count();
    if found < digits {
        let help = "`\\x` takes 2 hexadecimal digits, `\\u` 4 and `\\U` 8; write `\\\\` for a backslash";
        return (2 + found, Err(("the escape has too few digits", help)));
    }
    let value = u32::from_str_radix(&after[1..1 + digits], 16).ok().and_then(char::from_u32);
    let value = value
        .map(String::from)
        .ok_or(("the escape is not a Unicode character", "write the number of a Unicode character"));
    (2 + digits, value)
}
