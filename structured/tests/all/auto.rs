//! Automatic scheduling of programs with structured tensors: rules choose the steps that a person would, and preserve
//! the results.

use expect_test::expect;
use std::fmt::Write;
use std::sync::Arc;
use taffeta_analysis::pass::simplify;
use taffeta_ast::{Func, print};
use taffeta_schedule::Schedule;
use taffeta_schedule::auto::Target;
use taffeta_structured::lower;
use testkit::{lowers, programs};

use lowers::lowers;

/// Kernels with their names.
const KERNELS: &[(&str, &str)] = &[
    ("y = A x", "for i in range(n):\n        for j in range(m):\n            y[i] += A[i, j] * x[j]"),
    (
        "Y = A X",
        "for i in range(n):\n        for j in range(m):\n            for k in range(16):\n                Y[i, k] += A[i, j] * X[j, k]",
    ),
    (
        "sampled",
        "for i in range(n):\n        for j in range(m):\n            dot: f64 = 0.0\n            for k in range(16):\n                dot += Z[i, k] * X[j, k]\n            y[i] += A[i, j] * dot",
    ),
];

const FORMATS: &[&str] = &[
    "csr",
    "csc",
    "dcsr",
    "coo",
    "band",
    "vbl",
    "hashmap",
    "format(dense, bitmap)",
    "dia",
    "ell",
    "bcsr(2, 3)",
    "hicoo",
];

fn program(format: &str, kernel: &str) -> Func {
    programs::elaborate(&format!(
        "def f(A: f64[n, m] @ {format}, x: f64[m], X: f64[m, 16], Z: f64[n, 16]) -> (f64[n], f64[n, 16]):\n    y = zeros((n,), f64)\n    Y = zeros((n, 16), f64)\n    {kernel}\n    return y, Y\n"
    ))
}

fn scheduled(func: &Func) -> Schedule {
    let mut s = Schedule::new(func.clone()).lowered_by(lowers).aimed_at(Arc::new(Target::portable(2)));
    s.auto().expect("rules are not refused");
    s
}

#[test]
fn automatic_schedules_preserve_results() {
    for format in FORMATS {
        for (name, kernel) in KERNELS {
            let func = program(format, kernel);
            // Unordered lists cannot be searched: the kernel would need other loops.
            if *format == "hicoo" && *name == "sampled" {
                assert!(lower(&simplify::run(&func)).is_err());
                continue;
            }
            let s = scheduled(&func);
            let structured = lower(&simplify::run(s.func())).unwrap_or_else(|e| panic!("{format} {name}: {e:?}"));
            taffeta_ast::validate::dense(&structured.func).unwrap_or_else(|e| panic!("{format} {name}: {e}"));
            for seed in 0..6 {
                let same = std::panic::catch_unwind(|| programs::equal(&func, &structured, seed));
                assert!(same.is_ok(), "{format}, {name}\n{}\n{}", print::func(s.func()), print::func(&structured.func));
            }
        }
    }
}

#[test]
fn rules_follow_the_order_of_storage() {
    let mut said = String::new();
    for format in FORMATS {
        for (name, kernel) in KERNELS {
            writeln!(said, "{format}: {name}").expect("a string");
            for step in &scheduled(&program(format, kernel)).trace().steps {
                writeln!(said, "    {step}").expect("a string");
            }
        }
    }
    expect![[r#"
        csr: y = A x
            s.vectorize("j")
            s.parallelize("y.d0", above=16383)
            s.parallelize("Y.d0", above=2047)
            s.parallelize("i", schedule="positions")
        csr: Y = A X
            s.cache_reduction("j", "Y")
            s.vectorize("k")
            s.parallelize("y.d0", above=16383)
            s.parallelize("Y.d0", above=2047)
            s.parallelize("i", schedule="positions")
        csr: sampled
            s.vectorize("k")
            s.parallelize("y.d0", above=16383)
            s.parallelize("Y.d0", above=2047)
            s.parallelize("i", schedule="positions")
        csc: y = A x
            s.reorder(["j", "i"])
            s.vectorize("i")
            s.parallelize("y.d0", above=16383)
            s.parallelize("Y.d0", above=2047)
            s.parallelize("j", schedule="positions")
        csc: Y = A X
            s.reorder(["j", "i", "k"])
            s.parallelize("y.d0", above=16383)
            s.parallelize("Y.d0", above=2047)
            s.parallelize("j", schedule="positions")
        csc: sampled
            s.vectorize("k")
            s.parallelize("y.d0", above=16383)
            s.parallelize("Y.d0", above=2047)
            s.parallelize("i", above=63)
        dcsr: y = A x
            s.vectorize("j")
            s.parallelize("y.d0", above=16383)
            s.parallelize("Y.d0", above=2047)
            s.parallelize("i", schedule="positions")
        dcsr: Y = A X
            s.parallelize("y.d0", above=16383)
            s.parallelize("Y.d0", above=2047)
            s.parallelize("i", schedule="positions")
        dcsr: sampled
            s.vectorize("k")
            s.parallelize("y.d0", above=16383)
            s.parallelize("Y.d0", above=2047)
            s.parallelize("i", schedule="positions")
        coo: y = A x
            s.vectorize("j")
            s.parallelize("y.d0", above=16383)
            s.parallelize("Y.d0", above=2047)
        coo: Y = A X
            s.parallelize("y.d0", above=16383)
            s.parallelize("Y.d0", above=2047)
        coo: sampled
            s.vectorize("k")
            s.parallelize("y.d0", above=16383)
            s.parallelize("Y.d0", above=2047)
            s.parallelize("j", above=2047)
        band: y = A x
            s.vectorize("j")
            s.parallelize("y.d0", above=16383)
            s.parallelize("Y.d0", above=2047)
            s.parallelize("i", schedule="positions")
        band: Y = A X
            s.cache_reduction("j", "Y")
            s.vectorize("k")
            s.parallelize("y.d0", above=16383)
            s.parallelize("Y.d0", above=2047)
            s.parallelize("i", schedule="positions")
        band: sampled
            s.vectorize("k")
            s.parallelize("y.d0", above=16383)
            s.parallelize("Y.d0", above=2047)
            s.parallelize("i", schedule="positions")
        vbl: y = A x
            s.parallelize("y.d0", above=16383)
            s.parallelize("Y.d0", above=2047)
            s.parallelize("i", schedule="positions")
        vbl: Y = A X
            s.cache_reduction("j", "Y")
            s.vectorize("k")
            s.parallelize("y.d0", above=16383)
            s.parallelize("Y.d0", above=2047)
            s.parallelize("i", schedule="positions")
        vbl: sampled
            s.vectorize("k")
            s.parallelize("y.d0", above=16383)
            s.parallelize("Y.d0", above=2047)
            s.parallelize("i", schedule="positions")
        hashmap: y = A x
            s.vectorize("j")
            s.parallelize("y.d0", above=16383)
            s.parallelize("Y.d0", above=2047)
            s.parallelize("i", schedule="positions")
        hashmap: Y = A X
            s.parallelize("y.d0", above=16383)
            s.parallelize("Y.d0", above=2047)
            s.parallelize("i", schedule="positions")
        hashmap: sampled
            s.vectorize("k")
            s.parallelize("y.d0", above=16383)
            s.parallelize("Y.d0", above=2047)
            s.parallelize("i", schedule="positions")
        format(dense, bitmap): y = A x
            s.vectorize("j")
            s.parallelize("y.d0", above=16383)
            s.parallelize("Y.d0", above=2047)
            s.parallelize("i", above=255)
        format(dense, bitmap): Y = A X
            s.cache_reduction("j", "Y")
            s.vectorize("k")
            s.parallelize("y.d0", above=16383)
            s.parallelize("Y.d0", above=2047)
            s.parallelize("i", above=63)
        format(dense, bitmap): sampled
            s.vectorize("k")
            s.parallelize("y.d0", above=16383)
            s.parallelize("Y.d0", above=2047)
            s.parallelize("i", above=63)
        dia: y = A x
            s.split("i", 32768)
            s.permute(["i~i", "j"], lambda i0, i1: (-1 * i0 + i1, i0))
            s.parallelize("y.d0", above=16383)
            s.parallelize("Y.d0", above=2047)
            s.parallelize("i~o", above=1)
        dia: Y = A X
            s.split("i", 32768)
            s.permute(["i~i", "j"], lambda i0, i1: (-1 * i0 + i1, i0))
            s.parallelize("y.d0", above=16383)
            s.parallelize("Y.d0", above=2047)
            s.parallelize("i~o", above=1)
        dia: sampled
            s.vectorize("k")
            s.parallelize("y.d0", above=16383)
            s.parallelize("Y.d0", above=2047)
            s.parallelize("i", above=63)
        ell: y = A x
            s.vectorize("j")
            s.parallelize("y.d0", above=16383)
            s.parallelize("Y.d0", above=2047)
            s.parallelize("i", above=255)
        ell: Y = A X
            s.cache_reduction("j", "Y")
            s.vectorize("k")
            s.parallelize("y.d0", above=16383)
            s.parallelize("Y.d0", above=2047)
            s.parallelize("i", above=63)
        ell: sampled
            s.vectorize("k")
            s.parallelize("y.d0", above=16383)
            s.parallelize("Y.d0", above=2047)
            s.parallelize("i", above=63)
        bcsr(2, 3): y = A x
            s.split("i", 2)
            s.split("j", 3)
            s.reorder(["i~o", "j~o", "i~i", "j~i"])
            s.cache_reduction("j~o", "y")
            s.vectorize("j~i")
            s.parallelize("y.d0", above=8191)
            s.parallelize("Y.d0", above=1023)
            s.parallelize("i~o", schedule="positions")
        bcsr(2, 3): Y = A X
            s.split("i", 2)
            s.split("j", 3)
            s.reorder(["i~o", "j~o", "i~i", "j~i", "k"])
            s.cache_reduction("j~o", "Y")
            s.vectorize("k")
            s.parallelize("y.d0", above=8191)
            s.parallelize("Y.d0", above=1023)
            s.parallelize("i~o", schedule="positions")
        bcsr(2, 3): sampled
            s.vectorize("k")
            s.parallelize("y.d0", above=8191)
            s.parallelize("Y.d0", above=1023)
            s.parallelize("i", schedule="positions")
        hicoo: y = A x
            s.split("i", 128)
            s.split("j", 128)
            s.reorder(["i~o", "j~o", "i~i", "j~i"])
            s.vectorize("j~i")
            s.parallelize("y.d0", above=8191)
            s.parallelize("Y.d0", above=1023)
            s.parallelize("j~o", schedule="positions")
        hicoo: Y = A X
            s.split("i", 128)
            s.split("j", 128)
            s.reorder(["i~o", "j~o", "i~i", "j~i", "k"])
            s.vectorize("k")
            s.parallelize("y.d0", above=8191)
            s.parallelize("Y.d0", above=1023)
            s.parallelize("j~o", schedule="positions")
        hicoo: sampled
            s.vectorize("k")
            s.parallelize("y.d0", above=8191)
            s.parallelize("Y.d0", above=1023)
            s.parallelize("i", above=63)
    "#]]
    .assert_eq(&said);
}
