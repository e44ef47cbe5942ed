//! Parsing: text → [`Module`], with every problem of the file in one run.
//!
//! Three steps. `token` splits the text; `layout` joins physical lines to logical ones and nests them into blocks by
//! indentation; then pest parses each logical line by `grammar.pest`, and `stmt`, `expr`, `operators` and `literal`
//! turn its pairs into the tree. Error recovery is by line: a line that does not parse is reported by `problem` and
//! left out, and the next line is parsed as usual.
//!
//! Python accepts every accepted program too, with the same meaning (tested); Python's constructs outside the language
//! are refused with a replacement to write (`outside`). Elaboration gives names and types their *meaning*.
//!
//! Recursion is no deeper than the brackets and blocks of the source, and their depth is bounded ([`MAX_BRACKETS`],
//! [`MAX_BLOCKS`]); so are chains of operators, whose trees lean to one side ([`MAX_DEPTH`]). Hence later passes may
//! recurse.

mod expr;
mod grammar;
pub(crate) mod layout;
mod literal;
mod operators;
mod outside;
pub(crate) mod problem;
mod stmt;
pub(crate) mod token;

use crate::syntax::Module;
use grammar::{Grammar, Rule};
use taffeta_ast::Span;
use taffeta_ast::diag::Diagnostic;
use taffeta_ast::span::FileId;

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
    text: &'a str,
    file: FileId,
}

impl Source<'_> {
    fn span(&self, start: usize, end: usize) -> Span {
        Span::new(self.file, start, end)
    }
}

/// Parses a file. If there are diagnostics, the module holds the parts that could be parsed (for outlines and other
/// editor features) and is not the program that the user wrote.
pub fn parse(text: &str, file: FileId) -> (Module, Vec<Diagnostic>) {
    let source = Source { text, file };
    let mut diags = Vec::new();
    if u32::try_from(text.len()).is_err() {
        diags.push(Diagnostic::new("syntax::too_large", "the file is larger than 4 GB").help("split it into modules"));
        return (Module { doc: None, items: Vec::new() }, diags);
    }
    if let Some(nul) = problem::nul(&source) {
        return (Module { doc: None, items: Vec::new() }, vec![nul]);
    }
    problem::check_encoding(&source, &mut diags);
    let start = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let tokens = token::tokens(&text[start..], start);
    if let Some(name) = problem::long_name(&source, &tokens) {
        return (Module { doc: None, items: Vec::new() }, vec![name]);
    }
    let lines = layout::layout(&source, &tokens, &mut diags);
    let plain = token::plain(text, &tokens, 0);
    let module = stmt::module(&source, &plain, &tokens, &lines, &mut diags);
    diags.sort_by_key(|d| d.span().start);
    (module, diags)
}

/// Returns the tokens and logical lines of a text that parses, for the formatter.
pub(crate) fn lines(text: &str, file: FileId) -> (Vec<token::Token>, Vec<layout::Line>) {
    let source = Source { text, file };
    let start = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let tokens = token::tokens(&text[start..], start);
    let lines = layout::layout(&source, &tokens, &mut Vec::new());
    (tokens, lines)
}

/// Returns the diagnostic for an expression that is nested too deeply.
fn too_deep(span: Span) -> Diagnostic {
    let message = format!("an expression is more than {MAX_DEPTH} operators or {MAX_BRACKETS} brackets deep");
    Diagnostic::new("syntax::depth", message).at(span).help("give a part of it a name first: `t = …`")
}
