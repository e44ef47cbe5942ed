//! The page of formats and kernels: the effect of each loop of a kernel on a matrix in each format, as lowering
//! explains it.

use crate::storage::FORMATS;
use expect_test::expect_file;
use itertools::Itertools as _;
use std::fmt::Write as _;
use taffeta::{Options, Program};
use taffeta_structured::Visited;

/// Head of the page.
const HEAD: &str = "\
# Formats and kernels

The loops of some kernels on a matrix `A`, by its format. A row names each loop over a dimension of `A`, the use of the
level of `A` in it, and the coordinates that the loop visits: `all` of them, or the `stored` ones only. A level that
*drives* a loop is traversed position by position, and a *located* one is dense, so that the position of any coordinate
is known; *limits*, *merged*, *follows*, *asked*, *probed* and *searched* mean the same as in `taffeta show --explain`
([Loops over what is stored](../coiteration.md)). A test generates this page from the compiler's own explanations.

The kernels:

";

/// Kernels on `A` in a format: heading, description, and loops.
const KERNELS: [(&str, &str, &str); 8] = [
    (
        "rows",
        "`y[i] += A[i, j] * x[j]`, the product with a vector, by rows",
        "
    for i in range(n):
        for j in range(n):
            y[i] += A[i, j] * x[j]",
    ),
    (
        "columns",
        "the same with the loop over `j` outside",
        "
    for j in range(n):
        for i in range(n):
            y[i] += A[i, j] * x[j]",
    ),
    (
        "matrix",
        "`Y[i, l] += A[i, j] * X[j, l]`, the product with a dense matrix; sampled products have the same loops",
        "
    for i in range(n):
        for j in range(n):
            for l in range(n):
                Y[i, l] += A[i, j] * X[j, l]",
    ),
    (
        "both",
        "`s += A[i, j] * B[i, j]`, where `B` is `csr`: the elements that both store",
        "
    for i in range(n):
        for j in range(n):
            y[i] += A[i, j] * B[i, j]",
    ),
    (
        "either",
        "`y[i] += (A[i, j] + B[i, j]) * x[j]`, where `B` is `csr`: the elements that one of them stores",
        "
    for i in range(n):
        for j in range(n):
            y[i] += (A[i, j] + B[i, j]) * x[j]",
    ),
    (
        "shifted",
        "`y[i] += A[i, j + 1] * x[j]`: an index that is a sum",
        "
    for i in range(n):
        for j in range(n - 1):
            y[i] += A[i, j + 1] * x[j]",
    ),
    (
        "picked",
        "`y[i] += A[k[i], j] * x[j]`: rows in any order",
        "
    for i in range(n):
        for j in range(n):
            y[i] += A[k[i], j] * x[j]",
    ),
    (
        "diagonals",
        "`y[i] += A[i, d + i] * x[d + i]`, in a loop over diagonals",
        "
    for d in range(1 - n, n):
        for i in range(max(0, 0 - d), min(n, n - d)):
            y[i] += A[i, d + i] * x[d + i]",
    ),
];

fn program(format: &str, kernel: &str) -> String {
    format!(
        "def f(A: f64[n, n] @ {format}, B: f64[n, n] @ csr, X: f64[n, n], x: f64[n], k: i64[n]) -> (f64[n], f64[n, n]):\n    y = zeros((n,), f64)\n    Y = zeros((n, n), f64){kernel}\n    return y, Y\n"
    )
}

/// Describes each loop over `A`, from the outside in: the part that each level plays, and `all` if the loop visits
/// every coordinate.
fn cell(format: &str, kernel: &str) -> String {
    let program = Program::from_source("p.ft", &program(format, kernel)).unwrap_or_else(|e| panic!("{format}: {e}"));
    let func = program.logical("f", &Options::default()).unwrap_or_else(|e| panic!("{format}: {e}"));
    let Ok(lowered) = taffeta_structured::lower(&taffeta_analysis::pass::simplify::run(&func)) else {
        return "refused".into();
    };
    let own = |e: &taffeta_structured::Explained| {
        let parts = e.operands.iter().filter(|o| o.tensor == "A").map(|o| o.role.word()).unique().collect_vec();
        let all = if e.visited == Visited::Every { "all" } else { "stored" };
        format!("`{}` {}: {all}", e.iter, parts.join(" + "))
    };
    // A loop that appears in several cases is lowered in each.
    let loops = lowered.explained.iter().filter(|e| e.operands.iter().any(|o| o.tensor == "A"));
    loops.map(own).unique().join("; ")
}

#[test]
fn the_page_of_kernels_is_current() {
    let mut page = HEAD.to_string();
    for (name, what, _) in KERNELS {
        writeln!(page, "- **{name}**: {what}").expect("a string");
    }
    for (name, _, kernel) in KERNELS {
        write!(page, "\n## {name}\n\n| `A` is | loops |\n|---|---|\n").expect("a string");
        // Formats with the same loops share a row.
        let mut rows: Vec<(String, Vec<&str>)> = Vec::new();
        for format in FORMATS {
            let cell = cell(format, kernel);
            match rows.iter_mut().find(|(c, _)| *c == cell) {
                Some((_, all)) => all.push(format),
                None => rows.push((cell, vec![format])),
            }
        }
        for (cell, formats) in rows {
            let formats = formats.iter().map(|f| format!("`{f}`")).join(", ");
            writeln!(page, "| {formats} | {cell} |").expect("a string");
        }
    }
    expect_file!["../../docs/src/reference/kernels.md"].assert_eq(&page);
}
