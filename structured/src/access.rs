//! Accesses to elements, those that write among them: the target of a store or of a reduction is looked at, and
//! rewritten, as if it were loaded. So what drives a loop, is located, or is not stored, is asked of both alike.

use rustc_hash::FxHashMap;
pub(crate) use taffeta_analysis::pass::fills::target;
use taffeta_analysis::pass::substitute;
use taffeta_ast::{Expr, ExprKind, Stmt, StmtKind};

/// The expressions that stand directly in a statement; of what it writes, the element in the place of its indices.
pub(crate) fn exprs(s: &Stmt) -> Vec<Expr> {
    match s.kind() {
        StmtKind::Store { value, .. } | StmtKind::ReduceTo { value, .. } => {
            target(s).into_iter().chain([value.clone()]).collect()
        }
        kind => kind.exprs().into_iter().cloned().collect(),
    }
}

/// The statement that writes that element instead of its own.
pub(crate) fn with_target(s: &Stmt, element: &Expr) -> Stmt {
    let ExprKind::Load(to, at) = element.kind() else { unreachable!("what is written stays an element") };
    let (tensor, indices) = (to.clone(), at.clone());
    match s.kind() {
        StmtKind::Store { value, .. } => s.with_kind(StmtKind::Store { tensor, indices, value: value.clone() }),
        StmtKind::ReduceTo { op, value, .. } => {
            s.with_kind(StmtKind::ReduceTo { tensor, indices, op: *op, value: value.clone() })
        }
        _ => s.clone(),
    }
}

/// The statement with `f` applied to every expression in it and in the statements inside, after its operands.
pub(crate) fn rebuild(s: &Stmt, f: &mut dyn FnMut(Expr) -> Expr) -> Stmt {
    let mut done = FxHashMap::default();
    every(s, &mut |e| substitute::rebuild_expr(e, f, &mut done))
}

/// The same for what stands in a statement itself.
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
        _ => unreachable!("only these write"),
    }
}

fn every(s: &Stmt, f: &mut dyn FnMut(&Expr) -> Expr) -> Stmt {
    let own = here(s, f);
    if own.kind().inside().next().is_none() {
        return own;
    }
    own.map(&mut |s| every(s, f), &mut Expr::clone)
}
