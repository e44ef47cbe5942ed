//! Queries to isl, and their budget.

use taffeta_analysis::testing::isl::{covered, is_empty, outside};

#[test]
fn distinguishes_integers_from_rationals() {
    // 1 <= 2x <= 1
    assert_eq!(is_empty(1, &[vec![-1, 2], vec![1, -2]]), Some(true));
    assert_eq!(is_empty(1, &[vec![-1, 2], vec![2, -2]]), Some(false));
    // 3x + 5y = 1 has integer solutions, 2x + 4y = 1 has none.
    assert_eq!(is_empty(2, &[vec![-1, 3, 5], vec![1, -3, -5]]), Some(false));
    assert_eq!(is_empty(2, &[vec![-1, 2, 4], vec![1, -2, -4]]), Some(true));
}

#[test]
fn subtracts_writes_of_others() {
    // 0 <= x < 10 is covered by x = 2y, 0 <= y < 5 together with x = 2y + 1, and by neither alone.
    let whole = [vec![0, 1], vec![9, -1]];
    let part = |odd: i64| (1, vec![vec![-odd, 1, -2], vec![odd, -1, 2], vec![0, 0, 1], vec![4, 0, -1]]);
    assert_eq!(covered(1, &whole, &[part(0), part(1)]), Some(true));
    assert_eq!(covered(1, &whole, &[part(1)]), Some(false));
    assert_eq!(outside(1, &whole, &[part(0), part(1)]), Some(None));
    assert_eq!(outside(1, &whole, &[part(0)]), Some(Some(vec![1])));
}

#[test]
fn handles_large_numbers_and_several_threads() {
    let big = 1 << 40;
    let ask = move || is_empty(1, &[vec![-big, 1], vec![big - 1, -1]]);
    let threads: Vec<_> = (0..4).map(|_| std::thread::spawn(ask)).collect();
    assert!(threads.into_iter().all(|t| t.join().is_ok_and(|a| a == Some(true))));
}

#[test]
fn stops_at_its_budget_and_answers_the_next_question() {
    // The system has no integer solution, but branching over wide boxes takes long to show it.
    let dims = 24;
    let mut rows = Vec::new();
    let weights: Vec<i64> = (0..dims).map(|k| 10_007 * (k as i64 + 3) * 2).collect();
    rows.push([&[-100_003], &weights[..]].concat());
    rows.push([&[100_003], &weights.iter().map(|w| -w).collect::<Vec<_>>()[..]].concat());
    let hard = is_empty(dims, &rows);
    assert_ne!(hard, Some(false));
    assert_eq!(is_empty(1, &[vec![-1, 2], vec![1, -2]]), Some(true));
}
