//! Results that programs make, as arrays: read without a copy, passed on, and written to files, from which the same
//! elements are read.

use crate::storage::traversed;
use taffeta::ast::{Buffer, Value};
use taffeta::io::output::{Item, Target, write_all};
use taffeta::io::{Source, Want, read_stored};
use taffeta::{Options, Outputs, Program, Sparse};

fn copied(format: &str) -> Program {
    let text = format!(
        "def copied(A: f64[n, n] @ coo) -> f64[n, n] @ {format}:\n    B = zeros((n, n), f64)\n    for i in range(n):\n    \
         \x20   for j in range(n):\n            B[i, j] = A[i, j]\n    return B\n\n\ndef total(B: f64[n, n] @ {format}) -> f64:\n\
         \x20   s: f64 = 0.0\n    for i in range(n):\n        for j in range(n):\n            s += B[i, j]\n    return s\n"
    );
    Program::from_source("p.ft", &text).unwrap_or_else(|e| panic!("{format}: {e}"))
}

fn made(program: &Program, format: &str) -> Outputs {
    // In the lower triangle, or equal to its mirror image.
    let (at, values) = match format {
        "symmetric" => (vec![0, 0, 0, 2, 2, 0, 3, 3], vec![1.0, 2.0, 2.0, 4.0]),
        _ => (vec![0, 0, 2, 0, 2, 1, 3, 3], vec![1.0, 2.0, 3.0, 4.0]),
    };
    let a = Value::sparse(vec![4, 4], at, Buffer::F64(values), taffeta::ast::Literal::Float(0.0)).expect("in order");
    let options = Options::default().optimize(false);
    let function = program.compile("copied", &options).unwrap_or_else(|e| panic!("{format}: {e}"));
    function.call().value("A", &a).run().unwrap_or_else(|e| panic!("{format}: {e}"))
}

#[test]
fn results_in_every_format_are_read_passed_on_and_written() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for format in traversed() {
        let program = copied(format);
        let out = made(&program, format);
        let stored = out.stored("B").unwrap_or_else(|e| panic!("{format}: {e}"));
        let value = out.value("B").expect("it is small");
        let total = program.compile("total", &Options::default().optimize(false)).unwrap_or_else(|e| panic!("{e}"));
        let again = total.call().sparse("B", &Sparse::of(stored)).run().unwrap_or_else(|e| panic!("{format}: {e}"));
        let sum = if format == "symmetric" { 9.0 } else { 10.0 };
        assert_eq!(again.scalar::<f64>("s").expect("a number"), sum, "{format}");
        for ending in ["npz", "mtx", "tns", "npy"] {
            let path = folder.path().join(format!("b.{ending}"));
            let own = Some(stored.format().clone());
            let target = Target { name: "B".into(), path: path.clone(), format: own };
            write_all(&[(target, Item::Stored(stored))]).unwrap_or_else(|d| panic!("{format}: {d}"));
            let want = Want { fill: Some(taffeta::ast::Literal::Float(0.0)), ..Want::new("B", stored.dtype(), 2) };
            let found =
                read_stored(&Source::File { path, part: None }, &want).unwrap_or_else(|d| panic!("{format}: {d}"));
            let dense = |v: &Value| v.dense().expect("it is small").0;
            assert_eq!(dense(&found).numbers(), dense(value).numbers()[..found.shape().iter().product()], "{format}");
        }
    }
}

#[test]
fn other_results_have_no_arrays() {
    let program = copied("csc");
    let out = made(&program, "csc");
    let found = out.csr::<i32, f64>("B").expect_err("it is in csc").to_string();
    assert!(found.contains("is in `csc`") || found.contains("order=(1, 0)"), "{found}");
    let out = made(&copied("csr"), "csr");
    assert_eq!(out.csr::<i32, f64>("B").expect("it is in csr").indices, [0, 0, 1, 3]);
    let found = out.csr::<i64, f64>("B").expect_err("indices are i32").to_string();
    assert!(found.contains("with indices of i64"), "{found}");
    let dense = Program::from_source("q.ft", "def f(x: f64) -> f64:\n    return x\n").expect("a program");
    let out = dense.compile("f", &Options::default()).expect("it compiles").call().scalar("x", 1.0).run();
    let found = out.expect("it runs").stored("x").expect_err("it is dense").to_string();
    assert!(found.contains("has no arrays of its own"), "{found}");
}

/// Programs that write each element once, whatever order the source has; some in two passes, for which conditions are
/// evaluated again.
const ONCE: [&str; 4] = [
    "            B[i, j] = A[i, j]\n",
    "            if A[i, j] > 20.0:\n                B[i, j] = 2.0 * A[i, j]\n",
    "            B[n - 1 - j, i] += A[i, j]\n            s += A[i, j]\n",
    // The condition reads what is written beside the result: its writes are listed.
    "            s += A[i, j]\n            if s > 0.0:\n                B[i, j] = A[i, j]\n",
];

#[test]
fn elements_in_no_order_are_put_in_order() {
    let n: i32 = 23;
    // All elements of some rows, and every fifth one of the others, shuffled by a multiplication modulo a prime.
    let all = (0..n * n).map(|k| (k * 211) % (n * n)).filter(|k| k / n % 4 == 1 || k % 5 == 0);
    let mut at: Vec<(i32, i32)> = all.map(|k| (k / n, k % n)).collect();
    at.dedup();
    let values: Vec<f64> = at.iter().map(|(i, j)| f64::from(i * 3 + j + 1)).collect();
    let (rows, columns): (Vec<i32>, Vec<i32>) = at.iter().copied().unzip();
    let list = "format(compressed(unique=False, ordered=False), singleton(ordered=False))";
    for target in ["csr", "csc", "dcsr", "coo", "dia", "ell", "bcsr(2, 2)", "format(dense, bytemap)"] {
        for body in ONCE {
            let text = format!(
                "def f(A: f64[n, n] @ {list}) -> (f64[n, n] @ {target}, f64):\n    B = zeros((n, n), f64)\n    s: f64 = 0.0\n\
                 \x20   for i in range(n):\n        for j in range(n):\n{body}    return B, s\n"
            );
            let program = Program::from_source("p.ft", &text).unwrap_or_else(|e| panic!("{text}: {e}"));
            let options = Options::default().optimize(false).schedule(None);
            let function = program.compile("f", &options);
            let function = match function {
                Ok(function) => function,
                // A loop over a list without order does nothing but write elements and reduce.
                Err(e) if body == ONCE[3] && e.report().diagnostics[0].code == "lower::unsupported" => continue,
                Err(e) => panic!("{text}: {e}"),
            };
            let levels = [taffeta::ast::format::LevelKind::Compressed, taffeta::ast::format::LevelKind::Singleton];
            let ends = [0, at.len() as i32];
            let a = Sparse::new(&values, &[n as usize, n as usize])
                .level(levels[0], &[&ends, &rows])
                .level(levels[1], &[&columns]);
            let out = function.call().sparse("A", &a).run().unwrap_or_else(|e| panic!("{text}: {e}"));
            let mut expected = vec![0.0; (n * n) as usize];
            for ((i, j), v) in at.iter().zip(&values) {
                match body {
                    _ if body == ONCE[1] => {
                        if *v > 20.0 {
                            expected[(i * n + j) as usize] = 2.0 * v;
                        }
                    }
                    _ if body == ONCE[2] => expected[((n - 1 - j) * n + i) as usize] = *v,
                    _ => expected[(i * n + j) as usize] = *v,
                }
            }
            let found = out.value("B").expect("it is small").dense().expect("it is small").0;
            assert_eq!(found.numbers(), expected, "{text}");
            // The arrays are those of the elements in order.
            let stored = out.stored("B").expect("it is made");
            let (at, values) = stored.listed().expect("its elements are listed");
            let again =
                taffeta::structured::Stored::pack(stored.shape(), stored.format(), &at, &values).expect("it fits");
            for (a, b) in stored.arrays().iter().zip(again.arrays()) {
                assert_eq!(a.numbers(), b.numbers(), "{text}");
            }
        }
    }
}

#[test]
fn shapes_of_results_may_exceed_memory() {
    let text = "def f(A: f64[n, m] @ coo) -> (f64[n, m] @ dcsr, f64[m, n] @ dcsr):\n    B = zeros((n, m), f64)\n    \
                C = zeros((m, n), f64)\n    for i in range(n):\n        for j in range(m):\n            \
                B[i, j] = 2.0 * A[i, j]\n            C[j, i] = A[i, j]\n    return B, C\n";
    let program = Program::from_source("p.ft", text).expect("a program");
    let function = program.compile("f", &Options::default().optimize(false)).expect("it compiles");
    let n = 1_000_000_000_i32;
    let (rows, columns) = ([0, 7, n - 1], [n - 1, 3, 0]);
    let a = Sparse::coo(&[&rows, &columns], &[1.0, 2.0, 3.0], &[n as usize, n as usize]);
    let out = function.call().sparse("A", &a).run().expect("it runs");
    let numbers = |name: &str, k: usize| out.stored(name).expect("it is made").arrays()[k].numbers();
    // First rows, rows, first elements of rows, columns, values.
    assert_eq!((numbers("B", 1), numbers("B", 3)), (vec![0.0, 7.0, 999_999_999.0], vec![999_999_999.0, 3.0, 0.0]));
    assert_eq!((numbers("C", 1), numbers("C", 4)), (vec![0.0, 3.0, 999_999_999.0], vec![3.0, 2.0, 1.0]));
}

#[test]
fn places_without_elements_may_be_out_of_range() {
    let text = "def f(A: f64[n, n] @ csr) -> f64[n, n] @ ell:\n    B = zeros((n, n), f64)\n    for i in range(n):\n        \
                for j in range(n):\n            B[i + 2, j] = A[i, j]\n    return B\n";
    let program = Program::from_source("p.ft", text).expect("a program");
    let function = program.compile("f", &Options::default().optimize(false)).expect("it compiles");
    let run = |ends: [i32; 5], columns: &[i32]| {
        let values: Vec<f64> = columns.iter().map(|c| f64::from(*c) + 1.0).collect();
        function.call().sparse("A", &Sparse::csr(&ends, columns, &values, [4, 4])).run()
    };
    // The last two rows are empty.
    let out = run([0, 2, 3, 3, 3], &[0, 3, 1]).expect("it runs");
    let found = out.value("B").expect("it is small").dense().expect("it is small").0;
    assert_eq!(found.numbers()[8..], [1.0, 0.0, 0.0, 4.0, 0.0, 2.0, 0.0, 0.0]);
    let error = run([0, 2, 3, 4, 4], &[0, 3, 1, 2]).expect_err("row 4 does not exist").to_string();
    assert!(error.contains("run::index"), "{error}");
}
