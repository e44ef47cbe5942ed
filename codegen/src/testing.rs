//! Parts of the crate, shown to its tests in `tests/`. As unit tests, these would have the crate compiled twice.

pub use crate::c::outline::identifiers;
pub use crate::c::types::literal;
pub use crate::c::writer::{comment, format_text, string};
pub use crate::probe::facts::read as read_facts;
pub use crate::probe::machine::read as read_measured;

use crate::probe::checks::Program;
use crate::toolchain::{CompileOptions, Job, Toolchain};
use crate::{LowerOptions, abi, c, lower, temporary};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use taffeta_ast::build::Builder;
use taffeta_ast::{Diagnostic, Diagnostics, Expr, Func, Op, Stmt, Value};

/// Lists C expressions (sizes, offsets, constants) with their values in Rust.
pub fn constants() -> Vec<(String, i64)> {
    abi::constants()
}

/// Prints an expression in C, without validation.
pub fn printed(e: &Expr) -> String {
    let lowered = lower(&Builder::new("f").finish(Stmt::nop()), &LowerOptions::default());
    c::expression(&lowered.expect("an empty program can be lowered"), e)
}

/// Validates the output of a pass in debug builds.
pub fn valid(pass: &str, func: Func) -> Result<Func, Diagnostics> {
    lower::valid(pass, func)
}

/// Returns the mathematical functions that are probed, each with the values of its operands.
pub fn probed_functions() -> Vec<(Op, Vec<Value>)> {
    let Program { inputs, checks, .. } = Program::parts().pop().expect("the functions are the last part");
    let operands = |of: &[usize]| of.iter().map(|k| inputs[*k].clone()).collect();
    checks.iter().filter_map(|c| Some((c.function?, operands(&c.of)))).collect()
}

/// Finds the compiler for a value of `CC`; `None` stands for an unset variable.
pub fn find_compiler(wish: Option<&str>) -> Result<Toolchain, Diagnostic> {
    Toolchain::find_as(wish)
}

/// Returns the commands by which a toolchain compiles and archives.
pub fn tools(toolchain: &Toolchain, dir: &Path) -> Result<[Command; 2], Diagnostic> {
    let options = CompileOptions::default();
    let job = Job { dir, options: &options, kind: Some("-shared"), sources: &[], runtime: &[], made: dir };
    Ok([toolchain.tool(&job, true)?.to_command(), toolchain.archiver(dir)?])
}

/// Lists the temporary files and folders that exist, each with the process that made it.
pub fn temporary_paths() -> BTreeMap<PathBuf, u32> {
    temporary::all().clone()
}

/// Removes those of the files and folders that this process made.
pub fn remove_temporary(all: &BTreeMap<PathBuf, u32>) {
    temporary::remove(all);
}
