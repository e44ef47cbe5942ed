//! Gradients of structured parameters in C, on the parameters' index arrays: they match the interpreter's, in one pass
//! and in two, from packed and from borrowed arrays.

use crate::storage::traversed;
use taffeta::{Backend, Gradient, Options, Pair, Program, Residuals, Sparse};
use taffeta_ast::{Buffer, DType, Literal, Value};

const PRODUCTS: &str = "
def spmv(A: f64[n, n] @ FORMAT, x: f64[n]) -> f64[n]:
    y = zeros((n,), f64)
    for i in range(n):
        for j in range(n):
            y[i] += A[i, j] * x[j]
    return y

def squares(A: f64[n, n] @ FORMAT, x: f64[n]) -> f64:
    s: f64 = 0.0
    for i in range(n):
        for j in range(n):
            s += A[i, j] * A[i, j] * x[j]
    return s
";

/// Formats with another index type, and with blocks that do not divide the matrix.
const OPTIONS: [&str; 3] = ["format(dense, compressed(index=u8))", "bcsr(2, 3)", "bcsr(1, 4)"];

fn formats() -> impl Iterator<Item = &'static str> {
    traversed().chain(OPTIONS)
}

fn program(format: &str) -> Program {
    Program::from_source("p.ft", &PRODUCTS.replace("FORMAT", format)).unwrap_or_else(|e| panic!("{e}"))
}

/// Makes a matrix that every format can hold: symmetric or triangular, and banded; with an explicit 0, which lists
/// store.
fn matrix(format: &str) -> Value {
    let n = 7;
    let element = |i: usize, j: usize| match (i, j) {
        _ if format == "lower_triangular" && j > i => 0.0,
        _ if i == 4 || j == 4 || i.abs_diff(j) > 2 => 0.0,
        _ => (1 + i.min(j)) as f64 - 3.0,
    };
    let (mut indices, mut elements) = (Vec::new(), Vec::new());
    for (i, j) in (0..n).flat_map(|i| (0..n).map(move |j| (i, j))) {
        if element(i, j) != 0.0 || i == j && i != 4 {
            indices.extend([i as i64, j as i64]);
            elements.push(element(i, j));
        }
    }
    Value::sparse(vec![n; 2], indices, Buffer::F64(elements), Literal::Float(0.0)).expect("it is in order")
}

fn vector(from: f64) -> Value {
    Value::new(vec![7], Buffer::F64((0..7).map(|k| from - k as f64).collect())).expect("it fits")
}

fn options(backend: Backend) -> Options {
    Options::default().backend(backend).optimize(false).gradient(Gradient::default().wrt(["A"]))
}

#[test]
fn gradients_in_c_agree_with_the_interpreter() {
    for (k, format) in formats().enumerate() {
        let (program, a, x) = (program(format), matrix(format), vector(2.5));
        let seeds = [("spmv", vector(-1.5)), ("squares", Value::scalar(Buffer::F64(vec![2.0])).expect("a number"))];
        // The entries take turns.
        for (entry, seed) in seeds.into_iter().skip(k % 2).step_by(2) {
            let of = |backend: Backend| {
                let function = program.compile(entry, &options(backend)).unwrap_or_else(|e| panic!("{format}: {e}"));
                let name = function.signature().params().last().expect("a seed").name.clone();
                let call = function.call().value("A", &a).value("x", &x).value(&name, &seed);
                let outputs = call.run().unwrap_or_else(|e| panic!("{format}: {e}"));
                outputs.value("A.grad").expect("a gradient").clone()
            };
            let (c, interpreted) = (of(Backend::C), of(Backend::Interp));
            assert_eq!(c, interpreted, "{entry}, {format}");
            assert!(c.places().is_some_and(|p| p.indices.len() > 20), "{entry}, {format}: {c}");
        }
    }
}

fn backward(pair: &Pair, tape: &Residuals<'_>, seed: &Value) -> Value {
    let gradients = pair.backward(tape).seed_value("y", seed).run().unwrap_or_else(|e| panic!("{e}"));
    gradients.value("A.grad").expect("a gradient").clone()
}

/// Checks in every fourth format that the two passes share their arguments, and that an owned tape has copies of them.
#[test]
fn gradients_in_two_passes() {
    for format in formats().step_by(4) {
        let (program, a, x, seed) = (program(format), matrix(format), vector(2.5), vector(-1.5));
        let both = program.compile("spmv", &options(Backend::C)).unwrap_or_else(|e| panic!("{format}: {e}"));
        let both = both.call().value("A", &a).value("x", &x).value("y.grad", &seed).run().expect("it runs");
        let pair = program.differentiate("spmv", &options(Backend::C)).unwrap_or_else(|e| panic!("{format}: {e}"));
        let (y, tape) = pair.forward().value("A", &a).value("x", &x).run().unwrap_or_else(|e| panic!("{format}: {e}"));
        assert_eq!(y.value("y").expect("a result"), both.value("y").expect("a result"));
        let expected = both.value("A.grad").expect("a gradient");
        assert_eq!(&backward(&pair, &tape, &seed), expected, "{format}");
        let bytes = tape.bytes();
        let own = tape.into_owned();
        assert!(own.bytes() > bytes);
        assert_eq!(&backward(&pair, &own, &seed), expected, "{format}");
    }
}

#[test]
fn gradients_of_borrowed_arrays() {
    let program = program("csr");
    let (indptr, indices, values) = ([0u16, 2, 2, 3], [0u16, 2, 1], [1.0, 2.0, f64::INFINITY]);
    let a = Sparse::csr(&indptr, &indices, &values, [3, 3]);
    let (x, seed) = ([1.0, 10.0, 100.0], [1.0, 2.0, f64::NAN]);
    let [x, seed] = [x, seed].map(|v| Value::new(vec![3], Buffer::F64(v.to_vec())).expect("it fits"));
    let options = options(Backend::C).index("A", DType::U16);
    let expected =
        Value::sparse(vec![3; 2], vec![0, 0, 0, 2, 2, 1], Buffer::F64(vec![1.0, 100.0, f64::NAN]), Literal::Float(0.0));
    let expected = expected.expect("it is in order").to_string();
    let both = program.compile("spmv", &options).unwrap_or_else(|e| panic!("{e}"));
    let outputs = both.call().sparse("A", &a).value("x", &x).value("y.grad", &seed).run();
    assert_eq!(outputs.unwrap_or_else(|e| panic!("{e}")).value("A.grad").expect("a gradient").to_string(), expected);

    let pair = program.differentiate("spmv", &options).unwrap_or_else(|e| panic!("{e}"));
    let (_, tape) = pair.forward().sparse("A", &a).value("x", &x).run().unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(backward(&pair, &tape, &seed).to_string(), expected);
    assert_eq!(backward(&pair, &tape.into_owned(), &seed).to_string(), expected);
}

/// Checks that the gradient takes the time and the memory of the stored elements, and that its loop is the program's:
/// one cursor for both. Without a schedule: rules fuse the loop with that of the product, and share out its rows.
#[test]
fn gradients_have_handwritten_loops() {
    let source =
        program("csr").c_source("spmv", &options(Backend::C).schedule("none")).unwrap_or_else(|e| panic!("{e}"));
    let lines: Vec<&str> = source.code.lines().map(str::trim).filter(|l| !l.starts_with("/*")).collect();
    let written = lines.iter().position(|l| l.starts_with("A_grad_val[")).expect("the gradient");
    assert_eq!(
        lines[written - 1..=written],
        [
            "for (int64_t j_b_p = (int64_t)A_pos1[i_b]; j_b_p < j_b_p_end; j_b_p++) {",
            "A_grad_val[j_b_p] = y_grad[i_b] * x[(int64_t)A_crd1[j_b_p]];"
        ],
        "{}",
        source.code
    );
    assert!(!source.code.contains("while"), "{}", source.code);
}

/// Checks that a vectorised loop in which lowering puts a search runs without vectors, and does not fail: rules choose
/// before structured tensors become arrays.
#[test]
fn automatic_schedules_never_fail() {
    for format in formats() {
        let program = program(format);
        for entry in ["spmv", "squares"] {
            let automatic = options(Backend::C).schedule("auto");
            program.c_source(entry, &automatic).unwrap_or_else(|e| panic!("{format} {entry}: {e}"));
        }
    }
}
