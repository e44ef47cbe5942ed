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
mod source;
mod stmt;
pub(crate) mod token;

use crate::syntax::Module;
pub(crate) use source::Source;
pub use source::{MAX_BLOCKS, MAX_BRACKETS, MAX_DEPTH};
use taffeta_ast::diag::Diagnostic;
use taffeta_ast::span::FileId;

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
