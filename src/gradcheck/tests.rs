//! Checks that the gradient check can fail, by comparing programs with derivatives of others.

use super::*;
use taffeta_ast::Buffer;

const SQUARES: &str = "
def f(x: f64[n], a: f64) -> f64[n]:
    y = a * x * x
    return y
";

/// Returns the verdicts for `x` and `a` when tangents and gradients come from other programs.
fn verdicts(forward: &str, reverse: &str) -> Vec<Verdict> {
    let wrt = ["x".to_string(), "a".to_string()];
    let compiled = |text: &str, mode: Option<Mode>| {
        let gradient = mode.map(|mode| Gradient { wrt: wrt.to_vec(), mode, ..Gradient::default() });
        let program = Program::from_source("p.ft", text).unwrap_or_else(|e| panic!("{e}"));
        program
            .compile("f", &Options { gradient, ..Options::default() }.optimize(false))
            .unwrap_or_else(|e| panic!("{e}"))
    };
    let x = Value::new(vec![3], Buffer::F64(vec![1.0, -2.0, 0.5])).expect("three numbers");
    let a = Value::scalar(Buffer::F64(vec![3.0])).expect("a number");
    let (inputs, sampling) = (Inputs { values: vec![x, a], sizes: vec![3] }, Sampling::default());
    let programs = Programs {
        value: compiled(SQUARES, None),
        forward: compiled(forward, Some(Mode::Forward)),
        reverse: compiled(reverse, Some(Mode::Reverse)),
        wrt: vec![0, 1],
        inputs: &inputs,
        threads: sampling.threads,
    };
    let checker = Checker { programs: &programs, precision: Precision::DOUBLE, sampling: &sampling };
    checker.run(&wrt).unwrap_or_else(|e| panic!("{e}")).iter().map(InputCheck::verdict).collect()
}

#[test]
fn derivatives_of_another_program_are_wrong() {
    // The derivative by `x` differs, the one by `a` does not.
    let other = SQUARES.replace("a * x * x", "a * x * x + 1e-4 * x");
    use Verdict::{Agrees, Modes, Wrong};
    assert_eq!(verdicts(SQUARES, SQUARES), [Agrees, Agrees]);
    assert_eq!(verdicts(&other, &other), [Wrong, Agrees]);
    assert_eq!(verdicts(SQUARES, &other), [Modes, Agrees]);
    assert_eq!(verdicts(&other, SQUARES), [Modes, Agrees]);
}

#[test]
fn single_wrong_elements_are_found() {
    let other = SQUARES.replace("    return y", "    y[2] = a * x[2] * x[2] * x[2]\n    return y");
    assert_eq!(verdicts(&other, &other)[0], Verdict::Wrong);
}

/// Checks derivatives as entries, whose own derivatives need new names: `x.grad2` if `x.grad` exists, and seeds for
/// both.
#[test]
fn derivatives_can_be_checked() {
    let text = "
def f(x: f64) -> f64:
    return sin(x) * x

def g(y: inout[f64[n]], x: f64):
    for i in range(n):
        y[i] = y[i] * x * y[i]

twice = value_and_grad(grad(f, wrt=[\"x\"]), wrt=[\"x\"])
back = vjp(g, wrt=[\"x\", \"y\"])
forth = jvp(g, wrt=[\"x\", \"y\"])
";
    let program = Program::from_source("p.ft", text).unwrap_or_else(|e| panic!("{e}"));
    let number = |v: f64| Value::scalar(Buffer::F64(vec![v])).expect("a number");
    let vector = |v: &[f64]| Value::new(vec![v.len()], Buffer::F64(v.to_vec())).expect("as many");
    let point = [vector(&[1.0, 2.0]), number(0.5), vector(&[-1.0, 3.0]), number(2.0)];
    for (entry, values, sizes) in [
        ("twice", vec![number(0.7)], vec![]),
        ("back", point[..3].to_vec(), vec![2]),
        ("forth", [&point[..2], &[number(2.0), vector(&[0.5, 1.0])]].concat(), vec![2]),
    ] {
        let inputs = Inputs { values, sizes };
        let found = check_gradient(&program, entry, &Options::default().optimize(false), &inputs, &Sampling::default());
        let found = found.unwrap_or_else(|e| panic!("{entry}: {e}"));
        assert!(found.iter().all(|c| c.verdict() == Verdict::Agrees), "{entry}: {found:?}");
        assert_eq!(found.len(), inputs.values.len(), "{entry}");
    }
}
