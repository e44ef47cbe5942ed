//! The validators: what every tree must keep to, so that the code that reads it need not ask.
//!
//! [`logical`] checks a program as the front end, gradients and schedules make it, [`lowered`] one that C can be
//! printed from. Both are run after every pass in tests and debug builds. A violation is a mistake in this compiler,
//! never in the user's program.

mod checker;
mod logical;
mod lowered;

pub(crate) use checker::fits;
pub use logical::logical;
pub use lowered::lowered;

use crate::diag::Diagnostic;
use crate::stmt::Origin;
use std::fmt;

/// What a tree must keep to. The heads of `validate/logical.rs` and `validate/lowered.rs` list them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // named and numbered in the two lists
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
    Shape,
    Interface,
    Format,
    Role,
    LogicalOnly,
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

impl From<Invalid> for Diagnostic {
    fn from(e: Invalid) -> Diagnostic {
        let mut d = Diagnostic::new("internal::tree", "the compiler broke a rule of its own tree");
        for v in &e.0 {
            d = d.label(v.origin.span(), v.to_string()).note(v.to_string());
        }
        d.help("this is a mistake in Taffeta, not in your program; keep the program, its inputs and what was printed")
    }
}
