//! Gradient checks: compares the gradient of an entry with finite differences and with forward mode.
//!
//! For some random seeds s of the results (and of the final values of `inout` parameters), and for each input
//! separately, compares three numbers along some directions d. They must be equal:
//!
//! ```text
//! finite differences   < (f(x + h d) - f(x - h d)) / 2h, s >, extrapolated to h = 0
//! forward mode         < J d, s >
//! reverse mode         < d, Jᵀ s >
//! ```
//!
//! Some directions change all elements, each by about its magnitude, or by 1 if that is larger; others change a single
//! element, so that one wrong element does not hide behind the others. The check executes the program many times and
//! has no other effect.

mod difference;
mod double;
mod elements;
mod programs;

use crate::error::{Error, Report};
use crate::inputs::Inputs;
use crate::locate::{self, Fault};
use crate::options::{Gradient, Mode, Options};
use crate::packed;
use crate::program::Program;
use difference::{Difference, Precision};
use elements::{flat, index, like, numbers, place};
use itertools::Itertools as _;
use programs::Programs;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use taffeta_ast::{DType, Diagnostic, Func, Value};
use taffeta_codegen::Signature;

/// Amount and randomness of the samples.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sampling {
    /// Seed of the random number generator.
    pub seed: u64,
    /// Number of rounds, each with random seeds of the results and one direction that changes all elements.
    pub rounds: usize,
    /// Number of directions per round that change a single element.
    pub elements: usize,
    /// Threads of parallel loops; 0 lets OpenMP decide.
    pub threads: u32,
}

impl Sampling {
    /// Sets the seed of the random number generator, which draws seeds of results, directions and elements.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Sampling {
        self.seed = seed;
        self
    }

    /// Sets the number of rounds, each with random seeds of the results and one direction that changes all elements.
    #[must_use]
    pub fn rounds(mut self, rounds: usize) -> Sampling {
        self.rounds = rounds;
        self
    }

    /// Sets the number of directions per round that change a single element.
    #[must_use]
    pub fn elements(mut self, elements: usize) -> Sampling {
        self.elements = elements;
        self
    }

    /// Sets the number of threads; 0 lets OpenMP decide.
    #[must_use]
    pub fn threads(mut self, threads: u32) -> Sampling {
        self.threads = threads;
        self
    }
}

impl Default for Sampling {
    fn default() -> Sampling {
        Sampling { seed: 0, rounds: 4, elements: 4, threads: 0 }
    }
}

/// Verdict of a comparison, in ascending order of severity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// All three derivatives are equal within tolerance.
    Agrees,
    /// Forward and reverse mode agree; finite differences are too inexact to decide.
    Unclear,
    /// Forward and reverse mode agree, without a derivative to compare with: the program has a kink, jumps, or is
    /// undefined next to the point.
    Kink,
    /// Forward and reverse mode agree with each other, but not with finite differences.
    Wrong,
    /// Forward and reverse mode disagree.
    Modes,
}

impl Verdict {
    /// Returns whether the verdict refutes the gradient.
    pub fn is_wrong(self) -> bool {
        self >= Verdict::Wrong
    }

    /// Returns the printed form.
    pub fn text(self) -> &'static str {
        match self {
            Verdict::Agrees => "agrees",
            Verdict::Unclear => "unclear",
            Verdict::Kink => "kink",
            Verdict::Wrong | Verdict::Modes => "wrong",
        }
    }
}

/// The three derivatives in one direction.
#[derive(Clone, Debug, PartialEq)]
pub struct DirectionCheck {
    /// Index of the only element that changes; `None` if all do.
    pub element: Option<Vec<usize>>,
    /// Derivative by finite differences; NaN unless the program has finite results on both sides.
    pub differences: f64,
    /// Derivative by forward mode.
    pub forward: f64,
    /// Derivative by reverse mode.
    pub reverse: f64,
    /// Distance between finite differences and reverse mode, relative to the summed terms.
    pub differences_error: f64,
    /// Distance between forward and reverse mode, relative to the summed terms.
    pub modes_error: f64,
    /// Verdict of the comparison.
    pub verdict: Verdict,
    /// Whether an f64 version of the program shows that the disagreement is rounding in f32.
    pub rounding: bool,
}

/// Check of one input.
#[derive(Clone, Debug, PartialEq)]
pub struct InputCheck {
    /// Name of the parameter.
    pub name: String,
    /// Directions compared.
    pub directions: Vec<DirectionCheck>,
    /// Largest error of finite differences that counts as agreement.
    pub differences_tolerance: f64,
    /// Largest error between the modes that counts as agreement.
    pub modes_tolerance: f64,
}

impl InputCheck {
    /// Returns the worst verdict.
    pub fn verdict(&self) -> Verdict {
        self.worst().map_or(Verdict::Agrees, |d| d.verdict)
    }

    /// Returns the direction with the worst verdict, and among these with the largest error; `None` without directions.
    pub fn worst(&self) -> Option<&DirectionCheck> {
        // Errors of similar magnitude tie, so that rounding does not decide which direction is shown.
        let magnitude = |error: f64, tolerance: f64| match error / tolerance {
            e if e.is_nan() => i32::MAX,
            e if e <= 1.0 => 0,
            e => (8.0 * e.log2()).round() as i32,
        };
        let error = |d: &DirectionCheck| {
            let differences = magnitude(d.differences_error, self.differences_tolerance);
            differences.max(magnitude(d.modes_error, self.modes_tolerance))
        };
        // If all derivatives agree, a direction of all elements is more informative; at a kink, a single element is.
        let telling = |d: &DirectionCheck| match d.verdict {
            Verdict::Agrees => d.element.is_none(),
            Verdict::Kink => d.element.is_some(),
            _ => false,
        };
        self.directions.iter().rev().max_by_key(|d| (d.verdict, telling(d), error(d)))
    }
}

/// Compares the gradient of an entry at a point with finite differences and with forward mode, separately for each
/// parameter of `options.gradient.wrt` (by default, each floating-point parameter).
///
/// ```
/// use taffeta::{Options, Program, Sampling, Verdict};
/// let program = Program::from_source("p.ft", "
/// def loss(w: f64[n], x: f64[n]) -> f64:
///     s: f64 = 0.0
///     for i in range(n):
///         s += exp(w[i] * x[i])
///     return s
/// ")?;
/// let options = Options::default();
/// let signature = program.compile("loss", &options)?.signature().clone();
/// let given = [("w".into(), "[0.5, -1]".into()), ("x".into(), "randn".into())];
/// let inputs = taffeta::inputs::read(&signature, &given, &[]).expect("they fit");
/// for input in taffeta::check_gradient(&program, "loss", &options, &inputs, &Sampling::default())? {
///     assert_eq!(input.verdict(), Verdict::Agrees);
/// }
/// # Ok::<(), taffeta::Error>(())
/// ```
///
/// # Errors
///
/// Programs that cannot be differentiated; inputs or results with NaN or infinities; and run-time errors of the
/// program.
pub fn check_gradient(
    program: &Program,
    entry: &str,
    options: &Options,
    inputs: &Inputs,
    sampling: &Sampling,
) -> Result<Vec<InputCheck>, Error> {
    let asked = options.gradient.clone().unwrap_or_default();
    let plain = Options { gradient: None, ..options.clone() };
    let func = program.logical(entry, &plain)?;
    let wrong = |d: Diagnostic| Error::program(d.into(), program.sources());
    let precision = precision(&func).map_err(wrong)?;
    let wrt = wrt(&func, &asked).map_err(wrong)?;
    refuse_infinities(&func, inputs)
        .map_err(|faults| Error::Input(locate::report(faults, program.sources(), entry)))?;
    let gradient = Gradient { wrt: wrt.clone(), mode: Mode::Reverse, ..asked };
    let reverse = Options { gradient: Some(gradient.clone()), ..plain.clone() };
    // Structured inputs change only at their stored elements.
    let signature = Signature::of(&func, &Default::default());
    let values = packed::stored(&signature, &inputs.values)?;
    let inputs = &Inputs { values, sizes: inputs.sizes.clone() };
    let position = |name: &String| func.params.iter().position(|p| p.tensor.symbol.name() == name);
    let programs = Programs {
        // The program runs many times, and its output is of no interest.
        value: program.compile(entry, &plain)?.on_print(|_| {}),
        // For a function with a user-defined gradient, these are the tangents of its body, with which the gradient must
        // agree.
        forward: program.tangents(entry, &plain, &gradient)?.on_print(|_| {}),
        reverse: program.compile(entry, &reverse)?.on_print(|_| {}),
        wrt: wrt.iter().filter_map(position).collect(),
        inputs,
        threads: sampling.threads,
    };
    let mut found = Checker { programs: &programs, precision, sampling }.run(&wrt)?;
    let wrong = found.iter().any(|check| check.verdict().is_wrong());
    // A user-defined backward pass is not in the f64 version of the program.
    if wrong && precision == Precision::SINGLE && program.custom_vjps(entry, &plain)?.is_empty() {
        double::second_opinion(&func, &reverse, inputs, sampling, &mut found);
    }
    Ok(found)
}

/// Returns the parameters to differentiate by. Both parameters and results must include floats.
fn wrt(func: &Func, asked: &Gradient) -> Result<Vec<String>, Diagnostic> {
    let floats = || func.params.iter().filter(|p| p.tensor.dtype.is_float());
    let all: Vec<String> = floats().map(|p| p.tensor.symbol.name().to_string()).collect();
    let inouts = floats().any(|p| p.mode == taffeta_ast::ParamMode::InOut);
    if all.is_empty() {
        return Err(Diagnostic::new("grad::wrt", format!("`{}` has no floating-point parameters", func.name)));
    }
    if !inouts && func.results.iter().all(|t| !t.dtype.is_float()) {
        return Err(Diagnostic::new("grad::result", format!("`{}` has no floating-point results", func.name)));
    }
    Ok(if asked.wrt.is_empty() { all } else { asked.wrt.clone() })
}

/// Returns the precision of the program's arithmetic; refuses half precision.
fn precision(func: &Func) -> Result<Precision, Diagnostic> {
    let mut found: Vec<DType> = func.interface().map(|t| t.dtype).collect();
    func.body.walk_exprs(&mut |e| found.push(e.dtype()));
    if let Some(half) = found.iter().find(|d| matches!(d, DType::F16 | DType::Bf16)) {
        let message = format!("`{}` computes in {half}, which is too coarse for finite differences", func.name);
        return Err(Diagnostic::new("grad::half", message).help("check the same program in f32 or f64"));
    }
    Ok(if found.contains(&DType::F32) { Precision::SINGLE } else { Precision::DOUBLE })
}

/// Refuses inputs with NaN or infinities, where no derivative exists.
fn refuse_infinities(func: &Func, inputs: &Inputs) -> Result<(), Vec<Fault>> {
    let mut faults = Vec::new();
    for (p, value) in func.params.iter().zip_eq(&inputs.values) {
        let name = p.tensor.symbol.name();
        if let Some((k, v)) = numbers(value).into_iter().enumerate().find(|(_, v)| !v.is_finite()) {
            let message = format!("{} is {}: there is no derivative at this point", place(name, value, k), shown(v));
            let d = Diagnostic::new("grad::input", message).help("give finite numbers");
            faults.push(Fault::of(name, None, d));
        }
    }
    if faults.is_empty() { Ok(()) } else { Err(faults) }
}

struct Checker<'a> {
    programs: &'a Programs<'a>,
    precision: Precision,
    sampling: &'a Sampling,
}

impl Checker<'_> {
    fn run(&self, wrt: &[String]) -> Result<Vec<InputCheck>, Error> {
        let mut rng = ChaCha8Rng::seed_from_u64(self.sampling.seed);
        let base = self.programs.value(None)?;
        self.refuse_results(&base)?;
        let mut found: Vec<InputCheck> = wrt.iter().map(|name| self.no_directions(name)).collect();
        let orders: Vec<Vec<usize>> = (0..wrt.len()).map(|k| self.elements(k, &mut rng)).collect();
        for round in 0..self.sampling.rounds {
            let random = |value: &Value| {
                let seeds = (0..elements::count(value)).map(|_| signed(&mut rng)).collect();
                like(value, seeds)
            };
            let seeds: Vec<Value> = base.iter().map(random).collect();
            let gradients = self.programs.gradients(&seeds)?;
            for (input, (check, order)) in found.iter_mut().zip(&orders).enumerate() {
                let x = self.programs.input(input);
                // Magnitude of each element, at least 1: steps are small relative to large elements.
                let sizes: Vec<f64> = numbers(x).iter().map(|v| v.abs().max(1.0)).collect();
                let all = sizes.iter().map(|size| size * signed(&mut rng)).collect();
                let mut directions = vec![(None, all)];
                for k in order.iter().skip(round * self.sampling.elements).take(self.sampling.elements) {
                    let mut one = vec![0.0; sizes.len()];
                    one[*k] = sizes[*k];
                    directions.push((Some(index(x, *k)), one));
                }
                for (element, direction) in directions {
                    let gradient = numbers(&gradients[input]);
                    let point = Point { input, base: &base, seeds: &seeds, gradient: &gradient, direction };
                    check.directions.push(self.direction(&point, element)?);
                }
            }
        }
        Ok(found)
    }

    fn no_directions(&self, name: &str) -> InputCheck {
        InputCheck {
            name: name.to_string(),
            directions: Vec::new(),
            differences_tolerance: self.precision.differences,
            modes_tolerance: self.precision.modes,
        }
    }

    /// Draws random elements for the single-element directions, without repetition.
    fn elements(&self, input: usize, rng: &mut ChaCha8Rng) -> Vec<usize> {
        let n = elements::count(self.programs.input(input));
        let wanted = self.sampling.rounds * self.sampling.elements;
        rand::seq::index::sample(rng, n, wanted.min(n)).into_vec()
    }

    fn direction(&self, at: &Point<'_>, element: Option<Vec<usize>>) -> Result<DirectionCheck, Error> {
        let input = self.programs.input(at.input);
        let tangents = flat(&self.programs.tangents(at.input, &like(input, at.direction.clone()))?);
        let (base, seeds) = (flat(at.base), flat(at.seeds));
        let forward: Vec<f64> = tangents.iter().zip_eq(&seeds).map(|(t, s)| t * s).collect();
        let reverse: Vec<f64> = at.gradient.iter().zip_eq(&at.direction).map(|(g, d)| product(*g, *d)).collect();
        let x = numbers(input);
        let value = |h: f64| {
            let moved = x.iter().zip_eq(&at.direction).map(|(x, d)| x + h * d).collect();
            match self.programs.value(Some((at.input, like(input, moved)))) {
                Ok(results) => Ok(flat(&results)),
                // A program that stops next to the point is undefined there.
                Err(Error::Run(_)) => Ok(vec![f64::NAN; base.len()]),
                Err(e) => Err(e),
            }
        };
        let found = difference::along(value, &base, &seeds, &self.steps(&x), &self.precision)?;
        let size = base.iter().zip_eq(&seeds).map(|(b, s)| (b * s).abs()).sum();
        let finite_gradient = at.gradient.iter().all(|g| g.is_finite());
        Ok(compare(element, found, (&forward, &reverse), finite_gradient, size, &self.precision))
    }

    /// Returns the initial steps of finite differences, with a smaller one if all numbers of the input are small.
    fn steps(&self, x: &[f64]) -> Vec<f64> {
        let largest = x.iter().fold(0f64, |a, v| a.max(v.abs()));
        let small = (largest > 0.0 && largest < 0.1).then_some(self.precision.steps[0] * largest);
        self.precision.steps.into_iter().chain(small).collect()
    }

    /// Refuses results with NaN or infinities, which have no derivative.
    fn refuse_results(&self, base: &[Value]) -> Result<(), Error> {
        for (sig, value) in self.programs.outputs().zip_eq(base) {
            if let Some((k, v)) = numbers(value).into_iter().enumerate().find(|(_, v)| !v.is_finite()) {
                let place = place(&sig.name, value, k);
                let message = format!("{place} is {}: there is no derivative at this point", shown(v));
                let d = Diagnostic::new("grad::point", message)
                    .help("give inputs for which all results are finite, for example --in NAME=rand");
                return Err(Error::Run(Report::without_sources(vec![d])));
            }
        }
        Ok(())
    }
}

/// Point and direction of a comparison, with the results, their seeds and the gradient at the point.
struct Point<'a> {
    input: usize,
    base: &'a [Value],
    seeds: &'a [Value],
    gradient: &'a [f64],
    direction: Vec<f64>,
}

/// Determines the verdict. `forward` and `reverse` are the terms of the two sums, `size` is the sum of the absolute
/// results.
fn compare(
    element: Option<Vec<usize>>,
    found: Option<Difference>,
    (forward, reverse): (&[f64], &[f64]),
    finite_gradient: bool,
    size: f64,
    precision: &Precision,
) -> DirectionCheck {
    let terms = |of: &[f64]| of.iter().map(|v| v.abs()).filter(|v| v.is_finite()).sum::<f64>();
    let modes_scale = terms(forward).max(terms(reverse));
    // An empty sum is -0; adding 0 makes it 0.
    let (forward, reverse) = (forward.iter().sum::<f64>() + 0.0, reverse.iter().sum::<f64>() + 0.0);
    let relative = |apart: f64, scale: f64| if apart == 0.0 { 0.0 } else { apart / scale };
    let modes = (forward - reverse).abs();
    // Sums inside the program are not visible here; a derivative that is negligible beside the results may be rounding
    // error.
    let nothing = 100.0 * precision.epsilon * size;
    let modes_agree = match (forward.is_finite(), reverse.is_finite()) {
        (true, true) => modes <= precision.modes * modes_scale + nothing,
        // Zero tangents become NaN where another element has an infinite derivative, so forward mode says nothing.
        (false, true) => !finite_gradient,
        (false, false) => true,
        (true, false) => false,
    };
    let scale = found.map_or(0.0, |d| d.scale).max(modes_scale);
    let apart = found.map_or(f64::NAN, |d| (d.value - reverse).abs());
    let verdict = match found {
        _ if !modes_agree => Verdict::Modes,
        None => Verdict::Kink,
        Some(d) if d.kink => Verdict::Kink,
        Some(_) if !reverse.is_finite() => Verdict::Wrong,
        Some(d) => {
            let allowed = precision.differences * scale + 16.0 * d.rounding;
            let drowns = 16.0 * d.rounding > scale / 2.0 && modes_scale > nothing;
            match apart {
                a if a > allowed + 16.0 * d.estimate + 4.0 * d.spread => Verdict::Wrong,
                a if a > allowed || drowns => Verdict::Unclear,
                _ => Verdict::Agrees,
            }
        }
    };
    DirectionCheck {
        element,
        differences: found.map_or(f64::NAN, |d| d.value),
        forward,
        reverse,
        differences_error: relative(apart, scale),
        modes_error: relative(modes, modes_scale),
        verdict,
        rounding: false,
    }
}

/// Draws a number of random sign and magnitude between 0.5 and 1, so that no element is negligible.
fn signed(rng: &mut ChaCha8Rng) -> f64 {
    let size = rng.random_range(0.5..1.0);
    if rng.random::<bool>() { size } else { -size }
}

/// Multiplies a gradient by a direction; an unchanged element contributes 0 even to an infinite gradient.
fn product(gradient: f64, direction: f64) -> f64 {
    if direction == 0.0 { 0.0 } else { gradient * direction }
}

fn shown(v: f64) -> &'static str {
    if v.is_nan() {
        "NaN"
    } else if v > 0.0 {
        "infinite"
    } else {
        "minus infinity"
    }
}

#[cfg(test)]
mod tests;
