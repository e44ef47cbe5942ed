//! Tensors over a pattern in which several elements share a stored value: each element behaves as if it had its own,
//! and a reduction counts once. The interpreter is checked against a program with dense tensors, and the lowered
//! program against the interpreter.

use std::collections::BTreeMap;
use taffeta_analysis::pass::simplify;
use taffeta_ast::format::{Format, UNEQUAL};
use taffeta_ast::interp::{self, Inputs};
use taffeta_ast::{Buffer, Func, Value, print};
use taffeta_autodiff::{Kind, Request, differentiate};
use taffeta_structured::{Parameter, Stored, lower};
use testkit::{programs, random};

const FORMATS: [&str; 5] = [
    "rle",
    "format(dense, packbits)",
    "format(dense, symmetric)",
    "format(dense, runlength, order=(1, 0))",
    "format(dense, packbits, order=(1, 0))",
];

/// Bodies that write `B`, and whether they write equal values to all elements that may share one, for any `x`.
const BODIES: [(&str, bool); 12] = [
    ("B[i, j] += A[i, j]", true),
    ("B[i, j] = A[i, j] * 2.0", true),
    ("B[i, j] = A[i, j]\n            B[i, j] *= B[i, j]", true),
    ("B[i, j] += 1.0\n            B[i, j] *= A[i, j]", true),
    ("t = A[i, j] * x[0]\n            B[i, j] -= t", true),
    ("if A[i, j] > 2.0:\n                B[i, j] = A[i, j]", true),
    ("for k in range(3):\n                B[i, j] += A[i, j] * x[k]", true),
    ("B[i, j] = A[i, j] * x[j]", false),
    ("B[i, j] += x[i]", false),
    ("if j != 1:\n                B[i, j] += A[i, j]", false),
    ("s += 1.0\n            B[i, j] = s", false),
    ("B[i, (j + 1) % n] = A[i, j]", false),
];

fn text(format: &str, body: &str, local: bool) -> String {
    let (result, end) = match local {
        false => ("f64[n, n] @ pattern(A)", "B"),
        true => ("f64[n, n]", "C"),
    };
    let used = if local {
        "C = zeros((n, n), f64)\n    for i in range(n):\n        for j in range(n):\n            C[i, j] = B[i, j] * 2.0\n    "
    } else {
        ""
    };
    format!(
        "def f(A: f64[n, n] @ {format}, x: f64[n]) -> {result}:\n    s: f64 = 0.0\n    \
         B: f64[n, n] @ pattern(A) = zeros((n, n), f64)\n    for i in range(n):\n        for j in range(n):\n            \
         {body}\n    {used}return {end}\n"
    )
}

/// Packs a random symmetric matrix of 5 x 5 elements that is constant in blocks of 3 x 3.
fn matrix(format: &Format, seed: u64) -> Stored {
    let mut random = random::Random(seed);
    random.next(2);
    let runs: Vec<f64> = (0..16).map(|_| random.next(4) as f64).collect();
    let value = |i: usize, j: usize| runs[i.max(j) / 3 * 4 + i.min(j) / 3];
    let at = (0..5usize).flat_map(|i| (0..5usize).map(move |j| (i, j)));
    let indices = at.clone().flat_map(|(i, j)| [i as i64, j as i64]).collect::<Vec<_>>();
    let elements = Buffer::F64(at.map(|(i, j)| value(i, j)).collect());
    Stored::pack(&[5, 5], format, &indices, &elements).expect("it fits")
}

struct Given {
    logical: Inputs,
    flat: Inputs,
}

fn given(func: &Func, structured: &taffeta_structured::Structured, x: &[f64], seed: u64) -> Given {
    let stored = matrix(&func.params[0].tensor.format, seed);
    let sizes: BTreeMap<String, i64> = [("n".to_string(), 5)].into();
    let mut logical = Inputs { sizes: sizes.clone(), params: vec![stored.elements()] };
    let mut flat = Inputs { sizes, params: stored.arrays().to_vec() };
    assert!(matches!(structured.layout.params[0], Parameter::Stored(_)));
    flat.sizes.extend(structured.layout.hidden.iter().zip(stored.hidden()).map(|(s, n)| (s.name().to_string(), *n)));
    let x = Value::new(vec![5], Buffer::F64(x.to_vec())).expect("it fits");
    logical.params.push(x.clone());
    flat.params.push(x);
    Given { logical, flat }
}

/// Runs a program; returns its results, or the code and text of the error.
fn ran(func: &Func, inputs: &Inputs) -> Result<Vec<Value>, (String, String)> {
    let done = interp::run(func, inputs).map(|o| o.results);
    done.map_err(|e| (e.kind.code().to_string(), e.to_string()))
}

#[test]
fn elements_behave_as_if_stored_separately() {
    let (mut equal, mut stopped) = (0, 0);
    for format in FORMATS {
        for (body, alike) in BODIES {
            for local in [false, true] {
                let func = programs::elaborate(&text(format, body, local));
                let dense = programs::elaborate(
                    &text(format, body, local).replace(" @ pattern(A)", "").replace(&format!(" @ {format}"), ""),
                );
                let structured = lower(&simplify::run(&func)).unwrap_or_else(|e| panic!("{:?}", e.0[0].message));
                taffeta_ast::validate::dense(&structured.func).unwrap_or_else(|e| panic!("{e}"));
                for (seed, x) in [(1, [2.0; 5]), (2, [1.0, 1.0, 1.0, 3.0, 3.0]), (3, [1.0, 2.0, 3.0, 4.0, 5.0])] {
                    let given = given(&func, &structured, &x, seed);
                    let name = || format!("{format}, {body}, {x:?}\n{}", print::func(&structured.func));
                    let own = ran(&func, &given.logical);
                    let lowered = ran(&structured.func, &given.flat);
                    match (own, lowered) {
                        (Ok(own), Ok(lowered)) => {
                            let whole = |v: &Value| v.dense().map_or_else(|| v.clone(), |(dense, _)| dense).numbers();
                            let plain = Inputs {
                                params: given
                                    .logical
                                    .params
                                    .iter()
                                    .map(|v| Value::new(v.shape().to_vec(), Buffer::F64(whole(v))).expect("it fits"))
                                    .collect(),
                                ..given.logical.clone()
                            };
                            let plain = ran(&dense, &plain).expect("nothing stops it");
                            assert_eq!(whole(&own[0]), plain[0].numbers(), "{}", name());
                            let lowered = match local {
                                true => lowered[0].numbers(),
                                false => {
                                    let stored = matrix(&func.params[0].tensor.format, seed);
                                    let format = func.results[0].format.clone();
                                    whole(&stored.followed_by(format, lowered[0].clone()).elements())
                                }
                            };
                            assert_eq!(lowered, plain[0].numbers(), "{}", name());
                            equal += 1;
                        }
                        (own, lowered) => {
                            let own = own.expect_err("both stop");
                            assert_eq!(Err(own.clone()), lowered, "{}", name());
                            assert!(own.1.contains(UNEQUAL), "{own:?}");
                            assert!(!alike, "{own:?} {}", name());
                            stopped += 1;
                        }
                    }
                }
            }
        }
    }
    assert!(equal > 200 && stopped > 50, "{equal} equal, {stopped} stopped");
}

/// Checks gradients of equal writes to shared values: the gradient of a stored value counts each of its elements.
#[test]
fn gradients_count_each_element_once() {
    let text = |body: &str, weight: &str| {
        format!(
            "def f(A: f64[n, n] @ rle, x: f64[n]) -> f64:\n    s: f64 = 0.0\n    \
             B: f64[n, n] @ pattern(A) = zeros((n, n), f64)\n    for i in range(n):\n        for j in range(n):\n            \
             {body}\n    for i in range(n):\n        for j in range(n):\n            s += B[i, j]{weight}\n    return s\n"
        )
    };
    for (body, slope) in
        [("B[i, j] += A[i, j]", 1.0), ("B[i, j] = A[i, j] * 2.0", 2.0), ("B[i, j] += A[i, j] * 3.0", 3.0)]
    {
        let func = programs::elaborate(&text(body, " * x[j]"));
        let wrt = ["A".to_string()];
        let gradient = differentiate(&Request::new(Kind::Grad, "df", &func, &wrt)).expect("it has a gradient");
        let structured = lower(&simplify::run(&gradient)).unwrap_or_else(|e| panic!("{:?}", e.0[0].message));
        let x = [1.0, 2.0, 3.0, 4.0, 5.0];
        let given = given(&func, &structured, &x, 4);
        let own = ran(&gradient, &given.logical).expect("it runs");
        let lowered = ran(&structured.func, &given.flat).expect("it runs");
        // The gradient of a run is the sum over its elements.
        let dense = given.logical.params[0].dense().expect("it is small").0.numbers();
        let expected: Vec<f64> = (0..25)
            .map(|k| {
                let (i, j) = (k / 5, k % 5);
                let same = |l: usize| (l.min(j)..=l.max(j)).all(|q| dense[i * 5 + q] == dense[i * 5 + j]);
                (0..5).filter(|l| same(*l)).map(|l| slope * x[l]).sum()
            })
            .collect();
        assert_eq!(own[0].dense().expect("it is small").0.numbers(), expected, "{}", print::func(&gradient));
        let stored = matrix(&func.params[0].tensor.format, 4);
        let lowered = stored.followed_by(gradient.results[0].format.clone(), lowered[0].clone()).elements();
        assert_eq!(lowered.dense().expect("it is small").0.numbers(), expected, "{}", print::func(&structured.func));
    }
}
