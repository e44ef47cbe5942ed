//! Gradients defined by the program (`@gradient(f)`): a correct one changes nothing, whatever surrounds the call; a
//! deliberately different one is used, in gradients of gradients too.

use crate::programs::root;
use itertools::Itertools as _;
use std::collections::BTreeMap;
use taffeta::inputs::Inputs;
use taffeta::{Backend, Gradient, Mode, Options, Program, Sampling, Tape, Verdict};
use taffeta_ast::{Buffer, DType, Value};

pub(crate) fn program(text: &str) -> Program {
    Program::from_source("own.ft", text).unwrap_or_else(|e| panic!("{e}"))
}

pub(crate) fn f64s(shape: &[usize], data: &[f64]) -> Value {
    Value::new(shape.to_vec(), Buffer::F64(data.to_vec())).expect("as many numbers as the shape has")
}

pub(crate) fn some(dtype: DType, shape: &[usize], by: f64) -> Value {
    let data = (0..shape.iter().product()).map(|k: usize| (by * (k + 1) as f64).sin());
    let data = match dtype {
        DType::F32 => Buffer::F32(data.map(|v| v as f32).collect()),
        _ => Buffer::F64(data.collect()),
    };
    Value::new(shape.to_vec(), data).expect("as many numbers as the shape has")
}

pub(crate) fn run(program: &Program, entry: &str, options: &Options, params: &[Value], sizes: &[i64]) -> Vec<Vec<f64>> {
    let function = program.compile(entry, options).unwrap_or_else(|e| panic!("{entry}: {e}"));
    let ran = function.run(params.to_vec(), sizes, 2).unwrap_or_else(|e| panic!("{entry}: {e}"));
    ran.params.iter().skip(params.len()).chain(&ran.results).map(Value::numbers).collect()
}

pub(crate) fn plain(backend: Backend) -> Options {
    Options::default().optimize(false).backend(backend)
}

/// Checks that the gradient of `loss`, under every plan and backend, is that of the program without gradients of its
/// own.
#[track_caller]
fn changes_nothing(text: &str, params: &[Value], sizes: &[i64]) {
    let own = program(text);
    // Without its decorator the backward pass is an uncalled function.
    let without: String = text.lines().filter(|l| !l.starts_with("@gradient")).map(|l| format!("{l}\n")).collect();
    let without = program(&without);
    let single = params.iter().any(|v| v.dtype() == DType::F32);
    let func = own.logical("loss", &Options::default()).unwrap_or_else(|e| panic!("{e}"));
    let named: BTreeMap<String, i64> =
        func.sizes.iter().map(|s| s.name().to_string()).zip_eq(sizes.iter().copied()).collect();
    let of = |program: &Program, backend, tape, memory: Option<u64>| {
        let gradient = Some(Gradient::default().tape(tape).memory(memory));
        let options = plain(backend).gradient(gradient).sizes(named.clone());
        let func = program.logical("loss", &options).unwrap_or_else(|e| panic!("{e}"));
        let seeded: Vec<Value> = params
            .iter()
            .cloned()
            .chain(func.params[params.len()..].iter().map(|p| some(p.tensor.dtype, &[], 0.9)))
            .collect();
        let found = run(program, "loss", &options, &seeded, sizes);
        if backend == Backend::Interp {
            let printed = taffeta_ast::print::func(&func);
            let again = Program::from_source("printed.ft", &printed).unwrap_or_else(|e| panic!("{printed}\n{e}"));
            let reread = run(&again, "loss", &plain(backend), &seeded, sizes);
            assert_eq!(found, reread, "printed and read again:\n{printed}");
        }
        found
    };
    let expected = of(&without, Backend::Interp, Tape::Auto, None);
    assert!(
        !own.custom_vjps("loss", &Options::default()).expect("it elaborates").is_empty(),
        "the gradient has no calls to test"
    );
    let peak = taken(&own, "loss", None, &named).expect("any peak fits without a budget");
    let budgets =
        [peak * 3 / 4, peak / 2, peak / 4].into_iter().filter(|b| taken(&own, "loss", Some(*b), &named).is_ok());
    let plans = budgets.map(|b| (Tape::Auto, Some(b)));
    let plans: Vec<_> = [Tape::Auto, Tape::All, Tape::None].map(|tape| (tape, None)).into_iter().chain(plans).collect();
    for backend in [Backend::Interp, Backend::C] {
        for (tape, budget) in &plans {
            let found = of(&own, backend, tape.clone(), *budget);
            let largest = expected.iter().flatten().fold(1e-3f64, |a, b| a.max(b.abs()));
            let tolerance = largest * if single { 1e-5 } else { 1e-12 };
            for (k, (a, b)) in found.iter().zip_eq(&expected).enumerate() {
                assert_eq!(a.len(), b.len());
                let near = a.iter().zip_eq(b).all(|(a, b)| (a - b).abs() <= tolerance);
                assert!(near, "result {k}, {backend:?}, {tape:?}, {budget:?} bytes: {a:?} and {b:?}");
            }
        }
    }
}

/// Returns the bytes that a gradient takes within a budget, or the error if it does not fit.
pub(crate) fn taken(
    program: &Program,
    entry: &str,
    memory: Option<u64>,
    sizes: &BTreeMap<String, i64>,
) -> Result<u64, String> {
    let gradient = Some(Gradient::default().memory(memory));
    let options = Options::default().optimize(false).gradient(gradient).sizes(sizes.clone());
    match program.explained(entry, &options) {
        Ok((_, explanation)) => Ok(explanation.peak.expect("all sizes are known")),
        Err(e) if e.to_string().contains("the smallest gradient that was found takes") => Err(e.to_string()),
        Err(e) => panic!("{e}"),
    }
}

const SOFTPLUS: &str = "
def softplus(x: f64[n], sharp: f64) -> f64[n]:
    y = log(1.0 + exp(sharp * x)) / sharp
    return y

@gradient(softplus)
def softplus_back(x: f64[len], sharp: f64, y: f64[len], y_grad: f64[len]) -> (f64[len], f64):
    dx = empty((len,), f64)
    dsharp: f64 = 0.0
    for i in range(len):
        s = sigmoid(sharp * x[i])
        dx[i] = s * y_grad[i]
        dsharp += (s * x[i] - y[i]) / sharp * y_grad[i]
    return dx, dsharp
";

fn matrix(dtype: DType, m: usize, n: usize) -> Vec<Value> {
    vec![some(dtype, &[m, n], 0.7), some(dtype, &[], 0.9)]
}

#[test]
fn gradients_get_the_values_at_the_call() {
    // Rows are overwritten after the call by values computed from its result, which is overwritten as well.
    let text = format!(
        "{SOFTPLUS}
def loss(x: f64[m, n], k: f64) -> f64:
    s: f64 = 0.0
    t = 1.0 * x
    for i in range(m):
        u = softplus(t[i], k + s)
        t[i] = u * t[m - 1 - i]
        u[...] = u * u
        s += sum(u) / 10.0
        t[i] = softplus(sharp=2.0, x=t[i] * t[i])
    return s + sum(t)
"
    );
    for (m, n) in [(3, 4), (1, 1), (0, 2), (2, 0)] {
        changes_nothing(&text, &matrix(DType::F64, m, n), &[m as i64, n as i64]);
    }
    changes_nothing(&text.replace("f64", "f32"), &matrix(DType::F32, 3, 2), &[3, 2]);
}

#[test]
fn calls_in_branches_and_loops() {
    let text = format!(
        "{SOFTPLUS}
def twice(x, k):
    return softplus(softplus(x, k), k)

def spent(p, k):
    u = softplus(p, k)
    p[...] = 0.0
    return u

def loss(x: f64[m, n], k: f64) -> f64:
    state = zeros((n,), f64)
    for step in range(3):
        for i in range(m - 1, -1, -1):
            if x[i, 0] > 0.0:
                state[...] = twice(state + x[i], k)
            else:
                state += softplus(x[i, ::-1], sum(state) / 20.0 + 1.0) + spent(2.0 * x[i], k)
    return sum(state * state)
"
    );
    for (m, n) in [(4, 3), (2, 1)] {
        changes_nothing(&text, &matrix(DType::F64, m, n), &[m as i64, n as i64]);
    }
}

#[test]
fn functions_have_several_results_and_integers() {
    let text = "
def polar(x: f64, y: f64, quarter: i32) -> (f64, f64, i32):
    r = sqrt(x * x + y * y)
    phi = atan2(y, x) + quarter * pi / 2.0
    return r, phi, quarter + 1

@gradient(polar)
def polar_back(x: f64, y: f64, r_grad: f64, phi_grad: f64, r: f64) -> (f64, f64):
    return x / r * r_grad - y / (r * r) * phi_grad, y / r * r_grad + x / (r * r) * phi_grad

def loss(p: f64[n, 2], weight: f64) -> f64:
    s: f64 = 0.0
    for i in range(n):
        r, phi, q = polar(p[i, 0], p[i, 1], i)
        s += weight * r * sin(phi) + q
        # One of its results is of no use here.
        far, unused, also = polar(r, 2.0, q)
        s += far
    return s
";
    changes_nothing(text, &[some(DType::F64, &[5, 2], 0.7), f64s(&[], &[0.3])], &[5]);
}

/// Checks an entry that has its own gradient, and one that calls it with an array passed twice.
#[test]
fn entries_have_their_own_gradients() {
    let text = "
def dot(a: f64[n], b: f64[n]) -> f64:
    s: f64 = 0.0
    for i in range(n):
        s += a[i] * b[i]
    return s

@gradient(dot)
def dot_back(a: f64[n], b: f64[n], s_grad: f64) -> (f64[n], f64[n]):
    return s_grad * b, s_grad * a

def loss(a: f64[n], b: f64[n]) -> f64:
    return dot(a, a) * dot(b, a)
";
    let params = [some(DType::F64, &[4], 0.7), some(DType::F64, &[4], 1.1)];
    changes_nothing(text, &params, &[4]);
    let other = text
        .replace("def loss(a: f64[n], b: f64[n]) -> f64:\n    return dot(a, a) * dot(b, a)", "")
        .replace("dot", "loss");
    changes_nothing(&other, &params, &[4]);
}

const ROUNDED: &str = "
def rounded(x: f64[n]) -> f64[n]:
    y = round(x)
    return y

@gradient(rounded)
def straight(y_grad: f64[n]) -> f64[n]:
    return 1.0 * y_grad

def loss(x: f64[n]) -> f64:
    y = rounded(2.0 * x)
    return sum(y * y)

dloss = grad(loss)
whole = vjp(rounded)
";

/// Checks that a given gradient is used although it is wrong: the function's derivative is 0.
#[test]
fn user_defined_gradients_are_used() {
    let program = program(ROUNDED);
    let x = f64s(&[3], &[0.3, 1.6, -0.9]);
    for backend in [Backend::C, Backend::Interp] {
        let found = run(&program, "dloss", &plain(backend), std::slice::from_ref(&x), &[3]);
        assert_eq!(found, [[4.0, 12.0, -8.0]], "4 round(2 x)");
        let seed = f64s(&[3], &[1.0, 2.0, 3.0]);
        assert_eq!(run(&program, "whole", &plain(backend), &[x.clone(), seed], &[3]), [[1.0, 2.0, 3.0]]);
        assert_eq!(run(&program, "loss", &plain(backend), std::slice::from_ref(&x), &[3]), [[1.0 + 9.0 + 4.0]]);
    }
}

/// Program in which `square` declares the derivative 5 x, so that its use can be observed.
const SQUARE: &str = "
def square(x: f64) -> f64:
    y = x * x
    return y

@gradient(square)
def square_back(x: f64, y_grad: f64) -> f64:
    return 5.0 * x * y_grad
";

#[test]
fn gradients_of_gradients_differentiate_user_defined_gradients() {
    let once = format!("{SQUARE}\nd = grad(square)\ndd = grad(d)\nddd = grad(dd)\n");
    let x = 0.7;
    let of = |text: &str, entry: &str, params: &[Value], sizes: &[i64]| {
        let program = program(text);
        let [a, b] = [Backend::C, Backend::Interp].map(|b| run(&program, entry, &plain(b), params, sizes));
        assert_eq!(a, b, "{entry}");
        a.concat()
    };
    let near = |found: Vec<f64>, expected: &[f64]| {
        assert_eq!(found.len(), expected.len());
        for (a, b) in found.iter().zip_eq(expected) {
            assert!((a - b).abs() <= 1e-12 * b.abs().max(1.0), "{found:?} and {expected:?}");
        }
    };
    near(of(&once, "d", &[f64s(&[], &[x])], &[]), &[5.0 * x]);
    near(of(&once, "dd", &[f64s(&[], &[x])], &[]), &[5.0]);
    near(of(&once, "ddd", &[f64s(&[], &[x])], &[]), &[0.0]);
    // The result of the call is differentiated again too: 2 y 5 x has the derivative 2 (5 x) (5 x) + 10 y.
    let product = format!(
        "{SQUARE}
def loss(x: f64) -> f64:
    y = square(x)
    return y * y

d = grad(loss)
dd = grad(d)

def inlined(x: f64) -> f64:
    return grad(loss)(x)

also = grad(inlined)
"
    );
    near(of(&product, "d", &[f64s(&[], &[x])], &[]), &[10.0 * x.powi(3)]);
    for entry in ["dd", "also"] {
        near(of(&product, entry, &[f64s(&[], &[x])], &[]), &[60.0 * x * x]);
    }
    // In a loop that overwrites its values: t becomes w t t, with the derivative 5 w t by the previous t.
    let looped = format!(
        "{SQUARE}
def loss(x: f64[n], w: f64) -> f64:
    s: f64 = 0.0
    for i in range(n):
        t = x[i] * 1.0
        for k in range(2):
            t = w * square(t)
        s += t
    return s

d = grad(loss, wrt=\"x\")
dd = vjp(d, wrt=\"x\")
"
    );
    let (xs, w) = ([0.7, -0.4, 1.3], 1.5);
    let first = xs.map(|x| 25.0 * w * w * (w * x * x) * x);
    // d/dx of 25 w^2 t x with t = w x^2, whose derivative is 5 w x.
    let second = xs.map(|x| 25.0 * w * w * (5.0 * w * x * x + w * x * x));
    let params = [f64s(&[3], &xs), f64s(&[], &[w])];
    near(of(&looped, "d", &params, &[3]), &first);
    let seeded = [params[0].clone(), params[1].clone(), f64s(&[3], &[1.0; 3])];
    near(of(&looped, "dd", &seeded, &[3]), &second);
}

/// Checks that a pair of forward and backward pass uses the program's gradient too.
#[test]
fn pairs_of_passes_use_user_defined_gradients() {
    let program = program(SQUARE);
    for backend in [Backend::Interp, Backend::C] {
        let pair = program.differentiate("square", &plain(backend)).unwrap_or_else(|e| panic!("{e}"));
        let (_, tape) = pair.forward().scalar("x", 3.0).run().unwrap_or_else(|e| panic!("{e}"));
        let found = pair.backward(&tape).seed_scalar("y", 2.0).run().unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(found.array::<f64>("x.grad").expect("f64").into_raw_vec_and_offset().0, [30.0]);
    }
}

/// Checks that a backward pass undoes integer increments around calls and not inside of them, and that a call gets the
/// integers' values at its own step.
#[test]
fn counters_inside_and_around_calls() {
    let text = "
def pick(x: f64[n], at: i32) -> (f64, i32):
    s: f64 = 0.0
    next: i32 = at
    for i in range(3):
        s += x[next % n] * x[next % n]
        next += 2
    return s, next

@gradient(pick)
def pick_back(x: f64[n], at: i32, s_grad: f64) -> f64[n]:
    dx = zeros((n,), f64)
    for i in range(3):
        dx[(at + 2 * i) % n] += 2.0 * x[(at + 2 * i) % n] * s_grad
    return dx

def loss(x: f64[n], w: f64) -> f64:
    total: f64 = 0.0
    at: i32 = 1
    seen: i32 = 0
    for t in range(6):
        s, next = pick(x, at)
        total += s * s * x[at % n] + w * x[seen % n] * s
        at += 3
        seen += next
    s, next = pick(x, at + seen)
    return total + s * x[next % n]
";
    changes_nothing(text, &[some(DType::F64, &[5], 0.7), f64s(&[], &[0.3])], &[5]);
}

#[track_caller]
pub(crate) fn assert_near(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    let largest = expected.iter().fold(1e-3f64, |a, b| a.max(b.abs()));
    let near = found.iter().zip_eq(expected).all(|(a, b)| (a - b).abs() <= 1e-11 * largest);
    assert!(near, "{found:?} and {expected:?}");
}

/// Checks that a call stays one step when simplification of the gradient removes the loop over one element around it.
#[test]
fn calls_in_loops_over_one_element_are_differentiated_again() {
    let text = "
def power(x: f64[n], up: i32) -> f64[n]:
    y = empty((n,), f64)
    for i in range(n):
        if up > 0:
            y[i] = exp(x[i])
        else:
            y[i] = exp(-x[i])
    return y

@gradient(power)
def power_back(y: f64[n], up: i32, y_grad: f64[n]) -> f64[n]:
    return y * y_grad if up > 0 else -y * y_grad

def total(x: f64[n]) -> f64:
    s: f64 = 0.0
    for i in range(n):
        for k in range(i + 1):
            t = power(x[i:i + 1], 1 - k)
            s += t[0] * t[0]
    return s

once = grad(total)

def loss(x: f64[n]) -> f64:
    return sum(once(x) ** 2)
";
    changes_nothing(text, &[some(DType::F64, &[4], 0.7)], &[4]);
}

/// Checks a backward pass that calls a function with a gradient of its own.
#[test]
fn backward_passes_call_functions_with_their_own_gradients() {
    let text = format!(
        "{SQUARE}
def cube(x: f64) -> f64:
    y = x * x * x
    return y

@gradient(cube)
def cube_back(x: f64, y_grad: f64) -> f64:
    return 3.0 * square(x) * y_grad

d = grad(cube)
dd = grad(d)
"
    );
    let program = program(&text);
    for backend in [Backend::C, Backend::Interp] {
        let of = |entry: &str| run(&program, entry, &plain(backend), &[f64s(&[], &[0.5])], &[]).concat();
        assert!((of("d")[0] - 0.75).abs() < 1e-14);
        assert!((of("dd")[0] - 15.0 * 0.5).abs() < 1e-13, "{:?}", of("dd"));
    }
}

#[test]
fn wrong_gradients_are_found() {
    let verdicts = |text: &str, entry: &str, values: Vec<Value>, sizes: Vec<i64>| -> Vec<Verdict> {
        let inputs = Inputs { values, sizes };
        let found = taffeta::check_gradient(&program(text), entry, &Options::default(), &inputs, &Sampling::default());
        found.unwrap_or_else(|e| panic!("{e}")).iter().map(taffeta::InputCheck::verdict).collect()
    };
    let (x, k) = (some(DType::F64, &[4], 0.7), f64s(&[], &[1.5]));
    assert_eq!(verdicts(SOFTPLUS, "softplus", vec![x.clone(), k.clone()], vec![4]), [Verdict::Agrees; 2]);
    let wrong = SOFTPLUS.replace("s * x[i] - y[i]", "s * x[i] + y[i]");
    assert_eq!(verdicts(&wrong, "softplus", vec![x.clone(), k], vec![4]), [Verdict::Agrees, Verdict::Modes]);
    assert_eq!(verdicts(SQUARE, "square", vec![f64s(&[], &[0.5])], vec![]), [Verdict::Modes]);
}

pub(crate) fn refused(text: &str, entry: &str, options: &Options) -> String {
    match Program::from_source("refused.ft", text).and_then(|p| p.compile(entry, options).map(|_| ())) {
        Ok(()) => panic!("it is not refused: {text}"),
        Err(e) => e.to_string(),
    }
}

#[test]
fn tangents_and_schedules_before_gradients_are_refused() {
    for call in ["jvp(loss)", "jacobian(loss)", "grad(jvp(loss), wrt=\"x\")"] {
        let found = refused(&format!("{ROUNDED}\nJ = {call}\n"), "J", &Options::default());
        assert!(found.contains("`rounded` has its own gradient, which supports reverse mode alone"), "{found}");
    }
    let forward = Some(Gradient::default().mode(Mode::Forward));
    let found = refused(ROUNDED, "loss", &Options::default().gradient(forward));
    assert!(found.contains("which supports reverse mode alone"), "{found}");
    let scheduled = format!("{ROUNDED}\n@schedule(loss)\ndef fast(s):\n    s.parallelize(s.loops()[0])\n");
    let options = Options::default().schedule("fast");
    let found = run(&program(&scheduled), "loss", &options, &[f64s(&[2], &[0.3, 1.6])], &[2]);
    assert_eq!(found, [[10.0]], "schedules of the program do not use `@gradient`");
    let found = refused(&scheduled, "loss", &options.gradient(Gradient::default()));
    assert!(found.contains("cannot apply a schedule before differentiation: `"), "{found}");
}

/// Checks that an unfitting gradient is refused at its line, when a gradient is derived and when the file is checked.
#[test]
fn mismatched_gradients_are_refused() {
    let f = "def f(x: f64[n], k: i32, w: f64) -> (f64[n], f64):\n    y = w * x\n    return y, w * k\n";
    let well = "def b(y_grad: f64[n], out1_grad: f64) -> (f64[n], f64):\n    return 1.0 * y_grad, out1_grad\n";
    let with = |back: &str| format!("{f}\n@gradient(f)\n{back}");
    assert!(program(&with(well)).check().is_empty());
    for (text, code, message) in [
        (with("def b(y_grad: f64[n]) -> (f64[n], f64):\n    return 1.0 * y_grad, 0.0\n"), "parameter", "has no parameter for the seed of the result `out1`"),
        (with(&well.replace("y_grad", "z_grad")), "parameter", "`z_grad` is not a parameter, result or seed of `f`"),
        (with(&well.replace("(y_grad", "(k_grad: f64, y_grad")), "parameter", "`k_grad` is not a parameter, result or seed"),
        (with(&well.replace("y_grad: f64[n]", "y_grad: f32[n]")), "type", "`y_grad` is `f32` with 1 dimension, but `y` is `f64`"),
        (with(&well.replace("y_grad: f64[n]", "y_grad: f64[n, 2]").replace("1.0 * y_grad", "y_grad[:, 0]")), "type", "with 2 dimensions"),
        (with(&well.replace("(y_grad", "(x: f64[2 * n], y_grad")), "shape", "dimension 0 of `x` is n * 2, expected n"),
        (with("def b(y_grad: f64[n], out1_grad: f64) -> f64[n]:\n    return 1.0 * y_grad\n"), "results", "`b` has 1 result, but `f` needs gradients of x, w"),
        (with("def b(y_grad: f64[n], out1_grad: f64) -> (f64[n], f64[n]):\n    return 1.0 * y_grad, 2.0 * y_grad\n"), "type", "`out1` is `f64` with 1 dimension, but `w` is `f64` with 0 dimensions"),
        (with("def b(y_grad: f64[n], out1_grad: f64):\n    return zeros((n + 1,), f64), out1_grad\n"), "shape", "dimension 0 of the gradient of `x` is n + 1"),
        (with(&well.replace("y_grad: f64[n],", "y_grad: inout[f64[n]],")), "function", "`y_grad` is `inout`"),
        (with(&well.replace("y_grad: f64[n],", "y_grad,")), "function", "`b` is a template, but a gradient needs types"),
        (with(&format!("{well}\n@gradient(f)\n{}", well.replace("def b", "def c"))), "twice", "`f` has two gradients"),
        (format!("{f}\n@gradient(g)\n{well}"), "target", "there is no function `g`"),
        (format!("{f}\nN = 3\n@gradient(N)\n{well}"), "target", "`N` is"),
        (format!("{f}\n@gradient\n{well}"), "decorator", "`gradient` takes the name of one function"),
        (format!("{f}\n@gradient(f, f)\n{well}"), "decorator", "`gradient` takes the name of one function"),
        (with(well).replace("k: i32", "k: static"), "function", "`k` is static"),
        (with(well).replace("x: f64[n], k", "x: inout[f64[n]], k"), "function", "`x` is `inout`"),
        (with(well).replace("w: f64)", "w)"), "function", "`f` is a template, but a function with a gradient of its own needs types"),
        (with("def b(x: f64[n], w: f64, y_grad: f64[n], out1_grad: f64) -> (f64[n], f64):\n    a, c = f(x, 1, w)\n    return a, c\n"), "recursive", "the gradient of `f` calls `f` itself"),
        ("def f(k: i32) -> f64:\n    return 0.5 * k\n@gradient(f)\ndef b(out_grad: f64):\n    pass\n".into(), "function", "`f` has no floating-point parameter"),
        ("def f(x: f64) -> i32:\n    return cast(x, i32)\n@gradient(f)\ndef b(x: f64) -> f64:\n    return x\n".into(), "function", "`f` has no floating-point result"),
        ("def f(y: f64, y_grad: f64) -> f64:\n    z = y * y_grad\n    return z\n@gradient(f)\ndef b(y_grad: f64, z_grad: f64) -> (f64, f64):\n    return z_grad, y_grad\n".into(), "", ""),
        ("def f(x: f64, y_grad: f64) -> f64:\n    y = x * y_grad\n    return y\n@gradient(f)\ndef b(y_grad: f64) -> (f64, f64):\n    return y_grad, y_grad\n".into(), "parameter", "`y_grad` is both a name of `f` and the seed of one of its results"),
    ] {
        let found = program(&text).check();
        if code.is_empty() {
            assert!(found.is_empty(), "{text}\n{found:?}");
            continue;
        }
        assert_eq!(found.len(), 1, "{text}\n{found:?}");
        assert_eq!(found[0].code, format!("gradient::{code}"), "{text}\n{found:?}");
        assert!(found[0].message.contains(message), "{text}\n{}", found[0].message);
        assert!(!found[0].span().is_none(), "{text}");
        if text.contains("def f(x: f64[n], k: i32, w: f64)") {
            let asked = refused(&format!("{text}\nG = vjp(f)\n"), "G", &Options::default());
            assert!(asked.contains(&format!("gradient::{code}")), "{text}\n{asked}");
        }
    }
    let called = format!("{}\ndef g(y: f64[n]) -> f64[n]:\n    a, b2 = b(y, 1.0)\n    return a\n", with(well));
    assert!(refused(&called, "g", &Options::default()).contains("cannot call `b` in a program: it is the gradient"));
}

/// Checks that a gradient is imported with its function from a module.
#[test]
fn gradients_are_imported_with_their_functions() {
    let folder = root().join("target/tmp/custom_vjps");
    std::fs::create_dir_all(&folder).expect("a folder for tests");
    std::fs::write(folder.join("quantise.ft"), ROUNDED.split("\ndef loss").next().expect("text")).expect("written");
    let main = folder.join("main.ft");
    std::fs::write(&main, "from quantise import rounded\n\ndef loss(x: f64[n]) -> f64:\n    return sum(rounded(3.0 * x))\n\ndloss = grad(loss)\n")
        .expect("written");
    let program = Program::load(&main).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(run(&program, "dloss", &plain(Backend::C), &[f64s(&[2], &[0.3, 1.6])], &[2]), [[3.0, 3.0]]);
}
