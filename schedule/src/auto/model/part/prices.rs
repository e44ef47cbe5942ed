//! What the operations and the accesses of a statement take, in the loops around it.

use super::Part;
use crate::auto::model::remembered::Bytes;
use crate::auto::model::touch::{Growth, Touch};
use crate::auto::model::work::Work;
use crate::auto::model::{Around, is_guess};
use crate::auto::target::{LINE, PAGE, PAGES};

impl Part<'_, '_> {
    /// By how much threads divide the work.
    pub(super) fn threads(&self) -> f64 {
        let p = self.target.threads as f64;
        let shares = |l: &Around| {
            // A guess does not say that there are fewer iterations than threads.
            if is_guess(l.trips) {
                return p;
            }
            let trips = l.trips.value.max(1.0);
            trips / (trips / p).ceil()
        };
        self.around.iter().filter(|l| l.threads).map(shares).fold(1.0, f64::max)
    }

    /// Iterations at once of the innermost loop, on average.
    pub(super) fn lanes(&self, bytes: f64) -> f64 {
        let Some(l) = self.around.last() else { return 1.0 };
        if !(l.lanes || l.by_itself) {
            return 1.0;
        }
        let width = (self.target.vector_bytes as f64 / bytes).max(1.0);
        let trips = l.trips.value.max(1.0);
        // Whole vectors, then what is left one by one.
        let (whole, rest) = ((trips / width).floor(), trips % width);
        (trips / (whole + rest)).max(1.0)
    }

    /// The part of the innermost loop's iterations that are left one by one behind whole vectors.
    pub(super) fn tail(&self, bytes: f64) -> f64 {
        match self.around.last() {
            Some(l) if l.lanes || l.by_itself => {
                let width = (self.target.vector_bytes as f64 / bytes).max(1.0);
                let trips = l.trips.value.max(1.0);
                (trips % width) / trips
            }
            _ => 0.0,
        }
    }

    pub(super) fn compute(&self, work: &Work, accesses: &[Touch], lanes: f64, tail: f64) -> f64 {
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
                // It is loaded before the loop: of straight code, each time.
                (Some(Growth::None), Some(l)) if l.is_unrolled() => price / l.trips.value.max(1.0),
                (Some(Growth::None), _) => 0.0,
                (Some(Growth::One) | None, _) => price / lanes,
                (Some(Growth::Gather), _) if lanes > 1.0 => prices.gather.max(price),
                _ if lanes > 1.0 => prices.strided[usize::from(a.integers)].max(price),
                _ => price,
            };
        }
        time
    }

    /// What the bytes take that come from behind each level, and the pages that must be looked up.
    pub(super) fn levels(&self, accesses: &[Touch], threads: f64) -> f64 {
        let mut worst = 0.0f64;
        let count = self.target.levels.len();
        for (k, pair) in self.target.levels.windows(2).enumerate() {
            let [fits, behind] = pair else { continue };
            // The last level before memory is one for all cores.
            let bytes = self.bytes_behind(accesses, (fits.bytes, Some(k)), k + 2 < count, LINE);
            worst = worst.max(bytes * behind.per_byte / threads.min(behind.scales));
        }
        let pages = self.bytes_behind(accesses, (PAGES * PAGE, None), true, PAGE) / PAGE;
        worst.max(pages * self.target.prices.page / threads)
    }

    /// Bytes that do not come from a level of so many, but from behind it, in whole lines of so many. (Pages have no
    /// number among the levels: nobody knows how many all statements of an iteration touch.) Each core may
    /// have one of its `own`: then threads that share out what a loop touches have room for all of it together.
    fn bytes_behind(&self, accesses: &[Touch], (level, number): (f64, Option<usize>), own: bool, line: f64) -> f64 {
        let room = |depth: usize| match own && self.around[depth..].iter().any(|l| l.threads) {
            true => level * self.threads(),
            false => level,
        };
        // What one statement has brought in, the next one finds there, where there is room for everything.
        let fit = self.values.bytes() <= room(0);
        self.bytes.set(self.bytes.get().and(Bytes::that_fit(fit, room(0))));
        if fit {
            return 0.0;
        }
        // All statements of an iteration are to have room, not this one alone.
        let overflows = |depth: usize| {
            let bit = |k| 2 * k + usize::from(own && self.around[depth..].iter().any(|l| l.threads));
            depth > 0 && number.is_some_and(|k| self.around[depth - 1].overflows >> bit(k) & 1 == 1)
        };
        let kept: Vec<&Touch> = accesses.iter().filter(|a| !a.in_registers && !a.near).collect();
        let touched = |depth: usize| kept.iter().map(|a| a.footprint(&self.around, depth, line)).sum::<f64>();
        // The outermost loop of which an iteration finds what the one before it has touched.
        let depths = self.around.len();
        let depth =
            (0..=depths).find(|d| touched(*d) <= room(*d) && !overflows(*d)).unwrap_or(depths).saturating_sub(1);
        let outside: f64 = self.around[..depth].iter().map(|l| l.trips.value).product::<f64>() * self.often;
        touched(depth) * outside
    }
}
