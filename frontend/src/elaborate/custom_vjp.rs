//! Custom VJPs: `@gradient(f)` decorates the backward pass of `f`.
//!
//! Parameters of the backward pass are matched by name: the parameters of `f` are its arguments as they were at the
//! call, its results (`y`) are the returned values, and `y_grad` is the seed of a floating-point result; all seeds must
//! be taken. Its results are the gradients of the floating-point parameters of `f`, in order. Types and shapes are
//! those of the matched tensors.
//!
//! A call of `f` is inlined like any other. Only in a program that is going to be differentiated is it a separate step
//! between copies of its arguments and results, which the tree records ([`CustomVjp`]).

use super::call::Arg;
use super::func::{FuncRef, is_static_annotation, is_typed};
use super::grad::Hooks;
use super::splice::Meaning;
use super::value::{Lazy, Value, View};
use super::{Elab, R, Stop, entry};
use crate::program::{ModuleId, Program};
use crate::syntax::{self, ExprKind, Function, Item};
use rustc_hash::FxHashMap;
use std::sync::Arc;
use taffeta_ast::func::{CustomVjp, SubTensor, Takes};
use taffeta_ast::stmt::CallSite;
use taffeta_ast::{
    Diagnostic, Diagnostics, Expr, ExprKind as TreeKind, Func, ParamMode, Span, Stmt, StmtId, StmtKind, Symbol, Tensor,
};

/// Function with its custom VJP, matched and checked.
pub(crate) struct CustomVjpRule {
    pub(crate) forward: Func,
    backward: Arc<Func>,
    takes: Vec<Takes>,
    gives: Vec<usize>,
    /// Sizes of the backward pass in terms of those of the function.
    sizes: Vec<Expr>,
}

/// Returns the decorator that makes a function a custom VJP, well-formed or not.
pub(crate) fn decorator(f: &Function) -> Option<&syntax::Expr> {
    let word = |e: &syntax::Expr| matches!(&e.kind, ExprKind::Name(n) if n == "gradient");
    f.decorators.iter().find(|d| match &d.kind {
        ExprKind::Call { callee, .. } => word(callee),
        _ => word(d),
    })
}

/// Returns the function name in `@gradient(f)`.
fn target(f: &Function) -> Option<(&str, Span)> {
    let ExprKind::Call { args, .. } = &decorator(f)?.kind else { return None };
    match args.as_slice() {
        [syntax::Arg { name: None, value: syntax::Expr { kind: ExprKind::Name(n), span } }] => Some((n, *span)),
        _ => None,
    }
}

/// Returns whether an annotation is `inout[…]`.
fn is_inout(e: &syntax::Expr) -> bool {
    let ExprKind::Subscript(of, _) = &e.kind else { return false };
    matches!(&of.kind, ExprKind::Name(n) if n == "inout")
}

/// Reports all errors of a custom VJP of the main file.
pub(crate) fn faults(program: &Program, item: usize, hooks: &dyn Hooks) -> Vec<Diagnostic> {
    let mut e = Elab::new(program, hooks);
    e.differentiated = true;
    let gradient = FuncRef { module: ModuleId(0), item };
    if let Ok(of) = e.gradient_target(gradient) {
        let _ = e.find_gradient(of, false);
    }
    e.diagnostics
}

impl Elab<'_> {
    /// Returns the function that a custom VJP differentiates.
    fn gradient_target(&mut self, gradient: FuncRef) -> R<FuncRef> {
        let g = self.function(gradient);
        let at = decorator(g).map_or(g.name.span, |d| d.span);
        if let [_, second, ..] = g.decorators.as_slice() {
            let message = format!("`{}` has several decorators", g.name.text);
            return self.error_help("gradient::decorator", second.span, message, "leave only one `@gradient(f)`");
        }
        let Some((name, at)) = target(g) else {
            let message = "`gradient` takes the name of one function";
            return self.error_help("gradient::decorator", at, message, "write `@gradient(f)` for the gradient of `f`");
        };
        let name = name.to_string();
        match self.global(gradient.module, &name)? {
            Some(Value::Function(f)) => Ok(f),
            Some(v) => {
                let found = v.describe();
                self.error("gradient::target", at, format!("expected a function, but `{name}` is {found}"))
            }
            None => {
                let d = Diagnostic::new("gradient::target", format!("there is no function `{name}`")).at(at);
                let all: Vec<String> = self.program.modules[gradient.module.0].globals.keys().cloned().collect();
                Err(self.report(match super::nearest(&name, all.iter()) {
                    Some(near) => d.help(format!("did you mean `{near}`?")),
                    None => d.help("put the gradient into a file that defines or imports its function"),
                }))
            }
        }
    }

    /// Returns the custom VJP of a function, if the program has one; memoised.
    pub(crate) fn custom_vjp(&mut self, f: FuncRef) -> R<Option<Arc<CustomVjpRule>>> {
        match self.custom_vjps.get(&f) {
            Some(known) => Ok(known.clone()),
            None => self.find_gradient(f, true),
        }
    }

    /// Searches the program for the custom VJP of a function, and memoises it. A custom VJP without a valid target is
    /// an error, wherever it stands, if `all` is set, and skipped otherwise.
    fn find_gradient(&mut self, f: FuncRef, all: bool) -> R<Option<Arc<CustomVjpRule>>> {
        let program = self.program;
        let mut found: Option<FuncRef> = None;
        for (m, data) in program.modules.iter().enumerate().filter(|(_, m)| !m.prelude) {
            for (item, i) in data.module.items.iter().enumerate() {
                let Item::Function(g) = i else { continue };
                let gradient = FuncRef { module: ModuleId(m), item };
                if decorator(g).is_none() {
                    continue;
                }
                let reported = self.diagnostics.len();
                match self.gradient_target(gradient) {
                    Ok(of) if of == f => {}
                    Err(stop) if all => return Err(stop),
                    Ok(_) => continue,
                    Err(_) => {
                        self.diagnostics.truncate(reported);
                        continue;
                    }
                }
                if let Some(first) = found.replace(gradient) {
                    let (name, first) = (self.function(f).name.text.clone(), self.function(first));
                    let d = Diagnostic::new("gradient::twice", format!("`{name}` has two gradients")).at(g.name.span);
                    return Err(self.report(d.label(first.name.span, "this is the other")));
                }
            }
        }
        let own = match found {
            Some(gradient) => Some(Arc::new(self.matched(f, gradient)?)),
            None => None,
        };
        self.custom_vjps.insert(f, own.clone());
        Ok(own)
    }

    /// Elaborates a function and its custom VJP, and checks that they match.
    fn matched(&mut self, f: FuncRef, gradient: FuncRef) -> R<CustomVjpRule> {
        self.differentiable(f, gradient)?;
        let g = self.function(gradient);
        if self.within.contains(&f) {
            let name = &self.function(f).name.text;
            let message = format!("the gradient of `{name}` calls `{name}` itself");
            let help = "take its result as a parameter: give the parameter the name of the result";
            return self.error_help("gradient::recursive", g.name.span, message, help);
        }
        let none = entry::Statics::new();
        let forward = entry::elaborate_function(self.program, f, &none, self.hooks, None, &self.differentiating);
        let forward = self.or_report(forward)?;
        let within = self.within.iter().copied().chain([f]).collect();
        let backward =
            entry::elaborate_function(self.program, gradient, &none, self.hooks, Some(within), &self.differentiating);
        let backward = self.or_report(backward)?;
        let mut sizes = FxHashMap::default();
        let takes = self.taken(&forward, &backward, g, &mut sizes)?;
        let gives = self.given(&forward, &backward, g, &sizes)?;
        let sizes = backward.sizes.iter().map(|s| sizes.get(s).cloned()).collect::<Option<Vec<Expr>>>();
        let Some(sizes) = sizes else {
            let message = format!("cannot infer the sizes of `{}` from its parameters", g.name.text);
            return self.error("gradient::shape", g.name.span, message);
        };
        Ok(CustomVjpRule { forward, backward: Arc::new(backward), takes, gives, sizes })
    }

    pub(crate) fn or_report<T>(&mut self, result: Result<T, Diagnostics>) -> R<T> {
        result.map_err(|found| {
            let mut stop = Stop::Reported;
            for d in found.0 {
                stop = self.report(d);
            }
            stop
        })
    }

    /// Refuses functions that cannot have a custom VJP: templates, and functions with decorators, static or `inout`
    /// parameters.
    fn differentiable(&mut self, f: FuncRef, gradient: FuncRef) -> R<()> {
        let (function, g) = (self.function(f), self.function(gradient));
        let name = &function.name.text;
        let at = target(g).map_or(g.name.span, |(_, at)| at);
        let code = "gradient::function";
        if !function.decorators.is_empty() {
            return self.error(code, at, format!("expected a function of a program, but `{name}` has a decorator"));
        }
        for (f, what) in [(function, "a function with a gradient of its own"), (g, "a gradient")] {
            if !is_typed(f) {
                let name = &f.name.text;
                let message = format!("`{name}` is a template, but {what} needs types");
                return self.error_help(code, f.name.span, message, "annotate all its parameters: `x: f64[n]`");
            }
            if let Some(p) = f.params.iter().find(|p| p.annotation.as_ref().is_some_and(is_static_annotation)) {
                let message = format!("`{}` is static, but {what} takes only tensors", p.name.text);
                return self.error_help(
                    code,
                    p.name.span,
                    message,
                    format!("write a function that calls `{}` with its value", f.name.text),
                );
            }
            if let Some(p) = f.params.iter().find(|p| p.annotation.as_ref().is_some_and(is_inout)) {
                let message = format!("`{}` is `inout`, but {what} cannot write its arguments", p.name.text);
                return self.error_help(code, p.name.span, message, "leave out `inout`, and return the new value");
            }
        }
        Ok(())
    }

    /// Matches the parameters of the backward pass with arguments, results and seeds; their shapes bind its sizes.
    fn taken(&mut self, forward: &Func, backward: &Func, g: &Function, sizes: &mut Sizes) -> R<Vec<Takes>> {
        let floats = |t: &&Arc<Tensor>| t.dtype.is_float();
        if !forward.results.iter().any(|t| t.dtype.is_float()) {
            let message = format!("`{}` has no floating-point result to differentiate", forward.name);
            return self.error("gradient::function", g.name.span, message);
        }
        let mut later = Vec::new();
        let mut takes = Vec::new();
        for (p, written) in backward.params.iter().zip(&g.params) {
            let name = p.tensor.symbol.name();
            let at = written.annotation.as_ref().map_or(written.name.span, |a| a.span);
            let argument = forward.params.iter().position(|q| q.tensor.symbol.name() == name);
            let result = forward.results.iter().position(|t| t.symbol.name() == name);
            let seed = name.strip_suffix("_grad");
            let seed =
                seed.and_then(|y| forward.results.iter().position(|t| t.symbol.name() == y && t.dtype.is_float()));
            let (what, of) = match (argument, result, seed) {
                (Some(_), _, Some(_)) | (_, Some(_), Some(_)) => {
                    let message =
                        format!("`{name}` is both a name of `{}` and the seed of one of its results", forward.name);
                    return self.error_help(
                        "gradient::parameter",
                        written.name.span,
                        message,
                        "give the result another name",
                    );
                }
                (Some(k), ..) => (Takes::Argument(k), &forward.params[k].tensor),
                (None, Some(k), _) => (Takes::Result(k), &forward.results[k]),
                (None, None, Some(k)) => (Takes::Seed(k), &forward.results[k]),
                (None, None, None) => return self.no_such_parameter(forward, name, written.name.span),
            };
            self.same_type(&p.tensor, of, at)?;
            for (d, (own, of)) in p.tensor.shape.iter().zip(&of.shape).enumerate() {
                match own.kind() {
                    TreeKind::Var(s) if !sizes.contains_key(s) => {
                        sizes.insert(s.clone(), of.clone());
                    }
                    _ => later.push((own, of.clone(), at, format!("dimension {d} of `{name}`"))),
                }
            }
            takes.push(what);
        }
        for (own, of, at, what) in later {
            self.same_shape(&in_terms(own, sizes), &of, &what, at)?;
        }
        let missing = (0..forward.results.len())
            .find(|k| forward.results[*k].dtype.is_float() && !takes.contains(&Takes::Seed(*k)));
        if let Some(k) = missing {
            let y = &forward.results[k];
            let message = format!(
                "`{}` has no parameter for the seed of the result `{}` of `{}`",
                g.name.text, y.symbol, forward.name
            );
            let help = format!("give it a parameter `{}_grad` of the type and shape of `{}`", y.symbol, y.symbol);
            return self.error_help("gradient::parameter", g.name.span, message, help);
        }
        if !forward.params.iter().any(|p| floats(&&p.tensor)) {
            let message =
                format!("`{}` has no floating-point parameter to differentiate with respect to", forward.name);
            return self.error("gradient::function", g.name.span, message);
        }
        Ok(takes)
    }

    fn no_such_parameter<T>(&mut self, forward: &Func, name: &str, at: Span) -> R<T> {
        let mut all: Vec<String> = forward.interface().map(|t| t.symbol.name().to_string()).collect();
        all.extend(forward.results.iter().filter(|t| t.dtype.is_float()).map(|t| format!("{}_grad", t.symbol)));
        let message = format!("`{name}` is not a parameter, result or seed of `{}`", forward.name);
        let d = Diagnostic::new("gradient::parameter", message).at(at);
        Err(self.report(match super::nearest(name, all.iter()) {
            Some(near) => d.help(format!("did you mean `{near}`?")),
            None => d.help(format!("its gradient can take {}", all.join(", "))),
        }))
    }

    /// Returns the parameters of the function whose gradients the backward pass returns, and checks types and shapes.
    fn given(&mut self, forward: &Func, backward: &Func, g: &Function, sizes: &Sizes) -> R<Vec<usize>> {
        let gives: Vec<usize> =
            (0..forward.params.len()).filter(|k| forward.params[*k].tensor.dtype.is_float()).collect();
        let names: Vec<&str> = gives.iter().map(|k| forward.params[*k].tensor.symbol.name()).collect();
        if gives.len() != backward.results.len() {
            let count = taffeta_ast::spelling::counted(backward.results.len(), "result");
            let at = g.returns.as_ref().map_or(g.name.span, |r| r.span);
            let message = format!(
                "`{}` has {count}, but `{}` needs gradients of {}",
                g.name.text,
                forward.name,
                names.join(", ")
            );
            return self.error_help(
                "gradient::results",
                at,
                message,
                "return one gradient for each floating-point parameter, in order",
            );
        }
        let annotations = g.returns.as_ref().map(super::annotation::results);
        for ((t, k), name) in backward.results.iter().zip(&gives).zip(&names) {
            let index = gives.iter().position(|g| g == k).unwrap_or(0);
            let at = annotations.and_then(|a| a.get(index)).map_or(g.name.span, |a| a.span);
            let of = &forward.params[*k].tensor;
            self.same_type(t, of, at)?;
            for (d, (own, of)) in t.shape.iter().zip(&of.shape).enumerate() {
                self.same_shape(&in_terms(own, sizes), of, &format!("dimension {d} of the gradient of `{name}`"), at)?;
            }
        }
        Ok(gives)
    }

    fn same_type(&mut self, own: &Tensor, of: &Tensor, at: Span) -> R<()> {
        if own.dtype == of.dtype && own.ndim() == of.ndim() {
            return Ok(());
        }
        let shown =
            |t: &Tensor| format!("`{}` with {}", t.dtype, taffeta_ast::spelling::counted(t.ndim(), "dimension"));
        let message = format!("`{}` is {}, but `{}` is {}", own.symbol, shown(own), of.symbol, shown(of));
        self.error_help("gradient::type", at, message, "give both the same element type and number of dimensions")
    }

    fn same_shape(&mut self, own: &Expr, of: &Expr, what: &str, at: Span) -> R<()> {
        if taffeta_ast::poly::equal(own, of) == Some(true) {
            return Ok(());
        }
        let (found, expected) = (super::broadcast::show(own), super::broadcast::show(of));
        let message = format!("{what} is {found}, expected {expected}");
        self.error_help(
            "gradient::shape",
            at,
            message,
            "the expected size is in terms of the sizes of the differentiated function",
        )
    }

    /// Calls a function that has a custom VJP, in a program that is going to be differentiated.
    pub(crate) fn call_with_gradient(&mut self, own: &CustomVjpRule, args: Vec<Arg>, span: Span) -> R<Value> {
        let func = &own.forward;
        let args = self.spliced_arguments(func, args, span)?;
        let site = CallSite { function: func.name.clone(), span };
        let mut meaning = Meaning::new(self.chain.iter().cloned().chain([site]).collect());
        self.unify(func, &args, &mut meaning)?;
        let mut places = Vec::new();
        for (p, (v, at)) in func.params.iter().zip(&args) {
            let Some(l) = v.lazy().filter(|_| p.mode == ParamMode::In) else {
                let found = v.describe();
                return self.error("call::argument", *at, format!("expected a tensor, found {found}"));
            };
            self.fixed_shape(&l.shape, &func.name, *at)?;
            if !p.tensor.format.is_dense() || !v.format().is_dense() {
                return self.unsupported(*at, "a structured argument of a function with its own gradient");
            }
            let copy = match v {
                // A temporary that is passed is a copy already.
                Value::Tensor(view) if view.owned && view.is_whole() && view.tensor.dtype == p.tensor.dtype => {
                    view.clone()
                }
                _ => {
                    let expr = self.stored(&l, p.tensor.dtype, *at)?;
                    self.materialise(&Lazy { expr, weak: false, ..l }, p.tensor.dtype, p.tensor.symbol.name())
                }
            };
            places.push(place(&copy));
            meaning.tensors.insert(p.tensor.symbol.clone(), copy);
        }
        let mut made = Vec::new();
        for t in &func.results {
            let shape = t.shape.iter().map(|n| meaning.expr(n)).collect();
            let view = View::whole(&self.local(t.symbol.name(), t.dtype, shape), true);
            meaning.tensors.insert(t.symbol.clone(), view.clone());
            made.push(view);
        }
        let call = meaning.stmt(&func.body);
        let mut body = Vec::new();
        steps(&call, &mut body);
        self.custom_vjp_calls.push(CustomVjp {
            function: func.name.clone(),
            span,
            body,
            args: places,
            results: made.iter().map(place).collect(),
            backward: own.backward.clone(),
            takes: own.takes.clone(),
            gives: own.gives.clone(),
            sizes: own.sizes.iter().map(|n| meaning.expr(n)).collect(),
        });
        self.emit_all(&call);
        let mut results = Vec::new();
        for (view, t) in made.into_iter().zip(&func.results) {
            let l = Lazy { shape: view.shape.clone(), expr: view.load(), weak: false };
            results.push(Value::Tensor(self.materialise(&l, t.dtype, t.symbol.name())));
        }
        Ok(match results.len() {
            1 => results.swap_remove(0),
            _ => Value::Tuple(results.into()),
        })
    }

    /// Refuses lengths that are read from tensors.
    fn fixed_shape(&mut self, shape: &[Expr], function: &str, at: Span) -> R<()> {
        let mut read = false;
        for n in shape {
            n.walk(&mut |e| read |= matches!(e.kind(), TreeKind::Load(..)));
        }
        if read {
            let message =
                format!("the shape of this argument is read from a tensor, but `{function}` has its own gradient");
            return self.error_help(
                "gradient::length",
                at,
                message,
                "pass a tensor whose shape is computed from sizes and iterators",
            );
        }
        Ok(())
    }

    /// Records the calls with custom VJPs that an inlined program (a gradient) contains.
    pub(crate) fn note_calls(&mut self, func: &Func, meaning: &Meaning) {
        if !self.differentiated {
            return;
        }
        for call in &func.custom_vjps {
            // Statements without a copy here were dead; differentiation checks that the recorded step is complete.
            let exprs = |all: &[Expr]| all.iter().map(|e| meaning.expr(e)).collect();
            let here = |p: &SubTensor| SubTensor {
                tensor: meaning.tensors.get(&p.tensor).map_or(&p.tensor, |v| &v.tensor.symbol).clone(),
                at: exprs(&p.at),
                dtype: p.dtype,
            };
            self.custom_vjp_calls.push(CustomVjp {
                body: call.body.iter().filter_map(|id| meaning.ids.get(id).copied()).collect(),
                args: call.args.iter().map(here).collect(),
                results: call.results.iter().map(here).collect(),
                sizes: exprs(&call.sizes),
                ..call.clone()
            });
        }
    }
}

/// Sizes of a backward pass in terms of those of the function.
type Sizes = FxHashMap<Symbol, Expr>;

fn in_terms(e: &Expr, sizes: &Sizes) -> Expr {
    e.rewrite(&mut |e| match e.kind() {
        TreeKind::Var(s) => sizes.get(s).cloned().unwrap_or(e),
        _ => e,
    })
}

fn place(view: &View) -> SubTensor {
    SubTensor { tensor: view.tensor.symbol.clone(), at: Vec::new(), dtype: view.tensor.dtype }
}

/// Collects the statements inside a statement, nested ones too, since loops of one iteration are removed. Sequences and
/// declarations count only by their contents: scopes of declarations may be extended.
fn steps(s: &Stmt, out: &mut Vec<StmtId>) {
    if !matches!(s.kind(), StmtKind::Seq(_) | StmtKind::VarDef { .. }) {
        out.push(s.id());
    }
    s.kind().children().into_iter().for_each(|c| steps(c, out));
}
