//! Gradients of structured tensors: the lowered gradient equals that of the logical program, over the same pattern, and
//! at stored elements that of the dense program.

use std::collections::BTreeMap;
use taffeta_ast::gradient::Tape;
use taffeta_ast::interp::{Inputs, run};
use taffeta_ast::stmt::Role;
use taffeta_ast::{Buffer, Expr, ExprKind, Func, Stmt, StmtKind, Symbol, Value, print};
use taffeta_autodiff::{Kind, Request, differentiate};
use taffeta_structured::lower;
use testkit::{programs, random};

use programs::{elaborate, equal};

/// Programs on a matrix `A`, with `FORMAT` in place of its format.
const MATRICES: [(&str, &str); 6] = [
    (
        "rows",
        "def f(A: f64[n, n]FORMAT, x: f64[n]) -> f64[n]:\n    y = zeros((n,), f64)\n    for i in range(n):\n        for j in range(n):\n            y[i] += A[i, j] * x[j]\n    return y\n",
    ),
    (
        "columns",
        "def f(A: f64[n, n]FORMAT, x: f64[n]) -> f64[n]:\n    y = zeros((n,), f64)\n    for j in range(n):\n        for i in range(n):\n            y[i] += A[i, j] * x[j]\n    return y\n",
    ),
    (
        "matrices",
        "def f(A: f64[n, n]FORMAT, x: f64[n, k]) -> f64[n, k]:\n    y = zeros((n, k), f64)\n    for i in range(n):\n        for j in range(n):\n            for l in range(k):\n                y[i, l] += A[i, j] * x[j, l]\n    return y\n",
    ),
    (
        "squares",
        "def f(A: f64[n, n]FORMAT) -> f64:\n    s: f64 = 0.0\n    for i in range(n):\n        for j in range(n):\n            s += A[i, j] * A[i, j]\n    return s\n",
    ),
    (
        "both halves",
        "def f(A: f64[n, n]FORMAT, x: f64[n]) -> f64[n]:\n    y = zeros((n,), f64)\n    for i in range(n):\n        for j in range(n):\n            y[i] += A[i, j] * x[j]\n        for k in range(n):\n            y[i] += A[k, i] * x[k]\n    return y\n",
    ),
    (
        "at random",
        "def f(A: f64[n, n]FORMAT, x: f64[n]) -> f64:\n    s: f64 = 0.0\n    for i in range(n):\n        s += A[i, n - 1 - i] * x[i]\n    return s\n",
    ),
];

/// Programs on a vector `A`.
const VECTORS: [(&str, &str); 6] = [
    (
        "a dot product",
        "def f(A: f64[n]FORMAT, x: f64[n]) -> f64:\n    s: f64 = 0.0\n    for i in range(n):\n        s += A[i] * x[i]\n    return s\n",
    ),
    (
        "a branch",
        "def f(A: f64[n]FORMAT, x: f64[n]) -> f64:\n    s: f64 = 0.0\n    for i in range(n):\n        if x[i] > 3.0:\n            s += A[i] * A[i]\n    return s\n",
    ),
    (
        "a correlation",
        "def f(A: f64[n]FORMAT, x: f64[n]) -> f64[n]:\n    y = zeros((n,), f64)\n    for i in range(n - 2):\n        for j in range(3):\n            y[i] += A[i + j] * x[j]\n    return y\n",
    ),
    (
        "beyond the ends",
        "def f(A: f64[n]FORMAT, x: f64[n]) -> f64[n]:\n    y = zeros((n,), f64)\n    for i in range(n):\n        for j in range(min(n, 3)):\n            y[i] += coalesce(A[permit(i + j - 1)], 2.0) * x[j]\n    return y\n",
    ),
    (
        "round the end",
        "def f(A: f64[n]FORMAT, x: f64[n]) -> f64[n]:\n    y = zeros((n,), f64)\n    for i in range(n):\n        y[i] = A[(i + 1) % n] * x[i] + A[i] * A[(i - 2) % n]\n    return y\n",
    ),
    (
        "one behind the other",
        "def f(A: f64[n]FORMAT, x: f64[n]) -> f64:\n    s: f64 = 0.0\n    for i in range(2 * n):\n        s += coalesce(A[permit(i)] * A[permit(i)], A[permit(i - n)] * x[i - n], 0.0)\n    return s\n",
    ),
];

/// Programs whose backward pass needs values that are computed in loops over a matrix, and whether these can be stored
/// over the matrix's pattern.
const TAPED: [(&str, bool, &str); 7] = [
    (
        "a product of three",
        true,
        "def f(A: f64[n, m]FORMAT, x: f64[n], z: f64[m]) -> f64[n]:\n    y = zeros((n,), f64)\n    for i in range(n):\n        for j in range(m):\n            y[i] += A[i, j] * x[i] * z[j]\n    return y\n",
    ),
    (
        "by columns",
        true,
        "def f(A: f64[n, m]FORMAT, x: f64[n], z: f64[m]) -> f64[n]:\n    y = zeros((n,), f64)\n    for j in range(m):\n        for i in range(n):\n            y[i] += z[j] * (A[i, j] * x[i])\n    return y\n",
    ),
    (
        "what an element is multiplied by",
        true,
        "def f(A: f64[n, m]FORMAT, x: f64[n], z: f64[m]) -> f64[n]:\n    y = zeros((n,), f64)\n    for i in range(n):\n        for j in range(m):\n            t = x[i] + z[j]\n            t += x[i] * z[j]\n            y[i] += A[i, j] * t\n    return y\n",
    ),
    (
        "a chain",
        true,
        "def f(A: f64[n, m]FORMAT, x: f64[n], z: f64[m]) -> f64[n]:\n    y = zeros((n,), f64)\n    for i in range(n):\n        for j in range(m):\n            t = x[i] * z[j]\n            u = t * t * x[i]\n            y[i] += A[i, j] * u * t\n    return y\n",
    ),
    (
        "a branch",
        true,
        "def f(A: f64[n, m]FORMAT, x: f64[n], z: f64[m]) -> f64[n]:\n    y = zeros((n,), f64)\n    for i in range(n):\n        for j in range(m):\n            if A[i, j] != 0.0:\n                t = x[i] * z[j] + A[i, j]\n                y[i] += t * t * z[j]\n    return y\n",
    ),
    (
        "three loops",
        true,
        "def f(A: f64[n, m]FORMAT, x: f64[n, k], z: f64[m, k]) -> f64[n]:\n    y = zeros((n,), f64)\n    for i in range(n):\n        for j in range(m):\n            for l in range(k):\n                y[i] += A[i, j] * x[i, l] * z[j, l]\n    return y\n",
    ),
    (
        "everywhere",
        false,
        "def f(A: f64[n, m]FORMAT, x: f64[n], z: f64[m]) -> f64[n]:\n    y = zeros((n,), f64)\n    for i in range(n):\n        for j in range(m):\n            t = x[i] * z[j]\n            y[i] += t * t + A[i, j] * t\n    return y\n",
    ),
];

fn gradient(func: &Func) -> Func {
    derivative(Kind::Vjp, func)
}

fn derivative(kind: Kind, func: &Func) -> Func {
    let wrt = ["A".to_string()];
    differentiate(&Request::new(kind, "df", func, &wrt)).unwrap_or_else(|e| panic!("{e:?}"))
}

/// Differentiates with respect to all parameters.
fn taped(tape: Tape, func: &Func) -> Func {
    let wrt: Vec<String> = func.params.iter().map(|p| p.tensor.symbol.name().to_string()).collect();
    let request = Request { tape, ..Request::new(Kind::Vjp, "df", func, &wrt) };
    differentiate(&request).unwrap_or_else(|e| panic!("{e:?}"))
}

/// Checks that the structured gradient equals the dense one at stored elements, summed over elements that share a
/// stored value, and that all other results are equal.
fn as_dense(structured: &Func, dense: &Func, seed: u64, text: &str) {
    let mut random = random::Random(seed);
    let sizes: BTreeMap<String, i64> =
        structured.sizes.iter().map(|s| (s.name().to_string(), random.next(7) as i64)).collect();
    let (mut params, mut densely) = (Vec::new(), Vec::new());
    for p in &structured.params {
        let size = |e: &taffeta_ast::Expr| match e.kind() {
            taffeta_ast::ExprKind::Var(s) => sizes[s.name()] as usize,
            _ => e.as_int().expect("a size") as usize,
        };
        let shape: Vec<usize> = p.tensor.shape.iter().map(size).collect();
        let mut numbers = |n: usize| Buffer::F64((0..n).map(|_| random.next(19) as f64 - 9.0).collect());
        let value = if p.tensor.format.is_dense() {
            let count = shape.iter().product();
            Value::new(shape, numbers(count)).expect("it fits")
        } else {
            let stored = random::of_shape(&p.tensor.format, &shape, &mut random).stored;
            // Finite values replace the random ones.
            let count = stored.arrays().last().map_or(0, |v| v.data().len());
            let mut numbers = |n: usize| Buffer::F64((0..n).map(|_| random.next(19) as f64 - 9.0).collect());
            let elements = Value::new(vec![count], numbers(count)).expect("it fits");
            stored.followed_by(p.tensor.format.clone(), elements).elements()
        };
        densely.push(value.dense().expect("it is small").0);
        params.push(value);
    }
    let of = |func: &Func, params: &[Value]| {
        let inputs = Inputs { sizes: sizes.clone(), params: params.to_vec() };
        run(func, &inputs).unwrap_or_else(|e| panic!("{e}\n{text}")).results
    };
    let (found, whole) = (of(structured, &params), of(dense, &densely));
    assert_eq!(found[1..], whole[1..], "seed {seed}\n{text}");
    let (found, whole) = (&found[0], &whole[0]);
    let a = params.iter().find(|v| v.places().is_some()).expect("a structured one");
    let (places, shape) = (a.places().expect("it is one"), a.shape());
    assert_eq!(found.places().map(|p| &p.indices), Some(&places.indices), "{text}");
    let at = |at: &[i64]| at.iter().zip(shape).fold(0, |place, (i, n)| place * n + *i as usize);
    let own: Vec<f64> = places.indices.chunks_exact(shape.len()).map(|i| whole.data().get_f64(at(i))).collect();
    for (e, found) in found.numbers().into_iter().enumerate() {
        let same = |k: usize| places.stored_as.as_ref().map_or(k == e, |s| s[k] == s[e]);
        let expected: f64 = (0..own.len()).filter(|k| same(*k)).map(|k| own[k]).sum();
        assert_eq!(found, expected, "element {e} of seed {seed}\n{text}");
    }
}

/// Checks that the text of a lowered program parses again, if the program has no merges, no scopes that end early, and
/// parameters that give its sizes. The formats' promises (`assume`) are left out, since people do not write them.
fn reads_again(func: &Func) {
    fn plain(s: &Stmt) -> Stmt {
        match s.kind() {
            StmtKind::Assume { .. } => Stmt::nop(),
            _ => s.map(&mut plain, &mut Expr::clone),
        }
    }
    let merges = func.body.any(&mut |s| matches!(s.kind(), StmtKind::While { .. }));
    let shapes = || func.params.iter().flat_map(|p| &p.tensor.shape);
    let is_said = |size: &Symbol| shapes().any(|n| matches!(n.kind(), ExprKind::Var(s) if s == size));
    if !merges && func.sizes.iter().all(is_said) {
        let text = print::func(&taffeta_analysis::pass::simplify::run(&func.with_body(plain(&func.body))));
        if text.contains("    del ") {
            return;
        }
        // Parsing orders the terms of sums in indices.
        let again = print::func(&elaborate(&text));
        assert_eq!(print::func(&elaborate(&again)), again);
        assert_eq!(again.lines().count(), text.lines().count(), "{text}");
    }
}

/// Checks gradients in all formats; returns the number of gradients that were lowered, and the messages of refusals
/// with their counts.
fn all(ndim: usize, kernels: &[(&str, &str)]) -> (usize, BTreeMap<String, usize>) {
    let (mut compared, mut refused) = (0, BTreeMap::new());
    for format in random::formats(ndim).into_iter().filter(|f| !f.is_dense()) {
        for (name, text) in kernels {
            let with = |format: &str| elaborate(&text.replace("FORMAT", format));
            let logical = gradient(&with(&format!(" @ {format}")));
            let text = format!("{name}, {format}\n{}", print::func(&logical));
            let dense = gradient(&with(""));
            for seed in 0..6 {
                as_dense(&logical, &dense, seed, &text);
            }
            match lower(&logical) {
                Ok(lowered) => {
                    taffeta_ast::validate::dense(&lowered.func).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
                    for seed in 0..6 {
                        equal(&logical, &lowered, seed);
                    }
                    reads_again(&lowered.func);
                    // The tangents of the program, and of its gradient, are stored over the parameter's pattern.
                    for of in [with(&format!(" @ {format}")), logical.clone()] {
                        let tangents = derivative(Kind::Jvp, &of);
                        let lowered = lower(&tangents).unwrap_or_else(|e| panic!("{e:?}\n{}", print::func(&tangents)));
                        taffeta_ast::validate::dense(&lowered.func).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
                        for seed in 0..6 {
                            equal(&tangents, &lowered, seed);
                        }
                    }
                    compared += 1;
                }
                Err(found) => {
                    assert!(found.0.iter().all(|d| d.code == "lower::unsupported"), "{found:?}");
                    *refused.entry(found.0[0].message.clone()).or_insert(0) += 1;
                }
            }
        }
    }
    (compared, refused)
}

#[test]
fn gradients_of_vectors_in_every_format() {
    let (compared, refused) = all(1, &VECTORS);
    assert!(compared >= 20 && refused.is_empty(), "{compared} {refused:#?}");
}

#[test]
fn gradients_of_matrices_in_every_format() {
    let (compared, refused) = all(2, &MATRICES);
    let why: Vec<&String> = refused.keys().filter(|m| !m.contains("not ordered")).collect();
    assert!(compared > 500 && why.is_empty(), "{compared} {refused:#?}");
}

/// Returns, for each tape of more than one dimension, whether it is stored over a parameter's pattern.
fn tapes(func: &Func) -> Vec<bool> {
    let mut out = Vec::new();
    func.body.walk(&mut |s| {
        if let StmtKind::VarDef { tensor, .. } = s.kind()
            && tensor.role == Role::Tape
            && tensor.ndim() > 1
        {
            out.push(!tensor.format.is_dense());
        }
    });
    out
}

/// Checks that gradients are the same with every tape, and that values needed at stored elements are taped over the
/// pattern.
#[test]
fn gradients_with_tapes_in_every_format() {
    let (mut compared, mut kept) = (0, BTreeMap::<&str, [usize; 2]>::new());
    let mut refused: Vec<String> = Vec::new();
    for format in random::formats(2).into_iter().filter(|f| !f.is_dense()) {
        for (name, sparsely, text) in TAPED {
            // Formats of matrix halves need square matrices.
            let square = |text: &str| text.replace("n, m]", "n, n]").replace("f64[m", "f64[n").replace("(m)", "(n)");
            let text = if format.squares().next().is_some() { square(text) } else { text.to_string() };
            let with = |format: &str| elaborate(&text.replace("FORMAT", format));
            let dense = taped(Tape::None, &with(""));
            for tape in [Tape::All, Tape::None] {
                let logical = taped(tape.clone(), &with(&format!(" @ {format}")));
                let text = format!("{name}, {format}\n{}", print::func(&logical));
                let own = tapes(&logical);
                assert!(!sparsely || own.iter().all(|stored| *stored), "{text}");
                assert!(tape == Tape::All || own.is_empty(), "{text}");
                let count = kept.entry(name).or_default();
                own.iter().for_each(|stored| count[usize::from(*stored)] += 1);
                for seed in 0..4 {
                    as_dense(&logical, &dense, seed, &text);
                }
                match lower(&logical) {
                    Ok(lowered) => {
                        taffeta_ast::validate::dense(&lowered.func).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
                        (0..4).for_each(|seed| equal(&logical, &lowered, seed));
                        compared += 1;
                    }
                    Err(found) => refused.extend(found.0.into_iter().map(|d| d.message)),
                }
            }
        }
    }
    let why: Vec<&String> = refused.iter().filter(|m| !m.contains("not ordered")).collect();
    assert!(compared > 500 && why.is_empty(), "{compared} {refused:#?}");
    let none = |name: &str| !matches!(name, "three loops" | "everywhere");
    assert!(kept.iter().all(|(name, [_, stored])| none(name) == (*stored > 50)), "{kept:?}");
}
