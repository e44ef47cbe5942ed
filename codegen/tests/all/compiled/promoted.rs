//! Scalar replacement of elements in loops, and elements that must stay in memory.

use crate::compiled::scheduled::{check, text};

const ROWS: &str = "
def f(a: f64[n, m], k: i64[n, m]) -> f64[n]:
    y = zeros((n,), f64)
    for i in range(n):
        for j in range(m):
            if k[i, j] > 0:
                y[i] += a[i, j]
    return y
";

#[test]
fn conditional_sums_are_promoted_to_scalars() {
    let c = check(ROWS, &[]);
    assert!(c.contains("double y_2 = y[i];"), "{c}");
    assert!(c.contains("y_2 += a[i * m + j];"), "{c}");
    assert!(c.contains("y[i] = y_2;"), "{c}");
}

#[test]
fn rows_of_parallel_loops_are_promoted_to_scalars() {
    let c = check(ROWS, &[("parallelize", &[text("i")])]);
    assert!(c.contains("y_2 += a[i * m + j];"), "{c}");
}

/// Checks that an element that every iteration writes is left to the C compiler.
#[test]
fn unconditional_sums_are_not_promoted() {
    let c = check(&ROWS.replace("            if k[i, j] > 0:\n    ", ""), &[]);
    assert!(c.contains("y[i] += a[i * m + j];"), "{c}");
}

/// Checks that an element that only one iteration writes stays: others must not even store its old value.
#[test]
fn elements_of_other_iterations_are_not_promoted() {
    let program = "
def f(a: f64[n, m], y: inout[f64[n]]):
    for i in range(n):
        for j in range(m):
            if i == 0:
                y[0] += a[i, j]
";
    let c = check(program, &[("parallelize", &[text("i")])]);
    assert!(c.contains("y[0] += a[i * m + j];"), "{c}");
}

/// Checks that elements without a value stay: some are never written, and an index may be out of range.
#[test]
fn uninitialised_elements_are_not_promoted() {
    let program = "
def f(k: i64[n, m]) -> f64[n]:
    y = empty((n,), f64)
    for i in range(n):
        for j in range(m):
            if j == 0:
                y[i] = cast(k[i, j], f64)
    for i in range(n):
        if m == 0:
            y[i] = 0.0
    return y
";
    let c = check(program, &[]);
    assert!(!c.contains("y_2"), "{c}");
    let program = "
def f(k: i64[n], y: inout[f64[m]]):
    for j in range(n):
        if k[j] > 0 and m > 3:
            y[3] += 1.0
";
    let c = check(program, &[]);
    assert!(c.contains("y[3] += 1.0;"), "{c}");
}

/// Checks that partial initialisation does not count: a diagonal is not the whole matrix, and loops may not run.
#[test]
fn partially_initialised_tensors_are_not_promoted() {
    let program = "
def f(k: i64[n, m]) -> f64[n, n]:
    y = empty((n, n), f64)
    for i in range(n):
        y[i, i] = 1.0
    for i in range(n):
        for l in range(n):
            for j in range(m):
                if j == 0 and i != l:
                    y[i, l] = cast(k[i, j], f64)
    for i in range(n):
        for l in range(n):
            if m == 0 and i != l:
                y[i, l] = 0.0
    return y
";
    let c = check(program, &[]);
    assert!(!c.contains("y_2"), "{c}");
}
