//! Automatic scheduling: rules that apply the public schedule primitives where a cost model of the machine predicts a
//! gain (the rules of FreeTensor, section 4.3, with a cost model).
//!
//! ```text
//!  rule: sites ─▶ candidates, each a few primitives ─▶ tried on a copy ─▶ estimated ─▶ the cheapest is taken
//!                                                       └─▶ refused, with the reason      └─▶ Decision
//! ```
//!
//! - A rule calls nothing but primitives, so every schedule it chooses is legal, and the trace records the primitives
//!   that were called: `s.auto()` itself leaves no step there.
//! - The first candidate of every site is to keep the program. Another candidate is taken only if its estimate is lower
//!   by more than a fraction (`Rule::gain`) of the estimate of the outermost statement around the site.
//! - Rules run in the order of `RULES`, each with the reason for its place. A later rule sees the results of earlier
//!   ones; no rule undoes another one.
//! - Schedules depend neither on time nor on chance: the same program gets the same schedule for the same [`Target`].
//! - Marks (`parallel`, `vectorize`, …) set by the user stay, and no rule moves or splits a marked loop. Loops that
//!   print are left alone, since their lines must appear in program order.

mod accumulate;
mod allocation;
mod blend;
pub(crate) mod decisions;
mod fission;
mod fuse;
mod inline;
mod loop_report;
mod mem_type;
mod model;
mod nest;
mod outline_matmul;
mod overlapping_windows;
mod parallelize;
mod polyhedral;
mod reorder;
mod roofline;
mod rule;
mod scatter;
mod storage;
mod structured;
pub(crate) mod target;
pub(crate) mod testing;
mod tile;
mod transpose;
mod trip_counts;
mod unroll;
mod use_lib;
mod vectorize;

pub use decisions::{Answer, Decision, Outcome, time};
pub use loop_report::{Execution, LoopReport};
pub use roofline::NestReport;
pub use target::{LINE, LazyTarget, Level, Prices, Target};
pub use trip_counts::{Basis, Estimate};

use crate::entry::{Entry, Run};
use crate::refusal::Refusal;
use crate::schedule::Schedule;
use crate::tree;
use crate::value::{Arg, Args, Value};
use model::Model;
use model::enclosing::Stage;
use rule::{Apply, ExtraSteps, KEEP, Rule};
use std::borrow::Cow;
use taffeta_ast::{Stmt, StmtKind, print};

/// Minimum lead of a candidate's lower bound over the best estimate so far, as a fraction of the estimate of the
/// outermost statement around the site; closer candidates are not tried, so the earlier of two near-equal candidates
/// wins.
const NEAR: f64 = 0.02;
/// Maximum number of trials per rule and program; the remaining sites are kept unchanged. (A program of 800 statements
/// takes fewer.)
const MAX_TRIALS: usize = 400;

/// Rule name in decisions about the values that a gradient materialises, which are made by comparing schedules.
pub const MATERIALISE: &str = "materialise";

/// Registers rules: a constant in the rule's file, the method of schedules that applies it alone, its manual entry.
macro_rules! rules {
    ($($module:ident: $method:ident;)*) => {
        /// All rules, in execution order.
        const RULES: &[&Rule] = &[$(&$module::RULE),*];

        /// Manual entries of the methods that apply one rule.
        pub(crate) const ENTRIES: &[Entry] = &[$(Entry {
            name: stringify!($method),
            signature: concat!("s.", stringify!($method), "()"),
            params: &[],
            summary: $module::RULE.summary,
            doc: "",
            run: Run::Meta(|s, args| {
                called(s, args, concat!("s.", stringify!($method), "()"), Some(stringify!($method)))
            }),
        }),*];

        impl Schedule {
            $(
                #[doc = concat!("Applies the rule `", stringify!($method), "` alone: see [`rules`].")]
                pub fn $method(&mut self) -> Result<(), Refusal> {
                    self.call(stringify!($method), &[]).map(drop)
                }
            )*
        }
    };
}

// In execution order; `why_here` in each file gives the reason for its place.
rules! {
    storage: auto_storage;
    use_lib: auto_use_lib;
    inline: auto_inline;
    overlapping_windows: auto_window;
    blend: auto_blend;
    fuse: auto_fuse;
    fission: auto_fission;
    reorder: auto_reorder;
    transpose: auto_transpose;
    tile: auto_tile;
    polyhedral: auto_polyhedral;
    accumulate: auto_accumulate;
    scatter: auto_scatter;
    unroll: auto_unroll;
    vectorize: auto_vectorize;
    parallelize: auto_parallelize;
    mem_type: auto_mem_type;
}

/// Manual entry of the method that applies all rules.
pub(crate) const ENTRY: Entry = Entry {
    name: "auto",
    signature: "s.auto()",
    params: &[],
    summary: "Applies all rules of automatic scheduling, in their order.",
    doc: include_str!("../primitives/auto.md"),
    run: Run::Meta(|s, args| called(s, args, "s.auto()", None)),
};

fn called(s: &mut Schedule, args: &[Arg], signature: &'static str, rule: Option<&str>) -> Result<Value, Refusal> {
    Args::bind(signature, &[], args)?;
    apply(s, rule);
    Ok(Value::None)
}

/// Documentation of a rule.
#[derive(Clone, Copy, Debug)]
pub struct RuleDocumentation {
    /// Name of the schedule method that applies the rule alone.
    pub method: &'static str,
    /// Description of the rule in one sentence.
    pub summary: &'static str,
    /// Reason for the rule's place in the order.
    pub why_here: &'static str,
}

/// Returns the documentation of all rules, in execution order.
pub fn rules() -> impl Iterator<Item = RuleDocumentation> {
    RULES.iter().map(|r| RuleDocumentation { method: r.method, summary: r.summary, why_here: r.why_here })
}

impl Schedule {
    /// Returns the estimated run time of the current program in nanoseconds, by the cost model of the rules.
    ///
    /// ```
    /// use taffeta_schedule::Schedule;
    /// use taffeta_schedule::auto::Target;
    ///
    /// # use taffeta_frontend::{NoHooks, NoLoader, Program, Source};
    /// # let text = "def f(x: inout[f32[n]]):\n    for i in range(n):\n        x[i] = sin(x[i])\n";
    /// # let func = Program::load(Source::inline("f.ft", text), &NoLoader)
    /// #     .elaborate("f", &Default::default(), &NoHooks).map_err(|d| d.to_string())?;
    /// let target = Target { sizes: [("n".to_string(), 1_000_000)].into(), ..Target::portable(2) };
    /// let mut s = Schedule::new(func);
    /// let before = s.estimate(&target);
    /// s.parallelize("i").map_err(|r| r.message.clone())?;
    /// assert!(s.estimate(&target) < before);
    /// # Ok::<(), String>(())
    /// ```
    pub fn estimate(&self, target: &Target) -> f64 {
        Model::new(target, Stage::Compiled).program(self.func())
    }

    /// Returns the program's outermost statements as text, each with its estimate if innermost loops had lanes. The
    /// rules start from these estimates.
    pub fn parts(&self, target: &Target) -> Vec<(String, f64)> {
        let mut model = Model::new(target, Stage::Structure);
        model.statements(self.func()).into_iter().map(|(s, time)| (print::stmt(&s), time)).collect()
    }
}

/// Applies one rule, or all of them (`None`), for the schedule's target. The schedule records the decisions.
pub(crate) fn apply(s: &mut Schedule, rule: Option<&str>) {
    let target = s.target();
    let mut model = Model::new(&target, Stage::Structure);
    // Float order is fixed only while rules choose; a schedule function's own steps may change it.
    let kept = s.keep_order(target.strict_floats);
    if rule.is_none() {
        // A refusal is no error: the program has no small array.
        let _ = s.call("scalarize", &[]);
    }
    let lanes = RULES.iter().position(|r| r.method == vectorize::RULE.method);
    for (k, r) in RULES.iter().enumerate().filter(|(_, r)| rule.is_none_or(|name| name == r.method)) {
        model.set_stage(if lanes.is_some_and(|lanes| k < lanes) { Stage::Structure } else { Stage::Marks });
        run(s, r, &mut model);
    }
    s.keep_order(kept);
}

fn run(s: &mut Schedule, rule: &Rule, model: &mut Model<'_>) {
    let mut trials = 0;
    for _ in 0..rule.rounds {
        let steps = s.trace().steps.len();
        round(s, rule, model, &mut trials);
        if s.trace().steps.len() == steps {
            break;
        }
    }
}

/// Returns whether a statement is a loop that prints. Primitives may reorder its lines of output, which rules must not.
fn prints(s: &Stmt) -> bool {
    matches!(s.kind(), StmtKind::For { .. }) && s.any(&mut |s| matches!(s.kind(), StmtKind::Print { .. }))
}

/// Returns the program after the follow-up steps expected of later rules if that lowers the estimate, else the program
/// itself.
fn with_expected<'s>(s: &'s Schedule, follow_up: Option<&Apply>, model: &mut Model<'_>) -> Cow<'s, Schedule> {
    let Some(follow_up) = follow_up else { return Cow::Borrowed(s) };
    let mut later = s.trying();
    let is_less = follow_up(&mut later).is_ok() && model.program(later.func()) < model.program(s.func());
    if is_less { Cow::Owned(later) } else { Cow::Borrowed(s) }
}

fn round(s: &mut Schedule, rule: &Rule, model: &mut Model<'_>, trials: &mut usize) {
    for site in (rule.sites)(s) {
        // A step at an earlier site may have removed this statement.
        let Some(stmt) = tree::find(&s.func().body, site) else { continue };
        if prints(&stmt) {
            continue;
        }
        let near = structured::is_near_stored(s, &stmt);
        let gain = if near { rule.min_gain_sparse } else { Some(rule.gain) };
        let Some(gain) = gain else { continue };
        let mut candidates = (rule.candidates)(s, model, site);
        let kept = candidates.first().is_some_and(|c| c.steps == KEEP).then(|| candidates.remove(0));
        if candidates.is_empty() || *trials >= MAX_TRIALS {
            continue;
        }
        let searched = if near { s.traversal() } else { None };
        let kept = with_expected(s, kept.as_ref().and_then(|c| c.follow_up.as_deref()), model);
        let keep = rule.objective.map_or_else(|| model.program(kept.func()), |objective| objective(&kept));
        let part = model.part(kept.func(), site);
        let enough = keep - gain * part;
        let answer =
            |weight: f64| if rule.objective.is_some() { Answer::Weighs(weight) } else { Answer::Takes(weight) };
        let mut outcomes = vec![Outcome { steps: KEEP.into(), answer: answer(keep) }];
        let mut best: Option<(f64, usize, Schedule)> = None;
        for candidate in candidates {
            let least = candidate.lower_bound.as_ref().map_or(0.0, |bound| bound(s, model));
            if least >= best.as_ref().map_or(enough, |(best, ..)| best - NEAR * part) {
                outcomes.push(Outcome { steps: candidate.steps, answer: Answer::Pruned(least) });
                continue;
            }
            *trials += 1;
            let mut trial = s.trying();
            let outcome = match (candidate.apply)(&mut trial) {
                Ok(ExtraSteps { before, after }) => {
                    let steps: Vec<String> = before.into_iter().chain([candidate.steps]).chain(after).collect();
                    let estimate = match rule.objective {
                        Some(objective) => objective(&trial),
                        None => {
                            let later = with_expected(&trial, candidate.follow_up.as_deref(), model);
                            model.program(later.func())
                        }
                    };
                    // Checked last, since it lowers the whole program.
                    let more = || searched.is_some_and(|now| trial.traversal().is_none_or(|then| then > now));
                    if estimate < enough && best.as_ref().is_none_or(|(least, ..)| estimate < *least) && !more() {
                        best = Some((estimate, outcomes.len(), trial));
                    }
                    Outcome { steps: steps.join(", "), answer: answer(estimate) }
                }
                Err(r) => Outcome::refused(candidate.steps, &r),
            };
            outcomes.push(outcome);
        }
        let taken = best.as_ref().map_or(0, |(_, k, _)| *k);
        let site = match stmt.kind() {
            StmtKind::VarDef { tensor, .. } => tensor.symbol.name().to_string(),
            StmtKind::For { .. } => s.called(&stmt),
            _ => crate::written::stmt(s.func(), &stmt).unwrap_or_default(),
        };
        if let Some((.., trial)) = best {
            s.become_tried(trial);
        }
        s.note(Decision { rule: rule.method, site, span: stmt.origin().span(), outcomes, taken });
    }
}
