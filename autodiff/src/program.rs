//! Interface of a gradient: its parameters and results.
//!
//! - Its parameters are those of the program, then (`vjp`) a seed for every result, `y.grad`, and for every `inout`
//!   parameter of floats, which holds the seed before and the gradient after.
//! - Its results are those of the program (`value_and_grad`), then `x.grad` for every requested parameter.
//!
//! All other values of the program are local, and are eliminated if nothing reads them.

use crate::custom_vjp::Calls;
use crate::data::{BackwardInfo, Choice, Decision, Inverted, Plan, RecomputeScope, Residual};
use crate::facts::Facts;
use crate::names::Names;
use crate::precision::AccumulationTypes;
use crate::request::{Kind, Request, inouts};
use crate::reverse::{self, Forward, Passes};
use crate::value_sources::Values;
use crate::{activity, build, invert, name_subexpressions, recompute_policy, residuals};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;
use taffeta_ast::format::{Format, Pattern};
use taffeta_ast::stmt::Role;
use taffeta_ast::{
    DType, Diagnostics, Expr, ExprKind, Func, Literal, Origin, Param, ParamMode, Stmt, StmtId, StmtKind, Symbol, Tensor,
};

/// Returns whether seeds are parameters; otherwise they are 1.
fn takes_seeds(request: &Request<'_>) -> bool {
    matches!(request.kind, Kind::Vjp | Kind::ValueAndVjp)
}

/// Returns whether the results of the program are results of the derivative as well.
fn leaves_results(request: &Request<'_>) -> bool {
    matches!(request.kind, Kind::ValueAndGrad | Kind::ValueAndVjp)
}

/// Returns the tensors of the interface that have a seed.
fn seeded(request: &Request<'_>) -> FxHashSet<Symbol> {
    let results = request.func.results.iter();
    let mut out: FxHashSet<Symbol> =
        results.filter(|t| t.dtype.is_float() && request.is_of(t)).map(|t| t.symbol.clone()).collect();
    if takes_seeds(request) {
        out.extend(inouts(request.func).map(|t| t.symbol.clone()));
    }
    out
}

/// Gradient under one plan.
pub(crate) struct Derived {
    pub func: Func,
    pub info: BackwardInfo,
    /// Residuals of the backward pass.
    pub residuals: Vec<Residual>,
}

/// Returns the requested parameters, and the `inout` parameters with a seed, which the gradient replaces whether it is
/// requested or not.
fn wanted(request: &Request<'_>) -> [FxHashSet<Symbol>; 2] {
    let wrt = request.inputs().iter().map(|t| t.symbol.clone()).collect();
    let given = inouts(request.func).filter(|_| takes_seeds(request)).map(|t| t.symbol.clone()).collect();
    [wrt, given]
}

/// Names subexpressions of the program.
pub(crate) fn named(request: &Request<'_>, calls: &Calls) -> Func {
    let mut nameable = active(request, calls, request.func);
    // Writes of a call with a custom gradient are not differentiated.
    for place in calls.all.iter().flat_map(|c| &c.results) {
        nameable.remove(&place.tensor);
    }
    name_subexpressions::run(request.func, &nameable)
}

/// Returns the tensors that have an adjoint.
fn active(request: &Request<'_>, calls: &Calls, func: &Func) -> FxHashSet<Symbol> {
    let [wrt, given] = wanted(request);
    activity::active(func, calls, &wrt.union(&given).cloned().collect(), &seeded(request))
}

/// Derives the requested gradient from `func`, an equivalent form of the program.
pub(crate) fn run(request: &Request<'_>, calls: &Calls, func: &Func, plan: &Plan) -> Result<Derived, Diagnostics> {
    let facts = Facts::new(func);
    let scopes = scopes(request, calls, &facts, plan);
    let derived = attempt(request, calls, &facts, scopes.clone(), FxHashMap::default());
    // A tensor may be inverted instead of copied, or where no copy is possible. Few programs have a tensor to invert.
    let mut inverted = invert::choose(&facts, &request.tape, &scopes, plan.separate);
    // The backward pass of a call with a custom gradient inverts nothing inside the call.
    inverted.retain(|t, _| !facts.writers(t).any(|s| calls.contain(s.id())));
    if let Ok(derived) = &derived {
        let is_copy = |r: &Residual, t: &Symbol| r.decision == Decision::Copies && r.tensor.symbol == *t;
        inverted.retain(|t, _| derived.residuals.iter().any(|r| is_copy(r, t)));
    }
    if inverted.is_empty() { derived } else { attempt(request, calls, &facts, scopes, inverted).or(derived) }
}

/// Returns the scopes of tensors that are declared in loops.
fn scopes(request: &Request<'_>, calls: &Calls, facts: &Facts<'_>, plan: &Plan) -> FxHashMap<Symbol, Choice> {
    let mut scopes = recompute_policy::choose(facts, request, plan);
    if request.differentiable {
        // The next differentiation would not know a recomputed call, and would differentiate its body: the call runs
        // once, at any cost.
        for (_, choice) in scopes.iter_mut().filter(|(t, _)| calls.is_place(t)) {
            let why = "part of a call with its own gradient, in a gradient that is differentiated again".to_string();
            *choice = Choice { scope: RecomputeScope::Program, number: None, why };
        }
    }
    scopes
}

fn attempt(
    request: &Request<'_>,
    calls: &Calls,
    facts: &Facts<'_>,
    scopes: FxHashMap<Symbol, Choice>,
    inverted: FxHashMap<Symbol, Inverted>,
) -> Result<Derived, Diagnostics> {
    let func = facts.func;
    let origin = &Origin::source(request.span).derive("grad", "interface");
    let [wrt, given] = wanted(request);
    let requested = Requested { request, wrt, given, origin };
    let active = active(request, calls, func);
    let mut made = Interface {
        names: Names::new(func, func.results.iter().filter(|_| leaves_results(request))),
        seed_params: Vec::new(),
        seeds: Vec::new(),
        results: Vec::new(),
        locals: Vec::new(),
        first: Vec::new(),
        zeros: Vec::new(),
        last: Vec::new(),
        rounded: Vec::new(),
    };
    let collected = AccumulationTypes::new(facts, &active);
    let mut adjoints = FxHashMap::default();
    // Seeds of results come before those of `inout` parameters.
    for t in func.results.iter().chain(func.params.iter().map(|p| &p.tensor)) {
        let active = active.contains(&t.symbol);
        let dtype = collected.of(t);
        let Some(a) = made.declare_adjoint(&requested, t, dtype, active) else { continue };
        adjoints.insert(t.symbol.clone(), a);
    }
    let values = Values::new(facts, scopes, inverted);
    let (first, last) = (std::mem::take(&mut made.first), std::mem::take(&mut made.last));
    let differentiable = request.differentiable;
    let from = Forward { facts, calls, active, collected, adjoints, values, first, last, differentiable, origin };
    let Passes { body, mut info, written, values, calls: custom_vjps } = reverse::run(from)?;
    info.zeros.extend(std::mem::take(&mut made.zeros));
    info.rounded = std::mem::take(&mut made.rounded);
    let residuals = residuals::list(facts, &values);
    let func = made.finish(request, body, &written, &mut info.backward, origin);
    Ok(Derived { func: Func { custom_vjps, ..func }, info, residuals })
}

/// Adjoints that a request asks for.
struct Requested<'a> {
    request: &'a Request<'a>,
    /// Parameters whose gradients are results.
    wrt: FxHashSet<Symbol>,
    /// `inout` parameters, whose adjoints are `inout` parameters too.
    given: FxHashSet<Symbol>,
    /// Origin of the statements.
    origin: &'a Origin,
}

/// Adjoints of parameters and results, and the statements that initialise and round them.
struct Interface {
    names: Names,
    /// Parameters of seeds.
    seed_params: Vec<Param>,
    /// Seeds of results, each with its tensor in the backward pass.
    seeds: Vec<(Arc<Tensor>, Arc<Tensor>)>,
    /// Gradients, in the order of the parameters.
    results: Vec<(Symbol, Arc<Tensor>)>,
    /// Adjoints that are invisible outside.
    locals: Vec<Arc<Tensor>>,
    /// Statements before the backward pass: zeros and seeds.
    first: Vec<Stmt>,
    /// Adjoints that `first` sets to 0, each with the statement.
    zeros: Vec<(Symbol, StmtId)>,
    /// Statements after the backward pass: roundings of adjoints.
    last: Vec<Stmt>,
    /// Accumulators, the tensors that they are rounded into, and the statements that round.
    rounded: Vec<(Symbol, Arc<Tensor>, StmtId)>,
}

impl Interface {
    /// Declares the adjoint of a parameter or a result, with its own accumulation type; `None` if it is inactive.
    fn declare_adjoint(
        &mut self,
        requested: &Requested<'_>,
        t: &Arc<Tensor>,
        dtype: DType,
        active: bool,
    ) -> Option<Arc<Tensor>> {
        let Requested { request, wrt, given, origin } = requested;
        let is_result = request.func.results.iter().any(|r| r.symbol == t.symbol);
        let local = |role| Arc::new(Tensor { dtype, ..(*build::adjoint(t, role)).clone() });
        if is_result && (request.is_of(t) || !t.dtype.is_float()) {
            if !t.dtype.is_float() {
                return None;
            }
            if takes_seeds(request) {
                let a = with_own_pattern(request.func, self.names.adjoint(t, Role::Input));
                self.seed_params.push(Param { tensor: a.clone(), mode: ParamMode::In });
                if !active {
                    return None;
                }
                let here = if a.dtype == dtype { a.clone() } else { build::sum(&a, dtype, Role::Adjoint) };
                self.seeds.push((a, here.clone()));
                return Some(here);
            }
            let a = local(Role::Local);
            self.locals.push(a.clone());
            self.first.push(build::fill(&a, Literal::Float(1.0), origin));
            return active.then_some(a);
        }
        if given.contains(&t.symbol) {
            let a = self.names.adjoint(t, Role::InOut);
            self.seed_params.push(Param { tensor: a.clone(), mode: ParamMode::InOut });
            if !active || a.dtype == dtype {
                return active.then_some(a);
            }
            let here = build::sum(&a, dtype, Role::Adjoint);
            self.first.push(build::copy(&a, &here, origin));
            self.round(&here, &a, origin);
            return Some(here);
        }
        if wrt.contains(&t.symbol) {
            let a = self.names.adjoint(t, Role::Result);
            self.results.push((t.symbol.clone(), a.clone()));
            if !active || a.dtype == dtype {
                self.zero(&a, origin);
                return active.then_some(a);
            }
            let here = build::sum(&a, dtype, Role::Adjoint);
            self.zero(&here, origin);
            self.round(&here, &a, origin);
            return Some(here);
        }
        if !active {
            return None;
        }
        let a = local(Role::Adjoint);
        self.zero(&a, origin);
        self.locals.push(a.clone());
        Some(a)
    }

    /// Declares the accumulator that is rounded into `a` after the backward pass.
    fn round(&mut self, here: &Arc<Tensor>, a: &Arc<Tensor>, origin: &Origin) {
        let rounded = build::copy(here, a, origin);
        self.rounded.push((here.symbol.clone(), a.clone(), rounded.id()));
        self.last.push(rounded);
        self.locals.push(here.clone());
    }

    fn zero(&mut self, a: &Tensor, origin: &Origin) {
        let zeros = build::fill(a, Literal::Float(0.0), origin);
        self.zeros.push((a.symbol.clone(), zeros.id()));
        self.first.push(zeros);
    }

    fn finish(
        mut self,
        request: &Request<'_>,
        body: Stmt,
        written: &FxHashSet<Symbol>,
        backward: &mut FxHashSet<StmtId>,
        origin: &Origin,
    ) -> Func {
        let func = request.func;
        // A seed that the backward pass changes is copied first.
        let mut body = body;
        for (a, here) in &self.seeds {
            let p = self.seed_params.iter_mut().find(|p| p.tensor.symbol == a.symbol).expect("it is a parameter");
            if !written.contains(&here.symbol) {
                body = loaded_from(&body, here, a);
                continue;
            }
            let (here, given) = match a.symbol == here.symbol {
                true => (build::local(a), Arc::new(Tensor { symbol: a.symbol.fresh(), ..(**a).clone() })),
                false => (here.clone(), a.clone()),
            };
            let copy = build::copy(&given, &here, origin);
            backward.insert(copy.id());
            let copied = Stmt::seq([copy, body], origin.clone());
            body = Stmt::new(StmtKind::VarDef { tensor: here, body: copied }, origin.clone());
            p.tensor = given;
        }
        body = build::declared(self.locals, body, origin);
        let values = leaves_results(request);
        if !values {
            body = build::declared(func.results.iter().map(build::local).collect(), body, origin);
        }
        let mut results: Vec<Arc<Tensor>> = if values { func.results.clone() } else { Vec::new() };
        let asked = request.inputs();
        results.extend(
            asked.iter().filter_map(|t| self.results.iter().find(|(s, _)| *s == t.symbol)).map(|(_, a)| a.clone()),
        );
        let mut params = func.params.clone();
        params.extend(self.seed_params);
        Func { name: request.name.clone(), params, results, body, ..func.clone() }
    }
}

/// Gives the seed of a result a pattern of its own, unless the result is stored over that of a parameter: the result is
/// not stored where its seed is, and elements of the seed that the result does not store meet fills, and vanish.
fn with_own_pattern(func: &Func, seed: Arc<Tensor>) -> Arc<Tensor> {
    let pattern = seed.format.pattern;
    if pattern.is_none() || func.params.iter().any(|p| p.tensor.format.pattern == pattern) {
        return seed;
    }
    let format = Format { pattern: Some(Pattern::fresh()), ..seed.format.clone() };
    Arc::new(Tensor { format, ..(*seed).clone() })
}

/// Replaces loads from `here` by loads from `from`.
fn loaded_from(s: &Stmt, here: &Tensor, from: &Tensor) -> Stmt {
    if here.symbol == from.symbol {
        return s.clone();
    }
    let load = |e: Expr| match e.kind() {
        ExprKind::Load(t, at) if *t == here.symbol => Expr::load(&from.symbol, at.clone(), from.dtype).cast(here.dtype),
        _ => e,
    };
    s.map(&mut |s| loaded_from(s, here, from), &mut |e| e.rewrite(&mut |e| load(e)))
}
