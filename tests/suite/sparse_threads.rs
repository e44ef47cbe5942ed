//! Structured programs under parallel schedules, in every format: on 1, 2 and 7 threads they match the interpreter
//! without a schedule, bit for bit unless a sum is taken in another order.

use crate::programs::for_each;
use crate::storage::{shares_values, traversed};
use expect_test::expect;
use itertools::Itertools as _;
use std::collections::BTreeMap;
use taffeta::{Options, Program, Timings, pipeline};
use taffeta_ast::interp::{Inputs, run};
use taffeta_ast::{Buffer, Expr, ExprKind, Func, Value};
use taffeta_codegen::call::Context;
use taffeta_codegen::toolchain::CompileOptions;
use taffeta_structured::Stored;
use testkit::batch;

const PROGRAMS: &str = r#"
def rows(A: f64[n, n] @ FORMAT, x: f64[n]) -> f64[n]:
    y = zeros((n,), f64)
    for i in range(n):
        for j in range(n):
            y[i] += A[i, j] * x[j]
    return y

@schedule(rows)
def rows_at_once(s):
    s.parallelize("i")

@schedule(rows)
def rows_by_positions(s):
    s.parallelize("i", schedule="positions", chunk=3)

@schedule(rows)
def columns_by_positions(s):
    s.reorder(["j", "i"])
    s.parallelize("j", schedule="positions", chunk=2)

@schedule(rows)
def chunks(s):
    o, i = s.split("i", 5)
    s.parallelize(o)

@schedule(rows)
def columns(s):
    s.reorder(["j", "i"])
    s.parallelize("j")

@schedule(rows)
def within_rows(s):
    s.parallelize("j")

@schedule(rows)
def vectors(s):
    s.parallelize("i")
    s.vectorize("j")

def total(A: f64[n, n] @ FORMAT, x: f64[n]) -> f64:
    s = 0.0
    for i in range(n):
        for j in range(n):
            s += A[i, j] * x[i] * x[j]
    return s

@schedule(total)
def one_sum(s):
    s.parallelize("i")

def wide(A: f64[n, n] @ FORMAT, X: f64[n, k]) -> f64[n, k]:
    Y = zeros((n, k), f64)
    for i in range(n):
        for j in range(n):
            for l in range(k):
                Y[i, l] += A[i, j] * X[j, l]
    return Y

@schedule(wide)
def wide_rows(s):
    s.parallelize("i")
    s.vectorize("l")

@schedule(wide)
def wide_by_positions(s):
    s.parallelize("i", schedule="positions", chunk=4, above=1)
    s.vectorize("l")

@schedule(wide)
def wide_columns(s):
    s.reorder(["j", "i", "l"])
    s.parallelize("j")

def sampled(A: f64[n, n] @ FORMAT, x: f64[n], z: f64[n]) -> f64[n, n] @ pattern(A):
    B = zeros((n, n), f64)
    for i in range(n):
        for j in range(n):
            B[i, j] += A[i, j] * x[i] * z[j]
    return B

@schedule(sampled)
def sampled_rows(s):
    s.parallelize("i")

@schedule(sampled)
def sampled_chunks(s):
    o, i = s.split("i", 4)
    s.parallelize(o)

def common(A: f64[n, n] @ FORMAT, B: f64[n, n] @ csr, x: f64[n]) -> f64[n]:
    y = zeros((n,), f64)
    for i in range(n):
        for j in range(n):
            y[i] += A[i, j] * B[i, j] * x[j]
    return y

@schedule(common)
def common_rows(s):
    s.parallelize("i")

def squares(A: f64[n, n] @ FORMAT, x: f64[n]) -> f64[n]:
    y = zeros((n,), f64)
    for i in range(n):
        for j in range(n):
            y[i] += A[i, j] * A[i, j] * x[j]
    return y

of_matrix = vjp(squares, wrt=["A"])

@schedule(of_matrix)
def back_rows(s):
    s.parallelize("i~b")

of_vector = vjp(squares, wrt=["x"])

@schedule(of_vector)
def back_columns(s):
    s.parallelize("i~b")

tangents = jvp(squares, wrt=["A"])

@schedule(tangents)
def forward_rows(s):
    s.parallelize("i")
"#;

/// Entries, each with a schedule, and whether it distributes sums: partial sums of threads are added up at the end, or
/// in the order in which they come.
const SCHEDULES: [(&str, &str, bool); 18] = [
    ("rows", "rows_at_once", false),
    ("rows", "rows_by_positions", false),
    ("rows", "columns_by_positions", true),
    ("rows", "chunks", false),
    ("rows", "columns", true),
    ("rows", "within_rows", true),
    ("rows", "vectors", true),
    ("total", "one_sum", true),
    ("wide", "wide_rows", false),
    ("wide", "wide_by_positions", false),
    ("wide", "wide_columns", true),
    ("sampled", "sampled_rows", false),
    ("sampled", "sampled_chunks", false),
    ("common", "common_rows", false),
    ("of_matrix", "back_rows", false),
    ("of_vector", "back_columns", true),
    ("tangents", "forward_rows", false),
    ("squares", "auto", true),
];

/// Size of the dimensions: no multiple of the threads or of the blocks.
const N: usize = 23;

/// Returns the elements of a matrix that every format can hold: symmetric or triangular, some rows empty, values in
/// runs.
fn elements(format: &str) -> (Vec<i64>, Vec<f64>) {
    let element = |i: usize, j: usize| match (i, j) {
        _ if format == "lower_triangular" && j > i => 0.0,
        _ if i == 4 || j == 4 || i.abs_diff(j) > 6 || (i + j).is_multiple_of(5) => 0.0,
        _ => 0.1 * (1 + i.min(j) / 3) as f64 - 0.37,
    };
    let (mut indices, mut elements) = (Vec::new(), Vec::new());
    for (i, j) in (0..N).cartesian_product(0..N) {
        if element(i, j) != 0.0 {
            indices.extend([i as i64, j as i64]);
            elements.push(element(i, j));
        }
    }
    (indices, elements)
}

/// Makes numbers that look random, with digits that sums round.
fn numbers(count: usize, from: f64) -> Buffer {
    Buffer::F64((0..count).map(|k| ((k as f64 + from) * 12.9898).sin() / 3.0).collect())
}

/// Inputs of a program, for the interpreter and for C, and the tensor in whose pattern structured results are stored.
struct Given {
    inputs: Inputs,
    flat: Vec<Value>,
    hidden: Vec<i64>,
    stored: Stored,
}

fn given(func: &Func, format: &str) -> Given {
    let (mut params, mut flat, mut hidden) = (Vec::new(), Vec::new(), Vec::new());
    let mut patterns: Vec<(_, Stored)> = Vec::new();
    for (k, p) in func.params.iter().enumerate() {
        let size = |e: &Expr| match e.kind() {
            ExprKind::Var(s) if s.name() == "k" => 9,
            _ => N,
        };
        let shape: Vec<usize> = p.tensor.shape.iter().map(size).collect();
        let (own, count) = (&p.tensor.format, shape.iter().product());
        if own.is_dense() {
            let value = Value::new(shape, numbers(count, k as f64)).expect("it fits");
            params.push(value.clone());
            flat.push(value);
        } else if let Some((_, of)) = patterns.iter().find(|(pattern, _)| *pattern == own.pattern) {
            let count = of.arrays().last().map_or(0, |v| v.data().len());
            let values = Value::new(vec![count], numbers(count, k as f64)).expect("it fits");
            params.push(of.clone().followed_by(own.clone(), values.clone()).elements());
            flat.push(values);
        } else {
            let (indices, values) = elements(if p.tensor.symbol.name() == "A" { format } else { "csr" });
            let stored = Stored::pack(&shape, own, &indices, &Buffer::F64(values)).expect("it can hold them");
            params.push(stored.elements());
            flat.extend(stored.arrays().iter().cloned());
            hidden.extend(stored.hidden());
            patterns.push((own.pattern, stored));
        }
    }
    let sizes = func.sizes.iter().map(|s| (s.name().to_string(), if s.name() == "k" { 9 } else { N as i64 })).collect();
    let stored = patterns.into_iter().next().expect("a structured one").1;
    Given { inputs: Inputs { sizes, params }, flat, hidden, stored }
}

/// Returns the first difference that exceeds `most` times the largest element.
fn difference(expected: &[f64], found: &[f64], most: f64) -> Option<String> {
    let scale = expected.iter().fold(1e-300, |m: f64, v| m.max(v.abs()));
    let far = |(a, b): &(&f64, &f64)| (*a - *b).abs() > most * scale || a.is_nan() != b.is_nan();
    let (a, b) = expected.iter().zip_eq(found).find(far)?;
    Some(format!("{b} is not {a}"))
}

/// Compares the schedules that a format's programs accept; returns their number, and the reasons of refusals.
fn compared(format: &str) -> (usize, Vec<(String, String)>) {
    let program = Program::from_source("p.ft", &PROGRAMS.replace("FORMAT", format)).unwrap_or_else(|e| panic!("{e}"));
    let (mut taken, mut sources, mut refused) = (Vec::new(), Vec::new(), Vec::new());
    for (k, (entry, schedule, sums)) in SCHEDULES.into_iter().enumerate() {
        // Elements of the result would share a value, and they differ.
        if entry == "sampled" && shares_values(format) {
            continue;
        }
        let options = Options::default();
        let scheduled = program.logical(entry, &options.clone().schedule(schedule)).map_err(|e| e.to_string());
        let lowered = scheduled.and_then(|func| {
            let named = Func { name: format!("case_{k}"), ..func };
            pipeline::lowered(&named, &options, &mut Timings::default()).map_err(|d| d.to_string())
        });
        match lowered {
            Ok(lowered) => sources.push(pipeline::c(&lowered, program.sources(), &mut Timings::default())),
            Err(text) => {
                let first = text.lines().next().unwrap_or_default();
                refused.push((format!("{schedule}: {}", first.split("]: ").last().unwrap_or_default()), format.into()));
                continue;
            }
        }
        taken.push((entry, schedule, sums));
    }
    let dir = tempfile::tempdir().expect("a temporary directory");
    let options = CompileOptions { optimize: false, ..CompileOptions::default() };
    let compiled = batch::compile(&sources, dir.path(), &options).unwrap_or_else(|e| panic!("{e}"));
    for ((entry, schedule, sums), compiled) in taken.iter().zip_eq(&compiled) {
        let name = format!("{entry} by {schedule}, {format}");
        let func = program.logical(entry, &Options::default().schedule(None)).unwrap_or_else(|e| panic!("{name}: {e}"));
        let given = given(&func, format);
        let expected = run(&func, &given.inputs).unwrap_or_else(|e| panic!("{name}: {e}")).results;
        let mut hidden = given.hidden.iter().copied();
        let names = compiled.signature().sizes.iter().map(|s| s.name.clone()).collect_vec();
        let mut size = |n: &String| given.inputs.sizes.get(n).copied().or_else(|| hidden.next()).expect("a size");
        let sizes = names.iter().map(|n| (n.as_str(), size(n))).collect_vec();
        let mut first: Option<Vec<Vec<f64>>> = None;
        for threads in [1, 2, 7, 7] {
            let mut params = given.flat.clone();
            let called = compiled.call_values(&mut Context::new(threads), &mut params, &sizes);
            let (results, _) = called.unwrap_or_else(|e| panic!("{name}, {threads} threads: {e:?}"));
            let found = results.iter().zip_eq(&func.results).map(|(v, t)| match t.format.is_dense() {
                true => v.numbers(),
                false => given.stored.clone().followed_by(t.format.clone(), v.clone()).elements().numbers(),
            });
            let found = found.collect_vec();
            for (expected, found) in expected.iter().zip_eq(&found) {
                let wrong = difference(&expected.numbers(), found, 1e-12);
                assert!(wrong.is_none(), "{name}, {threads} threads: {}", wrong.unwrap_or_default());
            }
            let first = first.get_or_insert_with(|| found.clone());
            let exact = !sums && func.results.iter().all(|t| t.format.is_injective());
            assert!(!exact || *first == found, "{name}: {threads} threads round differently from one");
        }
    }
    (taken.len(), refused)
}

#[test]
fn results_agree_on_all_numbers_of_threads() {
    let formats = traversed().chain(["bcsr(2, 3)"]).collect_vec();
    let (counts, refused): (Vec<usize>, Vec<_>) = for_each(&formats, |f| compared(f)).into_iter().unzip();
    // Formats that do not take a schedule, by reason.
    let mut reasons: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (why, format) in refused.into_iter().flatten() {
        reasons.entry(why).or_default().push(format);
    }
    let shown = reasons.iter().map(|(why, formats)| format!("{why}\n    {}\n", formats.join(", "))).join("");
    expect![[r#"
        back_columns: schedule::unsupported
            coo
        back_rows: schedule::unsupported
            coo
        common_rows: schedule::unsupported
            coo
        forward_rows: schedule::unsupported
            coo
        one_sum: schedule::unsupported
            coo
        rows_at_once: schedule::unsupported
            coo
        rows_by_positions: schedule::unsupported
            coo
        sampled_rows: schedule::unsupported
            coo
        vectors: schedule::unsupported
            csc, coo, vbl, rle, packbits
        wide_by_positions: schedule::unsupported
            coo
        wide_rows: schedule::unsupported
            coo
        within_rows: schedule::unsupported
            vbl, rle, packbits
    "#]]
    .assert_eq(&shown);
    assert!(counts.iter().sum::<usize>() > 200, "{counts:?}");
}
