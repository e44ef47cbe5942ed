//! Walks over syntax trees: the direct children of expressions and statements.

use crate::syntax::{Expr, ExprKind, Stmt, StmtKind};

/// Returns the direct subexpressions of an expression, in order.
pub(super) fn children(e: &Expr) -> Vec<&Expr> {
    match &e.kind {
        ExprKind::Name(_)
        | ExprKind::Int(_)
        | ExprKind::Float(_)
        | ExprKind::Bool(_)
        | ExprKind::None
        | ExprKind::Ellipsis
        | ExprKind::Str(_) => Vec::new(),
        ExprKind::Format(parts)
        | ExprKind::Tuple(parts)
        | ExprKind::List(parts)
        | ExprKind::And(parts)
        | ExprKind::Or(parts) => parts.iter().collect(),
        ExprKind::Comprehension { element, iter, conds, .. } => {
            [&**iter, &**element].into_iter().chain(conds).collect()
        }
        ExprKind::Binary(_, a, b) => vec![a, b],
        ExprKind::Unary(_, a) | ExprKind::Attribute(a, _) => vec![a],
        ExprKind::Compare(first, rest) => std::iter::once(&**first).chain(rest.iter().map(|(_, r)| r)).collect(),
        ExprKind::IfElse { cond, then, otherwise } => vec![cond, then, otherwise],
        ExprKind::Call { callee, args } => std::iter::once(&**callee).chain(args.iter().map(|a| &a.value)).collect(),
        ExprKind::Subscript(a, items) => std::iter::once(&**a).chain(items).collect(),
        ExprKind::Slice { lower, upper, step } => [lower, upper, step].into_iter().flatten().map(|p| &**p).collect(),
        ExprKind::Lambda { body, .. } => vec![body],
    }
}

/// Returns the expressions that a statement itself reads, in order; names that it binds are not among them.
pub(super) fn read(s: &Stmt) -> Vec<&Expr> {
    match &s.kind {
        StmtKind::Assign { targets, value } => {
            let mut out = vec![value];
            targets.iter().for_each(|t| read_in_target(t, &mut out));
            out
        }
        StmtKind::Declare { value, .. } => value.iter().collect(),
        StmtKind::Augment { target, value, .. } => vec![target, value],
        StmtKind::For { iter, .. } => vec![iter],
        StmtKind::If { cond, .. } => vec![cond],
        StmtKind::Assert { cond, message } => std::iter::once(cond).chain(message).collect(),
        StmtKind::Return { value } => value.iter().collect(),
        StmtKind::Expr(e) => vec![e],
        StmtKind::Pass => Vec::new(),
    }
}

fn read_in_target<'e>(t: &'e Expr, out: &mut Vec<&'e Expr>) {
    match &t.kind {
        ExprKind::Name(_) => {}
        ExprKind::Tuple(items) | ExprKind::List(items) => items.iter().for_each(|t| read_in_target(t, out)),
        _ => out.push(t),
    }
}

/// Adds the names that a statement binds.
pub(super) fn bound(s: &Stmt, out: &mut impl Extend<String>) {
    match &s.kind {
        StmtKind::Assign { targets, .. } => targets.iter().for_each(|t| bound_in_target(t, out)),
        StmtKind::Declare { name, .. } => out.extend([name.text.clone()]),
        StmtKind::For { targets, .. } => out.extend(targets.iter().map(|t| t.text.clone())),
        _ => {}
    }
}

fn bound_in_target(t: &Expr, out: &mut impl Extend<String>) {
    match &t.kind {
        ExprKind::Name(n) => out.extend([n.clone()]),
        ExprKind::Tuple(items) | ExprKind::List(items) => items.iter().for_each(|t| bound_in_target(t, out)),
        _ => {}
    }
}

/// Returns the statements directly inside a statement.
pub(super) fn inner(s: &Stmt) -> Vec<&Stmt> {
    match &s.kind {
        StmtKind::For { body, .. } => body.iter().collect(),
        StmtKind::If { then, otherwise, .. } => then.iter().chain(otherwise).collect(),
        _ => Vec::new(),
    }
}
