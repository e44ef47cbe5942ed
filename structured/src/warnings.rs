//! Deduplication of warnings about the coordinates that loops visit: all copies of a loop share one warning, so that
//! the sections of a program (`independent_parts`) yield the warnings of the whole.

use taffeta_ast::Diagnostic;

/// Adds a warning, unless an equal one about the same statements exists.
pub(crate) fn add(all: &mut Vec<Diagnostic>, d: Diagnostic) {
    if all.iter().all(|w| (&w.message, &w.labels) != (&d.message, &d.labels)) {
        all.push(d);
    }
}

/// Drops warnings that are subsumed by others about the same loop and further statements in it. Runs after all warnings
/// are added, since copies of a loop may be in several sections, in any order.
pub(crate) fn settled(all: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let is_part = |d: &Diagnostic, of: &Diagnostic| {
        d.message == of.message && d.labels.len() < of.labels.len() && of.labels.starts_with(&d.labels)
    };
    let is_said = |d: &&Diagnostic| !all.iter().any(|w| is_part(d, w));
    all.iter().filter(is_said).cloned().collect()
}
