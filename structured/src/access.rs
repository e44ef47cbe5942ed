//! Element accesses, including the targets of writes: the target of a store or reduction is inspected and rewritten as
//! a load. Driving a loop, locating a position and the treatment of unstored elements thus cover reads and writes
//! alike.

use rustc_hash::FxHashMap;
pub(crate) use taffeta_analysis::pass::fill_propagation::target;
use taffeta_analysis::pass::substitute;
use taffeta_ast::{Expr, ExprKind, Stmt, StmtKind};

/// Returns the expressions directly in a statement. A write contributes its target, as a load, in place of its indices.
pub(crate) fn exprs(s: &Stmt) -> Vec<Expr> {
    match s.kind() {
        StmtKind::Store { value, .. } | StmtKind::ReduceTo { value, .. } => {
            target(s).into_iter().chain([value.clone()]).collect()
        }
        kind => kind.exprs().into_iter().cloned().collect(),
    }
}

/// Replaces the target of a write by `element`, which must be a load; other statements are returned unchanged.
pub(crate) fn with_target(s: &Stmt, element: &Expr) -> Stmt {
    let ExprKind::Load(to, at) = element.kind() else { unreachable!("the target of a write is an element") };
    let (tensor, indices) = (to.clone(), at.clone());
    match s.kind() {
        StmtKind::Store { value, .. } => s.with_kind(StmtKind::Store { tensor, indices, value: value.clone() }),
        StmtKind::ReduceTo { op, value, .. } => {
            s.with_kind(StmtKind::ReduceTo { tensor, indices, op: *op, value: value.clone() })
        }
        _ => s.clone(),
    }
}

/// Applies `f` bottom-up to every expression of a statement and of its nested statements.
pub(crate) fn rebuild(s: &Stmt, f: &mut dyn FnMut(Expr) -> Expr) -> Stmt {
    let mut done = FxHashMap::default();
    every(s, &mut |e| substitute::rebuild_expr(e, f, &mut done))
}

/// Applies `f` bottom-up to the expressions directly in a statement, leaving nested statements alone.
pub(crate) fn rebuild_here(s: &Stmt, f: &mut dyn FnMut(Expr) -> Expr) -> Stmt {
    let mut done = FxHashMap::default();
    here(s, &mut |e| substitute::rebuild_expr(e, f, &mut done))
}

fn here(s: &Stmt, f: &mut dyn FnMut(&Expr) -> Expr) -> Stmt {
    let Some(element) = target(s) else { return s.map(&mut Stmt::clone, f) };
    let new = f(&element);
    let s = if new == element { s.clone() } else { with_target(s, &new) };
    match s.kind() {
        StmtKind::Store { tensor, indices, value } => {
            let (tensor, indices, new) = (tensor.clone(), indices.clone(), f(value));
            if new == *value { s } else { s.with_kind(StmtKind::Store { tensor, indices, value: new }) }
        }
        StmtKind::ReduceTo { tensor, indices, op, value } => {
            let (tensor, indices, new) = (tensor.clone(), indices.clone(), f(value));
            if new == *value { s } else { s.with_kind(StmtKind::ReduceTo { tensor, indices, op: *op, value: new }) }
        }
        _ => unreachable!("only stores and reductions write"),
    }
}

fn every(s: &Stmt, f: &mut dyn FnMut(&Expr) -> Expr) -> Stmt {
    let own = here(s, f);
    if own.kind().inside().next().is_none() {
        return own;
    }
    own.map(&mut |s| every(s, f), &mut Expr::clone)
}
