//! Proposals for misspelt names.

/// The candidate that is nearest to `name` by Damerau-Levenshtein distance, if one is near enough to be meant.
pub fn nearest<'c>(name: &str, candidates: impl Iterator<Item = &'c String>) -> Option<&'c str> {
    let limit = match name.chars().count() {
        0..=2 => 1,
        3..=5 => 1,
        6..=8 => 2,
        _ => 3,
    };
    candidates
        .filter(|c| c.as_str() != name)
        .map(|c| (distance(name, c), c))
        .filter(|(d, c)| *d <= limit && *d < c.chars().count())
        .min_by(|a, b| a.cmp(b))
        .map(|(_, c)| c.as_str())
}

/// Insertions, deletions, substitutions and swaps of neighbours that turn one word into the other (restricted edit
/// distance).
fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.chars().collect();
    let b: Vec<char> = b.chars().collect();
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let substitute = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = substitute.min(last[j] + 1).min(row[j - 1] + 1);
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
        for (a, b, d) in [("", "", 0), ("abc", "abc", 0), ("abc", "acb", 1), ("softmax", "sofmax", 1), ("", "ab", 2)] {
            assert_eq!(distance(a, b), d, "{a} {b}");
        }
    }

    #[test]
    fn proposes_near_names_only() {
        let names: Vec<String> = ["softmax", "sum", "norm"].map(String::from).to_vec();
        assert_eq!(nearest("sofmax", names.iter()), Some("softmax"));
        assert_eq!(nearest("smu", names.iter()), Some("sum"));
        assert_eq!(nearest("xyz", names.iter()), None);
    }
}
