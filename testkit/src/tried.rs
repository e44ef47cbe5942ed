//! Case of the campaign: a random program, random steps, and its fault, shrunk.
//!
//! A [`Case`] is a program and the recorded steps; [`problem`] takes them one by one and returns the fault, so that the
//! same function finds failures, shrinks them, and repeats a saved one.

use crate::confirm::{self, Seen};
use crate::steps::Chooser;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};
use taffeta_ast::interp::{self, Inputs, Outputs};
use taffeta_ast::random::nest::{Class, inputs, nest};
use taffeta_ast::random::shrink;
use taffeta_ast::{DType, Func, Span, Value as Array, print};
use taffeta_schedule::{Arg, Argument, Recorded, Refusal, Schedule, Step, Trace};

/// Sizes at which programs are run.
const SIZES: [i64; 5] = [0, 1, 2, 3, 6];
/// Number of steps tried on a program.
const TRIED: usize = 8;
/// Time limit for shrinking a failure.
const SHRINKING: Duration = Duration::from_secs(60);

/// Statistics of a campaign.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Number of calls of each primitive, and of those that were accepted.
    pub steps: BTreeMap<String, (u64, u64)>,
    /// Refusals that name a dependence, by the verdict of a run.
    pub refusals: BTreeMap<&'static str, u64>,
}

impl Counts {
    /// Adds the statistics of another program.
    pub fn add(&mut self, other: &Counts) {
        for (k, (asked, taken)) in &other.steps {
            let c = self.steps.entry(k.clone()).or_default();
            *c = (c.0 + asked, c.1 + taken);
        }
        for (k, n) in &other.refusals {
            *self.refusals.entry(k).or_default() += n;
        }
    }
}

impl std::fmt::Display for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let steps: Vec<String> = self.steps.iter().map(|(k, (a, t))| format!("{k} {t}/{a}")).collect();
        let refusals: Vec<String> = self.refusals.iter().map(|(k, n)| format!("{n} {k}")).collect();
        write!(f, "taken/asked: {}\nrefusals with a witness: {}", steps.join(", "), refusals.join(", "))
    }
}

/// Program, with steps on it.
#[derive(Clone, Debug)]
pub struct Case {
    /// Program.
    pub func: Func,
    /// Seed of the inputs.
    pub seed: u64,
    /// Steps.
    pub trace: Trace,
}

/// Inputs on which a program without steps finishes, with its outputs.
#[derive(Clone, Debug)]
pub struct Run {
    /// Inputs of the run.
    pub inputs: Inputs,
    /// Outputs of the run.
    pub before: Outputs,
}

/// Returns the runs that finish; steps may change which error stops a program.
pub fn runs(func: &Func, seed: u64) -> Vec<Run> {
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

/// Further check of a program under a schedule, beyond the interpreter: it takes the program, the program after the
/// steps, and the runs.
pub type Further<'a> = &'a dyn Fn(&Func, &Func, &[Run]) -> Option<String>;

/// Takes random steps on the program of a seed; returns the case with the accepted steps, and its fault, if there is
/// any.
pub fn random(seed: u64, class: Class, counts: &mut Counts) -> (Case, Option<String>) {
    scheduled(nest(seed, class), seed, counts)
}

/// Takes random steps on a program.
pub fn scheduled(func: Func, seed: u64, counts: &mut Counts) -> (Case, Option<String>) {
    by(Chooser::new(seed), func, seed, counts)
}

/// Takes chosen steps on a program.
pub fn by(mut choose: Chooser, func: Func, seed: u64, counts: &mut Counts) -> (Case, Option<String>) {
    let runs = runs(&func, seed);
    let mut s = Schedule::new(func.clone());
    let mut wrong = None;
    for _ in 0..TRIED {
        let Some((method, args)) = choose.step(&s) else { continue };
        // Counted by keyword too: `cache pad`.
        let named = args.iter().filter_map(|a| Some(format!("{method} {}", a.name.as_ref()?)));
        let kinds: Vec<String> = [method.clone()].into_iter().chain(named).collect();
        kinds.iter().for_each(|k| counts.steps.entry(k.clone()).or_default().0 += 1);
        match step(&mut s, &method, &args, seed, counts) {
            Ok(true) => {
                kinds.into_iter().for_each(|k| counts.steps.entry(k).or_default().1 += 1);
                wrong = fault(&runs, s.func()).or_else(|| again(&func, &s));
            }
            Ok(false) => {}
            Err(what) => {
                // The step is not in the trace, because it did not finish.
                let mut trace = s.trace().clone();
                let args = args.iter().map(|a| s.recorded(a)).collect();
                trace.steps.push(Step { method, args, notes: Vec::new() });
                return (Case { func, seed, trace }, Some(what));
            }
        }
        if wrong.is_some() {
            break;
        }
    }
    let trace = s.trace().clone();
    (Case { func, seed, trace }, wrong)
}

/// Takes a step, and checks its refusal.
fn step(s: &mut Schedule, method: &str, args: &[Arg], seed: u64, counts: &mut Counts) -> Result<bool, String> {
    let before = s.clone();
    let called = catch_unwind(AssertUnwindSafe(|| s.call(method, args)));
    let Ok(answer) = called else {
        *s = before;
        return Err(format!("{method} panics"));
    };
    let Err(refusal) = answer else {
        let held = if s.marks_hold() { Ok(true) } else { Err(format!("after {method}, a loop mark does not hold")) };
        return held;
    };
    if print::func(s.func()) != print::func(before.func()) {
        return Err(format!("{method} was refused, but changed the program: {}", refusal.message));
    }
    refused(before.func(), method, &refusal, seed, counts).map_or(Ok(false), Err)
}

/// Returns the fault of a refusal.
fn refused(func: &Func, method: &str, refusal: &Refusal, seed: u64, counts: &mut Counts) -> Option<String> {
    let seen = confirm::seen(func, refusal, &|sizes| inputs(func, sizes, seed))?;
    *counts.refusals.entry(seen.word()).or_default() += 1;
    match seen {
        Seen::Wrong(what) => Some(format!("{method} is wrongly refused: {}: {what}", refusal.message)),
        _ => None,
    }
}

/// Returns the difference between the outputs of a program and those of its runs.
pub fn fault(runs: &[Run], now: &Func) -> Option<String> {
    if let Err(e) = taffeta_ast::validate::logical(now) {
        return Some(format!("the program is invalid: {e}"));
    }
    runs.iter().find_map(|r| match interp::run(now, &r.inputs) {
        Ok(after) if close(&r.before, &after) => None,
        Ok(after) => Some(format!("different results at {:?}\nbefore {:?}\nafter  {:?}", r.inputs, r.before, after)),
        Err(e) => Some(format!("the program stops at {:?}: {e}", r.inputs)),
    })
}

/// Returns the difference if the recorded steps are replayed.
pub fn again(func: &Func, s: &Schedule) -> Option<String> {
    match s.trace().replay(func.clone()) {
        Ok(again) if print::func(again.func()) == print::func(s.func()) => None,
        Ok(again) => Some(format!("the replay yields another program:\n{}", print::func(again.func()))),
        Err((k, r)) => Some(format!("the replay refuses step {k}: {}", r.message)),
    }
}

/// Returns the fault of a case, with the steps up to it. Refused steps are left out: a smaller program may have no
/// place for them.
pub fn problem(case: &Case, further: Further<'_>) -> Option<(Case, String)> {
    let func = &case.func;
    let runs = runs(func, case.seed);
    let mut s = Schedule::new(func.clone());
    let found = |s: &Schedule, last: Option<&Step>, what: String| {
        let mut trace = s.trace().clone();
        trace.steps.extend(last.cloned());
        Some((Case { trace, ..case.clone() }, what))
    };
    for next in &case.trace.steps {
        for back in 0..=MAX_BACK {
            let recorded = next.args.iter().map(|a| Argument { value: moved(&a.value, back), ..a.clone() }).collect();
            let next = Step { args: recorded, ..next.clone() };
            let value = |a: &Argument| {
                Some(Arg { name: a.name.clone(), value: a.value.revive(s.func()).ok()?, span: Span::NONE })
            };
            let Some(args) = next.args.iter().map(value).collect::<Option<Vec<Arg>>>() else { continue };
            match step(&mut s, &next.method, &args, case.seed, &mut Counts::default()) {
                Ok(true) => {
                    if let Some(what) = fault(&runs, s.func()).or_else(|| again(func, &s)) {
                        return found(&s, None, what);
                    }
                    break;
                }
                Ok(false) => {}
                Err(what) => return found(&s, Some(&next), what),
            }
        }
    }
    let what = further(func, s.func(), &runs)?;
    found(&s, None, what)
}

/// Maximum number of statements by which the target of a step may have moved.
const MAX_BACK: usize = 4;

/// Returns the value for a program with fewer statements before its target.
fn moved(value: &Recorded, back: usize) -> Recorded {
    match value {
        Recorded::Stmt { place, name, .. } => {
            Recorded::Stmt { place: place.saturating_sub(back), name: name.clone(), written: None }
        }
        Recorded::List(v) => Recorded::List(v.iter().map(|v| moved(v, back)).collect()),
        other => other.clone(),
    }
}

/// Returns the kind of a fault: its text up to the details of the program.
fn kind(problem: &str) -> &str {
    problem.split(['\n', ':']).next().unwrap_or_default()
}

/// Shrinks a case: as few steps, on as small a program, as show the same kind of fault.
pub fn small(case: &Case, what: &str, further: Further<'_>) -> (Case, String) {
    let start = Instant::now();
    let fails = |case: &Case| problem(case, further).filter(|(_, found)| kind(found) == kind(what));
    let mut best = (case.clone(), what.to_string());
    let mut k = 0;
    while k < best.0.trace.steps.len() && start.elapsed() < SHRINKING {
        let mut fewer = best.0.clone();
        fewer.trace.steps.remove(k);
        match fails(&fewer) {
            Some(found) => best = found,
            None => k += 1,
        }
    }
    let program = taffeta_ast::random::Case { func: best.0.func.clone(), inputs: Inputs::default() };
    shrink(&program, &mut |smaller| {
        if start.elapsed() > SHRINKING {
            return false;
        }
        let found = fails(&Case { func: smaller.func.clone(), ..best.0.clone() });
        let is = found.is_some();
        best = found.unwrap_or_else(|| best.clone());
        is
    });
    best
}

/// Formats a case: the program, the steps, the program after them, and the fault.
pub fn show(case: &Case, what: &str) -> String {
    let steps: Vec<String> = case.trace.steps.iter().map(ToString::to_string).collect();
    let after = case.trace.replay(case.func.clone()).map_or(String::new(), |s| print::func(s.func()));
    format!("seed {}\n{}\n{}\n\n{after}\n{what}", case.seed, print::func(&case.func), steps.join("\n"))
}

/// Returns whether both are equal up to the rounding of reordered sums.
pub fn close(a: &Outputs, b: &Outputs) -> bool {
    a.unwritten == b.unwritten
        && (a.params.len(), a.results.len()) == (b.params.len(), b.results.len())
        && a.params.iter().chain(&a.results).zip(b.params.iter().chain(&b.results)).all(|(x, y)| near(x, y))
}

/// Returns whether both are equal up to rounding.
pub fn near(x: &Array, y: &Array) -> bool {
    let (xs, ys) = (x.numbers(), y.numbers());
    let most = xs.iter().filter(|v| v.is_finite()).fold(1.0f64, |m, v| m.max(v.abs()));
    let tolerance = if x.dtype() == DType::F64 { 1e-9 } else { 1e-4 };
    x.shape() == y.shape()
        && (0..x.data().len()).all(|k| match (x.data().get_int(k), y.data().get_int(k)) {
            (Some(a), Some(b)) => a == b,
            _ => xs[k] == ys[k] || (xs[k].is_nan() && ys[k].is_nan()) || (xs[k] - ys[k]).abs() <= tolerance * most,
        })
}
