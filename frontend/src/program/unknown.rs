//! Undefined names in functions, found from the syntax alone: for templates, which are elaborated only where they are
//! called.

use super::walk;
use crate::syntax::{Expr, ExprKind, Function, Stmt, StmtKind};
use std::collections::BTreeSet;
use taffeta_ast::Span;

/// Returns the names that a function reads, that it does not bind and that are not `known`, each with the span of its
/// first read.
pub(super) fn names(f: &Function, known: impl Fn(&str) -> bool) -> Vec<(String, Span)> {
    let mut bound: BTreeSet<String> = f.params.iter().map(|p| p.name.text.clone()).collect();
    let mut read = Vec::new();
    for p in &f.params {
        // Names in annotations are sizes.
        p.annotation.iter().for_each(|a| annotated(a, &mut bound));
    }
    f.returns.iter().for_each(|a| annotated(a, &mut bound));
    f.body.iter().for_each(|s| stmt(s, &mut bound, &mut read));
    let mut out: Vec<(String, Span)> = Vec::new();
    for (name, span) in read {
        if !bound.contains(&name) && !known(&name) && !out.iter().any(|(n, _)| *n == name) {
            out.push((name, span));
        }
    }
    out
}

fn annotated(e: &Expr, bound: &mut BTreeSet<String>) {
    if let ExprKind::Name(n) = &e.kind {
        bound.insert(n.clone());
    }
    walk::children(e).into_iter().for_each(|c| annotated(c, bound));
}

fn stmt(s: &Stmt, bound: &mut BTreeSet<String>, read: &mut Vec<(String, Span)>) {
    walk::bound(s, bound);
    // A loop over the reals binds their measures.
    if let StmtKind::For { iter, .. } = &s.kind
        && matches!(&iter.kind, ExprKind::Name(n) if n == "reals")
    {
        bound.extend(["d", "count"].map(str::to_string));
    }
    walk::read(s).into_iter().for_each(|e| expr(e, bound, read));
    walk::inner(s).into_iter().for_each(|s| stmt(s, bound, read));
}

fn expr(e: &Expr, bound: &mut BTreeSet<String>, read: &mut Vec<(String, Span)>) {
    match &e.kind {
        ExprKind::Name(n) => read.push((n.clone(), e.span)),
        // The free names of a lambda may be sizes of the scheduled program.
        ExprKind::Lambda { .. } => return,
        ExprKind::Comprehension { targets, .. } => bound.extend(targets.iter().map(|t| t.text.clone())),
        // Iterators of printed programs have a dot in their names.
        ExprKind::Attribute(of, name) => {
            if let ExprKind::Name(n) = &of.kind
                && bound.contains(&format!("{n}.{}", name.text))
            {
                return;
            }
        }
        _ => {}
    }
    walk::children(e).into_iter().for_each(|c| expr(c, bound, read));
}
