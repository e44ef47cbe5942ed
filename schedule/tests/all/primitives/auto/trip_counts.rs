//! Trip counts that the cost model expects.

use crate::primitives::common::entry;
use taffeta_schedule::auto::{Basis, Target};
use taffeta_schedule::testing;

/// Returns the trip counts of a program's loops, in program order.
fn trips(text: &str, sizes: &[(&str, i64)]) -> Vec<(f64, Basis)> {
    let mut target = Target::portable(2);
    target.sizes = sizes.iter().map(|(n, v)| ((*n).to_string(), *v)).collect();
    testing::trip_counts(&entry(text).0, &target).into_iter().map(|found| (found.value, found.basis)).collect()
}

#[test]
fn triangular_loops_have_half_of_the_iterations() {
    let text = "
def f(x: inout[f64[n, m]]):
    for i in range(n):
        for j in range(i, n):
            x[i, j] = 0
        for j in range(m):
            x[i, j] = 1
        for j in range(9, -1, -2):
            x[i, j] = 2
";
    let (hint, guess) = (Basis::Hint, Basis::Guess);
    let mut found = trips(text, &[("n", 100)]);
    // Half of the square plus half of its diagonal, up to sampling error.
    found[1].0 = (10.0 * found[1].0).round() / 10.0;
    assert_eq!(found, [(100.0, hint), (50.5, hint), (1000.0, guess), (5.0, Basis::Fact)]);
}

#[test]
fn loops_visit_stored_elements() {
    let text = "
def f(A: f64[n, m] @ csr, B: f64[n, m] @ format(compressed, compressed), x: f64[m], y: inout[f64[n]], z: inout[f64[n, m]]):
    for i in range(n):
        for j in range(m):
            y[i] += A[i, j] * x[j]
    for i in range(n):
        for j in range(m):
            y[i] += B[i, j] * x[j]
    for i in range(n):
        for j in range(m):
            z[i, j] = A[i, j]
    for j in range(m):
        for i in range(n):
            y[i] += A[i, j] * x[j]
";
    let sizes = [("n", 100), ("m", 1000), ("A.stored", 700), ("B.stored", 50)];
    let found: Vec<f64> = trips(text, &sizes).into_iter().map(|(value, _)| value).collect();
    assert_eq!(found, [100.0, 7.0, 50.0, 1.0, 100.0, 1000.0, 1000.0, 100.0]);
    let found: Vec<f64> = trips(text, &sizes[..2]).into_iter().map(|(value, _)| value).collect();
    assert_eq!(found, [100.0, 64.0, 100.0, 64.0, 100.0, 1000.0, 1000.0, 100.0]);
}

#[test]
fn rows_divide_the_stored_elements() {
    let text = "
def f(first: i64[n + 1], k: i32[m], v: f64[m], y: inout[f64[n]]):
    for i in range(n):
        for p in range(first[i], first[i + 1]):
            y[i] += v[p]
        for p in range(first[0]):
            y[i] += 1
";
    let found = trips(text, &[("n", 100), ("m", 700)]);
    assert_eq!(found, [(100.0, Basis::Hint), (7.0, Basis::Hint), (64.0, Basis::Guess)]);
}
