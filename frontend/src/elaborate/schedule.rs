//! Schedule functions: the interface behind `s`, the lookup of a schedule function, and the evaluation of its body.
//!
//! A schedule is evaluated by the same walk as a program, with every value static: `for`, `if` and calls are decided
//! while compiling, and `s.split("i", 32)` goes to the [`Scheduler`]. Constructs that need the running program
//! (tensors, sizes, open conditions) are refused on their line. Names are plain variables here, since no statement is
//! emitted that could refer to them.
//!
//! `run` holds statements, `methods` the calls `s.…`, `names` the callable functions and the diagnostics for unknown
//! names.

mod methods;
mod names;
mod run;

use super::func::{FuncRef, is_static_annotation};
use super::grad::{self, Hooks};
use super::value::Value;
use super::{Elab, StaticValue, entry};
use crate::program::{ModuleId, Program};
use crate::syntax::{ExprKind, Function};
use std::collections::BTreeMap;
use std::fmt;
use taffeta_ast::{Diagnostic, Diagnostics, Expr, Func, Span, Symbol};

/// Receiver of the primitives that a schedule function calls on `s`.
pub trait Scheduler {
    /// Executes a primitive or query: `s.split("i", 32)`. An error is reported at its spans, and ends the schedule.
    fn call(&mut self, call: ScheduleCall) -> Result<ScheduleValue, Diagnostics>;
}

/// Method call on `s`, with evaluated arguments.
#[derive(Clone, Debug, PartialEq)]
pub struct ScheduleCall {
    /// Name of the method: `split`.
    pub method: String,
    /// Arguments, positional ones first.
    pub args: Vec<ScheduleArg>,
    /// Span of the whole call.
    pub span: Span,
}

/// Argument of a method of `s`.
#[derive(Clone, Debug, PartialEq)]
pub struct ScheduleArg {
    /// Keyword `name=`; `None` for positional arguments.
    pub name: Option<String>,
    /// Value of the argument.
    pub value: ScheduleValue,
    /// Span of the value.
    pub span: Span,
}

/// Argument or result of a [`Scheduler`] call.
#[derive(Clone, Debug, PartialEq)]
pub enum ScheduleValue {
    /// `None`; also the result of a primitive without handles.
    None,
    /// `True`, `False`
    Bool(bool),
    /// Integer.
    Int(i64),
    /// Float.
    Float(f64),
    /// String.
    Str(String),
    /// Tuple.
    Tuple(Vec<ScheduleValue>),
    /// List; a range is passed as the list of its numbers.
    List(Vec<ScheduleValue>),
    /// Loop, statement or tensor that an earlier call returned; the number is the scheduler's.
    Handle(u64),
    /// `lambda i, j: (i + j, j)`; never returned.
    Map(IndexMap),
}

/// Map of `permute`: new iterators as expressions of the old ones.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexMap {
    /// Old iterators, in order.
    pub params: Vec<Symbol>,
    /// New iterators: integer expressions over the parameters and the program's sizes.
    pub results: Vec<Expr>,
}

impl fmt::Display for ScheduleValue {
    /// Formats the value as in source text; a handle is `#` and its number.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let join = |items: &[ScheduleValue]| items.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        match self {
            ScheduleValue::None => f.write_str("None"),
            ScheduleValue::Bool(true) => f.write_str("True"),
            ScheduleValue::Bool(false) => f.write_str("False"),
            ScheduleValue::Int(i) => write!(f, "{i}"),
            ScheduleValue::Float(x) => write!(f, "{x:?}"),
            ScheduleValue::Str(s) => write!(f, "{s:?}"),
            ScheduleValue::Tuple(items) if items.len() == 1 => write!(f, "({},)", join(items)),
            ScheduleValue::Tuple(items) => write!(f, "({})", join(items)),
            ScheduleValue::List(items) => write!(f, "[{}]", join(items)),
            ScheduleValue::Handle(number) => write!(f, "#{number}"),
            ScheduleValue::Map(map) => {
                let params: Vec<&str> = map.params.iter().map(Symbol::name).collect();
                let results: Vec<String> = map.results.iter().map(super::broadcast::show).collect();
                match results.as_slice() {
                    [one] => write!(f, "lambda {}: {one}", params.join(", ")),
                    all => write!(f, "lambda {}: ({})", params.join(", "), all.join(", ")),
                }
            }
        }
    }
}

/// Request to apply a schedule.
#[derive(Clone, Copy)]
pub struct ScheduleRequest<'a> {
    /// Program to schedule.
    pub func: &'a Func,
    /// Name of the schedule function.
    pub name: &'a str,
    /// Place of its name.
    pub span: Span,
    /// File of the schedule function, with its imports.
    pub program: &'a Program,
    target: FuncRef,
    /// Parameters of the schedule that were set from outside.
    set: &'a BTreeMap<String, StaticValue>,
    hooks: &'a dyn Hooks,
}

impl ScheduleRequest<'_> {
    /// Evaluates the body of the schedule function; its calls on `s` go to `scheduler`, in order.
    pub fn run(&self, scheduler: &mut dyn Scheduler) -> Result<(), Diagnostics> {
        let mut e = Elab::new(self.program, self.hooks);
        e.schedule = Some(ScheduleState { scheduler, func: self.func, in_map: false });
        match e.run_schedule(self.target, self.set) {
            Ok(()) if e.diagnostics.is_empty() => Ok(()),
            _ => {
                debug_assert!(!e.diagnostics.is_empty(), "a failure has a diagnostic");
                Err(Diagnostics(e.diagnostics))
            }
        }
    }
}

/// State of the schedule under evaluation.
pub(crate) struct ScheduleState<'p> {
    scheduler: &'p mut dyn Scheduler,
    func: &'p Func,
    /// Whether the lambda of `permute` is being evaluated, where iterators and sizes are expressions.
    in_map: bool,
}

/// Elaborates the entry `name` and applies the schedule function `schedule` of the main file.
///
/// Values from outside go by name to the entry's static parameters and to the schedule's parameters.
pub(crate) fn scheduled(
    program: &Program,
    name: &str,
    schedule: &str,
    statics: &BTreeMap<String, StaticValue>,
    hooks: &dyn Hooks,
) -> Result<Func, Diagnostics> {
    let target = find(program, schedule, hooks)?;
    let mut e = Elab::new(program, hooks);
    let entry_function = grad::entry_function(&mut e, name).map(|f| e.function(f));
    let f = e.function(target);
    if let Some(problem) = fault_of_form(f) {
        return Err(problem.into());
    }
    if let Some(of) = schedule_target(f).filter(|of| of != name) {
        return Err(Diagnostic::new(
            "schedule::target",
            format!("the schedule `{schedule}` is for `{of}`, not for `{name}`"),
        )
        .at(f.name.span)
        .into());
    }
    let own: Vec<String> = f.params.iter().skip(1).map(|p| p.name.text.clone()).collect();
    let is_static = |p: &&crate::syntax::Param| p.annotation.as_ref().is_some_and(is_static_annotation);
    let of_entry: Vec<String> = entry_function
        .map(|f| f.params.iter().filter(is_static).map(|p| p.name.text.clone()).collect())
        .unwrap_or_default();
    if let Some(odd) = statics.keys().find(|k| !own.contains(k) && !of_entry.contains(k)) {
        let all: Vec<String> = of_entry.iter().chain(own.iter().filter(|p| !of_entry.contains(p))).cloned().collect();
        let d = Diagnostic::new(
            "schedule::parameter",
            format!("neither `{name}` nor its schedule `{schedule}` has a parameter `{odd}` that could be set"),
        )
        .at(f.name.span);
        return Err(match taffeta_ast::spelling::nearest(odd, all.iter()) {
            Some(near) => d.help(format!("did you mean `{near}`?")),
            None if all.is_empty() => d.help("they have none"),
            None => d.help(format!("their parameters are {}", all.join(", "))),
        }
        .into());
    }
    let part = |names: &[String]| -> BTreeMap<String, StaticValue> {
        statics.iter().filter(|(k, _)| names.contains(k)).map(|(k, v)| (k.clone(), v.clone())).collect()
    };
    let func = entry::elaborate(program, name, &part(&of_entry), hooks, false)?;
    hooks.schedule(ScheduleRequest {
        func: &func,
        name: &f.name.text,
        span: f.name.span,
        program,
        target,
        set: &part(&own),
        hooks,
    })
}

/// Returns the schedule function of that name, which the main file defines or imports.
fn find(program: &Program, name: &str, hooks: &dyn Hooks) -> Result<FuncRef, Diagnostics> {
    let mut e = Elab::new(program, hooks);
    if !program.modules.is_empty()
        && let Ok(Some(Value::Function(f))) = e.global(ModuleId(0), name)
        && schedule_target(e.function(f)).is_some()
    {
        return Ok(f);
    }
    let all: Vec<String> = program.schedules().into_iter().map(|s| s.name).collect();
    let d = Diagnostic::new("schedule::unknown", format!("there is no schedule `{name}`"));
    Err(match taffeta_ast::spelling::nearest(name, all.iter()) {
        Some(near) => d.help(format!("did you mean `{near}`?")),
        None if all.is_empty() => {
            d.help("the file has no schedules; run the program as written with `--schedule none`")
        }
        None => d.help(format!("the schedules are {}", all.join(", "))),
    }
    .into())
}

/// Returns the entry that a function is a schedule of: `@schedule(f)`.
pub fn schedule_target(f: &Function) -> Option<String> {
    f.decorators.iter().find_map(|d| {
        let ExprKind::Call { callee, args } = &d.kind else { return None };
        let (ExprKind::Name(n), [target]) = (&callee.kind, args.as_slice()) else { return None };
        match &target.value.kind {
            ExprKind::Name(target) if n == "schedule" && args[0].name.is_none() => Some(target.clone()),
            _ => None,
        }
    })
}

/// Reports an error in the form of a decorated function, before evaluation: its decorator or its parameters.
pub fn fault_of_form(f: &Function) -> Option<Diagnostic> {
    let name = &f.name.text;
    let decorator = f.decorators.first()?;
    if super::custom_vjp::decorator(f).is_some() && schedule_target(f).is_none() {
        return None;
    }
    if schedule_target(f).is_none() {
        let word = |e: &crate::syntax::Expr| matches!(&e.kind, ExprKind::Name(n) if n == "schedule");
        let schedule = match &decorator.kind {
            ExprKind::Call { callee, .. } => word(callee),
            _ => word(decorator),
        };
        let d = Diagnostic::new("schedule::decorator", "unknown decorator").at(decorator.span);
        return Some(if schedule {
            let d = Diagnostic::new("schedule::decorator", "`schedule` takes the name of one entry");
            d.at(decorator.span).help("write `@schedule(f)` for a schedule of the entry `f`")
        } else {
            d.help("write `@schedule(f)` or `@gradient(f)`")
        });
    }
    if let [_, second, ..] = f.decorators.as_slice() {
        let d = Diagnostic::new("schedule::decorator", format!("`{name}` has several decorators")).at(second.span);
        return Some(d.help("write a schedule for each entry, and move their common part into a function"));
    }
    let code = "schedule::parameter";
    let Some(first) = f.params.first() else {
        let d = Diagnostic::new(code, format!("the schedule `{name}` has no parameter")).at(f.name.span);
        return Some(d.help(format!("write the schedule as its first parameter: `def {name}(s):`")));
    };
    if let Some(default) = &first.default {
        let d = Diagnostic::new(code, format!("`{}` is the schedule and cannot have a default", first.name.text));
        return Some(d.at(default.span).help(format!("put `s` before the other parameters: `def {name}(s, …):`")));
    }
    typed_parameter(f)
}

/// Reports the first annotation of a function that is meaningless in a schedule.
fn typed_parameter(f: &Function) -> Option<Diagnostic> {
    let odd = |(k, p): (usize, &crate::syntax::Param)| {
        p.annotation.as_ref().filter(|a| k == 0 || !is_static_annotation(a)).map(|a| a.span)
    };
    let span = f.params.iter().enumerate().find_map(odd).or(f.returns.as_ref().map(|r| r.span))?;
    let d = Diagnostic::new("schedule::annotation", "type annotations are not supported in a schedule");
    Some(d.at(span).help("leave out the annotation"))
}
