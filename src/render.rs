//! Rendering of diagnostics: as text with source lines (by miette), and as JSON.

mod excerpt;

use excerpt::Excerpt;
use miette::{GraphicalReportHandler, GraphicalTheme, LabeledSpan, SourceCode};
use serde_json::{Value as Json, json};
use std::fmt;
use taffeta_ast::{Diagnostic, SourceMap, Span};

/// Output style of diagnostics.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// Whether to use colours.
    pub color: bool,
    /// Width in columns.
    pub width: usize,
}

/// Maximum number of diagnostics shown in full; the others are counted.
const SHOWN: usize = 20;

/// Renders at most `SHOWN` diagnostics with their source lines, and a summary line.
pub fn text(diagnostics: &[Diagnostic], sources: &SourceMap, style: Style) -> String {
    let theme = if style.color { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
    let handler = GraphicalReportHandler::new_themed(theme).with_width(style.width).with_links(false);
    let mut out = String::new();
    for d in &diagnostics[..diagnostics.len().min(SHOWN)] {
        let excerpt = Excerpt::of(d, sources);
        // Writing to a string fails only if a formatter does; the plain text remains.
        if handler.render_report(&mut out, &Shown { diagnostic: d, excerpt: excerpt.as_ref() }).is_err() {
            out.push_str(&format!("{d}\n"));
        }
        for note in notes(d, excerpt.as_ref(), sources) {
            out.push_str(&format!("  note: {}\n", note.replace('\n', "\n        ")));
        }
        out.push('\n');
    }
    if let Some(more) = diagnostics.len().checked_sub(SHOWN).filter(|more| *more > 0) {
        out.push_str(&format!("… and {} more\n\n", counted(more)));
    }
    out.push_str(&summary(diagnostics));
    out
}

/// Formats a number with thousands separators: `19,980`.
fn counted(n: usize) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (k, digit) in digits.chars().enumerate() {
        if k > 0 && (digits.len() - k).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Returns the labels outside of the excerpt, which covers a single file, then the diagnostic's own notes.
fn notes(d: &Diagnostic, excerpt: Option<&Excerpt>, sources: &SourceMap) -> Vec<String> {
    let elsewhere = d.labels.iter().enumerate().filter(|(k, _)| excerpt.is_none_or(|e| !e.shows(*k)));
    let places =
        elsewhere.filter(|(_, l)| !l.text.is_empty()).map(|(_, l)| format!("{}: {}", sources.locate(l.span), l.text));
    places.chain(d.notes.iter().cloned()).collect()
}

fn summary(diagnostics: &[Diagnostic]) -> String {
    let errors = diagnostics.iter().filter(|d| d.is_error()).count();
    let of = |n: usize, what: &str| format!("{} {what}{}", counted(n), if n == 1 { "" } else { "s" });
    match (errors, diagnostics.len() - errors) {
        (n, 0) => of(n, "error") + "\n",
        (0, n) => of(n, "warning") + "\n",
        (n, m) => format!("{}, {}\n", of(n, "error"), of(m, "warning")),
    }
}

/// Converts diagnostics to JSON.
pub fn json(diagnostics: &[Diagnostic], sources: &SourceMap) -> Json {
    let place = |span: Span| {
        let at = sources.line_col(span);
        json!({
            "file": sources.get(span.file).map(|f| f.name.clone()),
            "line": at.map(|a| a.line),
            "column": at.map(|a| a.column),
            "start": span.start,
            "end": span.end,
        })
    };
    let one = |d: &Diagnostic| {
        json!({
            "severity": if d.is_error() { "error" } else { "warning" },
            "code": d.code,
            "message": d.message,
            "labels": d.labels.iter().map(|l| json!({ "span": place(l.span), "text": l.text })).collect::<Vec<_>>(),
            "help": d.help,
            "notes": d.notes,
        })
    };
    Json::Array(diagnostics.iter().map(one).collect())
}

/// Adapter of a diagnostic, without its notes, to miette.
#[derive(Debug)]
struct Shown<'a> {
    diagnostic: &'a Diagnostic,
    excerpt: Option<&'a Excerpt>,
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.diagnostic.message)
    }
}
impl std::error::Error for Shown<'_> {}

impl miette::Diagnostic for Shown<'_> {
    fn code<'b>(&'b self) -> Option<Box<dyn fmt::Display + 'b>> {
        Some(Box::new(self.diagnostic.code))
    }
    fn severity(&self) -> Option<miette::Severity> {
        (!self.diagnostic.is_error()).then_some(miette::Severity::Warning)
    }
    fn help<'b>(&'b self) -> Option<Box<dyn fmt::Display + 'b>> {
        self.diagnostic.help.as_ref().map(|h| Box::new(h) as Box<dyn fmt::Display>)
    }
    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.excerpt.map(|e| e as &dyn SourceCode)
    }
    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let labels = self.excerpt.map(Excerpt::labels).filter(|labels| !labels.is_empty())?;
        Some(Box::new(labels.into_iter()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    fn check(d: &Diagnostic, sources: &SourceMap, expected: Expect) {
        let style = Style { color: false, width: 100 };
        expected.assert_eq(&text(std::slice::from_ref(d), sources, style));
    }

    #[test]
    fn lines_labels_and_help_are_shown() {
        let mut sources = SourceMap::default();
        let file = sources.add("a.ft", None, "x = foo(1)\ny = bar(2)\n");
        let other = sources.add("b.ft", None, "z = 3\n");
        let d = Diagnostic::new("name::unknown", "unknown name `foo`")
            .label(Span::new(file, 4, 7), "here")
            .label(Span::new(other, 0, 1), "`z` stands there")
            .help("did you mean `bar`?")
            .note("called from `main`");
        check(
            &d,
            &sources,
            expect![[r#"
                name::unknown

                  × unknown name `foo`
                   ╭─[a.ft:1:5]
                 1 │ x = foo(1)
                   ·     ─┬─
                   ·      ╰── here
                 2 │ y = bar(2)
                   ╰────
                  help: did you mean `bar`?
                  note: b.ft:1: `z` stands there
                  note: called from `main`

                1 error
            "#]],
        );
        let nowhere = Diagnostic::new("data::missing_file", "x.npy: there is no such file").help("check the path");
        check(
            &nowhere,
            &sources,
            expect![[r#"
                data::missing_file

                  × x.npy: there is no such file
                  help: check the path

                1 error
            "#]],
        );
        let j = json(std::slice::from_ref(&d), &sources);
        assert_eq!(j[0]["labels"][0]["span"]["line"], 1);
        assert_eq!(j[0]["labels"][0]["span"]["column"], 5);
    }
}
