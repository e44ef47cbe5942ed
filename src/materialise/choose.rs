//! What a gradient keeps for its backward pass is decided with its schedule.
//!
//! `autodiff` decides by operations against bytes, before anything is scheduled. Under an automatic schedule its choice
//! is the first of some candidates: the gradient that keeps all it can, the one that keeps nothing, and the one that
//! decides tensor by tensor, by the prices of this machine and by what the schedules before have made of tapes, are
//! scheduled too, and the one with the least estimate is taken.
//!
//! - A tensor on a tape whose reader fusion has brought to its writer is in a register, and free; one whose operands
//!   are elsewhere is not free to compute again; one that is computed again into memory, for a library that takes all
//!   of it, is as well kept. None of that is known before rules have run, so schedules are compared.
//! - `autodiff`'s choice stays unless another one saves [`GAIN`] of the estimate: the model is not more exact than
//!   that. Deciding tensor by tensor has to save as much of what keeping all or nothing takes.
//! - Scheduling takes long, so what cannot win is not scheduled: the same program again; one that differs only in what
//!   hardly counts ([`COUNTS`]); one that takes [`HOPELESS`] times as long before schedules. What rules tried for
//!   `autodiff`'s choice says how long it takes, and [`MOST_TRIALS`] bounds that: nothing depends on time.
//! - A tape that takes much more memory than inputs and results is not chosen for speed, unless schedules leave nothing
//!   of it in memory, which is asked of small programs alone ([`MOST_WITH_EXCESS`]).

use super::candidate::{Candidate, Choice, Made};
use super::{Place, Way, is_asked};
use crate::program::Options;
use crate::timing::Timings;
use crate::{automatic, pipeline};
use std::collections::BTreeSet;
use std::sync::Arc;
use taffeta_ast::{Diagnostics, Func, Span, Stmt, StmtKind};
use taffeta_autodiff::Tape;
use taffeta_schedule::Schedule;
use taffeta_schedule::auto::{Answer, Decision, MATERIALISE, Outcome, Target, time};

/// Another choice must save this part of the estimate.
const GAIN: f64 = 0.03;
/// What differs between two programs must take this part of one of them.
const COUNTS: f64 = 0.02;
/// A program that takes so many times as long before schedules is not scheduled.
const HOPELESS: f64 = 2.0;
/// Trials of rules for a program, each of about two milliseconds, beyond which no other one is scheduled.
const MOST_TRIALS: usize = 200;
/// Trials beyond which the program that decides tensor by tensor, the fourth one, is not.
const MOST_FOR_FOURTH: usize = MOST_TRIALS / 6;
/// The same where there are tensors of which schedules keep all values as it is: it is more likely to be the best then.
const MOST_WITH_WHOLE: usize = MOST_TRIALS / 3;

/// Trials beyond which a program that keeps too much before schedules is not, though they may leave nothing of that in
/// memory: fusion does so in small programs.
const MOST_WITH_EXCESS: usize = MOST_TRIALS / 6;

/// Why a program is not looked at again.
const SAME: &str = "the same program";

/// Makes the programs in some way.
pub(crate) type Make<'m, T> = dyn FnMut(&Way, &mut Timings) -> Result<Made<T>, Diagnostics> + 'm;

/// Programs under the schedules that rules choose, whose gradients keep what takes the least time.
pub(crate) fn choose<T: Sync>(
    options: &Options,
    timings: &mut Timings,
    make: &mut Make<'_, T>,
) -> Result<(Vec<Schedule>, T), Diagnostics> {
    let made = make(&Way::default(), timings)?;
    let schedules = scheduled(&made.funcs, options, timings)?;
    if !is_asked(options) || made.choices().is_empty() {
        return Ok((schedules, made.whole));
    }
    let target = automatic::aim(options)?.target();
    let own = Candidate::new(Way::default(), made, &target);
    let mut choosing = Choosing::new(own, schedules, target, (options, timings, make));
    choosing.extremes();
    choosing.tensor_by_tensor();
    Ok(choosing.taken())
}

fn scheduled(funcs: &[Func], options: &Options, timings: &mut Timings) -> Result<Vec<Schedule>, Diagnostics> {
    funcs.iter().map(|f| pipeline::automatic(f.clone(), options, timings)).collect()
}

/// Schedules candidates beside each other.
fn all_scheduled<T: Sync>(candidates: &[Candidate<T>], options: &Options) -> Vec<Result<Vec<Schedule>, Diagnostics>> {
    std::thread::scope(|scope| {
        let start = |c: &'_ Candidate<T>| {
            let funcs = c.made.funcs.clone();
            scope.spawn(move || scheduled(&funcs, options, &mut Timings::default()))
        };
        let threads: Vec<_> = candidates.iter().map(start).collect();
        let joined = threads.into_iter().map(std::thread::ScopedJoinHandle::join);
        joined.map(|made| made.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    })
}

/// What rules have tried.
fn trials(schedules: &[Schedule]) -> usize {
    let tried = schedules.iter().flat_map(Schedule::decisions).flat_map(|d| &d.options);
    tried.filter(|o| o.steps != "keep" && !matches!(o.answer, Answer::AtBest(_))).count()
}

/// The choice between candidates, underway.
struct Choosing<'c, 'm, T> {
    options: &'c Options,
    timings: &'c mut Timings,
    make: &'c mut Make<'m, T>,
    target: Arc<Target>,
    /// The best so far, under its schedules, with what these take.
    best: Candidate<T>,
    schedules: Vec<Schedule>,
    estimate: f64,
    /// All programs that were looked at.
    seen: Vec<String>,
    /// Trials that a schedule takes.
    trials: usize,
    /// What `autodiff`'s choice is about.
    choices: Vec<Choice>,
    /// Tensors whose tapes are in registers once the program that keeps everything is scheduled.
    free: BTreeSet<Place>,
    /// Tensors that are computed again by `autodiff`'s choice, and whose values are all in memory once it is scheduled.
    whole: BTreeSet<Place>,
    outcomes: Vec<Outcome>,
    taken: usize,
}

impl<'c, 'm, T: Sync> Choosing<'c, 'm, T> {
    fn new(
        own: Candidate<T>,
        schedules: Vec<Schedule>,
        target: Arc<Target>,
        (options, timings, make): (&'c Options, &'c mut Timings, &'c mut Make<'m, T>),
    ) -> Choosing<'c, 'm, T> {
        let estimate = schedules.iter().map(|s| s.estimate(&target)).sum();
        let (trials, choices) = (trials(&schedules).max(1), own.made.choices());
        let again = choices.iter().filter(|c| !c.is_taped && !is_free(&schedules, &c.kept));
        let whole = again.map(|c| c.place).collect();
        let (seen, first) = (vec![own.text()], Outcome { steps: own.way.name(), answer: Answer::Takes(estimate) });
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

    /// The programs that keep all they can, and nothing.
    fn extremes(&mut self) {
        let ways = [Tape::All, Tape::None].map(|tape| Way { tape, ..Way::default() });
        if self.trials > MOST_TRIALS {
            let why =
                format!("rules try {} steps, and beyond {MOST_TRIALS} only one program is scheduled", self.trials);
            return ways.into_iter().for_each(|way| self.refuse(way.name(), why.clone()));
        }
        let mut candidates = Vec::new();
        for way in ways {
            let keeps = way.tape == Tape::All;
            // It is not made to find that out.
            if self.choices.iter().all(|c| c.is_taped == keeps) {
                self.refuse(way.name(), SAME.into());
            } else {
                candidates.extend(self.candidate(way));
            }
        }
        self.compare(candidates);
    }

    /// The program that keeps what takes less time to write and to read than to compute again, and what is free to
    /// keep: what is in registers then, and what is in memory anyway, for a library say.
    fn tensor_by_tensor(&mut self) {
        // Of one tensor, the programs that keep all and nothing have said it. They were scheduled beside each other;
        // this one takes time of its own.
        let most = if self.whole.is_empty() { MOST_FOR_FOURTH } else { MOST_WITH_WHOLE };
        if self.choices.len() < 2 || self.trials > most {
            return;
        }
        let mut way = Way::default();
        for choice in &self.choices {
            let is_free = self.free.contains(&choice.place) || self.whole.contains(&choice.place);
            let keep = is_free || choice.is_worth_a_tape(&self.target);
            if keep != choice.is_taped {
                way.flip(choice);
            }
        }
        if !way.flipped.is_empty() {
            let candidate = self.candidate(way);
            self.compare(candidate.into_iter().collect());
        }
    }

    /// The programs that are made in some way, unless these were looked at before.
    fn candidate(&mut self, way: Way) -> Option<Candidate<T>> {
        let name = way.name();
        let made = match (self.make)(&way, self.timings) {
            Ok(made) => made,
            Err(d) => {
                let why = d.0.first().map_or_else(String::new, |d| d.message.clone());
                self.refuse(name, why);
                return None;
            }
        };
        let candidate = Candidate::new(way, made, &self.target);
        let text = candidate.text();
        if self.seen.contains(&text) {
            self.refuse(name, SAME.into());
            return None;
        }
        self.seen.push(text);
        Some(candidate)
    }

    /// Schedules candidates, and takes the best if it saves [`GAIN`] of what there is.
    fn compare(&mut self, candidates: Vec<Candidate<T>>) {
        let candidates: Vec<Candidate<T>> = candidates.into_iter().filter(|c| self.may_win(c)).collect();
        let options = self.options;
        let all = self.timings.measure("schedule", || all_scheduled(&candidates, options));
        let enough = (1.0 - GAIN) * self.estimate;
        for (candidate, schedules) in candidates.into_iter().zip(all) {
            let name = candidate.way.name();
            let schedules = match schedules {
                Ok(schedules) => schedules,
                Err(d) => {
                    self.refuse(name, d.0.first().map_or_else(String::new, |d| d.message.clone()));
                    continue;
                }
            };
            let estimate = schedules.iter().map(|s| s.estimate(&self.target)).sum();
            let taped = candidate.made.choices().into_iter().filter(|c| c.is_taped);
            let (free, kept): (Vec<Choice>, Vec<Choice>) = taped.partition(|c| is_free(&schedules, &c.kept));
            if candidate.way.tape == Tape::All {
                self.free = free.into_iter().map(|c| c.place).collect();
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

    /// Whether a candidate is worth a schedule. If not, it is said why.
    fn may_win(&mut self, candidate: &Candidate<T>) -> bool {
        let why = self.hopeless(candidate);
        if let Some(why) = &why {
            self.refuse(candidate.way.name(), why.clone());
        }
        why.is_none()
    }

    /// Why a candidate need not be scheduled.
    fn hopeless(&self, candidate: &Candidate<T>) -> Option<String> {
        let (before, best) = (candidate.before(), self.best.before());
        if before > HOPELESS * best {
            return Some(format!("takes {} before schedules, and what there is {}", time(before), time(best)));
        }
        if self.trials > MOST_WITH_EXCESS
            && let Some(why) = candidate.is_too_large(&self.best)
        {
            return Some(why);
        }
        let differs = candidate.share_of_own(&self.best).max(self.best.share_of_own(candidate));
        (differs < COUNTS).then(|| format!("what differs takes {:.1} % of the program", 100.0 * differs))
    }

    fn refuse(&mut self, steps: String, why: String) {
        self.outcomes.push(Outcome { steps, answer: Answer::Refused(why) });
    }

    fn taken(mut self) -> (Vec<Schedule>, T) {
        let (site, options, taken) = ("what the gradient keeps".to_string(), self.outcomes, self.taken);
        let decision = Decision { rule: MATERIALISE, site, span: Span::NONE, options, taken };
        self.schedules.iter_mut().for_each(|s| s.note(decision.clone()));
        (self.schedules, self.best.made.whole)
    }
}

/// Whether a tensor is neither handed over nor declared outside of loops.
fn is_free(schedules: &[Schedule], tensor: &str) -> bool {
    let whole = |f: &Func| f.interface().any(|t| t.symbol.name() == tensor) || is_declared(&f.body, tensor);
    !schedules.iter().any(|s| whole(s.func()))
}

/// Whether a tensor of that name is declared outside of loops.
fn is_declared(s: &Stmt, name: &str) -> bool {
    match s.kind() {
        StmtKind::VarDef { tensor, .. } if tensor.symbol.name() == name => true,
        StmtKind::For { .. } | StmtKind::While { .. } => false,
        kind => kind.children().into_iter().any(|s| is_declared(s, name)),
    }
}
