//! Putting expressions in the place of others, which several passes do. Shared operands are rebuilt once.

use rustc_hash::FxHashMap;
use taffeta_ast::{Expr, ExprKind, Stmt, Symbol};

/// The statement with `value` for every mention of an iterator or a size. Ids and origins stay.
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

/// The statement with every outermost expression for which `f` gives one replaced by that.
pub fn rewrite(stmt: &Stmt, f: &mut dyn FnMut(&Expr) -> Option<Expr>, done: &mut FxHashMap<Expr, Expr>) -> Stmt {
    every(stmt, &mut |e| rewrite_expr(e, f, done))
}

/// The expression, likewise.
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

/// The statement with `f` applied to every expression after its operands, so that it sees new operands, but nothing
/// that it gave itself (as [`Expr::rewrite`]). Ids and origins stay.
pub fn rebuild(stmt: &Stmt, f: &mut dyn FnMut(Expr) -> Expr) -> Stmt {
    let mut done = FxHashMap::default();
    every(stmt, &mut |e| rebuild_expr(e, f, &mut done))
}

/// The expression, likewise.
pub fn rebuild_expr(e: &Expr, f: &mut dyn FnMut(Expr) -> Expr, done: &mut FxHashMap<Expr, Expr>) -> Expr {
    if let Some(known) = done.get(e) {
        return known.clone();
    }
    let inner = e.map_children(&mut |c| rebuild_expr(c, f, done));
    let new = if inner.is_operand_of(e) { inner } else { f(inner) };
    done.insert(e.clone(), new.clone());
    new
}

/// The statement with `f` applied to the expressions that stand in it and in the statements inside.
fn every(stmt: &Stmt, f: &mut dyn FnMut(&Expr) -> Expr) -> Stmt {
    // One closure for statements and one for expressions cannot both hold `f`, so the statements inside come second.
    let here = stmt.map(&mut Stmt::clone, f);
    if here.kind().inside().next().is_none() {
        return here;
    }
    here.map(&mut |s| every(s, f), &mut Expr::clone)
}
