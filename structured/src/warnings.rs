//! Warnings of what loops visit: each once, of all copies of a loop, and the same of the sections of a program as of
//! the whole.

use taffeta_ast::Diagnostic;

/// Adds a warning, if there is none that says the same of the same statements.
pub(crate) fn add(all: &mut Vec<Diagnostic>, d: Diagnostic) {
    if all.iter().all(|w| (&w.message, &w.labels) != (&d.message, &d.labels)) {
        all.push(d);
    }
}

/// Leaves out warnings of which others say the same, of the same loop and of what stands in it besides. (Not when one
/// is added: copies of a loop may be in several sections, and come in any order.)
pub(crate) fn settled(all: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let is_part = |d: &Diagnostic, of: &Diagnostic| {
        d.message == of.message && d.labels.len() < of.labels.len() && of.labels.starts_with(&d.labels)
    };
    let is_said = |d: &&Diagnostic| !all.iter().any(|w| is_part(d, w));
    all.iter().filter(is_said).cloned().collect()
}
