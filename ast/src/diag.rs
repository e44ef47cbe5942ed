//! Diagnostic type of all crates: a message that names the expected and the found construct, with the text to write
//! instead.
//!
//! A diagnostic is data. `src/` renders it for people and as JSON. Wrong input of any kind (syntax, types, shapes,
//! files, schedules) becomes a diagnostic, never a panic.

use crate::span::Span;
use std::fmt;

/// Span with a reason for showing it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// Source location.
    pub span: Span,
    /// Reason; may be empty for the primary label.
    pub text: String,
}

/// Severity of a diagnostic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Severity {
    /// Fault in the program or its data.
    #[default]
    Error,
    /// Valid program that may not do as intended.
    Warning,
}

/// Problem in the user's program or data.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Diagnostic {
    /// Stable, documented code, such as `type::mismatch`: the area, then the problem.
    pub code: &'static str,
    /// Error or warning.
    pub severity: Severity,
    /// One sentence that names the expected and the found construct, in lower case, without a final stop.
    pub message: String,
    /// Source locations; the first one is the primary label.
    pub labels: Vec<Label>,
    /// Text to write instead.
    pub help: Option<String>,
    /// Further facts, such as the chain of calls.
    pub notes: Vec<String>,
}

impl Diagnostic {
    /// Creates an error without a location; add one with [`Diagnostic::at`].
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

    /// Creates a warning: the program is valid, and may not do as intended.
    pub fn warning(code: &'static str, message: impl Into<String>) -> Diagnostic {
        Diagnostic { severity: Severity::Warning, ..Diagnostic::new(code, message) }
    }

    /// Returns whether the program or its data are wrong.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    /// Adds a label without text.
    #[must_use]
    pub fn at(self, span: Span) -> Diagnostic {
        self.label(span, "")
    }

    /// Adds a label. [`Span::NONE`] is ignored.
    #[must_use]
    pub fn label(mut self, span: Span, text: impl Into<String>) -> Diagnostic {
        if !span.is_none() {
            self.labels.push(Label { span, text: text.into() });
        }
        self
    }

    /// Sets the suggestion of the text to write instead.
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

    /// Returns the location of the primary label.
    pub fn span(&self) -> Span {
        self.labels.first().map_or(Span::NONE, |l| l.span)
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} [{}]", self.message, self.code)
    }
}

/// Diagnostics of one run, in the order of discovery; never empty where the list is an error.
#[derive(Clone, Debug, Default, PartialEq, Eq, thiserror::Error)]
pub struct Diagnostics(pub Vec<Diagnostic>);

impl From<Diagnostic> for Diagnostics {
    fn from(d: Diagnostic) -> Diagnostics {
        Diagnostics(vec![d])
    }
}

impl From<Vec<Diagnostic>> for Diagnostics {
    fn from(all: Vec<Diagnostic>) -> Diagnostics {
        Diagnostics(all)
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
