//! Invariants of trees, and their violations.

use crate::diag::Diagnostic;
use crate::stmt::Origin;
use std::fmt;

/// Invariant of a tree. The heads of `validate/logical.rs`, `validate/dense.rs` and `validate/lowered.rs` list them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // explained in these lists
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
    Made,
    Routine,
    LogicalOnly,
    Stored,
    Flat,
    Plain,
    Placed,
}

/// Invariant that does not hold at a statement.
#[derive(Clone, Debug, PartialEq)]
pub struct Violation {
    /// Violated invariant.
    pub invariant: Invariant,
    /// Offending construct.
    pub found: String,
    /// Statement; [`Origin::none`] for the interface.
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
    /// Maximum number of violations that a diagnostic lists; it counts the others.
    const LISTED: usize = 5;

    /// Creates the diagnostic for a tree made by this pass or stage.
    #[must_use]
    pub fn made_by(&self, pass: &str) -> Diagnostic {
        let mut d = Diagnostic::new("internal::tree", format!("{pass} made a program that breaks a rule of the tree"));
        for v in self.0.iter().take(Self::LISTED) {
            d = d.label(v.origin.span(), v.to_string()).note(v.to_string());
        }
        if self.0.len() > Self::LISTED {
            d = d.note(format!("and {} more", self.0.len() - Self::LISTED));
        }
        d.help("this is a mistake in Taffeta, not in your program; keep the program, its inputs and the output")
    }
}
