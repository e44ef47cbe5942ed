//! Primitives and queries of the schedule language, one file each, and their registry.
//!
//! The file of a primitive always has the same shape: the rewrite as a picture, the numbered conditions of legality
//! (each is a labelled step in `check`, the number of a [`Refusal`], and a test), the result, and the names of the
//! primitive in other systems. `check` returns a plan or a refusal; `apply` cannot fail.

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

use crate::auto::entries;
use crate::refusal::Refusal;
use crate::schedule::{Change, Schedule};
use crate::value::{Arg, Args, Value};

/// Implementation of a call.
pub(crate) enum Run {
    /// Change of the program.
    Primitive(fn(&Schedule, &Args<'_>) -> Result<Change, Refusal>),
    /// Query of the program.
    Query(fn(&Schedule, &Args<'_>) -> Result<Value, Refusal>),
    /// Call about other calls.
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
    /// Documentation, which heads its file.
    pub doc: &'static str,
    pub run: Run,
}

/// All entries, in the order of the manual.
const ENTRIES: &[&Entry] = &[
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
    &entries::AUTO,
    &entries::STORAGE,
    &entries::USE_LIB,
    &entries::INLINE,
    &entries::WINDOW,
    &entries::BLEND,
    &entries::FUSE,
    &entries::FISSION,
    &entries::POLYHEDRAL,
    &entries::REORDER,
    &entries::TRANSPOSE,
    &entries::TILE,
    &entries::ACCUMULATE,
    &entries::SCATTER,
    &entries::UNROLL,
    &entries::VECTORIZE,
    &entries::PARALLELIZE,
    &entries::MEM_TYPE,
    &queries::LOOPS,
    &queries::INNERMOST,
    &queries::WRITES,
    &queries::PARENT,
    &queries::LENGTH,
    &queries::CAN,
];

/// Returns the entry of that name.
pub(crate) fn find(name: &str) -> Option<&'static Entry> {
    ENTRIES.iter().find(|e| e.name == name).copied()
}

/// Builds the refusal of an unknown method.
pub(crate) fn unknown(name: &str) -> Refusal {
    let r = Refusal::usage(format!("a schedule has no method `{name}`"));
    match taffeta_ast::spelling::nearest(name, ENTRIES.iter().map(|e| e.name)) {
        Some(n) => r.help(format!("did you mean `{n}`?")),
        None => r.help(format!("there are {}", ENTRIES.iter().map(|e| e.name).collect::<Vec<_>>().join(", "))),
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
    ENTRIES.iter().map(|e| Documentation { name: e.name, signature: e.signature, summary: e.summary, text: e.doc })
}

/// Refuses a loop that an earlier step marked: as parallel, vectorised, unrolled or a library call.
pub(crate) fn require_unmarked(func: &taffeta_ast::Func, condition: u32, l: &crate::tree::Loop) -> Result<(), Refusal> {
    let taffeta_ast::StmtKind::For { props, .. } = l.stmt.kind() else { return Ok(()) };
    if *props == taffeta_ast::LoopProps::default() {
        return Ok(());
    }
    let name = crate::selector::called(func, &l.stmt);
    Err(Refusal::illegal(condition, format!("the loop `{name}` is already parallel, vectorised or unrolled"))
        .label(l.stmt.origin().span(), "this loop")
        .help("take this step before `parallelize`, `vectorize`, `unroll` and `blend`"))
}

/// Refuses another order of floating-point sums, where the order must be kept ([`taffeta_ast::Func::keeps_order`]).
pub(crate) fn require_any_order(func: &taffeta_ast::Func, dtype: taffeta_ast::DType) -> Result<(), Refusal> {
    if !func.keeps_order || !dtype.is_float() {
        return Ok(());
    }
    let message = "floats would be added up in another order, and rules leave that alone under strict floats";
    Err(Refusal::illegal(Refusal::ORDER_FREE, message.to_string()).help("a schedule function may ask for it"))
}

/// Refuses a loop whose body writes data that its bounds read, for primitives that evaluate the bounds in the body.
pub(crate) fn require_invariant_bounds(
    condition: u32,
    l: &crate::tree::Loop,
    called: &dyn Fn() -> String,
) -> Result<(), Refusal> {
    use taffeta_analysis::query::effects;
    let written = effects::writes(&l.body);
    let changes = |e: &taffeta_ast::Expr| !effects::loads(e).is_disjoint(&written);
    if ![&l.begin, &l.end, &l.step].into_iter().any(changes) {
        return Ok(());
    }
    Err(Refusal::illegal(condition, format!("the bounds of `{}` change in its body", called()))
        .label(l.stmt.origin().span(), "this loop")
        .help("give the bound a name before the loop: `last = …`, and `range(…, last)`"))
}
