//! Registry entries of primitives and queries.

use crate::refusal::Refusal;
use crate::schedule::{Change, Schedule};
use crate::value::{Arg, Args, Value};

/// Implementation of a call.
pub(crate) enum Run {
    /// Primitive, which returns the changed program.
    Primitive(fn(&Schedule, &Args<'_>) -> Result<Change, Refusal>),
    /// Query, which changes nothing.
    Query(fn(&Schedule, &Args<'_>) -> Result<Value, Refusal>),
    /// Call that makes or tests other calls: the rules of `auto`, `can`.
    Meta(fn(&mut Schedule, &[Arg]) -> Result<Value, Refusal>),
}

/// Primitive or query of the schedule language.
pub(crate) struct Entry {
    pub name: &'static str,
    /// Signature, as in the language reference.
    pub signature: &'static str,
    /// Parameters that can be given, in order.
    pub params: &'static [&'static str],
    /// Effect, in one sentence.
    pub summary: &'static str,
    /// Page of the manual, which is the `.md` file beside the primitive; empty for queries and single rules.
    pub doc: &'static str,
    pub run: Run,
}
