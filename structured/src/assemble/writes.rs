//! Writes into an assembled tensor: their scope, and the coordinates of their elements.

use crate::access;
use taffeta_ast::{Expr, ExprKind, Func, Span, Stmt, StmtKind, Symbol, Tensor};

/// Returns the statements that write a tensor, in order.
pub(super) fn writes(s: &Stmt, tensor: &Symbol) -> Vec<Stmt> {
    let mut all = Vec::new();
    s.walk(&mut |s| match s.kind() {
        StmtKind::Store { tensor: t, .. } | StmtKind::ReduceTo { tensor: t, .. } if t == tensor => all.push(s.clone()),
        _ => {}
    });
    all
}

/// Returns the scope of a tensor: the program, or the body of its declaration.
pub(super) fn scope<'f>(func: &'f Func, tensor: &Tensor) -> &'f Stmt {
    fn declared<'s>(s: &'s Stmt, tensor: &Symbol) -> Option<&'s Stmt> {
        match s.kind() {
            StmtKind::VarDef { tensor: own, body } if own.symbol == *tensor => Some(body),
            kind => kind.inside().find_map(|s| declared(s, tensor)),
        }
    }
    declared(&func.body, &tensor.symbol).unwrap_or(&func.body)
}

/// Returns the statements of a scope, in order, without blocks and declarations around them.
pub(super) fn items(scope: &Stmt) -> Vec<&Stmt> {
    match scope.kind() {
        StmtKind::Seq(all) => all.iter().flat_map(items).collect(),
        StmtKind::VarDef { body, .. } => items(body),
        _ => vec![scope],
    }
}

/// Returns the dimension that each level stores; all dimensions in order, if levels store other coordinates.
pub(super) fn order_of(tensor: &Tensor) -> Vec<usize> {
    tensor.format.order().unwrap_or_else(|| (0..tensor.shape.len()).collect())
}

/// Returns the coordinates of a written element, by level.
pub(super) fn coordinates(s: &Stmt, tensor: &Tensor) -> Vec<Expr> {
    indices(s, &order_of(tensor))
}

/// Returns the indices of a written element in these dimensions.
pub(super) fn indices(s: &Stmt, dims: &[usize]) -> Vec<Expr> {
    let target = access::target(s);
    let Some(ExprKind::Load(_, at)) = target.as_ref().map(Expr::kind) else { return Vec::new() };
    dims.iter().map(|d| at[*d].index.clone()).collect()
}

/// Returns the location of a read of a tensor, reductions into it excepted.
pub(super) fn reads(s: &Stmt, tensor: &Symbol) -> Option<Span> {
    let mut found = None;
    s.walk(&mut |s| {
        let loads = |e: &Expr| e.any(&mut |e| matches!(e.kind(), ExprKind::Load(t, _) if t == tensor));
        if found.is_none() && (s.kind().exprs().into_iter().any(loads) || s.kind().printed().contains(&tensor)) {
            found = Some(s.origin().span());
        }
    });
    found
}
