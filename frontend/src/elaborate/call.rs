//! Calls: arguments are bound, and the body is inlined at the call site.
//!
//! Tensors are passed as views, by reference. An argument that is an expression is computed into a temporary first
//! (values of sizes are passed as they are), so that writes of the callee cannot change it.

use super::block::{Item, Mark, reads};
use super::builtin::Builtin;
use super::declared::fingerprint;
use super::expr::value_reads;
use super::func::{FuncRef, is_static_annotation};
use super::scope::Role;
use super::stmt::Flow;
use super::value::{StaticType, Value, View};
use super::{Elab, R};
use crate::syntax::{self, ExprKind, Function};
use rustc_hash::FxHashSet;
use std::sync::Arc;
use taffeta_ast::stmt::CallSite;
use taffeta_ast::{DType, Diagnostic, Kind, Op, Span};

/// Evaluated argument: its name if it is a keyword argument, the value, and its span.
pub(crate) type Arg = (Option<String>, Value, Span);

/// Returns the element type of a tensor made from a weak value.
pub(crate) fn default_type(d: DType) -> DType {
    match d.kind() {
        Kind::Bool => DType::Bool,
        Kind::Int => DType::I32,
        Kind::Float => DType::F32,
    }
}

impl Elab<'_> {
    /// Evaluates `callee(args)`.
    pub(crate) fn call(&mut self, callee: &syntax::Expr, args: &[syntax::Arg], span: Span) -> R<Value> {
        if let ExprKind::Attribute(of, name) = &callee.kind
            && self.schedule.is_none()
            && name.text == "shape"
            && let [syntax::Arg { name: None, value }] = args
        {
            // `x.shape(0)` is `x.shape[0]`.
            let shape = self.eval(callee)?;
            return self.subscript(shape, of.span, std::slice::from_ref(value), span);
        }
        if self.schedule.is_some()
            && let ExprKind::Attribute(of, name) = &callee.kind
        {
            return self.schedule_method(of, name, args, span);
        }
        let f = match self.eval(callee)? {
            // Operands of `where` may be missing values.
            Value::Function(f) if args.len() == 3 && args.iter().all(|a| a.name.is_none()) && self.is_choice(f) => {
                Value::Operator(Op::Select)
            }
            f => f,
        };
        let args = match &f {
            Value::Function(target) if !self.is_choice(*target) => {
                let params: Vec<&str> = self.function(*target).params.iter().map(|p| p.name.text.as_str()).collect();
                self.arguments(&params, args)?
            }
            Value::Gradient(_) => self.arguments(&[], args)?,
            _ => {
                let may_be_missing = matches!(
                    f,
                    Value::Operator(_)
                        | Value::Builtin(Builtin::Coalesce | Builtin::Cast | Builtin::Pow | Builtin::Clip)
                );
                let exprs = args.iter().map(|a| &a.value);
                let values = if may_be_missing { self.eval_operands(exprs)? } else { self.eval_all(exprs)? };
                let name = |a: &syntax::Arg| a.name.as_ref().map(|n| n.text.clone());
                args.iter().zip(values).map(|(a, v)| (name(a), v, a.value.span)).collect()
            }
        };
        self.call_value(&f, args, span)
    }

    /// Returns whether a function is the library's wrapper of the select operator (`where`). Calls of it become the
    /// operator itself: operands are evaluated where they are chosen, and derivatives are those of the chosen operand.
    fn is_choice(&self, target: FuncRef) -> bool {
        let f = self.function(target);
        let [syntax::Stmt { kind: syntax::StmtKind::Return { value: Some(value) }, .. }] = f.body.as_slice() else {
            return false;
        };
        let ExprKind::Call { callee, args } = &value.kind else { return false };
        let named = |e: &syntax::Expr, name: &str| matches!(&e.kind, ExprKind::Name(n) if n == name);
        self.program.modules[target.module.0].prelude
            && named(callee, Op::Select.info().name)
            && args.len() == f.params.len()
            && args.iter().zip(&f.params).all(|(a, p)| a.name.is_none() && named(&a.value, &p.name.text))
    }

    /// Evaluates the arguments of a function from left to right, expressions into temporaries.
    fn arguments(&mut self, params: &[&str], args: &[syntax::Arg]) -> R<Vec<Arg>> {
        let mut out = Vec::with_capacity(args.len());
        for (k, a) in args.iter().enumerate() {
            let v = self.eval_passed(&a.value)?;
            let name = match &a.name {
                Some(n) => n.text.as_str(),
                None => params.get(k).copied().unwrap_or("t"),
            };
            let v = self.passed(v, name);
            out.push((a.name.as_ref().map(|n| n.text.clone()), v, a.value.span));
        }
        Ok(out)
    }

    /// Converts a value for passing to a function: tensors by reference, expressions in temporaries.
    fn passed(&mut self, v: Value, name: &str) -> Value {
        match v {
            Value::Tensor(view) if view.gathered => match Value::Tensor(view.clone()).lazy() {
                Some(l) => Value::Tensor(self.materialise(&l, view.tensor.dtype, name)),
                None => Value::Tensor(view),
            },
            Value::Tensor(view) => Value::Tensor(self.pinned(view)),
            Value::Lazy(l) => {
                if l.shape.is_empty() && (self.reads_tables_alone(&l.expr) && (l.weak || !l.reads())) {
                    return Value::Lazy(l);
                }
                let dtype = if l.weak { default_type(l.expr.dtype()) } else { l.expr.dtype() };
                Value::Tensor(self.materialise(&l, dtype, name))
            }
            Value::Empty(shape, dtype) => Value::Tensor(View::whole(&self.local(name, dtype, shape), true)),
            Value::Tuple(items) => Value::Tuple(items.iter().map(|v| self.passed(v.clone(), name)).collect()),
            Value::List(items) => Value::List(items.iter().map(|v| self.passed(v.clone(), name)).collect()),
            other => other,
        }
    }

    /// Fixes the place and extent of a view against later writes: indices and lengths that read tensors which may be
    /// written go into temporaries.
    fn pinned(&mut self, mut view: View) -> View {
        for k in 0..view.indices.len() {
            let mut read = FxHashSet::default();
            reads(&view.indices[k].index, &mut read);
            if read.is_subset(&self.inputs) {
                continue;
            }
            let index = super::value::Lazy::scalar(view.indices[k].index.clone(), false);
            view.indices[k].index = self.materialise(&index, DType::I64, "at").load();
        }
        for k in 0..view.shape.len() {
            let mut read = FxHashSet::default();
            reads(&view.shape[k], &mut read);
            if !read.is_subset(&self.inputs) {
                let length = super::value::Lazy::scalar(view.shape[k].clone(), false);
                view.shape[k] = self.materialise(&length, DType::I64, "length").load();
            }
        }
        view
    }

    /// Calls a value with evaluated arguments.
    pub(crate) fn call_value(&mut self, f: &Value, args: Vec<Arg>, span: Span) -> R<Value> {
        match f {
            Value::Function(target) => match self.static_reduction(*target, &args) {
                Some(v) => Ok(v),
                None => self.call_function(*target, args, span),
            },
            Value::Operator(op) => self.call_operator(*op, args, span),
            Value::Builtin(b) => {
                if self.schedule.is_some() {
                    self.builtin_in_schedule(*b, span)?;
                }
                self.call_builtin(*b, args, span)
            }
            Value::Gradient(_) if self.schedule.is_some() => self.not_for_schedules("a gradient is a program", span),
            Value::Gradient(g) => self.call_gradient(&g.clone(), args, span),
            Value::Type(t) => self.call_type(*t, args, span),
            Value::Storage(s) => self.call_storage(&s.clone(), args, span),
            Value::DType(d) => self.error_help(
                "type::call",
                span,
                format!("cannot call the type `{d}`"),
                format!("convert with `cast(x, {d})`"),
            ),
            other => {
                let found = other.describe();
                self.error("type::call", span, format!("cannot call {found}"))
            }
        }
    }

    /// Evaluates `tuple(xs)` and `list(xs)`.
    fn call_type(&mut self, t: StaticType, args: Vec<Arg>, span: Span) -> R<Value> {
        match (t, args.as_slice()) {
            (StaticType::Tuple, [(None, v, at)]) => Ok(Value::Tuple(self.static_items(v, *at)?.into())),
            (StaticType::List, [(None, v, at)]) => Ok(Value::List(self.static_items(v, *at)?.into())),
            (StaticType::Tuple | StaticType::List, _) => self.error("call::arguments", span, "expected one sequence"),
            _ => self.error_help(
                "type::call",
                span,
                "cannot call a type of static values",
                "convert with `cast(x, i64)` or `cast(x, f64)`",
            ),
        }
    }

    /// Applies an operator called by name: `exp(x)`, `max(a, b)`.
    fn call_operator(&mut self, op: Op, args: Vec<Arg>, span: Span) -> R<Value> {
        let name = op.info().name;
        let keyword = args.iter().any(|a| a.0.is_some());
        if matches!(op, Op::Min | Op::Max) && (args.len() == 1 || keyword) {
            return self.call_reduction(name, args, span);
        }
        let many = matches!(op, Op::Min | Op::Max) && args.len() > 2;
        if keyword || (args.len() != op.info().arity && !many) {
            let n = op.info().arity;
            return self.error(
                "call::arguments",
                span,
                format!(
                    "`{name}` takes {n} positional argument{}, found {}",
                    if n == 1 { "" } else { "s" },
                    args.len()
                ),
            );
        }
        let mut args: Vec<(Value, Span)> = args.into_iter().map(|(_, v, s)| (v, s)).collect();
        while many && args.len() > 2 {
            let rest = args.split_off(2);
            let joint = args[0].1.to(args[1].1);
            let first = self.apply(op, &args, span)?;
            args = std::iter::once((first, joint)).chain(rest).collect();
        }
        self.apply(op, &args, span)
    }

    /// Evaluates the library's `sum`, `any` and `all` of a static list.
    fn static_reduction(&self, target: FuncRef, args: &[Arg]) -> Option<Value> {
        let [(None, list, _)] = args else { return None };
        let (items, name) = (list.items()?, self.function(target).name.text.as_str());
        if !self.program.modules[target.module.0].prelude {
            return None;
        }
        let truth = |v: &Value| match v {
            Value::Bool(b) => Some(*b),
            _ => None,
        };
        match name {
            "any" => Some(Value::Bool(items.iter().map(truth).collect::<Option<Vec<_>>>()?.contains(&true))),
            "all" => Some(Value::Bool(!items.iter().map(truth).collect::<Option<Vec<_>>>()?.contains(&false))),
            "sum" => items
                .iter()
                .map(|v| match v {
                    Value::Int(i) => Some(*i),
                    _ => None,
                })
                .try_fold(0i128, |sum, i| sum.checked_add(i?))
                .map(Value::Int),
            _ => None,
        }
    }

    /// Evaluates `max(x, axis=…)` by the library's reduction, or folds a static sequence.
    fn call_reduction(&mut self, name: &str, args: Vec<Arg>, span: Span) -> R<Value> {
        if let [(None, v, at)] = args.as_slice()
            && let Some(items) = v.items()
        {
            let op = if name == "min" { Op::Min } else { Op::Max };
            let items = items.to_vec();
            let Some((first, rest)) = items.split_first() else {
                return self.error("static::sequence", *at, format!("`{name}` of an empty sequence has no value"));
            };
            let mut best = first.clone();
            for v in rest {
                best = self.apply(op, &[(best, *at), (v.clone(), *at)], span)?;
            }
            return Ok(best);
        }
        match self.library(name)? {
            Some(f) => {
                let Value::Function(target) = f else { unreachable!("the library defines functions") };
                let params: Vec<String> = self.function(target).params.iter().map(|p| p.name.text.clone()).collect();
                let mut passed = Vec::with_capacity(args.len());
                for (k, (key, v, s)) in args.into_iter().enumerate() {
                    let as_name = key.clone().or_else(|| params.get(k).cloned()).unwrap_or_else(|| "t".into());
                    let v = self.passed(v, &as_name);
                    passed.push((key, v, s));
                }
                self.call_function(target, passed, span)
            }
            None => self.error(
                "name::unknown",
                span,
                format!("`{name}` over axes needs the operator library, which is not loaded"),
            ),
        }
    }

    /// Inlines a call of a function of the program.
    pub(crate) fn call_function(&mut self, target: FuncRef, args: Vec<Arg>, span: Span) -> R<Value> {
        let f = self.function(target);
        if self.schedule.is_some() {
            self.callable_in_schedule(target, &args, span)?;
        } else if super::custom_vjp::decorator(f).is_some() {
            let name = &f.name.text;
            let message = format!("cannot call `{name}` in a program: it is the gradient of another function");
            return self.error_help(
                "call::decorated",
                span,
                message,
                "move their common part into a function, and call that",
            );
        } else if !f.decorators.is_empty() {
            return self.error_help(
                "call::decorated",
                span,
                format!("cannot call `{}` in a program: it has a decorator", f.name.text),
                format!("choose a schedule with `--schedule {}`, or call it in another schedule", f.name.text),
            );
        }
        self.call_depth(target, span)?;
        if self.differentiated
            && let Some(own) = self.custom_vjp(target)?
        {
            return self.call_with_gradient(&own, args, span);
        }
        // Arguments of calls in the source are in temporaries already (`arguments`); other callers pass values as they
        // are.
        let bound = self.match_arguments(f, args, span)?;
        self.chain.push(CallSite { function: f.name.text.clone(), span });
        self.calls.push(target);
        self.shared_chain = None;
        let here = self.span;
        let mark = self.mark();
        let call = fingerprint(target, &bound);
        let places: Arc<[Span]> = bound.iter().map(|(_, at)| *at).collect();
        let result = self.restarting(Some(call), |this, findings| {
            let looped = this.looped_names(target);
            let id = this.push_frame(target.module, looped);
            this.frame_mut().findings = findings.clone();
            this.frame_mut().called = Some((target, places.clone()));
            let result = this.inline(f, &bound);
            (id, result)
        });
        self.chain.pop();
        self.calls.pop();
        self.shared_chain = None;
        self.span = here;
        result.map(|v| self.owning(v, mark))
    }

    /// Matches every parameter with its argument or default.
    fn match_arguments(&mut self, f: &Function, args: Vec<Arg>, span: Span) -> R<Vec<(Value, Span)>> {
        let name = &f.name.text;
        let mut slots: Vec<Option<(Value, Span)>> = vec![None; f.params.len()];
        for (k, (key, v, at)) in args.into_iter().enumerate() {
            let slot = match &key {
                None if k < slots.len() => k,
                None => {
                    let n = slots.len();
                    return self.error(
                        "call::arguments",
                        at,
                        format!("`{name}` takes {n} argument{}, but more are given", if n == 1 { "" } else { "s" }),
                    );
                }
                Some(key) => match f.params.iter().position(|p| p.name.text == *key) {
                    Some(slot) => slot,
                    None => {
                        let all: Vec<String> = f.params.iter().map(|p| p.name.text.clone()).collect();
                        let d = Diagnostic::new("call::arguments", format!("`{name}` has no parameter `{key}`")).at(at);
                        let d = match super::nearest(key, all.iter()) {
                            Some(near) => d.help(format!("did you mean `{near}`?")),
                            None => d.help(format!("its parameters are {}", all.join(", "))),
                        };
                        return Err(self.report(d));
                    }
                },
            };
            if slots[slot].is_some() {
                let param = &f.params[slot].name.text;
                return self.error("call::arguments", at, format!("`{param}` is given twice to `{name}`"));
            }
            slots[slot] = Some((v, at));
        }
        let mut out = Vec::with_capacity(slots.len());
        for (slot, p) in slots.into_iter().zip(&f.params) {
            out.push(match (slot, &p.default) {
                (Some(given), _) => given,
                (None, Some(default)) => (self.default_value(f, default)?, default.span),
                (None, None) => {
                    let missing = &p.name.text;
                    return self.error("call::arguments", span, format!("`{name}` needs an argument for `{missing}`"));
                }
            });
        }
        Ok(out)
    }

    /// Evaluates a default in its own module.
    pub(crate) fn default_value(&mut self, f: &Function, default: &syntax::Expr) -> R<Value> {
        let file = f.name.span.file;
        let module = self.program.modules.iter().position(|m| m.file == file).unwrap_or(0);
        self.push_frame(crate::program::ModuleId(module), Arc::default());
        let v = self.eval(default);
        self.frames.pop();
        v
    }

    fn inline(&mut self, f: &Function, args: &[(Value, Span)]) -> R<Value> {
        for (p, (v, at)) in f.params.iter().zip(args) {
            if let Some(a) = &p.annotation
                && is_static_annotation(a)
                && !v.is_static()
            {
                let found = v.describe();
                let name = &p.name.text;
                return self.error_help(
                    "static::argument",
                    *at,
                    format!("expected a static value for `{name}` of `{}`, found {found}", f.name.text),
                    "static values are known when compiling; sizes and values of tensors are not",
                );
            }
            // The caller's name for the value, if it has one: a write to the parameter makes that name a tensor.
            let caller = self.frames.len().checked_sub(2).map(|k| &self.frames[k]);
            let text = self.program.sources().text(*at);
            let origin = caller
                .and_then(|c| c.find(text).map(|(_, b)| (c.id, b)))
                .filter(|_| self.is_nameable(v))
                .and_then(|(id, b)| match b.role {
                    Role::Named => Some((id, b.site)),
                    Role::Param(origin) => origin,
                    _ => None,
                });
            // The parameter is an alias of a temporary, which the value therefore does not own.
            let v = match v {
                Value::Tensor(view) => Value::Tensor(View { owned: false, ..view.clone() }),
                v => v.clone(),
            };
            self.bind(&p.name.text, v, Role::Param(origin), p.name.span);
        }
        self.bind_sizes(f, args)?;
        let before = self.block().items.len();
        let value = match self.run(&f.body)? {
            Flow::Return(v) => v,
            Flow::Next => Value::None,
        };
        match &f.returns {
            Some(annotation) => self.converted_results(annotation, value, (f, before)),
            None => Ok(value),
        }
    }

    /// Marks a returned tensor as owned if it was declared since `mark`, and hence is reachable through this value
    /// alone.
    fn owning(&mut self, v: Value, mark: Mark) -> Value {
        let mut taken = FxHashSet::default();
        self.owning_once(v, mark, &mut taken)
    }

    fn owning_once(&mut self, v: Value, mark: Mark, taken: &mut FxHashSet<taffeta_ast::Symbol>) -> Value {
        match v {
            Value::Tensor(mut view) => {
                let made_here = self.block().items[mark.items..]
                    .iter()
                    .any(|i| matches!(i, Item::Def(t, _) if t.symbol == view.tensor.symbol));
                view.owned = made_here && view.is_whole() && taken.insert(view.tensor.symbol.clone());
                Value::Tensor(view)
            }
            Value::Tuple(items) => {
                // A tensor that another item reads is not owned: writes to it would change that item.
                for item in items.iter().filter(|i| !matches!(i, Value::Tensor(_))) {
                    value_reads(item, taken);
                }
                Value::Tuple(items.iter().map(|v| self.owning_once(v.clone(), mark, taken)).collect())
            }
            other => other,
        }
    }

    fn looped_names(&mut self, f: FuncRef) -> Arc<FxHashSet<String>> {
        if let Some(known) = self.looped.get(&f) {
            return known.clone();
        }
        let names = Arc::new(super::stmt::looped_names(&self.function(f).body));
        self.looped.insert(f, names.clone());
        names
    }
}
