//! Primitives and queries of the schedule language, one file each, and their registry.
//!
//! The head of a primitive is the `.md` file beside it, which is also its page in the manual, and always has the same
//! shape: the rewrite as a picture, the numbered conditions of legality (each is a labelled step in `check`, the number
//! of a [`Refusal`], and a test), the result, and the names of the primitive in other systems. `check` returns a plan
//! or a refusal; `apply` cannot fail.

pub(crate) mod as_lib;
mod blend;
mod cache;
mod cache_reduction;
mod contract;
mod fission;
mod fuse;
mod inline;
mod mark;
mod merge;
mod move_to;
mod parallelize;
mod permute;
mod polyhedral;
mod privatize;
mod queries;
mod reorder;
mod reverse;
mod scalarize;
mod separate_tail;
mod set_format;
pub(crate) mod set_mem_type;
mod specialize;
mod split;
mod swap;
mod tile;
mod unroll;
mod var_merge;
mod var_reorder;
mod var_split;
mod var_squeeze;
mod var_unsqueeze;
pub(crate) mod vectorize;

use crate::auto;
use crate::entry::Entry;
use crate::refusal::Refusal;

/// Primitives, in the order of the manual.
const PRIMITIVES: &[&Entry] = &[
    &split::ENTRY,
    &reorder::ENTRY,
    &fission::ENTRY,
    &swap::ENTRY,
    &move_to::ENTRY,
    &reverse::ENTRY,
    &merge::ENTRY,
    &fuse::ENTRY,
    &permute::ENTRY,
    &unroll::ENTRY,
    &blend::ENTRY,
    &separate_tail::ENTRY,
    &specialize::ENTRY,
    &polyhedral::ENTRY,
    &tile::ENTRY,
    &parallelize::ENTRY,
    &vectorize::ENTRY,
    &cache::ENTRY,
    &cache_reduction::ENTRY,
    &privatize::ENTRY,
    &contract::ENTRY,
    &inline::ENTRY,
    &scalarize::ENTRY,
    &set_mem_type::ENTRY,
    &set_format::ENTRY,
    &var_split::ENTRY,
    &var_merge::ENTRY,
    &var_reorder::ENTRY,
    &var_squeeze::ENTRY,
    &var_unsqueeze::ENTRY,
    &as_lib::ENTRY,
];

/// Queries, in the order of the manual.
const QUERIES: &[&Entry] =
    &[&queries::LOOPS, &queries::INNERMOST, &queries::WRITES, &queries::PARENT, &queries::LENGTH, &queries::CAN];

/// Returns all entries, in the order of the manual: primitives, rules, queries.
fn entries() -> impl Iterator<Item = &'static Entry> {
    let rules = std::iter::once(&auto::ENTRY).chain(auto::ENTRIES);
    PRIMITIVES.iter().copied().chain(rules).chain(QUERIES.iter().copied())
}

/// Returns the entry of that name.
pub(crate) fn find(name: &str) -> Option<&'static Entry> {
    entries().find(|e| e.name == name)
}

/// Builds the refusal of an unknown method.
pub(crate) fn unknown(name: &str) -> Refusal {
    let r = Refusal::usage(format!("a schedule has no method `{name}`"));
    match taffeta_ast::spelling::nearest(name, entries().map(|e| e.name)) {
        Some(n) => r.help(format!("did you mean `{n}`?")),
        None => r.help(format!("the methods are {}", entries().map(|e| e.name).collect::<Vec<_>>().join(", "))),
    }
}

/// Manual entry of a primitive or query.
#[derive(Clone, Copy, Debug)]
pub struct Documentation {
    /// Name of the method.
    pub name: &'static str,
    /// Signature of the method.
    pub signature: &'static str,
    /// Effect, in one sentence.
    pub summary: &'static str,
    /// Rewrite picture, conditions, result, names in other systems.
    pub text: &'static str,
}

/// Lists the manual entries of all primitives and queries, in order.
pub fn documentation() -> impl Iterator<Item = Documentation> {
    entries().map(|e| Documentation { name: e.name, signature: e.signature, summary: e.summary, text: e.doc })
}
