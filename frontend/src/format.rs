//! Formatter (`taffeta fmt`): one layout for each program.
//!
//! *Rewrites*: four spaces per block; one statement per line; spaces around operators and after commas; two blank lines
//! around functions, at most one inside them; lines of more than [`MAX_WIDTH`] columns broken inside brackets; one end
//! of line at the end. *Keeps*: comments where they stand, strings byte for byte (but for `\r\n`), the line breaks of a
//! statement with a comment in its brackets, and one element per line where there is a comma before the closing bracket
//! on its own line.
//!
//! The formatter works on tokens, not on the tree, so that no text of the author is lost; `spacing` decides the space
//! between two tokens and `wrap` where long lines break. Formatting is idempotent, and the tree is the same before and
//! after but for its spans (tested on the repository's programs and on generated ones).

mod spacing;
mod wrap;

use crate::parse::layout::{Line, column};
use crate::parse::token::{Token, TokenKind};
use crate::parse::{self, parse};
use spacing::Piece;
use taffeta_ast::diag::Diagnostics;
use taffeta_ast::span::FileId;

/// Maximum width of a line in columns, unless the line has no bracket to break it in.
pub const MAX_WIDTH: usize = 120;

/// Formats a program; refuses one that does not parse, with its diagnostics.
pub fn format(text: &str, file: FileId) -> Result<String, Diagnostics> {
    let (_, diags) = parse(text, file);
    if !diags.is_empty() {
        return Err(Diagnostics(diags));
    }
    let (tokens, lines) = parse::lines(text, file);
    let mut formatter =
        Formatter { text, tokens: &tokens, next: 0, columns: Vec::new(), depth: 0, entries: Vec::new() };
    formatter.block(&lines, 0);
    formatter.comments(tokens.len(), 0, 0);
    Ok(write(&formatter.entries))
}

/// Statement, head of a block, or comment on lines of its own.
struct Entry {
    /// Number of blocks around the entry.
    depth: usize,
    /// Number of blank lines before the entry in the source.
    blanks: usize,
    kind: EntryKind,
    /// Lines of the entry, without the indentation of the first one.
    text: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum EntryKind {
    Comment,
    Decorator,
    /// `def`
    Function,
    /// Any other head of a block.
    Head,
    Statement,
}

struct Formatter<'a> {
    text: &'a str,
    tokens: &'a [Token],
    /// Index of the first token that is not in an entry yet.
    next: usize,
    /// Source column of the latest line at each depth.
    columns: Vec<usize>,
    /// Depth of the latest line, or of its block if it has one.
    depth: usize,
    entries: Vec<Entry>,
}

impl Formatter<'_> {
    fn block(&mut self, lines: &[Line], depth: usize) {
        for line in lines {
            let start = self.tokens[line.tokens.start].start;
            let at = column(self.text, start);
            let blanks = self.comments(line.tokens.start, depth, at);
            self.columns.truncate(depth);
            self.columns.resize(depth + 1, at);
            self.depth = depth + usize::from(!line.block.is_empty());
            self.line(line, depth, blanks);
            self.block(&line.block, depth + 1);
        }
    }

    /// Adds entries for the comments before token `end`, which starts a line at `depth` and column `at`. Returns the
    /// number of line ends between the last comment and the token.
    fn comments(&mut self, end: usize, depth: usize, at: usize) -> usize {
        let mut newlines = 0;
        for token in &self.tokens[self.next..end] {
            match token.kind {
                TokenKind::Newline => newlines += 1,
                TokenKind::Comment => {
                    let depth = self.comment_depth(column(self.text, token.start), depth, at);
                    let text = token.text(self.text).trim_end().to_string();
                    self.push(depth, newlines, EntryKind::Comment, text);
                    newlines = 0;
                }
                _ => {}
            }
        }
        self.next = end;
        newlines
    }

    /// Returns the depth of a comment at column `at`, before a line at depth `next` and column `next_at`: a block that
    /// ends keeps the comments that are indented like it.
    fn comment_depth(&self, at: usize, next: usize, next_at: usize) -> usize {
        if next >= self.depth || at <= next_at {
            return next;
        }
        let fits = |d: &usize| self.columns.get(*d).is_some_and(|c| *c <= at);
        (next..=self.depth).rev().find(fits).unwrap_or(next)
    }

    fn push(&mut self, depth: usize, newlines: usize, kind: EntryKind, text: String) {
        // The first end of line belongs to the entry before.
        let blanks = newlines.saturating_sub(usize::from(!self.entries.is_empty()));
        self.entries.push(Entry { depth, blanks, kind, text });
    }

    /// Adds entries for a logical line: one for its head and one for each of its statements.
    fn line(&mut self, line: &Line, depth: usize, newlines: usize) {
        let pieces = spacing::pieces(self.text, &self.tokens[line.tokens.clone()]);
        self.next = line.tokens.end;
        let parts = split(&pieces);
        let count = parts.len();
        for (i, part) in parts.into_iter().enumerate() {
            let first = part.first().map_or("", |p| p.text.as_str());
            let kind = match first {
                "@" => EntryKind::Decorator,
                "def" => EntryKind::Function,
                _ if i == 0 && spacing::is_head(first) => EntryKind::Head,
                _ => EntryKind::Statement,
            };
            let depth = depth + usize::from(i > 0 && spacing::is_head(pieces[0].text.as_str()));
            let mut text = wrap::statement(part, depth * 4);
            if i + 1 == count
                && let Some(comment) = self.trailing_comment()
            {
                text.push_str("  ");
                text.push_str(comment);
            }
            self.push(depth, if i == 0 { newlines } else { 1 }, kind, text);
        }
    }

    /// Takes the comment after the last token of a line, on the same physical line.
    fn trailing_comment(&mut self) -> Option<&'_ str> {
        let token = self.tokens.get(self.next).filter(|t| t.kind == TokenKind::Comment)?;
        self.next += 1;
        Some(token.text(self.text).trim_end())
    }
}

/// Splits a line after the colon of its head and at each `;`.
fn split(pieces: &[Piece]) -> Vec<&[Piece]> {
    let mut parts = Vec::new();
    let mut start = 0;
    let head = pieces.first().is_some_and(|p| spacing::is_head(&p.text));
    let mut colon_seen = !head;
    for (i, piece) in pieces.iter().enumerate().filter(|(_, p)| p.depth == 0) {
        if piece.text == ";" {
            parts.push(&pieces[start..i]);
            start = i + 1;
        } else if piece.text == ":" && !colon_seen {
            colon_seen = true;
            parts.push(&pieces[start..=i]);
            start = i + 1;
        }
    }
    parts.push(&pieces[start..]);
    parts.retain(|p| !p.is_empty());
    parts
}

/// Writes all entries with their indentation and the blank lines between them.
fn write(entries: &[Entry]) -> String {
    let attached = attached(entries);
    let mut out = String::new();
    for (i, entry) in entries.iter().enumerate() {
        let blanks = match i.checked_sub(1).and_then(|i| entries.get(i)) {
            Some(before) => blank_lines(before, entry, attached[i]),
            None => 0,
        };
        out.push_str(&"\n".repeat(blanks));
        out.push_str(&" ".repeat(entry.depth * 4));
        out.push_str(&entry.text);
        out.push('\n');
    }
    out
}

/// Marks the entries that are functions, or comments that stand directly above one and belong to it.
fn attached(entries: &[Entry]) -> Vec<bool> {
    let mut out = vec![false; entries.len()];
    let (mut next, mut blanks) = (false, 0);
    for (k, e) in entries.iter().enumerate().rev() {
        out[k] = match e.kind {
            EntryKind::Function | EntryKind::Decorator => true,
            EntryKind::Comment => next && blanks == 0,
            _ => false,
        };
        (next, blanks) = (out[k], e.blanks);
    }
    out
}

/// Returns the number of blank lines between `before` and `entry`, which may be `attached` to a function.
fn blank_lines(before: &Entry, entry: &Entry, attached: bool) -> usize {
    if before.kind == EntryKind::Decorator || before.depth < entry.depth {
        return 0;
    }
    if entry.depth > 0 {
        return entry.blanks.min(1);
    }
    let continues = before.kind == EntryKind::Comment && entry.blanks == 0 && before.depth == 0;
    if continues {
        0
    } else if attached || before.depth > 0 {
        2
    } else {
        entry.blanks.min(2)
    }
}
