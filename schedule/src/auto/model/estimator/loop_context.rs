//! Loop contexts seen by the body, and hashes by which equal contexts are recognised.

use super::Estimator;
use crate::auto::model::branch;
use crate::auto::model::c_compiler::vectorised_by_compilers;
use crate::auto::model::enclosing::{EnclosingLoop, Stage, is_guess};
use crate::auto::model::hash::{hash_floats, number};
use crate::auto::trip_counts::Estimate;
use crate::tree::Loop;
use rustc_hash::FxHasher;
use std::hash::Hash as _;
use taffeta_ast::{Distribution, LoopProps, Parallel};

impl Estimator<'_, '_> {
    /// Builds the loop context seen by the body, without its working set.
    pub(super) fn enclosing_loop(&self, l: &Loop, props: &LoopProps, trips: Estimate) -> EnclosingLoop {
        let bounds = branch::bounds(l);
        let starts = |p: Parallel| p.above.is_none_or(|n| trips.value > n as f64);
        let mut around = EnclosingLoop {
            iter: l.iter.clone(),
            trips,
            threads: props.parallel.is_some_and(|p| starts_conditionally(props, trips) || starts(p)),
            lanes: props.vectorize.is_some(),
            auto_vectorized: vectorised_by_compilers(l, &bounds, self.stage == Stage::Compiled),
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
    fn hash_loop(&self, l: &EnclosingLoop, hasher: &mut FxHasher) {
        (l.iter.id(), l.trips.basis as u8, l.threads, l.lanes, l.auto_vectorized, l.bounds.is_empty()).hash(hasher);
        hash_floats(&[l.trips.value], hasher);
        self.values.hash_iterator(hasher);
    }

    /// Hashes a loop and the loops around it; equal hashes mean equal contexts of the body.
    pub(super) fn context_hash(&self, l: &EnclosingLoop) -> u64 {
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
pub(super) fn starts_conditionally(props: &LoopProps, trips: Estimate) -> bool {
    let asks = |p: Parallel| p.above.is_some() || p.distribution == Distribution::Positions;
    is_guess(trips) && props.parallel.is_some_and(asks)
}
