//! Substitution of expressions, for several passes. Shared operands are rebuilt once.

use rustc_hash::FxHashMap;
use taffeta_ast::{Expr, ExprKind, Stmt, Symbol};

/// Replaces every mention of an iterator or a size by `value`. Ids and origins stay.
pub fn variable(stmt: &Stmt, symbol: &Symbol, value: &Expr) -> Stmt {
    let mut done = FxHashMap::default();
    rewrite(
        stmt,
        &mut |e| match e.kind() {
            ExprKind::Var(s) if s == symbol => Some(value.clone()),
            _ => None,
        },
        &mut done,
    )
}

/// Replaces every outermost expression in a statement for which `f` returns another one. `done` is the memo of
/// rewritten expressions.
pub fn rewrite(stmt: &Stmt, f: &mut dyn FnMut(&Expr) -> Option<Expr>, done: &mut FxHashMap<Expr, Expr>) -> Stmt {
    every(stmt, &mut |e| rewrite_expr(e, f, done))
}

/// Replaces every outermost subexpression for which `f` returns another one, as [`rewrite`] does.
pub fn rewrite_expr(e: &Expr, f: &mut dyn FnMut(&Expr) -> Option<Expr>, done: &mut FxHashMap<Expr, Expr>) -> Expr {
    if let Some(known) = done.get(e) {
        return known.clone();
    }
    let new = match f(e) {
        Some(new) => new,
        None => e.map_children(&mut |c| rewrite_expr(c, f, done)),
    };
    done.insert(e.clone(), new.clone());
    new
}

/// Applies `f` bottom-up to every expression of a statement, so that `f` sees rebuilt operands but is not applied to
/// its own results (as [`Expr::rewrite`]). Ids and origins stay.
pub fn rebuild(stmt: &Stmt, f: &mut dyn FnMut(Expr) -> Expr) -> Stmt {
    let mut done = FxHashMap::default();
    every(stmt, &mut |e| rebuild_expr(e, f, &mut done))
}

/// Applies `f` bottom-up to an expression and its operands, as [`rebuild`] does.
pub fn rebuild_expr(e: &Expr, f: &mut dyn FnMut(Expr) -> Expr, done: &mut FxHashMap<Expr, Expr>) -> Expr {
    if let Some(known) = done.get(e) {
        return known.clone();
    }
    let inner = e.map_children(&mut |c| rebuild_expr(c, f, done));
    let new = if inner.is_operand_of(e) { inner } else { f(inner) };
    done.insert(e.clone(), new.clone());
    new
}

/// Applies `f` to the expressions of a statement and of its descendants.
fn every(stmt: &Stmt, f: &mut dyn FnMut(&Expr) -> Expr) -> Stmt {
    // A closure for statements and one for expressions cannot both hold `f`, so the children are rewritten second.
    let here = stmt.map(&mut Stmt::clone, f);
    if here.kind().inside().next().is_none() {
        return here;
    }
    here.map(&mut |s| every(s, f), &mut Expr::clone)
}
