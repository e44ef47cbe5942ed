//! Report of how an entry runs under a schedule, and why: decisions of the rules, parallelism and vectorisation of each
//! loop, traversals of structured tensors. `taffeta show --explain` prints it.

use crate::automatic;
use crate::error::Error;
use crate::options::Options;
use crate::pipeline;
use crate::program::Program;
use crate::timing::Timings;
use taffeta_analysis::tree;
use taffeta_ast::{Diagnostics, Func, LoopProps, Stmt, StmtId, StmtKind};
use taffeta_codegen::Lowered;
use taffeta_schedule::Schedule;
use taffeta_schedule::auto::{Execution, LoopReport, MATERIALISE};
use taffeta_structured::{Assembly, Explained};

/// Report of how an entry runs.
#[derive(Clone, Debug)]
pub struct ExecutionReport {
    /// Program that runs, with the steps and decisions that led to it. A gradient is derived after its entry is
    /// scheduled, and has no steps of its own unless rules chose them.
    pub schedule: Schedule,
    /// Loops of the program: whether they run on threads and in lanes.
    pub loops: Vec<LoopReport>,
    /// Loops over structured tensors: the stored elements that they visit.
    pub traversals: Vec<Explained>,
    /// Tensors that the program makes.
    pub assembled: Vec<Assembly>,
}

impl ExecutionReport {
    /// Returns whether rules chose the tapes of the gradient, so that the program differs from the one that
    /// [`Program::schedule_function`] yields.
    pub fn keeps_by_rules(&self) -> bool {
        self.schedule.decisions().iter().any(|d| d.rule == MATERIALISE && d.taken != 0)
    }
}

impl Program {
    /// Explains how an entry runs under any schedule: written by hand, none, a trace, or rules.
    ///
    /// ```
    /// use taffeta::schedule::auto::Execution;
    /// use taffeta::{Options, Program};
    ///
    /// let program = Program::from_source("p.ft", "
    /// def running(x: inout[f32[n]]):
    ///     for i in range(1, n):
    ///         x[i] += x[i - 1]
    /// ")?;
    /// let how = program.execution_report("running", &Options::default())?;
    /// assert_eq!(how.loops[0].lanes, Execution::No("the loop `i` has a loop-carried dependence".into()));
    /// # Ok::<(), taffeta::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Every error of the entry; programs that lowering does not support.
    pub fn execution_report(&self, entry: &str, options: &Options) -> Result<ExecutionReport, Error> {
        let mut timings = Timings::default();
        let wrong = |d: Diagnostics| Error::program(d, self.sources());
        let schedule = match automatic::is_automatic(options) || options.gradient.is_none() {
            true => self.scheduled(entry, options)?,
            false => Schedule::new(self.to_run(entry, options, &mut timings)?),
        };
        let aim = automatic::aim(options).map_err(|d| wrong(d.into()))?;
        let schedule = schedule.aimed_at(aim).lowered_by(crate::scheduler::lowers);
        let func = schedule.func();
        let lowered = pipeline::lowered(func, options, &mut timings).map_err(wrong)?;
        let (traversals, assembled) = match func.is_structured() {
            true => {
                let lowered = pipeline::structured(func, options, &mut timings).map_err(wrong)?;
                (lowered.explained, lowered.assembled)
            }
            false => (Vec::new(), Vec::new()),
        };
        let mut loops = schedule.loop_reports();
        loops.iter_mut().for_each(|l| as_generated(l, func, &lowered));
        Ok(ExecutionReport { schedule, loops, traversals, assembled })
    }
}

/// Updates the report of a vectorised loop after code generation: lowering runs some loops in order, and turns small
/// arrays into variables of vector types. Reports of loops that structured lowering replaced stay as they are.
fn as_generated(report: &mut LoopReport, func: &Func, lowered: &Lowered) {
    let Execution::Yes(how) = &mut report.lanes else { return };
    if lowered.is_in_vectors(report.id) {
        *how += ", in variables of vector types";
        return;
    }
    let Some((before, _)) = properties(func, report.id) else { return };
    let Some((now, body)) = properties(lowered.func(), report.id) else { return };
    if before.vectorize.is_some() && now.vectorize.is_none() {
        let why = match (lowered.why_in_order(report.id), prints(&body)) {
            (Some(why), _) => format!("its iterations run in order: {why}"),
            (None, true) => "its iterations run in order: the loop prints".to_string(),
            (None, false) => "its iterations run in order: a statement in the loop needs that order".to_string(),
        };
        report.lanes = Execution::No(why);
    }
}

/// Returns the properties and the body of a loop.
fn properties(func: &Func, id: StmtId) -> Option<(LoopProps, Stmt)> {
    match tree::find(&func.body, id)?.kind() {
        StmtKind::For { props, body, .. } => Some((props.clone(), body.clone())),
        _ => None,
    }
}

fn prints(s: &Stmt) -> bool {
    matches!(s.kind(), StmtKind::Print { .. }) || s.kind().children().into_iter().any(prints)
}
