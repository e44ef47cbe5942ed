//! Queries on the accesses and effects of expressions and statements.

use super::state::Bindings;
use crate::access;
use rustc_hash::FxHashSet;
use taffeta_ast::{Access, Expr, ExprKind, Extent, Op, Span, Stmt, StmtKind, Symbol};

/// Returns the source location of a statement; a statement assembled by schedule steps has that of its first part.
pub(super) fn source_span(s: &Stmt) -> Span {
    match s.origin().span() {
        Span::NONE => s.kind().inside().map(source_span).find(|span| *span != Span::NONE).unwrap_or(Span::NONE),
        span => span,
    }
}

/// Returns the first statement with an effect, which keeps a loop over every coordinate alive.
pub(super) fn first_effect(s: &Stmt) -> Option<Stmt> {
    let mut first = None;
    s.walk(&mut |s| {
        let is_effect = matches!(
            s.kind(),
            StmtKind::Store { .. }
                | StmtKind::ReduceTo { .. }
                | StmtKind::Assert { .. }
                | StmtKind::Print { .. }
                | StmtKind::Call { .. }
        );
        if is_effect && first.is_none() {
            first = Some(s.clone());
        }
    });
    first
}

pub(super) fn load(e: &Expr) -> Option<(&Symbol, &[Access])> {
    match e.kind() {
        ExprKind::Load(t, at) => Some((t, at)),
        _ => None,
    }
}

/// Calls `f` on every subexpression, with the condition under which it is evaluated.
pub(super) fn guarded(e: &Expr, guard: &Expr, f: &mut dyn FnMut(&Expr, &Expr)) {
    let and = |cond: &Expr| if guard.as_bool() == Some(true) { cond.clone() } else { guard.and(cond) };
    match e.kind() {
        ExprKind::Apply(op @ (Op::And | Op::Or | Op::Select), args) => {
            guarded(&args[0], guard, f);
            let holds = |first: bool| and(&if first { args[0].clone() } else { args[0].negate() });
            guarded(&args[1], &holds(*op != Op::Or), f);
            args[2..].iter().for_each(|e| guarded(e, &holds(false), f));
        }
        _ => e.children().into_iter().for_each(|e| guarded(e, guard, f)),
    }
    f(e, guard);
}

/// Calls `f` on every expression of a statement and of nested statements, with the condition under which its statement
/// evaluates it, and whether that statement is always executed.
pub(super) fn each_access(s: &Stmt, always: bool, f: &mut dyn FnMut(&Expr, &Expr, bool)) {
    for e in access::exprs(s) {
        guarded(&e, &Expr::bool(true), &mut |e, guard| f(e, guard, always));
    }
    let always = always && matches!(s.kind(), StmtKind::Seq(_) | StmtKind::VarDef { .. });
    s.kind().children().into_iter().for_each(|s| each_access(s, always, f));
}

/// Returns the range of a loop with step 1.
pub(super) fn range(extent: &Extent) -> Option<[Expr; 2]> {
    match extent {
        Extent::Range { begin, end, step } if step.as_int() == Some(1) => Some([begin.clone(), end.clone()]),
        _ => None,
    }
}

/// Returns whether an expression reads one of these tensors.
pub(super) fn loads(e: &Expr, tensors: &FxHashSet<Symbol>) -> bool {
    e.any(&mut |e| load(e).is_some_and(|(t, _)| tensors.contains(t)))
}

/// Returns whether an expression mentions bound names only.
pub(super) fn known(e: &Expr, bound: &Bindings) -> bool {
    let mut known = true;
    e.walk(&mut |e| {
        if let ExprKind::Var(s) = e.kind() {
            known &= bound.contains_key(s);
        }
    });
    known
}
