//! Indices that are in the tensor, and checks of those that may not be. Of a remapped tensor the indices are checked
//! that the program wrote, and not the coordinates which are made of them: of blocks at an edge, some are outside.

use super::beyond::ends;
use super::cursor::PATH;
use super::{Lower, Scope, follow, known, load};
use crate::layout::Flat;
use taffeta_ast::poly::{self, Poly};
use taffeta_ast::stmt::{AssertKind, MessagePart};
use taffeta_ast::{Expr, ExprKind, Op, Stmt, StmtKind, Symbol};

/// Whether accesses to the fibres of a tensor have the indices that the program wrote behind their own.
pub(super) fn carries(flat: &Flat) -> bool {
    follow::refuses(flat) || flat.tensor.format.is_remapped()
}

impl Lower {
    /// The dimensions that the next level of an access stores something of, with their indices and sizes.
    fn indices_at(&self, e: &Expr) -> Vec<(usize, Expr, Expr)> {
        let Some((t, at)) = load(e) else { return Vec::new() };
        let (tensor, k) = &self.fibres[t];
        let flat = &self.tensors[tensor];
        let level = &flat.levels[*k];
        if let Some(d) = level.dimension() {
            return vec![(d, at[PATH].index.clone(), level.size.clone())];
        }
        let shape = &flat.tensor.shape;
        let own = &at[at.len() - shape.len()..];
        level.coord.dims().into_iter().map(|d| (d, own[d].index.clone(), shape[d].clone())).collect()
    }

    /// Whether what an access has at the next level is known to be in the tensor: its indices there are iterators of
    /// loops that stay in their dimensions.
    pub(super) fn is_inside(&self, e: &Expr, bound: &Scope) -> bool {
        self.indices_at(e).iter().all(|(_, index, size)| self.is_coordinate(index, size, bound))
    }

    /// Assertions that the indices that an access has at the next level are in range, where that is not known.
    pub(super) fn range_checks(&self, s: &Stmt, e: &Expr, guard: &Expr, bound: &Scope) -> Vec<Stmt> {
        let all = self.indices_at(e).into_iter();
        let open = all.filter(|(_, index, size)| known(index, bound) && !self.is_coordinate(index, size, bound));
        open.filter_map(|(d, index, size)| Some(in_range(s, &self.fibres[load(e)?.0].0, d, &index, &size, guard)))
            .collect()
    }

    /// The same where nothing is known of iterators.
    pub(super) fn all_range_checks(&self, s: &Stmt, e: &Expr, guard: &Expr) -> Vec<Stmt> {
        let Some((t, _)) = load(e) else { return Vec::new() };
        let tensor = &self.fibres[t].0;
        self.indices_at(e).iter().map(|(d, index, size)| in_range(s, tensor, *d, index, size, guard)).collect()
    }

    /// Whether an index is the iterator of a loop around, or that and something, and stays in the range of the
    /// dimension; or goes round its end: the position that is computed of it is that of its coordinate then.
    fn is_coordinate(&self, index: &Expr, size: &Expr, bound: &Scope) -> bool {
        if self.wrapped.iter().any(|[place, by]| index == place && size == by) {
            return true;
        }
        if let ExprKind::Var(s) = index.kind()
            && let Some(Some([begin, end])) = bound.get(s)
        {
            return ends(begin, Op::Max).iter().any(|b| b.as_int().is_some_and(|b| b >= 0))
                && ends(end, Op::Min).contains(&size);
        }
        let Some(sum) = Poly::of(index) else { return false };
        sum.terms().any(|(atoms, by)| {
            let ([atom], 1) = (atoms, by) else { return false };
            let ExprKind::Var(s) = atom.kind() else { return false };
            let Some(Some([begin, end])) = bound.get(s) else { return false };
            let at = |iter: &Expr| index.plus(&iter.minus(atom));
            let same = |a: &Expr, b: &Expr| poly::equal(a, b) == Some(true);
            ends(begin, Op::Max).iter().any(|b| same(&at(b), &Expr::int(0)))
                && ends(end, Op::Min).iter().any(|e| same(&at(e), size))
        })
    }
}

/// The assertion that an index is in the range of its dimension.
fn in_range(s: &Stmt, tensor: &Symbol, dimension: usize, index: &Expr, size: &Expr, guard: &Expr) -> Stmt {
    let cond = Expr::int(0).less_eq(index).and(&index.less(size));
    let message = vec![
        MessagePart::Text("index ".into()),
        MessagePart::Value(index.clone()),
        MessagePart::Text(format!(" is out of range for dimension {dimension} of `{tensor}`, which has size ")),
        MessagePart::Value(size.clone()),
    ];
    let origin = s.origin().derive("structured", "range");
    let check = Stmt::new(StmtKind::Assert { cond, message, kind: AssertKind::Index }, origin.clone());
    match guard.as_bool() {
        Some(true) => check,
        _ => Stmt::new(StmtKind::If { cond: guard.clone(), then: check, otherwise: None }, origin),
    }
}
