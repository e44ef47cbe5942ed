//! Names that a module may use from the operator library; they decide which of the library's modules are loaded with
//! it.

use super::walk;
use crate::syntax::{BinOp, Expr, ExprKind, Item, Module, Stmt, StmtKind};
use std::collections::BTreeSet;

/// Returns the names that the module's functions may use from the operator library, including the functions behind
/// operators (`@`). A name that a function binds and never calls is local to it.
pub(super) fn names(module: &Module) -> BTreeSet<String> {
    let mut out = BTreeSet::new();
    for item in &module.items {
        let mut uses = Uses::default();
        match item {
            Item::Import(_) => {}
            Item::Assign { value, .. } => uses.expr(value),
            Item::Function(f) => {
                for p in &f.params {
                    uses.bound.insert(p.name.text.clone());
                    p.annotation.iter().for_each(|e| uses.annotation(e));
                    p.default.iter().for_each(|e| uses.expr(e));
                }
                f.returns.iter().for_each(|e| uses.annotation(e));
                f.body.iter().for_each(|s| uses.stmt(s));
            }
        }
        out.extend(uses.called);
        out.extend(uses.read.difference(&uses.bound).cloned());
    }
    out
}

#[derive(Default)]
struct Uses {
    called: BTreeSet<String>,
    read: BTreeSet<String>,
    bound: BTreeSet<String>,
}

impl Uses {
    fn stmt(&mut self, s: &Stmt) {
        if let StmtKind::Augment { op: BinOp::MatMul, .. } = s.kind {
            self.called.insert("matmul".to_string());
        }
        if let StmtKind::Declare { annotation, .. } = &s.kind {
            self.annotation(annotation);
        }
        walk::bound(s, &mut self.bound);
        walk::read(s).into_iter().for_each(|e| self.expr(e));
        walk::inner(s).into_iter().for_each(|s| self.stmt(s));
    }

    /// Notes the formats in an annotation, which stand behind `@`.
    fn annotation(&mut self, e: &Expr) {
        match &e.kind {
            ExprKind::Binary(BinOp::MatMul, _, format) => self.expr(format),
            _ => walk::children(e).into_iter().for_each(|e| self.annotation(e)),
        }
    }

    fn expr(&mut self, e: &Expr) {
        match &e.kind {
            ExprKind::Name(n) => {
                self.read.insert(n.clone());
            }
            ExprKind::Binary(BinOp::MatMul, ..) => {
                self.called.insert("matmul".to_string());
            }
            ExprKind::Call { callee, args } => {
                if let ExprKind::Name(n) = &callee.kind {
                    // `max` and `min` of several values are operators; the library's versions reduce over axes.
                    let operator =
                        (n == "max" || n == "min") && args.len() > 1 && args.iter().all(|a| a.name.is_none());
                    if !operator {
                        self.called.insert(n.clone());
                    }
                    return args.iter().for_each(|a| self.expr(&a.value));
                }
            }
            _ => {}
        }
        walk::children(e).into_iter().for_each(|c| self.expr(c));
    }
}
