//! The one diagnostic type: what was found, what was expected, and what to write instead.
//!
//! A diagnostic is data. `src/` renders it for people and as JSON. Wrong input of any kind (syntax, types, shapes,
//! files, schedules) becomes one of these, never a panic.

use crate::span::Span;
use std::fmt;

/// A span with a word on why it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// Where.
    pub span: Span,
    /// Why; may be empty for the primary label.
    pub text: String,
}

/// How much a diagnostic weighs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Severity {
    /// The program or its data are wrong.
    #[default]
    Error,
    /// The program is right, and may not do what was meant.
    Warning,
}

/// A problem in the user's program or data.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Diagnostic {
    /// A stable, documented code, such as `type::mismatch`: the area, then the problem.
    pub code: &'static str,
    /// Whether it is an error.
    pub severity: Severity,
    /// What was found and what was expected, in one sentence, lower case, no final stop.
    pub message: String,
    /// Where; the first one is the primary label.
    pub labels: Vec<Label>,
    /// What to write instead.
    pub help: Option<String>,
    /// Further facts, such as the chain of calls.
    pub notes: Vec<String>,
}

impl Diagnostic {
    /// A diagnostic without a place; add one with [`Diagnostic::at`].
    pub fn new(code: &'static str, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            code,
            severity: Severity::Error,
            message: message.into(),
            labels: Vec::new(),
            help: None,
            notes: Vec::new(),
        }
    }

    /// A diagnostic of a program that is right, and may not do what was meant.
    pub fn warning(code: &'static str, message: impl Into<String>) -> Diagnostic {
        Diagnostic { severity: Severity::Warning, ..Diagnostic::new(code, message) }
    }

    /// Whether the program or its data are wrong.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    /// Adds a label without text.
    #[must_use]
    pub fn at(self, span: Span) -> Diagnostic {
        self.label(span, "")
    }

    /// Adds a label. [`Span::NONE`] is left out.
    #[must_use]
    pub fn label(mut self, span: Span, text: impl Into<String>) -> Diagnostic {
        if !span.is_none() {
            self.labels.push(Label { span, text: text.into() });
        }
        self
    }

    /// Says what to write instead.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Diagnostic {
        self.help = Some(help.into());
        self
    }

    /// Adds a further fact.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Diagnostic {
        self.notes.push(note.into());
        self
    }

    /// The place of the primary label.
    pub fn span(&self) -> Span {
        self.labels.first().map_or(Span::NONE, |l| l.span)
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} [{}]", self.message, self.code)
    }
}

/// Several diagnostics of one run, in the order in which they were found; never empty where it is an error.
#[derive(Clone, Debug, Default, PartialEq, Eq, thiserror::Error)]
pub struct Diagnostics(pub Vec<Diagnostic>);

impl From<Diagnostic> for Diagnostics {
    fn from(d: Diagnostic) -> Diagnostics {
        Diagnostics(vec![d])
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, d) in self.0.iter().enumerate() {
            if i > 0 {
                writeln!(f)?;
            }
            write!(f, "{d}")?;
        }
        Ok(())
    }
}
