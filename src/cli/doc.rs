//! `taffeta doc`: what the operator library and the library of schedules say of themselves.

use super::output::{Failure, print};
use std::fmt::Write as _;
use taffeta::ast::{Diagnostic, spelling};

/// Show what an operator of the library computes
#[derive(clap::Args)]
#[command(after_help = "Examples:
  taffeta doc                     all operators and schedules of the library
  taffeta doc softmax             formula, shapes and types, an example")]
pub struct Args {
    /// An operator, or a schedule of the library
    #[arg(value_name = "NAME")]
    name: Option<String>,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<(), Failure> {
    match &args.name {
        Some(name) => print(&one(name)?),
        None => print(&all()),
    }
}

fn one(name: &str) -> Result<String, Diagnostic> {
    if let Some(d) = taffeta::libop::document(name) {
        return Ok(format!("{}\n\n{}\n", d.signature, d.text));
    }
    if taffeta::frontend::is_builtin(name) {
        let text = "is part of the language: see \"Expressions\" in the reference";
        return Ok(format!("`{name}` {text}\n"));
    }
    let d = Diagnostic::new("name::unknown", format!("the library has no `{name}`"));
    let known: Vec<&str> = taffeta::libop::names().chain(taffeta::libop::schedule_names()).collect();
    Err(match spelling::nearest(name, known) {
        Some(near) => d.help(format!("did you mean `{near}`?")),
        None => d.help("`taffeta doc` lists all that there is"),
    })
}

/// A line for each.
fn all() -> String {
    let mut out = String::new();
    for (title, names) in [
        ("Operators", taffeta::libop::names().collect::<Vec<_>>()),
        ("Schedules", taffeta::libop::schedule_names().collect()),
    ] {
        let width = names.iter().map(|n| n.len()).max().unwrap_or(0);
        let gap = if out.is_empty() { "" } else { "\n" };
        // Writing to a string does not fail.
        let _ = writeln!(out, "{gap}{title}");
        for name in names {
            let summary = taffeta::libop::document(name).map(|d| d.summary()).unwrap_or_default();
            let _ = writeln!(out, "  {name:width$}  {summary}");
        }
    }
    out
}
