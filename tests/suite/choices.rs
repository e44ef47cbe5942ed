//! Derivatives of choices: the operand that is not chosen contributes nothing to them, however the choice is written,
//! not even an infinity times 0.

use itertools::Itertools as _;
use taffeta::{Backend, Options, Program};
use taffeta_ast::{Buffer, Value};

/// Choices, each with the equivalent program that uses `if`.
const PROGRAMS: [(&str, &str); 7] = [
    (
        "    return sum(where(x > 0, sqrt(x), 0.0))",
        "    s: f64 = 0.0
    for i in range(n):
        if x[i] > 0.0:
            s += sqrt(x[i])
    return s",
    ),
    (
        "    return sum(where(b=sqrt(x), cond=x <= 0, a=0.0))",
        "    s: f64 = 0.0
    for i in range(n):
        if x[i] > 0.0:
            s += sqrt(x[i])
    return s",
    ),
    (
        "    return sum(select(x > 0, log(x), x * x))",
        "    s: f64 = 0.0
    for i in range(n):
        if x[i] > 0.0:
            s += log(x[i])
        else:
            s += x[i] * x[i]
    return s",
    ),
    (
        "    s: f64 = 0.0
    for i in range(n):
        s += where(x[i] > 0, 1.0 / x[i], x[i])
    return s",
        "    s: f64 = 0.0
    for i in range(n):
        if x[i] > 0.0:
            s += 1.0 / x[i]
        else:
            s += x[i]
    return s",
    ),
    (
        "    return sum(where(x > 0, exp(where(x > 1, sqrt(x - 1), log(x))), 3 * x))",
        "    s: f64 = 0.0
    for i in range(n):
        if x[i] > 1.0:
            s += exp(sqrt(x[i] - 1.0))
        elif x[i] > 0.0:
            s += exp(log(x[i]))
        else:
            s += 3.0 * x[i]
    return s",
    ),
    (
        "    return sum(where(x > 0, x ** 0.5, 0.0) * where(x != 0, sin(x) / x, 1.0))",
        "    s: f64 = 0.0
    for i in range(n):
        if x[i] > 0.0:
            s += x[i] ** 0.5 * (sin(x[i]) / x[i])
    return s",
    ),
    (
        "    m = where(x > 0, sqrt(x), 0.0)[:, None] * where(x > 0, rsqrt(x), 0.0)[None, :]
    return sum(m)",
        "    s: f64 = 0.0
    for i in range(n):
        for j in range(n):
            if x[i] > 0.0 and x[j] > 0.0:
                s += sqrt(x[i]) * rsqrt(x[j])
    return s",
    ),
];

#[test]
fn unchosen_operands_contribute_nothing() {
    let x = [4.0, -1.0, 0.0, 0.25, -0.0, 1.0, 2.5, f64::NEG_INFINITY];
    for (choice, branches) in PROGRAMS {
        let text = |body: &str| format!("def f(x: f64[n]) -> f64:\n{body}\n\ng = grad(f)\n\nt = jvp(f)\n");
        for x in [&x[..], &x[..7]] {
            // Some chosen operands are not finite there.
            if x.len() == 8 && (choice.contains("[None") || choice.contains("!= 0")) {
                continue;
            }
            let given = |data: &[f64]| Value::new(vec![data.len()], Buffer::F64(data.to_vec())).expect("a vector");
            let tangent: Vec<f64> = (0..x.len()).map(|k| 1.0 + k as f64).collect();
            let answers = |body: &str, backend| {
                let text = text(body);
                let program = Program::from_source("choice.ft", &text).unwrap_or_else(|e| panic!("{e}"));
                let options = Options::default().optimize(false).backend(backend);
                let run = |entry: &str, params: Vec<Value>| {
                    let f = program.compile(entry, &options).unwrap_or_else(|e| panic!("{text}\n{e}"));
                    f.run(params, &[x.len() as i64], 1).unwrap_or_else(|e| panic!("{text}\n{e}")).results
                };
                let all = [run("g", vec![given(x)]), run("t", vec![given(x), given(&tangent)])].concat();
                all.iter().flat_map(Value::numbers).collect::<Vec<f64>>()
            };
            let expected = answers(branches, Backend::Interp);
            assert!(x.len() == 8 || expected.iter().all(|v| v.is_finite()), "{branches}: {expected:?}");
            for backend in [Backend::Interp, Backend::C] {
                let found = answers(choice, backend);
                assert_eq!(found.len(), expected.len());
                for (a, b) in found.iter().zip_eq(&expected) {
                    let near = (a - b).abs() <= 1e-12 * b.abs().max(1.0);
                    assert!(near || a == b || (a.is_nan() && b.is_nan()), "{choice}: {found:?} and {expected:?}");
                }
            }
        }
    }
}

/// Checks that an operand named before the choice is computed everywhere and contributes its derivative; the manual
/// says how to write it instead.
#[test]
fn operands_named_before_the_choice_contribute() {
    let gradient = |named: &str, backend| {
        let text =
            format!("def f(x: f64[n]) -> f64:\n    s = {named}\n    return sum(where(x > 0, s, 0.0))\n\ng = grad(f)\n");
        let program = Program::from_source("named.ft", &text).unwrap_or_else(|e| panic!("{e}"));
        let f = program
            .compile("g", &Options::default().optimize(false).backend(backend))
            .unwrap_or_else(|e| panic!("{text}\n{e}"));
        let x = Value::new(vec![3], Buffer::F64(vec![4.0, 0.0, -1.0])).expect("three numbers");
        f.run(vec![x], &[3], 1).unwrap_or_else(|e| panic!("{text}\n{e}")).results[0].numbers()
    };
    for backend in [Backend::Interp, Backend::C] {
        let everywhere = gradient("sqrt(x)", backend);
        assert!(everywhere[0] == 0.25 && everywhere[1].is_nan() && everywhere[2].is_nan(), "{everywhere:?}");
        assert_eq!(gradient("sqrt(where(x > 0, x, 1.0))", backend), [0.25, 0.0, 0.0]);
    }
}
