//! Errors of the library's public functions.

use crate::locate::Fault;
use crate::render::{self, Style};
use std::fmt;
use std::sync::Arc;
use taffeta_ast::{Diagnostic, Diagnostics, SourceMap};

/// Diagnostics with the sources that they point into. `Display` shows the source lines.
#[derive(Clone, Debug)]
pub struct Report {
    /// Diagnostics; never empty.
    pub diagnostics: Vec<Diagnostic>,
    /// Source files of the diagnostics' spans.
    pub sources: Arc<SourceMap>,
}

impl Report {
    /// Wraps diagnostics that have no spans.
    pub fn without_sources(diagnostics: Vec<Diagnostic>) -> Report {
        Report { diagnostics, sources: Arc::new(SourceMap::default()) }
    }

    /// Concatenates two reports, renumbering the files of the second.
    #[must_use]
    pub fn and(self, other: Report) -> Report {
        let mut sources = SourceMap::clone(&self.sources);
        let before = sources.files().count() as u32;
        for file in other.sources.files() {
            sources.add(file.name.clone(), file.path.as_deref(), file.text.clone());
        }
        let mut diagnostics = self.diagnostics;
        diagnostics.extend(other.diagnostics.into_iter().map(|mut d| {
            for label in d.labels.iter_mut().filter(|l| !l.span.is_none()) {
                label.span.file.0 += before;
            }
            d
        }));
        Report { diagnostics, sources: Arc::new(sources) }
    }
}

impl From<Vec<Fault>> for Report {
    /// Wraps faults of arguments without the source of the program whose annotations they violate.
    fn from(faults: Vec<Fault>) -> Report {
        Report::without_sources(faults.into_iter().map(|f| f.diagnostic).collect())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&render::text(&self.diagnostics, &self.sources, Style { color: false, width: 100 }))
    }
}

/// Reason why a program cannot be read, compiled, called or finished.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// An error in the program.
    #[error("{0}")]
    Program(Report),
    /// An error in the arguments of a call, or in the files that they come from.
    #[error("{0}")]
    Input(Report),
    /// A run-time error: a failed assertion, an index out of range.
    #[error("{0}")]
    Run(Report),
    /// An error in the environment: no C compiler, an unusable cache directory.
    #[error("{0}")]
    System(Report),
}

impl Error {
    /// Returns the diagnostics with their sources.
    pub fn report(&self) -> &Report {
        match self {
            Error::Program(r) | Error::Input(r) | Error::Run(r) | Error::System(r) => r,
        }
    }

    pub(crate) fn program(diagnostics: Diagnostics, sources: &Arc<SourceMap>) -> Error {
        Error::Program(Report { diagnostics: diagnostics.0, sources: sources.clone() })
    }
}
