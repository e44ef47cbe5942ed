//! Automatic schedules: rules that take the public primitives where a model of the machine says that it pays (the rules
//! of FreeTensor, section 4.3, with a cost model).
//!
//! ```text
//!  rule: sites ─▶ options, each a few primitives ─▶ tried on a copy ─▶ estimated ─▶ the cheapest is taken
//!                                                    └─▶ refused, with the reason      └─▶ Decision
//! ```
//!
//! - A rule calls nothing but primitives, so whatever it chooses is legal, and what it chose is in the trace:
//!   `s.auto()` itself leaves no step there.
//! - The first option of every site is to keep what there is. Another one is taken only where its estimate is lower by
//!   a part of what the outermost statement takes (`Rule::gain`).
//! - Rules run in the order of `RULES`, each with the reason for its place. A later rule sees what earlier ones made;
//!   no rule undoes another one.
//! - Nothing depends on time or chance: the same program gets the same schedule for the same [`Target`].
//! - Marks that the user has set stay, and what stands in marked loops is left alone. So are loops that print: their
//!   lines come in the order in which they are written.

mod accumulate;
mod blend;
mod cut;
pub(crate) mod entries;
mod fission;
mod fuse;
mod inline;
mod log;
mod loop_report;
mod mem_type;
mod model;
mod nest;
mod parallelize;
mod polyhedral;
mod reorder;
mod roofline;
mod scatter;
mod storage;
mod structured;
mod target;
mod tile;
mod transpose;
mod trips;
mod unroll;
mod use_lib;
mod vectorize;
mod window;

pub use log::{Answer, Decision, Outcome, time};
pub use loop_report::{Execution, LoopReport};
pub use roofline::Nest;
pub use target::{Aim, LINE, Level, Prices, Target};
pub use trips::{Estimate, Known};

use crate::refusal::Refusal;
use crate::schedule::Schedule;
use crate::tree;
use model::{Model, Stage};
use std::borrow::Cow;
use taffeta_ast::{Func, LoopProps, Stmt, StmtId, StmtKind, print};

/// A step that changes the structure of a program must save this part of what the outermost statement around its site
/// takes.
const STRUCTURE: f64 = 0.05;
/// One that changes how a loop runs must save this part.
const MARK: f64 = 0.005;
/// Of two options whose estimates differ by less than this part, the first one is as good.
const NEAR: f64 = 0.02;
/// Trials of one rule in one program; after these, what is left is kept. (A program of 800 statements takes fewer.)
const MOST_TRIALS: usize = 400;

/// A rule of automatic scheduling.
struct Rule {
    /// The method of schedules that applies it alone: `auto_reorder`.
    pub method: &'static str,
    /// What it does, in one sentence.
    pub summary: &'static str,
    /// Why it comes after those before it, and before those after it.
    pub why_here: &'static str,
    /// The part of what the outermost statement around a site takes that a step must save.
    pub gain: f64,
    /// The same near loops over stored elements; `None`: it does not look there. How these are driven depends on their
    /// order and on what stands in them, so that what it does there may not leave more to search
    /// ([`Schedule::traversal`]). Less than nothing: what is done may take a little more by the model, which knows less
    /// of such loops.
    pub near_stored: Option<f64>,
    /// What a program is weighed by, if that is not what the model says that it takes.
    pub weighs: Option<fn(&Schedule) -> f64>,
    /// How often it looks at all sites, as long as it finds something.
    pub rounds: usize,
    /// Where it looks, in order.
    pub sites: fn(&Schedule) -> Vec<StmtId>,
    /// What could be done at a site. The first one may be to keep what there is ([`Choice::keep`]).
    pub options: fn(&Schedule, &Model<'_>, StmtId) -> Vec<Choice>,
}

/// Steps that are tried, and then taken.
type Take = dyn Fn(&mut Schedule) -> Result<Others, Refusal>;

/// The steps before those that a choice is named by, and after them.
#[derive(Default)]
struct Others {
    before: Vec<String>,
    after: Vec<String>,
}

/// What a program would take if it may be changed so.
type Least = dyn Fn(&Schedule, &mut Model<'_>) -> f64;

/// In the place of a rule: the decision what a gradient keeps, which is made by comparing schedules.
pub const MATERIALISE: &str = "materialise";

/// How it is said that nothing is done.
const KEEP: &str = "keep";

/// Something that could be done.
struct Choice {
    /// As a schedule would have it: `reorder([i, k, j])`.
    pub steps: String,
    /// Does it, by calls of primitives. Gives the steps that turned out to be needed before, and that followed.
    pub take: Box<Take>,
    /// What later rules are expected to do with it, for the estimate alone.
    pub then: Option<Box<Take>>,
    /// What the program takes with it at best. To find that out takes far less than to prove that it can be done, which
    /// is not tried where this is too much.
    pub least: Option<Box<Least>>,
}

impl Choice {
    fn new(steps: String, take: impl Fn(&mut Schedule) -> Result<Others, Refusal> + 'static) -> Choice {
        Choice { steps, take: Box::new(take), then: None, least: None }
    }

    /// To keep what there is, where later rules are expected to do something with it.
    fn keep(then: impl Fn(&mut Schedule) -> Result<Others, Refusal> + 'static) -> Choice {
        Choice::new(KEEP.into(), |_| Ok(Others::default())).expecting(then)
    }

    /// With what later rules are expected to do.
    fn expecting(self, then: impl Fn(&mut Schedule) -> Result<Others, Refusal> + 'static) -> Choice {
        Choice { then: Some(Box::new(then)), ..self }
    }

    /// With the least that it takes: what the program takes where the loop has other properties.
    fn marked(self, l: StmtId, props: LoopProps) -> Choice {
        let least = move |s: &Schedule, model: &mut Model<'_>| model.program(&with_props(s.func(), l, &props));
        Choice { least: Some(Box::new(least)), ..self }
    }
}

/// A program in which a loop has other properties.
fn with_props(func: &Func, l: StmtId, props: &LoopProps) -> Func {
    let Some(stmt) = tree::find(&func.body, l) else { return func.clone() };
    let StmtKind::For { iter, extent, body, .. } = stmt.kind() else { return func.clone() };
    let (iter, extent, body, props) = (iter.clone(), extent.clone(), body.clone(), props.clone());
    tree::replace(func, l, &stmt.with_kind(StmtKind::For { iter, extent, props, body }))
}

/// All rules, in the order in which they run.
const RULES: &[&Rule] = &[
    &storage::RULE,
    &use_lib::RULE,
    &inline::RULE,
    &window::RULE,
    &blend::RULE,
    &fuse::RULE,
    &fission::RULE,
    &reorder::RULE,
    &transpose::RULE,
    &tile::RULE,
    &polyhedral::RULE,
    &accumulate::RULE,
    &scatter::RULE,
    &unroll::RULE,
    &vectorize::RULE,
    &parallelize::RULE,
    &mem_type::RULE,
];

/// What is said of a rule.
#[derive(Clone, Copy, Debug)]
pub struct RuleDocumentation {
    /// The method of schedules that applies it alone.
    pub method: &'static str,
    /// What it does, in one sentence.
    pub summary: &'static str,
    /// Why it has its place in the order.
    pub why_here: &'static str,
}

/// All rules, in the order in which they run.
pub fn rules() -> impl Iterator<Item = RuleDocumentation> {
    RULES.iter().map(|r| RuleDocumentation { method: r.method, summary: r.summary, why_here: r.why_here })
}

impl Schedule {
    /// What the program takes as it is now, in nanoseconds, by the model that rules choose by.
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

    /// The statements that the program consists of, as text, each with what it would take if innermost loops had lanes:
    /// what rules begin with, before any of them has run.
    pub fn parts(&self, target: &Target) -> Vec<(String, f64)> {
        let mut model = Model::new(target, Stage::Structure);
        model.statements(self.func()).into_iter().map(|(s, time)| (print::stmt(&s), time)).collect()
    }
}

/// Applies one rule, or all of them (`None`), for a machine. What was decided is kept with the schedule.
pub(crate) fn apply(s: &mut Schedule, rule: Option<&str>) {
    let target = s.target();
    let mut model = Model::new(&target, Stage::Structure);
    // Only while rules choose: what a schedule function asks for is done.
    let kept = s.keep_order(target.strict_floats);
    if rule.is_none() {
        // A refusal: there is no small array.
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

/// Whether a loop prints: primitives may change the order of lines, and nobody has asked for that here.
fn prints(s: &Stmt) -> bool {
    let mut found = false;
    if matches!(s.kind(), StmtKind::For { .. }) {
        s.walk(&mut |s| found |= matches!(s.kind(), StmtKind::Print { .. }));
    }
    found
}

/// A program once later rules have done what is expected of them, if it takes less then.
fn expected<'s>(s: &'s Schedule, then: Option<&Take>, model: &mut Model<'_>) -> Cow<'s, Schedule> {
    let Some(then) = then else { return Cow::Borrowed(s) };
    let mut later = s.trying();
    let is_less = then(&mut later).is_ok() && model.program(later.func()) < model.program(s.func());
    if is_less { Cow::Owned(later) } else { Cow::Borrowed(s) }
}

fn round(s: &mut Schedule, rule: &Rule, model: &mut Model<'_>, trials: &mut usize) {
    for site in (rule.sites)(s) {
        // What an earlier site made may have no such statement any more.
        let Some(stmt) = tree::find(&s.func().body, site) else { continue };
        if prints(&stmt) {
            continue;
        }
        let near = structured::is_near_stored(s, &stmt);
        let gain = if near { rule.near_stored } else { Some(rule.gain) };
        let Some(gain) = gain else { continue };
        let mut choices = (rule.options)(s, model, site);
        let kept = choices.first().is_some_and(|c| c.steps == KEEP).then(|| choices.remove(0));
        if choices.is_empty() || *trials >= MOST_TRIALS {
            continue;
        }
        let searched = if near { s.traversal() } else { None };
        let kept = expected(s, kept.as_ref().and_then(|c| c.then.as_deref()), model);
        let keep = rule.weighs.map_or_else(|| model.program(kept.func()), |weighs| weighs(&kept));
        let part = model.part(kept.func(), site);
        let enough = keep - gain * part;
        let answer = |weight: f64| if rule.weighs.is_some() { Answer::Weighs(weight) } else { Answer::Takes(weight) };
        let mut options = vec![Outcome { steps: KEEP.into(), answer: answer(keep) }];
        let mut best: Option<(f64, usize, Schedule)> = None;
        for choice in choices {
            let least = choice.least.as_ref().map_or(0.0, |least| least(s, model));
            if least >= best.as_ref().map_or(enough, |(best, ..)| best - NEAR * part) {
                options.push(Outcome { steps: choice.steps, answer: Answer::AtBest(least) });
                continue;
            }
            *trials += 1;
            let mut trial = s.trying();
            let outcome = match (choice.take)(&mut trial) {
                Ok(Others { before, after }) => {
                    let steps: Vec<String> = before.into_iter().chain([choice.steps]).chain(after).collect();
                    let estimate = match rule.weighs {
                        Some(weighs) => weighs(&trial),
                        None => {
                            let later = expected(&trial, choice.then.as_deref(), model);
                            model.program(later.func())
                        }
                    };
                    // Asked last: all of the program is lowered for it.
                    let more = || searched.is_some_and(|now| trial.traversal().is_none_or(|then| then > now));
                    if estimate < enough && best.as_ref().is_none_or(|(least, ..)| estimate < *least) && !more() {
                        best = Some((estimate, options.len(), trial));
                    }
                    Outcome { steps: steps.join(", "), answer: answer(estimate) }
                }
                Err(r) => Outcome::refused(choice.steps, &r),
            };
            options.push(outcome);
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
        s.note(Decision { rule: rule.method, site, span: stmt.origin().span(), options, taken });
    }
}
