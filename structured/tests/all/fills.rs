//! Values computed from fills derive from the fill, however many loops and searches are needed to determine that.

use taffeta_analysis::pass::simplify;
use taffeta_ast::{print, validate};
use taffeta_schedule::{Arg, Schedule};
use taffeta_structured::lower;
use testkit::{lowers, programs};

const FORMATS: [&str; 7] = ["banded", "compressed", "bytemap", "hashed", "bitmap", "point", "compressed, fill=inf"];

/// Checks that the lowering of a program equals the program, as it is and simplified before.
fn agrees(text: &str, seeds: u64) {
    let func = programs::elaborate(text);
    for lowered in [func.clone(), simplify::run(&func)] {
        let structured = lower(&lowered).unwrap_or_else(|e| panic!("{}\n{text}", e.0[0].message));
        for seed in 0..seeds {
            let result = std::panic::catch_unwind(|| programs::equal(&func, &structured, seed));
            assert!(result.is_ok(), "{text}");
        }
    }
}

#[test]
fn nested_values_derived_from_fills() {
    let values = [
        "min(max(A[i] - A[j], -1.0), 1.0)",
        "(A[i] - A[j]) * A[k[j]]",
        "(A[j] - A[k[j]]) * (x[j] / x[i])",
        // A fill that leaves a constant as it is: the value derives from fills and constants alone.
        "min(2.0, A[i]) * A[j]",
        "(A[i] + 2.0) * B[j] + B[k[j]]",
        "(max(A[i], -1.0) if j < 2 else A[j] * 1.0) * B[j]",
        "min(A[i], B[j]) * x[j]",
        "(A[i] if B[j] > 0.5 else B[i]) * x[j]",
        "(2.0 if A[i] > B[j] else B[i]) / (x[j] - x[j])",
        // A constant that a fill chooses derives from the fill.
        "min(A[i], 2.0 if B[j] < 0.5 else 1.0) * x[j]",
        "min(A[i], 2.0 if B[j] < 0.5 else 2.0) * x[j]",
        "(0.0 if B[j] < 0.5 else A[i]) * x[j]",
        "(A[i] if A[i] > 0.5 else 0.0) * (x[j] + x[i])",
        "((0.0 if j < 2 else 1.0) if B[j] < 0.5 else A[i]) * x[j]",
        "((0.0 if A[j] < 0.5 else 1.0) if B[j] < 0.5 else A[i]) * x[j]",
        "(A[i] if A[i] > 0.5 else -(0.0 if j < 2 else 0.0)) * x[j]",
        "(A[i] if B[j] < 0.5 else (A[i] if i >= 0 else x[j])) / (x[j] - x[j])",
        "B[j] if B[j] > 0.5 else (0.0 if j < 2 else 1.0)",
        "(B[j] if B[j] > 0.5 else (A[i] if j < 2 else 1.0)) * x[j]",
        "min(A[i], 2.0 if A[j] < 0.5 and j < 2 else (B[j] if B[k[j] % n] < 1.0 else 1.0)) * x[j]",
    ];
    for format in FORMATS {
        for value in values {
            for op in ["+=", "*="] {
                let text = format!(
                    "def f(A: f64[n] @ format({format}), B: f64[n] @ format(compressed), x: f64[n], \
                     k: i64[n]) -> f64[n]:\n    y = zeros((n,), f64)\n    for j in range(n):\n        \
                     y[j] = 1.0 / x[j] if j % 2 == 0 else (x[j] - x[j]) / (x[j] - x[j])\n    \
                     for i in range(n):\n        for j in range(n):\n            y[j] {op} {value}\n    return y\n"
                );
                agrees(&text, 12);
            }
        }
    }
}

/// Checks scalars that are computed from one another, and declared before the first of them is defined, as in
/// gradients.
#[test]
fn scalars_computed_from_unstored_elements() {
    let bodies = [
        "t = A[k[j] % n]\n        u = t / (x[j] - x[j])\n        y[j] += u * x[0]",
        "t = A[k[j] % n]\n        u = -t\n        y[j] += u * x[j]",
        "t = A[k[j] % n]\n        u = -t\n        v = u * x[j]\n        y[j] += v * x[0]",
        "t = A[k[j] % n]\n        u = A[j] * t\n        v = u * x[j]\n        y[j] += (B[j] + v) * x[0]",
        "t = A[k[j] % n]\n        u = B[k[0] % n] * x[0]\n        v = t * u\n        y[j] = v * x[j]",
        // Statements that are copied for both cases declare copies of their scalars.
        "t = A[k[j] % n]\n        y[j] += t * x[j]\n        a = empty((), f64)\n        b = empty((), f64)\n        \
         a = B[k[0] % n]\n        b = a / x[j]\n        y[j] += b * x[0]\n        q = 1.0",
        "u = A[k[j] % n]\n        v = B[j] * 2.0\n        t = u / (x[j] - x[j])\n        y[j] += x[j] * t + v * x[0]",
        // The value derives from the fill only where none of several elements is stored.
        "t = A[k[j] % n]\n        u = min(B[(j + 1) % n], t)\n        y[j] += u / (x[j] - x[j])",
        "t = A[k[j] % n]\n        u = B[k[0] % n]\n        v = min(t, u)\n        \
         y[j] = max(v, A[(j + 1) % n]) / (x[j] - x[j])",
        "t = A[k[j] % n]\n        if j > 1:\n            u = B[k[0] % n] + t\n            y[j] = u / (x[j] - x[j])",
    ];
    for format in FORMATS {
        for body in bodies {
            let text = format!(
                "def f(A: f64[n] @ format({format}), B: f64[n] @ format(hashed), x: f64[n], k: i64[n]) -> f64[n]:\n    \
                 y = zeros((n,), f64)\n    q: f64 = 0.0\n    for j in range(n):\n        t = empty((), f64)\n        \
                 u = empty((), f64)\n        v = empty((), f64)\n        {body}\n        y[j] += q\n    return y\n"
            );
            agrees(&text, 30);
        }
    }
}

/// Checks values that are set inside the scope of another scalar and read after it, as steps of a schedule leave them.
#[test]
fn scalars_set_in_the_scope_of_others() {
    let values = ["A[k[i] % n] * t", "A[i] if i > 1 else t", "B[i] if i > 1 else A[k[i] % n]"];
    for format in FORMATS {
        for value in values {
            let text = format!(
                "def f(A: f64[n] @ format({format}), B: f64[n] @ format(compressed), x: f64[n], \
                 k: i64[n]) -> f64[n]:\n    y = zeros((n,), f64)\n    u = empty((n,), f64)\n    for i in range(n):\n        t = x[i]\n        \
                 t *= 2.0\n        u[i] = {value}\n    for j in range(n):\n        t = B[j]\n        \
                 t += x[j]\n        y[j] += t * u[j] / x[0]\n    return y\n"
            );
            let mut s = Schedule::new(programs::elaborate(&text)).lowered_by(lowers::lowers);
            for (method, args) in [("fuse", &["i", "j"][..]), ("contract", &["u"])] {
                let args: Vec<Arg> = args.iter().map(|a| Arg::from(*a)).collect();
                s.call(method, &args).unwrap_or_else(|r| panic!("{method}: {}", r.message));
            }
            let func = s.into_func();
            let structured = lower(&func).unwrap_or_else(|e| panic!("{}\n{text}", e.0[0].message));
            let text = || print::func(&func);
            validate::dense(&structured.func).unwrap_or_else(|e| panic!("{e}\n{}", text()));
            for seed in 0..12 {
                let result = std::panic::catch_unwind(|| programs::equal(&func, &structured, seed));
                assert!(result.is_ok(), "{}", text());
            }
        }
    }
}

/// Checks that a scalar assigned in several branches does not count as a single definition, even where a region of the
/// loops decides the condition and leaves one branch.
#[test]
fn scalars_set_in_branches() {
    let loops = "for i in range(n):\n        for j in range(n):\n            ";
    let branches = [
        ("i < n - 1", "A[i + 1, j]", "2.0"),
        ("j < n - 1", "A[i, j + 1]", "B[i, j]"),
        ("B[i, j] < 0.5", "A[n - 1 - i, j]", "2.0"),
        ("B[i, j] < 0.5", "A[i, j]", "B[i, j]"),
        ("A[i, j] < 0.5", "B[j, k[i] % n]", "A[i, j]"),
        ("i % 2 == 0", "A[k[i] % n, j]", "B[i, j]"),
    ];
    let formats =
        ["squeezed, bytemap", "compressed, compressed", "dense, banded", "dense, compressed", "dense, bitmap"];
    for format in formats {
        for (cond, then, otherwise) in branches {
            let text = format!(
                "def f(A: f64[n, n] @ format({format}), B: f64[n, n] @ format(dense, hashed), x: f64[n], \
                 k: i64[n]) -> f64[n]:\n    y = zeros((n,), f64)\n    {loops}t = empty((), f64)\n            \
                 if {cond}:\n                t = {then}\n            \
                 else:\n                t = {otherwise}\n            y[i] += t / (x[j] - x[j])\n    return y\n"
            );
            agrees(&text, 30);
        }
    }
}

/// Checks operands that are evaluated in a branch whose condition follows from a fill.
#[test]
fn operands_chosen_by_a_fill() {
    let values = [
        "(B[0] if A[k[0] % n] < 0.5 else 2.0) / (x[j] - x[j])",
        "(2.0 if A[(j + 1) % n] > 0.5 else B[0]) / (x[j] - x[j])",
        "(B[0] if A[(j + 1) % n] < 0.5 and A[j] < 0.5 else 2.0) / (x[j] - x[j])",
        "((B[0] if B[1] < 0.5 else A[j]) if not 1.0 <= max(A[k[0] % n], -1.0) else 0.0) / (x[j] - x[j])",
        "(1.0 if A[k[0] % n] > 0.5 and B[0] > 0.5 else 0.0) * x[j] + (B[0] if A[j] < 0.5 else 2.0) / (x[j] - x[j])",
    ];
    for format in FORMATS {
        for value in values {
            let text = format!(
                "def f(A: f64[n] @ format({format}), B: f64[m] @ format(hashed), x: f64[n], k: i64[n]) -> f64[n]:\n    \
                 y = zeros((n,), f64)\n    for j in range(n):\n        y[j] += {value}\n    return y\n"
            );
            agrees(&text, 30);
        }
    }
}
