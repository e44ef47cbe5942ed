//! Costs of the operations and the accesses of a statement in the loops around it: compute time, and the transfers and
//! stalls of every cache level.

use super::Estimator;
use crate::auto::model::access::{AccessPattern, StrideClass};
use crate::auto::model::enclosing::{EnclosingLoop, is_guess};
use crate::auto::model::memo::Bytes;
use crate::auto::model::work::Work;
use crate::auto::target::{LINE, PAGE, PAGES};

/// Minimum nanoseconds per line of an indirect access, from the third level and from memory: lines are fetched on
/// demand, about ten of them at a time.
const SCATTERED: [f64; 2] = [1.0, 10.0];
/// Bytes at the beginning of a row that no prefetcher anticipates; the rest of a longer row is prefetched.
const UNSEEN: f64 = 2.0 * LINE;
/// Fraction of a page's lookup price for indirect accesses, whose lookups overlap.
const SCATTERED_PAGE: f64 = 0.4;

/// Cache level, or the TLB.
struct CacheLevel {
    /// Capacity in bytes.
    bytes: f64,
    /// Index of the cache level. (`None` for the TLB: the pages of all statements in an iteration are not counted.)
    number: Option<usize>,
    /// Whether each core has a level of its own, so that the data of a parallel loop has the room of all of them
    /// together.
    own: bool,
    /// Size of a line, or of a page, in bytes.
    line: f64,
}

impl Estimator<'_, '_> {
    /// Returns the factor by which threads divide the work.
    pub(super) fn threads(&self) -> f64 {
        let p = self.target.threads as f64;
        let shares = |l: &EnclosingLoop| {
            // A guessed trip count is no evidence of fewer iterations than threads.
            if is_guess(l.trips) {
                return p;
            }
            let trips = l.trips.value.max(1.0);
            trips / (trips / p).ceil()
        };
        self.around.iter().filter(|l| l.threads).map(shares).fold(1.0, f64::max)
    }

    /// Returns the average number of iterations of the innermost loop executed at once.
    pub(super) fn lanes(&self, bytes: f64) -> f64 {
        let Some(l) = self.around.last() else { return 1.0 };
        if !(l.lanes || l.auto_vectorized) {
            return 1.0;
        }
        let width = (self.target.vector_bytes as f64 / bytes).max(1.0);
        let trips = l.trips.value.max(1.0);
        // Whole vectors, then scalar iterations for the remainder.
        let (whole, rest) = ((trips / width).floor(), trips % width);
        (trips / (whole + rest)).max(1.0)
    }

    /// Returns the fraction of the innermost loop's iterations in the scalar remainder behind whole vectors.
    pub(super) fn tail(&self, bytes: f64) -> f64 {
        match self.around.last() {
            Some(l) if l.lanes || l.auto_vectorized => {
                let width = (self.target.vector_bytes as f64 / bytes).max(1.0);
                let trips = l.trips.value.max(1.0);
                (trips % width) / trips
            }
            _ => 0.0,
        }
    }

    pub(super) fn compute(&self, work: &Work, accesses: &[AccessPattern], lanes: f64, tail: f64) -> f64 {
        let prices = &self.target.prices;
        let vector = usize::from(lanes > 1.0);
        let mut time = work.simple * prices.simple / lanes;
        time += work.divide * prices.divide[vector] / lanes;
        let [alone, in_vectors] = prices.transcendental;
        time += match lanes > 1.0 {
            true => work.transcendental * in_vectors * (1.0 / lanes - tail) + work.one_by_one * alone * tail,
            false => work.one_by_one * alone,
        };
        for a in accesses.iter().filter(|a| !a.in_registers) {
            let price = if a.written { prices.store } else { prices.load };
            time += match (a.last(), self.around.last()) {
                // Invariants are loaded before the loop; straight-line code loads them each time.
                (Some(StrideClass::None), Some(l)) if l.is_unrolled() => price / l.trips.value.max(1.0),
                (Some(StrideClass::None), _) => 0.0,
                (Some(StrideClass::One) | None, _) => price / lanes,
                (Some(StrideClass::Gather), _) if lanes > 1.0 => prices.gather.max(price),
                _ if lanes > 1.0 => prices.strided[usize::from(a.integers)].max(price),
                _ => price,
            };
        }
        time
    }

    /// Returns the time of transfers from behind each level and of TLB misses: the part that prefetching overlaps with
    /// computation, and the stalls of demand misses.
    pub(super) fn levels(&self, accesses: &[AccessPattern], threads: f64) -> [f64; 2] {
        let (mut seen, mut waited) = (0.0f64, 0.0f64);
        let count = self.target.levels.len();
        for (k, pair) in self.target.levels.windows(2).enumerate() {
            let [fits, behind] = pair else { continue };
            // The last level before memory is shared by all cores.
            let own = k + 2 < count;
            let [in_order, anywhere] =
                self.bytes_behind(accesses, &CacheLevel { bytes: fits.bytes, number: Some(k), own, line: LINE });
            let scales = threads.min(behind.scales);
            let scattered = behind.per_byte.max(SCATTERED[usize::from(!own)] / LINE);
            // Transfers from the second level come in time.
            let [beside, after] = if k == 0 && own { [in_order + anywhere, 0.0] } else { [in_order, anywhere] };
            (seen, waited) = (seen.max(beside * behind.per_byte / scales), waited.max(after * scattered / scales));
        }
        let each = self.target.prices.page / threads;
        let [in_order, anywhere] =
            self.bytes_behind(accesses, &CacheLevel { bytes: PAGES * PAGE, number: None, own: true, line: PAGE });
        [seen.max(in_order / PAGE * each), waited.max(anywhere / PAGE * SCATTERED_PAGE * each)]
    }

    /// Returns the bytes that come from behind a level, in whole lines: of affine accesses, and of indirect ones.
    fn bytes_behind(&self, accesses: &[AccessPattern], level: &CacheLevel) -> [f64; 2] {
        let room = |depth: usize| match level.own && self.around[depth..].iter().any(|l| l.threads) {
            true => level.bytes * self.threads(),
            false => level.bytes,
        };
        // Where everything fits, a statement finds the data of earlier statements there.
        let fit = self.values.bytes() <= room(0);
        self.bytes.set(self.bytes.get().and(Bytes::that_fit(fit, room(0))));
        if fit {
            return [0.0; 2];
        }
        // All statements of an iteration together must fit, not this one alone.
        let overflows = |depth: usize| {
            let bit = |k| 2 * k + usize::from(level.own && self.around[depth..].iter().any(|l| l.threads));
            depth > 0 && level.number.is_some_and(|k| self.around[depth - 1].overflows >> bit(k) & 1 == 1)
        };
        let kept: Vec<&AccessPattern> = accesses.iter().filter(|a| !a.in_registers && !a.near).collect();
        let touched = |depth: usize| kept.iter().map(|a| a.footprint(&self.around, depth, level.line)).sum::<f64>();
        // Finds the outermost loop in which an iteration finds the data of its predecessor.
        let depths = self.around.len();
        let depth =
            (0..=depths).find(|d| touched(*d) <= room(*d) && !overflows(*d)).unwrap_or(depths).saturating_sub(1);
        let outside: f64 = self.around[..depth].iter().map(|l| l.trips.value).product::<f64>() * self.often;
        // Indirect accesses return to elements, some of which have been evicted if all of them exceed the level.
        let all = self.around.get(depth).map_or(0.0, |l| l.scattered);
        let gone = (1.0 - room(depth) / all.max(1.0)).max(0.0);
        let mut behind = [0.0; 2];
        for a in kept {
            let once = a.footprint(&self.around, depth, level.line);
            behind[0] += once;
            if a.pointed() > depth {
                let (pieces, row) = a.pieces(&self.around, depth, level.line);
                let (again, unseen) = ((gone * pieces * row - once).max(0.0), (UNSEEN.max(level.line) / row).min(1.0));
                behind[0] += again * (1.0 - unseen);
                behind[1] += again * unseen;
            }
        }
        behind.map(|bytes| bytes * outside)
    }
}
