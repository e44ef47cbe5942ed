//! Properties of every gradient, whatever the program is.

use itertools::Itertools as _;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeMap;
use taffeta_ast::func::ParamMode;
use taffeta_ast::interp::{self, Inputs};
use taffeta_ast::{Buffer, Func, Tensor, Value, print};
use taffeta_autodiff::memory::Sizes;
use taffeta_autodiff::{Kind, Request, Tape, differentiate, explain};
use taffeta_frontend::{NoHooks, NoLoader, Program, Source};

/// Elaborates the last entry of a text.
pub fn program(text: &str) -> Func {
    let program = Program::load(Source::inline("test.ft", text), &NoLoader);
    let name = program
        .entries()
        .last()
        .unwrap_or_else(|| panic!("no entry in {text}: {:?}", program.check(&NoHooks)))
        .name
        .clone();
    program.elaborate(&name, &BTreeMap::new(), &NoHooks).unwrap_or_else(|d| panic!("{d}\n{text}"))
}

/// Differentiates a program with respect to all its float parameters.
pub fn derivative(func: &Func, kind: Kind, tape: Tape) -> Func {
    let wrt: Vec<String> = floats(func).map(|t| t.symbol.name().to_string()).collect();
    let request = Request { tape, ..Request::new(kind, "derivative", func, &wrt) };
    differentiate(&request).unwrap_or_else(|d| panic!("{d}\n{}", print::func(func)))
}

fn floats(func: &Func) -> impl Iterator<Item = &std::sync::Arc<Tensor>> {
    func.params.iter().map(|p| &p.tensor).filter(|t| t.dtype.is_float())
}

fn run(func: &Func, params: &[Value], sizes: &BTreeMap<String, i64>) -> interp::Outputs {
    let inputs = Inputs { params: params.to_vec(), sizes: sizes.clone() };
    interp::run(func, &inputs).unwrap_or_else(|e| panic!("{e:?}\n{}", print::func(func)))
}

fn with(v: &Value, numbers: Vec<f64>) -> Value {
    v.with_numbers(numbers).expect("as many floats")
}

fn random(like: &Value, rng: &mut ChaCha8Rng) -> Value {
    with(like, like.numbers().iter().map(|_| rng.random_range(-1.0..1.0)).collect())
}

fn dot(a: &[Value], b: &[Value]) -> f64 {
    a.iter().zip_eq(b).flat_map(|(a, b)| a.numbers().into_iter().zip_eq(b.numbers())).map(|(x, y)| x * y).sum()
}

/// Returns the results and the final values of `inout` parameters that are floats, in the order of the seeds.
fn outcome(func: &Func, out: &interp::Outputs) -> Vec<Value> {
    let inouts = func.params.iter().zip_eq(&out.params).filter(|(p, _)| p.mode == ParamMode::InOut);
    let results = func.results.iter().zip_eq(&out.results).filter(|(t, _)| t.dtype.is_float()).map(|(_, v)| v.clone());
    let inouts = inouts.filter(|(p, _)| p.tensor.dtype.is_float()).map(|(_, v)| v.clone());
    results.chain(inouts).collect()
}

/// Checks that the gradients of a program at a point agree: by `vjp` with every choice of tapes, by `jvp`, and by
/// finite differences.
pub fn check(text: &str, params: &[Value], sizes: &[(&str, i64)]) {
    check_func(&program(text), params, &sizes.iter().map(|(n, v)| (n.to_string(), *v)).collect(), 1);
}

pub fn check_func(func: &Func, params: &[Value], sizes: &BTreeMap<String, i64>, seed: u64) {
    let names = floats(func).map(|t| t.symbol.name().to_string()).collect();
    check_tapes(func, params, sizes, seed, &[Tape::All, Tape::None, Tape::Auto, Tape::Named(names)]);
}

/// Checks gradients as [`check`] does, with some choices of tapes.
pub fn check_tapes(func: &Func, params: &[Value], sizes: &BTreeMap<String, i64>, seed: u64, tapes: &[Tape]) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let before = run(func, params, sizes);
    let outputs = outcome(func, &before);
    let seeds: Vec<Value> = outputs.iter().map(|v| random(v, &mut rng)).collect();
    let inputs: Vec<usize> = (0..params.len()).filter(|k| func.params[*k].tensor.dtype.is_float()).collect();
    let directions: Vec<Value> = inputs.iter().map(|k| random(&params[*k], &mut rng)).collect();

    // Finite differences in a random direction, extrapolated from two steps.
    let step = 1e-5;
    let moved = |by: f64| {
        let mut at = params.to_vec();
        for (k, d) in inputs.iter().zip_eq(&directions) {
            let sum = params[*k].numbers().iter().zip_eq(d.numbers()).map(|(x, d)| x + by * d).collect();
            at[*k] = with(&params[*k], sum);
        }
        dot(&outcome(func, &run(func, &at, sizes)), &seeds)
    };
    let wide = (moved(step) - moved(-step)) / (2.0 * step);
    let narrow = (moved(step / 2.0) - moved(-step / 2.0)) / step;
    let expected = narrow + (narrow - wide) / 3.0;

    // Forward mode. The tangents of `inout` parameters are in the order of these parameters.
    let jvp = derivative(func, Kind::Jvp, Tape::Auto);
    let given: Vec<Value> = params.iter().chain(&directions).cloned().collect();
    let out = run(&jvp, &given, sizes);
    let mut tangents = out.results.clone();
    for (p, v) in jvp.params.iter().zip_eq(&out.params).skip(params.len()) {
        if p.mode == ParamMode::InOut {
            tangents.push(v.clone());
        }
    }
    let forward = dot(&tangents, &seeds);
    let close = |a: f64, b: f64, tolerance: f64| (a - b).abs() <= tolerance * (1.0 + a.abs().max(b.abs()));
    assert!(close(expected, forward, 1e-6), "finite differences {expected}, forward {forward}\n{}", print::func(&jvp));

    // Reverse mode.
    let names: Vec<String> = inputs.iter().map(|k| func.params[*k].tensor.symbol.name().to_string()).collect();
    for tape in tapes {
        let vjp = derivative(func, Kind::Vjp, tape.clone());
        let given: Vec<Value> = params.iter().chain(&seeds).cloned().collect();
        let out = run(&vjp, &given, sizes);
        let gradients: Vec<Value> = names.iter().map(|n| answer(&vjp, &out, n)).collect();
        let reverse = dot(&gradients, &directions);
        assert!(
            close(forward, reverse, 1e-9),
            "forward {forward}, reverse {reverse}, tape {tape:?}\n{}\n{}",
            print::func(func),
            print::func(&vjp)
        );
    }
}

/// Returns random floats of a shape.
pub fn floats_of(shape: &[usize], seed: u64) -> Value {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let n = shape.iter().product();
    let data = Buffer::F64((0..n).map(|_| rng.random_range(0.1..1.5)).collect());
    Value::new(shape.to_vec(), data).expect("as many")
}

/// Returns integers of a shape.
pub fn ints(shape: &[usize], data: &[i32]) -> Value {
    Value::new(shape.to_vec(), Buffer::I32(data.to_vec())).expect("as many")
}

/// Returns whether the gradients of a random program could be compared; panics where `<jvp(d), s>` is not
/// `<d, vjp(s)>`. A program whose values cannot be kept is refused, and one whose values or gradients are not finite is
/// skipped.
pub fn transposed(func: &Func, inputs: &Inputs, seed: u64) -> bool {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let Ok(before) = interp::run(func, inputs) else { return false };
    let outputs = outcome(func, &before);
    let asked: Vec<usize> = (0..inputs.params.len()).filter(|k| func.params[*k].tensor.dtype.is_float()).collect();
    if asked.is_empty() || outputs.is_empty() {
        return false;
    }
    let integer = |v: &Value, rng: &mut ChaCha8Rng| {
        with(v, v.numbers().iter().map(|_| f64::from(rng.random_range(-2i32..3))).collect())
    };
    let seeds: Vec<Value> = outputs.iter().map(|v| integer(v, &mut rng)).collect();
    let directions: Vec<Value> = asked.iter().map(|k| integer(&inputs.params[*k], &mut rng)).collect();
    let jvp = derivative(func, Kind::Jvp, Tape::Auto);
    let given = Inputs { params: inputs.params.iter().chain(&directions).cloned().collect(), ..inputs.clone() };
    let out = interp::run(&jvp, &given).unwrap_or_else(|e| panic!("seed {seed}: {e:?}\n{}", print::func(&jvp)));
    let written =
        jvp.params.iter().zip_eq(&out.params).skip(inputs.params.len()).filter(|(p, _)| p.mode == ParamMode::InOut);
    let tangents: Vec<Value> = out.results.iter().chain(written.map(|(_, v)| v)).cloned().collect();
    // Elements that the program never wrote have no defined value.
    if before.unwritten.iter().any(|u| !u.is_empty()) {
        return false;
    }
    let forward = dot(&tangents, &seeds);
    let mut compared = false;
    let sizes: Sizes = inputs.sizes.iter().map(|(name, n)| (name.clone(), *n)).collect();
    let mut plans = vec![(Tape::None, None), (Tape::All, None), (Tape::Auto, None)];
    let mut first = true;
    while let Some((tape, memory)) = plans.pop() {
        let wrt: Vec<String> = floats(func).map(|t| t.symbol.name().to_string()).collect();
        let sizes = sizes.clone();
        let request = Request { tape: tape.clone(), memory, sizes, ..Request::new(Kind::Vjp, "vjp", func, &wrt) };
        let vjp = match explain(&request) {
            Ok((vjp, explanation)) => {
                if let (true, Ok(peak)) = (std::mem::take(&mut first), &explanation.peak) {
                    // Budgets below the peak: tapes are recomputed, loops run from checkpoints.
                    plans.extend([peak.saturating_sub(1), peak / 2].map(|budget| (Tape::Auto, Some(budget))));
                }
                vjp
            }
            Err(d) => {
                let codes = ["grad::versions", "grad::memory"];
                assert!(d.0.iter().all(|d| codes.contains(&d.code)), "seed {seed}: {d}");
                continue;
            }
        };
        let given = Inputs { params: inputs.params.iter().chain(&seeds).cloned().collect(), ..inputs.clone() };
        let out = interp::run(&vjp, &given)
            .unwrap_or_else(|e| panic!("seed {seed}: {e:?}\n{}\n{}", print::func(func), print::func(&vjp)));
        let gradients: Vec<Value> = wrt.iter().map(|n| answer(&vjp, &out, n)).collect();
        let reverse = dot(&gradients, &directions);
        let all = gradients.iter().chain(&tangents).chain(&outputs).flat_map(Value::numbers);
        let largest = all.fold(0.0f64, |a, b| if b.is_finite() { a.max(b.abs()) } else { f64::INFINITY });
        if largest > 1e9 {
            continue;
        }
        compared = true;
        assert!(
            (forward - reverse).abs() <= 1e-6 * (1.0 + largest),
            "seed {seed}: forward {forward}, reverse {reverse}, tape {tape:?}, memory {memory:?}\n{}\n{}",
            print::func(func),
            print::func(&vjp)
        );
    }
    compared
}

/// Returns the gradient with respect to a parameter.
fn answer(vjp: &Func, out: &interp::Outputs, name: &str) -> Value {
    let name = format!("{name}.grad");
    let result = vjp.results.iter().position(|t| t.symbol.name() == name).map(|k| out.results[k].clone());
    let param = vjp.params.iter().position(|p| p.tensor.symbol.name() == name).map(|k| out.params[k].clone());
    result.or(param).unwrap_or_else(|| panic!("no {name} in {}", print::func(vjp)))
}
