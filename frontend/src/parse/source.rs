//! Text being parsed, and limits of nesting and of names.

use taffeta_ast::{Diagnostic, FileId, Span};

/// Maximum depth of an expression's tree: operators, calls, subscripts and attributes together.
pub const MAX_DEPTH: usize = 200;

/// Maximum nesting depth of brackets. pest takes about 10 KiB of stack per bracket, and a thread may have no more than
/// 2 MiB.
pub const MAX_BRACKETS: usize = 100;

/// Maximum nesting depth of blocks; Python stops at 99.
pub const MAX_BLOCKS: usize = 90;

/// Maximum number of characters of a name: messages, generated code and C compilers repeat it.
pub(crate) const MAX_NAME: usize = 255;

/// Parsed text, and its file.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    pub(super) text: &'a str,
    pub(super) file: FileId,
}

impl Source<'_> {
    pub(super) fn span(&self, start: usize, end: usize) -> Span {
        Span::new(self.file, start, end)
    }
}

/// Returns the diagnostic for an expression that is nested too deeply.
pub(super) fn too_deep(span: Span) -> Diagnostic {
    let message = format!("an expression is more than {MAX_DEPTH} operators or {MAX_BRACKETS} brackets deep");
    Diagnostic::new("syntax::depth", message).at(span).help("give a part of it a name first: `t = …`")
}
