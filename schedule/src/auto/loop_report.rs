//! Report for each loop of a program: how it runs on threads and in vector lanes, or why it does not. The schedule may
//! be written by hand, chosen by rules, or empty.
//!
//! For an unmarked loop, the primitive that would set the mark is tried. Its refusal is the reason; if it accepts the
//! loop, the reason is the estimates with and without the mark.

use super::decisions::time;
use super::model::{Model, branch, c_compiler};
use super::{parallelize, structured, vectorize};
use crate::auto::model::enclosing::Stage;
use crate::schedule::Schedule;
use crate::tree::Loop;
use crate::value::Arg;
use taffeta_ast::stmt::{Reduction, Sharing};
use taffeta_ast::{LoopProps, Span, Stmt, StmtId, StmtKind};

/// Execution of one loop of a program.
#[derive(Clone, Debug)]
pub struct LoopReport {
    /// Id of the loop.
    pub id: StmtId,
    /// Selector of the loop in a schedule.
    pub site: String,
    /// Source location.
    pub span: Span,
    /// Number of enclosing loops.
    pub depth: usize,
    /// Execution on threads; `None` inside of a loop that runs on threads or in a library.
    pub threads: Option<Execution>,
    /// Execution in vector lanes.
    pub lanes: Execution,
}

/// Answer to one question about a loop's execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Execution {
    /// Positive answer, with the manner of execution.
    Yes(String),
    /// Negative answer, with the reason.
    No(String),
}

impl Schedule {
    /// Reports all loops of the current program, in program order.
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
        let mut asked = Reporter { now: None, model: Model::new(&target, Stage::Compiled), schedule: self };
        asked.visit(&self.func().body, &mut Vec::new(), &mut out);
        out
    }
}

/// Visitor that reports the loops of a schedule's program.
struct Reporter<'s> {
    schedule: &'s Schedule,
    model: Model<'s>,
    /// Estimate of the program without a further mark, computed on first use.
    now: Option<f64>,
}

impl Reporter<'_> {
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
        let mut how = format!("{} distribution", parallel.distribution.name());
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
            let width = vectorize.width.map_or_else(|| "the machine's width".to_string(), |w| format!("{w}"));
            return Execution::Yes(format!("lanes: {width}{}", shared(&props.reductions)));
        }
        let without = self.without(l, vectorize::RULE.method, "vectorize");
        // The compiler model cannot judge loops over stored elements, since only lowering generates their code.
        let Some(plain) = Loop::of(l).filter(|_| !structured::traverses(self.schedule.func(), l)) else {
            return without.into();
        };
        match (without, c_compiler::obstacle_to_compilers(&plain, &branch::bounds(&plain), true)) {
            (Unmarked::Refused(why), _) => Execution::No(why),
            (Unmarked::Legal(_), None) => Execution::Yes("by the C compiler, without a mark".into()),
            (Unmarked::Legal(why), Some(obstacle)) => {
                Execution::No(format!("{why}; the C compiler does not vectorise it by itself: {obstacle}"))
            }
        }
    }

    /// Returns the reason why a loop has no mark: the refusal of the primitive that sets it, or the estimates.
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

/// Reason why a loop has no mark.
enum Unmarked {
    /// Refusal by the primitive.
    Refused(String),
    /// Estimates with and without a mark that the primitive accepts.
    Legal(String),
}

impl From<Unmarked> for Execution {
    fn from(reason: Unmarked) -> Execution {
        let (Unmarked::Refused(why) | Unmarked::Legal(why)) = reason;
        Execution::No(why)
    }
}

/// Describes how concurrent reductions into one element are resolved.
fn shared(reductions: &[Reduction]) -> String {
    let one = |r: &Reduction| match r.sharing {
        Sharing::Partial => format!(", partial results of `{}`", r.tensor),
        Sharing::Atomic => format!(", atomic updates of `{}`", r.tensor),
    };
    reductions.iter().map(one).collect()
}
