//! Gradients: the front end evaluates `grad(f, …)` to a request, the [`Hooks`] differentiate, and a call inlines the
//! result.

use super::builtin::Builtin;
use super::call::Arg;
use super::entry::{self, Statics};
use super::func::{FuncRef, is_static_annotation};
use super::schedule::ScheduleRequest;
use super::value::Value;
use super::{Elab, R, StaticValue};
use crate::program::{ModuleId, Program};
use crate::syntax::{Expr, ExprKind, Param as Parameter};
use std::collections::BTreeMap;
use std::sync::Arc;
use taffeta_ast::gradient::{GradientKind, Tape};
use taffeta_ast::{self as ast, Diagnostic, Diagnostics, Func, Param, Span};

/// Request for a gradient.
#[derive(Clone, Debug)]
pub struct GradientRequest {
    /// Kind of gradient.
    pub kind: GradientKind,
    /// Name of the new function.
    pub name: String,
    /// Function to differentiate, elaborated.
    pub func: Func,
    /// Parameters of `func` with respect to which it is differentiated, in order.
    pub wrt: Vec<String>,
    /// Results to differentiate; all of them if empty.
    pub out: Vec<String>,
    /// Choice of the values computed in loops that are kept on a tape for the backward pass.
    pub tape: Tape,
    /// Memory limit of the gradient's local tensors, as written (`"512MB"`).
    pub memory: Option<String>,
    /// Known sizes of the function, by name.
    pub sizes: BTreeMap<String, i64>,
    /// Whether the gradient is going to be differentiated itself.
    pub again: bool,
    /// Place of the request.
    pub span: Span,
}

/// Services of the rest of the compiler that the front end calls.
pub trait Hooks: Sync {
    /// Differentiates a program.
    fn gradient(&self, request: GradientRequest) -> Result<Func, Diagnostics>;

    /// Returns the sizes of the entry that are known while it is compiled, by name.
    fn sizes(&self) -> BTreeMap<String, i64> {
        BTreeMap::new()
    }

    /// Checks the values of a well-formed program, such as elements that are never written.
    fn examine(&self, _: &Func) -> Vec<Diagnostic> {
        Vec::new()
    }

    /// Applies a schedule to a program.
    fn schedule(&self, request: ScheduleRequest<'_>) -> Result<Func, Diagnostics>;
}

/// Hooks that report gradients and schedules as not supported yet.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoHooks;

impl Hooks for NoHooks {
    fn gradient(&self, request: GradientRequest) -> Result<Func, Diagnostics> {
        Err(Diagnostic::new("unsupported", "gradients are not supported yet").at(request.span).into())
    }

    fn schedule(&self, request: ScheduleRequest<'_>) -> Result<Func, Diagnostics> {
        Err(Diagnostic::new("unsupported", "schedules are not supported yet")
            .at(request.span)
            .help("run it without: `--schedule none`")
            .into())
    }
}

/// Maximum order of derivatives: each order is a program several times as large as the previous one.
const MAX_ORDER: usize = 4;

/// Function or gradient that is differentiated.
#[derive(Clone, Debug)]
enum Differentiated {
    Function(FuncRef),
    Gradient(Arc<Gradient>),
}

/// Value of `grad(f, wrt=[…])`.
#[derive(Clone, Debug)]
pub(crate) struct Gradient {
    kind: GradientKind,
    target: Differentiated,
    wrt: Option<Vec<String>>,
    out: Vec<String>,
    tape: Tape,
    memory: Option<String>,
    span: Span,
}

impl Differentiated {
    /// Returns the order of the gradient of this target: the number of times that it differentiates the innermost
    /// function.
    fn order(&self) -> usize {
        match self {
            Differentiated::Function(_) => 1,
            Differentiated::Gradient(g) => 1 + g.target.order(),
        }
    }

    /// Returns the function under all gradients.
    fn innermost(&self) -> FuncRef {
        match self {
            Differentiated::Function(f) => *f,
            Differentiated::Gradient(g) => g.target.innermost(),
        }
    }
}

fn kind_of(b: Builtin) -> Option<GradientKind> {
    Some(match b {
        Builtin::Grad => GradientKind::Grad,
        Builtin::ValueAndGrad => GradientKind::ValueAndGrad,
        Builtin::Vjp => GradientKind::Vjp,
        Builtin::Jvp => GradientKind::Jvp,
        Builtin::Jacobian => GradientKind::Jacobian,
        _ => return None,
    })
}

/// Returns the function that an expression (`grad(loss, wrt=["W"])`) is the gradient of.
pub fn gradient_target(e: &Expr) -> Option<String> {
    let ExprKind::Call { callee, args } = &e.kind else { return None };
    let ExprKind::Name(n) = &callee.kind else { return None };
    kind_of(Builtin::find(n)?)?;
    match &args.first()?.value.kind {
        ExprKind::Name(target) => Some(target.clone()),
        // The gradient of a gradient is of the inner one's function.
        _ => gradient_target(&args.first()?.value),
    }
}

/// Returns whether a parameter is static.
fn is_static(p: &Parameter) -> bool {
    p.annotation.as_ref().is_some_and(is_static_annotation)
}

impl Elab<'_> {
    /// Evaluates `grad(f, wrt=["W"])`.
    pub(crate) fn gradient_call(&mut self, b: Builtin, args: Vec<Arg>, span: Span) -> R<Value> {
        let Some(kind) = kind_of(b) else { unreachable!("only gradients come here") };
        let name = b.name();
        let takes = match kind {
            GradientKind::Jacobian => format!("`{name}` takes a function, `wrt=[…]` and `out=`"),
            _ => format!("`{name}` takes a function, `wrt=[…]`, `out=[…]`, `tape=` and `memory=\"512MB\"`"),
        };
        let mut target = None;
        let (mut wrt, mut out, mut tape, mut memory) = (None, Vec::new(), Tape::Auto, None);
        for (k, (key, v, at)) in args.into_iter().enumerate() {
            match (key.as_deref(), k, v) {
                (None, 0, Value::Function(f)) => target = Some(Differentiated::Function(f)),
                (None, 0, Value::Gradient(g)) => target = Some(Differentiated::Gradient(g)),
                (None, 1, v) | (Some("wrt"), _, v) => wrt = Some(self.names_argument("wrt", &v, at)?),
                (Some("out"), _, v) => out = self.names_argument("out", &v, at)?,
                (Some("tape" | "memory"), ..) if kind == GradientKind::Jacobian => {
                    return self.error_help("call::arguments", at, takes, "leave it out: forward mode has no tape");
                }
                (Some("tape"), _, Value::Str(s)) if &*s == "all" => tape = Tape::All,
                (Some("tape"), _, Value::Str(s)) if &*s == "none" => tape = Tape::None,
                (Some("tape"), _, Value::Str(s)) if &*s == "auto" => tape = Tape::Auto,
                (Some("tape"), _, v) => tape = Tape::Named(self.names_argument("tape", &v, at)?),
                (Some("memory"), _, Value::Str(s)) => memory = Some(s.to_string()),
                (None, 0, v) => {
                    let found = v.describe();
                    return self.error("grad::target", at, format!("`{name}` takes a function, found {found}"));
                }
                (Some(key), ..) => {
                    let known = match kind {
                        GradientKind::Jacobian => &["wrt", "out"][..],
                        _ => &["wrt", "out", "tape", "memory"],
                    };
                    let help = match super::nearest(key, known.iter().copied()) {
                        Some(near) if near != key => format!("did you mean `{near}`?"),
                        _ => takes,
                    };
                    return self.error_help("call::arguments", at, format!("`{name}` has no parameter `{key}`"), help);
                }
                _ => return self.error("call::arguments", at, takes),
            }
        }
        let Some(target) = target else {
            return self.error("call::arguments", span, takes);
        };
        // A gradient has seeds as parameters too, whose names are known once it is built.
        let innermost = target.innermost();
        let f = self.function(innermost);
        let params: Vec<String> = f.params.iter().map(|p| p.name.text.clone()).collect();
        let known = matches!(target, Differentiated::Function(_));
        if let Some(odd) = wrt.iter().flatten().find(|n| known && !params.contains(n)) {
            let d = Diagnostic::new("grad::wrt", format!("`{}` has no parameter `{odd}`", f.name.text)).at(span);
            let d = match super::nearest(odd, params.iter()) {
                Some(near) => d.help(format!("did you mean `{near}`?")),
                None => d.help(format!("its parameters are {}", params.join(", "))),
            };
            return Err(self.report(d));
        }
        if let Some(p) = wrt.iter().flatten().find_map(|n| f.params.iter().find(|p| is_static(p) && p.name.text == *n))
        {
            let message =
                format!("cannot differentiate with respect to `{}` of `{}`: it is static", p.name.text, f.name.text);
            return self.error_help("grad::wrt", span, message, "differentiate with respect to floating-point tensors");
        }
        Ok(Value::Gradient(Arc::new(Gradient { kind, target, wrt, out, tape, memory, span })))
    }

    fn names_argument(&mut self, what: &str, v: &Value, span: Span) -> R<Vec<String>> {
        let items = match v {
            Value::Str(_) => vec![v.clone()],
            v => v.items().map(<[Value]>::to_vec).unwrap_or_default(),
        };
        let names: Option<Vec<String>> = items
            .iter()
            .map(|v| match v {
                Value::Str(s) => Some(s.to_string()),
                _ => None,
            })
            .collect();
        match names {
            Some(names) if !names.is_empty() => Ok(names),
            _ => {
                let (code, of, example) = match what {
                    "out" => ("grad::out", "names of results", "out=[\"loss\"]"),
                    "tape" => ("grad::tape", "names of tensors, or \"all\", \"none\" or \"auto\"", "tape=[\"hidden\"]"),
                    _ => ("grad::wrt", "names of parameters", "wrt=[\"W\", \"b\"]"),
                };
                self.error_help(code, span, format!("`{what}` takes a list of {of}"), format!("write `{example}`"))
            }
        }
    }

    /// Calls `grad(f, wrt)(x, y)`: differentiates `f`, and inlines the result.
    pub(crate) fn call_gradient(&mut self, g: &Gradient, args: Vec<Arg>, span: Span) -> R<Value> {
        let of = g.target.innermost();
        let name = self.function(of).name.text.clone();
        if self.differentiating.contains(&of) {
            let message = format!("the gradient of `{name}` depends on itself");
            let help = format!("differentiate a function that does not call the gradient of `{name}`");
            return self.error_help("grad::recursion", span, message, help);
        }
        let (statics, args) = self.static_arguments(g, args, span)?;
        // Repeated walks of the caller request the same gradient again.
        let asked = format!("{g:?} {statics:?} {:?} {:?}", self.differentiated, self.within);
        if let Some(known) = self.gradients.get(&asked).filter(|_| g.memory.is_none()).cloned() {
            return self.splice(&known, args, span);
        }
        let underway = GradientContext {
            again: self.differentiated,
            within: &self.within,
            differentiating: &self.differentiating,
        };
        let request = request(self.program, g, name, &statics, self.hooks, underway);
        let sized = request.map(|r| {
            // Sizes are needed for a memory limit alone.
            let sizes = if r.memory.is_some() { self.known_sizes(&r.func, &args) } else { BTreeMap::new() };
            GradientRequest { sizes, ..r }
        });
        match sized.and_then(|r| self.hooks.gradient(r)) {
            Err(found) => {
                let mut stop = super::Stop::Reported;
                for d in found.0 {
                    stop = self.report(d);
                }
                Err(stop)
            }
            Ok(func) => {
                let func = Arc::new(func);
                self.gradients.insert(asked, func.clone());
                self.splice(&func, args, span)
            }
        }
    }

    /// Splits the arguments into values of static parameters of the differentiated function, and the others. Seeds and
    /// tangents come after all parameters.
    fn static_arguments(&mut self, g: &Gradient, args: Vec<Arg>, span: Span) -> R<(Statics, Vec<Arg>)> {
        let f = self.function(g.target.innermost());
        let name = &f.name.text;
        let mut statics = Statics::new();
        let mut others = Vec::with_capacity(args.len());
        for (k, (key, v, at)) in args.into_iter().enumerate() {
            let param = match &key {
                None => f.params.get(k),
                Some(key) => f.params.iter().find(|p| p.name.text == *key),
            };
            let Some(param) = param.filter(|p| is_static(p)) else {
                others.push((key, v, at));
                continue;
            };
            let param = &param.name.text;
            if !v.is_static() {
                let found = v.describe();
                let help = match g.kind {
                    GradientKind::Vjp | GradientKind::Jvp if v.is_tensor() => {
                        format!("pass a value for `{param}`; seeds and tangents come after all parameters of `{name}`")
                    }
                    _ => "static values are known when compiling; sizes and values of tensors are not".to_string(),
                };
                let message = format!("expected a static value for `{param}` of `{name}`, found {found}");
                return self.error_help("static::argument", at, message, help);
            }
            if statics.insert(param.clone(), v).is_some() {
                return self.error("call::arguments", at, format!("`{param}` is given twice to `{name}`"));
            }
        }
        let missing = |p: &&Parameter| is_static(p) && p.default.is_none() && !statics.contains_key(&p.name.text);
        if let Some(p) = f.params.iter().find(missing) {
            let message = format!("`{name}` needs an argument for `{}`", p.name.text);
            return self.error("call::arguments", span, message);
        }
        Ok((statics, others))
    }

    /// Returns the sizes of a function that its arguments make known while compiling.
    fn known_sizes(&self, func: &Func, args: &[Arg]) -> BTreeMap<String, i64> {
        let entry = self.hooks.sizes();
        let number = |e: &ast::Expr| {
            let constant = e.rewrite(&mut |e| match e.kind() {
                ast::ExprKind::Var(s) => entry.get(s.name()).map_or(e, |v| ast::Expr::int(*v)),
                _ => e,
            });
            ast::poly::tidy(&constant).as_int()
        };
        let mut out = BTreeMap::new();
        for (k, (key, v, _)) in args.iter().enumerate() {
            let named = |p: &&Param| key.as_deref() == Some(p.tensor.symbol.name());
            let by_name = func.params.iter().find(named);
            let Some(p) = by_name.or_else(|| func.params.get(k).filter(|_| key.is_none())) else { continue };
            for (size, found) in p.tensor.shape.iter().zip(v.shape().unwrap_or_default()) {
                if let (ast::ExprKind::Var(s), Some(n)) = (size.kind(), number(&found)) {
                    out.insert(s.name().to_string(), n);
                }
            }
        }
        out
    }
}

/// Context of a request: the gradients and custom VJPs whose computation it is part of.
#[derive(Clone, Copy)]
struct GradientContext<'a> {
    /// Whether the result is going to be differentiated itself.
    again: bool,
    /// Functions whose custom VJPs the request is part of.
    within: &'a [FuncRef],
    /// Functions whose gradients the request is part of.
    differentiating: &'a [FuncRef],
}

/// Builds the request to the hooks for a gradient.
fn request(
    program: &Program,
    g: &Gradient,
    name: String,
    statics: &Statics,
    hooks: &dyn Hooks,
    underway: GradientContext<'_>,
) -> Result<GradientRequest, Diagnostics> {
    let order = g.target.order();
    if order > MAX_ORDER {
        let message = format!("derivatives of order {order} are not supported; the highest order is {MAX_ORDER}");
        let help = "each order makes the program several times larger";
        return Err(Diagnostic::new("grad::order", message).at(g.span).help(help).into());
    }
    let again = underway.again;
    let func = match &g.target {
        Differentiated::Function(f) => {
            let differentiating: Vec<FuncRef> = underway.differentiating.iter().copied().chain([*f]).collect();
            let within = Some(underway.within.to_vec());
            entry::elaborate_function(program, *f, statics, hooks, within, &differentiating)?
        }
        Differentiated::Gradient(inner) => {
            let underway = GradientContext { again: true, ..underway };
            hooks.gradient(request(program, inner, name.clone(), statics, hooks, underway)?)?
        }
    };
    let floats = || {
        func.params
            .iter()
            .filter(|p| p.tensor.dtype.is_float())
            .map(|p| p.tensor.symbol.name().to_string())
            .collect::<Vec<_>>()
    };
    let wrt = g.wrt.clone().unwrap_or_else(floats);
    let (out, tape, memory) = (g.out.clone(), g.tape.clone(), g.memory.clone());
    let sizes = hooks.sizes();
    Ok(GradientRequest { kind: g.kind, name, func, wrt, out, tape, memory, sizes, again, span: g.span })
}

/// Elaborates a gradient at the top level of the main file (`dloss = grad(loss, …)`).
pub(crate) fn elaborate(
    program: &Program,
    name: &str,
    statics: &BTreeMap<String, StaticValue>,
    hooks: &dyn Hooks,
    again: bool,
) -> Result<Func, Diagnostics> {
    let mut e = Elab::new(program, hooks);
    match e.global(ModuleId(0), name) {
        Ok(Some(Value::Gradient(g))) => {
            let underway = GradientContext { again, within: &[], differentiating: &[] };
            hooks.gradient(request(program, &g, name.to_string(), &entry::values(statics), hooks, underway)?)
        }
        Ok(_) => Err(Diagnostic::new("entry::unknown", format!("`{name}` is not a function")).into()),
        Err(_) => Err(Diagnostics(e.diagnostics)),
    }
}

/// Returns the function whose parameters an entry has: the entry itself, or the function that it is the gradient of.
pub(crate) fn entry_function(e: &mut Elab<'_>, name: &str) -> Option<FuncRef> {
    match e.global(ModuleId(0), name) {
        Ok(Some(Value::Function(f))) => Some(f),
        Ok(Some(Value::Gradient(g))) => Some(g.target.innermost()),
        _ => None,
    }
}
