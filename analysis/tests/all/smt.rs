//! Queries to z3, and their budget.

use taffeta_analysis::testing::smt::{Polynomial, is_empty};

fn poly(constant: i128, terms: &[(i128, &[usize])]) -> Polynomial {
    Polynomial { constant, terms: terms.iter().map(|(c, f)| (*c, f.to_vec())).collect() }
}

#[test]
fn decides_products() {
    // x >= 3, y >= 3, x * y <= 8
    let small = |limit| [poly(-3, &[(1, &[0])]), poly(-3, &[(1, &[1])]), poly(limit, &[(-1, &[0, 1])])];
    assert_eq!(is_empty(2, &small(8)), Some(true));
    assert_eq!(is_empty(2, &small(9)), Some(false));
    // 2x = 1 has no integer solution, but a real one.
    assert_eq!(is_empty(1, &[poly(-1, &[(2, &[0])]), poly(1, &[(-2, &[0])])]), Some(false));
}

#[test]
fn flattened_indices_are_in_range() {
    // 0 <= i < n, 0 <= j < m, 0 <= k < p, and (i * m + j) * p + k >= n * m * p
    let [n, m, p, i, j, k] = [0, 1, 2, 3, 4, 5];
    let mut system = vec![poly(0, &[(1, &[i, m, p]), (1, &[j, p]), (1, &[k]), (-1, &[n, m, p])])];
    for (index, size) in [(i, n), (j, m), (k, p)] {
        system.push(poly(0, &[(1, &[index])]));
        system.push(poly(-1, &[(1, &[size]), (-1, &[index])]));
    }
    assert_eq!(is_empty(6, &system), Some(true));
}

#[test]
fn gives_up_within_its_budget() {
    // Polynomials `(x + … )² …` in many unknowns at once, with no common solution.
    let unknowns = 9;
    let all: Vec<Vec<usize>> =
        (0..unknowns).flat_map(|i| (0..unknowns).map(move |j| vec![i, j, (i + j) % 7])).collect();
    let terms: Vec<(i128, &[usize])> = all.iter().enumerate().map(|(k, f)| (k as i128 % 11 - 5, &f[..])).collect();
    let system: Vec<Polynomial> = (0..6).map(|k| poly(-7 - k, &terms[k as usize * 13..])).collect();
    assert_eq!(is_empty(unknowns, &system), None);
    assert_eq!(is_empty(1, &[poly(0, &[(1, &[0])]), poly(-1, &[(-1, &[0])])]), Some(true));
}
