//! Conditionally evaluated operands with elements of structured tensors: nothing is accessed where the condition does
//! not hold.

use taffeta_structured::lower;
use testkit::programs;

const LAST: [&str; 9] =
    ["compressed", "bytemap", "bitmap", "banded", "ragged", "blocklist", "runlength", "packbits", "point"];

/// Checks that the programs are lowered, and equal their lowering.
fn all_equal(texts: impl IntoIterator<Item = String>) {
    for text in texts {
        let func = programs::elaborate(&text);
        let structured = lower(&func).unwrap_or_else(|e| panic!("{}\n{text}", e.0[0].message));
        taffeta_ast::validate::dense(&structured.func).unwrap_or_else(|e| panic!("{e}\n{text}"));
        for seed in 0..40 {
            let result = std::panic::catch_unwind(|| programs::equal(&func, &structured, seed));
            assert!(result.is_ok(), "{text}");
        }
    }
}

/// Checks indices that are out of range, or cannot be computed, where the condition does not hold.
#[test]
fn indices_guarded_by_conditions() {
    let values = [
        "(A[j + 1] if j + 1 < n else 2.0)",
        "(A[j - 1] if j > 0 else 2.0) + (A[j + 1] if j + 1 < n else 2.0)",
        "(A[j % (j - 3)] if j > 3 else A[j])",
        "(1.0 if j + 1 < n and A[j + 1] > 2.0 else 0.0)",
        "(1.0 if j + 1 == n or A[j + 1] > 2.0 else 0.0)",
        "cast(j + 1 < n and A[j + 1] > 2.0, f64)",
        "cast(not (j + 1 == n or A[j + 1] <= 2.0), f64)",
        "cast(j + 1 < n and x[j + 1] > 1.0 and A[j + 1] > 2.0, f64)",
        "cast(j + 2 < n and A[j + 1] > 0.5 and A[j + 2] > 2.0, f64)",
        "cast(j > 1 and A[n - 1 - j] > 2.0, f64)",
        "cast(j > 1 and A[n - j] > 2.0, f64)",
        "(1.0 if n - j < n and A[n - j] > 2.0 else 0.0)",
        "cast(not (j < 2 or A[n - j] <= 2.0), f64)",
        "cast(j > 1 and A[n - j] > 2.0 and A[(j + 3) % n] > 1.0, f64)",
        "(A[j] * (1.0 if n > 4 and A[j // (n - 4)] > 2.0 else 2.0))",
        "((A[j + 2] if j + 2 < n else A[j + 1]) if j + 1 < n else 1.0)",
    ];
    let text = |level: &str, value: &str| {
        format!(
            "def f(A: f64[n] @ format({level}), x: f64[n]) -> (f64, f64[n]):\n    s = 0.0\n    y = zeros((n,), f64)\n    for j in range(n):\n        s += x[j] * {value}\n        if A[j] > 1.0:\n            y[j] = {value}\n    return s, y\n"
        )
    };
    all_equal(LAST.iter().flat_map(|level| values.map(|value| text(level, value))));
    let rows = |level: &str| {
        format!(
            "def f(A: f64[n, m] @ format(dense, {level}), x: f64[m]) -> f64[n]:\n    y = zeros((n,), f64)\n    for i in range(n):\n        for j in range(m):\n            y[i] += x[j] * (A[i + 1, j] if i + 1 < n else 0.5) * A[i, j]\n    return y\n"
        )
    };
    all_equal(LAST.iter().map(|level| rows(level)));
    let square = |level: &str| {
        format!(
            "def f(A: f64[n, n] @ format(dense, {level})) -> f64[n]:\n    y = zeros((n,), f64)\n    for i in range(n):\n        y[i] += A[i, i + 1] if i + 1 < n else 0.5\n    return y\n"
        )
    };
    all_equal(["symmetric", "triangular", "triangular(upper=True)"].map(square));
}

/// Checks conditions that are decided without an element that is out of range, which counts as not stored.
#[test]
fn conditions_decided_by_unstored_elements() {
    let values = [
        "cast(j + 1 < m and A[i, j + 1] > 2.0, f64)",
        "cast(i + 1 < n and A[i + 1, j] > 2.0, f64)",
        "cast(i + 1 < n and j + 1 < m and A[i + 1, j + 1] > 2.0, f64)",
        "cast(j + 1 < m and A[i, j + 1] < 0.5, f64)",
    ];
    let formats = [
        "format(compressed, dense)",
        "format(dense, compressed)",
        "format(compressed, compressed)",
        "csc",
        "format(bitmap, dense)",
    ];
    let text = |format: &str, value: &str| {
        format!(
            "def f(A: f64[n, m] @ {format}, x: f64[m]) -> f64[n]:\n    y = zeros((n,), f64)\n    for i in range(n):\n        for j in range(m):\n            y[i] += x[j] * {value}\n    return y\n"
        )
    };
    all_equal(formats.iter().flat_map(|format| values.map(|value| text(format, value))));
}

/// Checks a condition that reads a structured tensor, around an index that needs a bounds check.
#[test]
fn conditions_on_stored_elements() {
    let text = |level: &str| {
        format!(
            "def f(A: f64[n, m] @ format({level}, dense), x: f64[m], k: i64[n]) -> f64[m]:\n    y = zeros((m,), f64)\n    for i in range(n // 3, n):\n        for j in range(m):\n            y[j] += A[i, j] if (A[i, k[i]] if A[i, j] == x[j] else x[j]) == A[i, j] else A[k[i], j]\n    return y\n"
        )
    };
    all_equal(LAST.iter().filter(|l| !["runlength", "packbits"].contains(l)).map(|level| text(level)));
}

/// Checks that an empty loop does not access a row that does not exist.
#[test]
fn empty_loops() {
    let text = |level: &str| {
        format!(
            "def f(A: f64[n, m] @ format({level}), x: f64[m]) -> f64:\n    s = 0.0\n    for j in range(m):\n        s += A[0, j]\n    for j in range(m // 3, m):\n        s += A[n - 1, j] * x[j]\n    for j in range(n):\n        s += A[0, j % max(1, m)] if n > 0 else 2.0\n    return s\n"
        )
    };
    let below = |upper: &'static str| LAST.iter().map(move |level| text(&format!("{upper}, {level}")));
    all_equal(["dense", "bytemap", "bitmap", "compressed", "hashed"].into_iter().flat_map(below));
}
