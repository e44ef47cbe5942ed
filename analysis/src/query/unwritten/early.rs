//! Reads in places where the program does not have them: the bounds of a loop that leaves another one are evaluated
//! even where that one does not run.
//!
//! *Does*: says whether all elements that would be read there are surely written before. *How*: the expressions are put
//! there, and kill analysis ([`super::super::kill`]) is asked about what they read, in the scope of its tensor.
//! Parameters hold values from the beginning. *Does not prove*: what depends on values that are read, or on arithmetic
//! that is not affine.

use super::super::depend::Dependences;
use super::super::effects;
use super::super::reference::Reference;
use crate::{pass::substitute, tree};
use rustc_hash::FxHashSet;
use std::sync::Arc;
use taffeta_ast::stmt::Role;
use taffeta_ast::{Expr, Extent, Func, LoopProps, Origin, Stmt, StmtId, StmtKind, Symbol, Tensor};

/// A tensor of which the expressions may read an element that is not written yet, if they are evaluated right before
/// the statement `at`, in copies of `loops` (outermost first), whose iterators they may mention. `None` is a proof that
/// they read nothing of the kind.
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
    unsure.into_iter().find(|t| is_exposed(&with, t, &|r| evaluations.contains(&r.site.stmt.id())))
}

/// A statement that evaluates an expression.
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

/// Whether one of the reads for which `is` holds may read an element of a local tensor, or of a result, that is not
/// written before in the scope of the tensor.
pub fn is_exposed(func: &Func, tensor: &Symbol, is: &dyn Fn(&Reference) -> bool) -> bool {
    // The question is asked of iterations of loops, so the scope becomes one.
    let once = Extent::Range { begin: Expr::int(0), end: Expr::int(1), step: Expr::int(1) };
    let mut scope = None;
    let func = tree::in_scope(func, tensor, &mut |_, body| {
        let new = looped(Symbol::new("once"), once.clone(), body.clone());
        scope = Some(new.clone());
        new
    });
    let Some(scope) = scope else { return false };
    let dependences = Dependences::new(&func);
    dependences.exposed_reads(tensor, &scope).any(is)
}
