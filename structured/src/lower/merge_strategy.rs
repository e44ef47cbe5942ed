//! Choice of the drivers of a region in which several fibres are lists: by the protocols of accesses (`A[i,
//! gallop(j)]`), or else by the least cost ([`super::merge_cost`]).
//!
//! ```text
//! walk      takes part in a merge; where others lead, it is asked for their coordinates
//! gallop    leads, if nothing is left of the body where it stores nothing: one list is counted, several jump to the
//!           largest of their coordinates. If something is left, it is merged: every coordinate of the others counts
//! locate    is no cursor of the loop: it is asked for the coordinates that the others, or the loop, come to
//! ```
//!
//! A list that cannot follow its protocol is lowered in another way: positions that share coordinates are merged,
//! levels that are not ordered do not lead, and in a parallel or vectorised loop the first of several leaders is
//! counted and the others are looked up.

use super::cursor::{Cursor, PATH};
use super::nest::{LoopBuilder, LoopRange};
use super::run_reductions;
use super::state::Lower;
use crate::looplet::is_spike;
use taffeta_ast::expr::Protocol;
use taffeta_ast::{Diagnostic, Expr, ExprKind, Extent, Stmt, StmtKind, Symbol};

/// Drivers of a region of several steppers, given by their indices.
pub(super) enum MergePlan {
    /// Leader whose positions are counted, while the others are looked up at its coordinates.
    Leader(usize),
    /// Leaders that jump to the largest of their coordinates, where the others are looked up.
    Leapfrog(Vec<usize>),
    /// Merge: all steppers advance together from one of their coordinates to the next.
    Merge,
}

impl Lower {
    /// Warns about a loop over all coordinates that these cursors make necessary, since none of their lists can be
    /// merged.
    pub(super) fn warn_of_order(&mut self, nest: &LoopBuilder<'_>, looked_up: &[Cursor]) {
        let (Some(iter), Some(first)) = (nest.iter, looked_up.first()) else { return };
        let name = self.tensor_of(first);
        let text = format!("the loop `{iter}` visits every coordinate, although it traverses `{name}`");
        let d = Diagnostic::warning("structured::scan", text).at(nest.s.origin().span());
        let text = format!("the level of `{name}` is not ordered: use an ordered level, whose list can be merged");
        self.warn(d.help(text));
    }

    /// Returns the steppers that drive a region, and the steppers that are looked up at a coordinate: those of levels
    /// without order, unless one of them leads alone.
    pub(super) fn split_unordered(
        &self,
        steppers: Vec<Cursor>,
        LoopRange { begin, end, whole }: LoopRange<'_>,
        body: &Stmt,
        nest: &LoopBuilder<'_>,
    ) -> (Vec<Cursor>, Vec<Cursor>) {
        let (ordered, mut looked_up): (Vec<Cursor>, Vec<Cursor>) =
            steppers.into_iter().partition(|c| c.stepper().is_some_and(|s| s.ordered));
        if looked_up.is_empty() || !ordered.is_empty() && self.filled(body, &ordered).is_nop() {
            return (ordered, looked_up);
        }
        let unique = |c: &Cursor| c.stepper().is_some_and(|s| s.unique);
        let alone = ordered.is_empty() && looked_up.len() == 1;
        let skips = |c: &Cursor| {
            let skipped = self.filled(body, [c]);
            skipped.is_nop() || alone && whole && unique(c) && self.between(nest, c, &skipped, [begin, end]).is_some()
        };
        // A list is not scanned again for each block of another tensor.
        let extent = Extent::Range { begin: begin.clone(), end: end.clone(), step: Expr::int(1) };
        let once = matches!(nest.s.kind(), StmtKind::For { extent: own, .. } if *own == extent);
        let leads = |c: &Cursor| {
            (once || nest.iter.is_none_or(|iter| self.probe(c, &Expr::var(iter)).is_none()))
                && self.only_reduces(body, c)
                && skips(c)
                && (unique(c) || !nest.props.is_concurrent() && self.is_chain(c, body, nest))
        };
        match looked_up.iter().position(leads) {
            Some(k) => {
                let leader = looked_up.remove(k);
                (vec![leader], [ordered, looked_up].concat())
            }
            None => (ordered, looked_up),
        }
    }

    /// Returns the effects where a list stores nothing, combined for all of those coordinates of its dimension into one
    /// statement; the list stores each of its coordinates once, in any order. `None` if the effects vary with the
    /// coordinate.
    pub(super) fn between(
        &self,
        nest: &LoopBuilder<'_>,
        c: &Cursor,
        skipped: &Stmt,
        [begin, end]: [&Expr; 2],
    ) -> Option<Stmt> {
        let (stepper, iter) = (c.stepper().filter(|s| s.unique && is_spike(s))?, nest.iter?);
        if !self.is_whole(c, [begin, end]) {
            return None;
        }
        let stored = stepper.end.minus(&stepper.begin);
        let coordinates = end.minus(begin);
        let count = [&coordinates.minus(&stored), &stored.less(&coordinates)];
        run_reductions::repeated(skipped, iter, count, self.rules())
    }

    /// Chooses the drivers of a region of steppers.
    pub(super) fn merge_plan(&self, nest: &LoopBuilder<'_>, steppers: &[Cursor], body: &Stmt) -> MergePlan {
        let leads = |c: &Cursor| {
            let can = c.stepper().is_some_and(|s| s.ordered && s.unique);
            can && c.protocol == Protocol::Gallop && self.filled(body, [c]).is_nop()
        };
        let leaders: Vec<usize> = (0..steppers.len()).filter(|k| leads(&steppers[*k])).collect();
        // A position that spans several coordinates cannot be found by its last one alone.
        let jumps = |k: &usize| steppers[*k].stepper().is_some_and(is_spike);
        let jumping: Vec<usize> = leaders.iter().copied().filter(jumps).collect();
        match (leaders.first(), jumping.first()) {
            _ if steppers.len() < 2 => MergePlan::Merge,
            (_, Some(_)) if jumping.len() > 1 && !nest.props.is_concurrent() => MergePlan::Leapfrog(jumping),
            (_, Some(k)) | (Some(k), None) => MergePlan::Leader(*k),
            (None, None) => self.cheapest(nest, steppers, body),
        }
    }

    /// Returns an error for each cursor whose accesses in a loop have conflicting protocols.
    pub(super) fn contradictions(&self, body: &Stmt, iter: &Symbol, cursors: &[Cursor]) -> Vec<Diagnostic> {
        let mut out = Vec::new();
        for c in cursors {
            let (mut protocol, mut done) = (None, false);
            body.walk(&mut |s| {
                for e in s.kind().exprs() {
                    e.walk(&mut |e| {
                        let ExprKind::Load(_, at) = e.kind() else { return };
                        if !c.drives(e) || !matches!(at[PATH].protocol, Protocol::Walk | Protocol::Gallop) {
                            return;
                        }
                        if *protocol.get_or_insert(at[PATH].protocol) != at[PATH].protocol && !done {
                            done = true;
                            let name = self.tensor_of(c);
                            let text = format!(
                                "the loop `{iter}` traverses the same fibre of `{name}` with both `walk` and `gallop`"
                            );
                            let d = Diagnostic::new("storage::protocol", text).at(s.origin().span());
                            out.push(d.help("leave one of them out"));
                        }
                    });
                }
            });
        }
        out
    }
}
