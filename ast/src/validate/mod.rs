//! Validators: invariants of every tree, on which the code that reads it may rely.
//!
//! [`logical`] checks a program as the front end, gradients and schedules make it, [`dense`] one whose structured
//! tensors have become arrays, [`lowered`] one from which C can be printed. [`stage`] runs the first one between two
//! stages of the compiler in every build, [`dense_stage`] the second, and [`pass`] and [`dense_pass`] run them after
//! each pass inside a stage in debug builds and tests. A violation is a bug in this compiler, never in the user's
//! program: it is reported as `internal::tree`, which names the pass.

mod checker;
mod dense;
mod logical;
mod lowered;
mod violation;

pub(crate) use checker::fits;
pub use dense::dense;
pub use logical::logical;
pub use lowered::lowered;
pub use violation::{Invalid, Invariant, Violation};

use crate::diag::Diagnostic;
use crate::func::Func;

/// Checks the program that a stage of the compiler passes on, in every build.
///
/// # Errors
///
/// `internal::tree`, which names the stage and the violations.
pub fn stage(func: &Func, stage: &str) -> Result<(), Diagnostic> {
    logical(func).map_err(|e| e.made_by(stage))
}

/// Checks the output of a pass inside a stage in debug builds; in others, the check at the stage's end suffices.
///
/// # Errors
///
/// As [`stage`].
pub fn pass(func: &Func, pass: &str) -> Result<(), Diagnostic> {
    if cfg!(debug_assertions) { stage(func, pass) } else { Ok(()) }
}

/// Checks the program that a stage passes on once structured tensors are arrays, in every build.
///
/// # Errors
///
/// As [`stage`].
pub fn dense_stage(func: &Func, stage: &str) -> Result<(), Diagnostic> {
    dense(func).map_err(|e| e.made_by(stage))
}

/// Checks the output of a pass on such a program in debug builds.
///
/// # Errors
///
/// As [`stage`].
pub fn dense_pass(func: &Func, pass: &str) -> Result<(), Diagnostic> {
    if cfg!(debug_assertions) { dense_stage(func, pass) } else { Ok(()) }
}
