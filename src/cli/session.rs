//! From arguments to an opened entry.

use super::args::{Backend, ProgramArgs};
use super::output::Failure;
use std::collections::BTreeMap;
use std::io::Write as _;
use taffeta::ast::Diagnostic;
use taffeta::{Function, Gradient, Options, Session, StaticValue};

/// The values after `--set`.
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

/// How the program, or its gradient, is compiled; no size is compiled in yet.
pub fn options(args: &ProgramArgs, gradient: Option<Gradient>) -> Result<Options, Failure> {
    let backend = match args.backend {
        Backend::C => taffeta::Backend::C,
        Backend::Interp => taffeta::Backend::Interp,
    };
    let (statics, schedule) = (statics(&args.statics)?, args.schedule.clone());
    Ok(Options::default().backend(backend).statics(statics).schedule(schedule.as_deref()).gradient(gradient))
}

/// Opens the program's entry, or its gradient.
pub fn open(args: &ProgramArgs, gradient: Option<Gradient>) -> Result<Session, Failure> {
    open_with(args, options(args, gradient)?)
}

/// Opens the program's entry as it is to be compiled.
pub fn open_with(args: &ProgramArgs, options: Options) -> Result<Session, Failure> {
    Ok(Session::open(&args.file, args.entry.as_deref(), &options)?)
}

/// Compiles for these sizes, or for all with `--generic`.
pub fn compile(session: &mut Session, args: &ProgramArgs, sizes: &[i64]) -> Result<Function, Failure> {
    let names = session.signature().sizes.iter().map(|s| s.name.clone());
    let known: Vec<(String, i64)> = if args.generic { Vec::new() } else { names.zip(sizes.iter().copied()).collect() };
    let function = session.compile(&known)?;
    // What a program prints stays out of the document on standard output.
    let beside = |line: &str| {
        let _ = writeln!(std::io::stderr().lock(), "{line}");
    };
    Ok(if args.json { function.on_print(beside) } else { function })
}
