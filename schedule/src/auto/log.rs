//! What automatic scheduling decided, for people: `taffeta show --schedule auto --explain`.

use crate::refusal::Refusal;
use std::fmt::Write as _;
use taffeta_ast::Span;

/// The options that are named of those that were not tried.
const MOST_NAMED: usize = 3;

/// What was decided at one place.
#[derive(Clone, Debug)]
pub struct Decision {
    /// The rule: `auto_parallelize`.
    pub rule: &'static str,
    /// What it is about, as a schedule would name it then.
    pub site: String,
    /// The place of the site in the source; none where the decision is about all of the program.
    pub span: Span,
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
    /// What the program would take at best, which is not worth it, or no less than what another option takes: nobody
    /// asked whether it can be done.
    AtBest(f64),
}

impl Outcome {
    pub(super) fn refused(steps: String, r: &Refusal) -> Outcome {
        Outcome { steps, answer: Answer::Refused(r.message.clone()) }
    }
}

impl Decision {
    /// Renders the decision for people: the site with `place`, then every option once, the taken one marked by a star,
    /// and one line for those that were not tried.
    pub fn text(&self, place: &str) -> String {
        let mut out = format!("`{}`", self.site);
        if !place.is_empty() {
            let _ = write!(out, "   # {place}");
        }
        out.push('\n');
        let mut told: Vec<String> = Vec::new();
        for (k, option) in self.options.iter().enumerate() {
            let answer = match &option.answer {
                Answer::Takes(ns) => time(*ns),
                Answer::Weighs(weight) => format!("searches {weight:.0}"),
                Answer::Refused(why) => format!("refused: {why}"),
                Answer::AtBest(_) => continue,
            };
            let line = format!("{:<44} {answer}", option.steps);
            if k == self.taken || !told.contains(&line) {
                let mark = if k == self.taken { '*' } else { ' ' };
                let _ = writeln!(out, "  {mark} {line}");
                told.push(line);
            }
        }
        out + &self.not_tried()
    }

    /// Renders the options whose estimate at best is too high.
    fn not_tried(&self) -> String {
        let mut names: Vec<&str> = Vec::new();
        let mut least = f64::INFINITY;
        for option in &self.options {
            if let Answer::AtBest(ns) = option.answer {
                least = least.min(ns);
                if !names.contains(&option.steps.as_str()) {
                    names.push(&option.steps);
                }
            }
        }
        match names.as_slice() {
            [] => String::new(),
            [one] => format!("    not tried, {} at best: {one}\n", time(least)),
            [first, .., last] if names.len() > MOST_NAMED => {
                format!("    not tried, {} at best: {first} … {last} ({} options)\n", time(least), names.len())
            }
            _ => format!("    not tried, {} at best: {}\n", time(least), names.join(", ")),
        }
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
