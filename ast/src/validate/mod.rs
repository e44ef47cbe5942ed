//! The validators: what every tree must keep to, so that the code that reads it need not ask.
//!
//! [`logical`] checks a program as the front end, gradients and schedules make it, [`dense`] one whose structured
//! tensors have become arrays, [`lowered`] one that C can be printed from. [`stage`] asks for the first of them between
//! two stages of the compiler in every build, [`dense_stage`] for the second, and [`dense_pass`] and [`pass`] after
//! each pass inside of a stage in debug builds and tests. A violation is a mistake in this compiler, never in the
//! user's program: it is reported as `internal::tree`, which names the pass.

mod checker;
mod dense;
mod logical;
mod lowered;

pub(crate) use checker::fits;
pub use dense::dense;
pub use logical::logical;
pub use lowered::lowered;

use crate::diag::Diagnostic;
use crate::func::Func;
use crate::stmt::Origin;
use std::fmt;

/// What a tree must keep to. The heads of `validate/logical.rs`, `validate/dense.rs` and
/// `validate/lowered.rs` list them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // named and numbered in these lists
pub enum Invariant {
    Scope,
    BoundOnce,
    UniqueIds,
    NestedSeq,
    Literal,
    Operands,
    Index,
    Dimensions,
    Condition,
    StoredType,
    Reduction,
    Library,
    ReadOnly,
    Protocol,
    Shape,
    Interface,
    Format,
    Role,
    LogicalOnly,
    Stored,
    Flat,
    Plain,
    Placed,
}

/// An invariant that does not hold at a statement.
#[derive(Clone, Debug, PartialEq)]
pub struct Violation {
    /// Which one.
    pub invariant: Invariant,
    /// What was found.
    pub found: String,
    /// The statement; [`Origin::none`] for the interface.
    pub origin: Origin,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.invariant, self.found)
    }
}

/// All violations of a tree, in the order of its text; never empty.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub struct Invalid(pub Vec<Violation>);

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (k, v) in self.0.iter().enumerate() {
            write!(f, "{}{v}", if k == 0 { "" } else { "\n" })?;
        }
        Ok(())
    }
}

impl Invalid {
    /// The violations that a diagnostic lists; it counts the others.
    const LISTED: usize = 5;

    /// The diagnostic for a tree that this pass or stage made.
    #[must_use]
    pub fn made_by(&self, pass: &str) -> Diagnostic {
        let mut d = Diagnostic::new("internal::tree", format!("{pass} made a program that breaks a rule of the tree"));
        for v in self.0.iter().take(Self::LISTED) {
            d = d.label(v.origin.span(), v.to_string()).note(v.to_string());
        }
        if self.0.len() > Self::LISTED {
            d = d.note(format!("and {} more", self.0.len() - Self::LISTED));
        }
        d.help("this is a mistake in Taffeta, not in your program; keep the program, its inputs and what was printed")
    }
}

/// Checks the program that a stage of the compiler hands on, in every build.
///
/// # Errors
///
/// `internal::tree`, which names the stage and what is violated.
pub fn stage(func: &Func, stage: &str) -> Result<(), Diagnostic> {
    logical(func).map_err(|e| e.made_by(stage))
}

/// Checks what a pass inside of a stage made, in debug builds alone: in others the stage's end is soon enough.
///
/// # Errors
///
/// As [`stage`].
pub fn pass(func: &Func, pass: &str) -> Result<(), Diagnostic> {
    if cfg!(debug_assertions) { stage(func, pass) } else { Ok(()) }
}

/// Checks the program that a stage hands on once structured tensors are arrays, in every build.
///
/// # Errors
///
/// As [`stage`].
pub fn dense_stage(func: &Func, stage: &str) -> Result<(), Diagnostic> {
    dense(func).map_err(|e| e.made_by(stage))
}

/// Checks what a pass made of such a program, in debug builds alone.
///
/// # Errors
///
/// As [`stage`].
pub fn dense_pass(func: &Func, pass: &str) -> Result<(), Diagnostic> {
    if cfg!(debug_assertions) { dense_stage(func, pass) } else { Ok(()) }
}
