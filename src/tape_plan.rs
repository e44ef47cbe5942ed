//! Tapes of gradients under automatic schedules: plans that override the decisions of `autodiff`, and records of the
//! tapes that result. [`crate::materialise`] selects a plan.

use crate::automatic;
use crate::options::{Gradient, Mode, Options};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use taffeta_ast::{Diagnostics, Func};
use taffeta_autodiff::{Explanation, Kind, Pair, Request, Tape};

/// Key of a tensor that a gradient either tapes or recomputes: the index of the gradient among those without a given
/// tape or budget, and the index of the tensor in that gradient ([`taffeta_autodiff::Row::choice`]).
pub(crate) type ChoiceKey = (usize, usize);

/// Maximum number of tensors named in a plan's description.
const MAX_NAMES: usize = 3;

/// Tape plan for gradients whose tape neither the program nor its caller specifies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TapePlan {
    pub tape: Tape,
    /// Tensors whose decision is toggled, with the description of each toggle.
    pub flipped: BTreeMap<ChoiceKey, String>,
}

impl TapePlan {
    /// Returns the description for `--explain`.
    pub fn name(&self) -> String {
        let tape = match self.tape {
            Tape::All => "tape=\"all\"",
            Tape::None => "tape=\"none\"",
            _ => "tape=\"auto\"",
        };
        let mut names = self.flipped.values();
        let told: Vec<&str> = names.by_ref().take(MAX_NAMES).map(String::as_str).collect();
        let more = match names.count() {
            0 => None,
            n => Some(format!("{n} more")),
        };
        std::iter::once(tape).chain(told).chain(more.as_deref()).collect::<Vec<_>>().join(", ")
    }

    /// Toggles the decision for a tensor.
    pub fn toggle(&mut self, key: ChoiceKey, tensor: &str, is_taped: bool) {
        if self.flipped.remove(&key).is_none() {
            let decision = if is_taped { "recomputed" } else { "on a tape" };
            self.flipped.insert(key, format!("`{tensor}` {decision}"));
        }
    }
}

/// Tape plan under which gradients are derived, with a record of their tapes.
#[derive(Default)]
pub(crate) struct TapeRecorder {
    plan: TapePlan,
    found: Mutex<Vec<Explanation>>,
}

impl TapeRecorder {
    pub fn new(plan: &TapePlan) -> TapeRecorder {
        TapeRecorder { plan: plan.clone(), found: Mutex::default() }
    }

    /// Returns whether the plan differs from `autodiff`'s own.
    pub fn overrides_default(&self) -> bool {
        self.plan != TapePlan::default()
    }

    /// Returns the explanations of the gradients without a given tape, in order of derivation.
    pub fn found(&self) -> Vec<Explanation> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Derives a derivative, and explains its tape.
    pub fn explained(&self, mut request: Request<'_>) -> Result<(Func, Explanation), Diagnostics> {
        let open = self.open(&mut request);
        let made = taffeta_autodiff::explain(&request)?;
        self.note(open, &made.1);
        Ok(made)
    }

    /// Derives a gradient as separate forward and backward passes.
    pub fn pair(&self, mut request: Request<'_>) -> Result<Pair, Diagnostics> {
        let open = self.open(&mut request);
        let made = taffeta_autodiff::differentiate_pair(&request)?;
        self.note(open, &made.explanation);
        Ok(made)
    }

    /// Applies the plan to a gradient without a given tape or budget. Returns whether it is such a gradient.
    fn open(&self, request: &mut Request<'_>) -> bool {
        let backward = !matches!(request.kind, Kind::Jvp | Kind::Jacobian);
        let open = backward && request.tape == Tape::Auto && request.memory.is_none();
        if open {
            let number = self.found.lock().unwrap_or_else(PoisonError::into_inner).len();
            request.tape = self.plan.tape.clone();
            let flipped = self.plan.flipped.keys().filter(|(gradient, _)| *gradient == number);
            request.flipped = flipped.map(|(_, tensor)| *tensor).collect();
        }
        open
    }

    fn note(&self, open: bool, explanation: &Explanation) {
        if open {
            self.found.lock().unwrap_or_else(PoisonError::into_inner).push(explanation.clone());
        }
    }
}

/// Returns whether automatic schedules choose the tapes of gradients.
pub(crate) fn chooses_tapes(options: &Options) -> bool {
    // Recomputation by other means, such as inverting an overwrite, may round differently.
    automatic::is_automatic(options) && options.choose_tapes && !options.strict_floats
}

/// Returns whether the tape of a gradient is left to choose: in reverse mode, without a given tape or budget.
pub(crate) fn is_open(gradient: &Gradient) -> bool {
    gradient.mode == Mode::Reverse && gradient.tape == Tape::Auto && gradient.memory.is_none()
}
