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
    /// What the program would take, in nanoseconds, or why it cannot be done.
    pub estimate: Result<f64, String>,
}

impl Outcome {
    pub(super) fn refused(steps: String, r: &Refusal) -> Outcome {
        Outcome { steps, estimate: Err(r.message.clone()) }
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "`{}`", self.site)?;
        for (k, option) in self.options.iter().enumerate() {
            let mark = if k == self.taken { '*' } else { ' ' };
            match &option.estimate {
                Ok(ns) => writeln!(f, "  {mark} {:<44} {}", option.steps, time(*ns))?,
                Err(why) => writeln!(f, "  {mark} {:<44} refused: {why}", option.steps)?,
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
