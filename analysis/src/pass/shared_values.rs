//! Writes to tensors with shared values, where one stored value stands for several elements (runs, symmetric matrices).
//!
//! **Does**: turns every write to such a tensor into a store on which all elements of one value agree: each element has
//! the value that it would have in a dense tensor, and a reduction counts once. In loop nests that treat all elements
//! of a value alike, an element that is reduced into, or read between two writes, is promoted to a scalar. Where
//! agreement is not proved, the elements are in a dense tensor, and are compared after the last write.
//!
//! **Requires**: a logical program.
//!
//! **Ensures**: any of the stores to one value may come last. An element without a write is the fill.
//!
//! **Example**: `B` has the pattern of `A`, which has runs
//!
//! before
//! ```text
//! for i in range(n):
//!     for j in range(m):
//!         B[i, j] += A[i, j]
//! ```
//! after
//! ```text
//! B_before: f64[n, m] @ pattern(A) = empty((n, m), f64)
//! for i in range(n):
//!     for j in range(m):
//!         B_before[i, j] = B[i, j]
//! for i in range(n):
//!     for j in range(m):
//!         B_now = empty((), f64)
//!         B_now = B_before[i, j]
//!         B_now += A[i, j]
//!         B[i, j] = B_now
//! ```
//!
//! **Leaves alone**: adjoints, whose elements are summed ([`Format::sums`]), and parameters.

mod alike;
mod apart;
mod scalars;

use std::sync::Arc;
use taffeta_ast::format::Format;
use taffeta_ast::{Access, Diagnostics, Expr, ExprKind, Extent, Func, Stmt, StmtKind, Symbol, Tensor, poly};

/// Rewrites the program so that any of the stores to one value may come last.
///
/// # Errors
///
/// Writes that are not proved to agree, to a tensor that does not store every element.
pub fn run(func: &Func) -> Result<Func, Diagnostics> {
    let all = sharing(func);
    let mut dense: Vec<Symbol> = Vec::new();
    loop {
        let (own, rest): (Vec<_>, Vec<_>) = all.iter().partition(|t| dense.contains(&t.symbol));
        let apart = own.into_iter().try_fold(func.clone(), |func, t| apart::run(&func, t))?;
        let new = rest.iter().fold(apart, |func, t| scalars::run(&func, t));
        let before = dense.len();
        dense.extend(rest.iter().filter(|t| !alike::are(&new, t)).map(|t| t.symbol.clone()));
        if dense.len() == before {
            return Ok(new);
        }
    }
}

/// Returns the local tensors and results with values that stand for several elements, unless these are summed.
fn sharing(func: &Func) -> Vec<Arc<Tensor>> {
    let is = |t: &Arc<Tensor>| is_shared(&t.format) && !t.format.sums;
    let mut all: Vec<Arc<Tensor>> = func.results.iter().filter(|t| is(t)).cloned().collect();
    func.body.walk(&mut |s| match s.kind() {
        StmtKind::VarDef { tensor, .. } if is(tensor) => all.push(tensor.clone()),
        _ => {}
    });
    all
}

fn is_shared(format: &Format) -> bool {
    !format.is_injective() && format.pattern.is_some()
}

/// Access to a tensor.
struct Site {
    /// Enclosing statements, outermost first, ending with the access's own.
    path: Vec<Stmt>,
    indices: Vec<Access>,
    how: How,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    Reads,
    Stores,
    Reduces,
}

impl Site {
    fn stmt(&self) -> &Stmt {
        &self.path[self.path.len() - 1]
    }

    /// Returns whether the access is in a statement.
    fn is_in(&self, s: &Stmt) -> bool {
        self.path.iter().any(|p| p.id() == s.id())
    }
}

/// Returns the accesses to a tensor, in program order.
fn sites(func: &Func, tensor: &Symbol) -> Vec<Site> {
    let mut out = Vec::new();
    collect(&func.body, tensor, &mut Vec::new(), &mut out);
    out
}

fn collect(s: &Stmt, tensor: &Symbol, path: &mut Vec<Stmt>, out: &mut Vec<Site>) {
    path.push(s.clone());
    let mut add = |indices: &[Access], how| out.push(Site { path: path.clone(), indices: indices.to_vec(), how });
    for e in s.kind().exprs() {
        e.walk(&mut |e| match e.kind() {
            ExprKind::Load(t, at) if t == tensor => add(at, How::Reads),
            _ => {}
        });
    }
    match s.kind() {
        StmtKind::Store { tensor: t, indices, .. } if t == tensor => add(indices, How::Stores),
        StmtKind::ReduceTo { tensor: t, indices, .. } if t == tensor => add(indices, How::Reduces),
        _ => {}
    }
    s.kind().children().into_iter().for_each(|s| collect(s, tensor, path, out));
    path.pop();
}

/// Returns the loops, as positions in the path to a write, whose iterators distinguish the elements of one value; each
/// runs over all indices of its dimension. `None` if there are no such loops.
fn loops_over_values(tensor: &Tensor, site: &Site) -> Option<Vec<usize>> {
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
fn is_whole(extent: &Extent, size: &Expr) -> bool {
    let Extent::Range { begin, end, step } = extent else { return false };
    let equal = |a: &Expr, b: &Expr| poly::equal(a, b) == Some(true);
    match step.as_int() {
        Some(1) => begin.as_int() == Some(0) && equal(end, size),
        Some(-1) => equal(begin, &size.minus(&Expr::int(1))) && end.as_int() == Some(-1),
        _ => false,
    }
}

/// Returns whether an expression depends on a loop inside of the statement, or on a tensor that the statement writes.
fn varies_in(e: &Expr, s: &Stmt) -> bool {
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

#[cfg(test)]
mod tests;
