//! Reporting: diagnostics get the chain of calls, and point at the user's line where the mistake shows up in the
//! library.

use super::{Elab, R, Stop};
use taffeta_ast::{Diagnostic, FileId, Span};

/// Calls shown at each end of a long chain.
const SHOWN: usize = 3;

/// `1 item`, `2 items`
pub(crate) fn counted(n: i128, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// Whether two diagnostics are of one mistake in the text, which may have been reached by different calls.
pub(crate) fn same_mistake(a: &Diagnostic, b: &Diagnostic) -> bool {
    a.code == b.code && a.message == b.message && a.labels == b.labels
}

impl Elab<'_> {
    /// Records a diagnostic, unless its mistake was recorded already.
    pub(crate) fn report(&mut self, mut d: Diagnostic) -> Stop {
        let primary = d.span();
        let user_call = self.chain.iter().rev().find(|c| !self.in_library(c.span.file) && !c.span.is_none());
        if self.in_library(primary.file)
            && let Some(call) = user_call
        {
            let text = std::mem::take(&mut d.labels[0].text);
            let there = if text.is_empty() { "found here".to_string() } else { text };
            d.labels[0].text = there;
            d.labels.insert(
                0,
                taffeta_ast::diag::Label { span: call.span, text: format!("in this call of `{}`", call.function) },
            );
        }
        let n = self.chain.len();
        for (k, call) in self.chain.iter().enumerate() {
            if n > 2 * SHOWN && k >= SHOWN && k < n - SHOWN {
                if k == SHOWN {
                    d.notes.push(format!("… {} more calls …", n - 2 * SHOWN));
                }
                continue;
            }
            d.notes.push(format!("in `{}`, called at {}", call.function, self.program.sources().locate(call.span)));
        }
        if !self.diagnostics.iter().any(|known| same_mistake(known, &d)) {
            self.diagnostics.push(d);
        }
        Stop::Reported
    }

    /// Records an error with a place.
    pub(crate) fn error<T>(&mut self, code: &'static str, span: Span, message: impl Into<String>) -> R<T> {
        Err(self.report(Diagnostic::new(code, message).at(span)))
    }

    /// Records an error with a place and what to write instead.
    pub(crate) fn error_help<T>(
        &mut self,
        code: &'static str,
        span: Span,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> R<T> {
        Err(self.report(Diagnostic::new(code, message).at(span).help(help)))
    }

    /// A construct of the language that later parts implement.
    pub(crate) fn unsupported<T>(&mut self, span: Span, what: &str) -> R<T> {
        self.error("unsupported", span, format!("{what} is not supported yet"))
    }

    pub(crate) fn in_library(&self, file: FileId) -> bool {
        self.program.modules.iter().any(|m| m.file == file && m.prelude)
    }
}
