//! `taffeta build`: C source, headers and libraries that other programs link without Taffeta.

use super::args::EntryArgs;
use super::output::{Failure, print, print_json};
use super::{progress, session};
use serde_json::json;
use std::path::{Path, PathBuf};
use taffeta::Program;
use taffeta::ast::Diagnostic;
use taffeta::codegen::temporary::Folder;
use taffeta::codegen::toolchain::{CompileOptions, Toolchain};
use taffeta::io::output::folder_takes_files;

/// Make C source, a header and libraries
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    pub of: EntryArgs,
    /// The output directory; created if missing
    #[arg(short = 'o', long = "output", value_name = "DIR")]
    output: PathBuf,
    /// Build the shared library; by default, both libraries are built
    #[arg(long)]
    shared: bool,
    /// Build the static library; by default, both libraries are built
    #[arg(long = "static")]
    archive: bool,
    /// Generate code for any machine of this architecture, not only for this CPU
    #[arg(long)]
    portable: bool,
    /// Print the list of files as JSON
    #[arg(long)]
    pub json: bool,
}

const EXAMPLES: &str = "\
Writes taffeta_ENTRY.c, taffeta_ENTRY.h and the headers taffeta.h and taffeta_runtime.h (with matrix products of a \
library, also taffeta_gemm.h; with structured parameters, also taffeta_levels.h), and the libraries \
libtaffeta_ENTRY.so and libtaffeta_ENTRY.a (only one of them with either --shared or --static). taffeta.h documents \
the calls. Sizes given by --size or --in are compiled in; all others are arguments of every call.

Examples:
  taffeta build mesh.ft circular_diff -o out
  taffeta build f.ft main -o out --static --portable
  cc prog.c -I out out/libtaffeta_main.a -fopenmp -lm";

/// Runs the command.
pub fn run(args: &Args) -> Result<(), Failure> {
    let progress = progress::Work::new("compiling");
    let program = Program::load(&args.of.file)?;
    let entry = program.entry(args.of.entry.as_deref())?;
    let schedule = args.of.schedule().unwrap_or(session::AUTO);
    let options = session::options(&args.of)?.schedule(schedule).portable(args.portable);
    let options = program.with_inputs(&entry, &options, &args.of.inputs, &args.of.sizes)?;
    if taffeta::must_measure(&options) {
        progress.aside(|| progress::while_measuring(taffeta::measure));
    }
    let source = program.c_source(&entry, &options)?;
    if source.signature.logical.is_some() && !source.levels {
        let text = format!("cannot build `{entry}`: the format of a structured parameter is not supported here yet");
        return Err(Diagnostic::new("command::unsupported", text).help("run it by `taffeta run`").into());
    }
    let flags =
        CompileOptions { native: !args.portable, contract: !options.strict_floats, ..CompileOptions::default() };
    let toolchain = taffeta::conforming(Toolchain::find()?, &flags)?;
    let both = args.shared == args.archive;

    let failed = |e: std::io::Error| cannot_write(&args.output, &e);
    if args.output.exists() && !args.output.is_dir() {
        return Err(
            Diagnostic::new("output::directory", format!("`{}` is not a directory", args.output.display())).into()
        );
    }
    // Checked before the C compiler runs.
    folder_takes_files(&args.output).map_err(failed)?;
    let fresh_dir = !args.output.exists();
    std::fs::create_dir_all(&args.output).map_err(failed)?;
    // Files are built in a scratch directory, and moved to their places only when all are complete.
    let made = Folder::inside(&args.output, ".taffeta-build-").map_err(failed).and_then(|scratch| {
        let stem = &source.signature.logical().c_name;
        Toolchain::write(&source, scratch.path(), stem)?;
        if args.shared || both {
            toolchain.shared(scratch.path(), stem, &flags, &[])?;
        }
        if args.archive || both {
            toolchain.archive(scratch.path(), stem, &flags)?;
        }
        publish(scratch.path(), &args.output)
    });
    let files = match made {
        Ok(files) => files,
        Err(d) => {
            if fresh_dir {
                // Removes the new directory again; a non-empty one stays.
                let _ = std::fs::remove_dir(&args.output);
            }
            return Err(d.into());
        }
    };
    drop(progress);
    if args.json {
        let names: Vec<String> = files.iter().map(|f| f.display().to_string()).collect();
        print_json(&json!({ "status": "ok", "entry": entry, "files": names, "diagnostics": [] }))
    } else {
        print(&files.iter().map(|f| format!("{}\n", f.display())).collect::<String>())
    }
}

/// Moves the user's files out of the scratch directory.
fn publish(scratch: &Path, output: &Path) -> Result<Vec<PathBuf>, Diagnostic> {
    let failed = |e: std::io::Error| cannot_write(output, &e);
    let mut files = Vec::new();
    for entry in std::fs::read_dir(scratch).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let keep = path.extension().is_some_and(|e| ["c", "h", "a", "so", "dylib"].iter().any(|k| e == *k));
        if let (true, Some(name)) = (keep, path.file_name()) {
            files.push((path.clone(), output.join(name)));
        }
    }
    files.sort();
    for (from, to) in &files {
        std::fs::rename(from, to).map_err(failed)?;
    }
    Ok(files.into_iter().map(|(_, to)| to).collect())
}

fn cannot_write(path: &Path, e: &std::io::Error) -> Diagnostic {
    Diagnostic::new("output::write", format!("cannot write `{}`: {e}", path.display()))
}
