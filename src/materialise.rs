//! What gradients keep for their backward pass, where automatic schedules decide it: which way a gradient is made, and
//! what came of it. `choose` decides.

mod candidate;
mod choose;

pub(crate) use candidate::Made;
pub(crate) use choose::choose;

use crate::automatic;
use crate::program::{Gradient, Mode, Options};
use candidate::Choice;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use taffeta_ast::{Diagnostics, Func};
use taffeta_autodiff::{Explanation, Kind, Pair, Request, Tape};

/// A tensor about which a gradient has a choice: the number of the gradient, among those that nobody has said anything
/// of, and that of the tensor in it ([`taffeta_autodiff::Row::choice`]).
pub(crate) type Place = (usize, usize);

/// Tensors that are told by name.
const MOST_NAMES: usize = 3;

/// What gradients keep, where the program and its caller leave it open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Way {
    pub tape: Tape,
    /// Tensors with which it is the other way round, with what is said of that.
    pub flipped: BTreeMap<Place, String>,
}

impl Way {
    /// As `--explain` has it.
    pub fn name(&self) -> String {
        let tape = match self.tape {
            Tape::All => "tape=\"all\"",
            Tape::None => "tape=\"none\"",
            _ => "tape=\"auto\"",
        };
        let mut names = self.flipped.values();
        let told: Vec<&str> = names.by_ref().take(MOST_NAMES).map(String::as_str).collect();
        let more = match names.count() {
            0 => None,
            n => Some(format!("{n} more")),
        };
        std::iter::once(tape).chain(told).chain(more.as_deref()).collect::<Vec<_>>().join(", ")
    }

    /// With one tensor the other way round.
    fn flip(&mut self, choice: &Choice) {
        if self.flipped.remove(&choice.place).is_none() {
            let how = if choice.is_taped { "computed again" } else { "on a tape" };
            self.flipped.insert(choice.place, format!("`{}` {how}", choice.tensor));
        }
    }
}

/// Makes gradients in one way, and remembers what they keep.
#[derive(Default)]
pub(crate) struct Keeping {
    way: Way,
    found: Mutex<Vec<Explanation>>,
}

impl Keeping {
    pub fn new(way: &Way) -> Keeping {
        Keeping { way: way.clone(), found: Mutex::default() }
    }

    /// Whether gradients keep something else than `autodiff` would.
    pub fn is_another_way(&self) -> bool {
        self.way != Way::default()
    }

    /// What the gradients keep that were left open, in the order in which they were made.
    pub fn found(&self) -> Vec<Explanation> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A derivative, and what it keeps.
    pub fn explained(&self, mut request: Request<'_>) -> Result<(Func, Explanation), Diagnostics> {
        let open = self.open(&mut request);
        let made = taffeta_autodiff::explain(&request)?;
        self.note(open, &made.1);
        Ok(made)
    }

    /// A gradient in two passes.
    pub fn pair(&self, mut request: Request<'_>) -> Result<Pair, Diagnostics> {
        let open = self.open(&mut request);
        let made = taffeta_autodiff::differentiate_pair(&request)?;
        self.note(open, &made.explanation);
        Ok(made)
    }

    /// Says what a gradient is to keep, if nobody has. Whether it is open.
    fn open(&self, request: &mut Request<'_>) -> bool {
        let backward = !matches!(request.kind, Kind::Jvp | Kind::Jacobian);
        let open = backward && request.tape == Tape::Auto && request.memory.is_none();
        if open {
            let number = self.found.lock().unwrap_or_else(PoisonError::into_inner).len();
            request.tape = self.way.tape.clone();
            let flipped = self.way.flipped.keys().filter(|(gradient, _)| *gradient == number);
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

/// Whether automatic schedules decide what gradients keep.
pub(crate) fn is_asked(options: &Options) -> bool {
    // (What is computed again another way, as by inverting what overwrote it, may be rounded otherwise.)
    automatic::is_automatic(options) && options.choose_tapes && !options.strict_floats
}

/// Whether nobody has said what a gradient keeps.
pub(crate) fn is_open(gradient: &Gradient) -> bool {
    gradient.mode == Mode::Reverse && gradient.tape == Tape::Auto && gradient.memory.is_none()
}
