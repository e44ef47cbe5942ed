//! What automatic scheduling decided, for people: `taffeta show --schedule auto --explain`.

use crate::refusal::Refusal;
use std::fmt;

/// What was decided at one place.
#[derive(Clone, Debug)]
pub struct Decision {
    /// The rule: `auto_parallelize`.
    pub rule: &'static str,
    /// What it is about, as a schedule would name it then.
    pub site: String,
    /// The program as it was, and what else was tried.
    pub options: Vec<Outcome>,
    /// Which of them was taken; 0 is the program as it was.
    pub taken: usize,
}

/// What came of one option.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The steps, as a schedule would have them; `keep`.
    pub steps: String,
    /// What became of it.
    pub answer: Answer,
}

/// What became of an option. Times are those of the whole program, in nanoseconds.
#[derive(Clone, Debug)]
pub enum Answer {
    /// What the program would take.
    Takes(f64),
    /// What is left to search in what is stored: less is better. (Not a time.)
    Weighs(f64),
    /// Why it cannot be done.
    Refused(String),
    /// Why nobody has to try it.
    Excluded(String),
    /// What the program would take at best, which is not worth it, or no less than what another option takes: nobody
    /// asked whether it can be done.
    AtBest(f64),
}

impl Outcome {
    pub(super) fn refused(steps: String, r: &Refusal) -> Outcome {
        Outcome { steps, answer: Answer::Refused(r.message.clone()) }
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "`{}`", self.site)?;
        for (k, option) in self.options.iter().enumerate() {
            let mark = if k == self.taken { '*' } else { ' ' };
            match &option.answer {
                Answer::Takes(ns) => writeln!(f, "  {mark} {:<44} {}", option.steps, time(*ns))?,
                Answer::Weighs(weight) => writeln!(f, "  {mark} {:<44} searches {weight:.0}", option.steps)?,
                Answer::Refused(why) => writeln!(f, "  {mark} {:<44} refused: {why}", option.steps)?,
                Answer::Excluded(why) => writeln!(f, "  {mark} {:<44} not tried: {why}", option.steps)?,
                Answer::AtBest(ns) => writeln!(f, "  {mark} {:<44} not tried: at best {}", option.steps, time(*ns))?,
            }
        }
        Ok(())
    }
}

/// A time in three digits.
pub fn time(ns: f64) -> String {
    let (value, unit) = match ns {
        ns if ns < 1e3 => (ns, "ns"),
        ns if ns < 1e6 => (ns / 1e3, "µs"),
        ns if ns < 1e9 => (ns / 1e6, "ms"),
        ns => (ns / 1e9, "s"),
    };
    let digits = if value < 10.0 { 2 } else { usize::from(value < 100.0) };
    format!("{value:.digits$} {unit}")
}
