//! Kernels with operands whose levels store expressions of several dimensions, and with indices that are sums: the
//! lowered programs compute the same as the logical ones.

use std::panic::catch_unwind;
use taffeta_ast::format::Format;
use taffeta_structured::lower;
use testkit::{programs, random};

/// Checks that a program equals its lowering; returns the message if lowering refuses it.
fn outcome(text: &str, seeds: u64) -> Result<(), String> {
    let func = programs::elaborate(text);
    let structured = lower(&func).map_err(|e| e.0[0].message.clone())?;
    taffeta_ast::validate::dense(&structured.func).unwrap_or_else(|e| panic!("{e}\n{text}"));
    for seed in 0..seeds {
        let result = catch_unwind(|| programs::equal(&func, &structured, seed));
        assert!(result.is_ok(), "{text}");
    }
    Ok(())
}

fn is_ordered(f: &Format) -> bool {
    f.levels.iter().all(|l| l.ordered || !l.kind.has_lists())
}

const KERNELS: &[&str] = &[
    "for i in range(n):\n        for j in range(m):\n            y[i] += A[i, j] * x[j]",
    "for j in range(m):\n        for i in range(n):\n            y[i] += A[i, j] * x[j]",
    "for i in range(n):\n        for j in range(m):\n            s += A[i, j] * B[i, j]",
    "for i in range(n):\n        for j in range(m):\n            C[i, j] = A[i, j] + B[i, j]",
    "for i in range(n):\n        for j in range(m):\n            s = max(s, A[i, j])",
    "for i in range(n):\n        for j in range(m):\n            y[i] += A[k[i], j] * x[j]",
    "for i in range(n):\n        for j in range(1, m - 1):\n            y[i] += (A[i, j - 1] + A[i, j + 1]) * x[j]",
    "for i in range(n):\n        for j in range(m):\n            if j < i:\n                y[i] += A[i, j] * A[i, i if i < m else j]",
    // Along diagonals.
    "for d in range(1 - n, m):\n        for i in range(max(0, 0 - d), min(n, m - d)):\n            y[i] += A[i, d + i] * x[d + i]",
    // By blocks.
    "for io in range((n + 1) // 2):\n        for jo in range((m + 2) // 3):\n            for ii in range(2):\n                for ji in range(3):\n                    if io * 2 + ii < n and jo * 3 + ji < m:\n                        y[io * 2 + ii] += A[io * 2 + ii, jo * 3 + ji] * x[jo * 3 + ji]",
];

fn program(a: &Format, b: &str, kernel: &str) -> String {
    let (returned, a) = (a.remap(), a.text_with("stored"));
    format!(
        "def stored(i, j):\n    return {returned}\n\ndef f(A: f64[n, m] @ {a}, B: f64[n, m] @ {b}, x: f64[m], k: i64[n]) -> (f64, f64[n], f64[n, m]):\n    s = 0.0\n    y = zeros((n,), f64)\n    C = zeros((n, m), f64)\n    for q in range(n):\n        assert 0 <= k[q] and k[q] < n\n    {kernel}\n    return s, y, C\n"
    )
}

#[test]
fn remapped_operands() {
    let mut refused = Vec::new();
    for (p, a) in random::remapped().iter().enumerate() {
        for (q, kernel) in KERNELS.iter().enumerate() {
            let b = ["csr", "dia", "bcsr(2, 3)", "format(dense, hashed)", "csc"][(p + q) % 5];
            let text = program(a, b, kernel);
            match outcome(&text, 12) {
                Ok(()) => {}
                // A coordinate that an unordered list may have at several positions is not searched.
                Err(why) if !is_ordered(a) && why.contains("not ordered") => {}
                Err(why) => refused.push(format!("{why}\n{text}")),
            }
        }
    }
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}

/// Checks diagonals that only the bounds of the loop show to be in the tensor: an empty loop accesses no element, and a
/// loop that leaves the tensor stops the program.
#[test]
fn diagonals_known_before_their_loop() {
    let kernels = [
        "for i in range(n):\n        s = min(s, A[i, i])",
        "for i in range(n):\n        y[i] += A[i, i + at]",
        "for i in range(n):\n        y[i] += A[i, i + 40 * at]",
        "for i in range(n):\n        y[i] = max(y[i], A[i, i - at])",
        "for i in range(1, n):\n        y[i] += A[i - 1, i + at] * x[0]",
        "for i in range(n):\n        b: i64 = at\n        y[i] += A[i + b, i + b]",
        "for i in range(n):\n        if i < m:\n            y[i] = A[i, i] + 1.0",
        "for i in range(n - 1, -1, -1):\n        s += A[i, i]",
        "for i in range(n - 1, -1, -1):\n        s += A[i, i + 40 * at]",
        "for i in range(m):\n        for l in range(i, n):\n            s += A[l, l - i]",
    ];
    let mut refused = Vec::new();
    for a in random::remapped() {
        for kernel in kernels {
            let (returned, format) = (a.remap(), a.text_with("stored"));
            let text = format!(
                "def stored(i, j):\n    return {returned}\n\n\
                 def f(A: f64[n, m] @ {format}, x: f64[m], at: i64) -> (f64, f64[n]):\n    \
                 s = 0.0\n    y = zeros((n,), f64)\n    {kernel}\n    return s, y\n"
            );
            match outcome(&text, 12) {
                Err(why) if is_ordered(&a) || !why.contains("not ordered") => refused.push(format!("{why}\n{text}")),
                _ => {}
            }
        }
    }
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}

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
    "format(squeezed)",
];

/// Checks indices that are an iterator plus a loop-invariant term.
#[test]
fn indices_with_invariant_offsets() {
    let kernels = [
        "for i in range(n - 2):\n        s += A[i + 2] * x[i]",
        "for i in range(1, n):\n        y[i] = A[i - 1] + A[i]",
        "for i in range(n - 2):\n        for l in range(3):\n            y[i] += A[i + l] * x[l]",
        "for i in range(n):\n        for l in range(i + 1):\n            y[i] += A[i - l] * x[l]",
        "for i in range(n):\n        for l in range(i, n):\n            y[i] += A[l - i] * B[l]",
        "for i in range(n):\n        for l in range(n - i):\n            y[i] = max(y[i], A[l + i] * B[l])",
        "for i in range(n):\n        if i >= 3:\n            s += A[i - 3] * B[i]",
        "for i in range(n + 3):\n        s += A[i - 3] * x[i - 3] if i >= 3 else 1.0",
        "for i in range(n // 2):\n        s += A[n // 2 + i] * A[i]",
        "for i in range(3, n + 3):\n        s += A[i - 3]",
        "for i in range(n // 2):\n        s += A[window(n // 2, n)[i]] * x[i]",
        "for i in range(1, n):\n        for l in range(i):\n            y[i] += A[offset(1)[i]] * B[window(1, i + 1)[l]]",
    ];
    let mut refused = Vec::new();
    for a in VECTORS {
        for (k, kernel) in kernels.iter().enumerate() {
            let b = VECTORS[(k * 3 + 1) % VECTORS.len()];
            let text = format!(
                "def f(A: f64[n] @ {a}, B: f64[n] @ {b}, x: f64[n]) -> (f64, f64[n]):\n    s = 0.0\n    y = zeros((n,), f64)\n    {kernel}\n    return s, y\n"
            );
            if let Err(why) = outcome(&text, 20) {
                refused.push(format!("{why}\n{text}"));
            }
        }
    }
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}

/// Checks indices that may be out of range, and cyclic indices.
#[test]
fn indices_that_may_be_out_of_range() {
    let kernels = [
        "for i in range(n):\n        for l in range(3):\n            y[i] += coalesce(A[permit(i + l - 1)], 0.0) * x[l]",
        "for i in range(n + 2):\n        s += coalesce(A[permit(i - 1)], 2.5)",
        "for i in range(2 * n):\n        s += coalesce(A[permit(i)], B[permit(i - n)], 9.0) * 0.5",
        "for i in range(n):\n        y[i] = coalesce(A[permit(i + 3)] * B[permit(i - 2)], A[i])",
        "for i in range(n):\n        y[i] = coalesce(A[permit(2 * i - 1)], x[i])",
        "for i in range(n):\n        y[i] += coalesce(select(x[i] > 0.0, A[permit(i + 1)], 0.5), 1.5)",
        "for i in range(n):\n        y[i] = coalesce(A[i] + B[permit(n - 2 - i)], -1.0)",
        "for i in range(n):\n        s += A[(i + 2) % n] * x[i]",
        "for i in range(n):\n        for l in range(3):\n            y[i] += A[(i + l - 1) % n] * x[l]",
        "for i in range(n):\n        y[i] = A[(n + i - 1) % n] + B[(i + 1) % n] * A[i]",
        "for i in range(n):\n        y[i] = B[2 * i % n] * x[i]",
    ];
    let mut refused = Vec::new();
    for a in VECTORS {
        for (k, kernel) in kernels.iter().enumerate() {
            let b = VECTORS[(k * 5 + 2) % VECTORS.len()];
            let text = format!(
                "def f(A: f64[n] @ {a}, B: f64[n] @ {b}, x: f64[n]) -> (f64, f64[n]):\n    assert n >= 3\n    s = 0.0\n    y = zeros((n,), f64)\n    {kernel}\n    return s, y\n"
            );
            if let Err(why) = outcome(&text, 20) {
                refused.push(format!("{why}\n{text}"));
            }
        }
    }
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}

/// Checks that a part of a fibre is searched for at both ends, and the rest of the fibre is not traversed.
#[test]
fn parts_of_fibres_are_searched_at_both_ends() {
    let text = "def f(A: f64[n] @ format(compressed), w: f64[k], at: i64) -> f64:\n    s = 0.0\n    for l in range(k):\n        s += A[at + l] * w[l]\n    return s\n";
    let structured = lower(&programs::elaborate(text)).expect("it is lowered");
    let shown = taffeta_ast::print::func(&structured.func);
    assert_eq!(shown.matches("while").count(), 4, "{shown}");
    assert!(structured.warnings.is_empty(), "{:?}", structured.warnings);
}
