//! Gaps between stored coordinates are lowered as runs, across the levels below as well: no loop of a reduction counts
//! coordinates.

use taffeta_ast::{ExprKind, Extent, Stmt, StmtKind};
use taffeta_structured::lower;
use testkit::programs;

use programs::{elaborate, equal};

const BODIES: [&str; 6] = [
    "s = min(s, A[i, j])",
    "s += exp(A[i, j])",
    "s = max(s, A[i, j] * 2.0 + 1.0)",
    "s += cos(A[i, j])\n            t = max(t, exp(A[i, j]))",
    "s += 1.0 if A[i, j] < 1.0 else 0.0",
    "if A[i, j] < 1.0:\n                s += 2.0",
];

fn text(format: &str, body: &str) -> String {
    format!(
        "def f(A: f64[n, m] @ {format}) -> (f64, f64):\n    s = 0.0\n    t = 0.0\n    for i in range(n):\n        \
         for j in range(m):\n            {body}\n    return s, t\n"
    )
}

/// Returns the iterators of loops that count coordinates: the end of their range is not loaded, as that of positions
/// is.
fn counting(s: &Stmt) -> Vec<String> {
    let mut found = Vec::new();
    s.walk(&mut |s| {
        let StmtKind::For { iter, extent: Extent::Range { end, .. }, .. } = s.kind() else { return };
        let loads = end.any(&mut |e| matches!(e.kind(), ExprKind::Load(..)));
        found.extend((!loads).then(|| iter.to_string()));
    });
    found
}

#[test]
fn gaps_between_rows_are_runs() {
    for format in ["dcsr", "coo", "hashmap", "csf", "format(hashed, compressed)", "format(compressed, hashed)"] {
        for body in BODIES {
            let func = elaborate(&text(format, body));
            let structured = lower(&func).unwrap_or_else(|e| panic!("{format}: {}", e.0[0].message));
            assert_eq!(counting(&structured.func.body), Vec::<String>::new(), "{format}: {body}");
            assert!(structured.warnings.is_empty(), "{format}: {body}");
            for seed in 0..20 {
                equal(&func, &structured, seed);
            }
        }
    }
}

/// Checks that a term that varies by row loops over the rows of a gap, if rows are stored in a list, but not over their
/// columns.
#[test]
fn terms_that_vary_by_row_loop_over_rows() {
    for format in ["dcsr", "coo"] {
        let func = elaborate(&text(format, "s += exp(A[i, j]) * (i + 1)"));
        let structured = lower(&func).unwrap_or_else(|e| panic!("{format}: {}", e.0[0].message));
        assert!(counting(&structured.func.body).iter().all(|iter| iter.starts_with('i')), "{format}");
        for seed in 0..20 {
            equal(&func, &structured, seed);
        }
    }
}

/// Checks that a store to one element per column runs once per column for all rows of a gap.
#[test]
fn stores_per_column_run_once_per_gap() {
    let text = "def f(A: f64[n, m] @ dcsr, x: f64[m]) -> f64[m]:\n    y = zeros((m,), f64)\n    for i in range(n):\n        \
                for j in range(m):\n            y[j] += exp(A[i, j]) * x[j]\n    return y\n";
    let func = elaborate(text);
    let structured = lower(&func).unwrap_or_else(|e| panic!("{}", e.0[0].message));
    assert!(counting(&structured.func.body).iter().all(|iter| !iter.starts_with('i')));
    for seed in 0..20 {
        equal(&func, &structured, seed);
    }
}
