//! Tangents, gradients of structured results, and derivatives of gradients: forward mode, reverse mode and finite
//! differences agree in every format, in C, along stored elements.

use crate::storage::{shares_values, traversed};
use itertools::Itertools as _;
use taffeta::{Backend, Gradient, Options, Program, Sampling, Tape, Verdict, check_gradient};

const PROGRAMS: &str = "
def dot(A: f64[n, n] @ FORMAT, B: f64[n, n] @ pattern(A)) -> f64:
    s = 0.0
    for i in range(n):
        for j in range(n):
            s += A[i, j] * B[i, j]
    return s

def cubes(A: f64[n, n] @ FORMAT, x: f64[n]) -> f64:
    s = 0.0
    for i in range(n):
        for j in range(n):
            s += A[i, j] * A[i, j] * A[i, j] * x[j]
    return s

def sampled(A: f64[n, n] @ FORMAT, x: f64[n, k], y: f64[n, k]) -> f64[n, n] @ pattern(A):
    B = zeros((n, n), f64)
    for i in range(n):
        for j in range(n):
            for l in range(k):
                B[i, j] += A[i, j] * x[i, l] * y[j, l]
    return B

def scores(M: f64[n, n] @ FORMAT, x: f64[n, k], y: f64[n, k]) -> f64:
    S: f64[n, n] @ pattern(M) = zeros((n, n), f64)
    for i in range(n):
        for j in range(n):
            near = 0.0
            for l in range(k):
                near += x[i, l] * y[j, l]
            S[i, j] += M[i, j] * near
            for l in range(k):
                S[i, j] += M[i, j] * x[i, l] * y[j, l]
    s = 0.0
    for i in range(n):
        for j in range(n):
            t = 0.1 * S[i, j]
            s += M[i, j] * exp(t) * near_one(t * t)
    return s

def near_one(x):
    return 1.0 / (1.0 + x * x)

gradient = grad(cubes, wrt=[\"A\"])
kept = grad(cubes, wrt=[\"A\"], tape=\"all\")
again = grad(cubes, wrt=[\"A\"], tape=\"none\")

product = jvp(gradient, wrt=[\"A\"])
product_kept = jvp(kept, wrt=[\"A\"])
product_again = jvp(again, wrt=[\"A\"])
twice = vjp(kept, wrt=[\"A\"], tape=\"all\")

def by_hand(A: f64[n, n] @ FORMAT, x: f64[n], T: f64[n, n] @ pattern(A)) -> f64[n, n] @ pattern(A):
    H = zeros((n, n), f64)
    for i in range(n):
        for j in range(n):
            H[i, j] += 6.0 * A[i, j] * x[j] * T[i, j]
    return H
";

/// Returns a matrix that every format can hold.
fn matrix(format: &str) -> &'static str {
    match format {
        "lower_triangular" => "[[1, 0, 0, 0], [2, 2, 0, 0], [0, 0, 3, 0], [0.5, 0, 0, 0]]",
        _ => "[[1, 2, 0, 0.5], [2, 2, 0, 0], [0, 0, 3, 0], [0.5, 0, 0, 0]]",
    }
}

/// Returns options for many small programs, which are compiled fast.
fn fast() -> Options {
    Options::default().optimize(false)
}

fn program(format: &str) -> Program {
    Program::from_source("p.ft", &PROGRAMS.replace("FORMAT", format)).unwrap_or_else(|e| panic!("{e}"))
}

/// Checks every second format, each by one program.
#[test]
fn all_modes_agree_on_stored_elements() {
    for (format, entry) in traversed().step_by(2).zip(["dot", "gradient", "sampled"].into_iter().cycle()) {
        agree(format, if shares_values(format) { "gradient" } else { entry }, Tape::Auto);
    }
}

/// Checks, in every fourth format, that all modes agree if the backward pass has all values on tapes, and if it has
/// none.
#[test]
fn all_modes_agree_with_any_tape() {
    let formats = traversed().filter(|f| !shares_values(f)).skip(1).step_by(4);
    for (format, entry) in formats.zip(["scores", "sampled"].into_iter().cycle()) {
        agree(format, entry, Tape::All);
    }
    for format in ["csr", "coo", "bcsr(2, 3)"] {
        agree(format, "scores", Tape::None);
    }
}

fn agree(format: &str, entry: &str, tape: Tape) {
    let (program, name) = (program(format), format!("{entry}, {format}"));
    let options = fast().gradient(Gradient::default().tape(tape));
    let plain = fast().backend(Backend::Interp);
    let signature = program.compile(entry, &plain).unwrap_or_else(|e| panic!("{name}: {e}")).signature().clone();
    let dense = |p: &str| !matches!(p, "A" | "B" | "M");
    let given = signature.params().map(|p| {
        let text = if dense(&p.name) { format!("randn(seed={})", p.name.len()) } else { matrix(format).to_string() };
        (p.name.clone(), text)
    });
    let sizes = signature.sizes.iter().filter(|s| s.name == "k").map(|s| (s.name.clone(), 2)).collect_vec();
    let inputs = taffeta::inputs::read(&signature, &given.collect_vec(), &sizes);
    let inputs = inputs.unwrap_or_else(|e| panic!("{name}: {:?}", e[0].diagnostic));
    let sampling = Sampling::default().rounds(2);
    let checks = check_gradient(&program, entry, &options, &inputs, &sampling);
    for check in checks.unwrap_or_else(|e| panic!("{name}: {e}")) {
        assert_eq!(check.verdict(), Verdict::Agrees, "{name}: {:?}", check.worst());
        assert!(check.directions.len() >= 4, "{name}");
    }
}

/// Checks the gradients of network layers over sparse tensors, with respect to every parameter.
#[test]
fn gradients_of_sparse_layers() {
    let program = Program::load(crate::programs::root().join("examples/sparse/layers.ft")).expect("it is there");
    // Entry, structured input, and sizes.
    let cases = [
        ("convolution", ("M", "[[0, 1, 0, 0], [1, 0, 0, 1]]"), "k=3"),
        ("network", ("W", "sprand(density=0.4, seed=1)"), "layers=2 d=5 batch=3"),
        ("attention", ("M", "[[1, 1, 0], [1, 1, 1], [0, 0, 1]]"), "d=4"),
        ("graph_attention", ("A", "[[0, 1, 0], [1, 0, 1], [0, 0, 0]]"), "feats=4 channels=3"),
        ("energy", ("N", "[[0, 1, 1], [0, 0, 1], [0, 0, 0]]"), ""),
    ];
    for (entry, stored, sizes) in cases {
        let plain = fast().backend(Backend::Interp);
        let function = program.compile(entry, &plain).unwrap_or_else(|e| panic!("{entry}: {e}"));
        let signature = function.signature();
        let text = |p: &str, k: usize| if p == stored.0 { stored.1.to_string() } else { format!("randn(seed={k})") };
        let given = signature.params().enumerate().map(|(k, p)| (p.name.clone(), text(&p.name, k))).collect_vec();
        let size = |text: &str| text.split_once('=').and_then(|(n, v)| Some((n.to_string(), v.parse().ok()?)));
        let sizes = sizes.split_whitespace().filter_map(size).collect_vec();
        let inputs = taffeta::inputs::read(signature, &given, &sizes);
        let inputs = inputs.unwrap_or_else(|e| panic!("{entry}: {:?}", e[0].diagnostic));
        let checks = check_gradient(&program, entry, &fast(), &inputs, &Sampling::default().rounds(2));
        for check in checks.unwrap_or_else(|e| panic!("{entry}: {e}")) {
            assert!(!check.verdict().is_wrong(), "{entry}: {:?}", check.worst());
        }
    }
}

/// Checks the derivative of a gradient in a direction against a program written by hand: in every second format, by one
/// of the tapes that the gradient may have.
#[test]
fn second_derivatives_are_in_the_pattern() {
    let products = ["product", "product_kept", "product_again"].into_iter().cycle();
    for (format, product) in traversed().filter(|f| !shares_values(f)).skip(1).step_by(2).zip(products) {
        let program = program(format);
        let run = |entry: &str, direction: &str, backend: Backend| {
            let options = fast().backend(backend);
            let function = program.compile(entry, &options).unwrap_or_else(|e| panic!("{entry}, {format}: {e}"));
            let given = [("A", matrix(format)), (direction, matrix(format)), ("x", "[1, 2, 3, 4]")];
            let given = given.map(|(name, text)| (name.to_string(), text.to_string()));
            let inputs = taffeta::inputs::read(function.signature(), &given, &[]);
            let inputs = inputs.unwrap_or_else(|e| panic!("{format}: {:?}", e[0].diagnostic));
            function.run(inputs.values, &inputs.sizes, 1).unwrap_or_else(|e| panic!("{format}: {e}")).results[0].clone()
        };
        let expected = run("by_hand", "T", Backend::Interp);
        assert!(expected.places().is_some_and(|p| p.indices.len() >= 8), "{format}: {expected}");
        for (entry, direction) in [(product, "A.tangent"), ("twice", "A.grad.grad")] {
            assert_eq!(run(entry, direction, Backend::C), expected, "{entry}, {format}");
        }
    }
}

/// Checks that an element outside of the pattern is refused and named, and that index arrays of its own are refused.
#[test]
fn directions_are_in_the_pattern() {
    let program = program("csr");
    let function = program.compile("dot", &fast()).unwrap_or_else(|e| panic!("{e}"));
    let read = |text: &str| {
        let given = [("A", "[[1, 0], [0, 2]]"), ("B", text)].map(|(n, t)| (n.to_string(), t.to_string()));
        taffeta::inputs::read(function.signature(), &given, &[]).expect("they are matrices").values
    };
    let of = |values: &[taffeta::ast::Value]| function.call().value("A", &values[0]).value("B", &values[1]).run();
    let inside = of(&read("[[3, 0], [0, 0]]")).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(inside.scalar::<f64>("s").expect("a number"), 3.0);
    let outside = of(&read("[[3, 0], [4, 5]]")).expect_err("it has another element").to_string();
    assert!(outside.contains("parameter `B`: the element at (1, 0) is outside the pattern"), "{outside}");

    let (indptr, indices, values) = ([0i32, 1, 2], [1i32, 0], [2.0, 3.0]);
    let a = taffeta::Sparse::csr(&indptr, &indices, &values, [2, 2]);
    let twice = function.call().sparse("A", &a).sparse("B", &a).run().expect_err("`B` has no arrays").to_string();
    assert!(twice.contains("parameter `B` shares the index arrays of `A`, and takes no others"), "{twice}");
    let b = read("[[0, 10], [100, 0]]").pop().expect("B");
    let lent = function.call().sparse("A", &a).value("B", &b).run().unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(lent.scalar::<f64>("s").expect("a number"), 320.0);
}

/// Checks that in two passes the seed of a structured result has the pattern of the parameter, whether its elements are
/// needed or not.
#[test]
fn two_passes_take_structured_seeds() {
    let text = "
def doubled(A: f64[n, n] @ csr, x: f64[n]) -> f64[n, n] @ pattern(A):
    B = zeros((n, n), f64)
    for i in range(n):
        for j in range(n):
            B[i, j] += 2.0 * A[i, j]
    return B

def scaled(A: f64[n, n] @ csr, x: f64[n]) -> f64[n, n] @ pattern(A):
    B = zeros((n, n), f64)
    for i in range(n):
        for j in range(n):
            B[i, j] += A[i, j] * A[i, j] * x[j]
    return B
";
    let program = Program::from_source("p.ft", text).unwrap_or_else(|e| panic!("{e}"));
    for entry in ["doubled", "scaled"] {
        let options = fast().gradient(Gradient::default().wrt(["A", "x"]));
        let both = program.compile(entry, &options).unwrap_or_else(|e| panic!("{entry}: {e}"));
        let given = [("A", matrix("csr")), ("x", "[1, 2, 3, 4]"), ("B.grad", matrix("csr"))];
        let given = given.map(|(name, text)| (name.to_string(), text.to_string()));
        let inputs = taffeta::inputs::read(both.signature(), &given, &[]).expect("they fit").values;
        let [a, x, seed] = &inputs[..] else { panic!("three of them") };
        let whole = both.call().value("A", a).value("x", x).value("B.grad", seed).run();
        let whole = whole.unwrap_or_else(|e| panic!("{entry}: {e}"));
        let pair = program.differentiate(entry, &options).unwrap_or_else(|e| panic!("{entry}: {e}"));
        let (results, tape) =
            pair.forward().value("A", a).value("x", x).run().unwrap_or_else(|e| panic!("{entry}: {e}"));
        assert_eq!(results.value("B").expect("a result"), whole.value("B").expect("a result"));
        let back = pair.backward(&tape).seed_value("B", seed).run().unwrap_or_else(|e| panic!("{entry}: {e}"));
        for name in ["A.grad", "x.grad"] {
            assert_eq!(back.value(name).expect("a gradient"), whole.value(name).expect("a gradient"), "{entry}");
        }
    }
}

/// Checks that tapes between the two passes are stored in the pattern of a parameter, which comes along although
/// nothing reads its elements.
#[test]
fn two_passes_share_structured_tapes() {
    let text = "
def scaled(A: f64[n, n] @ FORMAT, x: f64[n], z: f64[n]) -> f64[n]:
    y = zeros((n,), f64)
    for i in range(n):
        for j in range(n):
            t = A[i, j] * x[i]
            y[i] += t * z[j]
    return y
";
    for format in traversed().step_by(3) {
        let program = Program::from_source("p.ft", &text.replace("FORMAT", format)).unwrap_or_else(|e| panic!("{e}"));
        let options = fast().gradient(Gradient::default().wrt(["z"]).tape(Tape::All));
        let both = program.compile("scaled", &options).unwrap_or_else(|e| panic!("{format}: {e}"));
        let given = [("A", matrix(format)), ("x", "[1, 2, 3, 4]"), ("z", "[4, 3, 2, 1]"), ("y.grad", "[1, -1, 2, 5]")];
        let given = given.map(|(name, text)| (name.to_string(), text.to_string()));
        let inputs = taffeta::inputs::read(both.signature(), &given, &[]).expect("they fit").values;
        let [a, x, z, seed] = &inputs[..] else { panic!("four of them") };
        let whole = both.call().value("A", a).value("x", x).value("z", z).value("y.grad", seed).run();
        let whole = whole.unwrap_or_else(|e| panic!("{format}: {e}"));
        let pair = program.differentiate("scaled", &options).unwrap_or_else(|e| panic!("{format}: {e}"));
        let (_, tape) =
            pair.forward().value("A", a).value("x", x).value("z", z).run().unwrap_or_else(|e| panic!("{e}"));
        let kept = pair.backward_signature().params().filter(|p| p.of.is_some()).count();
        let values = !shares_values(format);
        assert_eq!(kept, usize::from(values), "{format}");
        let back = pair.backward(&tape).seed_value("y", seed).run().unwrap_or_else(|e| panic!("{format}: {e}"));
        let (found, expected) = (back.value("z.grad"), whole.value("z.grad"));
        assert_eq!(found.expect("a gradient"), expected.expect("a gradient"), "{format}");
    }
}
