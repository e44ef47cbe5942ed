//! Gradients of structured parameters against central differences: each value that a parameter stores is moved alone,
//! and its derivative by compiled C must match the change of the interpreter's results.

use itertools::Itertools as _;
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeMap;
use taffeta::{Backend, Function, Gradient, Options, Program};
use taffeta_ast::format::{Format, LevelKind};
use taffeta_ast::{Buffer, Expr, ExprKind, Literal, Tensor, Value};

/// Kernel in which `words` stand for formats; each row of `formats` replaces them.
struct Kernel {
    name: &'static str,
    text: &'static str,
    words: &'static [&'static str],
    formats: &'static [&'static [&'static str]],
}

const KERNELS: &[Kernel] = &[
    Kernel {
        name: "a matrix and a vector",
        text: "
def f(A: f64[n, n] @ FORMAT, x: f64[n]) -> f64[n]:
    y = zeros((n,), f64)
    for i in range(n):
        for j in range(n):
            y[i] += A[i, j] * x[j]
    return y
",
        words: &["FORMAT"],
        formats: &[&["csr"], &["csc"], &["coo"], &["symmetric"], &["rle"], &["band"], &["format(dense, bitmap)"]],
    },
    Kernel {
        name: "a sampled product of matrices",
        text: "
def f(A: f64[n, n] @ FORMAT, x: f64[n, k], y: f64[n, k]) -> f64[n]:
    r = zeros((n,), f64)
    for i in range(n):
        for j in range(n):
            for l in range(k):
                r[i] += A[i, j] * A[i, j] * x[i, l] * y[j, l]
    return r
",
        words: &["FORMAT"],
        formats: &[&["coo"], &["csr"], &["dcsr"], &["vbl"], &["lower_triangular"]],
    },
    Kernel {
        name: "two sparse vectors",
        text: "
def f(A: f64[n] @ LEFT, B: f64[n] @ RIGHT) -> f64:
    s: f64 = 0.0
    for i in range(n):
        s += A[i] * B[i] * B[i]
    return s
",
        words: &["LEFT", "RIGHT"],
        formats: &[
            &["format(compressed)", "format(compressed)"],
            &["format(compressed)", "format(blocklist)"],
            &["format(runlength)", "format(bytemap)"],
            &["format(banded)", "format(packbits)"],
        ],
    },
    Kernel {
        name: "the distance of two sparse matrices",
        text: "
def f(A: f64[n, n] @ LEFT, B: f64[n, n] @ RIGHT) -> f64[n]:
    d = zeros((n,), f64)
    for i in range(n):
        s: f64 = 0.0
        for j in range(n):
            s += (A[i, j] - B[i, j]) * (A[i, j] - B[i, j])
        d[i] = sqrt(s + 1.0)
    return d
",
        words: &["LEFT", "RIGHT"],
        formats: &[&["csr", "csr"], &["csr", "vbl"], &["dcsr", "band"]],
    },
    Kernel {
        name: "functions of elements",
        text: "
def f(A: f64[n, n] @ FORMAT, x: f64[n]) -> (f64[n], f64):
    y = zeros((n,), f64)
    s: f64 = 0.0
    for i in range(n):
        for j in range(n):
            y[i] += A[i, j] * exp(A[i, j] * x[j]) + sqrt(A[i, j] * A[i, j] + 1.0) * A[i, j]
            if A[i, j] > 1.0:
                s += sin(A[i, j]) / (2.0 + A[i, j])
    return y, s
",
        words: &["FORMAT"],
        formats: &[&["csr"], &["coo"], &["band"], &["format(dense, hashed)"]],
    },
    Kernel {
        name: "two steps",
        text: "
def f(A: f64[n, n] @ FORMAT, x: f64[n]) -> f64[n]:
    y = zeros((n,), f64)
    for i in range(n):
        for j in range(n):
            y[i] += A[i, j] * x[j]
    y = tanh(y)
    z = zeros((n,), f64)
    for i in range(n):
        for j in range(n):
            z[i] += A[i, j] * y[j]
    return z
",
        words: &["FORMAT"],
        formats: &[&["csr"], &["dcsr"], &["vbl"]],
    },
    Kernel {
        name: "a product of three",
        text: "
def f(A: f64[n, m, k] @ FORMAT, x: f64[m, r], y: f64[k, r]) -> f64[n, r]:
    z = zeros((n, r), f64)
    for i in range(n):
        for j in range(m):
            for l in range(k):
                for c in range(r):
                    z[i, c] += A[i, j, l] * x[j, c] * y[l, c]
    return z
",
        words: &["FORMAT"],
        formats: &[&["csf"], &["coo"], &["format(dense, compressed, blocklist)"]],
    },
    Kernel {
        name: "weights of rows that sum to one",
        text: "
def f(A: f64[n, n] @ FORMAT, x: f64[n]) -> f64[n]:
    W: f64[n, n] @ pattern(A) = zeros((n, n), f64)
    sums = zeros((n,), f64)
    for i in range(n):
        for j in range(n):
            W[i, j] = A[i, j] * A[i, j]
            sums[i] += W[i, j]
    y = zeros((n,), f64)
    for i in range(n):
        for j in range(n):
            y[i] += W[i, j] / (1.0 + sums[i]) * x[j]
    return y
",
        words: &["FORMAT"],
        formats: &[&["csr"], &["csc"]],
    },
    Kernel {
        name: "the shortest step",
        text: "
def f(A: f64[n, n] @ format(dense, compressed, fill=inf), x: f64[n]) -> f64[n]:
    y = x * 3.0
    for i in range(n):
        for j in range(n):
            y[i] = min(y[i], A[i, j] + x[j])
    return y
",
        words: &[],
        formats: &[&[]],
    },
    Kernel {
        name: "elements at random",
        text: "
def f(A: f64[n, n] @ FORMAT, x: f64[n]) -> f64:
    s: f64 = 0.0
    for i in range(n):
        s += A[i, (3 * i + 1) % n] * A[i, n - 1 - i] * x[i] + A[i, i] * A[i, i]
    return s
",
        words: &["FORMAT"],
        formats: &[&["csr"], &["format(dense, hashed)"]],
    },
];

/// Step of differences: their truncation error is of the order of its square, their rounding error 1e-16 divided by it.
const STEP: f64 = 1e-5;
const TOLERANCE: f64 = 1e-6;

type Values = BTreeMap<String, Value>;

fn run(function: &Function, inputs: &Values) -> Values {
    let call = inputs.iter().fold(function.call(), |call, (name, value)| call.value(name, value));
    let outputs = call.run().unwrap_or_else(|e| panic!("{e}"));
    outputs.names().map(|n| (n.to_string(), outputs.value(n).expect("it has that name").clone())).collect()
}

fn shape(tensor: &Tensor) -> Vec<usize> {
    let size = |e: &Expr| match e.kind() {
        ExprKind::Var(s) => ["r", "k", "m", "n"].iter().position(|n| *n == s.name()).expect("a size") + 3,
        _ => panic!("a size"),
    };
    tensor.shape.iter().map(size).collect()
}

fn dense(shape: Vec<usize>, random: &mut ChaCha8Rng) -> Value {
    let numbers = (0..shape.iter().product()).map(|_| random.random_range(0.5..2.0)).collect();
    Value::new(shape, Buffer::F64(numbers)).expect("it fits")
}

/// Makes a tensor that every format can hold: a symmetric matrix, or half of one, with an empty row and rows of
/// different lengths, in which neighbours are equal (a run) or not.
fn sparse(shape: Vec<usize>, format: &Format, salt: i64) -> Value {
    let half = format.levels.iter().any(|l| l.kind == LevelKind::LowerTriangular);
    let (mut indices, mut numbers) = (Vec::new(), Vec::new());
    for at in shape.iter().map(|n| 0..*n as i64).multi_cartesian_product() {
        let (sum, product): (i64, i64) = (at.iter().sum(), at.iter().product());
        if !at.contains(&3) && (sum + product + salt) % 3 != 0 && !(half && at[0] < at[1]) {
            numbers.push(0.75 + 0.5 * ((sum / 3 + product / 2 + salt) % 4) as f64);
            indices.extend(at);
        }
    }
    let fill = format.fill.unwrap_or(Literal::Float(0.0));
    Value::sparse(shape, indices, Buffer::F64(numbers), fill).expect("it is in order")
}

/// Returns the elements of a tensor at the places of its gradient: formats that store regions have more than the given
/// places.
fn stored(value: &Value, gradient: &Value) -> Value {
    let given = value.places().expect("it is sparse");
    let ndim = value.shape().len();
    let elements: BTreeMap<&[i64], f64> = given.indices.chunks_exact(ndim).zip_eq(value.numbers()).collect();
    let places = &gradient.places().expect("it is sparse").indices;
    let numbers = places.chunks_exact(ndim).map(|at| elements.get(at).copied().unwrap_or(0.0)).collect();
    assert!(elements.keys().all(|at| places.chunks_exact(ndim).contains(at)), "stored values have derivatives");
    Value::sparse(value.shape().to_vec(), places.clone(), Buffer::F64(numbers), given.fill).expect("it is in order")
}

/// Compares the derivatives of all stored values of structured parameters; returns the number of values, and of those
/// that change a result.
fn compare(program: &Program, text: &str) -> (usize, usize) {
    let c = Options::default().optimize(false).gradient(Gradient::default());
    let gradient = program.compile("f", &c).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let plain = Options::default().backend(Backend::Interp);
    let plain = program.compile("f", &plain).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let mut random = ChaCha8Rng::seed_from_u64(7);
    let mut inputs = Values::new();
    let logical = program.logical("f", &c).unwrap_or_else(|e| panic!("{e}\n{text}"));
    for (p, named) in logical.params.iter().zip_eq(gradient.signature().params()) {
        let (shape, format) = (shape(&p.tensor), &p.tensor.format);
        let value =
            if format.is_dense() { dense(shape, &mut random) } else { sparse(shape, format, inputs.len() as i64) };
        inputs.insert(named.name.clone(), value);
    }
    let found = run(&gradient, &inputs);
    let (seeds, inputs): (Values, Values) = inputs.into_iter().partition(|(name, _)| name.ends_with(".grad"));
    let (mut compared, mut moving) = (0, 0);
    for (name, value) in inputs.iter().filter(|(_, v)| v.places().is_some()) {
        let derivative = &found[&format!("{name}.grad")];
        let base = stored(value, derivative);
        let alone = (0..base.data().len() as i64).collect_vec();
        let values = derivative.places().and_then(|p| p.stored_as.as_ref()).unwrap_or(&alone);
        let numbers = derivative.numbers();
        let largest = numbers.iter().fold(0.0f64, |a, b| a.max(b.abs()));
        for moved in values.iter().unique() {
            let loss = |step: f64| -> f64 {
                let numbers = base.numbers().into_iter().zip_eq(values);
                let numbers = numbers.map(|(v, k)| if k == moved { v + step } else { v }).collect();
                let mut inputs = inputs.clone();
                inputs.insert(name.clone(), base.with_numbers(numbers).expect("as many"));
                let results = run(&plain, &inputs);
                let weighed = |(name, seed): (&String, &Value)| -> f64 {
                    let result = results[name.strip_suffix(".grad").expect("a seed")].numbers();
                    result.iter().zip_eq(seed.numbers()).map(|(y, s)| y * s).sum()
                };
                seeds.iter().map(weighed).sum()
            };
            let difference = (loss(STEP) - loss(-STEP)) / (2.0 * STEP);
            for (k, number) in numbers.iter().enumerate().filter(|(k, _)| values[*k] == *moved) {
                let error = (number - difference).abs();
                let what = format!("element {k} of {name}.grad is {number}, expected {difference} by differences");
                assert!(error <= TOLERANCE * number.abs() + TOLERANCE * 1e-3 * largest, "{what}\n{text}");
            }
            compared += 1;
            moving += usize::from(difference.abs() > 1e-3);
        }
    }
    (compared, moving)
}

#[test]
fn gradients_agree_with_difference_quotients() {
    for kernel in KERNELS {
        for formats in kernel.formats {
            let replaced = kernel.words.iter().zip_eq(*formats);
            let text = replaced.fold(kernel.text.to_string(), |text, (word, format)| text.replace(word, format));
            let what = format!("{}, {formats:?}", kernel.name);
            let program = Program::from_source("f.ft", &text).unwrap_or_else(|e| panic!("{what}: {e}"));
            let (compared, moving) = compare(&program, &text);
            assert!(moving >= 4 && 4 * moving >= compared, "{what}: {moving} of {compared} values change results");
        }
    }
}
