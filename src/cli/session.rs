//! Opening and compiling of entries from command-line arguments.

use super::args::{Backend, EntryArgs, ProgramArgs};
use super::output::{Failure, error_text, style};
use super::progress;
use std::collections::BTreeMap;
use std::io::Write as _;
use taffeta::ast::Diagnostic;
use taffeta::inputs::Inputs;
use taffeta::{Function, Gradient, Options, Session, Signature, StaticValue, render};

/// Name of the automatic schedule.
pub const AUTO: &str = "auto";

/// Prints the warnings of a program; with `--json`, returns them for the document.
pub fn warnings(session: &Session, args: &ProgramArgs) -> Result<serde_json::Value, Failure> {
    let report = session.warnings()?;
    if args.json {
        return Ok(render::json(&report.diagnostics, &report.sources));
    }
    if !report.diagnostics.is_empty() {
        error_text(&render::text(&report.diagnostics, &report.sources, style()));
    }
    Ok(serde_json::Value::Array(Vec::new()))
}

/// Parses the values of `--set`.
pub fn statics(given: &[(String, String)]) -> Result<BTreeMap<String, StaticValue>, Failure> {
    let mut out = BTreeMap::new();
    let mut errors = Vec::new();
    for (name, text) in given {
        match text.parse::<StaticValue>() {
            Ok(value) => {
                out.insert(name.clone(), value);
            }
            Err(what) => errors.push(Diagnostic::new("input::static", format!("--set {name}: {what}"))),
        }
    }
    if errors.is_empty() { Ok(out) } else { Err(errors.into()) }
}

/// Builds the options of a program or its gradient, without compiled-in sizes.
pub fn options(args: &EntryArgs) -> Result<Options, Failure> {
    let statics = statics(&args.statics)?;
    Ok(Options::default()
        .statics(statics)
        .schedule(args.schedule())
        .gradient(args.gradient())
        .strict_floats(args.strict_floats))
}

/// Builds the options of a program that runs: by default under the automatic schedule, or as written in the
/// interpreter.
pub fn run_options(args: &ProgramArgs, gradient: Option<Gradient>) -> Result<Options, Failure> {
    let (backend, usual) = match args.backend {
        Backend::C => (taffeta::Backend::C, Some(AUTO)),
        Backend::Interp => (taffeta::Backend::Interp, None),
    };
    let schedule = args.of.schedule().or(usual);
    Ok(options(&args.of)?.backend(backend).schedule(schedule).gradient(gradient))
}

/// Opens an entry, or its gradient.
pub fn open(args: &ProgramArgs) -> Result<Session, Failure> {
    open_with(args, run_options(args, args.of.gradient())?)
}

/// Opens an entry with the given options.
pub fn open_with(args: &ProgramArgs, options: Options) -> Result<Session, Failure> {
    Ok(Session::open(&args.of.file, args.of.entry.as_deref(), &options)?)
}

/// Returns the inputs, with ones for missing seeds of a gradient.
pub fn with_seeds(args: &EntryArgs, signature: &Signature) -> Vec<(String, String)> {
    let mut all = args.inputs.clone();
    if args.grad.is_some() {
        // The gradient of a gradient has seeds `y.grad` and `y.grad2`.
        let is_seed = |n: &&String| n.trim_end_matches(|c: char| c.is_ascii_digit()).ends_with(".grad");
        let seeds = signature.params().map(|p| &p.name).filter(is_seed);
        let missing: Vec<&String> = seeds.filter(|n| !all.iter().any(|(given, _)| given == *n)).collect();
        all.extend(missing.into_iter().map(|n| (n.clone(), "ones".to_string())));
    }
    all
}

/// Reads the inputs of an entry that runs.
pub fn read(args: &EntryArgs, session: &mut Session) -> Result<Inputs, Failure> {
    let signature = session.signature().clone();
    let given = with_seeds(args, &signature);
    let inputs = progress::while_reading(&given, || taffeta::inputs::read(&signature, &given, &args.sizes))
        .map_err(|faults| Failure::Report(session.report(faults)))?;
    taffeta::inputs::result_shapes(&signature, &inputs.sizes).map_err(Failure::from)?;
    session.assume(taffeta::inputs::integers(&signature, &inputs.values));
    session.expect(taffeta::inputs::stored(&signature, &inputs.values));
    Ok(inputs)
}

/// Prints a program's line to standard error, when standard output is reserved.
pub fn print_to_stderr(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

/// Compiles for the given sizes; with `--generic`, for all sizes, with the given ones as hints. Sizes beyond 2^31 - 1
/// are compiled in nevertheless: they make indices i64.
pub fn compile(session: &mut Session, args: &ProgramArgs, sizes: &[i64]) -> Result<Function, Failure> {
    if session.must_measure() {
        progress::while_measuring(taffeta::measure);
    }
    let names = session.signature().sizes.iter().map(|s| s.name.clone());
    let sizes: Vec<(String, i64)> = names.zip(sizes.iter().copied()).collect();
    let function = match args.generic {
        true => {
            session.expect(sizes.clone());
            let large: Vec<(String, i64)> = sizes.into_iter().filter(|(_, n)| *n > i64::from(i32::MAX)).collect();
            session.compile(&large)?
        }
        false => session.compile(&sizes)?,
    };
    Ok(if args.json { function.on_print(print_to_stderr) } else { function })
}
