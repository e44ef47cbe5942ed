//! Wrapping of statements that are too long for one line.
//!
//! A line breaks inside brackets only: for a `def` in the brackets of the parameters, else in the widest pair. Their
//! contents go on a line of their own, or, where that is too long, one element to a line with a comma after the last;
//! an element that is still too long breaks at its loosest operators, and then in brackets of its own.

use super::MAX_WIDTH;
use super::spacing::Piece;

/// Maximum number of bracket pairs side by side among which the widest is searched. A statement with more stays on one
/// line: each pair is a level of recursion, and such a line was not written by a person.
const MAX_GROUPS: usize = 64;

/// Lays out a statement at column `indent`; its first line comes without the indentation.
pub fn statement(pieces: &[Piece], indent: usize) -> String {
    let mut w = Writer { out: String::new(), column: indent, is_def: pieces.first().is_some_and(|p| p.text == "def") };
    if pieces.iter().any(|p| p.is_comment) {
        w.as_written(pieces, indent);
    } else if let Some((head, tail)) = Some(pieces).filter(|p| !w.fits(&flat(p), 0)).and_then(to_bracket) {
        w.run(head, indent, false, 2);
        w.push(" (");
        w.newline(indent + 4);
        w.run(tail, indent + 4, true, 0);
        w.newline(indent);
        w.push(")");
    } else {
        w.run(pieces, indent, false, 0);
    }
    w.out
}

/// Finds the part of a long statement that gets brackets, so that it can break inside them: the message of an `assert`,
/// or an assigned or returned value without brackets worth breaking. Brackets that enclose the whole part already are
/// stripped from it.
fn to_bracket(pieces: &[Piece]) -> Option<(&[Piece], &[Piece])> {
    let first = pieces.first()?;
    let is_assert = first.text == "assert";
    let is_cut = |p: &Piece| match p.text.as_str() {
        "," => is_assert,
        "==" | "!=" | "<=" | ">=" => false,
        text => !is_assert && text.ends_with('='),
    };
    let cut = match first.text.as_str() {
        "return" => 0,
        "def" | "for" | "if" | "elif" => return None,
        _ => pieces.iter().position(|p| p.depth == 0 && is_cut(p))?,
    };
    let (head, mut tail) = pieces.split_at(cut + 1);
    let bracketed = tail.first().is_some_and(|p| p.text == "(" && p.mate as usize + 1 == tail.len());
    if bracketed {
        tail = &tail[1..tail.len() - 1];
    }
    let base = tail.first()?.depth;
    let one = !tail.iter().any(|p| p.depth == base && matches!(p.text.as_str(), "," | "for" | "lambda" | "="));
    let wide = |i: usize| tail[i].mate > 0 && width(group(tail, i)) >= WORTH_BREAKING * 2;
    (one && (is_assert || !(0..tail.len()).any(wide))).then_some((head, tail))
}

/// Minimum width of a bracket pair, in columns, to break a line there.
const WORTH_BREAKING: usize = 10;

struct Writer {
    out: String,
    column: usize,
    is_def: bool,
}

impl Writer {
    fn push(&mut self, text: &str) {
        self.out.push_str(text);
        self.column = match text.rfind('\n') {
            Some(at) => text[at + 1..].chars().count(),
            None => self.column + text.chars().count(),
        };
    }

    fn newline(&mut self, indent: usize) {
        self.out.push('\n');
        self.out.push_str(&" ".repeat(indent));
        self.column = indent;
    }

    /// Returns whether `text`, and `after` more columns, fit on the line. Of a multi-line string the first line counts.
    fn fits(&self, text: &str, after: usize) -> bool {
        match text.split_once('\n') {
            Some((first, _)) => self.column + first.chars().count() <= MAX_WIDTH,
            None => self.column + text.chars().count() + after <= MAX_WIDTH,
        }
    }

    /// Keeps the line breaks of the source, where comments stand inside brackets.
    fn as_written(&mut self, pieces: &[Piece], indent: usize) {
        let base = pieces.first().map_or(0, |p| p.depth);
        for (i, piece) in pieces.iter().enumerate() {
            if i > 0 && piece.breaks > 0 {
                self.newline(indent + 4 * (piece.depth - base));
            } else if i > 0 && piece.is_comment {
                self.push("  ");
            } else if i > 0 && piece.space {
                self.push(" ");
            }
            self.push(&piece.text);
        }
    }

    /// Writes pieces on the line, broken where necessary. `bracketed` tells whether a line may break at any operator;
    /// `after` is the width of the text that follows on the same line.
    fn run(&mut self, pieces: &[Piece], indent: usize, bracketed: bool, after: usize) {
        let text = flat(pieces);
        if !any_exploded(pieces) && self.fits(&text, after) {
            self.push(&text);
            return;
        }
        if bracketed && let Some(parts) = at_operators(pieces) {
            let last = parts.len() - 1;
            for (i, part) in parts.into_iter().enumerate() {
                if i > 0 {
                    self.newline(indent);
                }
                self.run(part, indent, true, if i == last { after } else { 0 });
            }
            return;
        }
        let Some(open) = self.group_to_break(pieces) else {
            self.push(&text);
            return;
        };
        let close = open + pieces[open].mate as usize;
        if open > 0 {
            self.run(&pieces[..open], indent, bracketed, 2);
        }
        self.push(if open > 0 && pieces[open].space { " " } else { "" });
        self.push(&pieces[open].text);
        let exploded = is_exploded(&pieces[open..=close]);
        self.contents(&pieces[open + 1..close], exploded, indent + 4);
        self.newline(indent);
        self.push(&pieces[close].text);
        if close + 1 < pieces.len() {
            self.push(if pieces[close + 1].space { " " } else { "" });
            self.run(&pieces[close + 1..], indent, bracketed, after);
        }
    }

    /// Returns the brackets to break: a pair that must be broken, the parameters of a `def`, or the widest pair.
    fn group_to_break(&self, pieces: &[Piece]) -> Option<usize> {
        let base = pieces.first()?.depth;
        let groups = || (0..pieces.len()).filter(|i| pieces[*i].mate > 1 && pieces[*i].depth == base);
        let must = |i: &usize| is_exploded(group(pieces, *i));
        let inner = |i: &usize| any_exploded(group(pieces, *i));
        if groups().count() > MAX_GROUPS {
            return None;
        }
        if self.is_def && pieces[0].text == "def" {
            return groups().next();
        }
        groups().find(must).or_else(|| groups().find(inner)).or_else(|| {
            groups().filter(|i| width(group(pieces, *i)) >= WORTH_BREAKING).max_by_key(|i| width(group(pieces, *i)))
        })
    }

    /// Writes the contents of a pair of brackets on lines of their own.
    fn contents(&mut self, pieces: &[Piece], exploded: bool, indent: usize) {
        let (elements, trailing) = elements(pieces);
        let several = elements.len() > 1;
        self.newline(indent);
        let inner = any_exploded(pieces);
        // One line for all elements, if they fit.
        let bare = if several && trailing { &pieces[..pieces.len() - 1] } else { pieces };
        if !exploded && !inner && several && self.fits(&flat(bare), 0) {
            self.push(&flat(bare));
            return;
        }
        let comma = several || trailing;
        for (i, element) in elements.into_iter().enumerate() {
            if i > 0 {
                self.newline(indent);
            }
            self.run(element, indent, true, usize::from(comma));
            self.push(if comma { "," } else { "" });
        }
    }
}

/// Returns the pieces from an opening bracket to its closing one.
fn group(pieces: &[Piece], open: usize) -> &[Piece] {
    let close = open + pieces[open].mate.max(0) as usize;
    pieces.get(open..=close).unwrap_or(&pieces[open..])
}

/// Returns whether the author asked for one element per line: a comma, and then the closing bracket on a line of its
/// own.
fn is_exploded(group: &[Piece]) -> bool {
    let Some((close, rest)) = group.split_last() else { return false };
    let Some(contents) = rest.get(1..) else { return false };
    let (elements, trailing) = elements(contents);
    close.breaks > 0 && trailing && elements.len() > 1
}

/// Returns whether one of the bracket pairs in these pieces is exploded.
fn any_exploded(pieces: &[Piece]) -> bool {
    pieces.iter().enumerate().any(|(i, p)| p.mate > 0 && is_exploded(group(pieces, i)))
}

/// Splits the contents of brackets into elements, and tells whether a comma follows the last. A comprehension is one
/// element, and the commas of a lambda's parameters do not separate elements.
fn elements(pieces: &[Piece]) -> (Vec<&[Piece]>, bool) {
    let Some(base) = pieces.first().map(|p| p.depth) else { return (Vec::new(), false) };
    if pieces.iter().any(|p| p.depth == base && p.text == "for") {
        return (vec![pieces], false);
    }
    let mut out = Vec::new();
    let (mut start, mut in_lambda) = (0, false);
    for (i, piece) in pieces.iter().enumerate().filter(|(_, p)| p.depth == base) {
        match piece.text.as_str() {
            "lambda" => in_lambda = true,
            ":" => in_lambda = false,
            "," if !in_lambda => {
                out.push(&pieces[start..i]);
                start = i + 1;
            }
            _ => {}
        }
    }
    if start < pieces.len() {
        out.push(&pieces[start..]);
        return (out, false);
    }
    (out, true)
}

/// Splits pieces at the loosest operators; each part starts with its operator.
fn at_operators(pieces: &[Piece]) -> Option<Vec<&[Piece]>> {
    let base = pieces.first()?.depth;
    let here = || pieces.iter().enumerate().skip(1).filter(|(_, p)| p.depth == base);
    if here().any(|(_, p)| p.text == "lambda") || pieces[0].text == "lambda" {
        return None;
    }
    let loosest = here().filter_map(|(_, p)| p.level).min()?;
    // The conditions of a comprehension belong to its `for`.
    let is_cut = |p: &Piece| p.level.is_some_and(|l| l == loosest || loosest == 0 && l == 1 && p.text == "if");
    let mut parts = Vec::new();
    let mut start = 0;
    let mut for_seen = loosest != 0;
    for (i, piece) in here() {
        for_seen |= piece.text == "for";
        if is_cut(piece) && for_seen {
            parts.push(&pieces[start..i]);
            start = i;
        }
    }
    parts.push(&pieces[start..]);
    Some(parts)
}

fn width(pieces: &[Piece]) -> usize {
    flat(pieces).chars().count()
}

/// Joins pieces to one line. The comma after the last of several elements is dropped.
fn flat(pieces: &[Piece]) -> String {
    let mut out = String::new();
    let mut drop_comma_before: Vec<usize> = Vec::new();
    for (i, piece) in pieces.iter().enumerate() {
        if piece.mate > 0 {
            let close = i + piece.mate as usize;
            let (elements, trailing) = elements(pieces.get(i + 1..close).unwrap_or(&[]));
            if trailing && elements.len() > 1 {
                drop_comma_before.push(close);
            }
        }
        if piece.text == "," && drop_comma_before.contains(&(i + 1)) {
            continue;
        }
        if i > 0 && piece.space {
            out.push(' ');
        }
        out.push_str(&piece.text);
    }
    out
}
