//! Smooth operators, which have their true derivatives everywhere: the first and the second, in both modes, at 0, at
//! ties, and far out. `smooth/table.rs` has a closed form for every operator of the library and every intrinsic
//! function, or the reason why there is none.

mod table;

use crate::programs;
use std::collections::BTreeSet;
use table::{NOT_SMOOTH, Row, Want, rows};
use taffeta::{Backend, Options, Program};
use taffeta_ast::op::Form;
use taffeta_ast::{Buffer, DType, Op, Value};

const TOLERANCE: f64 = 1e-11;

/// Makes the program of the operator's sum with a weight for every element, and of its derivatives.
fn program(row: &Row, n: usize) -> Program {
    let text = format!(
        "
def weighed(y):
    if y.ndim == 0:
        return y
    all = flatten(y)
    return sum(all * (1.0 + arange(all.shape[0])))

def f(x: f64[{n}]) -> f64:
    return weighed({})

gradient = grad(f)
tangent = jvp(f)
reverse_of_reverse = grad(along_gradient, wrt=[\"x\"])
reverse_of_forward = grad(along_tangent, wrt=[\"x\"])
forward_of_reverse = jvp(gradient)
forward_of_forward = jvp(along_tangent, wrt=[\"x\"])

def along_gradient(x: f64[{n}], v: f64[{n}]) -> f64:
    return sum(gradient(x) * v)

def along_tangent(x: f64[{n}], v: f64[{n}]) -> f64:
    return tangent(x, v)
",
        row.text
    );
    Program::from_source("smooth.ft", &text).unwrap_or_else(|e| panic!("{}: {e}\n{text}", row.of))
}

type Call = Box<dyn Fn(&[&[f64]]) -> Vec<f64>>;

/// Compiles an entry into a function from vectors to its one result.
fn entry(row: &Row, program: &Program, name: &'static str) -> Call {
    let function = program
        .compile(name, &Options::default().backend(Backend::Interp))
        .unwrap_or_else(|e| panic!("{}: {name}: {e}", row.of));
    let of = row.of;
    Box::new(move |params| {
        let params = params.iter().map(|p| Value::new(vec![p.len()], Buffer::F64(p.to_vec())).expect("a vector"));
        let ran = function.run(params.collect(), &[], 1).unwrap_or_else(|e| panic!("{of}: {name}: {e}"));
        ran.results[0].numbers()
    })
}

fn unit(n: usize, k: usize) -> Vec<f64> {
    (0..n).map(|i| f64::from(u8::from(i == k))).collect()
}

/// Returns the expected gradient and the rows of the second derivative.
fn expected(row: &Row, f: &Call, x: &[f64]) -> (Vec<f64>, Vec<Vec<f64>>) {
    let n = x.len();
    match &row.want {
        Want::Closed(gradient, hessian) => (gradient(x), hessian(x)),
        // Differences of a polynomial of degree two with steps of 1 are its derivatives.
        Want::Quadratic => {
            let at = |moved: &[(usize, f64)]| {
                let mut x = x.to_vec();
                moved.iter().for_each(|(k, by)| x[*k] += by);
                f(&[&x])[0]
            };
            let gradient = (0..n).map(|i| (at(&[(i, 1.0)]) - at(&[(i, -1.0)])) / 2.0).collect();
            let second = |i, j| at(&[(i, 1.0), (j, 1.0)]) - at(&[(i, 1.0)]) - at(&[(j, 1.0)]) + at(&[]);
            (gradient, (0..n).map(|i| (0..n).map(|j| second(i, j)).collect()).collect())
        }
    }
}

/// Lists the wrong derivatives of a row.
fn faults(row: &Row) -> Vec<String> {
    let mut faults = Vec::new();
    let n = row.points[0].len();
    let program = program(row, n);
    let [f, gradient, tangent, reverse_of_reverse, reverse_of_forward, forward_of_reverse, forward_of_forward] = [
        "f",
        "gradient",
        "tangent",
        "reverse_of_reverse",
        "reverse_of_forward",
        "forward_of_reverse",
        "forward_of_forward",
    ]
    .map(|name| entry(row, &program, name));
    for x in &row.points {
        let (first, second) = expected(row, &f, x);
        let scale = |all: &[f64]| all.iter().fold(1f64, |a, v| a.max(v.abs()));
        let mut check = |what: &str, have: &[f64], want: &[f64], scale: f64| {
            assert_eq!(have.len(), want.len(), "{}: {what}", row.of);
            let close = |(h, w): (&f64, &f64)| h == w || (h - w).abs() <= TOLERANCE * scale;
            if !have.iter().zip(want).all(close) {
                faults.push(format!("`{}` at {x:?}: {what} is {have:?}, not {want:?}", row.text));
            }
        };
        let size = scale(&first);
        check("the gradient", &gradient(&[x]), &first, size);
        let size = second.iter().map(|row| scale(row)).fold(1f64, f64::max);
        for k in 0..n {
            let e = unit(n, k);
            check("the tangent", &tangent(&[x, &e]), &first[k..=k], scale(&first));
            check("reverse of reverse", &reverse_of_reverse(&[x, &e]), &second[k], size);
            check("reverse of forward", &reverse_of_forward(&[x, &e]), &second[k], size);
            check("forward of reverse", &forward_of_reverse(&[x, &e]), &second[k], size);
            for (j, want) in second[k].iter().enumerate() {
                check("forward of forward", &forward_of_forward(&[x, &e, &unit(n, j)]), &[*want], size);
            }
        }
    }
    faults
}

#[test]
fn smooth_operators_have_the_derivatives_of_their_closed_forms() {
    let faults = programs::for_each(&rows(), faults).concat();
    assert!(faults.is_empty(), "{}\n{} faults", faults.join("\n"), faults.len());
}

#[test]
fn every_operator_has_a_closed_form_or_a_reason() {
    let rows = rows();
    let smooth: BTreeSet<&str> = rows.iter().map(|row| row.of).collect();
    let others: BTreeSet<&str> = NOT_SMOOTH.iter().flat_map(|(names, _)| names.split(' ')).collect();
    let intrinsics = Op::ALL.iter().map(|op| op.info()).filter(|op| op.form == Form::Call).map(|op| op.name);
    let all: BTreeSet<&str> = taffeta_libop::names().chain(intrinsics).chain(["**", "clip"]).collect();
    let missing: Vec<&str> = all.iter().copied().filter(|n| !smooth.contains(n) && !others.contains(n)).collect();
    assert!(missing.is_empty(), "neither a closed form in smooth/table.rs nor a reason: {missing:?}");
    let unknown: Vec<&str> = smooth.union(&others).copied().filter(|n| !all.contains(n)).collect();
    assert!(unknown.is_empty(), "unknown operators: {unknown:?}");
    let both: Vec<&&str> = smooth.intersection(&others).collect();
    assert!(both.is_empty(), "listed both as smooth and as not smooth: {both:?}");
}

/// Runs the program's gradient on a backend under a schedule.
fn gradient_of(text: &str, backend: Backend, schedule: Option<&str>, x: Value) -> Vec<f64> {
    let program = Program::from_source("smooth.ft", text).unwrap_or_else(|e| panic!("{e}"));
    let options = Options::default().backend(backend).schedule(schedule);
    let function = program.compile("gradient", &options).unwrap_or_else(|e| panic!("{e}"));
    let n = x.shape()[0] as i64;
    function.run(vec![x], &[n], 2).unwrap_or_else(|e| panic!("{e}")).results[0].numbers()
}

/// Checks that the maximum that is subtracted against overflow has no derivative: terms that go through it cancel only
/// up to rounding, which exceeds the result where there are many elements.
#[test]
fn subtracted_maxima_have_no_derivative() {
    let all = [(Backend::Interp, None, 20_000), (Backend::C, None, 2_000_000), (Backend::C, Some("auto"), 2_000_000)];
    for dtype in [DType::F32, DType::Bf16] {
        for (text, target) in [("logsumexp(x)", 0.0), ("cross_entropy(x[None, :], zeros((1,), i32))", -1.0)] {
            let text = format!("def f(x: {dtype}[n]) -> {dtype}:\n    return {text}\n\ngradient = grad(f)\n");
            for (backend, schedule, n) in all {
                let zeros = Value::zeros(dtype, vec![n]).expect("zeros");
                let found = gradient_of(&text, backend, schedule, zeros);
                let (each, epsilon) = (1.0 / n as f64, if dtype == DType::F32 { 1e-5 } else { 1e-2 });
                for (k, have) in found.iter().enumerate() {
                    let want = each + if k == 0 { target } else { 0.0 };
                    assert!((have - want).abs() <= epsilon * want.abs(), "{k}: {have} of {n}, {schedule:?}\n{text}");
                }
            }
        }
    }
}
