//! Candidate programs of the choice of tapes, before scheduling: the derived programs, the tensors on whose tapes they
//! differ, and the estimates by which candidates that cannot win are ruled out.
use crate::tape_plan::{ChoiceKey, TapePlan};
use std::collections::BTreeMap;
use taffeta_analysis::pass::sroa;
use taffeta_ast::{Func, print};
use taffeta_autodiff::Explanation;
use taffeta_schedule::Schedule;
use taffeta_schedule::auto::Target;

/// Maximum growth of the local tensors' bytes if they are excessive already.
const MORE_MEMORY: u64 = 2;

/// Programs derived under one tape plan.
pub(crate) struct Derived<T> {
    /// Programs that run: a single one, or the two passes of a pair.
    pub funcs: Vec<Func>,
    /// Explanations of the gradients without a given tape.
    pub found: Vec<Explanation>,
    /// Data of the caller about the programs, such as the pair whose passes they are.
    pub whole: T,
}

impl<T> Derived<T> {
    /// Returns the tensors that gradients either tape or recompute, each once.
    pub(super) fn choices(&self) -> Vec<Choice> {
        let mut all = BTreeMap::new();
        for (gradient, e) in self.found.iter().enumerate() {
            for r in &e.rows {
                let Some(number) = r.choice else { continue };
                let key = (gradient, number);
                all.entry(key).or_insert_with(|| Choice {
                    key,
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

/// Tensor that a gradient either tapes or recomputes.
#[derive(Clone)]
pub(super) struct Choice {
    pub key: ChoiceKey,
    pub tensor: String,
    /// Name of the tensor that holds the values.
    pub kept: String,
    pub is_taped: bool,
    work: [f64; 2],
    element: f64,
}

impl Choice {
    /// Returns whether writing and reading a tape in memory takes less time than recomputation in vectors on one
    /// thread. The size of the tape is ignored: small tapes that fit a cache are cheap either way.
    pub fn is_worth_a_tape(&self, target: &Target) -> bool {
        let [simple, costly] = self.work;
        let lanes = (target.vector_bytes as f64 / self.element).max(1.0);
        let prices = &target.prices;
        let again = (simple * prices.simple + costly * prices.transcendental[1]) / lanes;
        // The tape is written and read.
        let tape = target.levels.last().map_or(0.0, |l| 2.0 * self.element * l.per_byte);
        again > tape
    }
}

/// Candidate: a tape plan with its programs and their estimates before scheduling.
pub(super) struct PlanCandidate<T> {
    pub plan: TapePlan,
    pub derived: Derived<T>,
    /// Top-level statements as text, with their estimated times.
    parts: Vec<(String, f64)>,
}

impl<T> PlanCandidate<T> {
    pub fn new(plan: TapePlan, derived: Derived<T>, target: &Target) -> PlanCandidate<T> {
        let parts = derived.funcs.iter().flat_map(|f| Schedule::new(sroa::run(f)).parts(target)).collect();
        PlanCandidate { plan, derived, parts }
    }

    /// Returns the estimated time before scheduling.
    pub fn before(&self) -> f64 {
        self.parts.iter().map(|(_, time)| time).sum()
    }

    /// Returns the share of the time spent in statements that another candidate lacks.
    pub fn share_of_own(&self, other: &PlanCandidate<T>) -> f64 {
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
        self.derived.funcs.iter().map(print::func).collect()
    }

    /// Returns a message if the programs need much more memory than inputs and results, and than another candidate.
    pub fn is_too_large(&self, own: &PlanCandidate<T>) -> Option<String> {
        let of = |c: &PlanCandidate<T>| c.derived.found.iter().find_map(|e| e.excess.clone());
        // Peaks of several gradients may coincide, so they are added.
        let peak =
            |c: &PlanCandidate<T>| c.derived.found.iter().map(|e| e.peak.as_ref().ok().copied()).sum::<Option<u64>>();
        let excess = of(self)?;
        let as_before = of(own).is_some()
            && peak(self).zip(peak(own)).is_some_and(|(new, old)| new <= old.saturating_mul(MORE_MEMORY));
        (!as_before).then_some(excess.message)
    }
}
