//! Operands that are evaluated under a condition: where what they need is asked for by statements (a search that may be
//! out of range, or a check whose condition needs one), they are evaluated in a branch. What the condition asks for is
//! searched before, for the whole statement: where a fill decides which operand it is, no branch is left. Where it is a
//! branch, the value is none of the fill ([`taffeta_analysis::pass::fills`]).
//!
//! ```text
//! s += A[k[j]] if x[j] > 0.0 else 0.0
//!
//! if x[j] > 0.0: chosen = A[k[j]]                        searched, or looked up, where it is in range
//! else:          chosen = 0.0
//! s += chosen
//! ```

use super::{Lower, Scope, guarded, load};
use std::sync::Arc;
use taffeta_analysis::pass::substitute;
use taffeta_ast::stmt::Role;
use taffeta_ast::{Expr, ExprKind, Op, Stmt, StmtKind, Symbol, Tensor};

impl Lower {
    /// The outermost operator of a statement that has to become a branch.
    pub(super) fn lazy(&self, s: &Stmt, bound: &Scope) -> Option<Expr> {
        s.kind().exprs().into_iter().find_map(|e| self.lazy_in(s, e, None, false, bound))
    }

    /// The same in an expression inside of that operator; `asks`: whether a condition around it reads what is
    /// structured.
    fn lazy_in(&self, s: &Stmt, e: &Expr, outermost: Option<&Expr>, asks: bool, bound: &Scope) -> Option<Expr> {
        if let ExprKind::Apply(Op::And | Op::Or | Op::Select, args) = e.kind() {
            let asking = asks || self.has_access(&args[0]);
            return self
                .lazy_in(s, &args[0], outermost, asks, bound)
                .or_else(|| args[1..].iter().find_map(|a| self.lazy_in(s, a, outermost.or(Some(e)), asking, bound)));
        }
        let inside = e.children().into_iter().find_map(|c| self.lazy_in(s, c, outermost, asks, bound));
        inside.or_else(|| outermost.filter(|_| self.needs_statements(s, e, asks, bound)).cloned())
    }

    /// Whether statements have to come before an access that are wrong where it is not evaluated: a search at what may
    /// be out of range there, or a check under a condition that needs some itself.
    fn needs_statements(&self, s: &Stmt, e: &Expr, asks: bool, bound: &Scope) -> bool {
        if !self.is_known(e, bound) {
            return false;
        }
        let checked = !self.checks_of(s, e, &Expr::bool(true), bound).is_empty();
        let located = self.locate(e.clone(), bound, &|_| true);
        let searched = self.is_unknown(&located, bound) && (checked || !self.is_inside(&located, bound));
        searched || asks && checked
    }

    /// An element that the condition of such an operator has searched in any case: the statement in which all of the
    /// condition is located, that element, and the checks for the condition.
    pub(super) fn asked_first(&self, s: &Stmt, lazy: &Expr, bound: &Scope) -> Option<(Stmt, Expr, Vec<Stmt>)> {
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
        Some((located, access, checks))
    }

    fn has_access(&self, e: &Expr) -> bool {
        let mut has = false;
        e.walk(&mut |e| has |= load(e).is_some_and(|(t, _)| self.fibres.contains_key(t)));
        has
    }

    /// The statement with a scalar for the value of a lazy operator, which a branch sets before it.
    pub(super) fn branched(&mut self, s: &Stmt, lazy: &Expr, bound: &Scope) -> Stmt {
        let ExprKind::Apply(op, args) = lazy.kind() else { unreachable!("it is an operator") };
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
