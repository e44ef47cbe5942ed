//! Spacing between two tokens: a space or nothing.
//!
//! A token's neighbours and the bracket around it decide: a `:` in `[…]` makes a slice, elsewhere it stands before a
//! type or a block; a `=` in a call is tight; `-` after an operator is a sign.

use crate::parse::problem::is_keyword;
use crate::parse::token::{Token, TokenKind};

/// Token with the properties that the formatter needs.
#[derive(Debug)]
pub struct Piece {
    /// Text of the token; ends of lines in strings are `\n`.
    pub text: String,
    /// Whether a space stands before the token if it does not start a line.
    pub space: bool,
    /// Number of open brackets around the token; for a bracket, around the pair.
    pub depth: usize,
    /// Distance to the other bracket of the pair, in pieces; 0 for all other tokens.
    pub mate: isize,
    /// Binding strength of an operator between operands. Long lines break at the loosest.
    pub level: Option<u8>,
    /// Whether the token is a comment (inside brackets).
    pub is_comment: bool,
    /// Number of line ends in the source between the previous piece and this one.
    pub breaks: usize,
}

/// Open bracket, while its contents are read.
struct Bracket {
    index: usize,
    square: bool,
    /// Whether a parameter or argument with `: type` was read since the last comma: its `=` has spaces.
    annotated: bool,
    /// Whether a `for` awaits its `in`, which is not a comparison then.
    in_for: bool,
}

/// Returns the tokens of a logical line, including comments inside it.
pub fn pieces(source: &str, tokens: &[Token]) -> Vec<Piece> {
    let mut out: Vec<Piece> = Vec::with_capacity(tokens.len());
    let mut open: Vec<Bracket> = Vec::new();
    let mut breaks = 0;
    let mut in_for = tokens.first().is_some_and(|t| t.text(source) == "for");
    // The last piece but comments: its text, whether an operand ends there, and whether it is a sign or the `@` of a
    // decorator, which the next token touches.
    let (mut before, mut operand, mut tight) = (String::new(), false, false);
    for (i, token) in tokens.iter().enumerate() {
        match token.kind {
            TokenKind::Newline => {
                breaks += 1;
                continue;
            }
            TokenKind::Continuation => continue,
            _ => {}
        }
        let text = match token.kind {
            TokenKind::Str => token.text(source).replace("\r\n", "\n").replace('\r', "\n"),
            TokenKind::Comment => token.text(source).trim_end().to_string(),
            _ => token.text(source).to_string(),
        };
        let is_comment = token.kind == TokenKind::Comment;
        let next = tokens[i + 1..].iter().find(|t| t.is_significant()).map_or("", |t| t.text(source));
        let level = if is_comment { None } else { level(&text, next, &before, operand, open.last(), in_for) };
        let space = !before.is_empty() && !tight && space(&before, operand, &text, open.last());
        let mut piece = Piece { text, space, depth: open.len(), mate: 0, level, is_comment, breaks };
        breaks = 0;
        if is_comment {
            out.push(piece);
            continue;
        }
        match piece.text.as_str() {
            "(" | "[" => {
                open.push(Bracket { index: out.len(), square: piece.text == "[", annotated: false, in_for: false });
            }
            ")" | "]" => {
                piece.depth = open.len().saturating_sub(1);
                if let Some(bracket) = open.pop() {
                    let distance = (out.len() - bracket.index) as isize;
                    piece.mate = -distance;
                    out[bracket.index].mate = distance;
                }
            }
            "," => open.iter_mut().last().into_iter().for_each(|b| b.annotated = false),
            ":" => open.iter_mut().last().into_iter().for_each(|b| b.annotated = !b.square),
            "for" => open.iter_mut().last().into_iter().for_each(|b| b.in_for = true),
            "in" => match open.last_mut() {
                Some(bracket) => bracket.in_for = false,
                None => in_for = false,
            },
            _ => {}
        }
        operand = ends_operand(&piece.text, token.kind);
        before.clone_from(&piece.text);
        tight = piece.level.is_none() && matches!(piece.text.as_str(), "-" | "+" | "~" | "@");
        out.push(piece);
    }
    out
}

fn ends_operand(text: &str, kind: TokenKind) -> bool {
    match kind {
        TokenKind::Name => !is_keyword(text) || matches!(text, "None" | "True" | "False"),
        TokenKind::Number | TokenKind::Str => true,
        _ => matches!(text, ")" | "]" | "..."),
    }
}

/// Returns the binding strength of an operator between operands, if a line may break before it (not before `**`). The
/// `for` and `if` of a comprehension are the loosest.
fn level(text: &str, next: &str, before: &str, operand: bool, open: Option<&Bracket>, in_for: bool) -> Option<u8> {
    if !operand {
        return None;
    }
    let level = match text {
        "for" => 0,
        "if" | "else" => 1,
        "or" => 2,
        "and" => 3,
        "in" if open.map_or(in_for, |b| b.in_for) || before == "not" => return None,
        // Adjacent strings are joined.
        _ if text.ends_with(['"', '\'']) => 4,
        "in" | "is" | "==" | "!=" | "<" | "<=" | ">" | ">=" => 5,
        "not" if next == "in" => 5,
        "|" => 6,
        "^" => 7,
        "&" => 8,
        "<<" | ">>" => 9,
        "+" | "-" => 10,
        "*" | "/" | "//" | "%" | "@" => 11,
        _ => return None,
    };
    Some(level)
}

/// Returns whether a space stands between `before` and `text`.
fn space(before: &str, operand: bool, text: &str, open: Option<&Bracket>) -> bool {
    match (before, text) {
        ("(" | "[" | ".", _) | (_, ")" | "]" | "," | ";") => false,
        (",", _) => true,
        (_, ":") => false,
        // `1 .real`: without the space it would be another number.
        (_, ".") => before.bytes().all(|b| b.is_ascii_digit() || b == b'_') && !before.starts_with('_'),
        (":", _) => !open.is_some_and(|b| b.square),
        ("=", _) | (_, "=") => open.is_none_or(|b| b.annotated),
        (_, "(" | "[") => !operand,
        _ => true,
    }
}

/// Returns whether the word starts a compound statement, whose line ends with `:`.
pub fn is_head(word: &str) -> bool {
    matches!(word, "def" | "for" | "if" | "elif" | "else")
}
