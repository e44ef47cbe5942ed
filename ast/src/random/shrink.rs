//! Shrinking of the program of a failing test, by edits that keep it valid and failing.

use super::Case;
use crate::expr::{Expr, ExprKind};
use crate::literal::Literal;
use crate::stmt::{Extent, Stmt, StmtKind};
use crate::symbol::Symbol;
use crate::validate;

/// Returns a smaller program for which `fails` still holds, if it holds for `case`: deletes statements, replaces
/// declarations, branches and loops by their bodies, and values by their operands or 1, as long as the program stays
/// valid. `fails` itself must decide whether the program may read unwritten elements.
pub fn shrink(case: &Case, fails: &mut dyn FnMut(&Case) -> bool) -> Case {
    let mut best = case.clone();
    loop {
        let next = edits(&best.func.body).into_iter().find_map(|body| {
            let smaller = Case { func: best.func.with_body(body), inputs: best.inputs.clone() };
            (validate::logical(&smaller.func).is_ok() && fails(&smaller)).then_some(smaller)
        });
        match next {
            Some(smaller) => best = smaller,
            None => return best,
        }
    }
}

/// Returns every tree that is one step smaller, the largest steps first.
fn edits(s: &Stmt) -> Vec<Stmt> {
    let mut out = steps_at_root(s);
    let children = s.kind().children();
    for (k, child) in children.iter().enumerate() {
        for edit in edits(child) {
            let mut at = 0;
            out.push(s.map(
                &mut |inner| {
                    at += 1;
                    if at == k + 1 { edit.clone() } else { inner.clone() }
                },
                &mut Expr::clone,
            ));
        }
    }
    out
}

/// Returns the steps at the root of the tree.
fn steps_at_root(s: &Stmt) -> Vec<Stmt> {
    let mut out = Vec::new();
    if !s.is_nop() {
        out.push(Stmt::nop());
    }
    match s.kind() {
        StmtKind::VarDef { body, .. } => out.push(body.clone()),
        StmtKind::If { then, otherwise, .. } => {
            out.push(then.clone());
            out.extend(otherwise.clone());
        }
        StmtKind::For { iter, extent: Extent::Range { begin, .. }, body, .. } => out.push(replace(body, iter, begin)),
        StmtKind::Store { tensor, indices, value } => out.extend(
            smaller(value)
                .into_iter()
                .map(|value| s.with_kind(StmtKind::Store { tensor: tensor.clone(), indices: indices.clone(), value })),
        ),
        StmtKind::ReduceTo { tensor, indices, op, value } => out.extend(smaller(value).into_iter().map(|value| {
            s.with_kind(StmtKind::ReduceTo { tensor: tensor.clone(), indices: indices.clone(), op: *op, value })
        })),
        _ => {}
    }
    out
}

/// Returns expressions of the same type with fewer nodes.
fn smaller(e: &Expr) -> Vec<Expr> {
    if e.as_literal().is_some() {
        return Vec::new();
    }
    let mut out = vec![Expr::literal(Literal::Int(1), e.dtype())];
    e.walk(&mut |inner| {
        if inner != e && inner.dtype() == e.dtype() && !matches!(inner.kind(), ExprKind::Const(_)) {
            out.push(inner.clone());
        }
    });
    out
}

fn replace(s: &Stmt, iter: &Symbol, value: &Expr) -> Stmt {
    let mut in_expr = |e: &Expr| {
        e.rewrite(&mut |e| match e.kind() {
            ExprKind::Var(symbol) if symbol == iter => value.clone(),
            _ => e,
        })
    };
    s.map(&mut |inner| replace(inner, iter, value), &mut in_expr)
}
