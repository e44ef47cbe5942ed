//! Loops as what is in them knows them, and numbers by which those that are the same are.

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
    /// A loop as what is in it knows it, without what all of that touches.
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

    /// Adds what there is to know of a loop to the number of what is in it.
    fn hash_loop(&self, l: &Around, hasher: &mut FxHasher) {
        (l.iter.id(), l.trips.known as u8, l.threads, l.lanes, l.by_itself, l.bounds.is_empty()).hash(hasher);
        hash_floats(&[l.trips.value], hasher);
        self.values.hash_iterator(hasher);
    }

    /// The same for loops that are the same to what is in them, with those around them.
    pub(super) fn number_of(&self, l: &Around) -> u64 {
        number(|hasher| {
            (self.around.last().map(|l| l.number), l.overflows).hash(hasher);
            hash_floats(&[l.scattered], hasher);
            self.hash_loop(l, hasher);
        })
    }

    /// The number of the loops around the present place, whatever their iterations touch.
    pub(super) fn path(&self) -> u64 {
        self.around.last().map_or(0, |l| l.path)
    }
}

/// Whether threads are started where that pays, which the program itself decides as it runs.
pub(super) fn decides(props: &LoopProps, trips: Estimate) -> bool {
    let asks = |p: Parallel| p.above.is_some() || p.distribution == Distribution::Positions;
    is_guess(trips) && props.parallel.is_some_and(asks)
}
