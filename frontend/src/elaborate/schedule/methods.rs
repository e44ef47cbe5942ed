//! Methods of the schedule: `s.split("i", 32)`, their arguments and results.

use super::super::scope::{Role, Scope};
use super::super::value::{Handle, Lazy, Value};
use super::super::{Elab, R, static_eval};
use super::{IndexMap, ScheduleArg, ScheduleCall, ScheduleValue};
use crate::syntax::{self, ExprKind};
use std::sync::Arc;
use taffeta_ast::{DType, Diagnostic, Expr, Span, Symbol};

impl Elab<'_> {
    /// Evaluates an expression that may be the schedule itself: the receiver of a method, or an argument of a function.
    pub(crate) fn eval_passed(&mut self, e: &syntax::Expr) -> R<Value> {
        if self.is_schedule(e) { Ok(Value::Schedule) } else { self.eval(e) }
    }

    /// Returns whether an expression is a name for the schedule.
    pub(super) fn is_schedule(&self, e: &syntax::Expr) -> bool {
        let ExprKind::Name(name) = &e.kind else { return false };
        self.frame().find(name).is_some_and(|(_, b)| matches!(b.value, Value::Schedule))
    }

    /// Evaluates `of.name(args)` in a schedule.
    pub(crate) fn schedule_method(
        &mut self,
        of: &syntax::Expr,
        name: &syntax::Name,
        args: &[syntax::Arg],
        span: Span,
    ) -> R<Value> {
        let receiver = self.eval_passed(of)?;
        let Value::Schedule = receiver else {
            let (found, text) = (receiver.describe(), self.program.sources().text(of.span).to_string());
            return self.error_help(
                "name::attribute",
                name.span,
                format!("{found} has no method `{}`", name.text),
                format!("call the method on the schedule: `s.{}({text}, …)`", name.text),
            );
        };
        if self.in_map() {
            return self.error_help(
                "schedule::map",
                span,
                "cannot call a method of the schedule in a `lambda`",
                "call it before, and use the name of its result",
            );
        }
        let mut evaluated = Vec::with_capacity(args.len());
        for a in args {
            let value = match &a.value.kind {
                ExprKind::Lambda { params, body } => ScheduleValue::Map(self.index_map(params, body, a.value.span)?),
                _ => {
                    let v = self.eval(&a.value)?;
                    self.schedule_argument(&v, a.value.span)?
                }
            };
            evaluated.push(ScheduleArg { name: a.name.as_ref().map(|n| n.text.clone()), value, span: a.value.span });
        }
        let Some(running) = self.schedule.as_mut() else { unreachable!("methods are those of a schedule") };
        let call = ScheduleCall { method: name.text.clone(), args: evaluated, span };
        match running.scheduler.call(call) {
            Ok(v) => Ok(returned(v, &Arc::from(name.text.as_str()))),
            Err(found) => {
                let mut stop = super::super::Stop::Reported;
                for d in found.0 {
                    let d = if d.labels.is_empty() { d.at(span) } else { d };
                    stop = self.report(d);
                }
                Err(stop)
            }
        }
    }

    /// Converts a value for the scheduler.
    fn schedule_argument(&mut self, v: &Value, span: Span) -> R<ScheduleValue> {
        Ok(match v {
            Value::None => ScheduleValue::None,
            Value::Bool(b) => ScheduleValue::Bool(*b),
            Value::Int(i) => match i64::try_from(*i) {
                Ok(i) => ScheduleValue::Int(i),
                Err(_) => return self.error("type::literal", span, "this integer does not fit in 64 bits"),
            },
            Value::Float(x) => ScheduleValue::Float(*x),
            Value::Str(s) => ScheduleValue::Str(s.to_string()),
            // Storage is passed as text, since steps are recorded as text.
            Value::Storage(s) => ScheduleValue::Str(s.to_string()),
            Value::Handle(h) => ScheduleValue::Handle(h.number),
            Value::Tuple(items) => {
                ScheduleValue::Tuple(items.iter().map(|v| self.schedule_argument(v, span)).collect::<R<_>>()?)
            }
            Value::List(_) | Value::Range(_) => {
                let items = self.static_items(v, span)?;
                ScheduleValue::List(items.iter().map(|v| self.schedule_argument(v, span)).collect::<R<_>>()?)
            }
            other => {
                let found = other.describe();
                return self.error_help(
                    "schedule::argument",
                    span,
                    format!("methods of a schedule do not take {found}"),
                    "pass numbers, strings, tuples, lists, or handles returned by earlier calls",
                );
            }
        })
    }

    /// Evaluates `lambda i, j: (i + j, j)`.
    fn index_map(&mut self, params: &[syntax::Name], body: &syntax::Expr, span: Span) -> R<IndexMap> {
        if params.is_empty() {
            return self.error_help(
                "schedule::map",
                span,
                "this `lambda` has no parameter",
                "write one parameter for each loop: `lambda i, j: (j, i)`",
            );
        }
        for (k, p) in params.iter().enumerate() {
            if let Some(first) = params[..k].iter().find(|q| q.text == p.text) {
                let d = Diagnostic::new("schedule::map", format!("two parameters are named `{}`", p.text)).at(p.span);
                return Err(self.report(d.label(first.span, "first here").help("give each loop its own name")));
            }
        }
        let symbols: Vec<Symbol> = params.iter().map(|p| Symbol::new(p.text.clone())).collect();
        self.frame_mut().scopes.push(Scope::default());
        for (p, symbol) in params.iter().zip(&symbols) {
            let iterator = Value::Lazy(Lazy::scalar(Expr::var(symbol), true));
            self.bind(&p.text, iterator, Role::Iterator, p.span);
        }
        self.set_in_map(true);
        let v = self.eval(body);
        self.set_in_map(false);
        self.frame_mut().scopes.pop();
        let v = v?;
        let mut results = Vec::new();
        for item in v.items().unwrap_or(std::slice::from_ref(&v)) {
            match item.lazy() {
                Some(l) if l.shape.is_empty() && l.expr.dtype().is_int() => {
                    results.push(self.in_type(l.expr, true, DType::I64, body.span)?);
                }
                _ => {
                    let found = match item.dtype() {
                        Some(t) => format!("`{t}`"),
                        None => item.describe(),
                    };
                    return self.error_help(
                        "schedule::map",
                        body.span,
                        format!("expected an integer index from the `lambda`, found {found}"),
                        "compute them from its parameters, sizes and integers: `lambda i, j: (i + j, j)`",
                    );
                }
            }
        }
        Ok(IndexMap { params: symbols, results })
    }

    pub(crate) fn in_map(&self) -> bool {
        self.schedule.as_ref().is_some_and(|s| s.in_map)
    }

    fn set_in_map(&mut self, now: bool) {
        if let Some(s) = &mut self.schedule {
            s.in_map = now;
        }
    }

    /// Checks that a value computed in a schedule is known at compile time.
    pub(crate) fn known_in_schedule(&mut self, v: &Value, span: Span) -> R<()> {
        match v {
            Value::Schedule => self.error_help(
                "schedule::value",
                span,
                "cannot use the schedule as a value",
                "call its methods (`s.split(…)`), or pass it on as an argument (`f(s, …)`)",
            ),
            Value::Lazy(l) if self.in_map() && l.weak && l.shape.is_empty() => Ok(()),
            v if v.is_tensor() => {
                let found = v.describe();
                self.error_help(
                    "schedule::tensor",
                    span,
                    format!("expected a value known when compiling, found {found} of a program"),
                    "compute it from integers, floats, strings, lists and tuples",
                )
            }
            _ => Ok(()),
        }
    }

    /// Returns the items that a loop, a comprehension or a function of sequences iterates over in a schedule.
    pub(crate) fn schedule_items(&mut self, over: &Value, span: Span) -> R<Vec<Value>> {
        if let Value::NdRange(ranges) = over {
            return self.product(ranges, span);
        }
        match static_eval::iterate(over) {
            Some(Ok(items)) => Ok(items),
            Some(Err(why)) => self.error("static::sequence", span, why),
            None => {
                let found = match over {
                    Value::Range(_) => "a range of indices".to_string(),
                    other => other.describe(),
                };
                self.error_help(
                    "static::sequence",
                    span,
                    format!("expected a list, a tuple or a range known when compiling, found {found}"),
                    "write `for i in range(3):`, or a list of loops: `for l in [i, j]:`",
                )
            }
        }
    }
}

/// Converts a result of the scheduler to a value.
fn returned(v: ScheduleValue, method: &Arc<str>) -> Value {
    let all = |items: Vec<ScheduleValue>| items.into_iter().map(|v| returned(v, method)).collect();
    match v {
        ScheduleValue::None | ScheduleValue::Map(_) => Value::None,
        ScheduleValue::Bool(b) => Value::Bool(b),
        ScheduleValue::Int(i) => Value::Int(i.into()),
        ScheduleValue::Float(x) => Value::Float(x),
        ScheduleValue::Str(s) => Value::str(s),
        ScheduleValue::Tuple(items) => Value::Tuple(all(items)),
        ScheduleValue::List(items) => Value::List(all(items)),
        ScheduleValue::Handle(number) => Value::Handle(Handle { number, method: method.clone() }),
    }
}
