//! Whether rounding in f32 explains that the three derivatives are apart: the same program in f64, at the same point,
//! in the same directions.
//!
//! The logical program prints as a program; with every `f32` made an `f64` it is one that computes the same with more
//! digits. Where finite differences in f64 give what the gradient in f32 is, as far as f32 carries, a mistake is ruled
//! out.

use super::{InputCheck, Inputs, Sampling, Verdict, check_gradient};
use crate::error::Error;
use crate::program::{Options, Program};
use itertools::Itertools as _;
use taffeta_ast::{DType, Func, Value};

/// How far a derivative in f32 may be from finite differences in f64: a tenth, since what spoils differences in f32
/// spoils it too, if less.
const NEAR: f64 = 0.1;

/// Makes `unclear` of what is wrong in f32 and right in f64. Where the program cannot be computed in f64, nothing
/// changes.
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
        // The random numbers are the same, and so are the directions.
        for (d, e) in check.directions.iter_mut().zip_eq(&exact.directions) {
            // Finite differences in f64 know nothing of how the gradient is made.
            let near = |v: f64| (v - e.differences).abs() <= NEAR * e.differences.abs();
            let explained = match d.verdict {
                Verdict::Wrong => near(d.reverse),
                // Where the modes are apart, one of them may be anywhere.
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
    // Its `static` parameters have their values, and its schedule has done what it does.
    let options = Options { statics: Default::default(), schedule: None, ..reverse.clone() };
    check_gradient(&program, &func.name, &options, &inputs, sampling)
}

/// The program with `f64` for every word `f32`.
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
    fn words_alone_are_widened() {
        let text = "def f32x(x: f32[n], f32_y: f32) -> f32:\n    return cast(x[0], f32) + f32_y";
        let wide = "def f32x(x: f64[n], f32_y: f64) -> f64:\n    return cast(x[0], f64) + f32_y";
        assert_eq!(widened(text), wide);
    }
}
