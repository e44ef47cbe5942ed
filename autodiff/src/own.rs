//! Calls of functions whose backward pass the program gives itself (`@gradient(f)`).
//!
//! To everything else such a call is one step: its arguments are copies that nothing writes again, its results are
//! written by it alone ([`OwnGradient`]). Its backward pass is the user's, with the values of arguments and results
//! from where `values` has them:
//!
//! ```text
//! x.own = backward(x, y, y.grad)
//! x.grad += x.own
//! ```

use crate::reverse::Reverse;
use crate::values::Home;
use crate::{Request, build};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;
use taffeta_analysis::pass::copy::Copier;
use taffeta_ast::func::{OwnGradient, SubTensor, Takes};
use taffeta_ast::stmt::Role;
use taffeta_ast::{
    Access, Diagnostic, Expr, ExprKind, Func, Literal, ReduceOp, Stmt, StmtId, StmtKind, Symbol, Tensor,
};

/// The calls of a program, by the statements that they are made of.
#[derive(Default)]
pub(crate) struct Calls {
    pub all: Vec<OwnGradient>,
    by_stmt: FxHashMap<StmtId, usize>,
    /// Those whose backward pass has been made.
    done: FxHashSet<usize>,
    /// Calls in the gradient: those in its forward pass, and those that backward passes make.
    pub made: Vec<OwnGradient>,
}

impl Calls {
    pub fn of(func: &Func) -> Calls {
        let all = func.own_gradients.clone();
        let by_stmt = all.iter().enumerate().flat_map(|(k, c)| c.body.iter().map(move |id| (*id, k))).collect();
        Calls { all, by_stmt, ..Calls::default() }
    }

    /// The call that a statement of a call's body belongs to.
    pub fn at(&self, stmt: StmtId) -> Option<usize> {
        self.by_stmt.get(&stmt).copied()
    }
}

/// Calls `f` on every statement that is in no call's body.
pub(crate) fn walk_outside(s: &Stmt, calls: &FxHashSet<StmtId>, f: &mut dyn FnMut(&Stmt)) {
    if calls.contains(&s.id()) {
        return;
    }
    f(s);
    for c in s.kind().children() {
        walk_outside(c, calls, f);
    }
}

/// The statements that calls are made of.
pub(crate) fn bodies(calls: &[OwnGradient]) -> FxHashSet<StmtId> {
    calls.iter().flat_map(|c| c.body.iter().copied()).collect()
}

/// Whether a tensor is an argument or a result of a call.
pub(crate) fn is_place(calls: &[OwnGradient], tensor: &Symbol) -> bool {
    calls.iter().flat_map(|c| c.args.iter().chain(&c.results)).any(|p| p.tensor == *tensor)
}

/// Places that carry derivatives.
pub(crate) fn floats(places: &[SubTensor]) -> impl Iterator<Item = &SubTensor> {
    places.iter().filter(|p| p.dtype.is_float())
}

/// The program with the calls that are still in it. What was taken out with all its results is nothing to
/// differentiate.
///
/// # Errors
///
/// A step in between has changed a call, so that it is not known what its gradient is of.
pub(crate) fn checked(request: &Request<'_>) -> Result<Func, Diagnostic> {
    let func = request.func;
    let marked = bodies(&func.own_gradients);
    let mut writers: FxHashMap<Symbol, Vec<bool>> = FxHashMap::default();
    let mut present: FxHashSet<StmtId> = FxHashSet::default();
    collect(&func.body, &marked, false, &mut present, &mut writers);
    let mut kept = Vec::new();
    for call in &func.own_gradients {
        let written = |p: &SubTensor| writers.get(&p.tensor).map(Vec::as_slice).unwrap_or_default();
        if call.results.iter().all(|p| written(p).is_empty()) {
            continue;
        }
        let inside = call.results.iter().flat_map(&written).all(|inside| *inside);
        let whole = call.takes.iter().all(|t| match t {
            Takes::Argument(k) => !written(&call.args[*k]).is_empty(),
            Takes::Result(k) => !written(&call.results[*k]).is_empty(),
            Takes::Seed(_) => true,
        });
        if !inside || !whole || !call.body.iter().any(|id| present.contains(id)) {
            let message = format!(
                "the call of `{}` that has its own gradient was taken apart before it is differentiated",
                call.function
            );
            let d = Diagnostic::new("gradient::apart", message).at(call.span);
            let help = format!(
                "it needs what the first gradient had no use for: let the gradient of `{}` take less of it",
                call.function
            );
            return Err(asked(d, request, "differentiated again here").help(help));
        }
        kept.push(call.clone());
    }
    Ok(Func { own_gradients: kept, ..func.clone() })
}

/// With the place where the derivative is asked for, if that is in a program.
fn asked(d: Diagnostic, request: &Request<'_>, text: &str) -> Diagnostic {
    if request.span.is_none() { d } else { d.label(request.span, text) }
}

/// Which statements there are, and for every tensor the statements that write it: whether each is in a call's body.
fn collect(
    s: &Stmt,
    marked: &FxHashSet<StmtId>,
    inside: bool,
    present: &mut FxHashSet<StmtId>,
    writers: &mut FxHashMap<Symbol, Vec<bool>>,
) {
    present.insert(s.id());
    let inside = inside || marked.contains(&s.id());
    if let StmtKind::Store { tensor, .. } | StmtKind::ReduceTo { tensor, .. } = s.kind() {
        writers.entry(tensor.clone()).or_default().push(inside);
    }
    for c in s.kind().children() {
        collect(c, marked, inside, present, writers);
    }
}

/// Refuses tangents through a call: what is given is its backward pass.
pub(crate) fn no_tangents(func: &Func, active: &FxHashSet<Symbol>, request: &Request<'_>) -> Result<(), Diagnostic> {
    for call in &func.own_gradients {
        let moved = floats(&call.args).any(|p| active.contains(&p.tensor));
        if moved && floats(&call.results).any(|p| active.contains(&p.tensor)) {
            let message = format!("`{}` has its own gradient, which goes backwards, and no tangent", call.function);
            let d = Diagnostic::new("gradient::tangent", message).at(call.span);
            let name = request.kind.name();
            return Err(asked(d, request, &format!("`{name}` is forward mode"))
                .help("use reverse mode (`vjp`), or call a function that has no gradient of its own"));
        }
    }
    Ok(())
}

impl Reverse<'_, '_> {
    /// The backward pass of the call that ends with a statement; `None` if it is made already, or if there is nothing
    /// to do.
    pub fn own(&mut self, k: usize, last: &Stmt) -> Option<Stmt> {
        if !self.calls.done.insert(k) {
            return None;
        }
        let call = self.calls.all[k].clone();
        let has_adjoint = |r: &Self, p: &SubTensor| p.dtype.is_float() && r.active.contains(&p.tensor);
        let moved = call.args.iter().any(|p| has_adjoint(self, p));
        if !moved || !call.results.iter().any(|p| has_adjoint(self, p)) {
            return None;
        }
        let (id, origin) = (last.id(), last.origin().derive("grad", "own"));
        let adjoint = |t: &Tensor| Tensor { role: Role::Adjoint, ..t.clone() };
        let mut copier = Copier::new("grad", "own");
        copier.scalars = call.backward.sizes.iter().cloned().zip(call.sizes.iter().cloned()).collect();
        let (mut declared, mut steps) = (Vec::new(), Vec::new());
        for (p, takes) in call.backward.params.iter().zip(&call.takes) {
            let (symbol, at) = match takes {
                Takes::Argument(k) => (call.args[*k].tensor.clone(), &call.args[*k].at),
                Takes::Result(k) => (call.results[*k].tensor.clone(), &call.results[*k].at),
                Takes::Seed(k) if has_adjoint(self, &call.results[*k]) => {
                    let place = &call.results[*k];
                    (self.adjoints[&place.tensor].symbol.clone(), &place.at)
                }
                Takes::Seed(_) => {
                    let none = copier.declare(&adjoint(&p.tensor));
                    let none = self.here(id, &none);
                    steps.push(build::fill(&none, Literal::Float(0.0), &origin));
                    declared.push(none);
                    continue;
                }
            };
            let before = at.iter().cloned().map(Access::from).collect();
            copier.tensors.insert(p.tensor.symbol.clone(), (symbol, before));
        }
        let given: Vec<Arc<Tensor>> = call.backward.results.iter().map(|t| copier.declare(&adjoint(t))).collect();
        let given: Vec<Arc<Tensor>> = given.iter().map(|t| self.here(id, t)).collect();
        let body = copier.stmt(&call.backward.body);
        steps.push(self.through(id, &body));
        for (t, k) in given.iter().zip(&call.gives) {
            let x = &call.args[*k];
            if !has_adjoint(self, x) {
                continue;
            }
            let adjoint = self.adjoints[&x.tensor].symbol.clone();
            let before: Vec<Access> = x.at.iter().map(|e| Access::from(self.value(id, e))).collect();
            steps.push(build::every(t, &origin, |at| {
                let value = Expr::load(&t.symbol, at.clone(), t.dtype);
                let place = before.into_iter().chain(at).collect();
                build::update(&adjoint, place, Some(ReduceOp::Add), value, &origin)
            }));
            self.written.insert(adjoint);
        }
        self.calls_inside(id, &call.backward, &copier);
        declared.extend(given);
        Some(build::declared(declared, Stmt::seq(steps, origin.clone()), &origin))
    }

    /// A declaration in the backward pass of a statement.
    fn here(&mut self, id: StmtId, t: &Tensor) -> Arc<Tensor> {
        Arc::new(Tensor { shape: t.shape.iter().map(|d| self.value(id, d)).collect(), ..t.clone() })
    }

    /// A statement in names of the program, in the backward pass of a statement.
    fn through(&mut self, id: StmtId, s: &Stmt) -> Stmt {
        let here = s.map(&mut Stmt::clone, &mut |e| self.value(id, e));
        here.map(&mut |s| self.through(id, s), &mut Expr::clone)
    }

    /// The calls that a backward pass makes, for the gradient's own gradient.
    fn calls_inside(&mut self, id: StmtId, backward: &Func, copier: &Copier) {
        for call in &backward.own_gradients {
            let exprs = |r: &mut Self, all: &[Expr]| -> Vec<Expr> {
                all.iter().map(|e| r.value(id, &copier.expr(e))).collect()
            };
            let place = |r: &mut Self, p: &SubTensor| {
                let (tensor, _) = copier.tensors[&p.tensor].clone();
                SubTensor { tensor, at: exprs(r, &p.at), dtype: p.dtype }
            };
            let args = call.args.iter().map(|p| place(self, p)).collect();
            let results = call.results.iter().map(|p| place(self, p)).collect();
            let sizes = exprs(self, &call.sizes);
            let body = call.body.iter().map(|id| copier.ids[id]).collect();
            self.calls.made.push(OwnGradient { body, args, results, sizes, ..call.clone() });
        }
    }

    /// The calls of the forward pass, with their arguments and results where the gradient has them.
    pub fn calls_again(&mut self) {
        for call in self.calls.all.clone() {
            let place = |r: &mut Self, p: &SubTensor| r.kept_place(p, &call);
            let args = call.args.iter().map(|p| place(self, p)).collect();
            let results = call.results.iter().map(|p| place(self, p)).collect();
            self.calls.made.push(OwnGradient { args, results, ..call.clone() });
        }
    }

    fn kept_place(&mut self, p: &SubTensor, call: &OwnGradient) -> SubTensor {
        let kept = self.values.kept.iter().find(|(t, home, _)| *t == p.tensor && *home == Home::Program);
        let Some((_, _, kept)) = kept else { return p.clone() };
        let (tensor, loops) = (kept.tensor.symbol.clone(), kept.loops.clone());
        let mut at = Vec::new();
        for l in &loops {
            let l = &self.facts.loops[l];
            let mut loads = false;
            for e in [&l.begin, &l.step] {
                e.walk(&mut |e| loads |= matches!(e.kind(), ExprKind::Load(..)));
            }
            if loads {
                let message = format!(
                    "`{}` has its own gradient and is called in a loop whose bounds are read from a tensor; this gradient cannot be differentiated again",
                    call.function
                );
                self.problem(Diagnostic::new("gradient::bounds", message).at(call.span));
            }
            at.push(Expr::var(&l.iter).minus(&l.begin).floor_div(&l.step));
        }
        at.extend(p.at.iter().cloned());
        SubTensor { tensor, at, dtype: p.dtype }
    }
}
