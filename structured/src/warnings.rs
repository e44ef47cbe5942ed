//! Warnings about the coordinates that loops visit: one for all copies of a loop, and the same for the sections of a
//! program as for the whole.

use taffeta_ast::Diagnostic;

/// Adds a warning, unless an equal one about the same statements exists.
pub(crate) fn add(all: &mut Vec<Diagnostic>, d: Diagnostic) {
    if all.iter().all(|w| (&w.message, &w.labels) != (&d.message, &d.labels)) {
        all.push(d);
    }
}

/// Drops warnings that are subsumed by others about the same loop and further statements in it. (Not when a warning is
/// added: copies of a loop may be in several sections, and come in any order.)
pub(crate) fn settled(all: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let is_part = |d: &Diagnostic, of: &Diagnostic| {
        d.message == of.message && d.labels.len() < of.labels.len() && of.labels.starts_with(&d.labels)
    };
    let is_said = |d: &&Diagnostic| !all.iter().any(|w| is_part(d, w));
    all.iter().filter(is_said).cloned().collect()
}
