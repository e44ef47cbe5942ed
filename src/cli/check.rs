//! `taffeta check`: what is wrong with a program, all of it.

use super::output::{Failure, print, print_json};
use serde_json::json;
use std::path::PathBuf;
use taffeta::{Program, Report};

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
    if !found.is_empty() {
        return Err(Failure::Report(Report { diagnostics: found, sources: program.sources().clone() }));
    }
    if args.json {
        print_json(&json!({ "status": "ok", "diagnostics": [] }))
    } else {
        let n = program.entries().len();
        print(&format!("{}: no errors in {n} {}\n", args.file.display(), if n == 1 { "entry" } else { "entries" }))
    }
}
