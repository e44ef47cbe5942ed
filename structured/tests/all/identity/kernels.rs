//! Programs that write tensors over the pattern of a parameter.

use super::programs::elaborate;
use taffeta_ast::Func;
use taffeta_autodiff::{Kind, Request, differentiate};

/// Formats that store one value for several elements, and store all elements of the matrix; and one control.
pub const SHARING: [&str; 6] = [
    "symmetric",
    "rle",
    "packbits",
    "format(dense, runlength, order=(1, 0))",
    "format(dense, packbits, order=(1, 0))",
    CONTROL,
];

/// Control: a format with a value for each element.
const CONTROL: &str = "format(dense, dense, order=(1, 0))";

/// Bodies that write `y`, and `B` over the pattern of `A`.
const BODIES: [(&str, &str); 18] = [
    ("stores", "for i in range(n):\n        for j in range(n):\n            B[i, j] = A[i, j] * x[j] + z[i]"),
    ("sums", "for i in range(n):\n        for j in range(n):\n            B[i, j] += x[i] * z[j]"),
    ("transposed", "for i in range(n):\n        for j in range(n):\n            B[j, i] = x[j] - z[i]"),
    (
        "sums, read",
        "for i in range(n):\n        for j in range(n):\n            B[i, j] += x[j]\n            y[i] += B[j, i]",
    ),
    (
        "sums, read in one row",
        "for i in range(n):\n        for j in range(n):\n            B[i, j] += x[j]\n        for l in range(n):\n            y[i] += B[i, l]",
    ),
    ("row and column", "for i in range(1, n):\n        B[i, 0] = x[i]\n        B[0, i] = z[i]"),
    (
        "row, then column",
        "for i in range(1, n):\n        B[i, 0] = x[i]\n    for l in range(1, n):\n        B[0, l] = z[l]",
    ),
    ("two operators", "for i in range(1, n):\n        B[i, 0] += x[i]\n        B[0, i] = max(B[0, i], z[i])"),
    (
        "reduced, read elsewhere",
        "for k in range(n):\n        for i in range(1, n):\n            B[i, 0] += x[k]\n            y[k] += B[0, i]",
    ),
    ("lower half", "for i in range(n):\n        for j in range(i + 1):\n            B[i, j] = x[i] - z[j]"),
    (
        "lower half, read",
        "for i in range(n):\n        for j in range(i):\n            B[i, j] = x[i]\n            y[j] += B[j, i]",
    ),
    (
        "half",
        "for i in range(n):\n        for j in range(n):\n            if j <= i:\n                B[i, j] += x[i] * z[j]",
    ),
    ("diagonals", "for i in range(n):\n        B[i, i] = x[i]\n        B[i, n - 1 - i] = z[i]"),
    ("in place", "for i in range(n):\n        for j in range(n):\n            B[i, j] = B[j, i] + x[j]"),
    ("neighbours", "for i in range(n):\n        for j in range(1, n):\n            B[i, j] = B[i, j - 1] + x[j]"),
    ("even and odd", "for i in range(n // 2):\n        B[0, 2 * i] = x[i]\n        B[0, 2 * i + 1] = z[i]"),
    (
        "a local one",
        "C: f64[n, n] @ pattern(A, drop=True) = zeros((n, n), f64)\n    for i in range(n):\n        for j in range(n):\n            C[i, j] = x[i] * A[i, j] + z[j]\n    for i in range(n):\n        for j in range(n):\n            B[i, j] += C[j, i]\n            y[j] += C[i, j]",
    ),
    (
        "constants",
        "for i in range(n):\n        for j in range(n):\n            B[i, j] = 1.0\n    for i in range(n):\n        B[0, i] = 2.0\n        y[i] += B[i, 0]",
    ),
];

/// Programs that are differentiated with respect to `A`.
const DIFFERENTIATED: [(&str, &str); 3] = [
    ("product", "for i in range(n):\n        for j in range(n):\n            y[i] += A[i, j] * x[j]"),
    (
        "both ways",
        "for i in range(n):\n        for j in range(n):\n            y[i] += A[i, j] * x[j] + A[j, i] * z[j]",
    ),
    ("squares", "for i in range(n):\n        for j in range(n):\n            y[j] += A[i, j] * A[i, j] * x[i]"),
];

/// Formats of differentiated programs; some leave elements unstored.
const DERIVED: [&str; 7] =
    ["symmetric", "rle", "packbits", "format(compressed, runlength)", "csr", "dia", "bcsr(2, 3)"];

/// Builds a program that writes `B` as an adjoint (`drop=True`), which sums over a shared value: otherwise, elements
/// that share a value behave as if each had its own.
fn program(format: &str, body: &str) -> Func {
    elaborate(&format!(
        "def f(A: f64[n, n] @ {format}, x: f64[n], z: f64[n]) -> (f64[n, n] @ pattern(A, drop=True), f64[n]):\n    B = zeros((n, n), f64)\n    y = zeros((n,), f64)\n    {body}\n    return B, y\n"
    ))
}

fn gradient(format: &str, body: &str) -> Func {
    let func = elaborate(&format!(
        "def f(A: f64[n, n] @ {format}, x: f64[n], z: f64[n]) -> f64[n]:\n    y = zeros((n,), f64)\n    {body}\n    return y\n"
    ));
    differentiate(&Request::new(Kind::Vjp, "df", &func, &["A".to_string()])).unwrap_or_else(|e| panic!("{e:?}"))
}

/// Returns all programs, with their names.
pub fn all() -> Vec<(String, Func)> {
    let mut out = Vec::new();
    for format in SHARING {
        out.extend(BODIES.iter().map(|(name, body)| (format!("{name}, {format}"), program(format, body))));
    }
    for format in DERIVED {
        let named = |(name, body): &(&str, &str)| (format!("gradient of {name}, {format}"), gradient(format, body));
        out.extend(DIFFERENTIATED.iter().map(named));
    }
    out
}
