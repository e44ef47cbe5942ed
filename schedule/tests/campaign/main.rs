//! Random programs under random schedules: whatever is taken, the interpreter computes the same before and after.
//!
//! A failure prints its seed, the program and the steps, with the steps that are not needed for it left out. `FIRST` and
//! `MOST` in the environment choose other seeds.

mod steps;

use rayon::prelude::*;
use std::collections::BTreeMap;
use steps::Chooser;
use weft_ast::interp::{self, Inputs, Outputs};
use weft_ast::random::nest::{Class, inputs, nest};
use weft_ast::{DType, Func, Value as Array, print};
use weft_schedule::{Schedule, Step, Trace};

/// Sizes that programs are run at.
const SIZES: [i64; 5] = [0, 1, 2, 3, 6];
/// Steps that are tried on a program.
const TRIED: usize = 8;

/// How often a primitive was asked for, and how often it was taken.
type Counts = BTreeMap<String, (u64, u64)>;

struct Run {
    inputs: Inputs,
    before: Outputs,
}

/// Runs that come to their end; which error stops a program may change.
fn runs(func: &Func, seed: u64) -> Vec<Run> {
    let mut out = Vec::new();
    for (k, n) in SIZES.iter().enumerate() {
        let sizes: Vec<i64> = (0..func.sizes.len()).map(|i| n + (i as i64 + k as i64) % 2).collect();
        let inputs = inputs(func, &sizes, seed + k as u64);
        if let Ok(before) = interp::run(func, &inputs) {
            out.push(Run { inputs, before });
        }
    }
    out
}

/// What a program computes otherwise than before.
fn fault(runs: &[Run], now: &Func) -> Option<String> {
    if let Err(e) = weft_ast::validate::logical(now) {
        return Some(format!("the program is invalid: {e}"));
    }
    runs.iter().find_map(|r| match interp::run(now, &r.inputs) {
        Ok(after) if close(&r.before, &after) => None,
        Ok(after) => Some(format!("at {:?}\nbefore {:?}\nafter  {:?}", r.inputs, r.before, after)),
        Err(e) => Some(format!("at {:?}: {e}", r.inputs)),
    })
}

/// Tries random steps on the program of a seed.
fn one(seed: u64, class: Class, counts: &mut Counts) -> Option<String> {
    let func = nest(seed, class);
    let runs = runs(&func, seed);
    let mut s = Schedule::new(func.clone());
    let mut choose = Chooser::new(seed);
    for _ in 0..TRIED {
        let Some((method, args)) = choose.step(&s) else { continue };
        let before = s.clone();
        let count = counts.entry(method.clone()).or_default();
        count.0 += 1;
        let called = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| s.call(&method, &args)));
        let Ok(answer) = called else {
            let steps: Vec<String> = before.trace().steps.iter().map(ToString::to_string).collect();
            let (steps, now) = (steps.join("\n"), print::func(before.func()));
            return Some(format!("seed {seed}, {class:?}\n{steps}\n{now}\n{method} panics: {args:?}"));
        };
        if let Err(r) = answer {
            if print::func(s.func()) != print::func(before.func()) {
                return Some(format!("seed {seed}: {method} was refused and changed the program: {}", r.message));
            }
            continue;
        }
        count.1 += 1;
        if let Some(what) = fault(&runs, s.func()) {
            return Some(report(seed, class, &func, &runs, s.trace(), &what));
        }
        match s.trace().replay(func.clone()) {
            Ok(again) if print::func(again.func()) == print::func(s.func()) => {}
            Ok(again) => {
                let what = format!("taken again, it is another program:\n{}", print::func(again.func()));
                return Some(report(seed, class, &func, &runs, s.trace(), &what) + &print::func(s.func()));
            }
            Err((k, r)) => {
                let what = format!("taken again, step {k} is refused: {}", r.message);
                return Some(report(seed, class, &func, &runs, s.trace(), &what));
            }
        }
    }
    None
}

/// The failure, with as few steps as show it.
fn report(seed: u64, class: Class, func: &Func, runs: &[Run], trace: &Trace, what: &str) -> String {
    let fails = |steps: &[Step]| {
        let part = Trace { steps: steps.to_vec(), ..trace.clone() };
        let s = part.replay(func.clone()).ok()?;
        Some((fault(runs, s.func())?, print::func(s.func())))
    };
    let mut steps = trace.steps.clone();
    let mut k = 0;
    while k < steps.len() {
        let mut fewer = steps.clone();
        fewer.remove(k);
        if fails(&fewer).is_some() {
            steps = fewer;
        } else {
            k += 1;
        }
    }
    let (what, after) = fails(&steps).unwrap_or_else(|| (what.to_string(), String::new()));
    let list: Vec<String> = steps.iter().map(ToString::to_string).collect();
    format!("seed {seed}, {class:?}\n{}\n{}\n\n{after}\n{what}", print::func(func), list.join("\n"))
}

fn campaign(class: Class, most: u64) {
    let number = |name: &str, or: u64| std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(or);
    let (first, most) = (number("FIRST", 0), number("MOST", most));
    let start = std::time::Instant::now();
    let all: Vec<(Option<String>, Counts)> = (first..first + most)
        .into_par_iter()
        .map(|seed| {
            let mut counts = Counts::new();
            (one(seed, class, &mut counts), counts)
        })
        .collect();
    let mut counts = Counts::new();
    for (_, of) in &all {
        for (k, (asked, taken)) in of {
            let c = counts.entry(k.clone()).or_default();
            *c = (c.0 + asked, c.1 + taken);
        }
    }
    println!("{class:?}, {most} programs in {:.0?}: {counts:?}", start.elapsed());
    let failures: Vec<String> = all.into_iter().filter_map(|(f, _)| f).collect();
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures[..failures.len().min(3)].join("\n\n"));
}

#[test]
fn affine_programs() {
    campaign(Class::Affine, 600);
}

#[test]
fn programs_with_indirect_accesses() {
    campaign(Class::Wild, 500);
}

#[test]
fn programs_with_private_tensors() {
    campaign(Class::Private, 500);
}

fn close(a: &Outputs, b: &Outputs) -> bool {
    a.unwritten == b.unwritten
        && a.params.iter().chain(&a.results).zip(b.params.iter().chain(&b.results)).all(|(x, y)| near(x, y))
}

/// Equal but for the rounding of sums that were taken in another order.
fn near(x: &Array, y: &Array) -> bool {
    let all = |v: &Array| (0..v.data().len()).map(|k| v.data().get_f64(k)).collect::<Vec<f64>>();
    let (xs, ys) = (all(x), all(y));
    let most = xs.iter().filter(|v| v.is_finite()).fold(1.0f64, |m, v| m.max(v.abs()));
    let tolerance = if x.dtype() == DType::F64 { 1e-9 } else { 1e-4 };
    x.shape() == y.shape()
        && (0..x.data().len()).all(|k| match (x.data().get_int(k), y.data().get_int(k)) {
            (Some(a), Some(b)) => a == b,
            _ => xs[k] == ys[k] || (xs[k].is_nan() && ys[k].is_nan()) || (xs[k] - ys[k]).abs() <= tolerance * most,
        })
}
