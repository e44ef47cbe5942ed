//! Merges of lists with more combinations than there may be bodies: one body distinguishes the stored lists, and
//! computes the same as the logical program.

use taffeta_ast::{Stmt, StmtKind};
use taffeta_structured::lower;
use testkit::programs;

use programs::{elaborate, equal};

/// Bound on the number of statements of a lowered program; more of them show that cases multiply.
const MAX_STATEMENTS: usize = 1000;

fn statements(s: &Stmt) -> usize {
    let mut count = 0;
    s.walk(&mut |s| count += usize::from(!matches!(s.kind(), StmtKind::Seq(_) | StmtKind::Assume { .. })));
    count
}

/// Checks that the lowering of a program is short, and equals the program.
#[track_caller]
fn agrees(text: &str, seeds: u64) {
    let func = elaborate(text);
    let structured = lower(&func).unwrap_or_else(|e| panic!("{}\n{text}", e.0[0].message));
    let count = statements(&structured.func.body);
    assert!(count < MAX_STATEMENTS, "{count} statements:\n{text}");
    for seed in 0..seeds {
        equal(&func, &structured, seed);
    }
}

/// Returns the text of a loop over vectors in these formats, each with a list of its own.
fn vectors(formats: &[&str], body: &str) -> String {
    let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let params: Vec<String> =
        names.iter().zip(formats).map(|(name, f)| format!("{name}: f64[n] @ format({f})")).collect();
    format!(
        "def kernel({}, x: f64[n]) -> (f64, f64[n]):\n    s = 0.0\n    y = zeros((n,), f64)\n    for j in range(n):\n        {body}\n    return s, y\n",
        params.join(", ")
    )
}

const BODIES: [&str; 12] = [
    "y[j] = a[j] + b[j] + c[j] * x[j] + d[j] + e[j]",
    "s += a[j] + b[j] + c[j] + d[j] + e[j]",
    "s += (a[j] + b[j]) * (c[j] - d[j]) / (e[j] * x[j])",
    "y[j] = a[j] * b[j] * c[j] * d[j] * e[j]",
    "y[j] = a[j] - b[j] * x[j] / (x[j] - x[j]) + c[j] * (d[j] + e[j])",
    "s = min(s, max(a[j], b[j]) - min(c[j], 2.0) * d[j] + e[j])",
    "y[j] = (a[j] if b[j] > c[j] else d[j]) * x[j] + e[j]",
    "y[j] = 1.0 if a[j] > 1.0 and (b[j] == c[j] or d[j] < e[j]) else 0.0",
    "t = a[j] + b[j]\n        u = t * x[j]\n        y[j] = u / (c[j] + d[j] * x[j]) + t * e[j]",
    "if a[j] + b[j] > c[j]:\n            y[j] += d[j]\n        s += e[j]",
    "s += a[j]\n        y[j] = b[j] * x[j]\n        s = max(s, c[j])\n        s += d[j] * e[j]",
    "y[j] = sqrt(a[j] + b[j] + 4.0) * (c[j] + 1.0) - exp(d[j]) * e[j]",
];

#[test]
fn vectors_in_lists() {
    for body in BODIES {
        agrees(&vectors(&["compressed"; 5], body), 25);
    }
}

#[test]
fn vectors_in_all_kinds_of_lists() {
    let formats = [
        ["compressed", "blocklist", "compressed", "compressed", "compressed"],
        ["blocklist"; 5],
        ["packbits"; 5],
        ["runlength", "compressed", "runlength", "packbits", "blocklist"],
        ["compressed, fill=inf", "compressed, fill=1.0", "compressed", "compressed, fill=-inf", "compressed, fill=2.5"],
        ["compressed", "bytemap", "bitmap", "compressed", "banded"],
        ["compressed", "ragged", "compressed", "compressed", "compressed"],
    ];
    for formats in formats {
        for body in BODIES {
            agrees(&vectors(&formats, body), 8);
        }
    }
}

#[test]
fn many_lists_in_one_expression() {
    let all = ["a", "b", "c", "d", "e", "f", "g", "h"].map(|name| format!("{name}[j]"));
    agrees(&vectors(&["compressed"; 8], &format!("y[j] = {}", all.join(" + "))), 20);
    agrees(&vectors(&["compressed"; 8], &format!("s += {}", all.join(" * "))), 20);
    let sums = all.map(|e| format!("s += {e} * x[j]"));
    agrees(&vectors(&["compressed"; 8], &sums.join("\n        ")), 20);
}

const MATRICES: [&str; 8] = [
    "csr",
    "coo",
    "dcsr",
    "vbl",
    "rle",
    "packbits",
    "format(dense, compressed, fill=inf)",
    "format(compressed, blocklist)",
];

/// Checks five-point stencils in the interior of a matrix.
#[test]
fn stencils() {
    for format in MATRICES {
        let text = format!(
            "def kernel(A: f64[n, n] @ {format}) -> f64[n, n]:\n    B = zeros((n, n), f64)\n    \
             for i in range(1, n - 1):\n        for j in range(1, n - 1):\n            B[i, j] = A[i, j] * 4.0 - \
             A[i - 1, j] - A[i + 1, j] - A[i, j - 1] - A[i, j + 1]\n    return B\n"
        );
        agrees(&text, 12);
        agrees(&text.replace("B[i, j] = A[i, j] * 4.0", "B[0, 0] += A[i, j] * 4.0"), 12);
    }
}

#[test]
fn the_game_of_life() {
    for format in ["csr", "vbl"] {
        let text = format!(
            "def life(A: f64[n, n] @ {format}) -> f64[n, n]:\n    B = zeros((n, n), f64)\n    \
             for i in range(1, n - 1):\n        for j in range(1, n - 1):\n            \
             c = A[i - 1, j - 1] + A[i - 1, j] + A[i - 1, j + 1] + A[i, j - 1] + A[i, j + 1] + A[i + 1, j - 1] + \
             A[i + 1, j] + A[i + 1, j + 1]\n            \
             B[i, j] = 1.0 if c > 3.0 or (c > 2.0 and A[i, j] == 1.0) else 0.0\n    return B\n"
        );
        agrees(&text, 12);
    }
}

/// Checks columns that all rows share: a row that is not stored has them too, and expressions do not distinguish it.
#[test]
fn rows_that_share_a_list() {
    agrees(
        "def f(A: f64[n, m] @ format(point, compressed), B: f64[n, m] @ format(squeezed, runlength), \
         C: f64[n, m] @ format(blocklist, squeezed)) -> (f64, f64[n]):\n    s = 0.0\n    y = zeros((n,), f64)\n    \
         for i in range(n):\n        for j in range(m):\n            s += A[i, j] * B[i, j] * C[i, j]\n            \
         y[i] = max(y[i], A[i, j] + C[i, j])\n    return s, y\n",
        60,
    );
}

/// Checks matrices whose rows are stored in lists: a row that is not stored has no elements.
#[test]
fn sums_of_matrices_whose_rows_are_lists() {
    for format in ["dcsr", "coo", "csf"] {
        let names = ["A", "B", "C", "D", "E"];
        let params = names.map(|name| format!("{name}: f64[n, m] @ {format}")).join(", ");
        let sum = names.map(|name| format!("{name}[i, j]")).join(" + ");
        let text = format!(
            "def kernel({params}) -> f64[n, m]:\n    F = zeros((n, m), f64)\n    for i in range(n):\n        \
             for j in range(m):\n            F[i, j] = {sum}\n    return F\n"
        );
        agrees(&text, 12);
        agrees(&text.replace("F[i, j] = A[i, j] +", "F[i, j] += A[i, j] *"), 12);
    }
}
