//! Conversions between formats: the arrays are those that packing the elements gives.

use crate::storage::FORMATS;
use taffeta::ast::format::Format;
use taffeta::ast::{Buffer, Literal};
use taffeta::structured::Stored;
use taffeta::{Options, Program, convert};

/// Returns a format of matrices by its text.
pub(crate) fn format(text: &str) -> Format {
    let program = Program::from_source("p.ft", &format!("def f(A: f64[n, n] @ {text}) -> i64:\n    return 0\n"));
    let func = program.and_then(|p| p.logical("f", &Options::default())).unwrap_or_else(|e| panic!("{text}: {e}"));
    Format { pattern: None, ..func.params[0].tensor.format.clone() }
}

/// Returns a matrix of elements that every format can hold: symmetric, or in the lower triangle.
fn elements(names: [&str; 2], n: i64) -> (Vec<i64>, Vec<f64>) {
    let mut all = Vec::new();
    for (i, j) in (0..n).flat_map(|i| (0..=i).map(move |j| (i, j))) {
        if (3 * i + 5 * j) % 4 == 0 || i == n / 2 {
            let value = [f64::NAN, f64::INFINITY, 1.5, 1.5, 2.0][((i + j) % 5) as usize];
            all.push((i, j, value));
            if i != j && names.contains(&"symmetric") {
                all.push((j, i, value));
            }
        }
    }
    all.sort_by_key(|(i, j, _)| (*i, *j));
    (all.iter().flat_map(|(i, j, _)| [*i, *j]).collect(), all.iter().map(|(_, _, v)| *v).collect())
}

fn same(a: &Stored, b: &Stored) -> bool {
    // Lists without order come in that of the source.
    let is_listed = |s: &Stored| s.format().is_listed_in_any_order();
    let sorted = |s: &Stored| if is_listed(s) { s.sorted().expect("it is small") } else { s.clone() };
    let [a, b] = [a, b].map(sorted);
    let bits = |s: &Stored| -> Vec<Vec<u64>> {
        s.arrays().iter().map(|v| v.numbers().into_iter().map(f64::to_bits).collect()).collect()
    };
    bits(&a) == bits(&b) && a.arrays().iter().zip(b.arrays()).all(|(a, b)| a.dtype() == b.dtype())
}

/// Checks pairs of formats: every source, and for each several targets.
#[test]
fn arrays_are_those_of_the_packed_elements() {
    let options = Options::default().optimize(false);
    for (k, source) in FORMATS.into_iter().enumerate() {
        for step in [1, 4, 9] {
            let target = FORMATS[(k + step) % FORMATS.len()];
            if [source, target].contains(&"symmetric") && [source, target].contains(&"lower_triangular") {
                continue;
            }
            let (indices, values) = elements([source, target], 7);
            let pack = |format: &Format| Stored::pack(&[7, 7], format, &indices, &Buffer::F64(values.clone()));
            let (from, to) = (format(source), format(target));
            let given = pack(&from).unwrap_or_else(|e| panic!("{source}: {e}"));
            let found = convert(&given, &to, &options).unwrap_or_else(|e| panic!("{source} to {target}: {e}"));
            let expected = pack(&to).unwrap_or_else(|e| panic!("{target}: {e}"));
            assert!(same(&found, &expected), "{source} to {target}:\n{found:?}\n{expected:?}");
        }
    }
}

/// Checks that the file of `hicoo` defines the format that the name stands for.
#[test]
fn the_file_of_hicoo_defines_it() {
    let (_, text) = taffeta::libop::format("hicoo").expect("the library has it");
    let text = text.replace("hicoo = ", "defined = ") + "\ndef f(A: f64[n, m] @ defined) -> i64:\n    return 0\n";
    let func = Program::from_source("p.ft", &text).and_then(|p| p.logical("f", &Options::default()));
    let func = func.unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(Format { pattern: None, ..func.params[0].tensor.format.clone() }, format("hicoo"));
}

#[test]
fn shapes_fills_and_empty_tensors() {
    let options = Options::default().optimize(false);
    for (shape, at) in [([3, 5], vec![0, 4, 2, 1]), ([0, 4], vec![]), ([4, 0], vec![]), ([1, 1], vec![0, 0])] {
        let values = Buffer::F64((0..at.len() / 2).map(|v| v as f64 - 1.0).collect());
        for fill in [None, Some(Literal::Float(f64::INFINITY))] {
            for [from, to] in [["csr", "csc"], ["coo", "dia"], ["dia", "ell"], ["ell", "rle"], ["rle", "bcsr(2, 3)"]] {
                let [source, target] = [from, to].map(|text| Format { fill, ..format(text) });
                let given = Stored::pack(&shape, &source, &at, &values).unwrap_or_else(|e| panic!("{from}: {e}"));
                // A format without a fill takes that of the source.
                let to_any = Format { fill: None, ..target.clone() };
                let found = convert(&given, &to_any, &options).unwrap_or_else(|e| panic!("{from} to {to}: {e}"));
                // What regions of the source hold beside the elements is left out, and so are explicit zeros there.
                let regions = ["dia", "rle"].contains(&from);
                let kept = (0..values.len()).filter(|k| !regions || values.get_f64(*k) != 0.0 || fill.is_some());
                let kept: Vec<usize> = kept.collect();
                let indices: Vec<i64> = kept.iter().flat_map(|k| [at[2 * k], at[2 * k + 1]]).collect();
                let elements = Buffer::F64(kept.iter().map(|k| values.get_f64(*k)).collect());
                let expected = Stored::pack(&shape, &target, &indices, &elements).expect("it fits");
                assert!(same(&found, &expected), "{shape:?} {from} to {to}:\n{found:?}\n{expected:?}");
            }
        }
    }
}

/// Checks that indices are i64 where a dimension has more than 2^31 coordinates.
#[test]
fn large_dimensions_have_large_indices() {
    let (options, size) = (Options::default().optimize(false), 3_000_000_000);
    let (at, values) = (vec![0, 0, 6, 2_999_999_998, 2_999_999_998, 4], Buffer::F64(vec![1.5, 2.0, -1.0]));
    let given = Stored::pack(&[size, size], &format("coo"), &at, &values).expect("it fits");
    for to in ["dcsr", "hicoo", "format(hashed, hashed)"] {
        let found = convert(&given, &format(to), &options).unwrap_or_else(|e| panic!("{to}: {e}"));
        let back = convert(&found, &format("coo"), &options).unwrap_or_else(|e| panic!("{to}: {e}"));
        let (mut indices, values) = back.listed().expect("it is small");
        indices.extend((0..values.len()).map(|k| (2.0 * values.get_f64(k)) as i64));
        assert_eq!(indices, [at.clone(), vec![3, 4, -2]].concat(), "{to}");
    }
}

#[test]
fn tensors_that_a_format_cannot_hold_are_refused() {
    let options = Options::default().optimize(false);
    let csr = format("csr");
    let given = |shape: [usize; 2], at: &[i64]| {
        let values = Buffer::F64((0..at.len() / 2).map(|v| v as f64 + 1.0).collect());
        Stored::pack(&shape, &csr, at, &values).expect("it fits")
    };
    let refused = |tensor: &Stored, to: &str| {
        let error = convert(tensor, &format(to), &options).expect_err(to);
        error.report().diagnostics[0].message.clone()
    };
    let found = refused(&given([3, 3], &[0, 1]), "lower_triangular");
    assert!(found.contains("cannot store the element of `B` at (0, 1): `triangular` stores nothing there"), "{found}");
    let found = refused(&given([3, 3], &[0, 1, 1, 0]), "symmetric");
    assert!(found.contains("stores one value for it and its mirror image, which differ"), "{found}");
    let found = refused(&given([2, 3], &[0, 1]), "symmetric");
    assert!(found.contains("it needs a square of dimensions 0 and 1, which have sizes 2 and 3"), "{found}");
    let found = refused(&given([2, 3], &[0, 1, 0, 2]), "format(dense, point)");
    assert!(found.contains("stores another one there"), "{found}");
}

/// Checks that the source is read as it is stored: all elements would take gigabytes.
#[test]
fn few_runs_of_a_large_matrix_are_converted() {
    let n = 30_000;
    let (rle, csr) = (format("rle"), format("csr"));
    let packed = |to: &Format| Stored::pack(&[n, n], to, &[5, 7, 5, 8, 29_999, 0], &Buffer::F64(vec![1.0, 1.0, 2.0]));
    let given = packed(&rle).expect("it fits");
    let found = convert(&given, &csr, &Options::default().optimize(false)).unwrap_or_else(|e| panic!("{e}"));
    assert!(same(&found, &packed(&csr).expect("it fits")), "{found:?}");
}

const CALLS: &str = r#"
def spmv(A: f64[n, m] @ csr, x: f64[m]) -> f64[n]:
    y = zeros((n,), f64)
    for i in range(n):
        for j in range(m):
            y[i] += A[i, j] * x[j]
    return y

def doubled(A: f64[n, m] @ csr) -> f64[n, m] @ csr:
    C = zeros((n, m), f64)
    for i in range(n):
        for j in range(m):
            C[i, j] = A[i, j] * 2.0
    return C

def argument(B: f64[n, n] @ csc, x: f64[n]) -> f64[n]:
    y = spmv(B, x)
    return y

def expression(B: f64[n, n] @ csr, x: f64[n]) -> f64[n]:
    y = spmv(B * 3.0, x)
    return y

def diagonals(B: f64[n, n] @ dia, x: f64[n]) -> f64[n]:
    y = spmv(B, x)
    return y

def narrow(B: f32[n, n] @ csr, x: f64[n]) -> f64[n]:
    y = spmv(B, x)
    return y

def result(B: f64[n, n] @ csr, x: f64[n]) -> f64[n, n] @ csc:
    y = doubled(B)
    return y

def parameter(B: f64[n, n] @ csc, x: f64[n]) -> f64[n, n] @ coo:
    return B

# None of these is converted.
def local(B: f64[n, n] @ csc, x: f64[n]) -> f64[n]:
    D: f64[n, n] @ csr = B
    y = D @ x
    return y

def passed(B: f64[n, n] @ csr, x: f64[n]) -> f64[n]:
    D = doubled(B)
    y = spmv(D, x)
    return y
"#;

#[test]
fn arguments_and_results_of_calls_are_converted_with_a_warning() {
    let program = Program::from_source("calls.ft", CALLS).unwrap_or_else(|e| panic!("{e}"));
    let found: Vec<_> = program.check().into_iter().filter(|d| d.code == "structured::convert").collect();
    let lines: Vec<(&str, &str)> = found.iter().map(|d| (d.code, d.message.as_str())).collect();
    let (rows, columns) = ("format(dense, compressed)", "format(dense, compressed, order=(1, 0))");
    let of = |what: &str, from: &str, to: &str| format!("{what} is converted from `{from}` to `{to}`");
    let all = [
        of("the argument for `A`", columns, rows),
        of("the argument for `A`", "format(dense, dense)", rows),
        of("the argument for `A`", &format("dia").to_string(), rows),
        of("the argument for `A`", rows, rows),
        of("the result `y`", rows, columns),
        of("the result `B`", columns, &format("coo").to_string()),
    ];
    assert_eq!(lines, all.iter().map(|text| ("structured::convert", text.as_str())).collect::<Vec<_>>());
    let at = vec![0, 0, 0, 2, 1, 1, 3, 0, 3, 3];
    let matrix = |values: Buffer| taffeta::ast::Value::sparse(vec![4, 4], at.clone(), values, Literal::Float(0.0));
    let wide = matrix(Buffer::F64(vec![1.0, f64::NAN, -0.0, 4.0, 5.5])).expect("in order");
    let narrow = matrix(Buffer::F32(vec![1.0, 2.0, 0.0, 4.0, 5.5])).expect("in order");
    let x = taffeta::ast::Value::new(vec![4], Buffer::F64(vec![1.0, 2.0, 3.0, -4.0])).expect("a vector");
    for e in program.entries().into_iter().filter(|e| e.params[0].name == "B") {
        let run = |backend: taffeta::Backend| {
            let function = program.compile(&e.name, &Options::default().optimize(false).backend(backend));
            let function = function.unwrap_or_else(|why| panic!("{}: {why}", e.name));
            let b = if e.name == "narrow" { &narrow } else { &wide };
            let out =
                function.call().value("B", b).value("x", &x).run().unwrap_or_else(|why| panic!("{}: {why}", e.name));
            let name = out.names().next().expect("a result").to_string();
            let value = out.value(&name).expect("it is small");
            let places = value.places().map(|p| p.indices.clone());
            std::format!("{:?} {places:?}", value.dense().expect("it is small").0.numbers())
        };
        assert_eq!(run(taffeta::Backend::C), run(taffeta::Backend::Interp), "{}", e.name);
    }
}
