//! Kernels with operands in all formats, and pairs of them: what they are lowered to computes what they do.

use std::panic::catch_unwind;
use taffeta_structured::{Stored, Unpackable, lower};

mod programs;
#[allow(dead_code)] // what other tests of this crate draw
mod random;

const VECTORS: &[&str] = &[
    "format(dense, fill=7.5)",
    "format(compressed)",
    "format(compressed, fill=inf)",
    "format(hashed)",
    "format(bytemap)",
    "format(bitmap)",
    "format(banded)",
    "format(ragged)",
    "format(blocklist)",
    "format(runlength)",
    "format(packbits)",
    "format(point)",
];

const MATRICES: &[&str] = &[
    "csr",
    "csc",
    "dcsr",
    "coo",
    "format(compressed(unique=False), singleton, order=(1, 0))",
    "vbl",
    "band",
    "rle",
    "packbits",
    "ragged",
    "hashmap",
    "format(dense, bitmap)",
    "format(bytemap, bytemap)",
    "format(compressed, runlength)",
    "format(dense, point)",
    "format(dense, compressed, fill=inf)",
];

const SQUARES: &[&str] = &["symmetric", "lower_triangular", "upper_triangular"];

/// A body for each way of using elements `a` and `b`.
const PAIRS: &[&str] = &[
    "s += a * b",
    "s += a + b",
    "s = max(s, a * b)",
    "s = min(s, a + b)",
    "y[j] += a * b * x[j]",
    "y[j] = a - b",
    "s += exp(a) * b + x[j]",
    "s += (1.0 if a > 2.0 else 0.0) * b",
];

/// How a program went: it equals, or was refused in these words.
fn outcome(text: &str, seeds: std::ops::Range<u64>) -> Result<(), String> {
    let func = programs::elaborate(text);
    let structured = match lower(&func) {
        Ok(structured) => structured,
        Err(e) => return Err(e.0[0].message.clone()),
    };
    taffeta_ast::validate::dense(&structured.func).unwrap_or_else(|e| panic!("{e}\n{text}"));
    for seed in seeds {
        let result = catch_unwind(|| programs::equal(&func, &structured, seed));
        assert!(result.is_ok(), "{text}");
    }
    Ok(())
}

/// The programs that were refused, with the reason.
fn refusals(texts: impl IntoIterator<Item = String>, seeds: u64) -> Vec<String> {
    let mut refused = Vec::new();
    for text in texts {
        if let Err(why) = outcome(&text, 0..seeds) {
            refused.push(format!("{why}\n{text}"));
        }
    }
    refused
}

#[test]
fn pairs_of_vectors() {
    let mut texts = Vec::new();
    for a in VECTORS {
        for b in VECTORS {
            for body in PAIRS {
                let body = body.replace('a', "A[j]").replace('b', "B[j]").replace("mA[j]x", "max");
                let body = body.replace("A[j]nd", "and");
                texts.push(format!(
                    "def f(A: f64[n] @ {a}, B: f64[n] @ {b}, x: f64[n]) -> (f64, f64[n]):\n    s = 0.0\n    y = zeros((n,), f64)\n    for j in range(n):\n        {body}\n    return s, y\n"
                ));
            }
        }
    }
    let refused = refusals(texts, 8);
    assert!(refused.iter().all(|r| r.contains("not ordered")), "{}", refused.join("\n"));
}

#[test]
fn parts_of_vectors() {
    let ranges =
        ["range(n // 2)", "range(n // 3, n)", "range(1, max(1, n - 1))", "range(n - 1, -1, -1)", "range(0, n, 2)"];
    let mut texts = Vec::new();
    for a in VECTORS {
        for range in ranges {
            for value in ["A[j]", "A[j] * x[j]", "A[j] * B[j]", "A[j] + B[j]"] {
                texts.push(format!(
                    "def f(A: f64[n] @ {a}, B: f64[n] @ format(compressed), x: f64[n]) -> (f64, f64[n]):\n    s = 0.0\n    y = zeros((n,), f64)\n    for j in {range}:\n        s += {value}\n        y[j] = {value} + 1.0\n    return s, y\n"
                ));
            }
        }
    }
    let refused = refusals(texts, 8);
    assert!(refused.iter().all(|r| r.contains("not ordered")), "{}", refused.join("\n"));
}

#[test]
fn matrices() {
    let kernels = [
        ("for i in range(n):\n        for j in range(m):\n            ", "y[i] += A[i, j] * x[j]"),
        ("for i in range(n):\n        for j in range(m):\n            ", "s += A[i, j] * B[i, j]"),
        ("for i in range(n):\n        for j in range(m):\n            ", "C[i, j] = A[i, j] + B[i, j]"),
        ("for j in range(m):\n        for i in range(n):\n            ", "y[i] += A[i, j] * x[j]"),
        ("for i in range(n):\n        for j in range(m):\n            ", "y[i] += A[k[i], j] * x[j]"),
        ("for i in range(n):\n        for j in range(m):\n            ", "y[i] += x[j] * A[i, (j + i) % m]"),
    ];
    let mut texts = Vec::new();
    let square = |s: &str| s.replace("f64[n, m]", "f64[n, n]").replace("range(m)", "range(n)").replace("% m", "% n");
    for (p, a) in MATRICES.iter().chain(SQUARES).enumerate() {
        for (q, (loops, body)) in kernels.iter().enumerate() {
            let b = MATRICES[(5 * p + q) % MATRICES.len()];
            let text = format!(
                "def f(A: f64[n, m] @ {a}, B: f64[n, m] @ {b}, x: f64[m], k: i64[n]) -> (f64, f64[n], f64[n, m]):\n    s = 0.0\n    y = zeros((n,), f64)\n    C = zeros((n, m), f64)\n    for q in range(n):\n        assert 0 <= k[q] and k[q] < n\n    {loops}{body}\n    return s, y, C\n"
            );
            let text = if SQUARES.contains(a) {
                square(&text).replace("x: f64[m]", "x: f64[n]").replace("(n, m)", "(n, n)")
            } else {
                text
            };
            texts.push(text);
        }
    }
    let refused = refusals(texts, 12);
    assert!(refused.iter().all(|r| r.contains("not ordered")), "{}", refused.join("\n"));
}
