//! Backward pass of a call with a custom gradient: the user's function, applied to the arguments and results at the
//! places that `value_sources` gives.
//!
//! ```text
//! x.own = backward(x, y, y.grad)
//! x.grad += x.own
//! ```

use super::Reverse;
use crate::build;
use crate::data::RecomputeScope;
use std::sync::Arc;
use taffeta_analysis::pass::copy::Copier;
use taffeta_ast::func::{CustomVjp, SubTensor, Takes};
use taffeta_ast::stmt::Role;
use taffeta_ast::{Access, Diagnostic, Expr, ExprKind, Func, Literal, ReduceOp, Stmt, StmtId, Tensor};

impl Reverse<'_, '_> {
    /// Builds the backward pass of the call that ends with a statement; returns `None` if it is built already, or if
    /// there is nothing to do.
    pub(super) fn custom_vjp(&mut self, k: usize, last: &Stmt) -> Option<Stmt> {
        if !self.calls_done.insert(k) {
            return None;
        }
        let call = &self.calls.all[k];
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
                    let adjoint = self.adjoints[&place.tensor].clone();
                    if adjoint.dtype != p.tensor.dtype {
                        let rounded = copier.declare(&Tensor { role: Role::Adjoint, ..(*p.tensor).clone() });
                        let rounded = self.here(id, &rounded);
                        let before: Vec<Access> = place.at.iter().map(|e| Access::from(self.value(id, e))).collect();
                        steps.push(build::every(&rounded, &origin, |at| {
                            let from = before.into_iter().chain(at.clone()).collect();
                            let value = Expr::load(&adjoint.symbol, from, adjoint.dtype).cast(rounded.dtype);
                            build::store(&rounded.symbol, at, value, &origin)
                        }));
                        declared.push(rounded);
                        continue;
                    }
                    (adjoint.symbol.clone(), &place.at)
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
            let (adjoint, dtype) = (self.adjoints[&x.tensor].symbol.clone(), self.adjoints[&x.tensor].dtype);
            let before: Vec<Access> = x.at.iter().map(|e| Access::from(self.value(id, e))).collect();
            steps.push(build::every(t, &origin, |at| {
                let value = Expr::load(&t.symbol, at.clone(), t.dtype).cast(dtype);
                let place = before.into_iter().chain(at).collect();
                build::update(&adjoint, place, Some(ReduceOp::Add), value, &origin)
            }));
            self.written.insert(adjoint);
        }
        self.calls_inside(id, &call.backward, &copier);
        declared.extend(given);
        Some(build::declared(declared, Stmt::seq(steps, origin.clone()), &origin))
    }

    /// Translates a declaration for the backward pass of a statement.
    fn here(&mut self, id: StmtId, t: &Tensor) -> Arc<Tensor> {
        Arc::new(Tensor { shape: t.shape.iter().map(|d| self.value(id, d)).collect(), ..t.clone() })
    }

    /// Translates a statement in the program's names for the backward pass of a statement.
    fn through(&mut self, id: StmtId, s: &Stmt) -> Stmt {
        let here = s.map(&mut Stmt::clone, &mut |e| self.value(id, e));
        here.map(&mut |s| self.through(id, s), &mut Expr::clone)
    }

    /// Records the calls that a custom backward pass makes, for the gradient of the gradient.
    fn calls_inside(&mut self, id: StmtId, backward: &Func, copier: &Copier) {
        for call in &backward.custom_vjps {
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
            self.calls_made.push(CustomVjp { body, args, results, sizes, ..call.clone() });
        }
    }

    /// Records the calls of the forward pass, with the places of their arguments and results in the gradient.
    pub(super) fn calls_of_forward_pass(&mut self) {
        for call in &self.calls.all {
            let place = |r: &mut Self, p: &SubTensor| r.kept_place(p, call);
            let args = call.args.iter().map(|p| place(self, p)).collect();
            let results = call.results.iter().map(|p| place(self, p)).collect();
            self.calls_made.push(CustomVjp { args, results, ..call.clone() });
        }
    }

    fn kept_place(&mut self, p: &SubTensor, call: &CustomVjp) -> SubTensor {
        let kept = self.values.kept.iter().find(|(t, scope, _)| *t == p.tensor && *scope == RecomputeScope::Program);
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
                    "cannot differentiate the own gradient of `{}` again: it is called in a loop whose bounds are read \
                     from a tensor",
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
