//! The names that a module mentions: which parts of the operator library must be read for it.

use crate::syntax::{BinOp, Expr, ExprKind, Item, Module, Stmt, StmtKind};
use std::collections::BTreeSet;

/// Every name that the module's functions mention, whatever it is bound to, and the names that operators stand for.
pub(super) fn names(module: &Module) -> BTreeSet<String> {
    let mut out = BTreeSet::new();
    for item in &module.items {
        match item {
            Item::Import(_) => {}
            Item::Assign { value, .. } => expr(value, &mut out),
            Item::Function(f) => {
                for p in &f.params {
                    p.default.iter().for_each(|e| expr(e, &mut out));
                }
                body(&f.body, &mut out);
            }
        }
    }
    out
}

fn body(stmts: &[Stmt], out: &mut BTreeSet<String>) {
    for s in stmts {
        match &s.kind {
            StmtKind::Assign { targets, value } => {
                targets.iter().for_each(|e| expr(e, out));
                expr(value, out);
            }
            StmtKind::Declare { value, .. } => value.iter().for_each(|e| expr(e, out)),
            StmtKind::Augment { target, op, value } => {
                operator(*op, out);
                expr(target, out);
                expr(value, out);
            }
            StmtKind::For { iter, body: inner, .. } => {
                expr(iter, out);
                body(inner, out);
            }
            StmtKind::If { cond, then, otherwise } => {
                expr(cond, out);
                body(then, out);
                body(otherwise, out);
            }
            StmtKind::Assert { cond, message } => {
                expr(cond, out);
                message.iter().for_each(|e| expr(e, out));
            }
            StmtKind::Pass => {}
            StmtKind::Return { value } => value.iter().for_each(|e| expr(e, out)),
            StmtKind::Expr(e) => expr(e, out),
        }
    }
}

fn operator(op: BinOp, out: &mut BTreeSet<String>) {
    if op == BinOp::MatMul {
        out.insert("matmul".to_string());
    }
}

fn expr(e: &Expr, out: &mut BTreeSet<String>) {
    match &e.kind {
        ExprKind::Name(n) => {
            out.insert(n.clone());
        }
        ExprKind::Int(_)
        | ExprKind::Float(_)
        | ExprKind::Bool(_)
        | ExprKind::None
        | ExprKind::Ellipsis
        | ExprKind::Str(_) => {}
        ExprKind::Format(parts) | ExprKind::Tuple(parts) | ExprKind::List(parts) => {
            parts.iter().for_each(|p| expr(p, out));
        }
        ExprKind::And(parts) | ExprKind::Or(parts) => parts.iter().for_each(|p| expr(p, out)),
        ExprKind::Comprehension { element, iter, conds, .. } => {
            expr(element, out);
            expr(iter, out);
            conds.iter().for_each(|c| expr(c, out));
        }
        ExprKind::Binary(op, a, b) => {
            operator(*op, out);
            expr(a, out);
            expr(b, out);
        }
        ExprKind::Unary(_, a) | ExprKind::Attribute(a, _) => expr(a, out),
        ExprKind::Compare(first, rest) => {
            expr(first, out);
            rest.iter().for_each(|(_, r)| expr(r, out));
        }
        ExprKind::IfElse { cond, then, otherwise } => {
            expr(cond, out);
            expr(then, out);
            expr(otherwise, out);
        }
        ExprKind::Call { callee, args } => {
            expr(callee, out);
            args.iter().for_each(|a| expr(&a.value, out));
        }
        ExprKind::Subscript(a, items) => {
            expr(a, out);
            items.iter().for_each(|i| expr(i, out));
        }
        ExprKind::Slice { lower, upper, step } => {
            for part in [lower, upper, step].into_iter().flatten() {
                expr(part, out);
            }
        }
        ExprKind::Lambda { body, .. } => expr(body, out),
    }
}
