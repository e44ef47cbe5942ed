//! Callback by which schedules query lowering, as the command line sets it.

use taffeta_analysis::pass::simplify;
use taffeta_ast::{Diagnostic, Func};
use taffeta_schedule::Traversal;
use taffeta_structured::lower;

/// Returns the cost of traversal in the lowered program, or the reason why it cannot be lowered.
pub fn lowers(func: &Func) -> Result<Traversal, Diagnostic> {
    match lower(&simplify::run(func)) {
        Ok(l) => Ok(Traversal { scans: l.warnings.len(), seeks: l.seeks, order_violations: l.order_violations }),
        Err(all) => Err(all.0[0].clone()),
    }
}
