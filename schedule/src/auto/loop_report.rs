//! How each loop of a program runs, and why it runs neither on threads nor in lanes: of any schedule, by hand, none or
//! by rules.
//!
//! A loop without a mark is asked of the primitive that would set it. A refusal is the reason; where the primitive
//! would take the loop, the estimates with and without the mark are.

use super::log::time;
use super::model::{Model, Stage, branch, compilers};
use super::{parallelize, structured, vectorize};
use crate::schedule::Schedule;
use crate::tree::Loop;
use crate::value::Arg;
use taffeta_ast::stmt::{Reduction, Sharing};
use taffeta_ast::{LoopProps, Span, Stmt, StmtId, StmtKind};

/// A loop of a program, and how it runs.
#[derive(Clone, Debug)]
pub struct LoopReport {
    /// The loop.
    pub id: StmtId,
    /// The loop as a schedule would name it.
    pub site: String,
    /// The place in the source.
    pub span: Span,
    /// The number of loops around.
    pub depth: usize,
    /// On threads or not; `None` inside of a loop that is.
    pub threads: Option<Execution>,
    /// In lanes of vectors or not.
    pub lanes: Execution,
}

/// The answer to one question about a loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Execution {
    /// It runs so, in this manner.
    Yes(String),
    /// It does not, for this reason.
    No(String),
}

impl Schedule {
    /// Reports all loops of the program as it is now, in the order of the text.
    ///
    /// ```
    /// use taffeta_schedule::Schedule;
    /// use taffeta_schedule::auto::Execution;
    ///
    /// # use taffeta_frontend::{NoHooks, NoLoader, Program, Source};
    /// # let text = "def f(x: inout[f32[n]]):\n    for i in range(1, n):\n        x[i] += x[i - 1]\n";
    /// # let func = Program::load(Source::inline("f.ft", text), &NoLoader)
    /// #     .elaborate("f", &Default::default(), &NoHooks).map_err(|d| d.to_string())?;
    /// let loops = Schedule::new(func).loop_reports();
    /// let Execution::No(why) = &loops[0].lanes else { panic!() };
    /// assert_eq!(why, "the loop `i` has a loop-carried dependence");
    /// # Ok::<(), String>(())
    /// ```
    pub fn loop_reports(&self) -> Vec<LoopReport> {
        let mut out = Vec::new();
        let target = self.target();
        let mut asked = Asked { now: None, model: Model::new(&target, Stage::Compiled), schedule: self };
        asked.visit(&self.func().body, &mut Vec::new(), &mut out);
        out
    }
}

/// The walk over a schedule's program that asks about its loops.
struct Asked<'s> {
    schedule: &'s Schedule,
    model: Model<'s>,
    /// The estimate of the program as it is.
    now: Option<f64>,
}

impl Asked<'_> {
    fn visit(&mut self, s: &Stmt, around: &mut Vec<LoopProps>, out: &mut Vec<LoopReport>) {
        let StmtKind::For { props, body, .. } = s.kind() else {
            s.kind().children().into_iter().for_each(|c| self.visit(c, around, out));
            return;
        };
        let on_threads = around.iter().any(|p| p.parallel.is_some() || p.library);
        out.push(LoopReport {
            id: s.id(),
            site: self.schedule.called(s),
            span: s.origin().span(),
            depth: around.len(),
            threads: (!on_threads).then(|| self.threads(s, props)),
            lanes: self.lanes(s, props),
        });
        around.push(props.clone());
        self.visit(body, around, out);
        around.pop();
    }

    fn threads(&mut self, l: &Stmt, props: &LoopProps) -> Execution {
        let Some(parallel) = props.parallel else {
            return match props.library {
                true => Execution::Yes("a matrix product by a library".into()),
                false => self.without(l, parallelize::RULE.method, "parallelize").into(),
            };
        };
        let mut how = format!("shared out {}", parallel.distribution.name());
        if let Some(n) = parallel.above {
            how += &format!(", above {n} iterations");
        }
        Execution::Yes(how + &shared(&props.reductions))
    }

    fn lanes(&mut self, l: &Stmt, props: &LoopProps) -> Execution {
        if props.library {
            return Execution::Yes("a matrix product by a library".into());
        }
        if let Some(vectorize) = props.vectorize {
            let width = vectorize.width.map_or_else(|| "as wide as the machine's".to_string(), |w| format!("{w}"));
            return Execution::Yes(format!("lanes: {width}{}", shared(&props.reductions)));
        }
        let without = self.without(l, vectorize::RULE.method, "vectorize");
        // Elements that lowering has yet to find are nothing that the model of compilers knows.
        let Some(plain) = Loop::of(l).filter(|_| !structured::traverses(self.schedule.func(), l)) else {
            return without.into();
        };
        match (without, compilers::obstacle_to_compilers(&plain, &branch::bounds(&plain), true)) {
            (Unmarked::Refused(why), _) => Execution::No(why),
            (Unmarked::Legal(_), None) => Execution::Yes("by the C compiler, without a mark".into()),
            (Unmarked::Legal(why), Some(obstacle)) => {
                Execution::No(format!("{why}; a C compiler does not by itself: {obstacle}"))
            }
        }
    }

    /// Returns the reason why a loop has no mark: the refusal of the primitive that sets it, or estimates.
    fn without(&mut self, l: &Stmt, rule: &str, primitive: &str) -> Unmarked {
        let mut trial = self.schedule.trying();
        if let Err(r) = trial.call(primitive, &[Arg::from(l.id())]) {
            return Unmarked::Refused(r.message.clone());
        }
        let schedule = self.schedule;
        let now = *self.now.get_or_insert_with(|| self.model.program(schedule.func()));
        let then = self.model.program(trial.func());
        let chosen = schedule.decisions().iter().any(|d| d.rule == rule);
        let verdict = match (then < now, chosen) {
            (true, true) => "rules ask for a larger gain",
            (true, false) => "no schedule asks for it",
            (false, _) => "it does not pay",
        };
        let step = format!("`s.{primitive}(\"{}\")`", schedule.called(l));
        Unmarked::Legal(format!(
            "{verdict}: {step} is legal, and changes the estimate from {} to {}",
            time(now),
            time(then)
        ))
    }
}

/// The reason why a loop has no mark.
enum Unmarked {
    /// The primitive refuses the loop.
    Refused(String),
    /// The primitive would take it.
    Legal(String),
}

impl From<Unmarked> for Execution {
    fn from(reason: Unmarked) -> Execution {
        let (Unmarked::Refused(why) | Unmarked::Legal(why)) = reason;
        Execution::No(why)
    }
}

/// Describes how reductions that meet in one element are kept apart.
fn shared(reductions: &[Reduction]) -> String {
    let one = |r: &Reduction| match r.sharing {
        Sharing::Partial => format!(", partial results of `{}`", r.tensor),
        Sharing::Atomic => format!(", atomic updates of `{}`", r.tensor),
    };
    reductions.iter().map(one).collect()
}
