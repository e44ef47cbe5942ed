//! Groups tokens into logical lines and lines into blocks by indentation, as Python does.
//!
//! A logical line ends at an end of line outside brackets and strings and without `\` before it. Blank lines and lines
//! of comments alone do not count. Tabs: indentation is measured twice, with tab stops of 8 and of 1 columns, and two
//! lines must compare the same way in both measures, else the file means different things to different readers.
//!
//! Every problem found here is reported and repaired, so that the lines after it are still parsed: an unclosed bracket
//! ends where a line starts with a word that only starts statements; a line that fits no block joins the nearest one.

use super::source::{MAX_BLOCKS, MAX_BRACKETS, Source};
use super::token::{Token, TokenKind};
use std::ops::Range;
use taffeta_ast::diag::Diagnostic;

/// Logical line with the block indented under it.
#[derive(Debug)]
pub struct Line {
    /// Token range of the line; the first and the last token are not comments.
    pub tokens: Range<usize>,
    /// Lines indented under this one.
    pub block: Vec<Line>,
    /// Whether a problem inside the line has been reported already; a broken line must not be parsed.
    pub broken: bool,
}

/// Words that start a statement and stand in no expression: a bracket still open there was forgotten.
const STARTERS: [&str; 12] =
    ["def", "return", "assert", "pass", "class", "while", "with", "try", "raise", "break", "continue", "del"];

/// Returns the blocks of a file.
pub fn layout(source: &Source<'_>, tokens: &[Token], diags: &mut Vec<Diagnostic>) -> Vec<Line> {
    let flat = logical_lines(source, tokens, diags);
    nest(source, tokens, flat, diags)
}

/// Splits the tokens into logical lines in order, without their blocks.
fn logical_lines(source: &Source<'_>, tokens: &[Token], diags: &mut Vec<Diagnostic>) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if matches!(tokens[at].kind, TokenKind::Newline | TokenKind::Comment) {
            at += 1;
            continue;
        }
        let line = logical_line(source, tokens, at, diags);
        at = line.tokens.end;
        // A trailing comment and blank continuation lines are not part of the statement.
        let mut line = line;
        while line.tokens.end > line.tokens.start && !tokens[line.tokens.end - 1].is_significant() {
            line.tokens.end -= 1;
        }
        if line.tokens.is_empty() {
            continue;
        }
        let head = &tokens[line.tokens.start];
        if head.kind == TokenKind::Continuation {
            diags.push(
                Diagnostic::new("syntax::continuation", "unexpected `\\` at the start of a line")
                    .at(source.span(head.start, head.start + 1))
                    .help("remove the `\\`"),
            );
            line.broken = true;
        }
        lines.push(line);
    }
    lines
}

/// Reads the logical line that starts at token `first`.
fn logical_line(source: &Source<'_>, tokens: &[Token], first: usize, diags: &mut Vec<Diagnostic>) -> Line {
    let mut open: Vec<Token> = Vec::new();
    let mut broken = false;
    let mut at = first;
    while let Some(token) = tokens.get(at) {
        let text = token.text(source.text);
        match token.kind {
            TokenKind::Newline if open.is_empty() => break,
            TokenKind::Name
                if !open.is_empty() && tokens[at - 1].kind == TokenKind::Newline && STARTERS.contains(&text) =>
            {
                break;
            }
            TokenKind::Continuation if tokens.get(at + 1).is_none() => {
                diags.push(
                    Diagnostic::new("syntax::continuation", "expected a line after `\\`, found the end of the file")
                        .at(source.span(token.start, token.end))
                        .help("remove the `\\`, or write the rest of the line"),
                );
                broken = true;
            }
            TokenKind::OpenStr => {
                diags.push(open_string(source, token));
                broken = true;
            }
            TokenKind::Op if matches!(text, "(" | "[" | "{") => {
                open.push(*token);
                if open.len() == MAX_BRACKETS + 1 {
                    diags.push(super::source::too_deep(source.span(token.start, token.end)));
                    broken = true;
                }
            }
            TokenKind::Op if matches!(text, ")" | "]" | "}") => {
                let expected = open.pop();
                if expected.is_none_or(|o| !closes(o.text(source.text), text)) {
                    if !broken {
                        diags.push(wrong_close(source, expected, token));
                    }
                    broken = true;
                }
            }
            _ => {}
        }
        at += 1;
    }
    if let (Some(bracket), false) = (open.last(), broken) {
        let text = bracket.text(source.text);
        diags.push(
            Diagnostic::new("syntax::bracket", format!("`{text}` is never closed"))
                .label(source.span(bracket.start, bracket.end), "opened here")
                .help(format!("write the matching `{}`", closing(text))),
        );
        broken = true;
    }
    Line { tokens: first..at, block: Vec::new(), broken }
}

fn closing(open: &str) -> &'static str {
    match open {
        "(" => ")",
        "[" => "]",
        _ => "}",
    }
}

fn closes(open: &str, close: &str) -> bool {
    closing(open) == close
}

fn open_string(source: &Source<'_>, token: &Token) -> Diagnostic {
    let text = token.text(source.text);
    let quotes = text.trim_start_matches(|c: char| c.is_ascii_alphabetic());
    let (quote, place) = match () {
        () if quotes.starts_with("\"\"\"") => ("\"\"\"", "file"),
        () if quotes.starts_with("'''") => ("'''", "file"),
        () if quotes.starts_with('"') => ("\"", "line"),
        () => ("'", "line"),
    };
    let start = token.start + (text.len() - quotes.len());
    Diagnostic::new("syntax::string", format!("a string is not closed before the end of the {place}"))
        .label(source.span(token.start, start + quote.len()), "it starts here")
        .help(format!("end it with `{quote}`"))
}

fn wrong_close(source: &Source<'_>, open: Option<Token>, close: &Token) -> Diagnostic {
    let (found, span) = (close.text(source.text), source.span(close.start, close.end));
    match open {
        Some(open) => {
            let text = open.text(source.text);
            Diagnostic::new("syntax::bracket", format!("expected `{}`, found `{found}`", closing(text)))
                .at(span)
                .label(source.span(open.start, open.end), "opened here")
                .help(format!("close `{text}` with `{}`", closing(text)))
        }
        None => Diagnostic::new("syntax::bracket", format!("unmatched closing bracket `{found}`"))
            .at(span)
            .help(format!("remove the `{found}`, or open it")),
    }
}

/// Columns of an indentation, with tab stops of 8 (`wide`) and of 1 (`narrow`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Indent {
    wide: usize,
    narrow: usize,
}

impl Indent {
    fn of(blanks: &str) -> Indent {
        blanks.bytes().fold(Indent { wide: 0, narrow: 0 }, |i, b| match b {
            b'\t' => Indent { wide: i.wide / 8 * 8 + 8, narrow: i.narrow + 1 },
            b'\x0c' => Indent { wide: 0, narrow: 0 },
            _ => Indent { wide: i.wide + 1, narrow: i.narrow + 1 },
        })
    }

    /// Compares two indentations: deeper, equal or shallower; `None` if the two measures disagree.
    fn compare(self, other: Indent) -> Option<std::cmp::Ordering> {
        let (wide, narrow) = (self.wide.cmp(&other.wide), self.narrow.cmp(&other.narrow));
        (wide == narrow).then_some(wide)
    }
}

/// Puts each line into the block it is indented under.
fn nest(source: &Source<'_>, tokens: &[Token], flat: Vec<Line>, diags: &mut Vec<Diagnostic>) -> Vec<Line> {
    use std::cmp::Ordering::{Equal, Greater, Less};
    // Stack of open blocks: indentation and lines so far.
    let mut blocks: Vec<(Indent, Vec<Line>)> = vec![(Indent { wide: 0, narrow: 0 }, Vec::new())];
    for line in flat {
        let start = tokens[line.tokens.start].start;
        let blanks = blanks_before(source.text, start);
        let indent = Indent::of(blanks);
        let span = source.span(start - blanks.len(), start);
        let word = source.span(start, tokens[line.tokens.start].end);
        let mut order = indent.compare(blocks[blocks.len() - 1].0);
        if order == Some(Greater) && blocks.len() == 1 && blocks[0].1.is_empty() {
            diags.push(
                Diagnostic::new("syntax::indentation", "the first line of the file is indented")
                    .at(word)
                    .help("start it at the left margin"),
            );
            blocks[0].0 = indent;
            order = Some(Equal);
        }
        if order == Some(Greater) {
            if blocks.len() > MAX_BLOCKS {
                diags.push(
                    Diagnostic::new("syntax::depth", format!("blocks are nested more than {MAX_BLOCKS} deep"))
                        .at(word)
                        .help("move the inner blocks into a function"),
                );
                break;
            }
            blocks.push((indent, vec![line]));
            continue;
        }
        while order == Some(Less) && blocks.len() > 1 {
            close_block(&mut blocks);
            order = indent.compare(blocks[blocks.len() - 1].0);
            if order == Some(Greater) {
                diags.push(
                    Diagnostic::new("syntax::indentation", "the indentation matches no enclosing block").at(word).help(
                        format!("indent it by {} columns, like the block before", blocks[blocks.len() - 1].0.wide),
                    ),
                );
                order = Some(Equal);
            }
        }
        if order.is_none() {
            diags.push(
                Diagnostic::new(
                    "syntax::tabs",
                    "the indentation mixes tabs and spaces differently from the lines above",
                )
                .at(span)
                .help("indent with four spaces per block everywhere (`taffeta fmt` does it once the file parses)"),
            );
        }
        if order == Some(Less) {
            blocks[0].0 = indent; // the first line was indented too far, and was reported
        }
        let last = blocks.len() - 1;
        blocks[last].1.push(line);
    }
    while blocks.len() > 1 {
        close_block(&mut blocks);
    }
    blocks.pop().map(|(_, lines)| lines).unwrap_or_default()
}

/// Attaches the innermost block to the last line of the enclosing block.
fn close_block(blocks: &mut Vec<(Indent, Vec<Line>)>) {
    let inner = blocks.pop().map(|(_, lines)| lines);
    if let (Some(block), Some(head)) = (inner, blocks.last_mut().and_then(|(_, lines)| lines.last_mut())) {
        head.block = block;
    }
}

/// Returns the column of byte `start`, with tab stops of 8; only blanks may precede it on its line.
pub fn column(text: &str, start: usize) -> usize {
    Indent::of(blanks_before(text, start)).wide
}

/// Returns the blanks between the start of the physical line and `start`.
fn blanks_before(text: &str, start: usize) -> &str {
    let line = text[..start].rfind(['\n', '\r']).map_or(0, |i| i + 1);
    let blanks = &text[line..start];
    let len = blanks.bytes().rev().take_while(|b| matches!(b, b' ' | b'\t' | b'\x0c')).count();
    &blanks[blanks.len() - len..]
}
