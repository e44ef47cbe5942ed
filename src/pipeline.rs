//! The pipeline: from a file to C, one step after the other. This is the one place where the order is written.
//!
//! ```text
//!  .ft ── parse ──▶ syntax ── logical ──▶ Func ── lowered ──▶ Lowered ── c ──▶ CSource ──▶ (store: compile, load, call)
//! ```

use crate::timing::Timings;
use std::collections::BTreeMap;
use weft_analysis::pass;
use weft_ast::{Diagnostic, Diagnostics, Func, SourceMap};
use weft_codegen::c::CSource;
use weft_codegen::{LowerOptions, Lowered};
use weft_frontend::program::{Program, Source};
use weft_frontend::{NoHooks, StaticValue};

/// Reads a program with everything that it imports.
///
/// Why first: the set of files is what everything later depends on, the cache's keys included. Problems of syntax do not
/// stop here: [`logical`] and [`check`] report them all together.
pub fn parse(main: Source, timings: &mut Timings) -> Program {
    timings.measure("parse", || Program::load(main, &crate::loader::Files))
}

/// The logical program of an entry: dense meaning, whatever the storage and the schedule.
///
/// Why before anything that knows the target: calls are inlined and static values are gone, so every later step works on
/// loops and scalars alone. Gradients and schedules belong here, where accesses are still affine and can be proved about;
/// until they exist, the front end refuses them through its hooks.
pub fn logical(
    program: &Program,
    entry: &str,
    statics: &BTreeMap<String, StaticValue>,
    timings: &mut Timings,
) -> Result<Func, Diagnostics> {
    let func = timings.measure("elaborate", || program.elaborate(entry, statics, &NoHooks))?;
    validated(weft_ast::validate::logical(&func), "elaboration")?;
    Ok(func)
}

/// The program on flat buffers, with every check that remains.
pub fn lowered(func: &Func, sizes: &BTreeMap<String, i64>, timings: &mut Timings) -> Result<Lowered, Diagnostics> {
    let options = LowerOptions { sizes: sizes.iter().map(|(k, v)| (k.clone(), *v)).collect() };
    timings.measure("lower", || {
        // Sizes first: every number that is known makes more conditions decidable.
        let func = weft_codegen::lower::specialise(func, &options.sizes)?;
        // Then what is decided disappears, so that checks are made for what is left alone.
        let func = pass::simplify::run(&func);
        // Lowering last: from here on there are no dimensions that one could prove anything about.
        weft_codegen::lower(&func, &options)
    })
}

/// C for a lowered program. On what the validator has passed, this cannot fail.
pub fn c(lowered: &Lowered, sources: &SourceMap, timings: &mut Timings) -> CSource {
    timings.measure("emit", || weft_codegen::c::emit(lowered, sources))
}

/// What is wrong with a program, entry by entry.
pub fn check(program: &Program) -> Vec<Diagnostic> {
    program.check(&NoHooks)
}

/// Schedules are not there yet, so every one but `none` is refused.
pub fn refuse_schedule(program: &Program, schedule: Option<&str>) -> Result<(), Diagnostics> {
    let name = match schedule {
        None | Some("none") => return Ok(()),
        Some(name) => name,
    };
    let d = Diagnostic::new(
        "schedule::unsupported",
        format!("schedules are not supported yet: `{name}` cannot be applied"),
    )
    .help("use --schedule none, which runs the program as it is written");
    let found = program.schedules().into_iter().find(|s| s.name == name);
    Err(match found {
        Some(s) => d.at(s.span).into(),
        None => d.into(),
    })
}

/// A tree that breaks its own rules is a mistake of the step before: found in tests and debug builds, where the validator
/// runs, and reported as what it is.
fn validated(result: Result<(), weft_ast::validate::Invalid>, step: &str) -> Result<(), Diagnostics> {
    match result {
        Err(e) if cfg!(debug_assertions) => {
            Err(Diagnostic::new("internal::tree", format!("{step} made an invalid program: {e}")).into())
        }
        _ => Ok(()),
    }
}
