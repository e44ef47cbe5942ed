//! Memory budgets: gradients keep within them, and compute the same.

use crate::check::{floats_of, ints, program};
use expect_test::expect;
use itertools::Itertools as _;
use std::collections::BTreeMap;
use taffeta_ast::interp::{self, Inputs};
use taffeta_ast::{Func, Value, print};
use taffeta_autodiff::memory::Sizes;
use taffeta_autodiff::{Explanation, Kind, Request, Tape, explain};

fn within(func: &Func, sizes: &Sizes, memory: Option<u64>) -> Result<(Func, Explanation), String> {
    let floats = func.params.iter().filter(|p| p.tensor.dtype.is_float());
    let wrt: Vec<String> = floats.map(|p| p.tensor.symbol.name().to_string()).collect();
    let request = Request { memory, sizes: sizes.clone(), ..Request::new(Kind::Vjp, "within", func, &wrt) };
    explain(&request).map_err(|d| d.to_string())
}

/// Returns all numbers that a gradient computes for seeds of ones.
fn answers(vjp: &Func, params: &[Value], sizes: &Sizes) -> Vec<f64> {
    let mut given = params.to_vec();
    for p in &vjp.params[params.len()..] {
        let shape: Vec<usize> = p.tensor.shape.iter().map(|d| d.as_int().unwrap_or(sizes["n"]) as usize).collect();
        let count = shape.iter().product();
        given.push(Value::new(shape, taffeta_ast::Buffer::F64(vec![1.0; count])).expect("as many"));
    }
    let inputs = Inputs { params: given, sizes: sizes.clone() };
    let out = interp::run(vjp, &inputs).unwrap_or_else(|e| panic!("{e:?}\n{}", print::func(vjp)));
    out.results.iter().chain(&out.params).flat_map(Value::numbers).collect()
}

/// Checks gradients within ever smaller budgets, until no plan takes less. Returns how often loops were cut into
/// segments.
fn thrifty(text: &str, params: &[Value], sizes: &[(&str, i64)]) -> usize {
    let func = program(text);
    let sizes: Sizes = sizes.iter().map(|(n, v)| (n.to_string(), *v)).collect();
    let (plain, explanation) = within(&func, &sizes, None).unwrap_or_else(|d| panic!("{d}"));
    let run_sizes: Sizes =
        sizes.iter().filter(|(n, _)| func.sizes.iter().any(|s| s.name() == *n)).map(|(n, v)| (n.clone(), *v)).collect();
    let expected = answers(&plain, params, &run_sizes);
    let mut peak = explanation.peak.expect("all sizes are given");
    let (start, mut cut) = (peak, 0);
    while let Ok((func, explanation)) = within(&func, &sizes, Some(peak.saturating_sub(1))) {
        let new = explanation.peak.expect("all sizes are given");
        assert!(new < peak, "{new} bytes within a budget of {}", peak - 1);
        cut += usize::from(!explanation.notes.is_empty());
        peak = new;
        let found = answers(&func, params, &run_sizes);
        for (a, b) in expected.iter().zip_eq(&found) {
            assert!(
                (a - b).abs() <= 1e-12 * a.abs().max(1.0),
                "{a} and {b} within {new} bytes:\n{}",
                print::func(&func)
            );
        }
    }
    assert!(peak < start, "the budget saves nothing of {start} bytes");
    cut
}

#[test]
fn loops_over_time_run_from_checkpoints() {
    let heat = "def f(x: f64[n], k: f64[n]) -> f64:
    u = empty((n,), f64)
    v = empty((n,), f64)
    for i in range(n):
        u[i] = x[i]
    for t in range(60):
        for i in range(n):
            v[i] = u[i] + k[i] * sin(u[(i + 1) % n])
        for i in range(n):
            u[i] = v[i]
    s: f64 = 0.0
    for i in range(n):
        s += u[i] * u[i]
    return s
";
    assert!(thrifty(heat, &[floats_of(&[5], 1), floats_of(&[5], 2)], &[("n", 5)]) >= 2);
    // A sweep of a parameter in place, backwards, in steps of 3, whose state includes integers and scalars.
    let sweep = "def f(u: inout[f64[n]], k: f64[n], steps: i64) -> f64:
    at: i64 = 0
    a: f64 = 1.0
    for t in range(steps, 0, -3):
        for i in range(1, n):
            u[i] = u[i] * k[(i + at) % n] + a * sin(u[i - 1])
        at += 2
        a = tanh(a + u[at % n])
    return a
";
    let given =
        [floats_of(&[6], 1), floats_of(&[6], 2), Value::scalar(taffeta_ast::Buffer::I64(vec![50])).expect("one")];
    assert!(thrifty(sweep, &given, &[("n", 6), ("steps", 50)]) >= 2);
    // A loop in a loop, a branch, and a history that is written once.
    let nested = "def f(x: f64[n], k: i32[m]) -> f64[n]:
    u = empty((n,), f64)
    norms = zeros((40,), f64)
    for i in range(n):
        u[i] = x[i]
    for t in range(40):
        for r in range(3):
            for i in range(n):
                u[i] = u[i] * 0.9 + 0.1 * sin(u[(i + r) % n]) * u[i]
        if k[t % m] > 0:
            for i in range(n):
                u[i] *= u[i]
        for i in range(n):
            norms[t] += u[i]
    for i in range(n):
        u[i] += norms[i % 40] * norms[7]
    return u
";
    assert!(thrifty(nested, &[floats_of(&[4], 1), ints(&[3], &[0, 1, -1])], &[("n", 4), ("m", 3)]) >= 1);
}

#[test]
fn tapes_are_recomputed_before_checkpointing() {
    let rows = "def f(x: f64[n], w: f64[n]) -> f64:
    s: f64 = 0.0
    for i in range(n):
        h = empty((n,), f64)
        for j in range(n):
            h[j] = 0.0
            for l in range(20):
                h[j] += exp(sin(x[i] * w[j]) + cos(x[i] * l))
        for j in range(n):
            s += h[j] * h[j]
    return s
";
    assert_eq!(thrifty(rows, &[floats_of(&[5], 1), floats_of(&[5], 2)], &[("n", 5)]), 0);
}

#[test]
fn programs_with_segments() {
    let text = "def f(u: inout[f64[n]]):
    for t in range(100):
        for i in range(n):
            u[i] = sin(u[i])
";
    let sizes: Sizes = BTreeMap::from([("n".to_string(), 1000)]);
    let (func, explanation) = within(&program(text), &sizes, Some(300_000)).unwrap_or_else(|d| panic!("{d}"));
    expect![[r#"
        def within(u: inout[f64[n]], u_grad: inout[f64[n]]):
            u_tape = empty((10, n), f64)
            for t_o in range(10):
                u_now = empty((n,), f64)
                for u.d0 in range(n):
                    u_tape[t_o, u.d0] = u[u.d0]
                for u_now.d0 in range(n):
                    u_now[u_now.d0] = u[u_now.d0]
                for t in range(t_o * 10, t_o * 10 + 10):
                    for i in range(n):
                        u_now[i] = sin(u_now[i])
                for u.d0 in range(n):
                    u[u.d0] = u_now[u.d0]
            for t_o_b in range(9, -1, -1):
                u_now_tape = empty((10, n), f64)
                u_now = empty((n,), f64)
                for u_now.d0 in range(n):
                    u_now[u_now.d0] = u_tape[t_o_b, u_now.d0]
                for t in range(t_o_b * 10, t_o_b * 10 + 10):
                    for u_now.d0 in range(n):
                        u_now_tape[t - t_o_b * 10, u_now.d0] = u_now[u_now.d0]
                    for i in range(n):
                        u_now[i] = sin(u_now[i])
                u_now_grad = empty((n,), f64)
                for u.d0_b in range(n):
                    u_now_grad[u.d0_b] = u_grad[u.d0_b]
                    u_grad[u.d0_b] = 0.0
                for t_b in range(t_o_b * 10 + 9, t_o_b * 10 - 1, -1):
                    for i_b in range(n):
                        u_now_grad_now = empty((), f64)
                        u_now_grad_now = u_now_grad[i_b]
                        u_now_grad[i_b] = 0.0
                        u_now_grad[i_b] += u_now_grad_now * cos(u_now_tape[t_b - t_o_b * 10, i_b])
                for u_now.d0_b in range(n):
                    u_grad[u_now.d0_b] += u_now_grad[u_now.d0_b]
    "#]]
    .assert_eq(&print::func(&func));
    expect![[r#"["the loop `t` runs in segments of 10 iterations, recomputed from copies of `u`"], Ok(176000)"#]]
        .assert_eq(&format!("{:?}, {:?}", explanation.notes, explanation.peak));
}

#[test]
fn loops_are_named_as_schedules_do() {
    let why = |text: &str, memory: Option<u64>| {
        let sizes: Sizes = BTreeMap::from([("n".to_string(), 1000)]);
        let (_, explanation) = within(&program(text), &sizes, memory).unwrap_or_else(|d| panic!("{d}"));
        let rows = explanation.rows.into_iter().map(|r| format!("{}: {}", r.tensor, r.why));
        rows.chain(explanation.notes).map(|line| line + "\n").collect::<String>()
    };
    let unknown = "def f(x: f64[n], m: i64[1]) -> f64:
    s: f64 = 0.0
    c = empty((1,), i64)
    c[0] = m[0] * 2
    for k in range(n):
        s += x[k]
    for k in range(c[0]):
        t: f64 = sin(x[k % n])
        s += t * t
    return s
";
    expect![[r#"
        t: the trip count of the loop `k#2` is not known from the sizes
        x: nothing overwrites it
        c: nothing overwrites it
    "#]]
    .assert_eq(&why(unknown, None));
    let overwritten = "def f(u: inout[f64[n]], v: inout[f64[n]]):
    for t in range(2):
        for i in range(n):
            v[i] = 1.0
    for t in range(100):
        for i in range(n):
            u[i] = sin(u[i])
";
    expect![[r#"
        u: overwritten later: copied whole before the loop `i#2`
    "#]]
    .assert_eq(&why(overwritten, None));
    expect![[r#"
        u.now: overwritten later: copied whole before the loop `i#2`
        u: overwritten later: copied whole before the loop `u_now.d0`
        the loop `t#2` runs in segments of 10 iterations, recomputed from copies of `u`
    "#]]
    .assert_eq(&why(overwritten, Some(300_000)));
}

#[test]
fn unreachable_budgets_are_refused() {
    let text = "def f(x: f64[n]) -> f64:
    y = empty((n,), f64)
    for i in range(n):
        y[i] = x[i] * x[i]
    s: f64 = 0.0
    for i in range(n):
        s += y[i] * y[i]
    return s
";
    let refused = |memory, sizes: &Sizes| within(&program(text), sizes, Some(memory)).expect_err("it is refused");
    let all = refused(100, &BTreeMap::from([("n".to_string(), 1000)]));
    assert!(all.contains("the smallest gradient that was found takes"), "{all}");
    let (func, wrt) = (program(text), ["x".to_string()]);
    let sizes = BTreeMap::from([("n".to_string(), 1000)]);
    let tangents = Request { memory: Some(100), sizes, ..Request::new(Kind::Jvp, "tangents", &func, &wrt) };
    let forward = explain(&tangents).expect_err("forward mode cannot use less memory").to_string();
    assert!(forward.contains("but the budget is 100 B"), "{forward}");
    let unknown = refused(100, &Sizes::new());
    assert!(unknown.contains("fits in its memory budget without the size `n`"), "{unknown}");
}

#[test]
fn windows_have_the_size_of_their_bounds() {
    let window = "def f(q: f64[n], k: f64[n]) -> f64[n]:
    y = zeros((n,), f64)
    for i in range(n):
        lo = max(0, i - 4)
        hi = min(n, i + 5)
        w = exp(k[lo:hi] * q[i])
        for j in range(hi - lo):
            y[i] += w[j] * w[j]
    return y
";
    let func = program(window);
    let sizes: Sizes = [("n".to_string(), 1000)].into();
    let wrt = ["q".to_string(), "k".to_string()];
    let request = Request { tape: Tape::All, sizes, ..Request::new(Kind::Vjp, "g", &func, &wrt) };
    let (_, explanation) = explain(&request).unwrap_or_else(|d| panic!("{d}"));
    let tape = explanation.rows.iter().find(|r| r.tensor == "w").expect("`w` is kept");
    assert_eq!(tape.amount, Some(1000 * 9 * 8), "{}", tape.bytes);
    // The bound on the width of a window without another bound is n.
    let func = program(&window.replace("max(0, i - 4)", "max(0, i - n)"));
    let (_, explanation) = explain(&Request { func: &func, ..request }).unwrap_or_else(|d| panic!("{d}"));
    let tape = explanation.rows.iter().find(|r| r.tensor == "w").expect("`w` is kept");
    assert_eq!(tape.amount, Some(1000 * 1000 * 8), "{}", tape.bytes);
}

#[test]
fn excessive_memory_is_reported() {
    let time = "def f(x: f64[n], steps: i32) -> f64[n]:
    u = empty((n,), f64)
    for i in range(n):
        u[i] = x[i]
    for t in range(steps):
        for i in range(n):
            u[i] = u[i] * sin(u[i])
    return u
";
    let func = program(time);
    let wrt = ["x".to_string()];
    let said = |func: &Func, sizes: &[(&str, i64)]| {
        let sizes = sizes.iter().map(|(n, v)| (n.to_string(), *v)).collect();
        let request = Request { sizes, ..Request::new(Kind::Vjp, "g", func, &wrt) };
        explain(&request).unwrap_or_else(|d| panic!("{d}")).1.excess.map(|e| e.message)
    };
    expect![[r#"the local tensors of the gradient take much more memory than its inputs and results; largest: `u.tape` max(cast(steps, i64), 0) * n * 8 bytes"#]]
        .assert_eq(&said(&func, &[]).expect("much more"));
    expect![
        "the local tensors of the gradient take 80.02 MB, its inputs and results 24.00 kB; largest: `u.tape` 80.00 MB"
    ]
    .assert_eq(&said(&func, &[("n", 1000), ("steps", 10000)]).expect("much more"));
    assert_eq!(said(&func, &[("n", 10), ("steps", 10000)]), None, "less than a megabyte");
    let once = program("def f(x: f64[n]) -> f64[n]:\n    y = exp(x)\n    return y * y\n");
    assert_eq!(said(&once, &[]), None);
}
