//! Entries of a Matrix Market file, read in pieces: all threads parse the lines of a piece into columns, which are put
//! together in the order of the file. Beside the columns there is room for one piece.

use super::{Entries, Header, Symmetry};
use crate::io::columns::{Indices, are_wide};
use crate::io::file::{broken, line_error, truncated};
use rayon::prelude::*;
use std::io::Read;
use std::path::Path;
use taffeta_ast::Diagnostic;

/// Bytes of a piece for each thread.
const PIECE: usize = 1 << 20;

/// Bytes that a thread parses at once.
const PART: usize = 1 << 18;

/// Entries in the order of the file, both halves of a symmetric matrix.
pub(super) struct Columns {
    pub(super) rows: Indices,
    pub(super) cols: Indices,
    pub(super) values: Entries,
}

/// Numbers of the lines and of the entries of a part of a piece.
struct Part {
    /// Place of the part in the piece.
    begin: usize,
    lines: usize,
    entries: usize,
}

/// Fault on a line, counted from 0 in its part.
struct Fault {
    line: usize,
    message: String,
}

/// Whole lines of a file.
struct Piece {
    text: Vec<u8>,
    /// Whether the file ends behind them.
    ended: bool,
}

/// Reads the entries that follow the header; `length` is the number of bytes left, if it is known.
pub(super) fn read(
    reader: &mut (dyn Read + Send),
    header: &Header,
    length: Option<u64>,
    path: &Path,
) -> Result<Columns, Diagnostic> {
    let mut all = Columns::new(header);
    // The announced number of entries is trusted as far as the file is long enough: each takes a line.
    let most = header.count.min(length.map_or(0, |bytes| bytes as usize / 4 + 1));
    all.reserve(if header.banner.symmetry == Symmetry::General { most } else { most.saturating_mul(2) });
    let (mut line, mut count) = (header.line + 1, 0usize);
    // Columns of the parts of this piece and of the one before, whose memory serves every other piece.
    let (mut own, mut before): (Vec<Columns>, Vec<Columns>) = (Vec::new(), Vec::new());
    // Text of the piece before, whose memory serves again.
    let (mut rest, mut spare) = (Vec::new(), Vec::new());
    let mut piece = next(reader, &mut rest, Vec::new(), path)?;
    loop {
        let parse = || parsed(&piece.text, header, &mut own);
        let (parts, following) = rayon::join(parse, || {
            before.iter_mut().for_each(|columns| all.append(columns));
            let text = std::mem::take(&mut spare);
            if piece.ended { Ok(None) } else { next(reader, &mut rest, text, path).map(Some) }
        });
        for part in parts {
            let part = part.map_err(|fault| line_error(path, line + fault.line, fault.message))?;
            if count + part.entries > header.count {
                let message = format!("expected {} entries, found more", header.count);
                let from = part.begin + nth_entry(&piece.text[part.begin..], header.count - count);
                let behind = piece.text[part.begin..from].iter().filter(|b| **b == b'\n').count();
                return Err(line_error(path, line + behind, message));
            }
            count += part.entries;
            line += part.lines;
        }
        std::mem::swap(&mut own, &mut before);
        match following? {
            Some(following) => spare = std::mem::replace(&mut piece, following).text,
            None => break,
        }
    }
    before.iter_mut().for_each(|columns| all.append(columns));
    if count < header.count { Err(truncated(path)) } else { Ok(all) }
}

/// Reads the next lines into the memory of `text`; `rest` has the begin of a line between calls.
fn next(reader: &mut dyn Read, rest: &mut Vec<u8>, mut text: Vec<u8>, path: &Path) -> Result<Piece, Diagnostic> {
    text.clear();
    text.append(rest);
    let room = rayon::current_num_threads() * PIECE;
    loop {
        let begin = text.len();
        text.reserve(room);
        if reader.take(room as u64).read_to_end(&mut text).map_err(|e| broken(path, &e))? == 0 {
            return Ok(Piece { text, ended: true });
        }
        if let Some(end) = text[begin..].iter().rposition(|b| *b == b'\n') {
            *rest = text.split_off(begin + end + 1);
            return Ok(Piece { text, ended: false });
        }
    }
}

/// Parses lines by all threads, and adds the entries of each part to columns of its own.
fn parsed(text: &[u8], header: &Header, own: &mut Vec<Columns>) -> Vec<Result<Part, Fault>> {
    let parts = parts(text);
    own.resize_with(parts.len().max(own.len()), || Columns::new(header));
    let one = |(text, columns): ((usize, &[u8]), &mut Columns)| part(text, header, columns);
    parts.into_par_iter().zip(own).map(one).collect()
}

/// Splits lines into parts, each with its place.
fn parts(text: &[u8]) -> Vec<(usize, &[u8])> {
    let (mut all, mut begin) = (Vec::new(), 0);
    while text.len() - begin > PART {
        let rest = &text[begin + PART..];
        let end = rest.iter().position(|b| *b == b'\n').map_or(text.len(), |k| begin + PART + k + 1);
        all.push((begin, &text[begin..end]));
        begin = end;
    }
    all.push((begin, &text[begin..]));
    all
}

/// Returns whether a line has an entry: it is neither empty nor a comment.
fn is_entry(line: &[u8]) -> bool {
    line.iter().find(|b| !b.is_ascii_whitespace()).is_some_and(|b| *b != b'%')
}

/// Returns the place of entry `n` of a text, from 0. Called where the file has too many.
fn nth_entry(text: &[u8], n: usize) -> usize {
    let mut entries = text.split_inclusive(|b| *b == b'\n').scan(0, |end, line| {
        let begin = *end;
        *end += line.len();
        Some((begin, line))
    });
    entries.by_ref().filter(|(_, line)| is_entry(line)).nth(n).map_or(0, |(begin, _)| begin)
}

/// Parses the lines of a part, and adds its entries to columns.
fn part((begin, text): (usize, &[u8]), header: &Header, columns: &mut Columns) -> Result<Part, Fault> {
    let mut part = Part { begin, lines: 0, entries: 0 };
    let mut rest = text;
    while !rest.is_empty() {
        let (line, behind) = match memchr::memchr(b'\n', rest) {
            Some(end) => (&rest[..end], &rest[end + 1..]),
            None => (rest, &rest[rest.len()..]),
        };
        if is_entry(line) {
            part.entries += 1;
            columns.entry(line, header).map_err(|message| Fault { line: part.lines, message })?;
        }
        part.lines += 1;
        rest = behind;
    }
    Ok(part)
}

impl Columns {
    fn new(header: &Header) -> Columns {
        let wide = are_wide(&header.shape, 0);
        let indices = || if wide { Indices::I64(Vec::new()) } else { Indices::I32(Vec::new()) };
        Columns { rows: indices(), cols: indices(), values: Entries::of(header.banner.field) }
    }

    fn reserve(&mut self, more: usize) {
        self.rows.reserve(more);
        self.cols.reserve(more);
        self.values.reserve(more);
    }

    /// Moves the entries of a part behind these.
    fn append(&mut self, part: &mut Columns) {
        self.rows.append(&mut part.rows);
        self.cols.append(&mut part.cols);
        self.values.append(&mut part.values);
    }

    /// Adds the entry of a line.
    fn entry(&mut self, line: &[u8], header: &Header) -> Result<(), String> {
        let text = || "not a text file (not valid UTF-8)".to_string();
        let mut words = Words(line);
        let [rows, cols] = header.shape;
        let i = words.index(rows, "row")?;
        let j = words.index(cols, "column")?;
        // Most often, the value is the rest of the line.
        let rest = words.0.trim_ascii();
        let is_word = !rest.is_empty() && std::str::from_utf8(rest).is_ok_and(|word| self.values.push_word(word));
        if !is_word {
            let word = words.next().map(|word| std::str::from_utf8(word).map_err(|_| text())).transpose()?;
            self.values.push(word)?;
            if let Some(extra) = words.next() {
                return Err(format!("unexpected `{}` at the end of the line", String::from_utf8_lossy(extra)));
            }
        }
        self.rows.push(i);
        self.cols.push(j);
        let symmetry = header.banner.symmetry;
        if symmetry == Symmetry::Skew && i == j && !self.values.ends_in_zero() {
            return Err("expected 0 on the diagonal of a skew-symmetric matrix".to_string());
        }
        if i != j && symmetry != Symmetry::General {
            self.rows.push(j);
            self.cols.push(i);
            let mirrored = self.values.mirror(symmetry == Symmetry::Skew);
            mirrored.ok_or("the negated value does not fit in 64 bits")?;
        }
        Ok(())
    }
}

/// Words of a line.
struct Words<'t>(&'t [u8]);

impl<'t> Iterator for Words<'t> {
    type Item = &'t [u8];

    #[inline]
    fn next(&mut self) -> Option<&'t [u8]> {
        let begin = self.0.iter().position(|b| !b.is_ascii_whitespace())?;
        let rest = &self.0[begin..];
        let (word, behind) = rest.split_at(rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len()));
        self.0 = behind;
        Some(word)
    }
}

impl Words<'_> {
    /// Parses a row or a column, from 1 to `n`, and returns it from 0.
    #[inline]
    fn index(&mut self, n: usize, what: &str) -> Result<i64, String> {
        /// Digits of every number below 2^63.
        const DIGITS: usize = 18;
        let line = self.0;
        let begin = line.iter().position(|b| !b.is_ascii_whitespace()).unwrap_or(line.len());
        let (mut end, mut number) = (begin, 0u64);
        while let Some(digit) = line.get(end).map(|b| b.wrapping_sub(b'0')).filter(|digit| *digit < 10) {
            if end == begin + DIGITS {
                break;
            }
            number = number * 10 + u64::from(digit);
            end += 1;
        }
        let is_word = line.get(end).is_none_or(u8::is_ascii_whitespace);
        if is_word && (1..=n as u64).contains(&number) {
            self.0 = &line[end..];
            return Ok(number as i64 - 1);
        }
        index(self.next(), n, what)
    }
}

/// Parses a word that is a row or a column, from 1 to `n`, with any number of digits, and returns it from 0.
fn index(word: Option<&[u8]>, n: usize, what: &str) -> Result<i64, String> {
    let word = word.ok_or_else(|| format!("the {what} is missing"))?;
    let digits = word.strip_prefix(b"+").unwrap_or(word);
    let number = digits.iter().try_fold(0u64, |v, b| {
        let digit = b.wrapping_sub(b'0');
        (digit < 10).then_some(())?;
        v.checked_mul(10)?.checked_add(u64::from(digit))
    });
    match number.filter(|_| !digits.is_empty()) {
        Some(i) if (1..=n as u64).contains(&i) => Ok(i as i64 - 1),
        Some(i) => Err(format!("{what} {i} is out of range: 1 to {n}")),
        None => Err(format!("`{}` is not a {what} number", String::from_utf8_lossy(word))),
    }
}

impl Indices {
    fn push(&mut self, i: i64) {
        match self {
            Indices::I32(v) => v.push(i as i32),
            Indices::I64(v) => v.push(i),
        }
    }

    fn reserve(&mut self, more: usize) {
        // Where there is no room, the column grows as entries come.
        let _ = match self {
            Indices::I32(v) => v.try_reserve_exact(more),
            Indices::I64(v) => v.try_reserve_exact(more),
        };
    }

    fn append(&mut self, other: &mut Indices) {
        match (self, other) {
            (Indices::I32(v), Indices::I32(other)) => v.append(other),
            (Indices::I64(v), Indices::I64(other)) => v.append(other),
            _ => unreachable!("all parts have the index type of the matrix"),
        }
    }
}
