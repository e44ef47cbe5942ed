//! Modules of libraries, parsed once in a process: every program that names an operator reads the same text. Spans
//! hold the position of a file among those of a program, so there is a tree for each position.

use crate::parse;
use crate::syntax::Module;
use rustc_hash::FxHashMap;
use std::sync::{Arc, Mutex, PoisonError};
use taffeta_ast::{Diagnostic, FileId};

/// Text of a library's module, with its tree.
type Parsed = (Arc<str>, Arc<Module>);

static PARSED: Mutex<Option<FxHashMap<(String, FileId), Parsed>>> = Mutex::new(None);

/// Parses the module of a library with this name and text, or returns the tree of an earlier call.
pub(super) fn parsed(name: &str, text: &Arc<str>, file: FileId) -> (Arc<Module>, Vec<Diagnostic>) {
    let key = (name.to_string(), file);
    let known = PARSED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((of, module)) = known.as_ref().and_then(|known| known.get(&key))
        && of == text
    {
        return (module.clone(), Vec::new());
    }
    // Other threads need not wait for the parser.
    drop(known);
    let (module, problems) = parse::parse(text, file);
    let module = Arc::new(module);
    if problems.is_empty() {
        let mut known = PARSED.lock().unwrap_or_else(PoisonError::into_inner);
        known.get_or_insert_default().insert(key, (text.clone(), module.clone()));
    }
    (module, problems)
}
