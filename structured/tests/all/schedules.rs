//! Schedule steps on loops over structured tensors: a program after the steps can be lowered and computes the same, and
//! a refusal gives the reason.

use std::panic::catch_unwind;
use taffeta_analysis::pass::simplify;
use taffeta_ast::print;
use taffeta_schedule::{Arg, IndexMap, Schedule, Value};
use taffeta_structured::lower;
use testkit::{lowers, programs};

use lowers::lowers;

const FORMATS: &[&str] = &[
    "csr",
    "csc",
    "dcsr",
    "coo",
    "band",
    "vbl",
    "rle",
    "hashmap",
    "format(dense, bitmap)",
    "dia",
    "ell",
    "bcsr(2, 3)",
    "format(squeezed, dense)",
];

const KERNELS: &[&str] = &[
    "for i in range(n):\n        for j in range(m):\n            y[i] += A[i, j] * x[j]",
    "for i in range(n):\n        for j in range(m):\n            for k in range(3):\n                Y[i, k] += A[i, j] * X[j, k]",
    "for i in range(n):\n        for j in range(m):\n            C[i, j] = A[i, j] * x[j]\n        for j in range(m):\n            y[i] += C[i, j]",
    "for i in range(n):\n        for j in range(m):\n            y[i] = max(y[i], A[i, j] + x[j])",
];

/// Primitive with its arguments, in terms of loops of the kernels.
type Step = (&'static str, fn() -> Vec<Arg>);

fn names(all: &[&str]) -> Arg {
    Arg::from(Value::List(all.iter().map(|n| Value::from(*n)).collect()))
}

fn numbers(all: &[i64]) -> Arg {
    Arg::from(Value::List(all.iter().map(|n| Value::from(*n)).collect()))
}

const STEPS: &[&[Step]] = &[
    &[("split", || vec![Arg::from("i"), Arg::from(2)])],
    &[("split", || vec![Arg::from("j"), Arg::from(3)])],
    &[
        ("split", || vec![Arg::from("i"), Arg::from(2)]),
        ("split", || vec![Arg::from("j"), Arg::from(3)]),
        ("reorder", || vec![names(&["i~o", "j~o", "i~i", "j~i"])]),
    ],
    &[("split", || vec![Arg::from("j"), Arg::from(3)]), ("reorder", || vec![names(&["j~o", "i", "j~i"])])],
    &[("split", || vec![Arg::from("i"), Arg::from(3)]), ("separate_tail", || vec![Arg::from("i~o")])],
    &[("split", || vec![Arg::from("j"), Arg::from(2)]), ("separate_tail", || vec![Arg::from("j~o")])],
    &[("split", || vec![Arg::from("j"), Arg::from(2)]), ("unroll", || vec![Arg::from("j~i")])],
    &[("split", || vec![Arg::from("i"), Arg::from(2)]), ("blend", || vec![Arg::from("i~i")])],
    &[("tile", || vec![names(&["i", "j"]), numbers(&[2, 3])])],
    &[("merge", || vec![Arg::from("i"), Arg::from("j")])],
    &[("reverse", || vec![Arg::from("i")])],
    &[("reverse", || vec![Arg::from("j")])],
    &[("unroll", || vec![Arg::from("k")])],
    &[("reorder", || vec![names(&["j", "i"])]), ("split", || vec![Arg::from("i"), Arg::from(2)])],
    &[("specialize", || vec![Arg::from("i"), Arg::from("n > 2")])],
    &[("fission", || vec![Arg::from("i"), Arg::from("j#1")])],
    &[("fuse", || vec![Arg::from("j#1"), Arg::from("j#2")])],
    &[("permute", || {
        let iters = names(&["i", "j"]);
        let params = ["i", "j"].map(taffeta_ast::Symbol::new);
        let [i, j] = [taffeta_ast::Expr::var(&params[0]), taffeta_ast::Expr::var(&params[1])];
        let results = vec![j.minus(&i), i];
        vec![iters, Arg::from(Value::Map(IndexMap { params: params.to_vec(), results }))]
    })],
    &[("cache_reduction", || vec![Arg::from("j"), Arg::from("y")])],
    &[("parallelize", || vec![Arg::from("i"), Arg::named("schedule", "positions"), Arg::named("chunk", 2)])],
    &[("parallelize", || vec![Arg::from("j"), Arg::named("schedule", "positions"), Arg::named("chunk", 1)])],
    &[
        ("reorder", || vec![names(&["j", "i"])]),
        ("parallelize", || {
            let by = [Arg::named("schedule", "positions"), Arg::named("chunk", 3), Arg::named("above", 2)];
            [Arg::from("j")].into_iter().chain(by).collect()
        }),
    ],
    &[("vectorize", || vec![Arg::from("j")])],
    &[("vectorize", || vec![Arg::from("k")]), ("parallelize", || vec![Arg::from("i")])],
    &[("polyhedral", || vec![Arg::from("i")])],
];

#[test]
fn legal_steps_preserve_results() {
    let (mut taken, mut refused, mut illegal) = (0, std::collections::BTreeMap::<String, usize>::new(), 0);
    for format in FORMATS {
        for kernel in KERNELS {
            let text = format!(
                "def f(A: f64[n, m] @ {format}, x: f64[m], X: f64[m, 3]) -> (f64[n], f64[n, 3]):\n    y = zeros((n,), f64)\n    Y = zeros((n, 3), f64)\n    C = zeros((n, m), f64)\n    {kernel}\n    return y, Y\n"
            );
            let func = programs::elaborate(&text);
            for steps in STEPS {
                let mut s = Schedule::new(func.clone()).lowered_by(lowers);
                let went = steps.iter().try_for_each(|(method, args)| s.call(method, &args()).map(drop));
                let shown: Vec<&str> = steps.iter().map(|(m, _)| *m).collect();
                match went {
                    Err(r) if r.code == "schedule::unsupported" && r.message.contains("cannot lower loops") => {
                        *refused.entry(shown.join(", ")).or_default() += 1;
                        continue;
                    }
                    Err(_) => {
                        illegal += 1;
                        continue;
                    }
                    Ok(()) => taken += 1,
                }
                let program = simplify::run(s.func());
                let structured = lower(&program).unwrap_or_else(|e| panic!("{:?}\n{text}{shown:?}", e.0[0].message));
                taffeta_ast::validate::dense(&structured.func).unwrap_or_else(|e| panic!("{e}\n{text}{shown:?}"));
                for seed in 0..6 {
                    let result = catch_unwind(|| programs::equal(&func, &structured, seed));
                    assert!(
                        result.is_ok(),
                        "{text}{shown:?}\n{}\n{}",
                        print::func(&program),
                        print::func(&structured.func)
                    );
                }
            }
        }
    }
    println!("{taken} taken, {illegal} illegal, refused {refused:?}");
    assert!(taken > 500, "{taken} taken, {illegal} illegal, refused {refused:?}");
    assert!(refused.values().sum::<usize>() * 10 < taken, "{taken} taken, refused {refused:?}");
}

/// Checks that a loop with an access at a fixed coordinate is not vectorised: no loop traverses the access, so each
/// iteration searches, which lanes cannot do.
#[test]
fn loops_with_searches_are_not_vectorised() {
    let func = programs::elaborate(
        "def f(A: f64[m, m] @ dcsr, x: f64[n]) -> f64:\n    y = 0.0\n    for i in range(n):\n        \
         y = max(y, A[m // 2, 0] if m > 0 else 2.0)\n    return y\n",
    );
    let mut s = Schedule::new(func).lowered_by(lowers);
    let refused = s.call("vectorize", &[Arg::from("i")]).expect_err("each iteration searches");
    assert!(refused.message.contains("after `vectorize`"), "{}", refused.message);
    s.call("parallelize", &[Arg::from("i")]).expect("threads can search");
    lower(&simplify::run(s.func())).expect("it can be lowered");
}

/// Checks that a step that changes no loop over stored elements is refused, if it prevents the lowering of a marked
/// loop.
#[test]
fn steps_that_break_marked_loops_are_refused() {
    let cases = [
        (
            "def f(A: f64[n, m] @ dcsr, x: f64[m]) -> f64[n]:\n    y = zeros((n,), f64)\n    for i in range(n):\n        \
             for j in range(m):\n            y[i] += A[i, j] * x[j]\n    return y\n",
            ("parallelize", "i"),
            ["j", "y"],
        ),
        (
            "def f(A: f64[n, n] @ bcsr(2, 3)) -> f64:\n    s: f64 = 0.0\n    for i in range(n):\n        \
             for j in range(n):\n            for k in range(n):\n                s += A[i, j] * A[j, k] * A[i, k]\n    \
             return s\n",
            ("vectorize", "k"),
            ["k", "s"],
        ),
    ];
    for (text, (mark, marked), [at, tensor]) in cases {
        let func = programs::elaborate(text);
        let mut s = Schedule::new(func).lowered_by(lowers);
        s.call(mark, &[Arg::from(marked)]).unwrap_or_else(|r| panic!("{}", r.message));
        let refused = s.call("cache_reduction", &[Arg::from(at), Arg::from(tensor)]).expect_err("it cannot be lowered");
        assert!(refused.message.contains("after `cache_reduction`"), "{}", refused.message);
        lower(&simplify::run(s.func())).expect("accepted schedules can be lowered");
    }
}

/// Checks that a stored index of another tensor is located before that tensor, where nothing proves the index in range.
#[test]
fn stored_indices_behind_a_guard() {
    let func = programs::elaborate(
        "def f(A: f64[n, l] @ csr, B: f64[m, k] @ csr, c: f64[n], x: f64[k]) -> f64[n]:\n    \
         y = zeros((n,), f64)\n    for i in range(n):\n        for j in range(l):\n            \
         if c[i] > 2.0:\n                if A[i, j] < 1.0 * m:\n                    for q in range(k):\n                        \
         y[i] += B[cast(A[i, j], i64), q] * x[q]\n    return y\n",
    );
    let mut s = Schedule::new(func.clone()).lowered_by(lowers);
    s.call("unroll", &[Arg::from("i"), Arg::named("factor", 3)]).unwrap_or_else(|r| panic!("{}", r.message));
    s.call("split", &[Arg::from("j#2"), Arg::from(8)]).unwrap_or_else(|r| panic!("{}", r.message));
    let structured = lower(&simplify::run(s.func())).expect("there are loops");
    taffeta_ast::validate::dense(&structured.func).unwrap_or_else(|e| panic!("{e}"));
    for seed in 0..20 {
        programs::equal(&func, &structured, seed);
    }
}

/// Checks a loop whose reduction is read only at stored elements: elsewhere, the loop runs without the reduction.
#[test]
fn reductions_read_only_at_stored_elements() {
    let func = programs::elaborate(
        "def f(A: f64[n] @ format(bitmap), x: f64[m]) -> (f64[n], f64[m]):\n    y = zeros((n,), f64)\n    \
         z = zeros((m,), f64)\n    for i in range(n):\n        w = zeros((n,), f64)\n        \
         for j in range(m):\n            w[i] += x[j]\n            z[j] += x[j] + 1.0\n        \
         y[i] += A[i] * w[i]\n    return y, z\n",
    );
    for mark in ["vectorize", "parallelize"] {
        let mut s = Schedule::new(func.clone()).lowered_by(lowers);
        s.call(mark, &[Arg::from("j")]).expect("it is a sum");
        let marked = simplify::run(s.func());
        let structured = lower(&marked).expect("it can be lowered");
        taffeta_ast::validate::dense(&structured.func).unwrap_or_else(|e| panic!("{mark}: {e}"));
        (0..6).for_each(|seed| programs::equal(&func, &structured, seed));
    }
}
