//! All diagnostics of the parser, as users see them.

mod layout;
mod outside;
mod structure;
mod tokens;

use expect_test::Expect;
use std::fmt::Write;
use taffeta_ast::diag::Diagnostic;
use taffeta_ast::span::SourceMap;
use taffeta_frontend::parse::parse;

/// Checks the code, message, place with its text, and help of each diagnostic.
fn check(text: &str, expected: Expect) {
    let mut sources = SourceMap::default();
    let file = sources.add("x.ft", None, text);
    let (_, diags) = parse(text, file);
    let rendered: String = diags.iter().map(|d| render(&sources, d)).collect();
    expected.assert_eq(&rendered);
}

fn render(sources: &SourceMap, diag: &Diagnostic) -> String {
    let mut out = format!("{}: {}\n", diag.code, diag.message);
    for label in &diag.labels {
        let at = sources.line_col(label.span).unwrap();
        let found = sources.text(label.span).escape_debug().to_string();
        let found = if found.chars().count() > 40 { found.chars().take(40).collect::<String>() + "…" } else { found };
        let why = if label.text.is_empty() { String::new() } else { format!(" {}", label.text) };
        writeln!(out, "  {}:{} `{found}`{why}", at.line, at.column).unwrap();
    }
    writeln!(out, "  help: {}", diag.help.as_deref().unwrap_or("none")).unwrap();
    diag.notes.iter().for_each(|note| writeln!(out, "  note: {note}").unwrap());
    out
}
