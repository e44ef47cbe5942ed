//! Execution of a schedule function, from its parameters to its last statement.
//!
//! The first mistake ends a schedule: steps after a failed one would act on a program that the author does not expect.

use super::super::func::FuncRef;
use super::super::scope::Role;
use super::super::stmt::Flow;
use super::super::value::Value;
use super::super::{Elab, R, StaticValue};
use crate::syntax::{self, ExprKind, Stmt, StmtKind};
use std::collections::BTreeMap;
use std::sync::Arc;
use taffeta_ast::Span;

/// Methods that only query the schedule.
const QUERIES: [&str; 5] = ["can", "loops", "innermost", "parent", "length"];

impl Elab<'_> {
    /// Runs the schedule function `target`; `set` holds its parameters that were set from outside.
    pub(super) fn run_schedule(&mut self, target: FuncRef, set: &BTreeMap<String, StaticValue>) -> R<()> {
        let f = self.function(target);
        let mut values = vec![Value::Schedule];
        for p in f.params.iter().skip(1) {
            let name = &p.name.text;
            values.push(match (set.get(name), &p.default) {
                (Some(v), _) => Value::from(v),
                (None, Some(default)) => self.default_value(f, default)?,
                (None, None) => {
                    return self.error_help(
                        "schedule::parameter",
                        p.name.span,
                        format!("the parameter `{name}` of the schedule `{}` needs a value", f.name.text),
                        format!("give it a default (`{name}=32`), or set it: `--set {name}=32`"),
                    );
                }
            });
        }
        self.push_frame(target.module, Arc::default());
        for (p, v) in f.params.iter().zip(values) {
            self.bind(&p.name.text, v, Role::Param(None), p.name.span);
        }
        match self.run(&f.body)? {
            Flow::Next | Flow::Return(Value::None) => {
                debug_assert!(self.block().items.is_empty(), "a schedule emits nothing");
                Ok(())
            }
            Flow::Return(v) => {
                let (found, name) = (v.describe(), &f.name.text);
                self.error_help(
                    "schedule::result",
                    self.span,
                    format!("the schedule `{name}` cannot return a value, found {found}"),
                    "leave out the value, or remove `@schedule` and call the function in other schedules",
                )
            }
        }
    }

    /// Executes a statement of a schedule; `None` if it means the same as in a program.
    pub(crate) fn schedule_stmt(&mut self, s: &Stmt) -> R<Option<Flow>> {
        match &s.kind {
            StmtKind::Assign { targets, value } => {
                let v = self.eval(value)?;
                match targets.as_slice() {
                    [one] => self.set_variable(one, v, value.span)?,
                    several => self.set_variables(several, &v, value.span)?,
                }
            }
            StmtKind::Augment { target, op, value } => {
                let ExprKind::Name(_) = &target.kind else {
                    return self.no_target(target);
                };
                let (a, b) = (self.eval(target)?, self.eval(value)?);
                let v = self.binary(*op, (a, target.span), (b, value.span), s.span)?;
                self.known_in_schedule(&v, s.span)?;
                self.set_variable(target, v, value.span)?;
            }
            StmtKind::Declare { annotation, .. } => {
                return self.error_help(
                    "schedule::annotation",
                    annotation.span,
                    "type annotations are not supported in a schedule",
                    "leave out the annotation",
                );
            }
            StmtKind::For { targets, iter, body } => return self.schedule_loop(targets, iter, body).map(Some),
            StmtKind::Expr(e) => {
                if let ExprKind::Call { callee, .. } = &e.kind {
                    self.no_lone_query(callee)?;
                }
                return Ok(None);
            }
            _ => return Ok(None),
        }
        Ok(Some(Flow::Next))
    }

    /// Refuses a condition that depends on iterators or sizes, as in functions that the lambda of `permute` calls.
    pub(crate) fn open_condition<T>(&mut self, span: Span) -> R<T> {
        self.error_help(
            "schedule::condition",
            span,
            "expected a condition known when compiling, found one that depends on the running program",
            "choose between indices with `a if c else b`",
        )
    }

    fn schedule_loop(&mut self, targets: &[syntax::Name], iter: &syntax::Expr, body: &[Stmt]) -> R<Flow> {
        let over = self.eval(iter)?;
        for item in self.schedule_items(&over, iter.span)? {
            self.step(iter.span)?;
            self.bind_static(targets, &item, iter.span)?;
            if let Flow::Return(v) = self.run(body)? {
                return Ok(Flow::Return(v));
            }
        }
        Ok(Flow::Next)
    }

    /// Executes `a, (b, c) = v`.
    fn set_variables(&mut self, targets: &[syntax::Expr], v: &Value, span: Span) -> R<()> {
        let mut pairs = Vec::new();
        self.pair(targets, v, span, &mut pairs)?;
        pairs.into_iter().try_for_each(|(t, v)| self.set_variable(t, v, span))
    }

    fn set_variable(&mut self, target: &syntax::Expr, v: Value, span: Span) -> R<()> {
        match &target.kind {
            ExprKind::Name(name) => {
                if self.is_schedule(target) {
                    return self.error_help(
                        "schedule::value",
                        target.span,
                        format!("cannot assign to `{name}`: it is the schedule"),
                        "use another name",
                    );
                }
                self.bind(name, v, Role::Named, target.span);
                Ok(())
            }
            ExprKind::Tuple(items) | ExprKind::List(items) => self.set_variables(items, &v, span),
            _ => self.no_target(target),
        }
    }

    fn no_target<T>(&mut self, target: &syntax::Expr) -> R<T> {
        match &target.kind {
            ExprKind::Subscript(..) => self.error_help(
                "assign::target",
                target.span,
                "cannot assign to items: lists and tuples of a schedule do not change",
                "make a new one: `xs = xs + [x]`, `[f(x) for x in xs]`",
            ),
            _ => self.error_help(
                "assign::target",
                target.span,
                "cannot assign to this expression",
                "assign to names (`a = …`) or tuples of names (`a, b = …`)",
            ),
        }
    }

    /// Refuses a query whose answer is dropped.
    fn no_lone_query(&mut self, callee: &syntax::Expr) -> R<()> {
        let ExprKind::Attribute(of, name) = &callee.kind else { return Ok(()) };
        if !QUERIES.contains(&name.text.as_str()) || !self.is_schedule(of) {
            return Ok(());
        }
        let method = &name.text;
        self.error_help(
            "syntax::no_effect",
            callee.span,
            format!("the result of `s.{method}` is not used"),
            if method == "can" { "write `if s.can(…):`" } else { "assign it to a name, or leave it out" },
        )
    }
}
