//! Operators and functions of the library on structured operands: they give the format of the annotation, and the
//! elements that the same program gives on dense tensors.

use taffeta::ast::{Buffer, Literal, Value};
use taffeta::{Backend, Options, Program};

/// Expressions, with the shape of the result.
const EXPRESSIONS: [(&str, &str); 26] = [
    ("A @ B", "n, n"),
    ("matmul(A, transpose(B))", "n, n"),
    ("A + B", "n, n"),
    ("A - B", "n, n"),
    ("A + 2.0 * B", "n, n"),
    ("A * B", "n, n"),
    ("A * -3.0", "n, n"),
    ("A / 4.0", "n, n"),
    ("A ** 2", "n, n"),
    ("-A", "n, n"),
    ("abs(A)", "n, n"),
    ("relu(A)", "n, n"),
    ("A * x", "n, n"),
    ("transpose(A)", "n, n"),
    ("transpose(A) @ B", "n, n"),
    ("where(A > 0.5, A, 0.0)", "n, n"),
    ("max(A, B)", "n, n"),
    ("einsum(\"ik,kj->ij\", A, B)", "n, n"),
    ("einsum(\"ij,ij->ji\", A, B)", "n, n"),
    ("A", "n, n"),
    ("A @ x", "n"),
    ("x @ A", "n"),
    ("sum(A, axis=0)", "n"),
    ("max(A, axis=1)", "n"),
    ("mean(A, axis=1)", "n"),
    ("einsum(\"ij,i->j\", A, x)", "n"),
];

/// Formats of the two operands, and of the result.
const FORMATS: [[&str; 3]; 6] = [
    ["csr", "csr", "csr"],
    ["csc", "csr", "dcsr"],
    ["csr", "csc", "coo"],
    ["dia", "ell", "csc"],
    ["coo", "format(dense, bitmap)", "ell"],
    ["hashmap", "dcsr", "dia"],
];

fn matrix(n: i64, step: i64) -> Value {
    let at: Vec<[i64; 2]> = (0..n * n).filter(|k| (k * k + k) % step < 2).map(|k| [k / n, k % n]).collect();
    let values = (0..at.len()).map(|k| [1.5, -2.0, 0.25, 3.0, -0.5][k % 5]).collect();
    Value::sparse(vec![n as usize; 2], at.concat(), Buffer::F64(values), Literal::Float(0.0)).expect("in order")
}

/// Checks that a local tensor that a function makes has the storage of its annotation from the start: only the elements
/// of the product are stored.
#[test]
fn locals_made_by_operators_are_stored_as_annotated() {
    let program = Program::from_source(
        "p.ft",
        "
def product(A: f64[n, n] @ csr) -> f64[n, n] @ csr:
    T: f64[n, n] @ csr = A @ A
    return T


def by_columns(A: f64[n, n] @ csr) -> f64[n, n] @ csr:
    T: f64[n, n] @ csc = einsum(\"ij,jk->ik\", A, A)
    return T


def shifted(A: f64[n, n] @ csr) -> f64[n, n] @ csr:
    E: f64[n, n] @ csr = eye(n, dtype=f64)
    return E + A


def side_by_side(A: f64[n, n] @ csr) -> f64[n, 2 * n] @ csr:
    T: f64[n, 2 * n] @ csr = concat([A, A], axis=1)
    return T


def total(A: f64[n, n] @ csr) -> i64:
    T: f64[n, n] @ csr = A @ A
    found: i64 = 0
    for i in range(n):
        for j in range(n):
            if stored(T[i, j]):
                found += 1
    return found
",
    );
    let program = program.unwrap_or_else(|e| panic!("{e}"));
    let at = vec![0, 0, 1, 1, 2, 3];
    let a = Value::sparse(vec![4, 4], at, Buffer::F64(vec![1.0, 2.0, 3.0]), Literal::Float(0.0)).expect("in order");
    for (entry, count) in [("product", 2), ("by_columns", 2), ("shifted", 5), ("side_by_side", 6)] {
        let options = Options::default().optimize(false);
        let function = program.compile(entry, &options).unwrap_or_else(|e| panic!("{entry}: {e}"));
        let out = function.call().value("A", &a).run().unwrap_or_else(|e| panic!("{entry}: {e}"));
        let name = out.names().next().expect("a result");
        let stored = out.stored(name).unwrap_or_else(|e| panic!("{entry}: {e}"));
        assert_eq!(stored.elements().data().len(), count, "{entry}");
    }
    let function = program.compile("total", &Options::default().optimize(false)).unwrap_or_else(|e| panic!("{e}"));
    let out = function.call().value("A", &a).run().unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(out.scalar::<i64>("found").expect("a number"), 2);
}

#[test]
fn operators_take_structured_operands_and_give_the_annotated_format() {
    let (a, b) = (matrix(7, 9), matrix(7, 5));
    let x = Value::new(vec![7], Buffer::F64((0..7).map(|k| f64::from(k) - 2.5).collect())).expect("a vector");
    for (k, (expression, shape)) in EXPRESSIONS.into_iter().enumerate() {
        let entry = |[a, b, c]: [&str; 3]| {
            let uses = |name: &str| expression.split(|c: char| !c.is_alphanumeric()).any(|word| word == name);
            let params = [("A", format!("f64[n, n]{a}")), ("B", format!("f64[n, n]{b}")), ("x", "f64[n]".to_string())];
            let params: Vec<String> =
                params.iter().filter(|(name, _)| uses(name)).map(|(name, t)| format!("{name}: {t}")).collect();
            format!("def f({}) -> f64[{shape}]{c}:\n    return {expression}\n", params.join(", "))
        };
        let run = |text: &str, backend: Backend, values: [&Value; 2]| {
            let program = Program::from_source("p.ft", text).unwrap_or_else(|e| panic!("{text}{e}"));
            let function = program.compile("f", &Options::default().optimize(false).backend(backend));
            let function = function.unwrap_or_else(|e| panic!("{text}{e}"));
            let all = [("A", values[0]), ("B", values[1]), ("x", &x)];
            let given = all.into_iter().filter(|(name, _)| text.contains(&format!("{name}: ")));
            let call = given.fold(function.call(), |call, (name, v)| call.value(name, v));
            let out = call.run().unwrap_or_else(|e| panic!("{text}{e}"));
            let name = out.names().next().expect("a result").to_string();
            let stored = out.stored(&name).map(|s| s.format().to_string()).unwrap_or_default();
            (out.value(&name).expect("it is small").dense().expect("it is small").0.numbers(), stored)
        };
        let dense = [&a, &b].map(|v| {
            let (data, shape) = (v.dense().expect("it is small").0, v.shape().to_vec());
            Value::new(shape, data.data().clone()).expect("a matrix")
        });
        let (expected, _) = run(&entry([""; 3]), Backend::Interp, [&dense[0], &dense[1]]);
        let formats = FORMATS[k % FORMATS.len()];
        let result = if shape == "n" { String::new() } else { format!(" @ {}", formats[2]) };
        let text = entry([&format!(" @ {}", formats[0]), &format!(" @ {}", formats[1]), &result]);
        let (found, stored) = run(&text, Backend::C, [&a, &b]);
        let near = |a: &f64, b: &f64| (a - b).abs() <= 1e-12 * a.abs().max(1.0);
        assert!(found.iter().zip(&expected).all(|(a, b)| near(a, b)), "{text}{found:?}\n{expected:?}");
        assert_eq!(stored.is_empty(), shape == "n", "{text}");
    }
}
