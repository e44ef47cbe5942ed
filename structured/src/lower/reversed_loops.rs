//! Reversed loops, as in gradients of recurrences: a list that drives its loop alone is traversed from its last
//! position to the first.
//!
//! ```text
//! for j in range(m - 1, -1, -1):          for p in range(pos[i + 1] - 1, pos[i] - 1, -1):
//!     … A[i, j] …                  ─▶         … val[p] …                              at crd[p]
//! ```
//!
//! Coordinates are looked up one by one if more than one list is accessed, or if the body has an effect where nothing
//! is stored.

use super::nest::{LoopBuilder, PositionRange};
use super::state::{Bindings, Lower};
use crate::looplet::is_spike;
use taffeta_ast::poly::tidy;
use taffeta_ast::stmt::LoopProps;
use taffeta_ast::{Expr, Extent, Stmt, StmtKind};

impl Lower {
    /// Lowers a loop with step -1 to one over positions, if a single list drives it.
    pub(super) fn backwards(&mut self, s: &Stmt, bound: &Bindings) -> Option<Stmt> {
        let StmtKind::For { iter, extent: Extent::Range { begin, end, step }, props, body } = s.kind() else {
            return None;
        };
        if step.as_int() != Some(-1) {
            return None;
        }
        let one = Expr::int(1);
        let [low, high] = [end, begin].map(|e| tidy(&e.plus(&one)));
        let mut inside = bound.clone();
        inside.insert(iter.clone(), Some([low.clone(), high.clone()]));
        let body = self.resolve_positions(body, &inside);
        if !self.indexed(&body, iter, bound).is_empty() {
            return None;
        }
        let cursors = self.cursors(&body, iter, [bound, &inside]);
        let [cursor] = &cursors[..] else { return None };
        let is_list = cursor.stepper().is_some_and(|s| s.ordered && s.unique && is_spike(s));
        if !is_list || !self.is_whole(cursor, [&low, &high]) || !self.filled(&body, [cursor]).is_nop() {
            return None;
        }
        let needs_nonempty = self.needs_nonempty_loop(&body, iter, bound);
        self.record_visited(&body, &cursors);
        let (first, last) = cursor.stepper().map(|s| (s.begin.clone(), s.end.clone()))?;
        let props = LoopProps { library: false, ..props.clone() };
        let mut nest = LoopBuilder { s, iter: Some(iter), props, inside, bodies: 0, id_taken: false };
        let positions = PositionRange { first: &first, end: &last, coordinates: [&low, &high], inside: true };
        let over = self.over(&mut nest, cursor, &[], positions, body.clone());
        let over = match over.kind() {
            StmtKind::For { iter, props, body, .. } => {
                let extent = Extent::Range { begin: last.minus(&one), end: first.minus(&one), step: Expr::int(-1) };
                let (iter, props, body) = (iter.clone(), props.clone(), body.clone());
                over.with_kind(StmtKind::For { iter, extent, props, body })
            }
            _ => over,
        };
        let nonempty = if needs_nonempty { low.less(&high) } else { Expr::bool(true) };
        Some(nest.branch(&nonempty, over, Stmt::nop()))
    }
}
