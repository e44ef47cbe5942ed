//! That it can fail: programs are compared with derivatives of other ones.

use super::*;
use weft_ast::Buffer;

const SQUARES: &str = "
def f(x: f64[n], a: f64) -> f64[n]:
    y = a * x * x
    return y
";

/// The verdicts for `x` and `a` where the programs of tangents and of gradients are those of other texts.
fn verdicts(forward: &str, reverse: &str) -> Vec<Verdict> {
    let wrt = ["x".to_string(), "a".to_string()];
    let compiled = |text: &str, mode: Option<Mode>| {
        let gradient = mode.map(|mode| Gradient { wrt: wrt.to_vec(), mode, ..Gradient::default() });
        let program = Program::from_source("p.ft", text).unwrap_or_else(|e| panic!("{e}"));
        program.compile("f", &Options { gradient, ..Options::default() }).unwrap_or_else(|e| panic!("{e}"))
    };
    let programs = Programs {
        value: compiled(SQUARES, None),
        forward: compiled(forward, Some(Mode::Forward)),
        reverse: compiled(reverse, Some(Mode::Reverse)),
    };
    let x = Value::new(vec![3], Buffer::F64(vec![1.0, -2.0, 0.5])).expect("three numbers");
    let a = Value::scalar(Buffer::F64(vec![3.0])).expect("a number");
    let (inputs, sampling) = (Inputs { values: vec![x, a], sizes: vec![3] }, Sampling::default());
    let checker = Checker { programs: &programs, inputs: &inputs, precision: Precision::DOUBLE, sampling: &sampling };
    checker.run(&wrt).unwrap_or_else(|e| panic!("{e}")).iter().map(InputCheck::verdict).collect()
}

#[test]
fn derivatives_of_another_program_are_wrong() {
    // Of x it is another function, of a the same.
    let other = SQUARES.replace("a * x * x", "a * x * x + 1e-4 * x");
    use Verdict::{Agrees, Modes, Wrong};
    assert_eq!(verdicts(SQUARES, SQUARES), [Agrees, Agrees]);
    assert_eq!(verdicts(&other, &other), [Wrong, Agrees]);
    assert_eq!(verdicts(SQUARES, &other), [Modes, Agrees]);
    assert_eq!(verdicts(&other, SQUARES), [Modes, Agrees]);
}

#[test]
fn one_wrong_element_does_not_hide() {
    let other = SQUARES.replace("    return y", "    y[2] = a * x[2] * x[2] * x[2]\n    return y");
    assert_eq!(verdicts(&other, &other)[0], Verdict::Wrong);
}
