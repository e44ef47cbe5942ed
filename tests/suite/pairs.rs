//! Gradients as two passes: forward and backward pass leave the same values as the one program with both, in the
//! interpreter and, for some, in compiled C, whatever the tape; and wrong uses of a pair.

use crate::case::{Case, Named};
use crate::differential::all_programs;
use crate::programs;
use itertools::Itertools as _;
use ndarray::{arr1, arr2};
use taffeta::{Backend, Error, Gradient, Options, Program, Tape};
use taffeta_ast::{Buffer, DType, Value};
use taffeta_codegen::signature::{Passing, TensorSig};

/// Outcome of a case.
enum Outcome {
    /// No gradient, so nothing to cut in two.
    Nothing,
    /// Number of bytes on the tape.
    Compared(usize),
    Wrong(String),
}

fn in_two_passes(case: &Case<'_>, backend: Backend, tape: &Tape) -> Outcome {
    let file = Program::load(&case.program.path).unwrap_or_else(|e| panic!("{e}"));
    let gradient = Some(Gradient::default().tape(tape.clone()));
    let schedule = case.schedule.clone().filter(|_| backend == Backend::C);
    let options = case.options().optimize(false).schedule(schedule.as_deref()).gradient(gradient).backend(backend);
    let both = match file.compile(&case.entry, &options) {
        Ok(both) => both,
        Err(e) if file.differentiate(&case.entry, &options).is_err() => {
            let found = &e.report().diagnostics;
            assert!(found.iter().all(|d| d.code.starts_with("grad::")), "{e}");
            return Outcome::Nothing;
        }
        Err(e) => return Outcome::Wrong(format!("there is a pair where one program is refused: {e}")),
    };
    let signature = both.signature();
    if signature.params().all(|p| !p.name.ends_with(".grad")) {
        return Outcome::Nothing;
    }
    let pair = match file.differentiate(&case.entry, &options) {
        Ok(pair) => pair,
        Err(e) => return Outcome::Wrong(format!("no pair: {e}")),
    };
    let mut given = case.inputs.clone();
    // Seeds are inputs of the gradient, and get values here unless the command gives them.
    let seeds = signature.params().filter(|p| p.name.ends_with(".grad"));
    let missing: Vec<_> = seeds.filter(|p| given.iter().all(|(n, _)| *n != p.name)).map(|p| p.name.clone()).collect();
    given.extend(missing.into_iter().map(|n| (n, "rand(seed=3)".to_string())));
    let inputs = match taffeta::inputs::read(signature, &given, &case.sizes) {
        Ok(inputs) => inputs,
        Err(faults) => panic!("{}", faults[0].diagnostic),
    };
    let expected =
        both.run(inputs.values.clone(), &inputs.sizes, 4).unwrap_or_else(|e| panic!("{}: {e}", case.command));
    let names = signature.params().chain(signature.results()).map(|t| t.name.clone());
    let expected: Vec<Named> = names.zip_eq(expected.params.into_iter().chain(expected.results)).collect();

    let mut values = inputs.values.clone();
    let count = pair.forward_signature().params().count();
    let (params, seeds) = values.split_at_mut(count);
    let mut call = pair.forward().threads(4);
    for (p, value) in signature.params().take(count).zip_eq(params.iter_mut()) {
        call = match p.passing {
            Passing::InOut => call.inout_value(&p.name, value),
            _ => call.value(&p.name, value),
        };
    }
    for (size, value) in signature.sizes.iter().zip_eq(&inputs.sizes) {
        call = call.size(&size.name, *value);
    }
    let (results, tape) = match call.run() {
        Ok(done) => done,
        Err(e) => return Outcome::Wrong(format!("forward pass: {e}")),
    };
    let bytes = tape.bytes();
    let again = seeds.to_vec();
    let mut last = None;
    for _ in 0..2 {
        // The second run uses the same tape and the same seeds.
        seeds.clone_from_slice(&again);
        let mut call = pair.backward(&tape).threads(4);
        for (p, seed) in signature.params().skip(count).zip_eq(seeds.iter_mut()) {
            let of = p.name.strip_suffix(".grad").expect("seeds are adjoints");
            call = match p.passing {
                Passing::InOut => call.inout_value(of, seed),
                _ => call.seed_value(of, seed),
            };
        }
        match call.run() {
            Ok(gradients) => last = Some(gradients),
            Err(e) => return Outcome::Wrong(format!("backward pass: {e}")),
        }
    }
    let gradients = last.expect("it ran");
    let exact = backend == Backend::Interp;
    let mut found: Vec<&Value> = params.iter().chain(seeds.iter()).collect();
    // Results come before gradients, and may have gradients' names if the program is a gradient itself.
    let float = |p: &&TensorSig| p.dtype.is_float() && p.passing == Passing::In;
    let own = signature.results().count() - pair.forward_signature().params().filter(float).count();
    // The backward pass names its gradients after their primals, so match them by position.
    let of: Vec<&str> = pair.backward_signature().results().map(|r| r.name.as_str()).collect();
    for (k, r) in signature.results().enumerate() {
        let value = if k < own { results.value(&r.name) } else { gradients.value(of[k - own]) };
        found.push(value.unwrap_or_else(|e| panic!("{e}")));
    }
    let largest = |v: &Value| v.numbers().into_iter().filter(|x| x.is_finite()).fold(1e-30, |a: f64, x| a.max(x.abs()));
    for ((name, a), b) in expected.iter().zip_eq(found) {
        let tolerance = match a.dtype() {
            _ if exact => 0.0,
            DType::F64 => 1e-12 * largest(a),
            _ => 1e-5 * largest(a),
        };
        let same = |(x, y): (f64, f64)| x == y || x.is_nan() && y.is_nan() || (x - y).abs() <= tolerance;
        if a.shape() != b.shape() || !a.numbers().into_iter().zip(b.numbers()).all(same) {
            return Outcome::Wrong(format!("`{name}`: {:?} in one program, {:?} in two", a.numbers(), b.numbers()));
        }
    }
    Outcome::Compared(bytes)
}

/// Compares one of `every` programs in the interpreter, and one of four times as many in C, for which three libraries
/// are compiled. Returns the number of gradients, and of those with a tape that is not empty.
fn gradients_in_two_passes(every: usize) -> (usize, usize) {
    let programs = all_programs();
    let cases: Vec<Case<'_>> =
        programs.iter().flat_map(|p| p.commands.iter().filter_map(move |c| Case::parse(p, c))).collect();
    let cases: Vec<Case<'_>> = cases.into_iter().step_by(every).collect();
    let interpreted = [(Backend::Interp, Tape::Auto), (Backend::Interp, Tape::All)];
    let compiled = |k: usize| k.is_multiple_of(4).then_some((Backend::C, Tape::Auto));
    let all: Vec<(usize, &Case<'_>)> = cases.iter().enumerate().collect();
    let outcomes = programs::for_each(&all, |(k, case)| {
        let ways = interpreted.iter().cloned().chain(compiled(*k));
        ways.map(|(backend, tape)| (in_two_passes(case, backend, &tape), backend, tape)).collect::<Vec<_>>()
    });
    let (mut compared, mut tapes, mut wrong) = (0, 0, Vec::new());
    for (case, outcomes) in cases.iter().zip_eq(outcomes) {
        for (outcome, backend, tape) in outcomes {
            match outcome {
                Outcome::Nothing => {}
                Outcome::Compared(bytes) => {
                    compared += 1;
                    tapes += usize::from(bytes > 0);
                }
                Outcome::Wrong(d) => {
                    wrong.push(format!("{}: {}: {backend:?}, {tape:?}: {d}", case.program.name(), case.command));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}\n{} of {} are wrong", wrong.join("\n"), wrong.len(), compared + wrong.len());
    eprintln!("{compared} gradients in two passes, {tapes} with a tape that holds something");
    (compared, tapes)
}

/// Checks a fixed choice of the programs.
#[test]
fn gradients_are_the_same_in_two_passes() {
    let (compared, tapes) = gradients_in_two_passes(8);
    assert!(compared > 45 && tapes > 14, "only {compared} gradients, {tapes} with a tape");
}

#[test]
#[ignore = "takes minutes; a fixed choice of the programs is always checked"]
fn every_gradient_is_the_same_in_two_passes() {
    let (compared, tapes) = gradients_in_two_passes(1);
    assert!(compared > 300 && tapes > 80, "only {compared} gradients, {tapes} with a tape");
}

const ROLLED: &str = "
def rolled(x: inout[f64[n]], w: f64[n], steps: i32) -> f64:
    for t in range(steps):
        for i in range(n):
            x[i] = sin(w[i] * x[i])
    total: f64 = 0.0
    for i in range(n):
        total += x[i] ** 2.0
    return total
";

/// Checks a tape whose length depends on an argument of the call, an `inout` parameter, and several seeds.
#[test]
fn tapes_with_a_length_given_by_the_call() {
    let program = Program::from_source("rolled.ft", ROLLED).unwrap_or_else(|e| panic!("{e}"));
    let w = arr1(&[0.9, 1.1, -0.7]);
    let start = arr1(&[0.3, -0.4, 0.8]);
    for backend in [Backend::Interp, Backend::C] {
        let pair = program
            .differentiate("rolled", &Options::default().optimize(false).backend(backend))
            .unwrap_or_else(|e| panic!("{e}"));
        // Differentiates by hand, backwards.
        let expected = |steps: usize, seed: f64, after: &[f64; 3]| -> [Vec<f64>; 2] {
            let (mut dx, mut dw) = (Vec::new(), Vec::new());
            for i in 0..3 {
                let mut xs = vec![start[i]];
                (0..steps).for_each(|t| xs.push(f64::sin(w[i] * xs[t])));
                let (mut x_bar, mut w_bar) = (after[i] + seed * 2.0 * xs[steps], 0.0);
                for t in (0..steps).rev() {
                    let inner = f64::cos(w[i] * xs[t]) * x_bar;
                    w_bar += inner * xs[t];
                    x_bar = inner * w[i];
                }
                dx.push(x_bar);
                dw.push(w_bar);
            }
            [dx, dw]
        };
        for steps in [0usize, 1, 6] {
            let mut x = start.clone();
            let call = pair.forward().inout("x", x.view_mut()).input("w", w.view()).scalar("steps", steps as i32);
            let (_, tape) = call.run().unwrap_or_else(|e| panic!("{e}"));
            let kept = 8 * 3 * (steps + 1);
            assert!((kept..kept + 64).contains(&tape.bytes()), "{} bytes for {steps} steps", tape.bytes());
            for (seed, after) in [(1.0, [0.0, 0.0, 0.0]), (0.5, [1.0, -1.0, 2.0])] {
                let mut dx = arr1(&after);
                let call = pair.backward(&tape).seed_scalar("total", seed).inout("x", dx.view_mut());
                let dw = call.run().unwrap_or_else(|e| panic!("{e}")).array::<f64>("w.grad").expect("f64");
                let [want_x, want_w] = expected(steps, seed, &after);
                approx::assert_relative_eq!(dx.as_slice().expect("a row"), &want_x[..], max_relative = 1e-12);
                approx::assert_relative_eq!(
                    dw.as_slice().expect("a row"),
                    &want_w[..],
                    max_relative = 1e-12,
                    epsilon = 1e-15
                );
            }
        }
    }
}

const PRODUCT: &str = "
def product(a: f64[n, m], x: f64[m]) -> f64[n]:
    y = zeros((n,), f64)
    for i in range(n):
        for j in range(m):
            y[i] += a[i, j] * exp(x[j])
    return y
";

fn message(e: &Error) -> String {
    match e {
        Error::Input(r) => r.diagnostics[0].message.clone(),
        other => panic!("{other}"),
    }
}

#[test]
fn mismatched_tapes_and_seeds_are_refused() {
    let program = Program::from_source("product.ft", PRODUCT).unwrap_or_else(|e| panic!("{e}"));
    let pair = program.differentiate("product", &Options::default().optimize(false)).unwrap_or_else(|e| panic!("{e}"));
    let other = program.differentiate("product", &Options::default().optimize(false)).unwrap_or_else(|e| panic!("{e}"));
    let (a, x) = (arr2(&[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), arr1(&[0.0, 0.5, 1.0]));
    let (_, tape) = pair.forward().input("a", a.view()).input("x", x.view()).run().unwrap_or_else(|e| panic!("{e}"));
    let (seed, long) = (arr1(&[1.0, 2.0]), arr1(&[1.0, 2.0, 3.0]));
    let e = other.backward(&tape).seed("y", seed.view()).run().unwrap_err();
    assert_eq!(message(&e), "the tape comes from the forward pass of another gradient");
    let e = pair.backward(&tape).seed("y", long.view()).run().unwrap_err();
    assert!(message(&e).contains("`y.grad`, dimension 0: expected 2 (`n`), found 3"), "{e}");
    let e = pair.backward(&tape).seed("z", seed.view()).run().unwrap_err();
    assert!(message(&e).contains("no parameter `z.grad`"), "{e}");
    assert!(message(&pair.backward(&tape).run().unwrap_err()).contains("`y.grad: f64[n]` is missing"));
    assert!(message(&pair.forward().input("a", a.view()).run().unwrap_err()).contains("`x: f64[m]` is missing"));
    // Forward mode has no two passes.
    let forward = Gradient::default().mode(taffeta::Mode::Forward);
    let e = program.differentiate("product", &Options::default().gradient(forward));
    assert_eq!(e.err().map(|e| e.report().diagnostics[0].code.to_string()).as_deref(), Some("grad::pair"));
}

#[test]
fn a_tape_may_outlive_its_arrays() {
    let program = Program::from_source("product.ft", PRODUCT).unwrap_or_else(|e| panic!("{e}"));
    // No intermediate value is kept: the tape holds only the arrays.
    let options = Options::default().optimize(false).gradient(Gradient::default().tape(Tape::None));
    let pair = program.differentiate("product", &options).unwrap_or_else(|e| panic!("{e}"));
    let seed = arr1(&[1.0, 2.0]);
    let (borrowed, tape) = {
        let (a, x) = (arr2(&[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), arr1(&[0.0, 0.5, 1.0]));
        let done = pair.forward().input("a", a.view()).input("x", x.view()).run();
        let (_, tape) = done.unwrap_or_else(|e| panic!("{e}"));
        (tape.bytes(), tape.into_owned())
    };
    assert_eq!(tape.bytes(), borrowed + 8 * 9, "both arrays are copied");
    let gradients = pair.backward(&tape).seed("y", seed.view()).run().unwrap_or_else(|e| panic!("{e}"));
    let expected: Vec<f64> = [9.0, 12.0, 15.0].iter().zip([0.0f64, 0.5, 1.0]).map(|(s, x)| s * x.exp()).collect();
    let found = gradients.array::<f64>("x.grad").expect("f64");
    approx::assert_relative_eq!(found.as_slice().expect("a row"), &expected[..], max_relative = 1e-13);
}

/// Checks that pairs with other inputs in `wrt` are other programs, even if the library comes from the cache.
#[test]
fn pairs_with_other_inputs_are_separate_programs() {
    let program = Program::from_source("product.ft", PRODUCT).unwrap_or_else(|e| panic!("{e}"));
    let names = |wrt: &[&str]| -> Vec<String> {
        let gradient = Gradient::default().wrt(wrt);
        let pair = program.differentiate("product", &Options::default().gradient(gradient));
        let pair = pair.unwrap_or_else(|e| panic!("{e}"));
        pair.backward_signature().results().map(|t| t.name.clone()).collect()
    };
    assert_eq!(names(&["x"]), ["x.grad"]);
    assert_eq!(names(&["a"]), ["a.grad"]);
    assert_eq!(names(&[]), ["a.grad", "x.grad"]);
}

/// Runs the forward pass, then the backward pass twice over one tape, and checks both times that the one program gives
/// the same. Returns the bytes of the tape.
fn both_times_the_same(text: &str, options: &Options, inputs: &[(&str, Value)], seed: f64) -> usize {
    let program = Program::from_source("p.ft", text).unwrap_or_else(|e| panic!("{e}"));
    let whole = options.clone().gradient(options.gradient.clone().or_else(|| Some(Gradient::default())));
    let one = program.compile("f", &whole).unwrap_or_else(|e| panic!("{e}"));
    let mut call = inputs.iter().fold(one.call(), |call, (name, value)| call.value(name, value));
    for r in one.signature().params().filter(|p| p.name.ends_with(".grad")) {
        call = call.scalar(&r.name, seed);
    }
    let expected = call.run().unwrap_or_else(|e| panic!("{e}"));
    let pair = program.differentiate("f", options).unwrap_or_else(|e| panic!("{e}"));
    let call = inputs.iter().fold(pair.forward(), |call, (name, value)| call.value(name, value));
    let (results, tape) = call.run().unwrap_or_else(|e| panic!("{e}"));
    // The C compiler may choose another `sin` in one program than in the other.
    let close = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-9 * a.abs().max(1.0);
    for r in one.signature().results() {
        let Ok(found) = results.value(&r.name) else { continue };
        let [a, b] = [found, expected.value(&r.name).expect("it is a result")].map(Value::numbers);
        assert!(a.len() == b.len() && a.iter().zip(&b).all(close), "`{}`: expected {a:?}, found {b:?}", r.name);
    }
    for time in 1..=2 {
        let gradients = pair.backward(&tape).seed_scalar("s", seed).run().unwrap_or_else(|e| panic!("{e}"));
        for r in pair.backward_signature().results() {
            let [a, b] = [&expected, &gradients].map(|o| o.value(&r.name).expect("it is a result").numbers());
            assert!(a.iter().any(|x| *x != 0.0), "`{}` has only zeros: {a:?}", r.name);
            assert!(
                a.len() == b.len() && a.iter().zip(&b).all(close),
                "`{}`, time {time}: expected {a:?}, found {b:?}",
                r.name
            );
        }
    }
    tape.bytes()
}

fn floats(n: usize) -> Value {
    let data = (0..n).map(|k| 0.4 + 0.3 * f64::sin(1.7 * k as f64)).collect();
    Value::new(vec![n], Buffer::F64(data)).expect("as many")
}

/// Checks that the backward pass counts down in a copy: the tape stays as the forward pass left it.
#[test]
fn backward_passes_do_not_change_the_tape() {
    let counter = "
def f(x: f64[n], k: f64[m]) -> f64:
    s: f64 = 0.0
    at: i64 = 0
    for t in range(n):
        s += x[t] * k[at % m] * t
        if x[t] > 0.3:
            at += 2
        at += 1
    return s
";
    let inputs = [("x", floats(9)), ("k", floats(5))];
    for backend in [Backend::Interp, Backend::C] {
        let bytes = both_times_the_same(counter, &Options::default().optimize(false).backend(backend), &inputs, 1.5);
        assert_eq!(bytes, 8, "the tape holds only the last value of the counter");
    }
}

/// Checks that loops run again from checkpoints in the backward pass, and that the tape keeps to the budget.
#[test]
fn memory_budgets_include_tapes() {
    let heat = "
def f(x: f64[n], k: f64[n]) -> f64:
    u = empty((n,), f64)
    at: i64 = 0
    for i in range(n):
        u[i] = x[i]
    for t in range(60):
        for i in range(1, n):
            u[i] = u[i] + k[(i + at) % n] * sin(u[i - 1])
        at += 2
    s: f64 = 0.0
    for i in range(n):
        s += u[i] * u[i]
    return s
";
    let inputs = [("x", floats(12)), ("k", floats(12))];
    let within = |memory: Option<u64>, backend: Backend| {
        let gradient = Some(Gradient::default().memory(memory));
        let options = Options::default().optimize(false).backend(backend).size("n", 12).gradient(gradient);
        both_times_the_same(heat, &options, &inputs, 0.5)
    };
    for backend in [Backend::Interp, Backend::C] {
        let plenty = within(None, backend);
        assert!(plenty > 8 * 11 * 60, "{plenty} bytes");
        for budget in [4000, 3000, 2000] {
            let bytes = within(Some(budget), backend);
            assert!(bytes as u64 <= budget, "{bytes} bytes within {budget}");
        }
    }
}

/// Checks that a budget includes the copy of a result that the backward pass reads: the result may be dropped or
/// changed between both passes.
#[test]
fn memory_budgets_include_copies() {
    let text = "
def f(x: f64[n]) -> (f64, f64[n]):
    y = empty((n,), f64)
    s: f64 = 0.0
    for i in range(n):
        y[i] = x[i] * x[i]
    for i in range(n):
        s += sin(y[i])
    return s, y
";
    let program = Program::from_source("p.ft", text).unwrap_or_else(|e| panic!("{e}"));
    let within = |memory: Option<u64>| {
        let gradient = Some(Gradient::default().memory(memory));
        let options = Options::default().backend(Backend::Interp).size("n", 100).gradient(gradient);
        let pair = program.differentiate("f", &options)?;
        let x = floats(100);
        let (_, tape) = pair.forward().value("x", &x).run()?;
        Ok::<usize, Error>(tape.bytes())
    };
    assert_eq!(within(None).unwrap_or_else(|e| panic!("{e}")), 800);
    // The backward pass changes the seed of `y`, which takes the same number of bytes again.
    assert_eq!(within(Some(1600)).unwrap_or_else(|e| panic!("{e}")), 800);
    let refused = within(Some(1599)).expect_err("the copy cannot be avoided").to_string();
    assert!(refused.contains("800 B of the budget are copies"), "{refused}");
}

/// Checks the pair of a derivative, which has tensors named like adjoints; those of its own backward pass are found by
/// the names of their primals.
#[test]
fn pairs_of_derivatives() {
    let text = "
def f(y: inout[f64[n]], x: f64):
    for i in range(n):
        y[i] = y[i] * x

back = vjp(f, wrt=[\"x\"])
";
    let program = Program::from_source("p.ft", text).unwrap_or_else(|e| panic!("{e}"));
    let options = Options::default().optimize(false).gradient(Gradient::default());
    let pair = program.differentiate("back", &options).unwrap_or_else(|e| panic!("{e}"));
    let (mut y, mut dy) = (arr1(&[1.0, 2.0]), arr1(&[3.0, 5.0]));
    // x.grad = sum y dy, and dy becomes dy x.
    let forward = pair.forward().inout("y", y.view_mut()).inout("y.grad", dy.view_mut()).scalar("x", 0.5);
    let (results, tape) = forward.run().unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(results.scalar::<f64>("x.grad").expect("a number"), 13.0);
    let (mut none, mut of_dy) = (arr1(&[0.0, 0.0]), arr1(&[1.0, 0.0]));
    let backward = pair.backward(&tape).seed_scalar("x.grad", 1.0);
    let backward = backward.inout("y", none.view_mut()).inout("y.grad", of_dy.view_mut());
    let gradients = backward.run().unwrap_or_else(|e| panic!("{e}"));
    // By y: dy. By dy: y, and x for the first one's final value. By x: the first of dy.
    assert_eq!(gradients.scalar::<f64>("x.grad").expect("a number"), 3.0);
    assert_eq!((none, of_dy), (arr1(&[3.0, 5.0]), arr1(&[1.5, 2.0])));
}
