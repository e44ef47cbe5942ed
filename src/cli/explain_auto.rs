//! `taffeta show --schedule auto --explain`: what automatic scheduling decided, and why.

use serde_json::{Value as Json, json};
use taffeta::schedule::Schedule;
use taffeta::schedule::auto::{self, Answer, Nest, Outcome};

/// Nests that take less than this part of a program are told of together.
const TOLD: f64 = 0.01;

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
        let decisions = |rule: &str| -> String {
            let of = self.schedule.decisions().iter().filter(|d| d.rule == rule);
            of.map(|decision| format!("{decision}\n")).collect()
        };
        let kept = decisions(auto::MATERIALISE);
        if !kept.is_empty() {
            out +=
                "# materialise: Decides what the gradient keeps for its backward pass, and what it computes again.\n";
            out += &format!("# Its place: the programs are compared under their schedules.\n\n{kept}");
        }
        for rule in auto::rules() {
            out += &format!("# {}: {}\n# Its place: {}.\n\n", rule.method, rule.summary, rule.why_here);
            out += &decisions(rule.method);
        }
        out += &self.against_roofs();
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

    /// The nests of the program that came of it against their roofs, with a warning where one is far from it.
    fn against_roofs(&self) -> String {
        let nests = self.schedule.nests();
        let [estimate, roof] = [|n: &Nest| n.estimate, Nest::roof].map(|f| nests.iter().map(f).sum::<f64>());
        let mut out = String::from("# Estimates against the roofline\n\n");
        let (shown, others): (Vec<&Nest>, Vec<&Nest>) = nests.iter().partition(|n| n.estimate >= TOLD * estimate);
        let width = shown.iter().map(|n| n.site.len() + 2).chain([10]).max().unwrap_or(0);
        for n in &shown {
            let which = if n.arithmetic >= n.memory { "arithmetic" } else { "memory" };
            let (site, takes, roof) = (format!("`{}`", n.site), auto::time(n.estimate), auto::time(n.roof()));
            let percent = 100.0 * n.roof() / n.estimate.max(1e-3);
            out += &format!("  {site:<width$} {takes:>9}   roof {roof:>9} ({which}), {percent:.0} %\n");
        }
        if !others.is_empty() {
            let takes = auto::time(others.iter().map(|n| n.estimate).sum());
            out += &format!("  {:<width$} {takes:>9}\n", format!("{} more", others.len()));
        }
        out += &format!("  {:<width$} {:>9}   roof {:>9}\n\n", "all", auto::time(estimate), auto::time(roof));
        for n in nests.iter().filter(|n| n.is_far) {
            let times = n.estimate / n.roof().max(1e-3);
            out += &format!("warning: `{}` is expected to take {times:.0} times what the machine allows\n", n.site);
            for obstacle in &n.obstacles {
                out += &format!("  in the way: {obstacle}\n");
            }
            out += "\n";
        }
        out
    }

    /// The same as data; times in nanoseconds.
    pub fn json(&self) -> Json {
        let option = |o: &Outcome| match &o.answer {
            Answer::Takes(ns) => json!({"steps": o.steps, "estimate_ns": ns}),
            Answer::Refused(why) => json!({"steps": o.steps, "refused": why}),
            Answer::Weighs(weight) => json!({"steps": o.steps, "searches": weight}),
            Answer::Excluded(why) => json!({"steps": o.steps, "not_tried": why}),
            Answer::AtBest(ns) => json!({"steps": o.steps, "at_best_ns": ns}),
        };
        let decisions = self.schedule.decisions().iter().map(|d| {
            let options: Vec<Json> = d.options.iter().map(option).collect();
            json!({"rule": d.rule, "site": d.site, "options": options, "taken": d.taken})
        });
        let steps: Vec<String> = self.schedule.trace().steps.iter().map(ToString::to_string).collect();
        let nests = self.schedule.nests().into_iter().map(|n| {
            json!({
                "site": n.site, "estimate_ns": n.estimate, "arithmetic_ns": n.arithmetic, "memory_ns": n.memory,
                "far": n.is_far, "in_the_way": n.obstacles,
            })
        });
        let nests: Vec<Json> = nests.collect();
        json!({"entry": self.entry, "nests": nests, "decisions": decisions.collect::<Vec<_>>(), "steps": steps})
    }
}
