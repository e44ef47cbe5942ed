//! Calls of primitives and queries by name, and replay of traces. A primitive returns a [`Change`]. Before the schedule
//! takes it, loops over structured tensors must still be lowered (`structured.rs`), the marks of earlier steps are
//! proved again (`marks.rs`), and the tree is validated. A refusal leaves the schedule unchanged, and gets a suggestion
//! (`suggest.rs`).

use crate::concurrent;
use crate::entry::{Entry, Run};
use crate::marks;
use crate::primitives;
use crate::refusal::Refusal;
use crate::schedule::{Change, Moved, Schedule};
use crate::selector;
use crate::structured;
use crate::suggest;
use crate::trace::{Argument, Step, Trace};
use crate::tree::{self, Loop};
use crate::value::{Arg, Args, Value};
use rustc_hash::FxHashMap;
use taffeta_analysis::query::depend::Dependences;
use taffeta_ast::{Func, Span, Stmt, StmtKind};

impl Schedule {
    /// Calls a primitive or a query by its name in the schedule language.
    ///
    /// # Errors
    /// A [`Refusal`] with the reason.
    pub fn call(&mut self, method: &str, args: &[Arg]) -> Result<Value, Refusal> {
        let Some(entry) = primitives::find(method) else { return Err(primitives::unknown(method)) };
        match entry.run {
            Run::Query(f) => f(self, &Args::bind(entry.signature, entry.params, args)?),
            Run::Meta(f) => f(self, args),
            Run::Primitive(f) => {
                let change = f(self, &Args::bind(entry.signature, entry.params, args)?);
                let change = change.and_then(|mut c| {
                    structured::keeps_asked(&self.func, &c.func)?;
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
        let args = args.iter().map(|a| self.recorded(a)).collect();
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
            // Messages name loops as in the program before the step. Loops that the step would make exist only after
            // it.
            let called = |l: &Stmt| match tree::find(&self.func.body, l.id()) {
                Some(l) => selector::called(&self.func, &l),
                None => selector::called(&change.func, l),
            };
            primitives::as_lib::fits(&change.func, &nest, &called).map_err(|mut r| {
                r.message = format!("the step would break a nest that is already a library call: {}", r.message);
                r.condition = Refusal::ORDER_FREE;
                r.help("take this step before `as_lib`")
            })?;
            if marks::proof_depends_on_outside(&change.func, &nest) {
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
            let again = "take this step before `parallelize` and `vectorize`";
            if let Some(inner) = concurrent::threads_inside(&stmt) {
                let message = format!(
                    "the loop `{}` is already parallel or vectorised, and would contain a parallel loop",
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
            if marks::proof_depends_on_outside(&change.func, &stmt) {
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

    /// Returns whether every loop marked to run in any order is proved to be so, with its list of shared reductions, by
    /// dependences of the whole program. (Steps prove only the loops that they affect; tests compare.)
    #[doc(hidden)]
    pub fn marks_hold(&self) -> bool {
        let all = Dependences::new(&self.func);
        marks::every(&self.func).iter().filter(|s| !marks::is_library(s)).all(|s| {
            let StmtKind::For { props, .. } = s.kind() else { return true };
            concurrent::shared(&all, s).is_ok_and(|shared| shared == props.reductions)
        })
    }

    /// Converts an argument of a call to its recorded form. A handle is recorded as the statement that it resolves to
    /// now.
    pub fn recorded(&self, arg: &Arg) -> Argument {
        Argument::of(arg, &self.func, &|id| self.stmt(&Arg::from(id)).map_or(id, |s| s.id()))
    }
}

impl Trace {
    /// Replays all steps on a program.
    ///
    /// # Errors
    /// The refused step, with its number counted from 1; 0 if the trace is for another program.
    pub fn replay(&self, func: Func) -> Result<Schedule, (usize, Refusal)> {
        self.replay_with(func, &mut |_, _| ())
    }

    /// Replays all steps on a program, and calls `after` with each step and the schedule after it.
    ///
    /// # Errors
    /// The refused step, with its number counted from 1; 0 if the trace is for another program.
    pub fn replay_with(
        &self,
        func: Func,
        after: &mut dyn FnMut(&Step, &Schedule),
    ) -> Result<Schedule, (usize, Refusal)> {
        self.replay_on(Schedule::new(func), after)
    }

    /// Replays all steps on a schedule, which may have taken steps before, and calls `after` as [`Trace::replay_with`]
    /// does.
    ///
    /// # Errors
    /// The refused step, with its number counted from 1; 0 if the trace is for another program.
    pub fn replay_on(
        &self,
        mut s: Schedule,
        after: &mut dyn FnMut(&Step, &Schedule),
    ) -> Result<Schedule, (usize, Refusal)> {
        if self.entry != s.func().name {
            let text = format!("this trace is for `{}`, not for `{}`", self.entry, s.func().name);
            return Err((0, Refusal::usage(text)));
        }
        for (k, step) in self.steps.iter().enumerate() {
            let mut args = Vec::new();
            for a in &step.args {
                let value = a.value.revive(s.func()).map_err(|r| (k + 1, r))?;
                args.push(Arg { name: a.name.clone(), value, span: Span::NONE });
            }
            s.call(&step.method, &args).map_err(|r| (k + 1, r))?;
            after(s.trace().steps.last().unwrap_or(step), &s);
        }
        Ok(s)
    }
}
