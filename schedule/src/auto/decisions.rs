//! Decisions of automatic scheduling, rendered for people: `taffeta show --schedule auto --explain`.

use crate::refusal::Refusal;
use std::fmt::Write as _;
use taffeta_ast::Span;

/// Maximum number of untried candidates listed by name; of more candidates, only the first and the last one are.
const MAX_NAMED: usize = 3;

/// Decision of a rule at one site.
#[derive(Clone, Debug)]
pub struct Decision {
    /// Method name of the rule: `auto_parallelize`.
    pub rule: &'static str,
    /// Site, named as a schedule would name it at that point.
    pub site: String,
    /// Source location of the site; none where the decision concerns the whole program.
    pub span: Span,
    /// Candidates compared, the unchanged program first.
    pub outcomes: Vec<Outcome>,
    /// Index of the candidate taken; 0 is the unchanged program.
    pub taken: usize,
}

/// Candidate with its evaluation.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Steps as a schedule spells them, or `keep`.
    pub steps: String,
    /// Result of the evaluation.
    pub answer: Answer,
}

/// Result of evaluating a candidate. Times are of the whole program, in nanoseconds.
#[derive(Clone, Debug)]
pub enum Answer {
    /// Estimated time.
    Takes(f64),
    /// Value of the rule's own objective (`storage`: the search left in stored elements); lower is better. (Not a
    /// time.)
    Weighs(f64),
    /// Reason for the refusal.
    Refused(String),
    /// Lower bound of the time, too high to be worth a trial or no lower than another candidate's estimate; legality
    /// was not checked.
    Pruned(f64),
}

impl Outcome {
    pub(super) fn refused(steps: String, r: &Refusal) -> Outcome {
        Outcome { steps, answer: Answer::Refused(r.message.clone()) }
    }
}

impl Decision {
    /// Renders the decision for people: the site with its source location `place`, then every candidate once, the taken
    /// one marked by a star, and one line for the untried candidates.
    pub fn text(&self, place: &str) -> String {
        let mut out = format!("`{}`", self.site);
        if !place.is_empty() {
            let _ = write!(out, "   # {place}");
        }
        out.push('\n');
        let mut told: Vec<String> = Vec::new();
        for (k, outcome) in self.outcomes.iter().enumerate() {
            let answer = match &outcome.answer {
                Answer::Takes(ns) => time(*ns),
                Answer::Weighs(weight) => format!("searches {weight:.0}"),
                Answer::Refused(why) => format!("refused: {why}"),
                Answer::Pruned(_) => continue,
            };
            let line = format!("{:<44} {answer}", outcome.steps);
            if k == self.taken || !told.contains(&line) {
                let mark = if k == self.taken { '*' } else { ' ' };
                let _ = writeln!(out, "  {mark} {line}");
                told.push(line);
            }
        }
        out + &self.not_tried()
    }

    /// Renders the candidates ruled out by their lower bounds.
    fn not_tried(&self) -> String {
        let mut names: Vec<&str> = Vec::new();
        let mut least = f64::INFINITY;
        for outcome in &self.outcomes {
            if let Answer::Pruned(ns) = outcome.answer {
                least = least.min(ns);
                if !names.contains(&outcome.steps.as_str()) {
                    names.push(&outcome.steps);
                }
            }
        }
        match names.as_slice() {
            [] => String::new(),
            [one] => format!("    not tried, {} at best: {one}\n", time(least)),
            [first, .., last] if names.len() > MAX_NAMED => {
                format!("    not tried, {} at best: {first} … {last} ({} options)\n", time(least), names.len())
            }
            _ => format!("    not tried, {} at best: {}\n", time(least), names.join(", ")),
        }
    }
}

/// Formats a time with three significant digits.
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
