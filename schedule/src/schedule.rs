//! A program under a schedule: the steps taken, and the replacements of removed statements.

use crate::auto::{Decision, LazyTarget, Target};
use crate::concurrent;
use crate::marks;
use crate::primitives::{self, Entry};
use crate::refusal::Refusal;
use crate::selector::{self, Declared};
use crate::structured::{self, Lowers, Traversal};
use crate::suggest;
use crate::trace::{Step, Trace};
use crate::tree::{self, Loop};
use crate::value::{Arg, Args, Handle, Value};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;
use taffeta_analysis::query::depend::Dependences;
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
struct Moved {
    /// Number of the removing step, counted from 1, and its name.
    step: (usize, &'static str),
    to: Vec<StmtId>,
}

/// Program with the steps that produced it. Every step is proved to preserve the program's meaning, or refused; a
/// refusal leaves the program unchanged.
#[derive(Clone, Debug)]
pub struct Schedule {
    func: Func,
    trace: Trace,
    moved: FxHashMap<StmtId, Moved>,
    /// Marked loops to prove again after every step ([`marks::rests_on_elsewhere`]).
    asked_again: FxHashSet<StmtId>,
    /// Whether refusals need no explanation, since they are only tested for.
    trying: bool,
    /// Machine and sizes that the rules of automatic scheduling choose for.
    aim: LazyTarget,
    /// Decisions of these rules.
    decisions: Vec<Decision>,
    /// Lowering callback, which says whether a program has loops over the stored elements of its structured tensors.
    lowers: Option<Lowers>,
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

    /// Calls a primitive or a query by its name in the schedule language.
    ///
    /// # Errors
    /// A [`Refusal`] with the reason.
    pub fn call(&mut self, method: &str, args: &[Arg]) -> Result<Value, Refusal> {
        let Some(entry) = primitives::find(method) else { return Err(primitives::unknown(method)) };
        match entry.run {
            primitives::Run::Query(f) => f(self, &Args::bind(entry.signature, entry.params, args)?),
            primitives::Run::Meta(f) => f(self, args),
            primitives::Run::Primitive(f) => {
                let change = f(self, &Args::bind(entry.signature, entry.params, args)?);
                let change = change.and_then(|mut c| {
                    structured::check(entry.name, &self.func, &c.func, self.lowers)?;
                    self.recheck_marks(&mut c).map(|()| c)
                });
                let wanted = |r: Refusal| match self.trying {
                    true => r,
                    false => suggest::add(self, method, args, r.explained(&self.func)),
                };
                self.take(entry, args, change.map_err(wanted)?)
            }
        }
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

    /// Returns whether a primitive would be taken, without changing anything. A target that is not in the program gives
    /// `false`.
    ///
    /// # Errors
    /// If the call is meaningless ([`crate::refusal::Reason::misuse`]).
    pub fn can(&self, method: &str, args: &[Arg]) -> Result<bool, Refusal> {
        match self.trying().call(method, args) {
            Ok(_) => Ok(true),
            Err(r) if r.misuse => Err(r),
            Err(_) => Ok(false),
        }
    }

    fn take(&mut self, entry: &'static Entry, args: &[Arg], change: Change) -> Result<Value, Refusal> {
        taffeta_ast::validate::pass(&change.func, &format!("`{}`", entry.name)).map_err(Refusal::internal)?;
        let args = args.iter().map(|a| crate::trace::Argument::of(a, self)).collect();
        self.trace.steps.push(Step { method: entry.name.into(), args, notes: change.notes });
        let number = self.trace.steps.len();
        for (from, to) in change.moved {
            self.moved.insert(from, Moved { step: (number, entry.name), to });
        }
        self.func = change.func;
        self.asked_again = change.asked_again;
        Ok(change.made)
    }

    /// Proves again that loops marked by earlier steps, as parallel, vectorised or library calls, may keep their marks,
    /// and updates their lists of shared reductions.
    fn recheck_marks(&self, change: &mut Change) -> Result<(), Refusal> {
        let marked = marks::changed(&self.func, &change.func, &self.asked_again);
        let (library, marked): (Vec<Stmt>, Vec<Stmt>) = marked.into_iter().partition(marks::is_library);
        for nest in library {
            // Loops have their names of the program before the step; loops that the step would make exist only after
            // it.
            let called = |l: &Stmt| match tree::find(&self.func.body, l.id()) {
                Some(l) => selector::called(&self.func, &l),
                None => selector::called(&change.func, l),
            };
            primitives::as_lib::fits(&change.func, &nest, &called).map_err(|mut r| {
                r.message = format!("this nest is already a library call, and could not stay one: {}", r.message);
                r.condition = Refusal::ORDER_FREE;
                r.help("take that step first, and `as_lib` after it")
            })?;
            if marks::rests_on_elsewhere(&change.func, &nest) {
                change.asked_again.insert(nest.id());
            }
        }
        if marked.is_empty() {
            return Ok(());
        }
        let mut lists = FxHashMap::default();
        for Loop { stmt, .. } in marked.iter().filter_map(Loop::of) {
            let name = || selector::called(&self.func, &stmt);
            let StmtKind::For { props, .. } = stmt.kind() else { continue };
            let again = "take that step first, and make loops parallel at the end";
            if let Some(inner) = concurrent::threads_inside(&stmt) {
                let message = format!(
                    "the loop `{}` is already parallel or vectorised, and would have parallel loops inside",
                    name()
                );
                return Err(Refusal::illegal(Refusal::ORDER_FREE, message)
                    .label(inner.origin().span(), "a copy of this parallel loop")
                    .help(again));
            }
            if props.vectorize.is_some() {
                primitives::vectorize::body_fits(&change.func, &stmt).map_err(|mut r| {
                    r.condition = Refusal::ORDER_FREE;
                    r.help(again)
                })?;
            }
            if marks::rests_on_elsewhere(&change.func, &stmt) {
                change.asked_again.insert(stmt.id());
            }
            if change.proved.contains(&stmt.id()) {
                continue;
            }
            let dependences = Dependences::inside(&change.func, &[stmt.id()]);
            let shared = concurrent::shared(&dependences, &stmt).map_err(|obstacle| {
                let message = format!(
                    "the loop `{}` is already parallel or vectorised, and would get a loop-carried dependence",
                    name()
                );
                obstacle.refusal(Refusal::ORDER_FREE, message).help(again)
            })?;
            if shared != props.reductions {
                lists.insert(stmt.id(), shared);
            }
        }
        if !lists.is_empty() {
            change.func = change.func.with_body(concurrent::share(&change.func.body, &mut lists));
        }
        Ok(())
    }

    /// Proves again that every loop marked to run in any order may do so, and that its list of shared reductions is
    /// right, in the whole program. A step proves only the loops that it affects.
    #[doc(hidden)]
    pub fn marks_hold(&self) -> bool {
        let all = Dependences::new(&self.func);
        marks::every(&self.func).iter().filter(|s| !marks::is_library(s)).all(|s| {
            let StmtKind::For { props, .. } = s.kind() else { return true };
            concurrent::shared(&all, s).is_ok_and(|shared| shared == props.reductions)
        })
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
            other => Err(Refusal::target(format!("a statement is expected, and this is {}", other.describe()))
                .at(arg.span)
                .help("name a loop by its iterator (\"i\"), a statement by its label (\"L1\"), or use what an earlier step returned")),
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
            Refusal::target("this is not a loop over integers".to_string())
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
            Value::Handle(Handle::Tensor(t)) => {
                selector::tensors(&self.func).into_iter().find(|d| d.symbol() == t).ok_or_else(|| {
                    Refusal::target(format!("the tensor `{t}` is not in the program any more")).at(arg.span)
                })
            }
            Value::Str(name) => selector::tensor(&self.func, name, used_in).map_err(|r| r.at(arg.span)),
            other => Err(Refusal::target(format!("a tensor is expected, and this is {}", other.describe()))
                .at(arg.span)
                .help("name it (\"t\"), or use what an earlier step returned")),
        }
    }

    /// Resolves a handle to the statement that it denotes in the current program.
    fn follow(&self, id: StmtId, span: Span) -> Result<Stmt, Refusal> {
        if let Some(s) = tree::find(&self.func.body, id) {
            return Ok(s);
        }
        let gone = |text: String| Err(Refusal::target(text).at(span));
        match self.moved.get(&id) {
            None => gone("what this pointed at is not in the program any more".into()),
            Some(Moved { step: (n, name), to }) => match to.as_slice() {
                [one] => self.follow(*one, span),
                [] => gone(format!("step {n} (`{name}`) removed what this pointed at")),
                many => gone(format!("step {n} (`{name}`) made {} statements of what this pointed at", many.len()))
                    .map_err(|r: Refusal| r.help(format!("use one of those that `{name}` returned"))),
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
