//! Replacement of accesses to tensors that get another layout or are replaced by another tensor.
//!
//! **Does**: gives every access to some tensors another tensor and other indices, in loads, stores, reductions and
//! prints, and renames the tensors in the reductions of loops.
//!
//! **Requires**: the new tensors are alive in the statement; none of the old ones is declared in it, passed to an
//! outside function in it or structured; for a tensor that a print shows, new indices only come before the old ones.
//!
//! **Ensures**: ids, origins and bound symbols stay.
//!
//! **Example**: with `z` for `y`, and indices in the opposite order
//!
//! before
//! ```text
//! y[i, j] += y[j, i] * x[i]
//! ```
//! after
//! ```text
//! z[j, i] += z[i, j] * x[i]
//! ```
//!
//! **Leaves alone**: accesses to other tensors, except in their subscripts.

use super::substitute;
use rustc_hash::FxHashMap;
use taffeta_ast::stmt::PrintPart;
use taffeta_ast::{Access, Expr, ExprKind, Stmt, StmtKind, Symbol};

/// Rewrites a statement with new tensors for old ones, and new indices computed from the old ones.
pub fn run(stmt: &Stmt, names: &FxHashMap<Symbol, Symbol>, indices: &dyn Fn(Vec<Access>) -> Vec<Access>) -> Stmt {
    let reads = substitute::rebuild(stmt, &mut |e| match e.kind() {
        ExprKind::Load(t, at) if names.contains_key(t) => Expr::load(&names[t], indices(at.clone()), e.dtype()),
        _ => e,
    });
    targets(&reads, names, indices)
}

/// Rewrites the targets of stores and reductions, reductions of loops, and prints.
fn targets(s: &Stmt, names: &FxHashMap<Symbol, Symbol>, indices: &dyn Fn(Vec<Access>) -> Vec<Access>) -> Stmt {
    let here = match s.kind().clone() {
        StmtKind::Store { tensor, indices: at, value } if names.contains_key(&tensor) => {
            s.with_kind(StmtKind::Store { tensor: names[&tensor].clone(), indices: indices(at), value })
        }
        StmtKind::ReduceTo { tensor, indices: at, op, value } if names.contains_key(&tensor) => {
            s.with_kind(StmtKind::ReduceTo { tensor: names[&tensor].clone(), indices: indices(at), op, value })
        }
        StmtKind::For { iter, extent, mut props, body }
            if props.reductions.iter().any(|r| names.contains_key(&r.tensor)) =>
        {
            for r in &mut props.reductions {
                r.tensor = names.get(&r.tensor).unwrap_or(&r.tensor).clone();
            }
            s.with_kind(StmtKind::For { iter, extent, props, body })
        }
        StmtKind::Print { parts } => {
            s.with_kind(StmtKind::Print { parts: parts.into_iter().map(|p| shown(p, names, indices)).collect() })
        }
        _ => s.clone(),
    };
    here.map(&mut |c| targets(c, names, indices), &mut Expr::clone)
}

/// Rewrites a part of a print. A printed tensor has leading indices alone, so placeholders stand for those of the
/// dimensions that are printed in full.
fn shown(
    part: PrintPart,
    names: &FxHashMap<Symbol, Symbol>,
    indices: &dyn Fn(Vec<Access>) -> Vec<Access>,
) -> PrintPart {
    match part {
        PrintPart::Tensor { tensor, at, shape } if names.contains_key(&tensor) => {
            let (first, below) = (at.len(), shape.len());
            let probes = shape.iter().map(|_| Expr::var(&Symbol::new("below")));
            let old: Vec<Access> = at.into_iter().chain(probes).map(Access::from).collect();
            let new = indices(old.clone());
            debug_assert!(new.ends_with(&old[first..]), "a print keeps the dimensions that it shows");
            let at = new[..new.len() - below].iter().map(|a| a.index.clone()).collect();
            PrintPart::Tensor { tensor: names[&tensor].clone(), at, shape }
        }
        part => part,
    }
}
