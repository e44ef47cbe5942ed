//! Indices known to be in the tensor, and bounds checks of the others. For a remapped tensor, the indices of the
//! program are checked, and not the coordinates computed from them: blocks at an edge are partly outside.

use super::cursor::{Cursor, PATH};
use super::exprs::{known, load, loads};
use super::scalars::replaced;
use super::shared_pattern;
use super::state::{Bindings, Lower};
use crate::access;
use crate::layout::TensorLevels;
use rustc_hash::FxHashSet;
use std::collections::VecDeque;
use taffeta_analysis::query::effects;
use taffeta_ast::poly::{self, Poly, tidy};
use taffeta_ast::stmt::{AssertKind, MessagePart};
use taffeta_ast::{Expr, ExprKind, Extent, Op, Stmt, StmtKind, Symbol};

/// Returns whether accesses to the fibres of a tensor carry the indices of the program after their coordinates.
pub(super) fn carries(flat: &TensorLevels) -> bool {
    shared_pattern::refuses(flat) || flat.tensor.format.is_remapped()
}

impl Lower {
    /// Returns the dimensions that the next level of an access depends on, with their indices and sizes.
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

    /// Returns whether an access is known to be in the tensor at the next level: its indices there are iterators of
    /// loops that stay in their dimensions.
    pub(super) fn is_inside(&self, e: &Expr, bound: &Bindings) -> bool {
        self.indices_at(e).iter().all(|(_, index, size)| self.is_coordinate(index, size, bound))
    }

    /// Returns whether a loop over this range stays in the dimension that a cursor traverses, by the constant distances
    /// of its ends from those of the dimension.
    pub(super) fn stays_inside(&self, c: &Cursor, [begin, end]: [&Expr; 2]) -> bool {
        let (tensor, k) = &self.fibres[&c.fibre];
        let level = &self.tensors[tensor].levels[*k];
        let room = |e: Expr| tidy(&e).as_int().is_some_and(|room| room >= 0);
        level.dimension().is_some()
            && ends(begin, Op::Max).iter().any(|b| room(c.coordinate(b)))
            && ends(end, Op::Min).iter().any(|e| room(level.size.minus(&c.coordinate(e))))
    }

    /// Returns whether the indices of an access at the next level read one of these tensors.
    pub(super) fn is_made_of(&self, e: &Expr, tensors: &FxHashSet<Symbol>) -> bool {
        self.indices_at(e).iter().any(|(_, index, _)| loads(index, tensors))
    }

    /// Returns whether a loop has an access to a position that is known before it, and exists only if it has
    /// iterations: the diagonal of `A[i, i]`, which a matrix without rows does not have.
    pub(super) fn needs_nonempty_loop(&self, body: &Stmt, iter: &Symbol, bound: &Bindings) -> bool {
        if !self.tensors.values().any(|flat| flat.tensor.format.is_remapped()) {
            return false;
        }
        let mut rests = false;
        let mut look = |e: &Expr| {
            let Some((t, at)) = load(e) else { return };
            let Some((tensor, k)) = self.fibres.get(t) else { return };
            let flat = &self.tensors[tensor];
            if rests || !flat.tensor.format.is_remapped() || !at[..PATH].iter().all(|a| known(&a.index, bound)) {
                return;
            }
            let own = &at[at.len() - flat.tensor.shape.len()..];
            let above = flat.levels[..*k].iter().flat_map(|l| l.coord.dims());
            rests = above.into_iter().any(|d| effects::mentions(&own[d].index, &[iter]));
        };
        body.walk(&mut |s| access::exprs(s).iter().for_each(|e| e.walk(&mut look)));
        rests
    }

    /// Returns assertions that the indices of an access at the next level are in range, where that is not known. Before
    /// a loop they are about its first iteration: for `A[i, i + k]`, whose diagonal is known there, about `k`.
    pub(super) fn range_checks(&self, s: &Stmt, e: &Expr, guard: &Expr, bound: &Bindings) -> Vec<Stmt> {
        let first = |index: Expr| match s.kind() {
            StmtKind::For { iter, extent: Extent::Range { begin, .. }, .. } => replaced(&index, iter, begin),
            _ => index,
        };
        let all = self.indices_at(e).into_iter().map(|(d, index, size)| (d, first(index), size));
        let open = all.filter(|(_, index, size)| known(index, bound) && !self.is_coordinate(index, size, bound));
        open.filter_map(|(d, index, size)| Some(self.in_range(s, (load(e)?.0, d), &index, &size, guard))).collect()
    }

    /// Returns the indices of an access at the next level that may be out of range, with their sizes; `None` if one of
    /// them is not known.
    pub(super) fn open_indices(&self, e: &Expr, bound: &Bindings) -> Option<Vec<[Expr; 2]>> {
        let all = self.indices_at(e);
        let open = all.into_iter().filter(|(_, index, size)| !self.is_coordinate(index, size, bound));
        open.map(|(_, index, size)| known(&index, bound).then_some([index, size])).collect()
    }

    /// Returns the assertions of [`Lower::range_checks`] without knowledge of iterators.
    pub(super) fn all_range_checks(&self, s: &Stmt, e: &Expr, guard: &Expr) -> Vec<Stmt> {
        let Some((t, _)) = load(e) else { return Vec::new() };
        self.indices_at(e).iter().map(|(d, index, size)| self.in_range(s, (t, *d), index, size, guard)).collect()
    }

    /// Builds the check of the index in dimension `d` of a fibre's tensor.
    fn in_range(&self, s: &Stmt, (fibre, d): (&Symbol, usize), index: &Expr, size: &Expr, guard: &Expr) -> Stmt {
        let tensor = &self.fibres[fibre].0;
        match self.stands_for.borrow().get(tensor) {
            Some((of, dims)) => in_range(s, of, dims[d], index, size, guard),
            None => in_range(s, tensor, d, index, size, guard),
        }
    }

    /// Returns whether an index is the iterator of an enclosing loop, or its sum with another term, and stays in the
    /// range of the dimension; or whether it is registered as in range, as an index that wraps around the end of the
    /// dimension.
    pub(super) fn is_coordinate(&self, index: &Expr, size: &Expr, bound: &Bindings) -> bool {
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

/// Returns an expression and, if it applies `op`, a maximum or minimum, the operands of that, nested ones included.
fn ends(e: &Expr, op: Op) -> Vec<&Expr> {
    let (mut out, mut pending) = (Vec::new(), VecDeque::from([e]));
    while let Some(e) = pending.pop_front() {
        if let ExprKind::Apply(own, args) = e.kind()
            && *own == op
        {
            pending.extend(args);
        }
        out.push(e);
    }
    out
}

/// Returns the assertion that an index is in the range of its dimension.
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
