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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_agree_in_number() {
        assert_eq!([0, 1, 2].map(|n| counted(n, "item")), ["0 items", "1 item", "2 items"]);
    }

    #[test]
    fn typos_are_corrected_and_other_words_are_not() {
        assert_eq!(nearest("wieght", ["bias", "weight"]), Some("weight"));
        assert_eq!(nearest("X", ["y", "x"]), Some("x"));
        assert_eq!(nearest("x", ["y", "weights"]), None);
        assert_eq!(nearest("colour", ["bias", "weight"]), None);
        let names: Vec<String> = ["softmax", "sum", "norm"].map(String::from).to_vec();
        assert_eq!(nearest("smu", &names), Some("sum"));
        assert_eq!(nearest("sum", &names), None);
        assert_eq!(nearest("maq", ["may", "max"]), Some("max"));
    }
}
