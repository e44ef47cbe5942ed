//! `taffeta check`: what is wrong with a program, all of it.

use super::output::{Failure, error_text, print, print_json, style};
use serde_json::json;
use std::path::PathBuf;
use taffeta::ast::Diagnostic;
use taffeta::{Program, Report, render};

/// Report what is wrong with a program
#[derive(clap::Args)]
#[command(after_help = "Examples:
  taffeta check f.ft
  taffeta check f.ft --json")]
pub struct Args {
    /// The program
    #[arg(value_name = "FILE.ft")]
    file: PathBuf,
    /// Diagnostics as JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<(), Failure> {
    let program = Program::open(&args.file)?;
    let found = program.check();
    let report = Report { diagnostics: found, sources: program.sources().clone() };
    if report.diagnostics.iter().any(Diagnostic::is_error) {
        return Err(Failure::Report(report));
    }
    if args.json {
        let warnings = render::json(&report.diagnostics, &report.sources);
        print_json(&json!({ "status": "ok", "diagnostics": warnings }))
    } else {
        if !report.diagnostics.is_empty() {
            error_text(&render::text(&report.diagnostics, &report.sources, style()));
        }
        let n = program.entries().len();
        let entries = format!("{n} {}", if n == 1 { "entry" } else { "entries" });
        let schedules = match program.schedules().len() {
            0 => String::new(),
            1 => " and 1 schedule".to_string(),
            n => format!(" and {n} schedules"),
        };
        print(&format!("{}: no errors in {entries}{schedules}\n", args.file.display()))
    }
}
