//! `taffeta show --explain`: how an entry runs under its schedule, and why.

use super::{explain_assembly, explain_loops};
use serde_json::{Value as Json, json};
use std::fmt::Write as _;
use taffeta::schedule::Schedule;
use taffeta::schedule::auto::{self, Answer, Execution, NestReport, Outcome};
use taffeta::{ExecutionReport, SourceMap, Span};

/// Maximum share of a program's time for loop nests that are summarised in one line.
const TOLD: f64 = 0.01;

/// Execution report of an entry, rendered as text or JSON.
pub struct ReportText<'a> {
    pub entry: &'a str,
    pub report: &'a ExecutionReport,
    pub sources: &'a SourceMap,
    /// Numbers of stored elements of parameters, as far as inputs determine them.
    pub stored: Vec<(&'a str, i64)>,
}

impl ReportText<'_> {
    /// Renders sections: decisions of rules, loops over structured tensors, threads and lanes, estimates, steps.
    pub fn text(&self) -> String {
        let target = self.schedule().target();
        let (threads, bytes) = (target.threads, target.vector_bytes);
        let mut out = format!("{}: {threads} threads, vectors of {bytes} bytes\n\n", self.entry);
        out += &self.decisions();
        if !self.report.traversals.is_empty() {
            out += &format!("# Loops over structured tensors\n{}\n", self.traversals().text());
        }
        if !self.report.assembled.is_empty() {
            let text = explain_assembly::text(&self.report.assembled, self.sources);
            out += &format!("# Sparse tensors that the program makes\n{text}\n");
        }
        out += &self.execution();
        out += &self.against_roofs();
        out += &self.steps();
        if self.report.keeps_by_rules() {
            out += "\nnote: rules chose the tapes of the gradient. `--as-function`, `--steps` and `--trace` apply to \
                    the gradient with the tapes that it has without rules\n";
        }
        out
    }

    fn schedule(&self) -> &Schedule {
        &self.report.schedule
    }

    fn traversals(&self) -> explain_loops::Loops<'_> {
        let stored = self.stored.clone();
        explain_loops::Loops { loops: &self.report.traversals, sources: self.sources, stored }
    }

    fn place(&self, span: Span) -> String {
        if span == Span::NONE { String::new() } else { self.sources.locate(span) }
    }

    /// Renders the decisions of rules, rule by rule; empty if none was consulted.
    fn decisions(&self) -> String {
        let all = self.schedule().decisions();
        if all.is_empty() {
            return String::new();
        }
        let of = |rule: &str| -> String {
            all.iter().filter(|d| d.rule == rule).map(|d| d.text(&self.place(d.span)) + "\n").collect()
        };
        let mut out = String::new();
        let kept = of(auto::MATERIALISE);
        if !kept.is_empty() {
            out +=
                "# materialise: Decides which values a gradient keeps for its backward pass and which it recomputes.\n";
            out += &format!("# Its place: the programs are compared under their schedules.\n\n{kept}");
        }
        for rule in auto::rules() {
            out += &format!("# {}: {}\n# Its place: {}.\n\n", rule.method, rule.summary, rule.why_here);
            out += &of(rule.method);
        }
        out
    }

    /// Renders the parallelism and vectorisation of every loop, or the reasons against them.
    fn execution(&self) -> String {
        let mut out = String::from("# Threads and lanes\n\n");
        if self.report.loops.is_empty() {
            out += "no loops\n";
        }
        for l in &self.report.loops {
            let indent = "  ".repeat(l.depth);
            let _ = writeln!(out, "{indent}for `{}`   # {}", l.site, self.place(l.span));
            let mut line = |word: &str, how: &Execution| {
                let (answer, text) = match how {
                    Execution::Yes(how) => ("yes", how),
                    Execution::No(why) => ("no", why),
                };
                let _ = writeln!(out, "{indent}  {word:<8} {answer}: {text}");
            };
            if let Some(threads) = &l.threads {
                line("threads", threads);
            }
            line("lanes", &l.lanes);
        }
        out + "\n"
    }

    fn steps(&self) -> String {
        let steps = &self.schedule().trace().steps;
        let mut out = match steps.len() {
            0 => "no steps\n".to_string(),
            1 => "1 step:\n".to_string(),
            n => format!("{n} steps:\n"),
        };
        for step in steps {
            let _ = writeln!(out, "  {step}");
        }
        out
    }

    /// Renders the loop nests with their rooflines, and a warning about each that is far from its roofline.
    fn against_roofs(&self) -> String {
        let nests = self.schedule().nests();
        let [estimate, roof] =
            [|n: &NestReport| n.estimate, NestReport::roof].map(|f| nests.iter().map(f).sum::<f64>());
        let mut out = String::from("# Estimates against the roofline\n\n");
        let (shown, others): (Vec<&NestReport>, Vec<&NestReport>) =
            nests.iter().partition(|n| n.estimate >= TOLD * estimate);
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
            out += &format!("warning: the estimate of `{}` is {times:.0} times its roofline\n", n.site);
            for obstacle in &n.obstacles {
                out += &format!("  in the way: {obstacle}\n");
            }
            out += "\n";
        }
        out
    }

    /// Returns the report as JSON; times are in nanoseconds.
    pub fn json(&self) -> Json {
        let option = |o: &Outcome| match &o.answer {
            Answer::Takes(ns) => json!({"steps": o.steps, "estimate_ns": ns}),
            Answer::Refused(why) => json!({"steps": o.steps, "refused": why}),
            Answer::Weighs(weight) => json!({"steps": o.steps, "searches": weight}),
            Answer::Pruned(ns) => json!({"steps": o.steps, "at_best_ns": ns}),
        };
        let decisions = self.schedule().decisions().iter().map(|d| {
            let options: Vec<Json> = d.outcomes.iter().map(option).collect();
            json!({
                "rule": d.rule, "site": d.site, "at": self.place(d.span), "options": options, "taken": d.taken,
            })
        });
        let steps: Vec<String> = self.schedule().trace().steps.iter().map(ToString::to_string).collect();
        let nests = self.schedule().nests().into_iter().map(|n| {
            json!({
                "site": n.site, "estimate_ns": n.estimate, "arithmetic_ns": n.arithmetic, "memory_ns": n.memory,
                "far": n.is_far, "in_the_way": n.obstacles,
            })
        });
        let how = |e: &Execution| match e {
            Execution::Yes(how) => json!({"yes": how}),
            Execution::No(why) => json!({"no": why}),
        };
        let execution = self.report.loops.iter().map(|l| {
            json!({
                "loop": l.site, "at": self.place(l.span), "depth": l.depth, "threads": l.threads.as_ref().map(how),
                "lanes": how(&l.lanes),
            })
        });
        json!({
            "status": "ok",
            "entry": self.entry,
            "decisions": decisions.collect::<Vec<_>>(),
            "loops": self.traversals().json(),
            "assembled": explain_assembly::json(&self.report.assembled, self.sources),
            "stored": self.stored.iter().map(|(name, n)| ((*name).to_string(), json!(n))).collect::<Json>(),
            "execution": execution.collect::<Vec<_>>(),
            "nests": nests.collect::<Vec<_>>(),
            "steps": steps,
            "tapes_by_rules": self.report.keeps_by_rules(),
        })
    }
}
