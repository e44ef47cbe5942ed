//! Locations in the user's source: spans of bytes, the files of a compilation, lines and columns.

use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Number of a file in a [`SourceMap`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId(pub u32);

/// Range of bytes in one file. `Span::NONE` marks code that no user wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    /// File.
    pub file: FileId,
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// No location.
    pub const NONE: Span = Span { file: FileId(u32::MAX), start: 0, end: 0 };

    /// Creates the span of the bytes `start..end` of `file`.
    pub fn new(file: FileId, start: usize, end: usize) -> Span {
        Span { file, start: start as u32, end: end as u32 }
    }

    /// Returns whether this is [`Span::NONE`].
    pub fn is_none(self) -> bool {
        self.file == Span::NONE.file
    }

    /// Returns the smallest span that covers both (in the first one's file).
    pub fn to(self, other: Span) -> Span {
        if self.is_none() {
            return other;
        }
        if other.is_none() || other.file != self.file {
            return self;
        }
        Span { file: self.file, start: self.start.min(other.start), end: self.end.max(other.end) }
    }
}

/// Source file: its display name and text.
#[derive(Clone, Debug)]
pub struct SourceFile {
    /// Name as the user wrote it (`examples/x.ft`), or `<libop>/softmax.ft` for the operator library.
    pub name: String,
    /// Path on disk, if there is one.
    pub path: Option<PathBuf>,
    /// Whole text.
    pub text: Arc<str>,
    line_starts: Vec<u32>,
}

/// All sources of a compilation.
#[derive(Clone, Debug, Default)]
pub struct SourceMap {
    files: Vec<SourceFile>,
}

/// Line and column, both from 1; columns count characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineCol {
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1, in characters.
    pub column: usize,
}

impl SourceMap {
    /// Adds a file.
    pub fn add(&mut self, name: impl Into<String>, path: Option<&Path>, text: impl Into<Arc<str>>) -> FileId {
        let text: Arc<str> = text.into();
        let line_starts = std::iter::once(0).chain(text.match_indices('\n').map(|(i, _)| i as u32 + 1)).collect();
        self.files.push(SourceFile { name: name.into(), path: path.map(Path::to_path_buf), text, line_starts });
        FileId(self.files.len() as u32 - 1)
    }

    /// Returns the file, unless the id is [`Span::NONE`]'s.
    pub fn get(&self, file: FileId) -> Option<&SourceFile> {
        self.files.get(file.0 as usize)
    }

    /// Returns all files, in order of addition.
    pub fn files(&self) -> impl Iterator<Item = &SourceFile> {
        self.files.iter()
    }

    /// Returns the text of a span; empty for [`Span::NONE`].
    pub fn text(&self, span: Span) -> &str {
        self.get(span.file).and_then(|f| f.text.get(span.start as usize..span.end as usize)).unwrap_or("")
    }

    /// Returns the start of a span.
    pub fn line_col(&self, span: Span) -> Option<LineCol> {
        let file = self.get(span.file)?;
        let line = file.line_starts.partition_point(|&s| s <= span.start);
        let start = *file.line_starts.get(line.checked_sub(1)?)? as usize;
        let column = file.text.get(start..span.start as usize).map_or(0, |t| t.chars().count()) + 1;
        Some(LineCol { line, column })
    }

    /// Returns the line on which a span starts, without its line break.
    pub fn line_text(&self, span: Span) -> &str {
        let Some(file) = self.get(span.file) else { return "" };
        let line = file.line_starts.partition_point(|&s| s <= span.start);
        let start = file.line_starts.get(line.saturating_sub(1)).copied().unwrap_or(0) as usize;
        file.text[start..].lines().next().unwrap_or("")
    }

    /// Formats `name:line` of a span, for one-line messages and comments in generated code.
    pub fn locate(&self, span: Span) -> String {
        match (self.get(span.file), self.line_col(span)) {
            (Some(file), Some(at)) => format!("{}:{}", file.name, at.line),
            _ => "<generated>".to_string(),
        }
    }
}
