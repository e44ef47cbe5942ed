//! Tokeniser: splits a text before any grammar is applied. Its tokens serve the layout, the grammar's input, the
//! messages and the formatter.
//!
//! Strings, comments, ends of lines and brackets are exact. Names, numbers and operators are as long as Python makes
//! them; the grammar decides whether they are *valid*. Every byte that is not blank belongs to one token, and none is
//! rejected: a character that starts no token is [`TokenKind::Bad`].

/// Kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// Name or keyword, ASCII.
    Name,
    /// Number, or a malformed one that starts with a digit.
    Number,
    /// String with its prefix.
    Str,
    /// Unterminated string: to the end of the line, or of the file for `"""`.
    OpenStr,
    /// Operator, bracket or other punctuation.
    Op,
    /// `# …`, without the end of line.
    Comment,
    /// End of a physical line.
    Newline,
    /// `\` and the end of line after it.
    Continuation,
    /// Character that no program has outside strings and comments.
    Bad,
}

/// Token: its kind and its place in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// Kind of the token.
    pub kind: TokenKind,
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

impl Token {
    /// Returns the text of the token.
    pub fn text<'a>(&self, source: &'a str) -> &'a str {
        &source[self.start..self.end]
    }

    /// Returns whether the grammar reads the token: not a comment or an end of line.
    pub fn is_significant(&self) -> bool {
        !matches!(self.kind, TokenKind::Newline | TokenKind::Comment | TokenKind::Continuation)
    }
}

const OPERATORS: [&str; 47] = [
    "//=", "**=", "<<=", ">>=", "...", "->", ":=", "==", "!=", "<=", ">=", "+=", "-=", "*=", "/=", "%=", "@=", "&=",
    "|=", "^=", "**", "//", "<<", ">>", "(", ")", "[", "]", "{", "}", ",", ":", ";", ".", "=", "+", "-", "*", "/", "%",
    "@", "&", "|", "^", "~", "<", ">",
];

/// Splits `text` into tokens, in order; `text` starts at byte `base` of its file.
pub fn tokens(text: &str, base: usize) -> Vec<Token> {
    let mut out = Vec::with_capacity(text.len() / 3);
    let mut at = 0;
    while let Some(&byte) = text.as_bytes().get(at) {
        if matches!(byte, b' ' | b'\t' | b'\x0c') {
            at += 1;
            continue;
        }
        let (kind, len) = token(&text[at..], byte);
        out.push(Token { kind, start: base + at, end: base + at + len });
        at += len;
    }
    out
}

/// Returns `text` (which starts at byte `base`) with spaces in place of all but its significant tokens. The grammar
/// reads this text, in which every token keeps its byte offset.
pub fn plain(text: &str, tokens: &[Token], base: usize) -> String {
    let mut out = String::with_capacity(text.len());
    for token in tokens.iter().filter(|t| t.is_significant()) {
        out.extend(std::iter::repeat_n(' ', token.start - base - out.len()));
        out.push_str(&text[token.start - base..token.end - base]);
    }
    out.extend(std::iter::repeat_n(' ', text.len() - out.len()));
    out
}

/// Returns the first token of `rest`, which starts with `byte`, and its length (at least 1).
fn token(rest: &str, byte: u8) -> (TokenKind, usize) {
    let bytes = rest.as_bytes();
    if let Some(len) = newline(rest) {
        return (TokenKind::Newline, len);
    }
    match byte {
        b'#' => (TokenKind::Comment, rest.find(['\n', '\r']).unwrap_or(rest.len())),
        b'\\' => match newline(&rest[1..]) {
            Some(len) => (TokenKind::Continuation, 1 + len),
            None => (TokenKind::Bad, 1),
        },
        b'"' | b'\'' => string(rest, 0),
        b'0'..=b'9' => (TokenKind::Number, number(bytes)),
        b'.' if bytes.get(1).is_some_and(u8::is_ascii_digit) => (TokenKind::Number, number(bytes)),
        b'A'..=b'Z' | b'a'..=b'z' | b'_' => {
            let len = word(bytes);
            let quote = bytes.get(len).is_some_and(|b| matches!(b, b'"' | b'\''));
            if quote && is_prefix(&rest[..len]) { string(rest, len) } else { (TokenKind::Name, len) }
        }
        _ => match OPERATORS.iter().find(|op| rest.starts_with(**op)) {
            Some(op) => (TokenKind::Op, op.len()),
            None => (TokenKind::Bad, rest.chars().next().map_or(1, char::len_utf8)),
        },
    }
}

/// Returns the length of the end of line at the start of `rest`.
pub fn newline(rest: &str) -> Option<usize> {
    match rest.as_bytes() {
        [b'\r', b'\n', ..] => Some(2),
        [b'\n' | b'\r', ..] => Some(1),
        _ => None,
    }
}

fn word(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').count()
}

fn is_prefix(word: &str) -> bool {
    matches!(word.to_ascii_lowercase().as_str(), "r" | "u" | "b" | "f" | "rb" | "br" | "rf" | "fr")
}

/// Returns the length of a number: digits, a fraction, an exponent, and the letters that follow without a gap.
fn number(bytes: &[u8]) -> usize {
    let mut len = digits(bytes);
    let plain = bytes[..len].iter().all(|b| b.is_ascii_digit() || *b == b'_');
    if plain && bytes.get(len) == Some(&b'.') {
        len += 1 + digits(&bytes[len + 1..]);
    }
    if plain
        && matches!(bytes.get(len), Some(b'e' | b'E'))
        && matches!(bytes.get(len + 1), Some(b'+' | b'-'))
        && bytes.get(len + 2).is_some_and(u8::is_ascii_digit)
    {
        len += 2;
    }
    len + word(&bytes[len..])
}

fn digits(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|b| b.is_ascii_digit() || **b == b'_').count()
}

/// Reads a string whose prefix has `prefix` bytes.
fn string(rest: &str, prefix: usize) -> (TokenKind, usize) {
    let bytes = rest.as_bytes();
    let quote = bytes[prefix];
    let long = bytes[prefix..].starts_with(&[quote; 3]);
    let mut at = prefix + if long { 3 } else { 1 };
    while let Some(&byte) = bytes.get(at) {
        if byte == b'\\' {
            // A backslash takes the next character with it, in raw strings too; `\r\n` counts as one.
            let next = &rest[at + 1..];
            at += 1 + newline(next).or_else(|| next.chars().next().map(char::len_utf8)).unwrap_or(0);
        } else if byte == quote && (!long || bytes[at..].starts_with(&[quote; 3])) {
            return (TokenKind::Str, at + if long { 3 } else { 1 });
        } else if !long && matches!(byte, b'\n' | b'\r') {
            return (TokenKind::OpenStr, at);
        } else {
            at += 1;
        }
    }
    (TokenKind::OpenStr, rest.len())
}
