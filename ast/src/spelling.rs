//! Suggestions for misspelt names in diagnostics.

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

#[cfg(test)]
mod tests {
    use super::*;

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
