//! Elaboration of a whole entry: parameters from annotations, then the body, then results from `return`.

use super::annotation::{Annotation, results};
use super::conversion::alike;
use super::func::{FuncRef, is_static_annotation, is_typed};
use super::grad::{self, Hooks};
use super::scope::Role;
use super::stmt::Flow;
use super::value::{Lazy, Value, View};
use super::{Elab, R, StaticValue, block, call};
use crate::program::{Global, ModuleId, Program};
use crate::syntax::{self, Function, Item};
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;
use std::sync::Arc;
use taffeta_ast::format::Format;
use taffeta_ast::stmt::Role as TensorRole;
use taffeta_ast::{
    Access, DType, Diagnostic, Diagnostics, Expr, ExprKind, Func, Origin, Param, ParamMode, Span, Stmt, StmtKind,
    Symbol, Tensor,
};

/// Elaborates the entry `name` of the main file.
pub(crate) fn elaborate(
    program: &Program,
    name: &str,
    statics: &BTreeMap<String, StaticValue>,
    hooks: &dyn Hooks,
    differentiated: bool,
) -> Result<Func, Diagnostics> {
    warned(program, name, statics, hooks, differentiated).0
}

/// Elaborates the entry `name` of the main file, and returns warnings too.
pub(crate) fn warned(
    program: &Program,
    name: &str,
    statics: &BTreeMap<String, StaticValue>,
    hooks: &dyn Hooks,
    differentiated: bool,
) -> (Result<Func, Diagnostics>, Vec<Diagnostic>) {
    let alone = |result| (result, Vec::new());
    let unknown = || alone(Err(unknown_entry(program, name)));
    let Some(main) = program.modules.first() else { return unknown() };
    match main.globals.get(name) {
        Some(Global::Function(item)) => {
            let target = FuncRef { module: ModuleId(0), item: *item };
            let within = differentiated.then(Vec::new);
            function_warned(program, target, &values(statics), hooks, within, &[])
        }
        Some(Global::Assign(item)) => match &main.module.items[*item] {
            Item::Assign { value, .. } if grad::gradient_target(value).is_some() => {
                alone(grad::elaborate(program, name, statics, hooks, differentiated))
            }
            _ => unknown(),
        },
        Some(Global::Imported(..) | Global::Missing) | None => unknown(),
    }
}

fn unknown_entry(program: &Program, name: &str) -> Diagnostics {
    let all: Vec<String> = program.entries().into_iter().map(|e| e.name).collect();
    let d = Diagnostic::new("entry::unknown", format!("there is no entry `{name}`"));
    match (taffeta_ast::spelling::nearest(name, all.iter()), all.is_empty()) {
        (Some(near), _) => d.help(format!("did you mean `{near}`?")),
        (None, true) => {
            d.help("an entry is a function whose parameters are all annotated: `def f(x: f32[n]) -> f32[n]:`")
        }
        (None, false) => d.help(format!("the entries are {}", all.join(", "))),
    }
    .into()
}

/// Values of static parameters, by name.
pub(crate) type Statics = BTreeMap<String, Value>;

/// Converts static values that are given from outside.
pub(crate) fn values(given: &BTreeMap<String, StaticValue>) -> Statics {
    given.iter().map(|(name, v)| (name.clone(), Value::from(v))).collect()
}

/// Elaborates a function of the program as an entry. `within` is given if the program is going to be differentiated:
/// the functions whose custom VJPs it is part of. `differentiating` lists the functions whose gradients it is part of.
pub(crate) fn elaborate_function(
    program: &Program,
    target: FuncRef,
    statics: &Statics,
    hooks: &dyn Hooks,
    within: Option<Vec<FuncRef>>,
    differentiating: &[FuncRef],
) -> Result<Func, Diagnostics> {
    function_warned(program, target, statics, hooks, within, differentiating).0
}

fn function_warned(
    program: &Program,
    target: FuncRef,
    statics: &Statics,
    hooks: &dyn Hooks,
    within: Option<Vec<FuncRef>>,
    differentiating: &[FuncRef],
) -> (Result<Func, Diagnostics>, Vec<Diagnostic>) {
    let mut e = Elab::new(program, hooks);
    e.differentiating = differentiating.to_vec();
    e.differentiated = within.is_some();
    e.within = within.unwrap_or_default();
    let f = e.function(target);
    let looped = Arc::new(super::stmt::looped_names(&f.body));
    let result = e.restarting(None, |e, findings| {
        e.blocks = vec![block::Block::default()];
        e.inputs.clear();
        e.renames.clear();
        let id = e.push_frame(target.module, looped.clone());
        e.frame_mut().findings = findings.clone();
        let result = e.whole(target, statics);
        (id, result)
    });
    let result = match result {
        Ok(func) if e.diagnostics.is_empty() => Ok(func),
        Ok(_) => Err(Diagnostics(e.diagnostics)),
        Err(_) => {
            debug_assert!(!e.diagnostics.is_empty(), "a failure has a diagnostic");
            Err(Diagnostics(e.diagnostics))
        }
    };
    (result, e.warnings)
}

/// Guesses the operand of a missing `return`: the name that the body assigned last if one result is expected, `…`
/// otherwise.
fn returned(body: &[syntax::Stmt], count: usize) -> Option<String> {
    use syntax::{ExprKind, StmtKind};
    let returns = |s: &syntax::Stmt| matches!(s.kind, StmtKind::Return { .. });
    if body.iter().any(returns) {
        return None;
    }
    let name = |s: &syntax::Stmt| match &s.kind {
        StmtKind::Assign { targets, .. } => match &targets.last()?.kind {
            ExprKind::Name(name) => Some(name.clone()),
            _ => None,
        },
        StmtKind::Declare { name, .. } => Some(name.text.clone()),
        _ => None,
    };
    let last = body.iter().rev().find_map(name).filter(|_| count == 1);
    Some(last.unwrap_or_else(|| vec!["…"; count].join(", ")))
}

/// Value that an entry returns.
struct ReturnedValue<'v> {
    value: &'v Value,
    /// Name of the variable that is returned, if there is one.
    name: Option<String>,
    /// Position among the results.
    number: usize,
    /// The annotation, or else the entry.
    span: Span,
}

impl Elab<'_> {
    fn whole(&mut self, target: FuncRef, statics: &Statics) -> R<Func> {
        let f = self.function(target);
        self.span = f.name.span;
        self.check_form(f)?;
        self.bind_statics(f, statics)?;
        let mut sizes = Vec::new();
        for (name, span) in self.new_sizes(f)? {
            let symbol = Symbol::new(name.clone());
            self.nonnegative.insert(symbol.clone());
            self.bind(&name, Value::weak(Expr::var(&symbol)), Role::Size, span);
            sizes.push(symbol);
        }
        let mut params = Vec::new();
        for p in &f.params {
            let Some(annotation) = p.annotation.as_ref().filter(|a| !is_static_annotation(a)) else { continue };
            let a = self.annotation(annotation)?;
            let shape = a.dims.iter().map(|d| self.size(d)).collect::<R<Vec<Expr>>>()?;
            let role = if a.inout { TensorRole::InOut } else { TensorRole::Input };
            let symbol = Symbol::new(p.name.text.clone());
            let format = match a.storage {
                Some(_) if a.inout => return self.unsupported(annotation.span, "a structured tensor that is written"),
                Some(storage) => {
                    let format = self.param_storage(storage, &shape, a.dtype)?;
                    self.squares(&format, &shape, storage.span)?;
                    format
                }
                None => Format::dense(shape.len()),
            };
            let tensor = Arc::new(Tensor { format, ..Tensor::dense(symbol.clone(), a.dtype, shape, role) });
            if !a.inout {
                self.inputs.insert(symbol);
            }
            let view = View::whole(&tensor, a.inout);
            self.bind(&p.name.text, Value::Tensor(view), Role::Param(None), p.name.span);
            let mode = if a.inout { ParamMode::InOut } else { ParamMode::In };
            params.push(Param { tensor, mode });
        }
        let own = if self.differentiated { self.custom_vjp(target)? } else { None };
        let returned = match own {
            // An entry with a custom VJP is elaborated as a call of itself.
            Some(own) => {
                let whole = |p: &Param| (None, Value::Tensor(View::whole(&p.tensor, false)), f.name.span);
                let v = self.call_with_gradient(&own, params.iter().map(whole).collect(), f.name.span)?;
                self.returned = own.forward.results.iter().map(|t| Some(t.symbol.name().to_string())).collect();
                v
            }
            None => match self.run(&f.body)? {
                Flow::Return(v) => v,
                Flow::Next => Value::None,
            },
        };
        let results = self.results(f, returned, &params, &mut sizes)?;
        let origin = Origin::source(f.name.span);
        let items = std::mem::take(&mut self.block_mut().items);
        let items = self.with_tables(items);
        let body = rename_stmt(&block::fold(items, &origin), &self.renames);
        let results = results.iter().map(|t| rename_tensor(t, &self.renames)).collect();
        let custom_vjps = std::mem::take(&mut self.custom_vjp_calls);
        Ok(Func {
            name: f.name.text.clone(),
            doc: f.doc.clone(),
            sizes,
            params,
            results,
            body,
            made: Vec::new(),
            custom_vjps,
            keeps_order: false,
        })
    }

    fn check_form(&mut self, f: &Function) -> R<()> {
        if let Some(d) = f.decorators.first() {
            if super::schedule::schedule_target(f).is_some() {
                return self.error(
                    "entry::schedule",
                    f.name.span,
                    format!("`{}` is a schedule, not an entry", f.name.text),
                );
            }
            if super::custom_vjp::decorator(f).is_none() {
                return self.unsupported(d.span, "this decorator");
            }
            if self.within.is_empty() {
                return self.error(
                    "entry::gradient",
                    f.name.span,
                    format!("`{}` is the gradient of another function, not an entry", f.name.text),
                );
            }
        }
        if !is_typed(f) {
            let missing: Vec<String> =
                f.params.iter().filter(|p| p.annotation.is_none()).map(|p| format!("`{}`", p.name.text)).collect();
            return self.error_help(
                "entry::template",
                f.name.span,
                format!("`{}` is a template: {} without annotation", f.name.text, missing.join(", ")),
                "annotate all parameters to make it an entry: `x: f32[n]`, or `static` for values known when compiling",
            );
        }
        if let Some(p) = f.params.iter().find(|p| DType::parse(&p.name.text).is_some()) {
            return self.error_help(
                "entry::parameter",
                p.name.span,
                format!("cannot name a parameter `{}`: it is an element type", p.name.text),
                "use another name",
            );
        }
        for p in &f.params {
            if let (Some(d), false) = (&p.default, p.annotation.as_ref().is_some_and(is_static_annotation)) {
                return self.error_help(
                    "entry::default",
                    d.span,
                    format!("`{}` is a tensor and cannot have a default in an entry", p.name.text),
                    "annotate it `static` if its value is known when compiling",
                );
            }
        }
        Ok(())
    }

    fn bind_statics(&mut self, f: &Function, statics: &Statics) -> R<()> {
        let is_static = |name: &str| {
            f.params.iter().any(|p| p.name.text == name && p.annotation.as_ref().is_some_and(is_static_annotation))
        };
        if let Some(odd) = statics.keys().find(|k| !is_static(k)) {
            let all: Vec<String> = f.params.iter().map(|p| p.name.text.clone()).filter(|n| is_static(n)).collect();
            let d = Diagnostic::new("entry::static", format!("`{}` has no static parameter `{odd}`", f.name.text));
            let d = match taffeta_ast::spelling::nearest(odd, all.iter()) {
                Some(near) => d.help(format!("did you mean `{near}`?")),
                None if all.is_empty() => d.help("it has no static parameters"),
                None => d.help(format!("its static parameters are {}", all.join(", "))),
            };
            return Err(self.report(d));
        }
        for p in f.params.iter().filter(|p| is_static(&p.name.text)) {
            let name = &p.name.text;
            let v = match (statics.get(name), &p.default) {
                (Some(v), _) => v.clone(),
                (None, Some(default)) => {
                    let v = self.default_value(f, default)?;
                    if !v.is_static() {
                        let found = v.describe();
                        return self.error(
                            "static::argument",
                            default.span,
                            format!("expected a static value, found {found}"),
                        );
                    }
                    v
                }
                (None, None) => {
                    return self.error_help(
                        "entry::static",
                        p.name.span,
                        format!("the static parameter `{name}` needs a value"),
                        format!("give it: `--set {name}=…`"),
                    );
                }
            };
            self.bind(name, v, Role::Param(None), p.name.span);
        }
        Ok(())
    }

    /// Turns the values of `return` into the program's results.
    fn results(&mut self, f: &Function, v: Value, params: &[Param], sizes: &mut Vec<Symbol>) -> R<Vec<Arc<Tensor>>> {
        let values: Vec<Value> = match v {
            Value::None => Vec::new(),
            Value::Tuple(items) | Value::List(items) => items.to_vec(),
            v => vec![v],
        };
        let annotations = f.returns.as_ref().map(results);
        if let Some(a) = annotations
            && a.len() != values.len()
        {
            let (n, m) = (values.len(), a.len());
            let span = f.returns.as_ref().map_or(f.name.span, |r| r.span);
            let s = if n == 1 { "" } else { "s" };
            let text = format!("`{}` returns {n} value{s}, but its annotation has {m}", f.name.text);
            let d = Diagnostic::new("return::count", text).at(span);
            return Err(self.report(match returned(&f.body, m) {
                Some(what) => d.help(format!("end it with `return {what}`")),
                None => d,
            }));
        }
        let names = std::mem::take(&mut self.returned);
        let mut out: Vec<Arc<Tensor>> = Vec::new();
        // Parameters that are written are results themselves; one that is only read may share its name with a result.
        let written = params.iter().filter(|p| p.mode == ParamMode::InOut);
        let mut used: FxHashSet<String> = written.map(|p| p.tensor.symbol.name().to_string()).collect();
        used.extend(sizes.iter().map(|s| s.name().to_string()));
        for (k, value) in values.iter().enumerate() {
            let annotation = annotations.map(|a| &a[k]);
            let name = names.get(k).cloned().flatten();
            let span = annotation.map_or(self.span, |a| a.span);
            let Some(annotation) = annotation else {
                out.push(self.result(ReturnedValue { value, name, number: k, span }, None, &mut used)?);
                continue;
            };
            let a = self.annotation(annotation)?;
            let shape = self.result_shape(value, &a, k, span)?;
            let format = self.written_format(&a, &shape)?;
            let format = unified(format, value, params);
            let mut annotated = Vec::with_capacity(shape.len());
            for (d, (dim, n)) in a.dims.iter().zip(&shape).enumerate() {
                let expected = self.result_size(dim, n, params, sizes)?;
                let what = format!("dimension {d} of the result {}", name.as_deref().unwrap_or("out"));
                if self.require_equal(&expected, n, &what).is_err() {
                    let (expected, found) = (super::broadcast::show(&expected), super::broadcast::show(n));
                    return self.error(
                        "return::shape",
                        span,
                        format!("{what} is annotated as {expected}, but is {found}"),
                    );
                }
                annotated.push(expected);
            }
            // A size that no parameter has must appear in the shape of a result.
            let own = annotated.iter().any(|n| n.mentions(&|s| sizes.contains(s) && !in_shapes(params, s)));
            let shape = Some(annotated).filter(|annotated| own && *annotated != shape);
            out.push(self.result(
                ReturnedValue { value, name, number: k, span },
                Some((&a, shape, format)),
                &mut used,
            )?);
        }
        for t in &out {
            self.check_result_sizes(t, sizes)?;
        }
        Ok(out)
    }

    /// Returns a size in a result's annotation. A name mentioned neither by the parameters nor by the body is bound to
    /// the size found.
    fn result_size(&mut self, dim: &syntax::Expr, found: &Expr, params: &[Param], sizes: &mut Vec<Symbol>) -> R<Expr> {
        let expected = self.size(dim)?;
        if let (ExprKind::Var(s), syntax::ExprKind::Name(name)) = (expected.kind(), &dim.kind)
            && expected != *found
            && !in_shapes(params, s)
            && !self.mentioned(s)
        {
            if let ExprKind::Var(_) | ExprKind::Const(_) = found.kind() {
                let n = super::broadcast::show(found);
                let text = format!("no parameter has the size `{name}`, and the result has the size `{n}`");
                return self.error_help("annotation::size", dim.span, text, format!("write `{n}`"));
            }
            sizes.retain(|other| other != s);
            self.bind(name, Value::weak(found.clone()), Role::Size, dim.span);
            return Ok(found.clone());
        }
        Ok(expected)
    }

    /// Returns whether the program so far mentions a size.
    fn mentioned(&self, size: &Symbol) -> bool {
        let is = |s: &Symbol| s == size;
        self.block().items.iter().any(|item| match item {
            block::Item::Def(t, _) => t.shape.iter().any(|n| n.mentions(&is)),
            block::Item::Stmt(s) => s.any(&mut |s| s.kind().exprs().into_iter().any(|e| e.mentions(&is))),
        })
    }

    fn check_result_sizes(&mut self, t: &Tensor, sizes: &[Symbol]) -> R<()> {
        for n in &t.shape {
            let mut plain = true;
            n.walk(&mut |e| match e.kind() {
                ExprKind::Var(s) => plain &= sizes.contains(s),
                ExprKind::Load(..) => plain = false,
                _ => {}
            });
            if !plain {
                let name = t.symbol.name().to_string();
                return self.error(
                    "return::shape",
                    self.span,
                    format!("the shape of the result `{name}` depends on more than sizes"),
                );
            }
        }
        Ok(())
    }

    /// Declares one result: the local itself if a whole local is returned, a copy otherwise.
    fn result(
        &mut self,
        returned: ReturnedValue<'_>,
        annotated: Option<(&Annotation<'_>, Option<Vec<Expr>>, Format)>,
        used: &mut FxHashSet<String>,
    ) -> R<Arc<Tensor>> {
        let ReturnedValue { value: v, name, number: k, span } = returned;
        let (a, shape, format) = match annotated {
            Some((a, shape, format)) => (Some(a), shape, Some(format)),
            None => (None, None, None),
        };
        let dtype = match (a, v.dtype()) {
            (Some(a), _) => a.dtype,
            (None, Some(d)) if v.lazy().is_some_and(|l| l.weak) => call::default_type(d),
            (None, Some(d)) => d,
            (None, None) => return self.not_a_result(v, k, span),
        };
        let numbered = if k == 0 { "out".to_string() } else { format!("out{k}") };
        let wanted = name.clone().unwrap_or_else(|| numbered.clone());
        let wanted = if used.contains(&wanted) { numbered } else { wanted };
        let mut free = wanted.clone();
        for again in 1.. {
            if used.insert(free.clone()) {
                break;
            }
            free = format!("{wanted}_{again}");
        }
        if let Value::Tensor(view) = v
            && view.is_whole()
            && view.tensor.role == TensorRole::Local
            && view.tensor.dtype == dtype
            && shape.is_none()
            && (view.owned || name.is_some())
            && (view.tensor.format.is_dense() || format.as_ref().is_none_or(|f| *f == view.tensor.format))
            && let Some(tensor) = self.take_result(&view.tensor.symbol)
        {
            if self.renamed(&tensor.symbol).name() != free {
                self.renames.insert(tensor.symbol.clone(), Symbol::new(free));
            }
            // The annotation decides the storage.
            return Ok(match format {
                Some(format) if format != tensor.format => Arc::new(Tensor { format, ..(*tensor).clone() }),
                _ => tensor,
            });
        }
        let shape = match v {
            Value::Empty(..) => {
                return self.error("value::empty", span, "a tensor made by `empty` has no values yet");
            }
            v => shape.or_else(|| v.shape()).unwrap_or_default(),
        };
        self.check_shape(&shape, span)?;
        let dense = Tensor::dense(Symbol::new(free), dtype, shape, TensorRole::Result);
        let format = format.unwrap_or(dense.format.clone());
        let tensor = Arc::new(Tensor { format, ..dense });
        let found = v.format();
        match (v, v.lazy()) {
            (Value::Tensor(view), Some(l))
                if view.is_whole() && !found.is_dense() && !alike(&found, &tensor.format) =>
            {
                let what = name.map_or("the result".to_string(), |name| format!("the result `{name}`"));
                self.warn_of_format(&what, v, &tensor.format, span);
                let expr = self.stored(&l, dtype, span)?;
                self.convert_into(&tensor, &Lazy { expr, weak: false, ..l }, v);
            }
            _ => self.write(&View::whole(&tensor, true), v, span, span)?,
        }
        Ok(tensor)
    }

    fn renamed(&self, s: &Symbol) -> Symbol {
        self.renames.get(s).unwrap_or(s).clone()
    }

    /// Records the variables that a `return` of the entry names.
    pub(crate) fn note_returned(&mut self, value: Option<&syntax::Expr>) {
        if self.frames.len() != 1 {
            return;
        }
        let one = |e: &syntax::Expr| match &e.kind {
            syntax::ExprKind::Name(n) if self.frame().find(n).is_some() => Some(n.clone()),
            _ => None,
        };
        self.returned = match value {
            None => Vec::new(),
            Some(e) => match &e.kind {
                syntax::ExprKind::Tuple(items) | syntax::ExprKind::List(items) => items.iter().map(one).collect(),
                _ => vec![one(e)],
            },
        };
    }
}

/// Returns the format of a result. A format with a pattern of its own has that of the returned tensor, if this has one
/// of its own in the same format.
fn unified(format: Format, value: &Value, params: &[Param]) -> Format {
    let follows = |f: &Format| params.iter().any(|p| p.tensor.format.pattern == f.pattern);
    let found = value.format();
    let own = format.pattern.is_some() && found.pattern.is_some() && !follows(&format) && !follows(&found);
    let like_found = Format { pattern: found.pattern, ..format.clone() };
    if own && like_found == found { found } else { format }
}

/// Returns whether a parameter's shape mentions a size.
fn in_shapes(params: &[Param], size: &Symbol) -> bool {
    params.iter().flat_map(|p| &p.tensor.shape).any(|n| n.mentions(&|s| s == size))
}

type Renames = rustc_hash::FxHashMap<Symbol, Symbol>;

fn rename_tensor(t: &Arc<Tensor>, renames: &Renames) -> Arc<Tensor> {
    match renames.get(&t.symbol) {
        Some(new) => Arc::new(Tensor { symbol: new.clone(), ..(**t).clone() }),
        None => t.clone(),
    }
}

/// Renames tensors in a statement.
fn rename_stmt(s: &Stmt, renames: &Renames) -> Stmt {
    if renames.is_empty() {
        return s.clone();
    }
    let s = s.map(&mut |inner| rename_stmt(inner, renames), &mut |e| rename_expr(e, renames));
    let symbol = |t: &Symbol| renames.get(t).unwrap_or(t).clone();
    match s.kind() {
        StmtKind::VarDef { tensor, body } if renames.contains_key(&tensor.symbol) => {
            s.with_kind(StmtKind::VarDef { tensor: rename_tensor(tensor, renames), body: body.clone() })
        }
        StmtKind::Store { tensor, indices, value } if renames.contains_key(tensor) => {
            s.with_kind(StmtKind::Store { tensor: symbol(tensor), indices: indices.clone(), value: value.clone() })
        }
        StmtKind::ReduceTo { tensor, indices, op, value } if renames.contains_key(tensor) => {
            s.with_kind(StmtKind::ReduceTo {
                tensor: symbol(tensor),
                indices: indices.clone(),
                op: *op,
                value: value.clone(),
            })
        }
        StmtKind::Print { parts } => s.with_kind(StmtKind::Print {
            parts: parts.iter().map(|p| p.map(&mut |t| symbol(t), &mut Expr::clone)).collect(),
        }),
        _ => s,
    }
}

fn rename_expr(e: &Expr, renames: &Renames) -> Expr {
    e.rewrite(&mut |e| match e.kind() {
        ExprKind::Load(t, at) if renames.contains_key(t) => {
            let at: Vec<Access> = at.clone();
            Expr::load(&renames[t], at, e.dtype())
        }
        _ => e,
    })
}
