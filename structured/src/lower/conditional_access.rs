//! Operands that are evaluated under a condition: if their accesses need statements (a search that may be out of range,
//! or a check whose condition needs one), they are evaluated in a branch. Accesses of the condition are searched
//! before, for the whole statement: where a fill decides which operand is chosen, no branch is left. The value of a
//! branch does not derive from the fill ([`taffeta_analysis::pass::fill_propagation`]).
//!
//! ```text
//! s += A[k[j]] if x[j] > 0.0 else 0.0
//!
//! if x[j] > 0.0: chosen = A[k[j]]                        searched, or looked up, where it is in range
//! else:          chosen = 0.0
//! s += chosen
//! ```
//!
//! A value that `and` or `or` decides without the second operand may still derive from the fill: an element that the
//! operand reads counts as not stored where it is out of range. A sum is split by that, without a branch:
//!
//! ```text
//! s += x[j] if j > 0 and A[n - j] > 0.0 else 0.0
//!
//! if n - j < n: s += x[j] if j > 0 and A[n - j] > 0.0 else 0.0              searched first, where it is in range
//! else:         s += x[j] if j > 0 and 0.0 > 0.0 else 0.0
//! ```

use super::exprs::{guarded, load};
use super::random_access::RequiredSearch;
use super::state::{Bindings, Lower};
use crate::access;
use std::sync::Arc;
use taffeta_analysis::pass::substitute;
use taffeta_ast::stmt::Role;
use taffeta_ast::{Expr, ExprKind, Op, Stmt, StmtKind, Symbol, Tensor};

impl Lower {
    /// Returns the outermost lazy operator (`and`, `or`, `select`) of a statement that has to become a branch.
    pub(super) fn lazy(&self, s: &Stmt, bound: &Bindings) -> Option<Expr> {
        s.kind().exprs().into_iter().find_map(|e| self.lazy_in(s, e, None, false, bound))
    }

    /// Searches an expression for the operator that [`Lower::lazy`] returns. `outermost`: the outermost lazy operator
    /// around it; `asks`: whether an enclosing condition reads structured tensors.
    fn lazy_in(&self, s: &Stmt, e: &Expr, outermost: Option<&Expr>, asks: bool, bound: &Bindings) -> Option<Expr> {
        if let ExprKind::Apply(Op::And | Op::Or | Op::Select, args) = e.kind() {
            let asking = asks || self.has_access(&args[0]);
            return self
                .lazy_in(s, &args[0], outermost, asks, bound)
                .or_else(|| args[1..].iter().find_map(|a| self.lazy_in(s, a, outermost.or(Some(e)), asking, bound)));
        }
        let inside = e.children().into_iter().find_map(|c| self.lazy_in(s, c, outermost, asks, bound));
        inside.or_else(|| outermost.filter(|_| self.needs_statements(s, e, asks, bound)).cloned())
    }

    /// Returns whether an access needs preceding statements that are wrong where it is not evaluated: a search that may
    /// be out of range there, or a check under a condition that needs statements itself.
    fn needs_statements(&self, s: &Stmt, e: &Expr, asks: bool, bound: &Bindings) -> bool {
        if !self.is_known(e, bound) {
            return false;
        }
        let checked = !self.checks_of(s, e, &Expr::bool(true), bound).is_empty();
        let located = self.locate(e.clone(), bound, &|_| true);
        let searched = self.is_unknown(&located, bound) && (checked || !self.is_inside(&located, bound));
        searched || asks && checked
    }

    /// Returns the search for an element that the operator's condition always evaluates; the statement has the
    /// condition located.
    pub(super) fn condition_search(&self, s: &Stmt, lazy: &Expr, bound: &Bindings) -> Option<RequiredSearch> {
        let ExprKind::Apply(_, args) = lazy.kind() else { return None };
        if !matches!(s.kind(), StmtKind::Store { .. } | StmtKind::ReduceTo { .. }) {
            return None;
        }
        let mut locate = |e: Expr| self.locate(e, bound, &|_| true);
        let cond = substitute::rebuild_expr(&args[0], &mut locate, &mut Default::default());
        let always = |guard: &Expr| guard.as_bool() == Some(true);
        let mut found = None;
        guarded(&cond, &Expr::bool(true), &mut |e, guard| {
            if found.is_none() && always(guard) && !self.is_insertion(e) && self.is_unknown(e, bound) {
                found = Some(e.clone());
            }
        });
        let access = found?;
        let mut checks = Vec::new();
        guarded(&args[0], &Expr::bool(true), &mut |e, guard| {
            if always(guard) {
                checks.extend(self.checks_of(s, e, guard, bound));
            }
        });
        let mut replace = |e: Expr| if e == args[0] { cond.clone() } else { e };
        let mut done = Default::default();
        let located = s.map(&mut Stmt::clone, &mut |e| substitute::rebuild_expr(e, &mut replace, &mut done));
        Some(RequiredSearch { located, access, checks })
    }

    /// Splits a store or a reduction whose value `and` or `or` decides, by whether an element that must be searched for
    /// their second operand is in range; out of range, it counts as not stored. An index that is read, or cannot always
    /// be computed, is evaluated only where the program does so.
    pub(super) fn in_range_or_not(&mut self, s: &Stmt, lazy: &Expr, bound: &Bindings) -> Option<Stmt> {
        if !matches!(s.kind(), StmtKind::Store { .. } | StmtKind::ReduceTo { .. }) {
            return None;
        }
        let ExprKind::Apply(Op::And | Op::Or, _) = lazy.kind() else { return None };
        let mut found: Option<(Expr, Expr)> = None;
        guarded(lazy, &Expr::bool(true), &mut |e, guard| {
            if found.is_none() && guard.as_bool() != Some(true) && !self.has_access(guard) && load(e).is_some() {
                let located = self.locate(e.clone(), bound, &|_| true);
                let indices_known = self.is_unknown(&located, bound) && self.open_indices(&located, bound).is_some();
                found = indices_known.then(|| (e.clone(), guard.clone()));
            }
        });
        let (access, guard) = found?;
        let (mut open, mut element) = (Vec::new(), access.clone());
        while let Some(position) = self.position(&element).filter(|_| self.is_known(&element, bound)) {
            open.extend(self.open_indices(&element, bound)?);
            element = self.below(&element, position);
        }
        open.extend(self.open_indices(&element, bound)?);
        let within = open.iter().map(|[index, size]| Expr::int(0).less_eq(index).and(&index.less(size)));
        let within = within.reduce(|all, one| all.and(&one))?;
        let cond = if open.iter().all(|[index, _]| self.is_computable(index)) { within } else { guard.and(&within) };
        // Wherever the program evaluates the element, it must be in range.
        let (mut all, mut tells) = (Vec::new(), true);
        for e in access::exprs(s) {
            guarded(&e, &Expr::bool(true), &mut |e, guard| {
                if *e == access {
                    tells &= !self.has_access(guard);
                    all.extend(self.checks_of(s, e, guard, bound));
                    all.extend(self.range_checks(s, &element, guard, bound));
                }
            });
        }
        if !tells {
            return None;
        }
        let derived = |kind: StmtKind| Stmt::new(kind, s.origin().derive("structured", "lazy"));
        let outside = self.where_not_stored(&self.copied(s, "outside"), &|e| *e == access);
        let otherwise = Some(self.stmt(&outside, bound)).filter(|s| !s.is_nop());
        let wrapped = self.wrapped.len();
        self.wrapped.extend(open);
        let then = self.stmt(s, bound);
        self.wrapped.truncate(wrapped);
        all.push(derived(StmtKind::If { cond, then, otherwise }));
        Some(Stmt::seq(all, s.origin().derive("structured", "lazy")))
    }

    /// Returns whether an index can be computed in every iteration: it loads nothing but scalars and arrays of
    /// structured tensors, and has no operation that may fail although none of its operands may.
    fn is_computable(&self, index: &Expr) -> bool {
        let is_stored =
            |t: &Symbol| self.tensors.values().any(|flat| flat.arrays().iter().any(|array| array.tensor.symbol == *t));
        match load(index) {
            Some((t, at)) => at.is_empty() || is_stored(t),
            None => !index.may_fail_itself() && index.children().into_iter().all(|e| self.is_computable(e)),
        }
    }

    fn has_access(&self, e: &Expr) -> bool {
        e.any(&mut |e| load(e).is_some_and(|(t, _)| self.fibres.contains_key(t)))
    }

    /// Replaces the value of a lazy operator by a scalar, which a branch sets before the statement.
    pub(super) fn branched(&mut self, s: &Stmt, lazy: &Expr, bound: &Bindings) -> Stmt {
        let ExprKind::Apply(op, args) = lazy.kind() else { unreachable!("a lazy value is an operator") };
        let [then, otherwise] = match op {
            Op::And => [args[1].clone(), Expr::bool(false)],
            Op::Or => [Expr::bool(true), args[1].clone()],
            _ => [args[1].clone(), args[2].clone()],
        };
        let derived = |kind: StmtKind| Stmt::new(kind, s.origin().derive("structured", "lazy"));
        let chosen = Arc::new(Tensor::dense(Symbol::new("chosen"), lazy.dtype(), Vec::new(), Role::Workspace));
        let set = |value: Expr| derived(StmtKind::Store { tensor: chosen.symbol.clone(), indices: Vec::new(), value });
        let cond = args[0].clone();
        let branch = derived(StmtKind::If { cond, then: set(then), otherwise: Some(set(otherwise)) });
        let mut done = Default::default();
        let mut replace = |e: Expr| if e == *lazy { chosen.load([]) } else { e };
        let rest = s.map(&mut Stmt::clone, &mut |e| substitute::rebuild_expr(e, &mut replace, &mut done));
        let body = Stmt::seq([branch, rest], s.origin().derive("structured", "lazy"));
        self.stmt(&derived(StmtKind::VarDef { tensor: chosen, body }), bound)
    }
}
