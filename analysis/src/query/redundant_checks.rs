//! Redundant index checks: proof that an index which a statement checks is also checked elsewhere in the program, in
//! some iteration.
//!
//! ```text
//! for e in range(m):                       for e in range(m):
//!     t[e] = x[k[e]]      # k[e] < n           y[e] = x[k[e]] + z[e]      # k[e] < n, for the same e
//! ```
//!
//! The set of states in which a check is made is over-approximated; for every other check of the same index and size,
//! the set of states in which some instance of it has the same index is under-approximated. isl subtracts the latter
//! from the former, as for kills. Indices that are read from a tensor are equal where their positions in the tensor
//! are, if nothing writes that tensor.

use super::Unproved;
use super::depend::Dependences;
use super::instance::Relation;
use super::reference::{Reference, Site, Step, Use};
use std::sync::Arc;
use taffeta_ast::stmt::Role;
use taffeta_ast::{DType, Expr, ExprKind, StmtId, Symbol, Tensor, poly};

/// Maximum number of similar checks that are considered.
const MAX_ASKED: usize = 8;

/// Checked index.
struct Index {
    /// Tensor that the index is read from, and the types that it is cast to.
    read: Option<(Symbol, Vec<DType>)>,
    /// Position in that tensor; otherwise the index itself.
    place: Vec<Expr>,
}

impl Index {
    fn of(e: &Expr) -> Index {
        let (mut inner, mut casts) = (e, Vec::new());
        while let ExprKind::Cast(of) = inner.kind() {
            casts.push(inner.dtype());
            inner = of;
        }
        match inner.kind() {
            ExprKind::Load(t, at) => {
                Index { read: Some((t.clone(), casts)), place: at.iter().map(|a| a.index.clone()).collect() }
            }
            _ => Index { read: None, place: vec![e.clone()] },
        }
    }

    /// Returns a reference to the position, at the site of the check.
    fn at(self, site: &Arc<Site>, guards: &[(Expr, bool)]) -> Reference {
        // The shape is empty, so that no bounds of the position are assumed: in-range facts are the property in
        // question.
        let declared = Arc::new(Tensor::dense(Symbol::new("index"), DType::I64, Vec::new(), Role::Workspace));
        Reference {
            site: site.clone(),
            tensor: declared.symbol.clone(),
            kind: Use::Read,
            indices: Some(self.place),
            guards: guards.to_vec(),
            declared,
            ordered: false,
            scope: 0,
            place: 0,
            class: 0,
            broad: 0,
        }
    }
}

impl Dependences<'_> {
    /// Proves that whenever the statement checks an index, one of the references that `by` selects checks the same
    /// index, before or after.
    pub fn is_checked_elsewhere(&self, stmt: StmtId, check: &Unproved, by: &dyn Fn(&Reference) -> bool) -> bool {
        let here = |r: &&Reference| r.site.stmt.id() == stmt;
        let Some(r) = self.of(&check.tensor).find(here) else { return false };
        let (site, Some(size)) = (&r.site, r.declared.shape.get(check.dim)) else { return false };
        let ours = Index::of(&check.index);
        let body = &self.func().body;
        if ours.read.as_ref().is_some_and(|(t, _)| body.writes().contains(t)) {
            return false;
        }
        let mut others: Vec<Reference> = Vec::new();
        for r in self.references().iter().filter(|r| r.site.stmt.id() != stmt && by(r)) {
            for (theirs, dim) in r.indices.iter().flatten().zip(&r.declared.shape) {
                let index = Index::of(theirs);
                if index.read == ours.read && poly::equal(dim, size) == Some(true) {
                    others.push(index.at(&r.site, &r.guards));
                }
            }
        }
        // References in the most similar loops come first.
        others.sort_by_key(|r| {
            (r.site.loops().count().abs_diff(site.loops().count()), r.indices != Some(ours.place.clone()))
        });
        others.truncate(MAX_ASKED);
        let check = ours.at(site, &[]);
        let loops = |steps: &[Step]| steps.iter().filter(|s| matches!(s, Step::Loop { .. })).count();
        let of = |r: &Reference| vec![vec![Relation::Any; loops(&check.site.path[..r.site.common(&check.site)])]];
        let asked: Vec<_> = others.iter().map(|r| (r, of(r))).collect();
        !asked.is_empty() && self.is_covered(&check, &asked, body)
    }
}
