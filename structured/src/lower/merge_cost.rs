//! Cost model of traversing several lists in one loop, and choice of the lists that drive it where accesses do not
//! specify it.
//!
//! The number of stored elements is unknown at compile time, and must stay so: otherwise each matrix would need a
//! program of its own. So all lists are assumed to be equally long, and costs are per element of a list. All plans
//! visit the same coordinates in the same order, so that sums do not depend on the choice.
//!
//! ```text
//! counted    1    a list that alone drives the loop
//! merged     2    each of several lists: which of them goes on is not foreseen
//! asked      1    at each coordinate that others come to: a position that is computed
//! followed   2    the same: blocks or runs that go on from where they are
//! probed     4    the same: one that stands in a table
//! searched  12    the same: steps that double, then halves
//! ```
//!
//! | lists | plan | cost |
//! |---|---|---|
//! | two ordered lists | merge | 4, and not 1 + 12 |
//! | one, and one with computed positions | the first is counted, the other asked | 1 + 1, and not 4 |
//! | a list, and blocks or runs | the list is counted, the others follow | 1 + 2, and not 4 |
//! | blocks or runs, and one with computed positions | merge, since the former visit every coordinate | 4 |
//! | two, and one with computed positions | merge two, ask the third | 4 + 1, and not 6 |
//! | two, in a parallel loop | the first is counted, the other searched | 1 + 12: a merge is sequential |
//!
//! A list can be looked up only if nothing is left of the loop's body at the coordinates that the other lists skip.

use super::cursor::Cursor;
use super::merge_strategy::MergePlan;
use super::nest::LoopBuilder;
use super::state::Lower;
use crate::levels;
use crate::looplet::Lookup;
use crate::looplet::is_spike;
use taffeta_ast::expr::Protocol;
use taffeta_ast::{Expr, Stmt};

const COUNTED: usize = 1;
const MERGED: usize = 2;
const ASKED: usize = 1;
const PROBED: usize = 4;
const SEARCHED: usize = 12;

impl Lower {
    /// Returns the lists that drive a region, and the lists that are only looked up at the coordinates of the drivers,
    /// since their positions are computed.
    pub(super) fn split_lookups(
        &self,
        steppers: Vec<Cursor>,
        body: &Stmt,
        nest: &LoopBuilder<'_>,
    ) -> (Vec<Cursor>, Vec<Cursor>) {
        let Some(iter) = nest.iter else { return (steppers, Vec::new()) };
        let at = Expr::var(iter);
        // Beyond the dimension there is nothing to look up.
        let can = |c: &Cursor| c.protocol == Protocol::Default && c.within && self.lookup_at(c, &at).is_some();
        let (mut driving, mut asked) = (steppers, Vec::new());
        // From the last one on, so that the first of several candidates drives.
        for k in (0..driving.len()).rev() {
            if driving.len() > 1 && can(&driving[k]) {
                let rest: Vec<&Cursor> = driving.iter().enumerate().filter(|(n, _)| *n != k).map(|(_, c)| c).collect();
                // Blocks and runs visit each of their coordinates: they are merged with the list.
                let lists = rest.iter().all(|c| c.stepper().is_some_and(is_spike));
                if lists && self.filled(body, rest).is_nop() {
                    asked.push(driving.remove(k));
                }
            }
        }
        (driving, asked)
    }

    /// Returns the steppers that drive a region, and the blocks and runs that follow them, if an effect is left only at
    /// coordinates of lists. Followers need not be cut at each element of a list, and their advance is better predicted
    /// than the order of a merge.
    pub(super) fn following(
        &self,
        steppers: Vec<Cursor>,
        body: &Stmt,
        nest: &LoopBuilder<'_>,
    ) -> (Vec<Cursor>, Vec<Cursor>) {
        let lists: Vec<&Cursor> = steppers.iter().filter(|c| c.stepper().is_some_and(is_spike)).collect();
        let ordered = steppers.iter().all(|c| c.stepper().is_some_and(|s| s.ordered));
        if nest.props.is_concurrent() || !ordered || lists.is_empty() || !self.filled(body, lists).is_nop() {
            return (steppers, Vec::new());
        }
        steppers.into_iter().partition(|c| !c.walks())
    }

    /// Returns the lookup of a coordinate in a cursor's fibre, if the position is computed.
    pub(super) fn lookup_at(&self, c: &Cursor, at: &Expr) -> Option<Lookup> {
        let (tensor, k) = &self.fibres[&c.fibre];
        let level = &self.tensors[tensor].levels[*k];
        levels::of_level(level)?.lookup(level, &c.above, &c.coordinate(at))
    }

    /// Returns the cheapest plan for lists without a protocol: a merge, or a leader whose positions are counted.
    pub(super) fn cheapest(&self, nest: &LoopBuilder<'_>, steppers: &[Cursor], body: &Stmt) -> MergePlan {
        let merge = if nest.props.is_concurrent() { usize::MAX } else { MERGED * steppers.len() };
        let walks = |c: &Cursor| c.protocol == Protocol::Walk;
        if steppers.len() < 2 || steppers.iter().any(walks) {
            return MergePlan::Merge;
        }
        let leads = |c: &Cursor| {
            c.stepper().is_some_and(|s| s.ordered && s.unique && is_spike(s)) && self.filled(body, [c]).is_nop()
        };
        let Some(iter) = nest.iter else { return MergePlan::Merge };
        let at = Expr::var(iter);
        let cost = |c: &Cursor| match (self.lookup_at(c, &at), self.probe(c, &at)) {
            (Some(_), _) => ASKED,
            (None, Some(_)) => PROBED,
            (None, None) => SEARCHED,
        };
        let all: usize = steppers.iter().map(cost).sum();
        let plans = (0..steppers.len()).filter(|k| leads(&steppers[*k]));
        match plans.map(|k| (COUNTED + all - cost(&steppers[k]), k)).min() {
            Some((least, k)) if least < merge => MergePlan::Leader(k),
            _ => MergePlan::Merge,
        }
    }
}
