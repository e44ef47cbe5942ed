//! `taffeta show --schedule auto --explain`: what automatic scheduling decided, and why.

use serde_json::{Value as Json, json};
use taffeta::schedule::Schedule;
use taffeta::schedule::auto::{self, Outcome};

/// The decisions about an entry.
pub struct Decisions<'a> {
    pub entry: &'a str,
    pub schedule: &'a Schedule,
}

impl Decisions<'_> {
    /// As text: a paragraph for each decision, the option that was taken marked by a star, then the schedule.
    pub fn text(&self) -> String {
        let target = self.schedule.target();
        let threads = target.threads;
        let mut out = format!("{}: {threads} threads, vectors of {} bytes\n\n", self.entry, target.vector_bytes);
        for rule in auto::rules() {
            out += &format!("# {}: {}\n# Its place: {}.\n\n", rule.method, rule.summary, rule.why_here);
            for decision in self.schedule.decisions().iter().filter(|d| d.rule == rule.method) {
                out += &format!("{decision}\n");
            }
        }
        let steps = &self.schedule.trace().steps;
        match steps.len() {
            0 => out += "nothing is changed\n",
            1 => out += "1 step:\n",
            n => out += &format!("{n} steps:\n"),
        }
        for step in steps {
            out += &format!("  {step}\n");
        }
        out
    }

    /// The same as data; times in nanoseconds.
    pub fn json(&self) -> Json {
        let option = |o: &Outcome| match &o.estimate {
            Ok(ns) => json!({"steps": o.steps, "estimate_ns": ns}),
            Err(why) => json!({"steps": o.steps, "refused": why}),
        };
        let decisions = self.schedule.decisions().iter().map(|d| {
            let options: Vec<Json> = d.options.iter().map(option).collect();
            json!({"rule": d.rule, "site": d.site, "options": options, "taken": d.taken})
        });
        let steps: Vec<String> = self.schedule.trace().steps.iter().map(ToString::to_string).collect();
        json!({"entry": self.entry, "decisions": decisions.collect::<Vec<_>>(), "steps": steps})
    }
}
