//! `taffeta doctor`: the tools that compile programs, and whether the C compiler computes correctly.

use super::output::{Failure, print, print_json};
use super::progress;
use serde_json::{Map, json};
use std::fmt::Write as _;
use taffeta::Report;
use taffeta::amount;
use taffeta::doctor::{CompilerFindings, Findings, doctor};

/// Show the tools that compile programs, and whether the C compiler computes correctly
#[derive(clap::Args)]
#[command(after_help = "\
A small program is compiled with the flags of every compilation, and its results are compared with those of the \
reference interpreter: conversions of f16 and bf16, integers that wrap around, NaN and -0, division, casts, and the \
accuracy of vectorised functions. Exit status 1: a component that compilation needs is missing or faulty.

Examples:
  taffeta doctor
  CC=clang taffeta doctor
  taffeta doctor --json")]
pub struct Args {
    /// Print the findings as JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<(), Failure> {
    let progress = progress::Work::new("examining the C compiler and this machine");
    let mut found = doctor();
    drop(progress);
    let problems = std::mem::take(&mut found.problems);
    if args.json {
        let mut document: Map<String, _> = found.json().as_object().cloned().unwrap_or_default();
        if !problems.is_empty() {
            return Err(Failure::With(Report::without_sources(problems), document));
        }
        document.insert("status".into(), json!("ok"));
        document.insert("diagnostics".into(), json!([]));
        return print_json(&document.into());
    }
    print(&text(&found))?;
    if problems.is_empty() { Ok(()) } else { Err(problems.into()) }
}

fn text(found: &Findings) -> String {
    let mut out = String::new();
    let mut line = |name: &str, value: String| {
        let _ = writeln!(out, "{name:<10} {value}");
    };
    line("taffeta", found.taffeta.to_string());
    match &found.compiler {
        None => line("compiler", "none".to_string()),
        Some(c) => compiler(c, found, &mut line),
    }
    line("z3", found.z3.clone());
    line("isl", found.isl.clone());
    line(
        "cache",
        match &found.cache {
            None => "not usable".to_string(),
            Some(c) => {
                let noun = if c.entries == 1 { "entry" } else { "entries" };
                format!("{}: {} {noun}, {}", c.dir.display(), c.entries, amount(c.bytes))
            }
        },
    );
    line("threads", found.threads.to_string());
    if let Some(c) = &found.compiler {
        line("computes", verdict(c));
    }
    out
}

fn compiler(c: &CompilerFindings, found: &Findings, line: &mut dyn FnMut(&str, String)) {
    let facts = c.facts.as_ref();
    let kind = facts.map_or("unknown, since it does not work".to_string(), |f| format!("{} {}", f.kind, f.version));
    line("compiler", format!("{kind} (`{}`, {})", c.command, c.path.display()));
    line("flags", c.flags.join(" "));
    if !c.added.trim().is_empty() {
        line("CFLAGS", format!("{}, after all other flags", c.added));
    }
    let bytes = found.vector_bytes;
    line("vectors", format!("{bytes} bytes: {} of f32, {} of f64", bytes / 4, bytes / 8));
    let Some(facts) = facts else { return };
    line(
        "OpenMP",
        match &facts.openmp {
            Some(version) => format!("{version}, {} threads", facts.threads),
            None => "none: parallel loops run on one thread".to_string(),
        },
    );
    let functions =
        if facts.libmvec { "vector versions of mathematical functions" } else { "none: functions run one by one" };
    line("libmvec", functions.to_string());
    line("BLAS", facts.blas.clone().unwrap_or_else(|| "none: matrix products use Taffeta's own kernel".to_string()));
}

/// Formats the verdict of the probe.
fn verdict(c: &CompilerFindings) -> String {
    let Some(verdict) = &c.verdict else { return "unknown".to_string() };
    let mut out = match &verdict.workaround {
        Some(flags) if flags.is_empty() => "rightly".to_string(),
        Some(flags) => format!("rightly with {}; without, wrongly:", flags.join(" ")),
        None => "wrongly:".to_string(),
    };
    for w in &verdict.wrong {
        let _ = write!(out, "\n           {}: {}", w.what, w.found);
    }
    out
}
