//! Gradients as far as the front end handles them: the request to the hooks, and the use of the answer.

use super::load;
use expect_test::{Expect, expect};
use std::collections::BTreeMap;
use std::sync::Mutex;
use taffeta_ast::{Diagnostics, Func, print, validate};
use taffeta_frontend::{GradientRequest, Hooks, ScheduleRequest};

/// Hooks that answer with the function itself, and record each request.
#[derive(Default)]
struct Echo {
    asked: Mutex<Vec<String>>,
}

impl Hooks for Echo {
    fn gradient(&self, request: GradientRequest) -> Result<Func, Diagnostics> {
        let GradientRequest { kind, name, func, wrt, .. } = request;
        let kind = kind.name();
        self.asked.lock().unwrap().push(format!("{kind} of {} as {name} wrt {wrt:?}", func.name));
        Ok(Func { name, ..func })
    }

    fn schedule(&self, request: ScheduleRequest<'_>) -> Result<Func, Diagnostics> {
        unreachable!("no schedule is requested: {}", request.name)
    }
}

/// Returns the requests to the hooks for an entry, and its printed tree or its diagnostics.
fn answered(src: &str, entry: &str) -> (String, String) {
    let program = load(src);
    let hooks = Echo::default();
    let result = program.elaborate(entry, &BTreeMap::new(), &hooks);
    let asked = hooks.asked.lock().unwrap().join("\n");
    let text = match result {
        Ok(f) => {
            validate::logical(&f).expect("the tree is valid");
            print::func(&f)
        }
        Err(found) => found.0.iter().map(|d| super::show(d, program.sources())).collect(),
    };
    (asked, text)
}

#[track_caller]
fn check(src: &str, entry: &str, expect: Expect) {
    let (asked, text) = answered(src, entry);
    expect.assert_eq(&format!("{asked}\n{text}"));
}

const LOSS: &str = "def loss(w: f64[d], x: f64[n, d]) -> f64:
    s: f64 = 0.0
    for i in range(n):
        for j in range(d):
            s += w[j] * x[i, j]
    return s
";

#[test]
fn a_gradient_is_an_entry() {
    check(
        &format!("{LOSS}\ndloss = grad(loss, wrt=[\"w\"])\n"),
        "dloss",
        expect![[r#"
        grad of loss as dloss wrt ["w"]
        def dloss(w: f64[d], x: f64[n, d]) -> f64:
            s = empty((), f64)
            s = 0.0
            for i in range(n):
                for j in range(d):
                    s += w[j] * x[i, j]
            return s
    "#]],
    );
}

#[test]
fn a_gradient_is_inlined_where_it_is_called() {
    check(
        &format!(
            "{LOSS}\ndef step(W: inout[f64[k, m]], x: f32[b, m]) -> f64:
    l = value_and_grad(loss)(W[0], x)
    l += jvp(loss, wrt=\"w\")(x=W, w=W[1])
    return l
"
        ),
        "step",
        expect![[r#"
            value_and_grad of loss as loss wrt ["w", "x"]
            jvp of loss as loss wrt ["w"]
            def step(W: inout[f64[k, m]], x: f32[b, m]) -> f64:
                l = empty((), f64)
                x_1 = empty((b, m), f64)
                for x.d0 in range(b):
                    for x.d1 in range(m):
                        x_1[x.d0, x.d1] = cast(x[x.d0, x.d1], f64)
                l = 0.0
                for i in range(b):
                    for j in range(m):
                        l += W[0, j] * x_1[i, j]
                s = empty((), f64)
                s = 0.0
                for i in range(k):
                    for j in range(m):
                        s += W[1, j] * W[i, j]
                l += s
                return l
        "#]],
    );
}

#[test]
fn shapes_of_arguments_of_gradients_are_checked() {
    check(
        &format!("{LOSS}\ndef f(x: f64[3], y: f64[2, 4]):\n    l = vjp(loss)(x, y)\n    return l\n"),
        "f",
        expect![[r#"
            vjp of loss as loss wrt ["w", "x"]
            [shape::mismatch] dimension 1 of `y` (`x` of `loss`) is 4, expected 3
              at t.ft:9 `y`
        "#]],
    );
}

#[test]
fn jacobians_take_no_tape() {
    check(
        &format!("{LOSS}\nj = jacobian(loss, wrt=\"w\", tape=\"all\")\n"),
        "j",
        expect![[r#"

            [call::arguments] `jacobian` takes a function, `wrt=[…]` and `out=`
              at t.ft:8 `"all"`
              help: leave it out: forward mode has no tape
        "#]],
    );
}

const POWER: &str = "def power(p: static, x: f64[n], scale: static = 0.5) -> f64:
    s: f64 = 0.0
    for i in range(n):
        s += scale * x[i] ** p
    return s
";

#[test]
fn gradients_take_static_parameters() {
    let (asked, text) = answered(
        &format!(
            "{POWER}\ndef f(x: f64[n]) -> f64:
    s = grad(power)(2, x)
    s += jvp(power)(x=x, scale=0.25, p=3)
    s += vjp(power)(4, x, 0.125)
    return s
"
        ),
        "f",
    );
    let kinds = ["grad", "jvp", "vjp"].map(|kind| format!("{kind} of power as power wrt [\"x\"]"));
    assert_eq!(asked, kinds.join("\n"));
    for sum in ["0.5 * x[i] ** 2.0", "0.25 * x[i] ** 3.0", "0.125 * x[i] ** 4.0"] {
        assert!(text.contains(sum), "{sum} in\n{text}");
    }
}

#[test]
fn each_static_value_has_its_own_gradient() {
    let (asked, text) = answered(
        &format!(
            "{POWER}\ndpower = grad(power)\ndef f(x: f64[n]) -> f64:
    s: f64 = 0.0
    for p in static((2, 3, 2)):
        s += dpower(p, x)
    return s
"
        ),
        "f",
    );
    assert_eq!(asked, ["grad of power as power wrt [\"x\"]"; 2].join("\n"));
    let powers = [2, 3].map(|p| text.matches(&format!("x[i] ** {p}.0")).count());
    assert_eq!(powers, [2, 1], "{text}");
}

#[test]
fn mistakes_with_static_parameters_of_gradients() {
    for (call, message) in [
        ("grad(power)(x=x)", "`power` needs an argument for `p`"),
        ("grad(power)(2, x, 0.5, 0.5)", "unexpected argument of `power`"),
        ("grad(power)(2, x, p=2)", "`p` is given twice to `power`"),
        ("grad(power)(x, 2)", "expected a static value for `p` of `power`, found a tensor of 1 dimension"),
        ("vjp(power)(2, x, x[0])", "seeds and tangents come after all parameters of `power`"),
        (
            "grad(power, wrt=[\"x\", \"scale\"])(2, x)",
            "cannot differentiate with respect to `scale` of `power`: it is static",
        ),
        ("grad(grad(power), wrt=\"p\")(2, x)", "cannot differentiate with respect to `p` of `power`: it is static"),
    ] {
        let (_, found) = answered(&format!("{POWER}\ndef f(x: f64[n]) -> f64:\n    return {call}\n"), "f");
        assert!(found.contains(message), "{call}: expected {message}, found\n{found}");
    }
}
