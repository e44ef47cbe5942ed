//! Speculative reads, which a transformation adds where the program has none: the bounds of a loop that is moved out of
//! another one are evaluated even where the outer one does not run.
//!
//! **Does**: proves that all elements that would be read are written before. **How**: the expressions are inserted at
//! the new place, and kill analysis ([`super::super::kill`]) is applied to their loads, in the scope of the loaded
//! tensor. Parameters are initialised. **Does not prove**: writes that depend on loaded values, or on non-affine
//! arithmetic.

use super::super::depend::Dependences;
use super::super::effects;
use super::super::reference::Reference;
use crate::{pass::substitute, tree};
use rustc_hash::FxHashSet;
use std::sync::Arc;
use taffeta_ast::stmt::Role;
use taffeta_ast::{Expr, Extent, Func, LoopProps, Origin, Stmt, StmtId, StmtKind, Symbol, Tensor};

/// Finds a tensor of which the expressions may read an uninitialised element, if they are evaluated right before the
/// statement `at`, in copies of `loops` (outermost first), whose iterators they may mention. `None` proves that there
/// is none.
pub fn early_read(func: &Func, at: StmtId, loops: &[&Stmt], exprs: &[&Expr]) -> Option<Symbol> {
    let is_parameter = |t: &Symbol| func.params.iter().any(|p| p.tensor.symbol == *t);
    let loads: FxHashSet<Symbol> = exprs.iter().flat_map(|e| effects::loads(e)).collect();
    let mut unsure: Vec<Symbol> = loads.into_iter().filter(|t| !is_parameter(t)).collect();
    unsure.sort_by(|a, b| a.name().cmp(b.name()));
    let first = unsure.first()?;
    let way = tree::path(&func.body, at).unwrap_or_default();
    let declares = |s: &Stmt, t: &Symbol| matches!(s.kind(), StmtKind::VarDef { tensor, .. } if tensor.symbol == *t);
    let is_alive = |t: &Symbol| func.results.iter().any(|r| r.symbol == *t) || way.iter().any(|s| declares(s, t));
    let Some(old) = way.last() else { return Some(first.clone()) };
    if let Some(t) = unsure.iter().find(|t| !is_alive(t)) {
        return Some(t.clone());
    }
    let mut evaluations: FxHashSet<StmtId> = FxHashSet::default();
    let mut inside = Stmt::seq(exprs.iter().map(|e| evaluated(e, &mut evaluations)), Origin::none());
    for l in loops.iter().rev() {
        let StmtKind::For { iter, extent, .. } = l.kind() else { return Some(first.clone()) };
        let own = Symbol::new(iter.name());
        let body = substitute::variable(&inside, iter, &Expr::var(&own));
        inside = looped(own, extent.clone(), body);
    }
    let with = tree::replace(func, at, &Stmt::seq([inside, old.clone()], Origin::none()));
    let unsure: Vec<&Symbol> = unsure.iter().collect();
    exposed(&with, &unsure, &|r| evaluations.contains(&r.site.stmt.id())).into_iter().next()
}

/// Returns a statement that evaluates an expression.
fn evaluated(e: &Expr, ids: &mut FxHashSet<StmtId>) -> Stmt {
    let symbol = Symbol::new("value");
    let store = StmtKind::Store { tensor: symbol.clone(), indices: Vec::new(), value: e.clone() };
    let store = Stmt::new(store, Origin::none());
    ids.insert(store.id());
    let tensor = Arc::new(Tensor::dense(symbol, e.dtype(), Vec::new(), Role::Local));
    Stmt::new(StmtKind::VarDef { tensor, body: store }, Origin::none())
}

fn looped(iter: Symbol, extent: Extent, body: Stmt) -> Stmt {
    let origin = body.origin().clone();
    Stmt::new(StmtKind::For { iter, extent, props: LoopProps::default(), body }, origin)
}

/// Returns the tensors, local ones and results, of which one of the reads selected by `is` may read an element that is
/// not written before in the scope of the tensor.
pub fn exposed(func: &Func, tensors: &[&Symbol], is: &dyn Fn(&Reference) -> bool) -> Vec<Symbol> {
    // Kill analysis is about iterations of loops, so the scopes become bodies of loops with one iteration.
    let once = Extent::Range { begin: Expr::int(0), end: Expr::int(1), step: Expr::int(1) };
    let mut scopes: Vec<(&Symbol, StmtId)> = Vec::new();
    let func = tensors.iter().fold(func.clone(), |func, tensor| {
        tree::in_scope(&func, tensor, &mut |_, body| {
            let new = looped(Symbol::new("once"), once.clone(), body.clone());
            scopes.push((tensor, new.id()));
            new
        })
    });
    let dependences = Dependences::new(&func);
    let is_exposed = |(tensor, scope): &(&Symbol, StmtId)| {
        let scope = tree::find(&func.body, *scope);
        scope.is_none_or(|scope| dependences.exposed_reads_among(tensor, &scope, is).next().is_some())
    };
    scopes.iter().filter(|s| is_exposed(s)).map(|(tensor, _)| (*tensor).clone()).collect()
}
