//! `taffeta check`: all errors and warnings of programs.

use super::output::{Failure, error_text, print, print_json, style};
use serde_json::json;
use std::path::{Path, PathBuf};
use taffeta::ast::Diagnostic;
use taffeta::{Program, Report, render};

/// Report errors and warnings of programs
#[derive(clap::Args)]
#[command(after_help = "Examples:
  taffeta check f.ft
  taffeta check *.ft
  taffeta check f.ft --json")]
pub struct Args {
    /// The programs; `-` is standard input
    #[arg(value_name = "FILE.ft", required = true)]
    files: Vec<PathBuf>,
    /// Print diagnostics as JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// Runs the command on all files, including those after a faulty one.
pub fn run(args: &Args) -> Result<(), Failure> {
    let mut found = Report::without_sources(Vec::new());
    for file in &args.files {
        let report = match Program::open(file) {
            Ok(program) => {
                let report = Report { diagnostics: program.check(), sources: program.sources().clone() };
                if !args.json && !has_errors(&report) {
                    print_success(file, &program, &report)?;
                    continue;
                }
                report
            }
            Err(e) => e.report().clone(),
        };
        found = found.and(report);
    }
    match has_errors(&found) {
        true => Err(Failure::Report(found)),
        false if args.json => {
            let warnings = render::json(&found.diagnostics, &found.sources);
            print_json(&json!({ "status": "ok", "diagnostics": warnings }))
        }
        false => Ok(()),
    }
}

fn has_errors(report: &Report) -> bool {
    report.diagnostics.iter().any(Diagnostic::is_error)
}

/// Reports that a file has no errors, with its warnings.
fn print_success(file: &Path, program: &Program, report: &Report) -> Result<(), Failure> {
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
    print(&format!("{}: no errors in {entries}{schedules}\n", file.display()))
}
