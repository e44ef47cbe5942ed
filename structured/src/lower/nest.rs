//! Loops under construction, and the regions of coordinates that they cover.

use super::state::Bindings;
use std::sync::Arc;
use taffeta_analysis::query::effects;
use taffeta_ast::stmt::LoopProps;
use taffeta_ast::{Expr, Extent, Stmt, StmtKind, Symbol, Tensor};

/// Loop being lowered; or, without an iterator, a statement with accesses at known coordinates.
#[derive(Clone)]
pub(super) struct LoopBuilder<'a> {
    pub(super) s: &'a Stmt,
    pub(super) iter: Option<&'a Symbol>,
    pub(super) props: LoopProps,
    /// Names bound in the body.
    pub(super) inside: Bindings,
    /// Number of bodies emitted so far.
    pub(super) bodies: usize,
    /// Whether a statement that keeps the loop's id has been emitted.
    pub(super) id_taken: bool,
}

impl LoopBuilder<'_> {
    /// Builds a statement in the place of the loop: the first one keeps the loop's id, later ones are derived from it.
    pub(super) fn statement(&mut self, kind: StmtKind, role: &'static str) -> Stmt {
        match std::mem::replace(&mut self.id_taken, true) {
            false => self.s.with_kind(kind),
            true => self.derived(kind, role),
        }
    }

    /// Builds a statement derived from the loop, with an id of its own.
    pub(super) fn derived(&self, kind: StmtKind, role: &'static str) -> Stmt {
        Stmt::new(kind, self.s.origin().derive("structured", role))
    }

    pub(super) fn block(&self, all: impl IntoIterator<Item = Stmt>) -> Stmt {
        Stmt::seq(all, self.s.origin().derive("structured", "block"))
    }

    pub(super) fn branch(&self, cond: &Expr, then: Stmt, otherwise: Stmt) -> Stmt {
        if cond.as_bool() == Some(true) {
            return then;
        }
        let kind = match (then.is_nop(), otherwise.is_nop()) {
            (true, true) => return then,
            (true, false) => StmtKind::If { cond: cond.negate(), then: otherwise, otherwise: None },
            (false, nothing) => StmtKind::If { cond: cond.clone(), then, otherwise: (!nothing).then_some(otherwise) },
        };
        self.derived(kind, "case")
    }

    /// Returns the assumption that a loop over a region stays in the range of the loop being lowered.
    pub(super) fn stays_inside(&self, iter: &Symbol, range: [&Expr; 2]) -> Vec<Stmt> {
        let StmtKind::For { extent: Extent::Range { begin, end, .. }, body, .. } = self.s.kind() else {
            return Vec::new();
        };
        let written = effects::writes(body);
        let fixed = [begin, end].iter().all(|e| effects::loads(e).is_disjoint(&written));
        if !fixed || range == [begin, end] {
            return Vec::new();
        }
        let at = Expr::var(iter);
        self.assume(&[begin.less_eq(&at).and(&at.less(end))])
    }

    pub(super) fn assume(&self, assumptions: &[Expr]) -> Vec<Stmt> {
        assumptions.iter().map(|cond| self.derived(StmtKind::Assume { cond: cond.clone() }, "assumption")).collect()
    }
}

impl LoopBuilder<'_> {
    pub(super) fn set(&self, scalar: &Tensor, value: &Expr) -> Stmt {
        let kind = StmtKind::Store { tensor: scalar.symbol.clone(), indices: Vec::new(), value: value.clone() };
        self.derived(kind, "set")
    }

    /// Wraps a block in declarations of local scalars.
    pub(super) fn with(&self, scalars: impl IntoIterator<Item = Arc<Tensor>>, body: Stmt) -> Stmt {
        let all: Vec<Arc<Tensor>> = scalars.into_iter().collect();
        all.into_iter().rev().fold(body, |body, tensor| self.derived(StmtKind::VarDef { tensor, body }, "scalar"))
    }

    pub(super) fn while_loop(&mut self, cond: Expr, body: Stmt) -> Stmt {
        self.statement(StmtKind::While { cond, body }, "merge")
    }
}

/// Consecutive coordinates.
#[derive(Clone, Debug)]
pub(super) enum Region {
    Range {
        begin: Expr,
        end: Expr,
        /// Last coordinate, if there is a shorter expression for it than `end - 1`.
        last: Option<Expr>,
        /// Whether the range has all coordinates of the dimension.
        whole: bool,
    },
    /// Single coordinate.
    Point(Expr),
}

/// Range of coordinates that a loop covers.
#[derive(Clone, Copy)]
pub(super) struct LoopRange<'e> {
    pub(super) begin: &'e Expr,
    pub(super) end: &'e Expr,
    /// Whether the range has all coordinates of the dimension.
    pub(super) whole: bool,
}

/// Positions of a stepper over which a loop runs, in a range of coordinates.
#[derive(Clone, Copy)]
pub(super) struct PositionRange<'e> {
    pub(super) first: &'e Expr,
    /// The position behind the last one.
    pub(super) end: &'e Expr,
    /// The range of coordinates.
    pub(super) coordinates: [&'e Expr; 2],
    /// Whether all positions have coordinates in the range.
    pub(super) inside: bool,
}

impl Region {
    pub(super) fn range(begin: &Expr, end: &Expr) -> Region {
        Region::Range { begin: begin.clone(), end: end.clone(), last: None, whole: false }
    }
}
