//! Accesses to a tensor with shared values, each with the statements around it, and the loops over the elements of one
//! value.

use taffeta_ast::format::Format;
use taffeta_ast::{Access, Expr, ExprKind, Extent, Func, Stmt, StmtKind, Symbol, Tensor, poly};

/// Access to a tensor.
pub(super) struct Site {
    /// Enclosing statements, outermost first, ending with the access's own.
    pub(super) path: Vec<Stmt>,
    pub(super) indices: Vec<Access>,
    pub(super) how: AccessKind,
}

/// Kind of an access.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum AccessKind {
    Reads,
    Stores,
    Reduces,
}

impl Site {
    pub(super) fn stmt(&self) -> &Stmt {
        &self.path[self.path.len() - 1]
    }

    /// Returns whether the access is in a statement.
    pub(super) fn is_in(&self, s: &Stmt) -> bool {
        self.path.iter().any(|p| p.id() == s.id())
    }
}

/// Returns whether a format has a pattern, and one stored value for several elements.
pub(super) fn is_shared(format: &Format) -> bool {
    !format.is_injective() && format.pattern.is_some()
}

/// Returns the accesses to a tensor, in program order.
pub(super) fn sites(func: &Func, tensor: &Symbol) -> Vec<Site> {
    let mut out = Vec::new();
    collect(&func.body, tensor, &mut Vec::new(), &mut out);
    out
}

pub(super) fn collect(s: &Stmt, tensor: &Symbol, path: &mut Vec<Stmt>, out: &mut Vec<Site>) {
    path.push(s.clone());
    let mut add = |indices: &[Access], how| out.push(Site { path: path.clone(), indices: indices.to_vec(), how });
    for e in s.kind().exprs() {
        e.walk(&mut |e| match e.kind() {
            ExprKind::Load(t, at) if t == tensor => add(at, AccessKind::Reads),
            _ => {}
        });
    }
    match s.kind() {
        StmtKind::Store { tensor: t, indices, .. } if t == tensor => add(indices, AccessKind::Stores),
        StmtKind::ReduceTo { tensor: t, indices, .. } if t == tensor => add(indices, AccessKind::Reduces),
        _ => {}
    }
    s.kind().children().into_iter().for_each(|s| collect(s, tensor, path, out));
    path.pop();
}

/// Returns the loops, as positions in the path to a write, whose iterators distinguish the elements of one value; each
/// runs over all indices of its dimension. `None` if there are no such loops.
pub(super) fn loops_over_values(tensor: &Tensor, site: &Site) -> Option<Vec<usize>> {
    let same = tensor.format.identity(tensor.ndim()).same;
    let declares = |s: &Stmt| matches!(s.kind(), StmtKind::VarDef { tensor: t, .. } if t.symbol == tensor.symbol);
    let scope = site.path.iter().position(declares).map_or(0, |k| k + 1);
    let mut found = Vec::new();
    for d in (0..tensor.ndim()).filter(|d| !same.contains(d)) {
        let ExprKind::Var(iter) = site.indices[d].index.kind() else { return None };
        let is = |s: &Stmt| matches!(s.kind(), StmtKind::For { iter: i, .. } if i == iter);
        let k = site.path.iter().position(is).filter(|k| *k >= scope && !found.contains(k))?;
        let StmtKind::For { extent, .. } = site.path[k].kind() else { return None };
        if !is_whole(extent, &tensor.shape[d]) {
            return None;
        }
        found.push(k);
    }
    found.sort_unstable();
    (!found.is_empty()).then_some(found)
}

/// Returns whether a loop visits all indices of a dimension, upwards or downwards.
pub(super) fn is_whole(extent: &Extent, size: &Expr) -> bool {
    let Extent::Range { begin, end, step } = extent else { return false };
    let equal = |a: &Expr, b: &Expr| poly::equal(a, b) == Some(true);
    match step.as_int() {
        Some(1) => begin.as_int() == Some(0) && equal(end, size),
        Some(-1) => equal(begin, &size.minus(&Expr::int(1))) && end.as_int() == Some(-1),
        _ => false,
    }
}

/// Returns whether an expression depends on a loop inside of the statement, or on a tensor that the statement writes.
pub(super) fn varies_in(e: &Expr, s: &Stmt) -> bool {
    let (mut bound, written) = (Vec::new(), crate::query::effects::writes(s));
    s.walk(&mut |s| {
        if let StmtKind::For { iter, .. } = s.kind() {
            bound.push(iter.clone());
        }
    });
    e.any(&mut |e| match e.kind() {
        ExprKind::Var(v) => bound.contains(v),
        ExprKind::Load(t, _) => written.contains(t),
        _ => false,
    })
}
