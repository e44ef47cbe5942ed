//! State of a schedule: the current program, the steps taken, and the replacements of removed statements; and
//! resolution of selectors and handles in it. `dispatch.rs` takes steps.

use crate::auto::decisions::Decision;
use crate::auto::target::{LazyTarget, Target};
use crate::refusal::Refusal;
use crate::selector::{self, Declared};
use crate::structured::{Lowers, Traversal};
use crate::trace::Trace;
use crate::tree::{self, Loop};
use crate::value::{Arg, Handle, Value};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;
use taffeta_ast::{Func, Span, Stmt, StmtId, StmtKind};

/// Result of a step.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    /// Program after the step.
    pub func: Func,
    /// Value that the call returns.
    pub made: Value,
    /// Removed statements, each with its replacements (possibly none). A statement that keeps its id need not be
    /// listed.
    pub moved: Vec<(StmtId, Vec<StmtId>)>,
    /// Notes for the user.
    pub notes: Vec<String>,
    /// Marked loops that the step itself proved, in the program after it.
    pub proved: FxHashSet<StmtId>,
    /// Marked loops to prove again after every step; filled in when the step is taken.
    pub asked_again: FxHashSet<StmtId>,
}

impl Change {
    /// Creates a change that removes no statement.
    pub fn new(func: Func, made: Value) -> Change {
        let (proved, asked_again) = (FxHashSet::default(), FxHashSet::default());
        Change { func, made, moved: Vec::new(), notes: Vec::new(), proved, asked_again }
    }

    /// Records the replacements of a removed statement.
    pub fn moved(mut self, from: StmtId, to: impl IntoIterator<Item = StmtId>) -> Change {
        self.moved.push((from, to.into_iter().collect()));
        self
    }
}

/// Replacements of a removed statement.
#[derive(Clone, Debug)]
pub(crate) struct Moved {
    /// Number of the removing step, counted from 1, and its name.
    pub(crate) step: (usize, &'static str),
    pub(crate) to: Vec<StmtId>,
}

/// Program with the steps that produced it. Every step is proved to preserve the program's meaning, or refused; a
/// refusal leaves the program unchanged.
#[derive(Clone, Debug)]
pub struct Schedule {
    pub(crate) func: Func,
    pub(crate) trace: Trace,
    pub(crate) moved: FxHashMap<StmtId, Moved>,
    /// Marked loops to prove again after every step ([`crate::marks::proof_depends_on_outside`]).
    pub(crate) asked_again: FxHashSet<StmtId>,
    /// Whether this is a copy to try steps on, whose refusals need no suggestion.
    pub(crate) trying: bool,
    /// Machine and sizes that the rules of automatic scheduling choose for.
    pub(crate) aim: LazyTarget,
    /// Decisions of these rules.
    pub(crate) decisions: Vec<Decision>,
    /// Lowering callback, which says whether a program has loops over the stored elements of its structured tensors.
    pub(crate) lowers: Option<Lowers>,
}

impl Schedule {
    /// Creates a schedule without steps.
    pub fn new(func: Func) -> Schedule {
        let trace = Trace::new(&func.name);
        let (moved, asked_again) = (FxHashMap::default(), FxHashSet::default());
        let aim = LazyTarget::at(|| Target::portable(1));
        Schedule { func, trace, moved, asked_again, trying: false, aim, decisions: Vec::new(), lowers: None }
    }

    /// Sets the lowering callback. Loops over structured tensors then take every step after which the program can be
    /// lowered; without a callback they take marks and `reorder` alone.
    #[must_use]
    pub fn lowered_by(self, lowers: Lowers) -> Schedule {
        Schedule { lowers: Some(lowers), ..self }
    }

    /// Creates a schedule of another program, for the same machine and sizes, and with the same lowering callback.
    #[must_use]
    pub fn afresh(&self, func: Func) -> Schedule {
        Schedule { aim: self.aim.clone(), lowers: self.lowers, trying: self.trying, ..Schedule::new(func) }
    }

    /// Returns whether there is a lowering callback.
    pub(crate) fn is_lowered(&self) -> bool {
        self.lowers.is_some()
    }

    /// Returns the cost of finding stored elements in the program's loops; `None` without a lowering callback, or if
    /// the program cannot be lowered.
    pub(crate) fn traversal(&self) -> Option<Traversal> {
        self.lowers.and_then(|lowers| lowers(&self.func).ok())
    }

    /// Sets the machine and the sizes that the rules of automatic scheduling choose for. The default is a portable
    /// machine with one thread.
    #[must_use]
    pub fn aimed_at(self, aim: impl Into<LazyTarget>) -> Schedule {
        Schedule { aim: aim.into(), ..self }
    }

    /// Returns the machine and the sizes that the rules of automatic scheduling choose for.
    pub fn target(&self) -> Arc<Target> {
        self.aim.target()
    }

    /// Returns the decisions of the rules of automatic scheduling, in order.
    pub fn decisions(&self) -> &[Decision] {
        &self.decisions
    }

    /// Adds a decision made elsewhere, such as the values that a gradient keeps.
    pub fn note(&mut self, decision: Decision) {
        self.decisions.push(decision);
    }

    /// Sets whether steps must keep the order in which floats are summed. Returns the previous setting.
    pub(crate) fn keep_order(&mut self, keep: bool) -> bool {
        std::mem::replace(&mut self.func.keeps_order, keep)
    }

    /// Takes over the state of a copy on which steps were tried, except for its decisions.
    pub(crate) fn become_tried(&mut self, trial: Schedule) {
        let (trying, decisions) = (self.trying, std::mem::take(&mut self.decisions));
        *self = Schedule { trying, decisions, ..trial };
    }

    /// Returns the current program.
    pub fn func(&self) -> &Func {
        &self.func
    }

    /// Converts the schedule to its current program.
    pub fn into_func(self) -> Func {
        self.func
    }

    /// Returns the steps taken.
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// Returns the selector of a loop, for messages.
    pub fn called(&self, l: &Stmt) -> String {
        selector::called(&self.func, l)
    }

    /// Returns a copy to try steps on. Its refusals give the reason, but no suggestion.
    #[must_use]
    pub fn trying(&self) -> Schedule {
        Schedule { trying: true, decisions: Vec::new(), ..self.clone() }
    }

    /// Returns whether this is a copy to try steps on.
    pub(crate) fn is_trying(&self) -> bool {
        self.trying
    }

    // ---- resolution of targets

    /// Returns the statement that a selector or handle denotes.
    ///
    /// # Errors
    /// If there is none, or more than one.
    pub fn stmt(&self, arg: &Arg) -> Result<Stmt, Refusal> {
        match &arg.value {
            Value::Handle(Handle::Stmt(id)) => self.follow(*id, arg.span),
            Value::Str(s) => selector::stmt(&self.func, s).map_err(|r| r.at(arg.span)),
            other => Err(Refusal::target(format!("expected a statement, found {}", other.describe()))
                .at(arg.span)
                .help("pass a loop's iterator (\"i\"), a statement's label (\"L1\"), or a result of an earlier step")),
        }
    }

    /// Returns the loop over integers that a selector or handle denotes.
    ///
    /// # Errors
    /// If there is none, or more than one, or the statement is not such a loop.
    pub fn loop_(&self, arg: &Arg) -> Result<Loop, Refusal> {
        let s = match &arg.value {
            Value::Str(name) => selector::loop_(&self.func, name).map_err(|r| r.at(arg.span))?,
            _ => self.stmt(arg)?,
        };
        Loop::of(&s).ok_or_else(|| {
            Refusal::target("expected a loop over integers".to_string())
                .at(arg.span)
                .label(s.origin().span(), "this statement")
        })
    }

    /// Returns the tensor that a selector or handle denotes.
    ///
    /// # Errors
    /// If there is none, or more than one.
    pub fn tensor(&self, arg: &Arg) -> Result<Declared, Refusal> {
        self.named_tensor(arg, None)
    }

    /// Returns the tensor that a selector or handle denotes; among several tensors of a name, the one that the
    /// statement uses.
    ///
    /// # Errors
    /// If there is none, or the statement uses more than one.
    pub fn tensor_in(&self, stmt: &Stmt, arg: &Arg) -> Result<Declared, Refusal> {
        self.named_tensor(arg, Some(stmt))
    }

    fn named_tensor(&self, arg: &Arg, used_in: Option<&Stmt>) -> Result<Declared, Refusal> {
        match &arg.value {
            Value::Handle(Handle::Tensor(t)) => selector::tensors(&self.func)
                .into_iter()
                .find(|d| d.symbol() == t)
                .ok_or_else(|| Refusal::target(format!("the tensor `{t}` is no longer in the program")).at(arg.span)),
            Value::Str(name) => selector::tensor(&self.func, name, used_in).map_err(|r| r.at(arg.span)),
            other => Err(Refusal::target(format!("expected a tensor, found {}", other.describe()))
                .at(arg.span)
                .help("pass the name of a tensor (\"t\"), or a result of an earlier step")),
        }
    }

    /// Resolves a handle to the statement that it denotes in the current program.
    fn follow(&self, id: StmtId, span: Span) -> Result<Stmt, Refusal> {
        if let Some(s) = tree::find(&self.func.body, id) {
            return Ok(s);
        }
        let gone = |text: String| Err(Refusal::target(text).at(span));
        match self.moved.get(&id) {
            None => gone("the statement of this handle is no longer in the program".into()),
            Some(Moved { step: (n, name), to }) => match to.as_slice() {
                [one] => self.follow(*one, span),
                [] => gone(format!("step {n} (`{name}`) removed the statement of this handle")),
                many => gone(format!(
                    "step {n} (`{name}`) replaced the statement of this handle by {} statements",
                    many.len()
                ))
                .map_err(|r: Refusal| r.help(format!("use one of the statements that `{name}` returned"))),
            },
        }
    }

    /// Returns the loops around a statement, outermost first.
    pub fn around(&self, id: StmtId) -> Vec<Stmt> {
        let mut all = tree::path(&self.func.body, id).unwrap_or_default();
        all.pop();
        all.retain(|s| matches!(s.kind(), StmtKind::For { .. }));
        all
    }
}
