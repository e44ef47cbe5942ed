//! Workspace for the last level of a tensor, whose elements are written several times or in any order within a fibre:
//! the writes go to a row of a `bytemap`, which is copied at the end of the part of the program that writes the fibre.
//! Reads of the fibre in that part read the row.

use super::writes::{coordinates, items, order_of, reads, scope};
use crate::access;
use std::sync::Arc;
use taffeta_analysis::query::effects;
use taffeta_ast::format::Format;
use taffeta_ast::stmt::{LoopProps, Memory, Role};
use taffeta_ast::{Access, Expr, ExprKind, Extent, Func, Stmt, StmtKind, Symbol, Tensor};

/// Gives a tensor a workspace for its last level; returns the program and the workspace. `None` if the writes have
/// different coordinates at the levels above, or no part of the program has constant ones.
pub(super) fn insert(func: &Func, tensor: &Arc<Tensor>, writes: &[Stmt]) -> Option<(Func, Symbol)> {
    let of = |s: &Stmt| coordinates(s, tensor).split_last().map(|(_, above)| above.to_vec());
    let above = of(writes.first()?)?;
    if !writes.iter().all(|s| of(s).is_some_and(|own| own == above)) {
        return None;
    }
    let part = part(scope(func, tensor), &tensor.symbol, &above)?;
    let last = *order_of(tensor).last()?;
    let name = Symbol::new(format!("{}.row", tensor.symbol.name().replace('.', "_")));
    let format = Format::workspace(1, tensor.format.fill);
    let shape = vec![tensor.shape[last].clone()];
    let row = Tensor { format, ..Tensor::dense(name, tensor.dtype, shape, Role::Workspace) };
    let row = Arc::new(Tensor { memory: Memory::Auto, ..row });
    let new = with_workspace(&part, tensor, &row, (&above, last));
    Some((func.with_body(replaced(&func.body, &part, &new)), row.symbol.clone()))
}

/// Returns the outermost statement that contains all writes of a tensor and has constant coordinates above the last
/// level; a block of which one statement alone accesses the tensor is left out. Reads after the last write of the whole
/// program are of the tensor itself.
fn part(scope: &Stmt, tensor: &Symbol, above: &[Expr]) -> Option<Stmt> {
    let is_constant = |s: &Stmt| {
        let mut bound = Vec::new();
        s.walk(&mut |s| {
            if let StmtKind::For { iter, .. } = s.kind() {
                bound.push(iter.clone());
            }
        });
        let bound: Vec<&Symbol> = bound.iter().collect();
        above.iter().all(|e| !effects::mentions(e, &bound) && effects::loads(e).is_disjoint(s.writes()))
    };
    let mut s = scope.clone();
    let mut is_inside = false;
    loop {
        let accesses = |s: &Stmt| s.writes_to(tensor) || is_inside && reads(s, tensor).is_some();
        let writing: Vec<Stmt> = items(&s).into_iter().filter(|s| accesses(s)).cloned().collect();
        let alone = match &writing[..] {
            [one] => Some(one.clone()),
            _ => None,
        };
        if is_constant(&s) {
            // Coordinates do not change inside of a statement of the block either.
            return Some(alone.unwrap_or(s));
        }
        s = match alone?.kind() {
            StmtKind::For { body, .. } => body.clone(),
            StmtKind::If { then, otherwise: None, .. } => then.clone(),
            _ => return None,
        };
        is_inside = true;
    }
}

/// Declares the workspace around a statement that writes into it instead, and copies its elements at the end.
fn with_workspace(part: &Stmt, tensor: &Tensor, row: &Arc<Tensor>, (above, last): (&[Expr], usize)) -> Stmt {
    let origin = || part.origin().derive("assemble", "copy");
    let written = redirected(part, tensor, row, (above, last));
    let j = Symbol::new(format!("{}.d{last}", tensor.symbol.name().replace('.', "_")));
    let mut indices = vec![Access::from(Expr::var(&j)); tensor.shape.len()];
    for (d, index) in order_of(tensor).into_iter().zip(above) {
        indices[d] = index.clone().into();
    }
    let value = row.load([Expr::var(&j)]);
    let body = Stmt::new(StmtKind::Store { tensor: tensor.symbol.clone(), indices, value }, origin());
    let extent = Extent::Range { begin: Expr::int(0), end: tensor.shape[last].clone(), step: Expr::int(1) };
    let copy = Stmt::new(StmtKind::For { iter: j, extent, props: LoopProps::default(), body }, origin());
    let body = Stmt::seq([written, copy], origin());
    Stmt::new(StmtKind::VarDef { tensor: row.clone(), body }, origin())
}

/// Redirects the accesses to a fibre of a tensor to the row of its last level.
fn redirected(s: &Stmt, tensor: &Tensor, row: &Tensor, (above, last): (&[Expr], usize)) -> Stmt {
    let order = order_of(tensor);
    let is_of_fibre = |at: &[Access]| order.iter().zip(above).all(|(d, index)| at[*d].index == *index);
    fn read(e: &Expr, tensor: &Symbol, to: &dyn Fn(&[Access]) -> Option<Expr>) -> Expr {
        let e = e.map_children(&mut |e| read(e, tensor, to));
        match e.kind() {
            ExprKind::Load(t, at) if t == tensor => to(at).unwrap_or(e),
            _ => e,
        }
    }
    let to = |at: &[Access]| is_of_fibre(at).then(|| row.load([at[last].index.clone()]));
    let reads = &mut |e: &Expr| read(e, &tensor.symbol, &to);
    let inner = s.map(&mut |s| redirected(s, tensor, row, (above, last)), reads);
    match inner.kind() {
        StmtKind::Store { tensor: t, indices, .. } | StmtKind::ReduceTo { tensor: t, indices, .. }
            if *t == tensor.symbol =>
        {
            access::with_target(&inner, &Expr::load(&row.symbol, vec![indices[last].clone()], row.dtype))
        }
        _ => inner,
    }
}

/// Replaces a statement in a tree.
pub(super) fn replaced(s: &Stmt, old: &Stmt, new: &Stmt) -> Stmt {
    if s.id() == old.id() {
        return new.clone();
    }
    if !s.may_hold(old.id()) {
        return s.clone();
    }
    match s.kind() {
        StmtKind::Seq(all) => Stmt::seq(all.iter().map(|s| replaced(s, old, new)), s.origin().clone()),
        _ => s.map(&mut |s| replaced(s, old, new), &mut Expr::clone),
    }
}
