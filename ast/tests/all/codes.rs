//! The table of diagnostic codes.

use taffeta_ast::codes::{explain, groups};

#[test]
fn codes_are_unique_sorted_and_explained() {
    let mut all = Vec::new();
    for group in groups() {
        assert!(!group.title.is_empty() && !group.codes.is_empty());
        assert!(group.codes.is_sorted_by_key(|c| c.name), "{} is not sorted", group.title);
        for c in &group.codes {
            let parts = c.name.split_once("::").is_some_and(|(a, b)| !a.is_empty() && !b.is_empty());
            assert!(parts || c.name == "unsupported", "{}", c.name);
            assert!(c.text.len() > 20 && c.text.ends_with(['.', '`', ')']), "{}: {}", c.name, c.text);
            all.push(c.name);
        }
    }
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), count, "a code is explained twice");
}

#[test]
fn a_code_is_found_by_its_name() {
    assert!(explain("schedule::dependence").is_some_and(|c| c.text.contains("witness")));
    assert_eq!(explain("schedule::nothing"), None);
}
