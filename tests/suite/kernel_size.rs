//! Length of a kernel's C. Merges have a case for each combination of stored operands, and cases multiply: in a kernel
//! whose C nobody could read, something multiplies that should not.

use crate::programs::{below, for_each};
use itertools::Itertools as _;
use taffeta::{Options, Program};

/// Maximum number of lines of a kernel.
const MAX_LINES: usize = 400;

/// Counts the lines of an entry's loops in C: from its first own function to the entries that callers use.
fn lines(program: &Program, entry: &str) -> Result<usize, String> {
    let source = program.c_source(entry, &Options::default().schedule(None)).map_err(|e| e.to_string())?;
    let code = source.code;
    let end =
        ["int taf_arrays_", "int taffeta_"].iter().filter_map(|n| code.find(&format!("{n}{entry}_plan(taffeta_ctx")));
    let end = end.min().ok_or("no entry")?;
    // The entry's plan and the sizes of its arguments come before.
    let begin = code.find("TAFFETA_KERNEL").ok_or("no kernel")?;
    Ok(code[begin..end].lines().count())
}

#[test]
fn kernels_of_the_examples_are_short() {
    let mut longest = (0, String::new());
    for program in below("examples/sparse") {
        let loaded = Program::load(&program.path).unwrap_or_else(|e| panic!("{e}"));
        for entry in loaded.entries() {
            let name = format!("{} {}", program.name(), entry.name);
            let count = lines(&loaded, &entry.name).unwrap_or_else(|e| panic!("{name}: {e}"));
            longest = longest.max((count, name));
        }
    }
    assert!(longest.0 < MAX_LINES, "{} has {} lines", longest.1, longest.0);
    // (The count is not vacuous.)
    assert!(longest.0 > 40, "{} has only {} lines", longest.1, longest.0);
}

/// Formats of vectors.
const VECTORS: [&str; 11] = [
    "dense",
    "compressed",
    "hashed",
    "bytemap",
    "bitmap",
    "banded",
    "ragged",
    "blocklist",
    "runlength",
    "packbits",
    "point",
];

#[test]
fn kernels_of_all_pairs_of_vector_formats_are_short() {
    let pairs =
        VECTORS.iter().cartesian_product(VECTORS).cartesian_product(["a[j] * b[j]", "a[j] + b[j]"]).collect_vec();
    let counts = for_each(&pairs, |((a, b), value)| {
        let text = format!(
            "def kernel(a: f64[n] @ format({a}), b: f64[n] @ format({b})) -> f64:\n    s = 0.0\n    for j in range(n):\n        s += {value}\n    return s\n"
        );
        let program = Program::from_source("pair.ft", &text).unwrap_or_else(|e| panic!("{e}"));
        let name = format!("{value} of {a} and {b}");
        (lines(&program, "kernel").unwrap_or_else(|e| panic!("{name}: {e}")), name)
    });
    let long =
        counts.iter().filter(|(count, _)| *count >= MAX_LINES).map(|(c, n)| format!("{n}: {c} lines")).join("\n");
    assert!(long.is_empty(), "{long}");
}

/// Formats of matrices in which a stencil merges many lists, or traverses many runs.
const MATRICES: [&str; 6] = ["csr", "coo", "dcsr", "vbl", "rle", "packbits"];

/// Maximum number of lines of a stencil, and of its gradient.
const MAX_OF_A_STENCIL: usize = 1500;

#[test]
fn stencils_are_short() {
    let counts = for_each(&MATRICES, |format| {
        let text = format!(
            "def kernel(A: f64[n, n] @ {format}) -> f64[n, n]:\n    B = zeros((n, n), f64)\n    \
             for i in range(1, n - 1):\n        for j in range(1, n - 1):\n            \
             B[i, j] = A[i, j] * 4.0 - A[i - 1, j] - A[i + 1, j] - A[i, j - 1] - A[i, j + 1]\n    return B\n\n\n\
             dkernel = vjp(kernel)\n"
        );
        let program = Program::from_source("stencil.ft", &text).unwrap_or_else(|e| panic!("{e}"));
        let of = |entry: &str| lines(&program, entry).unwrap_or_else(|e| panic!("{entry} of {format}: {e}"));
        (of("kernel").max(of("dkernel")), *format)
    });
    let long = counts.iter().filter(|(count, _)| *count >= MAX_OF_A_STENCIL);
    let long = long.map(|(c, n)| format!("{n}: {c} lines")).join("\n");
    assert!(long.is_empty(), "{long}");
}
