//! Traces of schedules of handwritten programs: recorded steps are replayed, and corrupted traces never cause a panic.
//! Those that are accepted compute the same.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rayon::prelude::*;
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use taffeta_ast::Func;
use taffeta_autodiff::{Kind, Request, differentiate};
use taffeta_frontend::{NoHooks, NoLoader, Program, Source};
use taffeta_schedule::Trace;
use testkit::steps::primitives;
use testkit::tried::{Case, Counts, again, fault, runs, scheduled, show, small};

const PROGRAMS: [(&str, &str); 6] = [
    (
        "a product of matrices",
        "
def f(a: f32[n, p], b: f32[p, m], c: inout[f32[n, m]]):
    for i in range(n):
        for j in range(m):
            for k in range(p):
                c[i, j] += a[i, k] * b[k, j]
",
    ),
    (
        "a stencil",
        "
def f(u: inout[f64[n]]):
    v = zeros((n,), f64)
    for t in range(3):
        for i in range(1, n - 1):
            v[i] = 0.5 * u[i] + 0.25 * (u[i - 1] + u[i + 1])
        for j in range(1, n - 1):
            u[j] = v[j]
",
    ),
    (
        "reductions",
        "
def f(x: f32[n, m], s: inout[f32[m]], top: inout[f32[n]]):
    for i in range(n):
        r: f32 = 0.0
        for j in range(m):
            r += x[i, j]
            s[j] += x[i, j] * x[i, j]
        for k in range(m):
            top[i] = max(top[i], x[i, k] - r)
",
    ),
    (
        "a convolution",
        "
def f(x: f32[n], w: f32[m], y: inout[f32[n]]):
    t = zeros((n,), f32)
    for i in range(n):
        for k in range(m):
            t[i] += w[k] * x[(i + k) % n]
    for j in range(n):
        y[j] = max(t[j], 0.0)
",
    ),
    (
        "branches",
        "
def f(x: f32[n, m], b: i32[n], y: inout[f32[n, m]]):
    for i in range(n):
        for j in range(m):
            if b[i] > 2 and i < j + 2:
                y[i, j] = x[i, j]
            elif j % 2 == 0:
                y[i, j] += 1
",
    ),
    (
        "a gradient",
        "
def f(x: f64[n, m], w: f64[m]) -> f64:
    s: f64 = 0.0
    for i in range(n):
        t: f64 = 0.0
        for j in range(m):
            t += w[j] * x[i, j]
        s += t * t * t
    return s
",
    ),
];

/// Returns the programs with their names; the last one is differentiated.
fn programs() -> Vec<(&'static str, Func)> {
    let elaborated = |(name, text): &(&'static str, &str)| {
        let program = Program::load(Source::inline("test.ft", *text), &NoLoader);
        let func = program.elaborate("f", &BTreeMap::new(), &NoHooks).unwrap_or_else(|d| panic!("{name}: {d}"));
        if *name != "a gradient" {
            return (*name, func);
        }
        let wrt = ["x", "w"].map(str::to_string);
        let vjp = differentiate(&Request::new(Kind::Vjp, "vjp", &func, &wrt));
        (*name, vjp.unwrap_or_else(|d| panic!("{name}: {d}")))
    };
    PROGRAMS.iter().map(elaborated).collect()
}

/// Number of seeds of each program.
const SEEDS: u64 = 20;

/// Schedules every program at random; returns the failures, shrunk, and all cases with their programs' names.
fn recorded() -> (Vec<String>, Vec<(&'static str, Case)>, Counts) {
    let all: Vec<(&str, Func, u64)> =
        programs().into_iter().flat_map(|(name, f)| (0..SEEDS).map(move |seed| (name, f.clone(), seed))).collect();
    let one = |(name, func, seed): (&'static str, Func, u64)| {
        let mut counts = Counts::default();
        let (case, wrong) = scheduled(func, seed, &mut counts);
        let failure = wrong.map(|what| {
            let (case, what) = small(&case, &what, &|_, _, _| None);
            format!("{name}, {}", show(&case, &what))
        });
        (failure, (name, case), counts)
    };
    let (mut failures, mut cases, mut counts) = (Vec::new(), Vec::new(), Counts::default());
    for (failure, case, of) in all.into_par_iter().map(one).collect::<Vec<_>>() {
        failures.extend(failure);
        cases.push(case);
        counts.add(&of);
    }
    (failures, cases, counts)
}

#[test]
fn traces_replay_on_every_kind_of_program() {
    let (failures, cases, counts) = recorded();
    println!("{counts}");
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures[..failures.len().min(3)].join("\n\n"));
    for (name, _) in PROGRAMS {
        let steps: usize = cases.iter().filter(|(n, _)| *n == name).map(|(_, c)| c.trace.steps.len()).sum();
        assert!(steps > SEEDS as usize / 2, "only {steps} steps are taken on {name}");
    }
}

/// Numbers that no step expects.
const NUMBERS: [i64; 9] = [0, -1, 1, 2, 7, 1 << 40, 1 << 62, i64::MAX, i64::MIN];

/// Collects all places of a trace, as JSON pointers.
fn places(at: &str, value: &Json, out: &mut Vec<String>) {
    out.push(at.to_string());
    match value {
        Json::Array(all) => all.iter().enumerate().for_each(|(k, v)| places(&format!("{at}/{k}"), v, out)),
        Json::Object(all) => all.iter().for_each(|(k, v)| places(&format!("{at}/{k}"), v, out)),
        _ => {}
    }
}

/// Corrupts a trace somewhere: another number, name, primitive, or kind of value; a step removed, duplicated, or
/// swapped.
fn broken(trace: &Json, rng: &mut StdRng) -> Json {
    let mut out = trace.clone();
    let mut all = Vec::new();
    places("", &out, &mut all);
    let at = all[rng.random_range(0..all.len())].clone();
    let place = out.pointer_mut(&at).expect("it is a place of this trace");
    match place {
        Json::Number(_) => *place = json!(NUMBERS[rng.random_range(0..NUMBERS.len())]),
        Json::String(_) if at.ends_with("/method") => {
            let methods = primitives();
            *place = json!(methods[rng.random_range(0..methods.len())]);
        }
        Json::String(_) => *place = json!(["i", "j", "t", "y", "i~o", "", "n > 2", "factor"][rng.random_range(0..8)]),
        Json::Array(values) if !values.is_empty() => {
            let (a, b) = (rng.random_range(0..values.len()), rng.random_range(0..values.len()));
            match rng.random_range(0..3) {
                0 => drop(values.remove(a)),
                1 => values.insert(a, values[b].clone()),
                _ => values.swap(a, b),
            }
        }
        Json::Object(fields) if at.ends_with("/value") => {
            let other = json!([{"int": 3}, {"str": "i"}, {"list": []}, {"bool": true}, {"float": 0.5}, {"map": [[]]}]);
            *fields = other[rng.random_range(0..6)].as_object().cloned().unwrap_or_default();
        }
        Json::Object(fields) => {
            let key = fields.keys().nth(rng.random_range(0..fields.len().max(1))).cloned();
            key.map(|k| fields.remove(&k));
        }
        _ => *place = json!(null),
    }
    out
}

/// Replays a corrupted trace: returns its fault, or whether it was accepted; `None` if it could not be parsed.
fn taken(case: &Case, text: &str) -> Result<Option<bool>, String> {
    let taken = catch_unwind(AssertUnwindSafe(|| {
        let Ok(trace) = Trace::from_json(text) else { return Ok(None) };
        match trace.replay(case.func.clone()) {
            Err((_, refusal)) if refusal.message.is_empty() => Err("it is refused without a word".to_string()),
            Err(_) => Ok(Some(false)),
            Ok(s) => {
                let wrong = fault(&runs(&case.func, case.seed), s.func()).or_else(|| again(&case.func, &s));
                wrong.map_or(Ok(Some(true)), Err)
            }
        }
    }));
    taken.unwrap_or_else(|_| Err("it panics".to_string()))
}

#[test]
fn broken_traces_are_refused_or_compute_the_same() {
    let (_, cases, _) = recorded();
    let cases: Vec<_> = cases.into_iter().filter(|(_, c)| !c.trace.steps.is_empty()).collect();
    let one = |(name, case): &(&str, Case)| {
        let mut rng = StdRng::seed_from_u64(case.seed);
        let whole: Json = serde_json::from_str(&case.trace.to_json()).expect("a trace is JSON");
        let mut outcomes = [0; 3];
        let mut failures = Vec::new();
        for _ in 0..4 {
            let mut trace = whole.clone();
            for _ in 0..rng.random_range(1..3) {
                trace = broken(&trace, &mut rng);
            }
            let mut text = trace.to_string();
            if rng.random_range(0..8) == 0 {
                text.truncate(rng.random_range(0..text.len()));
            }
            match taken(case, &text) {
                Ok(outcome) => outcomes[outcome.map_or(0, |taken| 1 + usize::from(taken))] += 1,
                Err(what) => failures.push(format!("{name}, seed {}: {what}\n{text}", case.seed)),
            }
        }
        (outcomes, failures)
    };
    let (mut unread, mut refused, mut same, mut failures) = (0, 0, 0, Vec::new());
    for (outcomes, found) in cases.par_iter().map(one).collect::<Vec<_>>() {
        (unread, refused, same) = (unread + outcomes[0], refused + outcomes[1], same + outcomes[2]);
        failures.extend(found);
    }
    println!("{unread} are not read, {refused} are refused, {same} are taken");
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures[..failures.len().min(5)].join("\n\n"));
    assert!(unread.min(refused).min(same) > 20, "{unread} are not read, {refused} are refused, {same} are taken");
}
