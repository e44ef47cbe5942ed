//! Source excerpt of a diagnostic: the lines of its labels with one line of context. Long lines are truncated around
//! the label, so that the output does not grow with the file's longest line.

use miette::{LabeledSpan, MietteError, MietteSpanContents, SourceCode, SourceSpan, SpanContents};
use std::ops::Range;
use std::sync::Arc;
use taffeta_ast::{Diagnostic, SourceMap};

/// Maximum bytes of a line that is shown whole.
const LONGEST: usize = 400;
/// Maximum bytes shown of a truncated line, and how many of them precede the label.
const WINDOW: usize = 160;
const BEFORE: usize = 60;
/// Maximum lines of a label; a taller one is shown on its first line.
const TALLEST: usize = 20;

/// Excerpt of a file.
#[derive(Debug)]
pub struct Excerpt {
    name: String,
    /// Text of the file, possibly truncated, with the same number of lines.
    text: Arc<str>,
    /// Indices of the shown labels of the diagnostic, with their spans in `text`.
    labels: Vec<(usize, LabeledSpan)>,
    /// Start of the primary label in `text`, and its column in the file, from 0.
    primary: (usize, usize),
}

impl Excerpt {
    /// Builds the excerpt for the labels in the primary label's file; `None` if no such file exists.
    pub fn of(d: &Diagnostic, sources: &SourceMap) -> Option<Excerpt> {
        let file = sources.get(d.span().file)?;
        let text = &file.text;
        let of_file = d.labels.iter().enumerate().filter(|(_, l)| l.span.file == d.span().file);
        let places: Vec<(usize, Range<usize>)> = of_file
            .map(|(k, l)| {
                let start = (l.span.start as usize).min(text.len());
                (k, start..not_tall(text, start, (l.span.end as usize).clamp(start, text.len())))
            })
            .collect();
        let column = sources.line_col(d.span()).map_or(0, |at| at.column - 1);
        let (text, shown) = match cut(text, &places) {
            Some(cut) => cut,
            None => (text.clone(), places),
        };
        let labels: Vec<(usize, LabeledSpan)> = shown
            .into_iter()
            .map(|(k, at)| {
                let words = Some(d.labels[k].text.clone()).filter(|t| !t.is_empty());
                let span = SourceSpan::from(at);
                let label = if k == 0 {
                    LabeledSpan::new_primary_with_span(words, span)
                } else {
                    LabeledSpan::new_with_span(words, span)
                };
                (k, label)
            })
            .collect();
        let primary = (labels.first().map_or(0, |(_, l)| l.offset()), column);
        Some(Excerpt { name: file.name.clone(), text, labels, primary })
    }

    /// Returns whether a label of the diagnostic is shown.
    pub fn shows(&self, label: usize) -> bool {
        self.labels.iter().any(|(k, _)| *k == label)
    }

    /// Returns the shown labels.
    pub fn labels(&self) -> Vec<LabeledSpan> {
        self.labels.iter().map(|(_, l)| l.clone()).collect()
    }
}

impl SourceCode for Excerpt {
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        before: usize,
        after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let found = self.text.as_bytes().read_span(span, before, after)?;
        // Without context lines, miette asks for the location in the header, which is one in the file.
        let (at, column) = self.primary;
        let column = if before == 0 && span.offset() == at { column } else { found.column() };
        let (data, place, line) = (found.data(), *found.span(), found.line());
        let contents = MietteSpanContents::new_named(self.name.clone(), data, place, line, column, found.line_count());
        Ok(Box::new(contents))
    }
}

/// Returns the end of a label, or of its first line if the label is too tall.
fn not_tall(text: &str, start: usize, end: usize) -> usize {
    let mut lines = text[start..end].match_indices('\n');
    match (lines.next(), lines.nth(TALLEST.saturating_sub(1))) {
        (Some((first, _)), Some(_)) => start + first,
        _ => end,
    }
}

/// Index of a label, with its byte range in the text.
type Label = (usize, Range<usize>);

/// Truncates long lines near labels and empties the lines elsewhere; returns the text and the labels in it, or `None`
/// if no line near a label is long. The primary label remains in the text; others may be dropped.
fn cut(text: &str, labels: &[Label]) -> Option<(Arc<str>, Vec<Label>)> {
    let mut lines: Vec<Range<usize>> = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        lines.push(start..start + line.trim_end_matches(['\n', '\r']).len());
        start += line.len();
    }
    let line_of = |at: usize| lines.partition_point(|l| l.start <= at).saturating_sub(1);
    let near = |k: usize| labels.iter().any(|(_, at)| line_of(at.start) <= k + 1 && k <= line_of(at.end) + 1);
    let long = |l: &Range<usize>| l.len() > LONGEST;
    if !lines.iter().enumerate().any(|(k, l)| long(l) && near(k)) {
        return None;
    }
    let mut out = String::new();
    // Shown range of each line, and its start in the output.
    let mut shown: Vec<(Range<usize>, usize)> = Vec::with_capacity(lines.len());
    for (k, line) in lines.iter().enumerate() {
        let part = match (near(k), long(line)) {
            (false, _) => line.start..line.start,
            (true, false) => line.clone(),
            (true, true) => {
                let first = labels.iter().find(|(_, at)| line_of(at.start) == k).map_or(line.start, |(_, at)| at.start);
                window(text, line, first)
            }
        };
        let whole = part == *line || !near(k);
        out.push_str(if whole || part.start == line.start { "" } else { "… " });
        shown.push((part.clone(), out.len()));
        out.push_str(&text[part.clone()]);
        out.push_str(if whole || part.end == line.end { "\n" } else { " …\n" });
    }
    let place = |at: usize| {
        let (part, start) = &shown[line_of(at)];
        (part.start <= at && at <= part.end, start + at.clamp(part.start, part.end) - part.start)
    };
    let moved = labels.iter().filter_map(|(k, at)| {
        let ((seen, start), (_, end)) = (place(at.start), place(at.end));
        (seen || *k == 0).then_some((*k, start..end.max(start)))
    });
    let moved = moved.collect();
    Some((out.into(), moved))
}

/// Returns the range of a line around `first`.
fn window(text: &str, line: &Range<usize>, first: usize) -> Range<usize> {
    let boundary = |mut at: usize| {
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let first = first.clamp(line.start, line.end);
    let start = boundary(first.saturating_sub(BEFORE).max(line.start));
    start..boundary((start + WINDOW).min(line.end))
}

#[cfg(test)]
mod tests {
    use super::super::{Style, text};
    use expect_test::{Expect, expect};
    use taffeta_ast::{Diagnostic, SourceMap, Span};

    fn check(source: &str, spans: &[(usize, usize)], expected: Expect) {
        let mut sources = SourceMap::default();
        let file = sources.add("a.ft", None, source);
        let mut d = Diagnostic::new("name::unknown", "there is no `z` here");
        for (k, (start, end)) in spans.iter().enumerate() {
            d = d.label(Span::new(file, *start, *end), if k == 0 { "" } else { "another" });
        }
        expected.assert_eq(&text(&[d], &sources, Style { color: false, width: 100 }));
    }

    #[test]
    fn a_long_line_is_cut_around_its_label() {
        let source = format!("a = 1\nb = {}+ z + {}\nc = 2\n", " ".repeat(70_000), "é".repeat(70_000));
        let at = source.find('z').unwrap();
        check(
            &source,
            &[(at, at + 1), (0, 1)],
            expect![[r#"
            name::unknown

              × there is no `z` here
               ╭─[a.ft:2:70007]
             1 │ a = 1
               · ┬
               · ╰── another
             2 │ …                                                           + z + éééééééééééééééééééééééééééééééééééééééééééééééé …
               ·                                                               ─
             3 │ c = 2
               ╰────

            1 error
        "#]],
        );
        // A label beyond the truncated line becomes a note.
        check(
            &source,
            &[(at, at + 1), (at + 5_000, at + 5_002)],
            expect![[r#"
            name::unknown

              × there is no `z` here
               ╭─[a.ft:2:70007]
             1 │ a = 1
             2 │ …                                                           + z + éééééééééééééééééééééééééééééééééééééééééééééééé …
               ·                                                               ─
             3 │ c = 2
               ╰────
              note: a.ft:2: another

            1 error
        "#]],
        );
    }

    #[test]
    fn a_label_of_many_lines_is_shown_on_its_first_one() {
        let source = format!("a = (1\n{}    )\n", "    + 1\n".repeat(1_000));
        check(
            &source,
            &[(4, source.len() - 1)],
            expect![[r#"
            name::unknown

              × there is no `z` here
               ╭─[a.ft:1:5]
             1 │ a = (1
               ·     ──
             2 │     + 1
               ╰────

            1 error
        "#]],
        );
    }

    #[test]
    fn at_most_twenty_diagnostics_are_shown() {
        let all: Vec<Diagnostic> = (0..20_000).map(|k| Diagnostic::new("data::file", format!("file {k}"))).collect();
        let shown = text(&all, &SourceMap::default(), Style { color: false, width: 100 });
        assert_eq!(shown.matches("× file").count(), 20);
        assert!(shown.ends_with("… and 19,980 more\n\n20,000 errors\n"), "{}", &shown[shown.len() - 100..]);
        let few = text(&all[..20], &SourceMap::default(), Style { color: false, width: 100 });
        assert!(few.ends_with("\n\n20 errors\n") && !few.contains("more"));
    }
}
