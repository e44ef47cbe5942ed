//! Gradients of every program in the repository that has one: reverse mode is the transpose of forward mode, whatever
//! the tape, and compiled C agrees with the interpreter.

use crate::case::{Case, Named, difference, differences, tolerance};
use crate::differential::all_programs;
use crate::programs;
use itertools::Itertools as _;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use taffeta::{Backend, Gradient, Options, Tape};
use taffeta_ast::func::ParamMode;
use taffeta_ast::interp::{self, Inputs};
use taffeta_ast::{Buffer, DType, Func, Value};
use taffeta_autodiff::memory::Sizes;
use taffeta_autodiff::{Kind, Request, explain};

/// Outcome of a case.
enum Outcome {
    /// No floats to differentiate by, or none among the results.
    Nothing,
    /// Values needed whose number is unknown.
    Refused(String),
    Compared,
    Wrong(String),
}

/// Returns whether this test differentiates by a parameter: by dense floats only.
fn is_differentiated(p: &taffeta_ast::Param) -> bool {
    p.tensor.dtype.is_float() && p.tensor.format.is_dense()
}

fn floats(func: &Func) -> Vec<String> {
    func.params.iter().filter(|p| is_differentiated(p)).map(|p| p.tensor.symbol.name().to_string()).collect()
}

/// Counts the floating-point results and `inout` parameters.
fn outputs(func: &Func) -> usize {
    let inouts = func.params.iter().filter(|p| p.mode == ParamMode::InOut && p.tensor.dtype.is_float()).count();
    func.results.iter().filter(|t| t.dtype.is_float()).count() + inouts
}

fn random(like: &Value, rng: &mut ChaCha8Rng) -> Value {
    like.with_numbers(like.numbers().iter().map(|_| rng.random_range(-1.0..1.0)).collect()).expect("as many floats")
}

fn dot(a: &[Value], b: &[Value]) -> f64 {
    a.iter().zip_eq(b).flat_map(|(a, b)| a.numbers().into_iter().zip_eq(b.numbers())).map(|(x, y)| x * y).sum()
}

/// Returns the logical program of a case, with its inputs.
fn logical(case: &Case<'_>) -> (Func, Inputs) {
    let file = taffeta::Program::load(&case.program.path).unwrap_or_else(|e| panic!("{e}"));
    let plain = case.options().schedule(None);
    let func = file.logical(&case.entry, &plain).unwrap_or_else(|e| panic!("{e}"));
    let (function, inputs) = case.compile(Backend::Interp, true).unwrap_or_else(|e| panic!("{e}"));
    let sizes = function.signature().sizes.iter().map(|s| s.name.clone()).zip_eq(inputs.sizes).collect();
    (func, Inputs { sizes, params: inputs.values })
}

/// Returns the fault in a gradient's printed text, which must parse to the same program.
fn unlike(func: &Func) -> Option<String> {
    let text = taffeta_ast::print::func(func);
    let again = taffeta::Program::from_source("printed.ft", &text).map_err(|e| e.to_string());
    let again = again.and_then(|p| p.logical(&func.name, &Options::default()).map_err(|e| e.to_string()));
    match again {
        // `x.grad` is `x_grad` in a text, so compare the texts.
        Ok(again) if taffeta_ast::print::func(&again) == text => None,
        Ok(again) => {
            Some(format!("printed and read again it is another program:\n{text}\n{}", taffeta_ast::print::func(&again)))
        }
        // A tape as long as a scalar parameter (`steps: i32`) cannot be written in source.
        Err(e) if e.contains("shape::data") => None,
        Err(e) => Some(format!("its text is not a program: {e}\n{text}")),
    }
}

/// Returns a budget for the `k`-th gradient, which has this peak of bytes: tapes are recomputed, or loops run from
/// checkpoints.
fn budget(k: usize, peak: u64) -> Option<(Tape, Option<u64>)> {
    let of_peak =
        if k.is_multiple_of(2) { (Tape::All, Some(peak.checked_sub(1)?)) } else { (Tape::Auto, Some(peak / 3)) };
    (peak > 0).then_some(of_peak)
}

/// Returns the tolerance between forward and reverse mode, relative to the terms of the sum. Derivatives of halves are
/// computed in `f32`; tangents and gradients are rounded by half a digit each, once.
fn precision(func: &Func) -> f64 {
    let rounding = |dtype: DType| match dtype {
        DType::Bf16 => 1.0 / 128.0,
        DType::F16 => 1.0 / 1024.0,
        _ => 0.0,
    };
    let mut single = false;
    let mut note = |dtype: DType| single |= dtype.is_float() && dtype != DType::F64;
    func.interface().for_each(|t| note(t.dtype));
    func.body.walk_exprs(&mut |e| note(e.dtype()));
    let halves = func.interface().map(|t| rounding(t.dtype)).fold(0.0, f64::max);
    halves + if single { 1e-3 } else { 1e-9 }
}

/// Checks `<jvp(d), s> = <d, vjp(s)>` in the interpreter for the `k`-th command.
fn transposed(k: usize, case: &Case<'_>) -> Outcome {
    let (func, inputs) = logical(case);
    let wrt = floats(&func);
    // NaN and infinities cannot be compared.
    let finite = inputs.params.iter().flat_map(Value::numbers).all(f64::is_finite);
    if wrt.is_empty() || outputs(&func) == 0 || !finite {
        return Outcome::Nothing;
    }
    let precision = precision(&func);
    let named = inputs.sizes.iter().map(|(name, n)| (name.clone(), *n));
    let single = func.params.iter().zip_eq(&inputs.params).filter(|(p, _)| p.tensor.ndim() == 0);
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
    let by: Vec<usize> = (0..func.params.len()).filter(|k| is_differentiated(&func.params[*k])).collect();
    let directions: Vec<Value> = by.iter().map(|k| random(&inputs.params[*k], &mut rng)).collect();
    let jvp = match derive(Kind::Jvp, Tape::Auto, None) {
        Ok((jvp, _)) => jvp,
        // Programs that assemble tensors have no gradients yet.
        Err(d) if d.0.iter().all(|d| d.code == "grad::structured") => return Outcome::Nothing,
        Err(d) => return Outcome::Wrong(d.to_string()),
    };
    let out = run(&jvp, &directions).unwrap_or_else(|e| panic!("{}: {e:?}", case.command));
    let changed =
        jvp.params.iter().zip_eq(&out.params).skip(func.params.len()).filter(|(p, _)| p.mode == ParamMode::InOut);
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
                    None if !within => plans.extend(peak.iter().find_map(|p| budget(k, *p))),
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
            .zip_eq(&out.results)
            .chain(vjp.params.iter().map(|p| p.tensor.symbol.name()).zip_eq(&out.params))
            .collect();
        let of = |name: &String| all.iter().find(|(n, _)| *n == format!("{name}.grad")).map(|(_, v)| (*v).clone());
        let gradients: Vec<Value> = wrt.iter().map(|n| of(n).expect("it was requested")).collect();
        let reverse = dot(&gradients, &directions);
        let parts = |a: &[Value], b: &[Value]| -> f64 {
            a.iter()
                .zip_eq(b)
                .flat_map(|(a, b)| a.numbers().into_iter().zip_eq(b.numbers()))
                .map(|(x, y)| (x * y).abs())
                .sum()
        };
        let scale = parts(&tangents, &seeds).max(parts(&gradients, &directions));
        let tolerance = precision * (scale + 1e-30);
        if scale.is_finite() && (forward - reverse).abs() > tolerance {
            return Outcome::Wrong(format!(
                "forward {forward}, reverse {reverse}, scale {scale}, tape {tape:?}, memory {memory:?}"
            ));
        }
        outcome = Outcome::Compared;
    }
    outcome
}

/// Requests the gradient with respect to all dense floating-point parameters.
fn asked(file: &taffeta::Program, case: &Case<'_>, tape: &Tape) -> Result<Gradient, taffeta::Error> {
    let func = file.logical(&case.entry, &case.options().schedule(None))?;
    Ok(Gradient::default().wrt(floats(&func)).tape(tape.clone()))
}

/// Runs the gradient on a backend; returns parameters and results, and the inputs.
fn gradient(case: &Case<'_>, backend: Backend, tape: &Tape) -> Result<(Vec<Named>, Inputs), taffeta::Error> {
    let file = taffeta::Program::load(&case.program.path)?;
    // The interpreter differentiates the program as written, C after its schedule.
    let schedule = case.schedule.clone().filter(|_| backend == Backend::C);
    let options = case.options().schedule(schedule.as_deref()).gradient(asked(&file, case, tape)?);
    let options = options.backend(backend).optimize(false);
    let function = file.compile(&case.entry, &options)?;
    let mut given = case.inputs.clone();
    // Seeds are inputs of the gradient, and get values here unless the command gives them.
    let seeds = function.signature().params().filter(|p| p.name.ends_with(".grad"));
    let missing: Vec<_> = seeds.filter(|p| given.iter().all(|(n, _)| *n != p.name)).map(|p| p.name.clone()).collect();
    given.extend(missing.into_iter().map(|n| (n, "rand(seed=3)".to_string())));
    let inputs = taffeta::inputs::read(function.signature(), &given, &case.sizes)
        .map_err(|faults| taffeta::Error::Input(taffeta::Report::from(faults)))?;
    let ran = function.run(inputs.values.clone(), &inputs.sizes, 4)?;
    let names = function.signature().params().chain(function.signature().results()).map(|t| t.name.clone());
    let sizes = function.signature().sizes.iter().map(|s| s.name.clone()).zip_eq(inputs.sizes).collect();
    let given = Inputs { sizes, params: inputs.values };
    Ok((names.zip_eq(ran.params.into_iter().chain(ran.results)).collect(), given))
}

/// Number of perturbations of the inputs by rounding errors, which measure the conditioning of a gradient.
const ROUNDINGS: usize = 4;

/// Runs the gradient in the interpreter with every `f32` widened to `f64`: at the given point, then at points that
/// `f32` cannot tell from it.
fn in_f64(case: &Case<'_>, given: &Inputs) -> Result<Vec<Vec<Value>>, taffeta::Error> {
    let file = taffeta::Program::load(&case.program.path)?;
    // Without a tape: its size may be a parameter, which no source text can express.
    let options = case.options().schedule(None).gradient(asked(&file, case, &Tape::None)?);
    let func = file.logical(&case.entry, &options)?;
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let widened = |word: &str| match word.strip_prefix("f32") {
        Some(rest) if !rest.contains(is_word) => format!("f64{rest}"),
        _ => word.to_string(),
    };
    let text: String = taffeta_ast::print::func(&func).split_inclusive(|c| !is_word(c)).map(widened).collect();
    let wide = taffeta::Program::from_source("in_f64.ft", &text)?;
    let function = wide.compile(&func.name, &Options::default().backend(Backend::Interp))?;
    let sizes: Vec<i64> = function.signature().sizes.iter().map(|s| given.sizes[&s.name]).collect();
    let mut rng = ChaCha8Rng::seed_from_u64(11);
    let at = |k: usize| {
        let unit = if k == 0 { 0.0 } else { f64::from(f32::EPSILON) / 2.0 };
        let mut moved = |v: f64| v * (1.0 + unit * rng.random_range(-1.0..1.0));
        let mut widen = |v: &Value| match v.dtype() {
            DType::F32 => {
                let numbers = v.numbers().into_iter().map(&mut moved).collect();
                Value::new(v.shape().to_vec(), Buffer::F64(numbers)).expect("as many numbers")
            }
            _ => v.clone(),
        };
        let ran = function.run(given.params.iter().map(&mut widen).collect(), &sizes, 1)?;
        Ok(ran.params.into_iter().chain(ran.results).collect())
    };
    (0..=ROUNDINGS).map(at).collect()
}

/// Factor by which the error of a gradient may exceed the effect of rounded inputs: intermediate values are rounded
/// too.
const ON_THE_WAY: f64 = 4.0;

/// Error of a gradient in `f32`, relative to its largest element, that no conditioning explains.
const NOT_ROUNDING: f64 = 1e-3;

/// Returns the largest difference of two elements, infinite if only one of them is NaN.
fn apart(a: &Value, b: &Value) -> f64 {
    let each = a.numbers().into_iter().zip_eq(b.numbers());
    let one = |(a, b): (f64, f64)| if a == b || a.is_nan() && b.is_nan() { 0.0 } else { (a - b).abs() };
    each.map(one).fold(0.0, |most: f64, d| if d.is_nan() { f64::INFINITY } else { most.max(d) })
}

/// Returns whether rounding alone separates the interpreter from C: both are as near to the gradient in `f64`, the
/// first of `exact`, as its conditioning permits. The others of `exact`, with perturbed inputs, measure the
/// conditioning.
fn is_rounding(expected: &[Named], found: &[Named], exact: &[Vec<Value>]) -> bool {
    let Some((exact, moved)) = exact.split_first() else { return false };
    let same = (expected.len(), found.len()) == (exact.len(), exact.len());
    let largest = |v: &Value| v.numbers().into_iter().filter(|v| v.is_finite()).fold(0.0, |a: f64, b| a.max(b.abs()));
    // Terms that cancel, as in the gradients of shares, are of the size of other gradients.
    let cancelled = f64::from(f32::EPSILON) * exact.iter().map(largest).fold(0.0, f64::max);
    same && expected.iter().zip_eq(found).zip_eq(exact).enumerate().all(|(k, (((name, a), (other, b)), e))| {
        let tolerance = tolerance(a.dtype());
        if a.dtype() != DType::F32 || name != other || a.shape() != e.shape() || b.shape() != e.shape() {
            return name == other && difference(a, b, tolerance).is_none();
        }
        let scale = largest(e);
        let condition = moved.iter().map(|m| apart(&m[k], e)).fold(0.0, f64::max);
        let allowed = (tolerance * scale + ON_THE_WAY * condition).min(NOT_ROUNDING * scale).max(cancelled);
        apart(a, e) <= allowed && apart(b, e) <= allowed
    })
}

/// Compares compiled C with the interpreter on the gradient of the `k`-th command, each parameter's relative to its own
/// size.
fn compiled(k: usize, case: &Case<'_>) -> Result<(), String> {
    let tape = if k.is_multiple_of(8) || case.schedule.is_some() { Tape::Auto } else { Tape::All };
    let run = |backend| gradient(case, backend, &tape).map_err(|e| e.to_string());
    let ((expected, given), (found, _)) = (run(Backend::Interp)?, run(Backend::C)?);
    let differ = differences(&expected, &found);
    let explained = differ.is_empty() || in_f64(case, &given).is_ok_and(|exact| is_rounding(&expected, &found, &exact));
    if explained { Ok(()) } else { Err(format!("{}, tape {tape:?}, and it is not rounding", differ.join("; "))) }
}

/// Checks that an element is wrong if its error exceeds the effect of rounded inputs, or a bound that no conditioning
/// excuses.
#[test]
fn large_errors_are_not_taken_for_rounding() {
    let f32s = |v: [f32; 2]| vec![("x.grad".to_string(), Value::new(vec![2], Buffer::F32(v.to_vec())).expect("two"))];
    let f64s = |v: [f64; 2]| vec![Value::new(vec![2], Buffer::F64(v.to_vec())).expect("two")];
    let well = [f64s([1.0, 0.5]), f64s([1.0, 0.5])];
    let badly = [f64s([1.0, 0.5]), f64s([1.00001, 0.50001])];
    let (off, right) = (f32s([1.0, 0.50003]), f32s([1.0, 0.5]));
    assert!(is_rounding(&right, &off, &badly) && is_rounding(&off, &right, &badly));
    assert!(!is_rounding(&right, &off, &well) && !is_rounding(&off, &right, &well));
    let hopeless = [f64s([1.0, 0.5]), f64s([1.0, 0.6])];
    assert!(!is_rounding(&right, &f32s([1.0, 0.502]), &hopeless));
    assert!(!is_rounding(&right, &f32s([1.0, f32::NAN]), &hopeless));
    assert!(!is_rounding(&right, &[], &hopeless) && !is_rounding(&right, &right, &[]));
}

#[test]
fn gradients_of_every_program() {
    let programs = all_programs();
    let cases: Vec<Case<'_>> =
        programs.iter().flat_map(|p| p.commands.iter().filter_map(move |c| Case::parse(p, c))).collect();
    let numbered: Vec<(usize, &Case<'_>)> = cases.iter().enumerate().collect();
    let outcomes = programs::for_each(&numbered, |(k, case)| {
        let at = |what: String| format!("{}: {}: {what}", case.program.name(), case.command);
        match transposed(*k, case) {
            // The C of gradients is like that of other programs: one in eight is compiled.
            Outcome::Compared if k.is_multiple_of(8) => match compiled(*k, case) {
                Ok(()) => Outcome::Compared,
                Err(d) => Outcome::Wrong(at(format!("interpreter and C: {d}"))),
            },
            Outcome::Wrong(d) => Outcome::Wrong(at(d)),
            Outcome::Refused(d) => Outcome::Refused(at(d)),
            Outcome::Compared => Outcome::Compared,
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

/// Checks the gradient of a parallel loop whose reductions (a maximum and a product) it must differentiate.
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
    for (a, b) in run(None).iter().zip_eq(&run(Some("threads"))) {
        assert!(a.iter().zip_eq(b).all(|(x, y)| (x - y).abs() <= 1e-9 * x.abs().max(1.0)), "{a:?} and {b:?}");
    }
}

/// Checks the gradients of an entry in the interpreter and in C, without a schedule, with the automatic one and with
/// the one named `threads`; `expected` holds parameters, each with the value of all elements of its gradient.
#[track_caller]
fn gradients_are(text: &str, given: &[(&str, &str)], sizes: &[(&str, i64)], expected: &[(&str, f64)]) {
    let program = taffeta::Program::from_source("wide.ft", text).unwrap_or_else(|e| panic!("{e}"));
    let sizes: Vec<(String, i64)> = sizes.iter().map(|(n, v)| (n.to_string(), *v)).collect();
    let own = text.contains("def threads(s)").then_some("threads");
    let ways = [(Backend::Interp, None), (Backend::C, None), (Backend::C, Some("auto")), (Backend::C, own)];
    for (backend, schedule) in ways {
        let gradient = Some(Gradient::default().wrt(expected.iter().map(|(name, _)| *name)));
        let options = Options::default().schedule(schedule).gradient(gradient).backend(backend);
        let options = options.optimize(schedule.is_some_and(|s| s == "threads"));
        let function = program.compile("f", &options).unwrap_or_else(|e| panic!("{e}"));
        let seeds = function.signature().params().filter(|p| p.name.ends_with(".grad"));
        let seeds: Vec<String> = seeds.map(|p| p.name.clone()).collect();
        let given = given.iter().copied().chain(seeds.iter().map(|n| (n.as_str(), "ones")));
        let given: Vec<(String, String)> = given.map(|(n, v)| (n.to_string(), v.to_string())).collect();
        let inputs = taffeta::inputs::read(function.signature(), &given, &sizes).unwrap_or_else(|d| panic!("{d:?}"));
        let ran = function.run(inputs.values, &inputs.sizes, 2).unwrap_or_else(|e| panic!("{e}"));
        for (name, expected) in expected {
            let k =
                function.signature().results().position(|t| t.name == format!("{name}.grad")).expect("it is requested");
            let found = ran.results[k].numbers();
            assert!(
                !found.is_empty() && found.iter().all(|v| v == expected),
                "{name}.grad by {backend:?}, schedule {schedule:?}: expected {expected}, found {:?}",
                &found[..found.len().min(8)]
            );
        }
    }
}

/// Checks sums over many rows in halves, as users write them.
#[test]
fn gradients_of_halves_accumulate_in_f32() {
    for dtype in ["bf16", "f16"] {
        let text = format!("def f(x: {dtype}[n], c: {dtype}) -> {dtype}:\n    return mean(x + c)\n");
        gradients_are(&text, &[("x", "zeros"), ("c", "1")], &[("n", 8192)], &[("c", 1.0), ("x", 1.0 / 8192.0)]);
        let text = format!(
            "def f(x: {dtype}[n, d], W: {dtype}[d, k], b: {dtype}[k]) -> f32:
    return sum(cast(x @ W + b, f32))
"
        );
        let layer = [("x", "ones"), ("W", "zeros"), ("b", "[0,0]")];
        let sizes = [("n", 4096), ("d", 3)];
        gradients_are(&text, &layer, &sizes, &[("W", 4096.0), ("b", 4096.0), ("x", 0.0)]);
        let text = format!("def f(table: {dtype}[v, d], k: i32[n]) -> f32:\n    return sum(cast(table[k], f32))\n");
        let lookup = [("table", "[[1,2]]"), ("k", "zeros")];
        gradients_are(&text, &lookup, &[("n", 4096)], &[("table", 4096.0)]);
        let text = format!("def f(A: {dtype}[n, m] @ csr, x: {dtype}[m]) -> f32:\n    return sum(cast(A @ x, f32))\n");
        gradients_are(&text, &[("A", "ones"), ("x", "[1,1]")], &[("n", 4096)], &[("x", 4096.0), ("A", 1.0)]);
    }
}

/// Checks sums of `f32` into one element: 2^24 and a thousand ones, which in `f32` stay 2^24.
#[test]
fn sums_into_one_element_accumulate_in_f64() {
    let scalar = "
def f(x: f32[n], c: f32) -> f32:
    s: f64 = 0.0
    for i in range(n):
        s += x[i] * c
    return s

@schedule(f)
def threads(s):
    s.parallelize(\"i\")
";
    let total = 16_777_216.0 + 1000.0;
    let x = format!("[16777216{}]", ",1".repeat(1000));
    gradients_are(scalar, &[("x", &x), ("c", "1")], &[], &[("c", total)]);
    let bias = "
def f(w: f32[n], b: f32[k]) -> f64:
    s: f64 = 0.0
    for i in range(n):
        for j in range(k):
            t: f32 = b[j] + 1.0
            s += w[i] * t
    return s
";
    gradients_are(bias, &[("w", &x), ("b", "[0,0,0]")], &[], &[("b", total)]);
}
