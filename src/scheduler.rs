//! Adapter between the front end, which evaluates schedule functions, and the crate that applies their steps.

use crate::automatic;
use crate::options::Options;
use std::cell::RefCell;
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use taffeta_ast::{Diagnostic, Diagnostics, Func, Span, StmtId, Symbol, Tensor};
use taffeta_frontend::{ScheduleArg, ScheduleCall, ScheduleRequest, ScheduleValue, Scheduler};
use taffeta_schedule::auto::LazyTarget;
use taffeta_schedule::{Arg, Handle, IndexMap, Schedule, Trace, Traversal, Value};
use taffeta_structured::{Section, Traversed, in_sections, traversed};

/// Schedule during the evaluation of a schedule function, with a table of numbered handles.
pub(crate) struct Running {
    pub(crate) schedule: Schedule,
    handles: Vec<Handle>,
}

impl Running {
    fn new(func: Func, aim: LazyTarget) -> Running {
        Running { schedule: Schedule::new(func).aimed_at(aim).lowered_by(lowers), handles: Vec::new() }
    }

    fn value(&self, v: &ScheduleValue) -> Value {
        let list = |items: &[ScheduleValue]| Value::List(items.iter().map(|v| self.value(v)).collect());
        match v {
            ScheduleValue::None => Value::None,
            ScheduleValue::Bool(b) => Value::Bool(*b),
            ScheduleValue::Int(i) => Value::Int(*i),
            ScheduleValue::Float(f) => Value::Float(*f),
            ScheduleValue::Str(s) => Value::Str(s.clone()),
            ScheduleValue::Tuple(v) | ScheduleValue::List(v) => list(v),
            // The front end returns the numbers that it was given.
            ScheduleValue::Handle(n) => self.handles.get(*n as usize).map_or(Value::None, |h| Value::Handle(h.clone())),
            ScheduleValue::Map(m) => Value::Map(IndexMap { params: m.params.clone(), results: m.results.clone() }),
        }
    }

    fn arg(&self, a: &ScheduleArg) -> Arg {
        Arg { name: a.name.clone(), value: self.value(&a.value), span: a.span }
    }

    fn answer(&mut self, v: Value) -> ScheduleValue {
        match v {
            Value::None | Value::Map(_) => ScheduleValue::None,
            Value::Bool(b) => ScheduleValue::Bool(b),
            Value::Int(i) => ScheduleValue::Int(i),
            Value::Float(f) => ScheduleValue::Float(f),
            Value::Str(s) => ScheduleValue::Str(s),
            Value::List(v) => ScheduleValue::List(v.into_iter().map(|v| self.answer(v)).collect()),
            Value::Handle(h) => {
                let known = self.handles.iter().position(|k| *k == h);
                let number = known.unwrap_or_else(|| {
                    self.handles.push(h);
                    self.handles.len() - 1
                });
                ScheduleValue::Handle(number as u64)
            }
        }
    }
}

impl Scheduler for Running {
    fn call(&mut self, call: ScheduleCall) -> Result<ScheduleValue, Diagnostics> {
        let args: Vec<Arg> = call.args.iter().map(|a| self.arg(a)).collect();
        match self.schedule.call(&call.method, &args) {
            Ok(v) => Ok(self.answer(v)),
            Err(r) => Err(r.diagnostic(&call.method, call.span).into()),
        }
    }
}

/// Runs a schedule function on a program, and stores the resulting schedule in `taken`.
pub(crate) fn run(
    request: ScheduleRequest<'_>,
    aim: LazyTarget,
    taken: &Mutex<Option<Schedule>>,
) -> Result<Func, Diagnostics> {
    let mut running = Running::new(request.func.clone(), aim);
    request.run(&mut running)?;
    let func = running.schedule.func().clone();
    *taken.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(running.schedule);
    Ok(func)
}

/// Maximum number of memoised sections, beyond which the memo is cleared.
const REMEMBERED: usize = 1024;

/// Memo entry: a section of a program with its interface, and the outcome of lowering it.
struct MemoEntry {
    section: Section,
    interface: Vec<Arc<Tensor>>,
    sizes: Vec<Symbol>,
    answer: Result<Traversed, Diagnostics>,
}

thread_local! {
    /// Memo of sections, keyed by their last statements.
    static KNOWN: RefCell<HashMap<StmtId, Vec<MemoEntry>>> = RefCell::default();
}

/// Returns how loops traverse the structured tensors of a program, or why the program cannot be lowered. Every step is
/// checked by this function, and rules compare programs that mostly differ in a single loop nest, so independent
/// sections are lowered once and memoised.
pub(crate) fn lowers(func: &Func) -> Result<Traversal, Diagnostic> {
    match in_sections(func, |section| lower_memoised(func, section)) {
        Ok(of) => Ok(Traversal { scans: of.scans.len(), seeks: of.seeks, order_violations: of.order_violations }),
        Err(all) => all.0.into_iter().next().map_or(Ok(Traversal::default()), Err),
    }
}

fn lower_memoised(func: &Func, section: &Section) -> Result<Traversed, Diagnostics> {
    let is_same = |known: &&MemoEntry| {
        known.section.is_same(section) && known.interface.iter().eq(func.interface()) && known.sizes == func.sizes
    };
    let known = KNOWN.with_borrow(|all| all.get(&section.last())?.iter().rev().find(is_same).map(|k| k.answer.clone()));
    known.unwrap_or_else(|| {
        let answer = traversed(&section.func(func));
        let (interface, sizes) = (func.interface().cloned().collect(), func.sizes.clone());
        let entry = MemoEntry { section: section.clone(), interface, sizes, answer: answer.clone() };
        KNOWN.with_borrow_mut(|all| {
            if all.values().map(Vec::len).sum::<usize>() >= REMEMBERED {
                all.clear();
            }
            all.entry(section.last()).or_default().push(entry);
        });
        answer
    })
}

/// Returns whether a schedule's name is the path of a trace.
pub(crate) fn is_trace(schedule: &str) -> bool {
    let path = Path::new(schedule);
    crate::io::is_stdin(path) || path.extension().is_some_and(|e| e.eq_ignore_ascii_case("json"))
}

/// Returns the cache key of a schedule: its name, or the text of the trace.
pub(crate) fn key(options: &Options) -> Result<String, Diagnostic> {
    match options.schedule.as_deref() {
        None | Some("none") => Ok(String::new()),
        Some(file) if is_trace(file) => Ok(format!("trace {}", crate::io::read_text(Path::new(file))?)),
        // A schedule function may consult rules too.
        Some(name) => Ok(format!("schedule {name} for {}", automatic::key(options)?)),
    }
}

/// Replays the steps of a trace file on a program.
pub(crate) fn replay(file: &str, func: Func) -> Result<Schedule, Diagnostics> {
    let text = crate::io::read_text(Path::new(file))?;
    let trace = Trace::from_json(&text).map_err(|r| r.diagnostic(file, Span::NONE))?;
    trace.replay_on(Schedule::new(func).lowered_by(lowers), &mut |_, _| ()).map_err(|(number, r)| {
        let method = number.checked_sub(1).and_then(|k| trace.steps.get(k)).map_or(file, |s| &s.method);
        let d = r.diagnostic(method, Span::NONE);
        let d = if number > 0 { d.note(format!("found at step {number} of {file}")) } else { d };
        Diagnostics::from(d)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that changing the format of a local tensor, which changes no statement but the declaration, invalidates
    /// the memo.
    #[test]
    fn changed_formats_of_local_tensors_are_lowered_again() {
        let text = "def f(A: f64[n, m] @ csr) -> f64[n]:\n    y = zeros((n,), f64)\n    w = empty((m,), f64)\n    \
                    for i in range(n):\n        for j in range(m):\n            w[j] = 0.0\n        \
                    for j in range(m):\n            w[j] += A[i, j]\n        for j in range(m):\n            \
                    y[i] += w[j] + A[i, j]\n    return y\n";
        let program = crate::Program::from_source("local.ft", text).expect("a program");
        let func = program.logical("f", &Options::default().schedule(None)).expect("an entry");
        let mut s = Schedule::new(func).lowered_by(lowers);
        let told = |t: Traversed| (t.scans.len(), t.seeks, t.order_violations);
        let mut seen = Vec::new();
        for format in ["dense", "bytemap", "dense"] {
            s.call("set_format", &[Arg::from("w"), Arg::from(format)]).unwrap_or_else(|r| panic!("{}", r.message));
            let whole = traversed(s.func()).map(told).expect("it can be lowered");
            let asked = lowers(s.func()).map(|t| (t.scans, t.seeks, t.order_violations)).expect("by sections too");
            assert_eq!(whole, asked, "{format}");
            seen.push(whole);
        }
        assert_ne!(seen[0], seen[1], "both formats have the same cost");
    }
}
