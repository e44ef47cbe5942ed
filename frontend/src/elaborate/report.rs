//! Reporting: adds the chain of calls to diagnostics, and points at the user's line for errors inside the library.

use super::{Elab, R, Stop};
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::{Hash, Hasher};
use taffeta_ast::{Diagnostic, FileId, Span};

/// Number of calls shown at each end of a long chain.
const SHOWN: usize = 3;

/// Returns whether a text of the program can stand in a message.
pub(crate) fn quotable(text: &str) -> bool {
    !text.is_empty() && text.len() <= 40 && !text.contains(['\n', '"', '\'', '{', '}', '\\', '`'])
}

/// Returns the name in `x` or `x[i, j]`.
pub(crate) fn base(text: &str) -> Option<&str> {
    let (name, rest) = text.split_at(text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len()));
    (!name.is_empty() && (rest.is_empty() || (rest.starts_with('[') && rest.ends_with(']')))).then_some(name)
}

/// Returns whether two diagnostics report the same mistake in the text, possibly reached by different calls.
pub(crate) fn same_mistake(a: &Diagnostic, b: &Diagnostic) -> bool {
    a.code == b.code && a.message == b.message && a.labels == b.labels
}

/// Maximum number of diagnostics of one elaboration that propose names: each proposal compares with all known names.
const PROPOSALS: usize = 20;

/// Positions of diagnostics in a list, by the hash of their mistake. Truncating the list is harmless.
#[derive(Default)]
pub(crate) struct SeenDiagnostics(FxHashMap<u64, usize>);

/// Adds a diagnostic, unless its mistake is in the list already, possibly reached by another chain of calls.
pub(crate) fn add(all: &mut Vec<Diagnostic>, known: &mut SeenDiagnostics, d: Diagnostic) {
    let mut h = FxHasher::default();
    (d.code, &d.message).hash(&mut h);
    d.labels.iter().for_each(|l| (l.span, &l.text).hash(&mut h));
    let same = |k: &usize| all.get(*k).is_some_and(|other| same_mistake(other, &d));
    let key = h.finish();
    if !known.0.get(&key).is_some_and(same) {
        known.0.insert(key, all.len());
        all.push(d);
    }
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
        add(&mut self.diagnostics, &mut self.known, d);
        Stop::Reported
    }

    /// Returns the user's text for a name in the library, or for a part of its value: the argument that was passed, and
    /// the operator's parameter.
    pub(crate) fn argument_of(&self, name: &str) -> Option<String> {
        let mut name = name.to_string();
        for frame in self.frames.iter().rev() {
            let (target, places) = frame.called.as_ref()?;
            let f = self.function(*target);
            let k = f.params.iter().position(|p| p.name.text == name)?;
            let at = places[k];
            let text = self.program.sources().text(at);
            if !self.in_library(at.file) {
                let parameter = format!("`{name}` of `{}`", f.name.text);
                return Some(match quotable(text) {
                    true if text == name => format!("`{text}`"),
                    true => format!("`{text}` ({parameter})"),
                    false => parameter,
                });
            }
            name = base(text)?.to_string();
        }
        None
    }

    /// Replaces names of parameters in a text of the library (`` `a` ``) by the arguments that the user wrote.
    pub(crate) fn in_users_words(&self, text: &str) -> String {
        let pieces: Vec<&str> = text.split('`').collect();
        if pieces.len() < 3 || !self.in_library(self.span.file) {
            return text.to_string();
        }
        let quoted = |(k, piece): (usize, &&str)| match k % 2 {
            0 => (*piece).to_string(),
            _ => self.argument_of(piece).unwrap_or_else(|| format!("`{piece}`")),
        };
        pieces.iter().enumerate().map(quoted).collect()
    }

    /// Returns whether so many diagnostics are recorded that further proposals would not be read.
    pub(crate) fn many_reported(&self) -> bool {
        self.diagnostics.len() >= PROPOSALS
    }

    /// Records an error with a place.
    pub(crate) fn error<T>(&mut self, code: &'static str, span: Span, message: impl Into<String>) -> R<T> {
        Err(self.report(Diagnostic::new(code, message).at(span)))
    }

    /// Records an error with a place, and a help text.
    pub(crate) fn error_help<T>(
        &mut self,
        code: &'static str,
        span: Span,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> R<T> {
        Err(self.report(Diagnostic::new(code, message).at(span).help(help)))
    }

    /// Reports a construct of the language that is not implemented.
    pub(crate) fn unsupported<T>(&mut self, span: Span, what: &str) -> R<T> {
        self.error("unsupported", span, format!("{what} is not supported yet"))
    }

    pub(crate) fn in_library(&self, file: FileId) -> bool {
        self.program.modules.iter().any(|m| m.file == file && m.prelude)
    }
}
