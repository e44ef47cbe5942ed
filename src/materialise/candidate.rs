//! Programs that may be chosen, before they are scheduled.

use super::{Place, Way};
use std::collections::BTreeMap;
use taffeta_analysis::pass::sroa;
use taffeta_ast::{Func, print};
use taffeta_autodiff::Explanation;
use taffeta_schedule::Schedule;
use taffeta_schedule::auto::Target;

/// Bytes of local tensors may grow by this factor where they are many.
const MORE_MEMORY: u64 = 2;

/// Gradients that were made in one way.
pub(crate) struct Made<T> {
    /// The programs that run: one, or the two passes of a pair.
    pub funcs: Vec<Func>,
    /// What gradients keep that were left open.
    pub found: Vec<Explanation>,
    /// What they were made as.
    pub whole: T,
}

impl<T> Made<T> {
    /// The tensors about which gradients have a choice, each once.
    pub(super) fn choices(&self) -> Vec<Choice> {
        let mut all = BTreeMap::new();
        for (gradient, e) in self.found.iter().enumerate() {
            for r in &e.rows {
                let Some(number) = r.choice else { continue };
                let place = (gradient, number);
                all.entry(place).or_insert_with(|| Choice {
                    place,
                    tensor: r.tensor.clone(),
                    kept: r.kept.clone(),
                    is_taped: r.is_taped(),
                    work: r.work,
                    element: r.element as f64,
                });
            }
        }
        all.into_values().collect()
    }
}

/// A tensor about which there is a choice, as a gradient has it.
#[derive(Clone)]
pub(super) struct Choice {
    pub place: Place,
    pub tensor: String,
    /// What its values are kept in.
    pub kept: String,
    pub is_taped: bool,
    work: [f64; 2],
    element: f64,
}

impl Choice {
    /// Whether a tape of it, in memory, takes less time than to compute it again in vectors, on one thread. (How large
    /// it is does not count: what fits a cache is cheap either way.)
    pub fn is_worth_a_tape(&self, target: &Target) -> bool {
        let [simple, costly] = self.work;
        let lanes = (target.vector_bytes as f64 / self.element).max(1.0);
        let prices = &target.prices;
        let again = (simple * prices.simple + costly * prices.transcendental[1]) / lanes;
        // It is written and read.
        let tape = target.levels.last().map_or(0.0, |l| 2.0 * self.element * l.per_byte);
        again > tape
    }
}

/// Programs that may be chosen.
pub(super) struct Candidate<T> {
    pub way: Way,
    pub made: Made<T>,
    /// All statements outside of others, as text, with what they may be expected to take.
    parts: Vec<(String, f64)>,
}

impl<T> Candidate<T> {
    pub fn new(way: Way, made: Made<T>, target: &Target) -> Candidate<T> {
        let parts = made.funcs.iter().flat_map(|f| Schedule::new(sroa::run(f)).parts(target)).collect();
        Candidate { way, made, parts }
    }

    /// What the programs may be expected to take before schedules.
    pub fn before(&self) -> f64 {
        self.parts.iter().map(|(_, time)| time).sum()
    }

    /// The part of the programs that another candidate does not have.
    pub fn share_of_own(&self, other: &Candidate<T>) -> f64 {
        let mut left: BTreeMap<&str, usize> = BTreeMap::new();
        other.parts.iter().for_each(|(text, _)| *left.entry(text).or_default() += 1);
        let mut own = 0.0;
        for (text, time) in &self.parts {
            match left.get_mut(text.as_str()) {
                Some(n) if *n > 0 => *n -= 1,
                _ => own += time,
            }
        }
        own / self.before().max(1e-9)
    }

    pub fn text(&self) -> String {
        self.made.funcs.iter().map(print::func).collect()
    }

    /// That it takes much more memory than inputs and results, and than another candidate does.
    pub fn is_too_large(&self, own: &Candidate<T>) -> Option<String> {
        let of = |c: &Candidate<T>| c.made.found.iter().find_map(|e| e.excess.clone());
        // Several gradients need not be there at one time, but they may.
        let peak = |c: &Candidate<T>| c.made.found.iter().map(|e| e.peak.as_ref().ok().copied()).sum::<Option<u64>>();
        let excess = of(self)?;
        let as_before = of(own).is_some()
            && peak(self).zip(peak(own)).is_some_and(|(new, old)| new <= old.saturating_mul(MORE_MEMORY));
        (!as_before).then_some(excess.message)
    }
}
