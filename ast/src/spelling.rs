//! The name that a misspelt one is nearest to, for diagnostics.

/// The nearest of `names`, if it is near enough that a slip of the hand explains it. Of several that are as near it is
/// the first in the alphabet.
pub fn nearest<'a, N: AsRef<str> + ?Sized + 'a>(word: &str, names: impl IntoIterator<Item = &'a N>) -> Option<&'a str> {
    // Of names of one or two letters every other one would be near: there only the case may differ.
    let limit = (word.chars().count() / 3).min(3);
    names
        .into_iter()
        .map(AsRef::as_ref)
        .filter(|n| *n != word && n.len().abs_diff(word.len()) <= 4 * limit)
        .map(|n| (distance(word, n), n))
        .filter(|(d, _)| *d <= limit)
        .min()
        .map(|(_, n)| n)
}

/// Edits between two words, whatever their case, a swap of neighbours counting once (optimal string alignment).
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.to_lowercase().chars().collect(), b.to_lowercase().chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let change = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = change.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(before[j - 2] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_edits() {
        for (a, b, d) in [("", "", 0), ("abc", "aBc", 0), ("abc", "acb", 1), ("softmax", "sofmax", 1), ("", "ab", 2)] {
            assert_eq!(distance(a, b), d, "{a} {b}");
        }
    }

    #[test]
    fn slips_are_mended_and_other_words_are_not() {
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
