//! Second opinion in f64: tests whether rounding in f32 explains a disagreement, by the same program in f64, at the
//! same point and in the same directions.
//!
//! The logical program prints as source; replacing every `f32` by `f64` yields a program that computes the same with
//! more digits. If finite differences in f64 match the f32 gradient to the accuracy of f32, the gradient is not at
//! fault.

use super::{InputCheck, Inputs, Sampling, Verdict, check_gradient};
use crate::error::Error;
use crate::options::Options;
use crate::program::Program;
use itertools::Itertools as _;
use taffeta_ast::{DType, Func, Value};

/// Relative tolerance between a derivative in f32 and finite differences in f64: a tenth, since errors that spoil
/// differences in f32 affect the derivative too, though less.
const NEAR: f64 = 0.1;

/// Downgrades verdicts that are wrong in f32 and right in f64 to `unclear`. Changes nothing if the program cannot be
/// computed in f64.
pub(super) fn second_opinion(
    func: &Func,
    reverse: &Options,
    inputs: &Inputs,
    sampling: &Sampling,
    found: &mut [InputCheck],
) {
    let Ok(exact) = in_double(func, reverse, inputs, sampling) else { return };
    for check in found {
        let Some(exact) = exact.iter().find(|e| e.name == check.name && !e.verdict().is_wrong()) else { continue };
        // The same random numbers yield the same directions.
        for (d, e) in check.directions.iter_mut().zip_eq(&exact.directions) {
            // Finite differences in f64 are independent of how the gradient is derived.
            let near = |v: f64| (v - e.differences).abs() <= NEAR * e.differences.abs();
            let explained = match d.verdict {
                Verdict::Wrong => near(d.reverse),
                // If the modes disagree, either of the two may be the right one.
                Verdict::Modes => near(d.reverse) || near(d.forward),
                _ => false,
            };
            if explained && matches!(e.verdict, Verdict::Agrees | Verdict::Unclear) && d.element == e.element {
                (d.verdict, d.rounding) = (Verdict::Unclear, true);
            }
        }
    }
}

fn in_double(func: &Func, reverse: &Options, inputs: &Inputs, sampling: &Sampling) -> Result<Vec<InputCheck>, Error> {
    let program = Program::from_source("in_f64.ft", &widened(&taffeta_ast::print::func(func)))?;
    let widen = |v: &Value| match v.dtype() {
        DType::F32 => v.clone().with_data(taffeta_ast::Buffer::F64(v.numbers())).unwrap_or_else(|| v.clone()),
        _ => v.clone(),
    };
    let inputs = Inputs { values: inputs.values.iter().map(widen).collect(), sizes: inputs.sizes.clone() };
    // The printed program has its `static` parameters substituted and its schedule applied.
    let options = Options { statics: Default::default(), schedule: None, ..reverse.clone() };
    check_gradient(&program, &func.name, &options, &inputs, sampling)
}

/// Replaces every word `f32` of the program by `f64`.
fn widened(text: &str) -> String {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("f32") {
        out += &rest[..at];
        let before = out.chars().next_back().is_some_and(is_word);
        let after = rest[at + 3..].chars().next().is_some_and(is_word);
        out += if before || after { "f32" } else { "f64" };
        rest = &rest[at + 3..];
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::widened;

    #[test]
    fn only_whole_words_are_widened() {
        let text = "def f32x(x: f32[n], f32_y: f32) -> f32:\n    return cast(x[0], f32) + f32_y";
        let wide = "def f32x(x: f64[n], f32_y: f64) -> f64:\n    return cast(x[0], f64) + f32_y";
        assert_eq!(widened(text), wide);
    }
}
