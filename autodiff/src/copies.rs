//! Zero initialisation of tensors before snapshots of them.
//!
//! **Does**: initialises a tensor to zeros where a snapshot of it may read uninitialised elements. A snapshot copies
//! all elements, also those that are written later, which nothing reads in the copy.
//!
//! ```text
//! x = empty((n,), f64)                       x = empty((n,), f64)
//! for i in range(n):                         for x.d0 in range(n):
//!     x[i] = b[i]                                x[x.d0] = 0.0
//!     for x.d0 in range(n):             →    for i in range(n):
//!         x.tape[i, x.d0] = x[x.d0]              …
//!     for j in range(i):
//!         x[i] += b[j] * x[j]
//! ```
//!
//! **Requires**: a gradient before schedules. **Leaves alone**: parameters; tensors that are written in full before
//! they are copied (`taffeta_analysis::query::uninitialized`); copies of single elements, which the program itself
//! reads there.

use crate::build;
use crate::data::{Decision, Residual};
use rustc_hash::FxHashSet;
use taffeta_analysis::query::reference::Reference;
use taffeta_analysis::query::uninitialized::exposed;
use taffeta_analysis::tree;
use taffeta_ast::{Access, ExprKind, Func, Literal, Stmt, StmtId, StmtKind, Symbol};

/// Initialises tensors so that no snapshot reads an unwritten element.
pub(crate) fn filled(func: &Func, residuals: &[Residual]) -> Func {
    let kept: FxHashSet<&Symbol> =
        residuals.iter().filter(|r| r.decision == Decision::Copies).map(|r| &r.kept.symbol).collect();
    if kept.is_empty() {
        return func.clone();
    }
    let mut copied: Vec<(Symbol, FxHashSet<StmtId>)> = Vec::new();
    func.body.walk(&mut |s| {
        if let StmtKind::Store { tensor, value, .. } = s.kind()
            && let ExprKind::Load(from, at) = value.kind()
            && kept.contains(tensor)
            && is_any_element(at)
            && func.params.iter().all(|p| p.tensor.symbol != *from)
        {
            match copied.iter_mut().find(|(t, _)| t == from) {
                Some((_, all)) => drop(all.insert(s.id())),
                None => copied.push((from.clone(), FxHashSet::from_iter([s.id()]))),
            }
        }
    });
    let tensors: Vec<&Symbol> = copied.iter().map(|(t, _)| t).collect();
    let is_copy = |r: &Reference| copied.iter().any(|(t, copies)| *t == r.tensor && copies.contains(&r.site.stmt.id()));
    exposed(func, &tensors, &is_copy).into_iter().fold(func.clone(), |func, tensor| {
        tree::in_scope(&func, &tensor, &mut |of, body| {
            let origin = body.origin().clone();
            Stmt::seq([build::fill(of, Literal::zero(of.dtype), &origin), body.clone()], origin)
        })
    })
}

/// Returns whether indices are plain iterators, as those of a copy of all elements are.
fn is_any_element(at: &[Access]) -> bool {
    !at.is_empty() && at.iter().all(|a| matches!(a.index.kind(), ExprKind::Var(_)))
}
