//! Loop contexts seen by the body, and hashes by which equal contexts are recognised.

use super::Part;
use crate::auto::model::compilers::vectorised_by_compilers;
use crate::auto::model::remembered::{hash_floats, number};
use crate::auto::model::{Around, Stage, branch, is_guess};
use crate::auto::trips::Estimate;
use crate::tree::Loop;
use rustc_hash::FxHasher;
use std::hash::Hash as _;
use taffeta_ast::{Distribution, LoopProps, Parallel};

impl Part<'_, '_> {
    /// Builds the loop context seen by the body, without its working set.
    pub(super) fn around_of(&self, l: &Loop, props: &LoopProps, trips: Estimate) -> Around {
        let bounds = branch::bounds(l);
        let starts = |p: Parallel| p.above.is_none_or(|n| trips.value > n as f64);
        let mut around = Around {
            iter: l.iter.clone(),
            trips,
            threads: props.parallel.is_some_and(|p| decides(props, trips) || starts(p)),
            lanes: props.vectorize.is_some(),
            by_itself: vectorised_by_compilers(l, &bounds, self.stage == Stage::Compiled),
            width: self.target.vector_bytes as f64 / 4.0,
            bounds,
            overflows: 0,
            scattered: 0.0,
            path: 0,
            number: 0,
        };
        around.path = number(|hasher| {
            self.path().hash(hasher);
            self.hash_loop(&around, hasher);
        });
        around
    }

    /// Hashes the properties of a loop and the values of its iterator.
    fn hash_loop(&self, l: &Around, hasher: &mut FxHasher) {
        (l.iter.id(), l.trips.known as u8, l.threads, l.lanes, l.by_itself, l.bounds.is_empty()).hash(hasher);
        hash_floats(&[l.trips.value], hasher);
        self.values.hash_iterator(hasher);
    }

    /// Hashes a loop and the loops around it; equal hashes mean equal contexts of the body.
    pub(super) fn number_of(&self, l: &Around) -> u64 {
        number(|hasher| {
            (self.around.last().map(|l| l.number), l.overflows).hash(hasher);
            hash_floats(&[l.scattered], hasher);
            self.hash_loop(l, hasher);
        })
    }

    /// Returns the hash of the loops around the current place, without their working sets.
    pub(super) fn path(&self) -> u64 {
        self.around.last().map_or(0, |l| l.path)
    }
}

/// Returns whether the program decides at run time if threads are started.
pub(super) fn decides(props: &LoopProps, trips: Estimate) -> bool {
    let asks = |p: Parallel| p.above.is_some() || p.distribution == Distribution::Positions;
    is_guess(trips) && props.parallel.is_some_and(asks)
}
