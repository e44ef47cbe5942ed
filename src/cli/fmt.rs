//! `taffeta fmt`: formatter of programs.

use super::output::{Failure, error_text, print};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use taffeta::Report;
use taffeta::ast::{Diagnostic, SourceMap};
use taffeta::codegen::temporary::File;
use taffeta::frontend::format::format;

/// Format programs
#[derive(clap::Args)]
#[command(after_help = "Examples:
  taffeta fmt f.ft g.ft           rewrite the files
  taffeta fmt --check *.ft        only list the files that would change; exit 1 if any
  cat f.ft | taffeta fmt -        from standard input to standard output")]
pub struct Args {
    /// Programs; `-` is standard input
    #[arg(value_name = "FILE.ft", required = true)]
    files: Vec<PathBuf>,
    /// Change nothing; exit 1 if any file would change
    #[arg(long)]
    check: bool,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<(), Failure> {
    let mut diagnostics = Vec::new();
    let mut sources = SourceMap::default();
    let mut changed = Vec::new();
    for path in &args.files {
        match one(path, &mut sources) {
            Ok((_, formatted)) if path.as_os_str() == "-" && !args.check => print(&formatted)?,
            Ok((text, formatted)) if text != formatted => changed.push((path, formatted)),
            Ok(_) => {}
            Err(found) => diagnostics.extend(found),
        }
    }
    if !diagnostics.is_empty() {
        return Err(Failure::Report(Report { diagnostics, sources: Arc::new(sources) }));
    }
    if args.check {
        let names: Vec<String> = changed.iter().map(|(p, _)| p.display().to_string()).collect();
        if names.is_empty() {
            return Ok(());
        }
        return Err(Diagnostic::new("format::differs", format!("not formatted: {}", names.join(", ")))
            .help(format!("run `taffeta fmt {}`", names.join(" ")))
            .into());
    }
    for (path, formatted) in changed {
        replace(path, &formatted)?;
        error_text(&format!("formatted {}\n", path.display()));
    }
    Ok(())
}

/// Returns a program's text before and after formatting.
fn one(path: &Path, sources: &mut SourceMap) -> Result<(String, String), Vec<Diagnostic>> {
    let text = taffeta::io::read_text(path).map_err(|d| vec![d])?;
    let file = sources.add(path.display().to_string(), Some(path), text.clone());
    let formatted = format(&text, file).map_err(|d| d.0)?;
    Ok((text, formatted))
}

/// Replaces a file atomically, keeping its permissions.
fn replace(path: &Path, text: &str) -> Result<(), Failure> {
    let failed = |e: std::io::Error| {
        Failure::from(Diagnostic::new("output::write", format!("cannot write `{}`: {e}", path.display())))
    };
    // Writes through a symbolic link.
    let path = path.canonicalize().map_err(failed)?;
    let dir = path.parent().unwrap_or(Path::new("."));
    let permissions = std::fs::metadata(&path).map_err(failed)?.permissions();
    let mut made = File::inside(dir, ".taffeta-", permissions).map_err(failed)?;
    made.file.write_all(text.as_bytes()).map_err(failed)?;
    made.persist(&path).map_err(failed)
}
