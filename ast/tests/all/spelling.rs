//! Suggestions for misspelt names, and counts.

use taffeta_ast::spelling::{counted, nearest};

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
