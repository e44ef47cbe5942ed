//! Module loader: files beside the importing file, and the operator library.

use std::path::{Path, PathBuf};
use taffeta_ast::{Diagnostic, SourceMap, diag::Label};
use taffeta_frontend::program::{Loader, Source};

/// Loader that reads `module.ft` beside the importing file, and operators from the embedded library.
#[derive(Clone, Copy, Debug, Default)]
pub struct Files;

impl Loader for Files {
    fn load(&self, module: &str, importing: Option<&Path>) -> Result<Source, String> {
        let path = importing.and_then(Path::parent).unwrap_or(Path::new("")).join(format!("{module}.ft"));
        if !path.is_file() {
            return Err(format!("there is no module `{module}`: `{}` does not exist", path.display()));
        }
        let text = crate::io::read_text(&path).map_err(|d| d.message)?;
        Ok(Source { name: path.display().to_string(), path: Some(path), text: text.into() })
    }

    fn prelude(&self, name: &str) -> Option<Source> {
        let found = taffeta_libop::source(name).or_else(|| taffeta_libop::format(name));
        found.map(|(file, text)| Source::inline(library_name(file), text))
    }

    fn prelude_names(&self) -> Vec<String> {
        taffeta_libop::names().chain(taffeta_libop::format_names()).map(str::to_string).collect()
    }

    fn schedule(&self, name: &str) -> Option<Source> {
        taffeta_libop::schedule(name).map(|(file, text)| Source::inline(library_name(file), text))
    }

    fn schedule_names(&self) -> Vec<String> {
        taffeta_libop::schedule_names().map(str::to_string).collect()
    }
}

/// Prefix of the names of the operator library's files.
const LIBRARY: &str = "<libop>/";

/// Returns the name of an operator library file in messages.
fn library_name(file: &str) -> String {
    format!("{LIBRARY}{file}")
}

/// Moves the user's call to the front of a run-time diagnostic that was raised inside the operator library.
pub(crate) fn from_the_users_line(mut d: Diagnostic, sources: &SourceMap) -> Diagnostic {
    let in_library = |l: &Label| sources.get(l.span.file).is_some_and(|f| f.name.starts_with(LIBRARY));
    let call = d.labels.iter().position(|l| !in_library(l)).filter(|k| *k > 0);
    if let Some(call) = call {
        d.labels[..=call].rotate_right(1);
        if d.labels[1].text.is_empty() {
            d.labels[1].text = "found here".to_string();
        }
    }
    d
}

/// Returns the text of a file by its name in messages, for stored source locations.
pub(crate) fn text_by_name(name: &str) -> Option<String> {
    match name.strip_prefix(LIBRARY) {
        Some(file) => {
            let operators = taffeta_libop::files().chain(taffeta_libop::schedule_files());
            let mut files = operators.chain(taffeta_libop::format_files());
            files.find(|(f, _)| *f == file).map(|(_, text)| text.to_string())
        }
        None => crate::io::read_text(&PathBuf::from(name)).ok(),
    }
}
