//! Joint choice of a gradient's tapes and its schedule.
//!
//! Before scheduling, `autodiff` weighs operations against bytes. Under an automatic schedule, its plan is the first of
//! several candidates: the gradient that tapes all it can, the one that tapes nothing, and the one that decides tensor
//! by tensor, by the costs of this machine and the tapes in the earlier schedules, are scheduled too. The candidate
//! with the least estimate wins.
//!
//! - Schedules are compared, because facts before scheduling mislead: fusion of a tape's reader with its writer leaves
//!   the tape in a register, at no cost; recomputation is not free if its operands are out of reach; a tensor that is
//!   recomputed into memory as a whole, for a library, might as well be taped.
//! - `autodiff`'s plan stays unless another one saves the share [`GAIN`] of the estimate, since the model is no more
//!   exact than that. The tensor-by-tensor plan must save as much over the best of the others.
//! - Scheduling is slow, so candidates that cannot win are not scheduled: duplicates; candidates whose differences are
//!   negligible ([`COUNTS`]); candidates that take [`HOPELESS`] times as long before scheduling. The number of trials
//!   for `autodiff`'s plan predicts the duration and is bounded by [`MAX_TRIALS`], so no decision depends on measured
//!   time.
//! - A tape that needs much more memory than inputs and results is not chosen for speed, unless schedules keep all of
//!   it out of memory, which is tried for small programs only ([`MAX_WITH_EXCESS`]).

use super::candidate::{Choice, Derived, PlanCandidate};
use crate::options::Options;
use crate::tape_plan::{ChoiceKey, TapePlan, chooses_tapes};
use crate::timing::Timings;
use crate::{automatic, pipeline};
use std::collections::BTreeSet;
use std::sync::Arc;
use taffeta_ast::{Diagnostics, Func, Span, Stmt, StmtKind};
use taffeta_autodiff::Tape;
use taffeta_schedule::Schedule;
use taffeta_schedule::auto::{Answer, Decision, MATERIALISE, Outcome, Target, time};

/// Minimum share of the estimate that another plan must save.
const GAIN: f64 = 0.03;
/// Minimum share of the time in statements that differ between two candidates.
const COUNTS: f64 = 0.02;
/// Maximum ratio of a candidate's time to the best one's, before scheduling.
const HOPELESS: f64 = 2.0;
/// Maximum number of trials for the first candidate, of about two milliseconds each, with which others are scheduled.
const MAX_TRIALS: usize = 200;
/// Maximum number of trials with which the tensor-by-tensor candidate, the fourth, is scheduled.
const MAX_FOR_FOURTH: usize = MAX_TRIALS / 6;
/// Maximum number of trials with which the fourth candidate is scheduled if schedules hold recomputed tensors in memory
/// as a whole, when it is more likely to win.
const MAX_WITH_WHOLE: usize = MAX_TRIALS / 3;

/// Maximum number of trials with which a candidate with excessive tapes is scheduled. Its schedule may leave none of
/// the tapes in memory: fusion achieves this in small programs.
const MAX_WITH_EXCESS: usize = MAX_TRIALS / 6;

/// Reason for refusing a duplicate.
const SAME: &str = "the same program";

/// Callback that derives the programs of a tape plan.
pub(crate) type Make<'m, T> = dyn FnMut(&TapePlan, &mut Timings) -> Result<Derived<T>, Diagnostics> + 'm;

/// Schedules programs by rules, with the tapes of least estimated time.
pub(crate) fn choose<T: Sync>(
    options: &Options,
    timings: &mut Timings,
    make: &mut Make<'_, T>,
) -> Result<(Vec<Schedule>, T), Diagnostics> {
    let derived = make(&TapePlan::default(), timings)?;
    let schedules = scheduled(&derived.funcs, options, timings)?;
    if !chooses_tapes(options) || derived.choices().is_empty() {
        return Ok((schedules, derived.whole));
    }
    let target = automatic::aim(options)?.target();
    let own = PlanCandidate::new(TapePlan::default(), derived, &target);
    let mut choosing = Choosing::new(own, schedules, target, (options, timings, make));
    choosing.extremes();
    choosing.tensor_by_tensor();
    Ok(choosing.taken())
}

fn scheduled(funcs: &[Func], options: &Options, timings: &mut Timings) -> Result<Vec<Schedule>, Diagnostics> {
    funcs.iter().map(|f| pipeline::automatic(f.clone(), options, timings)).collect()
}

/// Schedules candidates in parallel.
fn all_scheduled<T: Sync>(
    candidates: &[PlanCandidate<T>],
    options: &Options,
) -> Vec<Result<Vec<Schedule>, Diagnostics>> {
    std::thread::scope(|scope| {
        let start = |c: &'_ PlanCandidate<T>| {
            let funcs = c.derived.funcs.clone();
            scope.spawn(move || scheduled(&funcs, options, &mut Timings::default()))
        };
        let threads: Vec<_> = candidates.iter().map(start).collect();
        let joined = threads.into_iter().map(std::thread::ScopedJoinHandle::join);
        joined.map(|schedules| schedules.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    })
}

/// Counts the options that rules tried.
fn trials(schedules: &[Schedule]) -> usize {
    let tried = schedules.iter().flat_map(Schedule::decisions).flat_map(|d| &d.outcomes);
    tried.filter(|o| o.steps != "keep" && !matches!(o.answer, Answer::Pruned(_))).count()
}

/// State of the choice between candidates.
struct Choosing<'c, 'm, T> {
    options: &'c Options,
    timings: &'c mut Timings,
    make: &'c mut Make<'m, T>,
    target: Arc<Target>,
    /// Best candidate so far, with its schedules and estimate.
    best: PlanCandidate<T>,
    schedules: Vec<Schedule>,
    estimate: f64,
    /// Texts of all candidates so far.
    seen: Vec<String>,
    /// Number of options that rules tried for `autodiff`'s plan, at least 1.
    trials: usize,
    /// Tensors that `autodiff`'s plan decides on.
    choices: Vec<Choice>,
    /// Tensors whose tapes stay in registers when the candidate that tapes all is scheduled.
    free: BTreeSet<ChoiceKey>,
    /// Tensors that `autodiff`'s plan recomputes, and that its schedule holds in memory as a whole.
    whole: BTreeSet<ChoiceKey>,
    outcomes: Vec<Outcome>,
    taken: usize,
}

impl<'c, 'm, T: Sync> Choosing<'c, 'm, T> {
    fn new(
        own: PlanCandidate<T>,
        schedules: Vec<Schedule>,
        target: Arc<Target>,
        (options, timings, make): (&'c Options, &'c mut Timings, &'c mut Make<'m, T>),
    ) -> Choosing<'c, 'm, T> {
        let estimate = schedules.iter().map(|s| s.estimate(&target)).sum();
        let (trials, choices) = (trials(&schedules).max(1), own.derived.choices());
        let again = choices.iter().filter(|c| !c.is_taped && !is_free(&schedules, &c.kept));
        let whole = again.map(|c| c.key).collect();
        let (seen, first) = (vec![own.text()], Outcome { steps: own.plan.name(), answer: Answer::Takes(estimate) });
        Choosing {
            options,
            timings,
            make,
            target,
            best: own,
            schedules,
            estimate,
            seen,
            trials,
            choices,
            free: BTreeSet::new(),
            whole,
            outcomes: vec![first],
            taken: 0,
        }
    }

    /// Tries the plans that tape all they can, and nothing.
    fn extremes(&mut self) {
        let plans = [Tape::All, Tape::None].map(|tape| TapePlan { tape, ..TapePlan::default() });
        if self.trials > MAX_TRIALS {
            let why = format!("rules try {} steps, but beyond {MAX_TRIALS} only one program is scheduled", self.trials);
            return plans.into_iter().for_each(|plan| self.refuse(plan.name(), why.clone()));
        }
        let mut candidates = Vec::new();
        for plan in plans {
            let keeps = plan.tape == Tape::All;
            // The candidate need not be derived to find out.
            if self.choices.iter().all(|c| c.is_taped == keeps) {
                self.refuse(plan.name(), SAME.into());
            } else {
                candidates.extend(self.candidate(plan));
            }
        }
        self.compare(candidates);
    }

    /// Tries the plan that tapes tensors which take less time to write and read than to recompute, or are free to tape:
    /// those in registers, and those in memory anyway, for a library for example.
    fn tensor_by_tensor(&mut self) {
        // For a single tensor, the extremes have covered both plans. Those were scheduled in parallel; this candidate
        // takes time of its own.
        let most = if self.whole.is_empty() { MAX_FOR_FOURTH } else { MAX_WITH_WHOLE };
        if self.choices.len() < 2 || self.trials > most {
            return;
        }
        let mut plan = TapePlan::default();
        for choice in &self.choices {
            let is_free = self.free.contains(&choice.key) || self.whole.contains(&choice.key);
            let keep = is_free || choice.is_worth_a_tape(&self.target);
            if keep != choice.is_taped {
                plan.toggle(choice.key, &choice.tensor, choice.is_taped);
            }
        }
        if !plan.flipped.is_empty() {
            let candidate = self.candidate(plan);
            self.compare(candidate.into_iter().collect());
        }
    }

    /// Derives the programs of a plan; `None` if that fails or they are duplicates.
    fn candidate(&mut self, plan: TapePlan) -> Option<PlanCandidate<T>> {
        let name = plan.name();
        let derived = match (self.make)(&plan, self.timings) {
            Ok(derived) => derived,
            Err(d) => {
                let why = d.0.first().map_or_else(String::new, |d| d.message.clone());
                self.refuse(name, why);
                return None;
            }
        };
        let candidate = PlanCandidate::new(plan, derived, &self.target);
        let text = candidate.text();
        if self.seen.contains(&text) {
            self.refuse(name, SAME.into());
            return None;
        }
        self.seen.push(text);
        Some(candidate)
    }

    /// Schedules candidates, and selects the best if it saves the share [`GAIN`] of the current estimate.
    fn compare(&mut self, candidates: Vec<PlanCandidate<T>>) {
        let candidates: Vec<PlanCandidate<T>> = candidates.into_iter().filter(|c| self.may_win(c)).collect();
        let options = self.options;
        let all = self.timings.measure("schedule", || all_scheduled(&candidates, options));
        let enough = (1.0 - GAIN) * self.estimate;
        for (candidate, schedules) in candidates.into_iter().zip(all) {
            let name = candidate.plan.name();
            let schedules = match schedules {
                Ok(schedules) => schedules,
                Err(d) => {
                    self.refuse(name, d.0.first().map_or_else(String::new, |d| d.message.clone()));
                    continue;
                }
            };
            let estimate = schedules.iter().map(|s| s.estimate(&self.target)).sum();
            let taped = candidate.derived.choices().into_iter().filter(|c| c.is_taped);
            let (free, kept): (Vec<Choice>, Vec<Choice>) = taped.partition(|c| is_free(&schedules, &c.kept));
            if candidate.plan.tape == Tape::All {
                self.free = free.into_iter().map(|c| c.key).collect();
            }
            if let Some(why) = candidate.is_too_large(&self.best).filter(|_| !kept.is_empty()) {
                self.refuse(name, why);
                continue;
            }
            self.outcomes.push(Outcome { steps: name, answer: Answer::Takes(estimate) });
            if estimate < enough && estimate < self.estimate {
                self.taken = self.outcomes.len() - 1;
                (self.best, self.schedules, self.estimate) = (candidate, schedules, estimate);
            }
        }
    }

    /// Returns whether a candidate is worth scheduling; if not, records the reason.
    fn may_win(&mut self, candidate: &PlanCandidate<T>) -> bool {
        let why = self.hopeless(candidate);
        if let Some(why) = &why {
            self.refuse(candidate.plan.name(), why.clone());
        }
        why.is_none()
    }

    /// Returns the reason for not scheduling a candidate, if any.
    fn hopeless(&self, candidate: &PlanCandidate<T>) -> Option<String> {
        let (before, best) = (candidate.before(), self.best.before());
        if before > HOPELESS * best {
            return Some(format!("takes {} before scheduling, the best so far {}", time(before), time(best)));
        }
        if self.trials > MAX_WITH_EXCESS
            && let Some(why) = candidate.is_too_large(&self.best)
        {
            return Some(why);
        }
        let differs = candidate.share_of_own(&self.best).max(self.best.share_of_own(candidate));
        (differs < COUNTS).then(|| format!("the differing statements take {:.1} % of the time", 100.0 * differs))
    }

    fn refuse(&mut self, steps: String, why: String) {
        self.outcomes.push(Outcome { steps, answer: Answer::Refused(why) });
    }

    fn taken(mut self) -> (Vec<Schedule>, T) {
        let (site, outcomes, taken) = ("tapes of the gradient".to_string(), self.outcomes, self.taken);
        let decision = Decision { rule: MATERIALISE, site, span: Span::NONE, outcomes, taken };
        self.schedules.iter_mut().for_each(|s| s.note(decision.clone()));
        (self.schedules, self.best.derived.whole)
    }
}

/// Returns whether a tensor stays in registers: it is neither in an interface nor declared outside of loops.
fn is_free(schedules: &[Schedule], tensor: &str) -> bool {
    let whole = |f: &Func| f.interface().any(|t| t.symbol.name() == tensor) || is_declared(&f.body, tensor);
    !schedules.iter().any(|s| whole(s.func()))
}

/// Returns whether a tensor of that name is declared outside of loops.
fn is_declared(s: &Stmt, name: &str) -> bool {
    match s.kind() {
        StmtKind::VarDef { tensor, .. } if tensor.symbol.name() == name => true,
        StmtKind::For { .. } | StmtKind::While { .. } => false,
        kind => kind.children().into_iter().any(|s| is_declared(s, name)),
    }
}
