//! Memo of loop estimates: after a step, only the changed loops and the loops around them are estimated again.
//!
//! An estimate is valid for the same node in the same place. A place comprises the inputs of a loop's estimate other
//! than the loop: the loops around it with their properties and the values of their iterators, the number of its
//! executions, and earlier accesses, which may have fetched its data. Whether all tensors of the program fit a cache
//! level is an input too; it is memoised as the range of total sizes for which the estimate holds.

use super::access::ReuseKey;
use super::estimator::out_of_order::LoopCost;
use super::footprint::WorkingSet;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::rc::Rc;
use taffeta_ast::{Stmt, StmtId};

/// Maximum number of places memoised per loop: with a step and without it.
const MAX_PLACES: usize = 4;

/// Memo of loop estimates.
#[derive(Default)]
pub(super) struct Memo {
    loops: FxHashMap<StmtId, VecDeque<MemoEntry>>,
    /// Working sets of loops, each with its node and the hash of the enclosing loops.
    sets: FxHashMap<StmtId, VecDeque<(Stmt, u64, Rc<WorkingSet>)>>,
}

/// Memoised estimate of a loop in a place.
struct MemoEntry {
    node: Stmt,
    place: u64,
    taken: LoopEstimate,
}

/// Estimate of a loop.
#[derive(Clone)]
pub(super) struct LoopEstimate {
    /// Time in nanoseconds.
    pub time: f64,
    /// Stalls and instructions that the loop passes to the enclosing loop.
    pub inner: LoopCost,
    /// Access patterns that the loop adds for comparison with later accesses.
    pub walks: Vec<ReuseKey>,
    /// Total tensor sizes for which the estimate holds.
    pub bytes: Bytes,
}

impl Memo {
    pub fn recall(&self, node: &Stmt, place: u64, bytes: f64) -> Option<&LoopEstimate> {
        let known = self.loops.get(&node.id())?;
        let fits = |l: &&MemoEntry| l.place == place && l.node.same_node(node) && l.taken.bytes.contain(bytes);
        known.iter().find(fits).map(|l| &l.taken)
    }

    pub fn remember(&mut self, node: &Stmt, place: u64, taken: LoopEstimate) {
        let known = self.loops.entry(node.id()).or_default();
        if known.len() >= MAX_PLACES {
            known.pop_front();
        }
        known.push_back(MemoEntry { node: node.clone(), place, taken });
    }

    pub fn recall_set(&self, node: &Stmt, path: u64) -> Option<Rc<WorkingSet>> {
        let known = self.sets.get(&node.id())?;
        known.iter().find(|(n, p, _)| *p == path && n.same_node(node)).map(|(_, _, set)| set.clone())
    }

    pub fn remember_set(&mut self, node: &Stmt, path: u64, set: Rc<WorkingSet>) {
        let known = self.sets.entry(node.id()).or_default();
        if known.len() >= MAX_PLACES {
            known.pop_front();
        }
        known.push_back((node.clone(), path, set));
    }

    pub fn clear(&mut self) {
        self.loops.clear();
        self.sets.clear();
    }
}

/// Range of byte counts: above the first bound, and at most the second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bytes(f64, f64);

impl Bytes {
    pub const ALL: Bytes = Bytes(f64::NEG_INFINITY, f64::INFINITY);

    fn contain(self, bytes: f64) -> bool {
        self.0 < bytes && bytes <= self.1
    }

    /// Returns the intersection of two ranges.
    pub fn and(self, other: Bytes) -> Bytes {
        Bytes(self.0.max(other.0), self.1.min(other.1))
    }

    /// Returns the range of sizes that fit into `room` bytes, or of sizes that do not.
    pub fn that_fit(fit: bool, room: f64) -> Bytes {
        if fit { Bytes(f64::NEG_INFINITY, room) } else { Bytes(room, f64::INFINITY) }
    }
}
