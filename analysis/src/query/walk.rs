//! Walk through a program in order, with a [`Context`] of the facts at every statement.

use super::Context;
use crate::tree;
use taffeta_ast::{Expr, Func, Stmt, StmtId, StmtKind};

/// Visitor of a walk. Statements are visited before their children.
pub trait Visitor {
    /// Visits a statement, with the facts that hold before it.
    fn stmt(&mut self, stmt: &Stmt, facts: &mut Context);

    /// Visits an expression directly in `stmt`, with the facts that hold where it is evaluated.
    fn expr(&mut self, _expr: &Expr, _stmt: &Stmt, _facts: &mut Context) {}
}

/// Visits a statement and its descendants.
pub fn walk(stmt: &Stmt, facts: &mut Context, visitor: &mut dyn Visitor) {
    visitor.stmt(stmt, facts);
    for e in stmt.kind().exprs() {
        visitor.expr(e, stmt, facts);
    }
    inside(stmt, facts, &mut |s, c| walk(s, c, visitor));
    facts.after(stmt);
}

/// Replaces every child of a statement by the result of `f`, which gets the facts that hold before the child. The
/// caller must update the context for the statement itself by [`Context::after`].
pub fn map(stmt: &Stmt, facts: &mut Context, f: &mut dyn FnMut(&Stmt, &mut Context) -> Stmt) -> Stmt {
    let mut made = Vec::new();
    inside(stmt, facts, &mut |s, facts| made.push(f(s, facts)));
    let mut made = made.into_iter();
    stmt.map(&mut |old| made.next().unwrap_or_else(|| old.clone()), &mut Expr::clone)
}

/// Calls `f` on every child of a statement, with the facts that hold before the child. The caller must update the
/// context for the statement itself by [`Context::after`].
pub fn inside(stmt: &Stmt, facts: &mut Context, f: &mut dyn FnMut(&Stmt, &mut Context)) {
    match stmt.kind() {
        StmtKind::Seq(v) => {
            for s in v {
                f(s, facts);
            }
        }
        StmtKind::VarDef { tensor, body } => facts.scoped(|c| {
            c.declare(tensor);
            f(body, c);
        }),
        StmtKind::For { iter, extent, body, .. } => facts.scoped(|c| {
            c.enter_loop(iter, extent, body);
            f(body, c);
        }),
        StmtKind::While { cond, body } => facts.scoped(|c| {
            c.enter_while(cond, body);
            f(body, c);
        }),
        StmtKind::If { cond, then, otherwise } => {
            facts.scoped(|c| {
                c.assume(cond);
                f(then, c);
            });
            if let Some(o) = otherwise {
                facts.scoped(|c| {
                    c.assume_not(cond);
                    f(o, c);
                });
            }
        }
        _ => {}
    }
}

/// Returns the facts before the statement with this id; `None` if there is no such statement.
pub fn at(func: &Func, id: StmtId) -> Option<Context> {
    let path = tree::path(&func.body, id)?;
    let mut facts = Context::new(func);
    for (stmt, next) in path.iter().zip(&path[1..]) {
        enter(stmt, next, &mut facts);
    }
    Some(facts)
}

/// Adds the facts that hold before the child `next`, without a mark to return to.
fn enter(stmt: &Stmt, next: &Stmt, facts: &mut Context) {
    match stmt.kind() {
        StmtKind::Seq(all) => all.iter().take_while(|s| s.id() != next.id()).for_each(|s| facts.skip(s)),
        StmtKind::VarDef { tensor, .. } => facts.declare(tensor),
        StmtKind::For { iter, extent, body, .. } => facts.enter_loop(iter, extent, body),
        StmtKind::While { cond, body } => facts.enter_while(cond, body),
        StmtKind::If { cond, then, .. } if then.id() == next.id() => facts.assume(cond),
        StmtKind::If { cond, .. } => facts.assume_not(cond),
        _ => {}
    }
}
