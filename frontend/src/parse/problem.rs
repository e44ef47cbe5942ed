//! Diagnostics for lines that do not parse: the token found, the construct expected, the replacement to write.
//!
//! pest reports the furthest place that some rule reached, and the rules that might have continued there. The token at
//! that place is the one found; the rules are folded into a few words for the construct expected.

use super::grammar::Rule;
use super::outside;
use super::source::{MAX_NAME, Source};
use super::token::{Token, TokenKind};
use pest::error::{Error, ErrorVariant, InputLocation};
use taffeta_ast::Span;
use taffeta_ast::diag::Diagnostic;
use taffeta_ast::format::Named;

/// Construct expected at the place of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    Expression,
    LoopVariable,
    Name,
    Colon,
    Else,
    In,
    Import,
    /// Operator, separator or the end of the line.
    More,
}

impl Wanted {
    fn of(positives: &[Rule]) -> Wanted {
        let has = |rules: &[Rule]| rules.iter().any(|r| positives.contains(r));
        match () {
            () if has(&[Rule::expr, Rule::exprs, Rule::prefix, Rule::primary, Rule::lone_operation, Rule::body]) => {
                Wanted::Expression
            }
            () if has(&[Rule::suite, Rule::arg, Rule::index, Rule::upper]) => Wanted::Expression,
            () if has(&[Rule::targets, Rule::target]) => Wanted::LoopVariable,
            () if has(&[Rule::name, Rule::params, Rule::param, Rule::module, Rule::imported]) => Wanted::Name,
            () if has(&[Rule::kw_else]) => Wanted::Else,
            () if has(&[Rule::colon]) => Wanted::Colon,
            () if has(&[Rule::kw_in]) => Wanted::In,
            () if has(&[Rule::kw_import]) => Wanted::Import,
            () => Wanted::More,
        }
    }

    fn words(self) -> &'static str {
        match self {
            Wanted::Expression => "an expression",
            Wanted::LoopVariable => "the name of a loop variable",
            Wanted::Name => "a name",
            Wanted::Colon => "`:`",
            Wanted::Else => "`else`",
            Wanted::In => "`in`",
            Wanted::Import => "`import`",
            Wanted::More => "an operator, a comma or the end of the line",
        }
    }
}

/// Returns the diagnostic for a piece of text whose tokens are `tokens` and which starts at byte `base` of the file.
pub fn unexpected(source: &Source<'_>, tokens: &[Token], base: usize, error: &Error<Rule>) -> Diagnostic {
    let ErrorVariant::ParsingError { positives, .. } = &error.variant else {
        let end = tokens.last().map_or(base, |t| t.end);
        return super::source::too_deep(source.span(base, end)); // pest's own guard of the stack
    };
    let (InputLocation::Pos(at) | InputLocation::Span((at, _))) = error.location;
    let at = base + at;
    let significant: Vec<&Token> = tokens.iter().filter(|t| t.is_significant()).collect();
    let index = significant.iter().position(|t| t.end > at).unwrap_or(significant.len());
    let place = StopPoint {
        source,
        first: significant.first().map_or("", |t| t.text(source.text)),
        previous: index.checked_sub(1).and_then(|i| significant.get(i)).copied(),
        found: significant.get(index).copied(),
        next: significant.get(index + 1).copied(),
        open: open_bracket(source, &significant[..index]),
        end: significant.last().map_or(base, |t| t.end),
    };
    place.diagnose(Wanted::of(positives))
}

/// Returns the innermost bracket that is open after `tokens`.
fn open_bracket<'a>(source: &Source<'a>, tokens: &[&Token]) -> Option<&'a str> {
    let mut open = Vec::new();
    for token in tokens.iter().filter(|t| t.kind == TokenKind::Op) {
        match token.text(source.text) {
            text @ ("(" | "[" | "{") => open.push(text),
            ")" | "]" | "}" => {
                open.pop();
            }
            _ => {}
        }
    }
    open.pop()
}

/// Place where parsing stopped, with the tokens around it.
struct StopPoint<'a, 's> {
    source: &'s Source<'a>,
    /// First word of the line.
    first: &'a str,
    previous: Option<&'s Token>,
    /// Token at which parsing stopped; `None` at the end of the line.
    found: Option<&'s Token>,
    next: Option<&'s Token>,
    /// Innermost bracket around the place.
    open: Option<&'a str>,
    end: usize,
}

impl StopPoint<'_, '_> {
    fn text(&self, token: Option<&Token>) -> &str {
        token.map_or("", |t| t.text(self.source.text))
    }

    fn span(&self) -> Span {
        match self.found {
            Some(token) => self.source.span(token.start, token.end),
            None => self.source.span(self.previous.map_or(self.end, |t| t.start), self.end),
        }
    }

    fn diagnose(&self, wanted: Wanted) -> Diagnostic {
        let (found, previous) = (self.text(self.found), self.text(self.previous));
        if let Some(token) = self.found {
            match token.kind {
                TokenKind::Bad => return bad_character(self.span(), found),
                TokenKind::Number if !ends_operand(previous, self.previous) => return bad_number(self.span(), found),
                _ => {}
            }
        }
        if let Some(refusal) = self.import_form(found) {
            return refusal.at(self.span());
        }
        let operand = matches!(wanted, Wanted::Expression | Wanted::Name);
        if self.first == "def" && matches!(found, "*" | "**" | "/") && wanted == Wanted::Name {
            return Diagnostic::new("python::star", format!("`{found}` among the parameters is not supported"))
                .at(self.span())
                .help("name each parameter; calls can pass any of them by position or by name");
        }
        if wanted == Wanted::Expression
            && previous == ":"
            && let Some((code, message, help)) = outside::keyword(found)
        {
            return Diagnostic::new(code, message).at(self.span()).help(help);
        }
        if let Some((code, message, help)) = outside::expression(found, previous, operand)
            && (found != "for" || self.open == Some("("))
        {
            return Diagnostic::new(code, message).at(self.span()).help(help);
        }
        let what = match self.found {
            None => "the end of the line".to_string(),
            Some(t) if t.kind == TokenKind::Str => "a string".to_string(),
            Some(_) if is_keyword(found) => format!("the keyword `{found}`"),
            Some(_) => format!("`{found}`"),
        };
        let message = match (wanted, self.found) {
            (Wanted::More, Some(_)) if self.open.is_some() => {
                format!("expected an operator, a comma or a closing bracket, found {what}")
            }
            _ => format!("expected {}, found {what}", wanted.words()),
        };
        Diagnostic::new("syntax::unexpected", message).at(self.span()).help(self.help(wanted, found, previous))
    }

    /// Refuses `from m import *` and `from . import f`.
    fn import_form(&self, found: &str) -> Option<Diagnostic> {
        if self.first != "from" {
            return None;
        }
        let (message, help) = match found {
            "*" => ("importing a whole module is not supported", "list the names: `from mymodule import f, g`"),
            "." | "..." if self.text(self.previous) == "from" => (
                "relative imports are not supported",
                "write `from mymodule import f` for the file `mymodule.ft` beside this one",
            ),
            _ => return None,
        };
        Some(Diagnostic::new("python::import", message).help(help))
    }

    fn help(&self, wanted: Wanted, found: &str, previous: &str) -> String {
        let next = self.text(self.next);
        match (wanted, found) {
            (_, "=") if matches!(self.first, "if" | "elif" | "assert") || self.open == Some("[") => {
                "write `==` to compare; assign with `=` on a line of its own".into()
            }
            (_, "=") => "assign to a name or to elements of a tensor: `t = e`, `t[i] = e`".into(),
            (_, "&") if previous == "&" => "write `and`, or `&` for bits and bools element by element".into(),
            (_, "|") if previous == "|" => "write `or`, or `|` for bits and bools element by element".into(),
            (_, ">") if previous == "<" => "write `!=`".into(),
            (_, "if") if self.first == "else" => "write `elif cond:`".into(),
            (Wanted::Colon, _) if self.first == "else" => "write `else:`, or `elif cond:` with a condition".into(),
            (Wanted::Colon, _) if previous == "]" && is_format(found) => {
                format!("write the storage of a tensor after `@`: `@ {found}`")
            }
            (Wanted::Colon, _) => format!("write `:` at the end of a line that starts with `{}`", self.first),
            (Wanted::Else, _) => "write both cases: `a if cond else b`".into(),
            (Wanted::In, _) => "write `for i in range(n):`".into(),
            (Wanted::Import, _) => "write `from module import name`".into(),
            (Wanted::LoopVariable, _) => "write `for i in range(n):` or `for i, j in ndrange(n, m):`".into(),
            (Wanted::Name, _) if is_keyword(found) => "choose another name: keywords cannot be names".into(),
            (Wanted::Name, _) => "write a name here".into(),
            (Wanted::Expression, "") if matches!(previous, "+" | "-") => {
                "write the right operand; to count, write `i += 1`".into()
            }
            (Wanted::Expression, "elif" | "else") => "write it at the start of a line, after an `if`".into(),
            (Wanted::Expression, _) if is_keyword(found) => {
                format!("write an expression; the keyword `{found}` cannot be a name")
            }
            (Wanted::Expression, "") => format!("write an expression after `{previous}`"),
            (Wanted::Expression, _) => format!("write an expression before `{found}`, or remove it"),
            (Wanted::More, ":") if self.open.is_none() => {
                "write `:` only at the end of an `if`, `for` or `def` line, or before a type: `t: f32 = e`".into()
            }
            (Wanted::More, "->") => {
                "write `->` only before the type of a function's result: `def f(x: f32) -> f32:`".into()
            }
            (Wanted::More, "for") if self.open == Some("[") => {
                "write one expression before `for`: `[(i, j) for i, j in …]`".into()
            }
            (Wanted::More, _) if previous == "]" && is_format(found) => {
                format!("write the storage of a tensor after `@`: `@ {found}`")
            }
            (Wanted::More, _) if self.open.is_some() => format!("is a comma missing before `{found}`?"),
            (Wanted::More, "if" | "for") if !next.is_empty() => "write the statement on a line of its own".into(),
            (Wanted::More, _) if previous == "print" => "`print` is a function: `print(\"x is\", x)`".into(),
            (Wanted::More, _) => format!("is an operator missing before `{found}`, or the end of the line?"),
        }
    }
}

/// Returns whether the word is the name of a format, or constructs one.
fn is_format(word: &str) -> bool {
    Named::find(word).is_some() || matches!(word, "bcsr" | "format" | "pattern")
}

/// Returns whether this token ends an operand, so that a number after it is misplaced rather than malformed.
fn ends_operand(previous: &str, token: Option<&Token>) -> bool {
    match token.map(|t| t.kind) {
        Some(TokenKind::Name) => !is_keyword(previous),
        Some(TokenKind::Number | TokenKind::Str) => true,
        Some(TokenKind::Op) => matches!(previous, ")" | "]" | "}" | "..."),
        _ => false,
    }
}

fn bad_character(span: Span, found: &str) -> Diagnostic {
    let (what, help) = match found.chars().next() {
        Some('!') => ("`!`".to_string(), "write `not x`, or `!=` to compare".to_string()),
        Some('?') => ("`?`".to_string(), "write `a if cond else b`".to_string()),
        Some('$' | '`' | '\\') => (format!("`{found}`"), "remove it".to_string()),
        Some('“' | '”' | '„' | '‘' | '’') => {
            (format!("`{found}`"), "enclose strings in `\"` or `'`".to_string())
        }
        Some(c) if c.is_alphanumeric() => {
            (format!("`{found}`"), "write names in ASCII letters, digits and `_`: `alpha`, `dx`".to_string())
        }
        Some(c) if c.is_whitespace() || c.is_control() || !is_visible(c) => {
            (format!("invisible character U+{:04X}", u32::from(c)), "replace it with a space".to_string())
        }
        _ => (format!("`{found}`"), "outside strings and comments, write ASCII".to_string()),
    };
    Diagnostic::new("syntax::character", format!("unexpected {what}")).at(span).help(help)
}

fn is_visible(c: char) -> bool {
    !matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

fn bad_number(span: Span, found: &str) -> Diagnostic {
    let lower = found.to_ascii_lowercase();
    let digits = lower.trim_start_matches('0');
    let help = match () {
        () if lower.ends_with('j') => {
            "complex numbers are not supported: keep the real and the imaginary part in two tensors"
        }
        () if lower.len() > 1 && lower.starts_with('0') && digits.bytes().all(|b| b.is_ascii_digit() || b == b'_') => {
            "remove the leading zeros, or write `0o17` for octal"
        }
        () if lower.contains('_') => "write `_` only between two digits: `1_000`",
        () if lower.ends_with('f') => "leave out the `f`: a literal takes the type of the operand beside it",
        () => "write `12`, `1.5`, `1e-3`, `0xff`, `0o17` or `0b11`; put a space before a word that follows",
    };
    Diagnostic::new("syntax::number", format!("`{found}` is not a number")).at(span).help(help)
}

/// Returns whether the word is a keyword, so that it cannot be a name.
pub fn is_keyword(word: &str) -> bool {
    matches!(
        word,
        "False"
            | "None"
            | "True"
            | "and"
            | "as"
            | "assert"
            | "async"
            | "await"
            | "break"
            | "class"
            | "continue"
            | "def"
            | "del"
            | "elif"
            | "else"
            | "except"
            | "finally"
            | "for"
            | "from"
            | "global"
            | "if"
            | "import"
            | "in"
            | "is"
            | "lambda"
            | "nonlocal"
            | "not"
            | "or"
            | "pass"
            | "raise"
            | "return"
            | "try"
            | "while"
            | "with"
            | "yield"
    )
}

/// Reports an `else` or `elif` that belongs to no `if`; `before` is the first word of the statement before it.
pub fn lone_else(span: Span, word: &str, before: Option<&str>) -> Diagnostic {
    match before {
        Some("for") => Diagnostic::new("python::for_else", format!("`{word}` after a `for` is not supported"))
            .at(span)
            .help("loops always run to their end: write the statements after the loop"),
        Some("while") => Diagnostic::new("python::for_else", format!("`{word}` after a `while` is not supported"))
            .at(span)
            .help("write the statements after the loop"),
        Some("else") => Diagnostic::new("syntax::unexpected", format!("unexpected `{word}` after `else`"))
            .at(span)
            .help("`else` is the last branch: write `elif` for the ones before it"),
        _ => Diagnostic::new("syntax::unexpected", format!("`{word}` without an `if` before it"))
            .at(span)
            .help("indent it like the `if` that it belongs to"),
    }
}

/// Reports a left-hand side that cannot be assigned to.
pub fn bad_target(span: Span, what: &str, help: &str) -> Diagnostic {
    Diagnostic::new("syntax::target", format!("cannot assign to {what}")).at(span).help(help)
}

/// Reports a NUL, which no text file has and which Python refuses even in comments.
pub fn nul(source: &Source<'_>) -> Option<Diagnostic> {
    let at = source.text.find('\0')?;
    let message = "the file contains a NUL character, so it is not a text file";
    Some(Diagnostic::new("syntax::character", message).at(source.span(at, at + 1)).help("save it as UTF-8 text"))
}

/// Reports the first name that is too long to be repeated in messages and generated code.
pub fn long_name(source: &Source<'_>, tokens: &[Token]) -> Option<Diagnostic> {
    let long = tokens.iter().find(|t| t.kind == TokenKind::Name && t.end - t.start > MAX_NAME)?;
    let message = format!("a name is longer than {MAX_NAME} characters");
    let span = source.span(long.start, long.end);
    Some(Diagnostic::new("syntax::name", message).at(span).help("give it a shorter name"))
}

/// Reports a declaration of an encoding other than UTF-8 in the first two lines: Python would read the file
/// differently.
pub fn check_encoding(source: &Source<'_>, diags: &mut Vec<Diagnostic>) {
    let mut start = 0;
    for line in source.text.split_inclusive(['\n', '\r']).take(2) {
        let trimmed = line.trim_start_matches(['\u{feff}', ' ', '\t', '\x0c']);
        if let Some(at) = trimmed.find("coding").filter(|_| trimmed.starts_with('#')) {
            let value = trimmed[at + 6..].trim_start_matches(|c| c != ':' && c != '=' || c == ' ');
            let name: String = value
                .get(1..)
                .unwrap_or("")
                .trim_start_matches([' ', '\t'])
                .chars()
                .take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
                .collect();
            let glued = trimmed[at + 6..].starts_with([':', '=']);
            if glued && !name.is_empty() && !matches!(name.to_ascii_lowercase().as_str(), "utf-8" | "utf8" | "utf_8") {
                diags.push(
                    Diagnostic::new(
                        "syntax::encoding",
                        format!("expected UTF-8, found a declaration of the encoding `{name}`"),
                    )
                    .at(source.span(start, start + line.len()))
                    .help("save the file as UTF-8, and remove this line"),
                );
            }
        }
        start += line.len();
    }
}
