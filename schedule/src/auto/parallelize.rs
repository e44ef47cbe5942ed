//! `auto_parallelize`: loops on several threads, as far outside as possible.
//!
//! The outermost loop is tried first, then the loops inside of it; where the outer of two directly nested loops has few
//! iterations, both are also tried merged (`merge`). The primitive chooses how reductions are shared; the estimate
//! includes copies, atomic updates and the start of threads, so small loops stay sequential. Where local tensors alone
//! prevent threads, and every iteration writes them before it reads them, they are privatised (`privatize`). Loops
//! inside of a sequential one are also tried together: a single parallel one may move its data from core to core and
//! back in each outer iteration, while all of them leave the data in place. For a guessed trip count, threads start
//! only above the number of iterations, or of stored positions, at which they pay; the estimate is of a call in which
//! they start.

use super::model::Model;
use super::nest;
use super::structured::{has_lists, traverses};
use super::target::Target;
use super::trip_counts::Estimate;
use crate::auto::model::enclosing::{Stage, is_guess};
use crate::auto::rule::{Candidate, ExtraSteps, Rule, with_props};
use crate::refusal::Refusal;
use crate::schedule::Schedule;
use crate::tree::{self, Loop};
use crate::value::{Arg, Handle, Value};
use taffeta_ast::{Distribution, LoopProps, Parallel, Stmt, StmtId, StmtKind};

pub(super) const RULE: Rule = Rule {
    method: "auto_parallelize",
    summary: "Runs outer loops on several threads.",
    why_here: "after all rules that change loops, since no step splits or moves a parallel loop",
    gain: crate::auto::rule::MIN_GAIN_MARK,
    min_gain_sparse: Some(crate::auto::rule::MIN_GAIN_MARK),
    objective: None,
    rounds: 1,
    sites,
    candidates,
};

/// Iterations per thread below which two nested loops are worth merging.
const FEW: f64 = 4.0;
/// Upper limit of `chunk`, the minimum number of stored positions worth sharing, before rounding.
const MAX_POSITIONS: f64 = 1e7;
/// Maximum number of tensors privatised for one loop.
const MAX_PRIVATE: usize = 8;
/// Binary logarithm of the largest value assumed for unknown sizes.
const MAX_UNKNOWN: u32 = 24;
/// Maximum depth of loops tried.
const MAX_DEPTH: usize = 3;

/// Collects all loops, outermost first.
fn sites(s: &Schedule) -> Vec<StmtId> {
    let mut out = Vec::new();
    s.func().body.walk(&mut |l| out.extend(Loop::of(l).map(|l| l.stmt.id())));
    out
}

/// Lists candidates for an outermost loop and the loops inside of it; inner loops become sites of their own once
/// threads run some loop of their outermost one.
fn candidates(s: &Schedule, model: &Model<'_>, site: StmtId) -> Vec<Candidate> {
    let Some(l) = tree::find(&s.func().body, site) else { return Vec::new() };
    let mut around = s.around(site);
    let others = around.first().is_none_or(has_threads);
    if model.target.threads < 2 || has_threads(&l) || !others || around.iter().any(is_on_threads) {
        return Vec::new();
    }
    let mut out = Vec::new();
    inside(s, model, &l, &mut around, &mut out);
    out
}

fn is_on_threads(l: &Stmt) -> bool {
    matches!(l.kind(), StmtKind::For { props, .. } if props.parallel.is_some())
}

fn has_threads(s: &Stmt) -> bool {
    s.any(&mut |s| is_on_threads(s))
}

/// Collects the candidates to run a loop, or loops inside of it, on threads.
fn inside(s: &Schedule, model: &Model<'_>, stmt: &Stmt, around: &mut Vec<Stmt>, out: &mut Vec<Candidate>) {
    let Some(l) = Loop::of(stmt) else { return };
    let StmtKind::For { props, .. } = stmt.kind() else { return };
    // Lowering decides whether threads can share stored elements.
    let is_stored = traverses(s.func(), stmt);
    if props.library || is_stored && (props.vectorize.is_some() || !s.is_lowered()) {
        return;
    }
    let trips = model.trips(s.func(), around, &l);
    if s.is_lowered() && has_lists(s.func(), stmt) {
        out.push(by_positions(s, stmt, positions_that_pay(s, model, stmt, around)));
    } else {
        out.push(parallel(s, (stmt, props), above(s, model, (&l, trips), around)));
    }
    let within = nest::loops_in(&l.body);
    if let [inner] = within.as_slice()
        && !traverses(s.func(), inner)
        && trips.value < FEW * model.target.threads as f64
    {
        out.push(merged(s, stmt, inner));
    }
    if around.len() + 1 < MAX_DEPTH {
        around.push(stmt.clone());
        // Tried before single loops: if all of them are legal together, lower bounds rule the single ones out untried.
        out.extend(all_inside(s, model, stmt, &within, around));
        within.iter().for_each(|inner| inside(s, model, inner, around, out));
        around.pop();
    }
}

/// Returns the candidate to run all loops directly inside of another one on threads, as far as they are unmarked and
/// take longer than the start of threads.
fn all_inside(s: &Schedule, model: &Model<'_>, outer: &Stmt, within: &[Stmt], around: &[Stmt]) -> Option<Candidate> {
    if within.len() < 2 {
        return None;
    }
    let saved = 1.0 - 1.0 / model.target.threads as f64;
    let pays = |l: &&Stmt| {
        let may = nest::is_unmarked(l) && !traverses(s.func(), l);
        may && model.once(s.func(), around, l) * saved > model.target.prices.region
    };
    let own = within.iter().filter(pays).filter_map(Loop::of);
    let all: Vec<(StmtId, Option<i64>)> = own
        .map(|l| {
            let trips = model.trips(s.func(), around, &l);
            (l.stmt.id(), above(s, model, (&l, trips), around))
        })
        .collect();
    if all.len() < 2 {
        return None;
    }
    let steps = format!("parallelize of {} loops in \"{}\"", all.len(), s.called(outer));
    let marked: Vec<(StmtId, LoopProps)> = all.iter().map(|(l, above)| (*l, on_threads(*above))).collect();
    let lower_bound = move |s: &Schedule, model: &mut Model<'_>| {
        model.program(&marked.iter().fold(s.func().clone(), |func, (l, props)| with_props(&func, *l, props)))
    };
    let candidate = Candidate::new(steps, move |s| take_all(s, &all));
    Some(Candidate { lower_bound: Some(Box::new(lower_bound)), ..candidate })
}

/// Runs each of the loops on threads unless that is refused.
fn take_all(s: &mut Schedule, loops: &[(StmtId, Option<i64>)]) -> Result<ExtraSteps, Refusal> {
    let (mut refused, mut taken) = (None, 0);
    let mut others = ExtraSteps::default();
    for (l, above) in loops {
        let mut trial = s.trying();
        match privatize_and_parallelize(&mut trial, *l, &args(*l, *above)) {
            Ok(own) => {
                s.become_tried(trial);
                others.before.extend(own.before);
                taken += 1;
            }
            Err(r) => refused = Some(r),
        }
    }
    match refused {
        Some(r) if taken == 0 => Err(r),
        _ => Ok(others),
    }
}

/// Returns the trip count above which a loop runs on threads, if its trip count is a guess.
fn above(s: &Schedule, model: &Model<'_>, (l, trips): (&Loop, Estimate), around: &[Stmt]) -> Option<i64> {
    if !is_guess(trips) {
        return None;
    }
    // A single iteration occupies one thread, however long it takes.
    let break_even = || break_even_trip_count(s, model, l, around);
    model.threshold(around, &l.stmt, break_even).or((trips.value < 2.0).then_some(1))
}

/// Returns the trip count above which threads pay, for a loop with a guessed trip count: one less than its trip count
/// at the smallest value of unknown sizes at which threads pay. `None` if they pay for any trip count, or for no
/// assumed size.
fn break_even_trip_count(s: &Schedule, model: &Model<'_>, l: &Loop, around: &[Stmt]) -> Option<i64> {
    let target = model.target;
    let saved = 1.0 - 1.0 / target.threads as f64;
    let small = |k: u32| Target { unknown: f64::from(1 << k), ..target.clone() };
    // Times grow with sizes, so the threshold is found by bisection.
    let (mut too_small, mut most) = (0, MAX_UNKNOWN + 1);
    while most - too_small > 1 {
        let middle = too_small + (most - too_small) / 2;
        let once = model.with_target(&small(middle), Stage::Marks).once(s.func(), around, &l.stmt);
        let end = if once * saved > target.prices.region { &mut most } else { &mut too_small };
        *end = middle;
    }
    let trips = |k| model.with_target(&small(k), Stage::Marks).trips(s.func(), around, l).value;
    (most <= MAX_UNKNOWN).then(|| trips(most) as i64 - 1).filter(|n| *n > 1)
}

fn parallel(s: &Schedule, (l, props): (&Stmt, &LoopProps), above: Option<i64>) -> Candidate {
    let id = l.id();
    let text = above.map_or(String::new(), |n| format!(", above={n}"));
    let steps = format!("parallelize(\"{}\"{text})", s.called(l));
    let candidate = Candidate::new(steps, move |s| privatize_and_parallelize(s, id, &args(id, above)));
    candidate.marked(id, LoopProps { vectorize: props.vectorize, ..on_threads(above) })
}

/// Returns the arguments of `parallelize`.
fn args(l: StmtId, above: Option<i64>) -> Vec<Arg> {
    [Arg::from(l)].into_iter().chain(above.map(|n| Arg::named("above", n))).collect()
}

/// Returns the loop properties that `parallelize` sets.
fn on_threads(above: Option<i64>) -> LoopProps {
    let threads = Parallel { distribution: Distribution::Static, chunk: None, above: above.map(i64::unsigned_abs) };
    LoopProps { parallel: Some(threads), ..LoopProps::default() }
}

/// Returns the candidate to divide a loop over uneven rows into parts of equally many stored positions. The number of
/// positions is known at run time only; threads start there if it is at least `chunk`.
fn by_positions(s: &Schedule, l: &Stmt, chunk: Option<i64>) -> Candidate {
    let id = l.id();
    let text = chunk.map_or(String::new(), |n| format!(", chunk={n}"));
    let candidate =
        Candidate::new(format!("parallelize(\"{}\", schedule=\"positions\"{text})", s.called(l)), move |s| {
            let chunk = chunk.map(|n| Arg::named("chunk", n));
            let args: Vec<Arg> =
                [Arg::from(id), Arg::named("schedule", "positions")].into_iter().chain(chunk).collect();
            privatize_and_parallelize(s, id, &args)
        });
    let threads = Parallel { distribution: Distribution::Positions, ..Parallel::default() };
    candidate.marked(id, LoopProps { parallel: Some(threads), ..LoopProps::default() })
}

/// Returns the number of positions that take as long as the start of threads, rounded up to a power of two, if it
/// exceeds the default of `chunk`.
fn positions_that_pay(s: &Schedule, model: &Model<'_>, l: &Stmt, around: &[Stmt]) -> Option<i64> {
    let mut way = around.to_vec();
    let mut inner = l.clone();
    while !traverses(s.func(), &inner) {
        way.push(inner.clone());
        let within = nest::loops_in(&Loop::of(&inner)?.body);
        inner = within.iter().find(|l| traverses(s.func(), l)).or(within.first())?.clone();
    }
    let loops = nest::loops_in(&Loop::of(&inner)?.body);
    let positions = model.trips(s.func(), &way, &Loop::of(&inner)?).value;
    let one = model.once(s.func(), &way, &inner) / positions.max(1.0);
    let least = (model.target.prices.region / one.max(0.01)).min(MAX_POSITIONS);
    let chunk = (least as u64).next_power_of_two() as i64;
    (chunk > Parallel::POSITIONS[usize::from(!loops.is_empty())]).then_some(chunk)
}

/// Runs a loop on threads, after privatising the local tensors that alone prevent it.
fn privatize_and_parallelize(s: &mut Schedule, l: StmtId, args: &[Arg]) -> Result<ExtraSteps, Refusal> {
    let mut steps = Vec::new();
    loop {
        let refused = match s.call("parallelize", args) {
            Ok(_) => return Ok(ExtraSteps { before: steps, ..ExtraSteps::default() }),
            Err(r) => r,
        };
        let shared = refused.dependence.as_ref().map(|d| Handle::Tensor(d.source.tensor.clone()));
        let Some(shared) = shared.filter(|_| steps.len() < MAX_PRIVATE) else { return Err(refused) };
        let name = match &shared {
            Handle::Tensor(t) => t.name().to_string(),
            Handle::Stmt(_) => return Err(refused),
        };
        let called = s.stmt(&Arg::from(l)).map(|l| s.called(&l)).unwrap_or_default();
        if s.call("privatize", &[Arg::from(Value::Handle(shared)), Arg::from(l)]).is_err() {
            return Err(refused);
        }
        steps.push(format!("privatize(\"{name}\", \"{called}\")"));
    }
}

fn merged(s: &Schedule, outer: &Stmt, inner: &Stmt) -> Candidate {
    let (a, b) = (outer.id(), inner.id());
    let steps = format!("parallelize(merge(\"{}\", \"{}\"))", s.called(outer), s.called(inner));
    let candidate = Candidate::new(steps, move |s| {
        let made = s.call("merge", &[Arg::from(a), Arg::from(b)])?;
        s.call("parallelize", &[Arg::from(made)]).map(|_| ExtraSteps::default())
    });
    let lower_bound = move |s: &Schedule, model: &mut Model<'_>| {
        let saved = 1.0 - 1.0 / model.target.threads as f64;
        model.program(s.func()) - saved * model.part(s.func(), a)
    };
    Candidate { lower_bound: Some(Box::new(lower_bound)), ..candidate }
}
