//! Gradients of every program in the repository that has one: reverse mode is the transpose of forward mode, whatever
//! is kept for it, and compiled C computes what the interpreter does.

use crate::case::{Case, Named};
use crate::differential::all_programs;
use crate::programs;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use taffeta::{Backend, Gradient, Options, Tape};
use taffeta_ast::func::ParamMode;
use taffeta_ast::interp::{self, Inputs};
use taffeta_ast::{Buffer, DType, Func, Value};
use taffeta_autodiff::memory::Sizes;
use taffeta_autodiff::{Kind, Request, explain};

/// What came of a case.
enum Outcome {
    /// It has no floats to differentiate by, or none as results.
    Nothing,
    /// Values are needed of which it is not known how many there are.
    Refused(String),
    Compared,
    Wrong(String),
}

fn floats(func: &Func) -> Vec<String> {
    let float = |p: &&taffeta_ast::Param| p.tensor.dtype.is_float();
    func.params.iter().filter(float).map(|p| p.tensor.symbol.name().to_string()).collect()
}

/// Results and `inout` parameters of floats.
fn outputs(func: &Func) -> usize {
    let inouts = func.params.iter().filter(|p| p.mode == ParamMode::InOut && p.tensor.dtype.is_float()).count();
    func.results.iter().filter(|t| t.dtype.is_float()).count() + inouts
}

fn random(like: &Value, rng: &mut ChaCha8Rng) -> Value {
    like.with_numbers(like.numbers().iter().map(|_| rng.random_range(-1.0..1.0)).collect()).expect("as many floats")
}

fn dot(a: &[Value], b: &[Value]) -> f64 {
    a.iter().zip(b).flat_map(|(a, b)| a.numbers().into_iter().zip(b.numbers())).map(|(x, y)| x * y).sum()
}

/// The program, with inputs for it.
fn logical(case: &Case<'_>) -> (Func, Inputs) {
    let file = taffeta::Program::load(&case.program.path).unwrap_or_else(|e| panic!("{e}"));
    let plain = case.options().schedule(None);
    let func = file.logical(&case.entry, &plain).unwrap_or_else(|e| panic!("{e}"));
    let (function, inputs) = case.compile(Backend::Interp, true).unwrap_or_else(|e| panic!("{e}"));
    let sizes = function.signature().sizes.iter().map(|s| s.name.clone()).zip(inputs.sizes).collect();
    (func, Inputs { sizes, params: inputs.values })
}

/// What is wrong with the text of a gradient: it is a program that means the same.
fn unlike(func: &Func) -> Option<String> {
    let text = taffeta_ast::print::func(func);
    let again = taffeta::Program::from_source("printed.ft", &text).map_err(|e| e.to_string());
    let again = again.and_then(|p| p.logical(&func.name, &Options::default()).map_err(|e| e.to_string()));
    match again {
        // `x.grad` is called `x_grad` in the text.
        Ok(again) if taffeta_ast::print::func(&again) == text => None,
        Ok(again) => {
            Some(format!("printed and read again it is another program:\n{text}\n{}", taffeta_ast::print::func(&again)))
        }
        // A tape that is as long as a number that the caller gives (`steps: i32`) is nothing that people may write.
        Err(e) if e.contains("shape::data") => None,
        Err(e) => Some(format!("its text is not a program: {e}\n{text}")),
    }
}

/// Budgets for a gradient that takes so many bytes without one: tapes are computed again, and loops run from
/// checkpoints.
fn budgets(peak: u64) -> Vec<(Tape, Option<u64>)> {
    if peak == 0 {
        return Vec::new();
    }
    vec![(Tape::All, Some(peak - 1)), (Tape::Auto, Some(peak / 3))]
}

/// `<jvp(d), s> = <d, vjp(s)>` by the interpreter.
fn transposed(case: &Case<'_>) -> Outcome {
    let (func, inputs) = logical(case);
    let wrt = floats(&func);
    // Halves are too coarse to compare, and of NaN there is nothing to compare.
    let mut halves = func.interface().any(|t| matches!(t.dtype, DType::F16 | DType::Bf16));
    func.body.walk_exprs(&mut |e| halves |= matches!(e.dtype(), DType::F16 | DType::Bf16));
    let finite = inputs.params.iter().flat_map(Value::numbers).all(f64::is_finite);
    if wrt.is_empty() || outputs(&func) == 0 || halves || !finite {
        return Outcome::Nothing;
    }
    let f32s = func.interface().any(|t| t.dtype == DType::F32);
    let named = inputs.sizes.iter().map(|(name, n)| (name.clone(), *n));
    let single = func.params.iter().zip(&inputs.params).filter(|(p, _)| p.tensor.ndim() == 0);
    let integers = single
        .filter_map(|(p, v)| Some((p.tensor.symbol.name().to_string(), i64::try_from(v.data().get_int(0)?).ok()?)));
    let sizes: Sizes = named.chain(integers).collect();
    let derive = |kind, tape, memory| {
        let sizes = sizes.clone();
        explain(&Request { tape, memory, sizes, ..Request::new(kind, "gradient_of_it", &func, &wrt) })
    };
    let run = |f: &Func, more: &[Value]| {
        let params = inputs.params.iter().chain(more).cloned().collect();
        interp::run(f, &Inputs { params, ..inputs.clone() })
    };
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let float = |p: &taffeta_ast::Param| p.tensor.dtype.is_float();
    let by: Vec<usize> = (0..func.params.len()).filter(|k| float(&func.params[*k])).collect();
    let directions: Vec<Value> = by.iter().map(|k| random(&inputs.params[*k], &mut rng)).collect();
    let jvp = match derive(Kind::Jvp, Tape::Auto, None) {
        Ok((jvp, _)) => jvp,
        Err(d) => return Outcome::Wrong(d.to_string()),
    };
    let out = run(&jvp, &directions).unwrap_or_else(|e| panic!("{}: {e:?}", case.command));
    let changed =
        jvp.params.iter().zip(&out.params).skip(func.params.len()).filter(|(p, _)| p.mode == ParamMode::InOut);
    let tangents: Vec<Value> = out.results.iter().chain(changed.map(|(_, v)| v)).cloned().collect();
    let seeds: Vec<Value> = tangents.iter().map(|v| random(v, &mut rng)).collect();
    let forward = dot(&tangents, &seeds);
    let mut outcome = Outcome::Nothing;
    let mut plans = vec![(Tape::All, None), (Tape::None, None), (Tape::Auto, None)];
    let mut within = false;
    while let Some((tape, memory)) = plans.pop() {
        let vjp = match derive(Kind::Vjp, tape.clone(), memory) {
            Ok((vjp, explanation)) => {
                let peak = explanation.peak;
                match memory {
                    None if !within => plans.extend(peak.iter().flat_map(|p| budgets(*p))),
                    Some(budget) if peak.as_ref().is_ok_and(|p| *p > budget) => {
                        return Outcome::Wrong(format!("{peak:?} bytes within a budget of {budget}"));
                    }
                    _ => {}
                }
                within = true;
                vjp
            }
            Err(d) if memory.is_some() && d.0.iter().all(|d| d.code == "grad::memory") => continue,
            Err(d) if d.0.iter().all(|d| d.code == "grad::versions") => {
                outcome = Outcome::Refused(d.0[0].message.clone());
                continue;
            }
            Err(d) => return Outcome::Wrong(d.to_string()),
        };
        if let Some(wrong) = unlike(&vjp) {
            return Outcome::Wrong(wrong);
        }
        let out = run(&vjp, &seeds).unwrap_or_else(|e| panic!("{}: {e:?}", case.command));
        let all: Vec<(&str, &Value)> = vjp
            .results
            .iter()
            .map(|t| t.symbol.name())
            .zip(&out.results)
            .chain(vjp.params.iter().map(|p| p.tensor.symbol.name()).zip(&out.params))
            .collect();
        let of = |name: &String| all.iter().find(|(n, _)| *n == format!("{name}.grad")).map(|(_, v)| (*v).clone());
        let gradients: Vec<Value> = wrt.iter().map(|n| of(n).expect("it was asked for")).collect();
        let reverse = dot(&gradients, &directions);
        let parts = |a: &[Value], b: &[Value]| -> f64 {
            a.iter()
                .zip(b)
                .flat_map(|(a, b)| a.numbers().into_iter().zip(b.numbers()))
                .map(|(x, y)| (x * y).abs())
                .sum()
        };
        let scale = parts(&tangents, &seeds).max(parts(&gradients, &directions));
        let tolerance = if f32s { 1e-3 } else { 1e-9 } * (scale + 1e-30);
        if scale.is_finite() && (forward - reverse).abs() > tolerance {
            return Outcome::Wrong(format!(
                "forward {forward}, reverse {reverse}, scale {scale}, tape {tape:?}, memory {memory:?}"
            ));
        }
        outcome = Outcome::Compared;
    }
    outcome
}

/// The gradient by compiled C and by the interpreter.
fn compiled(case: &Case<'_>) -> Result<(), String> {
    let run = |backend, tape: &Tape| -> Result<Vec<Named>, taffeta::Error> {
        let file = taffeta::Program::load(&case.program.path)?;
        let gradient = Some(Gradient::default().tape(tape.clone()));
        // The interpreter differentiates the program as it is written, C after its schedule.
        let schedule = case.schedule.clone().filter(|_| backend == Backend::C);
        let options = case.options().schedule(schedule.as_deref()).gradient(gradient).backend(backend);
        let function = file.compile(&case.entry, &options)?;
        let mut given = case.inputs.clone();
        // A gradient has seeds of its own among its inputs, which are given.
        let seeds = function.signature().params().filter(|p| p.name.ends_with(".grad"));
        let missing: Vec<_> =
            seeds.filter(|p| given.iter().all(|(n, _)| *n != p.name)).map(|p| p.name.clone()).collect();
        given.extend(missing.into_iter().map(|n| (n, "rand(seed=3)".to_string())));
        let inputs = taffeta::inputs::read(function.signature(), &given, &case.sizes)
            .map_err(|faults| taffeta::Error::Input(taffeta::Report::from(faults)))?;
        let ran = function.run(inputs.values, &inputs.sizes, 4)?;
        let names = function.signature().params().chain(function.signature().results()).map(|t| t.name.clone());
        Ok(names.zip(ran.params.into_iter().chain(ran.results)).collect())
    };
    for tape in [Tape::Auto, Tape::All] {
        let expected = run(Backend::Interp, &tape).map_err(|e| e.to_string())?;
        let found = run(Backend::C, &tape).map_err(|e| e.to_string())?;
        // Gradients that cancel out are as exact as those that do not.
        let all = expected.iter().filter(|(n, _)| n.ends_with(".grad")).flat_map(|(_, v)| v.numbers());
        let largest = all.filter(|v| v.is_finite()).fold(1e-30, |a: f64, b| a.max(b.abs()));
        for ((name, a), (_, b)) in expected.iter().zip(&found).filter(|((n, _), _)| n.ends_with(".grad")) {
            let tolerance = largest * if a.dtype() == DType::F64 { 1e-10 } else { 1e-4 };
            let same = |(x, y): (f64, f64)| x == y || x.is_nan() && y.is_nan() || (x - y).abs() <= tolerance;
            if !a.numbers().into_iter().zip(b.numbers()).all(same) {
                return Err(format!("`{name}`: {:?} and {:?}, tape {tape:?}", a.numbers(), b.numbers()));
            }
        }
    }
    Ok(())
}

#[test]
fn every_program_has_its_gradients() {
    let programs = all_programs();
    let cases: Vec<Case<'_>> =
        programs.iter().flat_map(|p| p.commands.iter().filter_map(move |c| Case::parse(p, c))).collect();
    let all: Vec<&Case<'_>> = cases.iter().collect();
    let outcomes = programs::for_each(&all, |case| {
        let at = |what: String| format!("{}: {}: {what}", case.program.name(), case.command);
        match transposed(case) {
            Outcome::Compared => match compiled(case) {
                Ok(()) => Outcome::Compared,
                Err(d) => Outcome::Wrong(at(format!("interpreter and C: {d}"))),
            },
            Outcome::Wrong(d) => Outcome::Wrong(at(d)),
            Outcome::Refused(d) => Outcome::Refused(at(d)),
            Outcome::Nothing => Outcome::Nothing,
        }
    });
    let (mut compared, mut wrong, mut refused) = (0, Vec::new(), Vec::new());
    for o in outcomes {
        match o {
            Outcome::Compared => compared += 1,
            Outcome::Wrong(d) => wrong.push(d),
            Outcome::Refused(d) => refused.push(d),
            Outcome::Nothing => {}
        }
    }
    assert!(wrong.is_empty(), "{}\n{} of {} are wrong", wrong.join("\n"), wrong.len(), compared + wrong.len());
    assert!(refused.is_empty(), "{}\n{} are refused", refused.join("\n"), refused.len());
    assert!(compared > 80, "only {compared} programs have gradients");
}

/// A loop on several threads whose reductions a gradient has to look into.
#[test]
fn schedules_before_gradients() {
    let text = "
def extremes(x: f64[n], w: f64) -> f64:
    top: f64 = -inf
    product: f64 = 1.0
    for i in range(n):
        top = max(top, x[i] * w)
        product *= 1.0 + x[i] / 100.0
    return top * product

@schedule(extremes)
def threads(s):
    s.parallelize(\"i\")
";
    let program = taffeta::Program::from_source("extremes.ft", text).unwrap_or_else(|e| panic!("{e}"));
    let x: Vec<f64> = (0..500).map(|k| f64::from(k * 7919 % 500) / 500.0).collect();
    let run = |schedule: Option<&str>| {
        let gradient = Some(Gradient::default());
        let options = Options::default().schedule(schedule).gradient(gradient);
        let function = program.compile("extremes", &options).unwrap_or_else(|e| panic!("{e}"));
        let values = vec![
            Value::new(vec![500], Buffer::F64(x.clone())).expect("as many"),
            Value::new(vec![], Buffer::F64(vec![1.5])).expect("one"),
            Value::new(vec![], Buffer::F64(vec![1.0])).expect("one"),
        ];
        let ran = function.run(values, &[500], 4).unwrap_or_else(|e| panic!("{e}"));
        ran.results.iter().map(Value::numbers).collect::<Vec<_>>()
    };
    for (a, b) in run(None).iter().zip(&run(Some("threads"))) {
        assert!(a.iter().zip(b).all(|(x, y)| (x - y).abs() <= 1e-9 * x.abs().max(1.0)), "{a:?} and {b:?}");
    }
}
