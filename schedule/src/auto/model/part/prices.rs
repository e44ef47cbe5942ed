//! What the operations and the accesses of a statement take, in the loops around it.

use super::Part;
use crate::auto::model::remembered::Bytes;
use crate::auto::model::touch::{Growth, Touch};
use crate::auto::model::work::Work;
use crate::auto::model::{Around, is_guess};
use crate::auto::target::{LINE, PAGE, PAGES};

/// Nanoseconds for a line that a tensor points to, from the third level and from memory, at least: it comes only once
/// it is asked for, about ten of them at a time.
const SCATTERED: [f64; 2] = [1.0, 10.0];
/// The bytes at the beginning of a row that nobody sees coming: of a longer one, prefetchers bring the rest.
const UNSEEN: f64 = 2.0 * LINE;
/// What part of its price the address of a page takes that a tensor points to: they are looked up beside each other.
const SCATTERED_PAGE: f64 = 0.4;

/// A level of the cache, or the pages whose addresses a core knows.
struct Room {
    /// What fits.
    bytes: f64,
    /// Which level it is. (Pages are none: nobody knows how many all statements of an iteration touch.)
    number: Option<usize>,
    /// Whether each core has one: then threads that share out what a loop touches have room for all of it together.
    own: bool,
    /// The bytes of a line, or of a page.
    line: f64,
}

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

    /// What the bytes take that come from behind each level, and the pages that must be looked up: what the processor
    /// sees coming, while it computes; and what it waits for.
    pub(super) fn levels(&self, accesses: &[Touch], threads: f64) -> [f64; 2] {
        let (mut seen, mut waited) = (0.0f64, 0.0f64);
        let count = self.target.levels.len();
        for (k, pair) in self.target.levels.windows(2).enumerate() {
            let [fits, behind] = pair else { continue };
            // The last level before memory is one for all cores.
            let own = k + 2 < count;
            let [in_order, anywhere] =
                self.bytes_behind(accesses, &Room { bytes: fits.bytes, number: Some(k), own, line: LINE });
            let scales = threads.min(behind.scales);
            let scattered = behind.per_byte.max(SCATTERED[usize::from(!own)] / LINE);
            // What comes from the second level comes in time.
            let [beside, after] = if k == 0 && own { [in_order + anywhere, 0.0] } else { [in_order, anywhere] };
            (seen, waited) = (seen.max(beside * behind.per_byte / scales), waited.max(after * scattered / scales));
        }
        let each = self.target.prices.page / threads;
        let [in_order, anywhere] =
            self.bytes_behind(accesses, &Room { bytes: PAGES * PAGE, number: None, own: true, line: PAGE });
        [seen.max(in_order / PAGE * each), waited.max(anywhere / PAGE * SCATTERED_PAGE * each)]
    }

    /// Bytes that do not have room, but come from behind it, in whole lines: those that lie where loops go, and those
    /// that a tensor points to.
    fn bytes_behind(&self, accesses: &[Touch], level: &Room) -> [f64; 2] {
        let room = |depth: usize| match level.own && self.around[depth..].iter().any(|l| l.threads) {
            true => level.bytes * self.threads(),
            false => level.bytes,
        };
        // What one statement has brought in, the next one finds there, where there is room for everything.
        let fit = self.values.bytes() <= room(0);
        self.bytes.set(self.bytes.get().and(Bytes::that_fit(fit, room(0))));
        if fit {
            return [0.0; 2];
        }
        // All statements of an iteration are to have room, not this one alone.
        let overflows = |depth: usize| {
            let bit = |k| 2 * k + usize::from(level.own && self.around[depth..].iter().any(|l| l.threads));
            depth > 0 && level.number.is_some_and(|k| self.around[depth - 1].overflows >> bit(k) & 1 == 1)
        };
        let kept: Vec<&Touch> = accesses.iter().filter(|a| !a.in_registers && !a.near).collect();
        let touched = |depth: usize| kept.iter().map(|a| a.footprint(&self.around, depth, level.line)).sum::<f64>();
        // The outermost loop of which an iteration finds what the one before it has touched.
        let depths = self.around.len();
        let depth =
            (0..=depths).find(|d| touched(*d) <= room(*d) && !overflows(*d)).unwrap_or(depths).saturating_sub(1);
        let outside: f64 = self.around[..depth].iter().map(|l| l.trips.value).product::<f64>() * self.often;
        // Elements that a tensor points to are touched again, and where there is no room for all of them, some of them
        // have gone by then.
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

#[cfg(test)]
mod tests {
    use crate::auto::Target;
    use crate::auto::model::{Model, Stage};
    use std::collections::BTreeMap;
    use taffeta_frontend::{NoHooks, NoLoader, Program, Source};

    const PROGRAM: &str = "
def rows(h: f32[n, 32], to: i64[m], s: inout[f32[32]]):
    for e in range(m):
        for d in range(32):
            s[d] = h[to[e], d]

def long_rows(h: f32[n, 1024], to: i64[m], s: inout[f32[1024]]):
    for e in range(m):
        for d in range(1024):
            s[d] = h[to[e], d]

def beside(h: f32[n, 32], g: f32[n, 32], to: i64[m], s: inout[f32[32]]):
    for e in range(m):
        for d in range(32):
            s[d] = h[to[e], d]
        for d in range(32):
            s[d] = g[to[e], d]
";

    /// What a program takes of which all tensors together have no room in any level, in a loop over so many rows.
    fn time(entry: &str, rows: i64, pointers: i64) -> f64 {
        let program = Program::load(Source::inline("f.ft", PROGRAM), &NoLoader);
        let func = program.elaborate(entry, &Default::default(), &NoHooks).unwrap_or_else(|d| panic!("{d}"));
        let sizes = BTreeMap::from([("n".to_string(), rows), ("m".to_string(), pointers)]);
        let mut target = Target { sizes, ..Target::portable(1) };
        target.prices.page = 0.0;
        Model::new(&target, Stage::Compiled).program(&func)
    }

    #[test]
    fn what_a_tensor_points_to_comes_again_where_it_has_no_room() {
        // Of 6 MB in a level of 8 MB, and of 64 MB.
        let [kept, gone] = [50_000, 500_000].map(|rows| time("rows", rows, 5_000_000) / 5e6);
        assert!(gone > kept + 10.0, "{kept} {gone}");
        // Nothing points to it again.
        let once = time("rows", 500_000, 500_000) / 5e5;
        assert!(once < kept + 10.0, "{kept} {once}");
    }

    #[test]
    fn all_that_a_loop_points_to_needs_room() {
        // Two tensors of 6 MB that have room one at a time.
        let (alone, both) = (time("rows", 50_000, 5_000_000), time("beside", 50_000, 5_000_000));
        assert!(both > 2.2 * alone, "{alone} {both}");
    }

    #[test]
    fn long_rows_are_seen_coming() {
        let [short, long] = [("rows", 500_000), ("long_rows", 500_000 / 32)].map(|(entry, rows)| {
            let pointers = 10 * rows;
            time(entry, rows, pointers) / (pointers * if entry == "rows" { 32 } else { 1024 }) as f64
        });
        assert!(long < 0.7 * short, "{short} {long}");
    }
}
