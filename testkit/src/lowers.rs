//! What a schedule asks of lowering, as the command line has it asked.

use taffeta_analysis::pass::simplify;
use taffeta_ast::{Diagnostic, Func};
use taffeta_schedule::Traversal;
use taffeta_structured::lower;

/// How a program is lowered, or why it cannot be.
pub fn lowers(func: &Func) -> Result<Traversal, Diagnostic> {
    match lower(&simplify::run(func)) {
        Ok(l) => Ok(Traversal { scans: l.warnings.len(), seeks: l.seeks, disorder: l.disorder }),
        Err(all) => Err(all.0[0].clone()),
    }
}
