//! Memory budgets with gradients defined by the program: a call of such a function stays one step, whatever is
//! recomputed.

use crate::custom_vjp::{assert_near, f64s, plain, program, refused, run, some, taken};
use std::collections::BTreeMap;
use taffeta::{Backend, Gradient, Options};
use taffeta_ast::DType;

/// Program with a loop whose calls declare the (wrong) derivative 3 u, between statements that take memory.
const STEPS: &str = "
def step(u: f64[n]) -> f64[n]:
    v = empty((n,), f64)
    for i in range(n):
        near = sin(u[i]) * exp(-u[i] * u[i]) + tanh(u[i])
        far = atan(near) * sqrt(1.0 + near * near)
        v[i] = sin(0.9 * near + 0.1 * far)
    return v

@gradient(step)
def step_back(u: f64[n], v_grad: f64[n]) -> f64[n]:
    return 3.0 * u * v_grad

def loss(x: f64[20]) -> f64:
    u = 1.0 * x
    for t in range(60):
        w = u * u + 0.5
        u[...] = 0.2 * step(w) + 0.3 * w
    return sum(u)
";

/// Computes `step` of a number.
fn stepped(u: f64) -> f64 {
    let near = u.sin() * (-u * u).exp() + u.tanh();
    (0.9 * near + 0.1 * near.atan() * (1.0 + near * near).sqrt()).sin()
}

/// Returns the derivative of an element of `loss` by the declared derivative of `step`, and the derivative of that.
fn twice(x: f64) -> [f64; 2] {
    let (mut u, mut du, mut ddu) = (x, 1.0, 0.0);
    for _ in 0..60 {
        let (w, dw, ddw) = (u * u + 0.5, 2.0 * u * du, 2.0 * du * du + 2.0 * u * ddu);
        // v' = 3 w w', and v'' = 3 w' w' + 3 w w''.
        (u, du, ddu) = (0.2 * stepped(w) + 0.3 * w, 0.6 * w * dw + 0.3 * dw, 0.6 * (dw * dw + w * ddw) + 0.3 * ddw);
    }
    [du, ddu]
}

#[test]
fn memory_budgets_do_not_split_calls() {
    let own = program(STEPS);
    let x = some(DType::F64, &[20], 0.7);
    let expected: Vec<f64> = x.numbers().into_iter().map(|x| twice(x)[0]).collect();
    let peak = taken(&own, "loss", None, &BTreeMap::new()).expect("any peak fits without a budget");
    for percent in [100, 70, 50, 40] {
        let memory = Some(peak * percent / 100);
        let fits = taken(&own, "loss", memory, &BTreeMap::new());
        assert!(fits.is_ok(), "{percent} % of {peak} bytes: {fits:?}");
        for backend in [Backend::Interp, Backend::C] {
            let gradient = Some(Gradient::default().memory(memory));
            let found = run(&own, "loss", &plain(backend).gradient(gradient), &[x.clone(), f64s(&[], &[1.0])], &[]);
            assert_near(found.last().expect("it has a gradient"), &expected);
        }
    }
    assert!(taken(&own, "loss", Some(1000), &BTreeMap::new()).is_err());
}

/// Checks that calls run once in a gradient that is differentiated again, however small its budget: the body of a
/// recomputed call would be differentiated.
#[test]
fn memory_budgets_do_not_recompute_calls_in_gradients_of_gradients() {
    let x = some(DType::F64, &[20], 0.7);
    let expected: Vec<f64> = x.numbers().into_iter().map(|x| twice(x)[1]).collect();
    for (budget, fits) in [("1MB", true), ("28KB", true), ("22KB", true), ("19KB", false), ("2KB", false)] {
        let text = format!("{STEPS}\nd = grad(loss, memory=\"{budget}\")\ndd = vjp(d)\n");
        if !fits {
            // Arguments and results of 60 calls take 19.2 KB.
            let found = refused(&text, "dd", &Options::default());
            assert!(found.contains("the smallest gradient that was found takes"), "{budget}: {found}");
            continue;
        }
        for backend in [Backend::Interp, Backend::C] {
            let seeded = [x.clone(), f64s(&[20], &[1.0; 20])];
            assert_near(&run(&program(&text), "dd", &plain(backend), &seeded, &[]).concat(), &expected);
        }
    }
}
