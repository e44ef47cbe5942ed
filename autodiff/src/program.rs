//! The interface of a gradient: what it takes and what it gives.
//!
//! - Its parameters are those of the program, then (`vjp`) a seed for every result, `y.grad`, and for every `inout`
//!   parameter of floats, which holds the seed before and the answer after.
//! - Its results are those of the program (`value_and_grad`), then `x.grad` for every parameter that is asked for.
//!
//! Whatever else the program computes is local, and goes away where nobody reads it.

use crate::facts::Facts;
use crate::held::{self, Decision, Held};
use crate::homes::Choice;
use crate::invert::Undone;
use crate::names::Names;
use crate::own::{self, Calls};
use crate::plan::Plan;
use crate::reverse::{Reverse, adjoint};
use crate::tidy::Made;
use crate::values::{Home, Values};
use crate::{Kind, Request, activity, build, homes, invert, named};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;
use taffeta_ast::stmt::Role;
use taffeta_ast::{Diagnostics, Func, Literal, Origin, Param, ParamMode, Stmt, StmtId, StmtKind, Symbol, Tensor};

/// Whether seeds are parameters; they are 1 if not.
fn takes_seeds(request: &Request<'_>) -> bool {
    matches!(request.kind, Kind::Vjp | Kind::ValueAndVjp)
}

/// Whether the results of the program are results of the derivative as well.
fn leaves_results(request: &Request<'_>) -> bool {
    matches!(request.kind, Kind::ValueAndGrad | Kind::ValueAndVjp)
}

/// Which tensors of the interface have a seed.
fn seeded(request: &Request<'_>) -> FxHashSet<Symbol> {
    let results = request.func.results.iter();
    let mut out: FxHashSet<Symbol> =
        results.filter(|t| t.dtype.is_float() && request.is_of(t)).map(|t| t.symbol.clone()).collect();
    if takes_seeds(request) {
        out.extend(inouts(request.func).map(|t| t.symbol.clone()));
    }
    out
}

/// The `inout` parameters that carry derivatives.
pub(crate) fn inouts(func: &Func) -> impl Iterator<Item = &Arc<Tensor>> {
    func.params.iter().filter(|p| p.mode == ParamMode::InOut && p.tensor.dtype.is_float()).map(|p| &p.tensor)
}

/// The parameters with respect to which it is differentiated, in the order of the request.
pub(crate) fn inputs<'r>(request: &'r Request<'_>) -> Vec<&'r Arc<Tensor>> {
    let of = |name: &String| request.func.params.iter().map(|p| &p.tensor).find(|t| t.symbol.name() == name);
    request.wrt.iter().filter_map(of).collect()
}

/// The gradient, as one plan of what is kept has it.
pub(crate) struct Derived {
    pub func: Func,
    pub made: Made,
    /// What is kept for the backward pass.
    pub held: Vec<Held>,
}

/// What it is differentiated for: parameters that are asked for, and those with a seed whose answer replaces it.
fn wanted(request: &Request<'_>) -> [FxHashSet<Symbol>; 2] {
    let wrt = inputs(request).iter().map(|t| t.symbol.clone()).collect();
    // What is in an `inout` parameter with a seed has a derivative whether it is asked for or not: the answer replaces
    // the seed.
    let given = inouts(request.func).filter(|_| takes_seeds(request)).map(|t| t.symbol.clone()).collect();
    [wrt, given]
}

/// The program with names for parts of its expressions.
pub(crate) fn named(request: &Request<'_>) -> Func {
    let [wrt, given] = wanted(request);
    let from = wrt.union(&given).cloned().collect();
    let mut nameable = activity::active(request.func, &from, &seeded(request));
    // What a call with its own gradient writes is not differentiated.
    for place in request.func.own_gradients.iter().flat_map(|c| &c.results) {
        nameable.remove(&place.tensor);
    }
    named::run(request.func, &nameable)
}

/// The gradient of the program that is asked for, in the form of `func`, which computes the same.
pub(crate) fn run(request: &Request<'_>, func: &Func, plan: &Plan) -> Result<Derived, Diagnostics> {
    let facts = Facts::new(func);
    let homes = homes(request, &facts, plan);
    let derived = attempt(request, &facts, homes.clone(), FxHashMap::default());
    // What would be copied, or could not be, may be undone instead. Few programs have such a tensor.
    let mut undone = invert::choose(&facts, &request.tape, &homes, plan.apart);
    // The backward pass of a call with its own gradient undoes nothing that is inside of it.
    let inside = own::bodies(&func.own_gradients);
    undone.retain(|t, _| !facts.writers(t).any(|s| inside.contains(&s.id())));
    if let Ok(derived) = &derived {
        let copied = |t: &Symbol| derived.held.iter().any(|h| h.decision == Decision::Copies && h.tensor.symbol == *t);
        undone.retain(|t, _| copied(t));
    }
    if undone.is_empty() { derived } else { attempt(request, &facts, homes, undone).or(derived) }
}

/// Where tensors that are declared in loops are at home.
fn homes(request: &Request<'_>, facts: &Facts<'_>, plan: &Plan) -> FxHashMap<Symbol, Choice> {
    let mut homes = homes::choose(facts, &request.tape, plan);
    if request.again {
        // A call that runs again would be one that nobody knows of, and its body would be differentiated: it runs once,
        // whatever that takes.
        for (_, choice) in homes.iter_mut().filter(|(t, _)| own::is_place(&facts.func.own_gradients, t)) {
            let why = "of a call that has its own gradient, in a gradient that is differentiated again".to_string();
            *choice = Choice { home: Home::Program, why };
        }
    }
    homes
}

fn attempt(
    request: &Request<'_>,
    facts: &Facts<'_>,
    homes: FxHashMap<Symbol, Choice>,
    undone: FxHashMap<Symbol, Undone>,
) -> Result<Derived, Diagnostics> {
    let func = facts.func;
    let origin = Origin::source(request.span).derive("grad", "interface");
    let [wrt, given] = wanted(request);
    let seeds = seeded(request);
    let from = wrt.union(&given).cloned().collect();
    let active = activity::active(func, &from, &seeds);
    let mut made = Interface {
        names: Names::new(func, func.results.iter().filter(|_| leaves_results(request))),
        seed_params: Vec::new(),
        results: Vec::new(),
        locals: Vec::new(),
        first: Vec::new(),
        zeros: Vec::new(),
    };
    let mut adjoints = FxHashMap::default();
    // Seeds of results come before those of `inout` parameters.
    for t in func.results.iter().chain(func.params.iter().map(|p| &p.tensor)) {
        let Some(a) = made.interface(request, t, &wrt, &given, active.contains(&t.symbol), &origin) else { continue };
        adjoints.insert(t.symbol.clone(), a);
    }
    let initial = func.params.iter().map(|p| p.tensor.symbol.clone()).collect();
    let mut reverse = Reverse {
        facts,
        active,
        adjoints,
        initial,
        values: Values::new(facts, homes, undone),
        iters: FxHashMap::default(),
        replayed: None,
        written: FxHashSet::default(),
        marks: Vec::new(),
        calls: Calls::of(func),
        made: Made::default(),
        problems: Vec::new(),
    };
    let back = reverse.stmt(&func.body);
    let first = std::mem::take(&mut made.first);
    let back = Stmt::seq(first.into_iter().chain(back), origin.clone());
    let back = invert::begin(facts, &reverse.values.undone, back, &origin);
    reverse.made.backward = match back.kind() {
        StmtKind::Seq(all) => all.iter().map(Stmt::id).collect(),
        _ => [back.id()].into_iter().collect(),
    };
    let body = reverse.at_home(Home::Program, &func.body, back);
    if request.again {
        reverse.calls_again();
    }
    if !reverse.problems.is_empty() {
        return Err(Diagnostics(reverse.problems));
    }
    reverse.made.zeros.extend(std::mem::take(&mut made.zeros));
    let held = held::list(facts, &reverse.values);
    let own_gradients = if request.again { std::mem::take(&mut reverse.calls.made) } else { Vec::new() };
    let func = made.finish(request, body, &reverse.written, &mut reverse.made.backward, &origin);
    let func = Func { own_gradients, ..func };
    Ok(Derived { func, made: reverse.made, held })
}

struct Interface {
    names: Names,
    /// Seeds, with the results that they are of.
    seed_params: Vec<Param>,
    /// Gradients, in the order of the parameters.
    results: Vec<(Symbol, Arc<Tensor>)>,
    /// Adjoints that nobody outside sees.
    locals: Vec<Arc<Tensor>>,
    /// What happens before the backward pass: zeros, and seeds.
    first: Vec<Stmt>,
    /// The zeros among it.
    zeros: Vec<(Symbol, StmtId)>,
}

impl Interface {
    /// The adjoint of a parameter or a result.
    fn interface(
        &mut self,
        request: &Request<'_>,
        t: &Arc<Tensor>,
        wrt: &FxHashSet<Symbol>,
        given: &FxHashSet<Symbol>,
        active: bool,
        origin: &Origin,
    ) -> Option<Arc<Tensor>> {
        let is_result = request.func.results.iter().any(|r| r.symbol == t.symbol);
        if is_result && (request.is_of(t) || !t.dtype.is_float()) {
            if !t.dtype.is_float() {
                return None;
            }
            if takes_seeds(request) {
                let a = self.names.derived(t, "grad", Role::Input);
                self.seed_params.push(Param { tensor: a.clone(), mode: ParamMode::In });
                return active.then_some(a);
            }
            let a = adjoint(t, Role::Local);
            self.locals.push(a.clone());
            self.first.push(build::fill(&a, Literal::Float(1.0), origin));
            return active.then_some(a);
        }
        if given.contains(&t.symbol) {
            let a = self.names.derived(t, "grad", Role::InOut);
            self.seed_params.push(Param { tensor: a.clone(), mode: ParamMode::InOut });
            if !active {
                return None;
            }
            return Some(a);
        }
        if wrt.contains(&t.symbol) {
            let a = self.names.derived(t, "grad", Role::Result);
            self.zero(&a, origin);
            self.results.push((t.symbol.clone(), a.clone()));
            return active.then_some(a);
        }
        if !active {
            return None;
        }
        let a = adjoint(t, Role::Adjoint);
        self.zero(&a, origin);
        self.locals.push(a.clone());
        Some(a)
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
        for p in &mut self.seed_params {
            if p.mode == ParamMode::In && written.contains(&p.tensor.symbol) {
                let here = local(&p.tensor);
                let given = Arc::new(Tensor { symbol: p.tensor.symbol.fresh(), ..(*p.tensor).clone() });
                let copy = build::copy(&given, &here, origin);
                backward.insert(copy.id());
                let copied = Stmt::seq([copy, body], origin.clone());
                body = Stmt::new(StmtKind::VarDef { tensor: here, body: copied }, origin.clone());
                p.tensor = given;
            }
        }
        body = build::declared(self.locals, body, origin);
        let values = leaves_results(request);
        if !values {
            body = build::declared(func.results.iter().map(local).collect(), body, origin);
        }
        let mut results: Vec<Arc<Tensor>> = if values { func.results.clone() } else { Vec::new() };
        let asked = inputs(request);
        results.extend(
            asked.iter().filter_map(|t| self.results.iter().find(|(s, _)| *s == t.symbol)).map(|(_, a)| a.clone()),
        );
        let mut params = func.params.clone();
        params.extend(self.seed_params);
        Func { name: request.name.clone(), params, results, body, ..func.clone() }
    }
}

/// The same tensor as a local one.
pub(crate) fn local(t: &Arc<Tensor>) -> Arc<Tensor> {
    Arc::new(Tensor { role: Role::Local, ..(**t).clone() })
}
