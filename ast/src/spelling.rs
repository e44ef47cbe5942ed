//! Words of diagnostics: suggestions for misspelt names, and counts.

use std::fmt::Display;

/// Returns the nearest of `names`, if the distance is small enough for a typing error: edits are counted without regard
/// to case, and a swap of neighbours counts once. Ties go to the alphabetically first.
pub fn nearest<'a, N: AsRef<str> + ?Sized + 'a>(word: &str, names: impl IntoIterator<Item = &'a N>) -> Option<&'a str> {
    // For names of one or two letters, only the case may differ: one edit would reach any other name.
    let limit = (word.chars().count() / 3).min(3);
    names
        .into_iter()
        .map(AsRef::as_ref)
        .filter(|n| *n != word && n.len().abs_diff(word.len()) <= 4 * limit)
        .map(|n| (strsim::osa_distance(&word.to_lowercase(), &n.to_lowercase()), n))
        .filter(|(d, _)| *d <= limit)
        .min()
        .map(|(_, n)| n)
}

/// Formats a count: `1 item`, `2 items`.
pub fn counted(n: impl Display, what: &str) -> String {
    match n.to_string() {
        n if n == "1" => format!("1 {what}"),
        n => format!("{n} {what}s"),
    }
}
