//! The primitives and queries of the schedule language, one file each; this is their registry.
//!
//! Every file of a primitive has one shape: the rewrite as a picture, the numbered conditions under which it is legal
//! (each is a labelled step in `check`, the number of a [`Refusal`], and a test), what it returns, and what others call
//! it. `check` gives a plan or a refusal; `apply` cannot fail.

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

/// How a call is carried out.
pub(crate) enum Run {
    /// Changes the program.
    Primitive(fn(&Schedule, &Args<'_>) -> Result<Change, Refusal>),
    /// Looks at it.
    Query(fn(&Schedule, &Args<'_>) -> Result<Value, Refusal>),
    /// Is about other calls.
    Meta(fn(&mut Schedule, &[Arg]) -> Result<Value, Refusal>),
}

/// A primitive or query, as the schedule language knows it.
pub(crate) struct Entry {
    pub name: &'static str,
    /// As in the language reference.
    pub signature: &'static str,
    /// The parameters that can be given, in order.
    pub params: &'static [&'static str],
    /// What it does, in one sentence.
    pub summary: &'static str,
    /// The head of its file.
    pub doc: &'static str,
    pub run: Run,
}

/// All of them, in the order of the manual.
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

/// The entry of that name.
pub(crate) fn find(name: &str) -> Option<&'static Entry> {
    ENTRIES.iter().find(|e| e.name == name).copied()
}

/// The refusal of a method that is not there.
pub(crate) fn unknown(name: &str) -> Refusal {
    let r = Refusal::usage(format!("a schedule has no method `{name}`"));
    match taffeta_ast::spelling::nearest(name, ENTRIES.iter().map(|e| e.name)) {
        Some(n) => r.help(format!("did you mean `{n}`?")),
        None => r.help(format!("there are {}", ENTRIES.iter().map(|e| e.name).collect::<Vec<_>>().join(", "))),
    }
}

/// What the manual says of a primitive or query.
#[derive(Clone, Copy, Debug)]
pub struct Documentation {
    /// Its name.
    pub name: &'static str,
    /// How it is called.
    pub signature: &'static str,
    /// What it does, in one sentence.
    pub summary: &'static str,
    /// Rewrite picture, conditions, result, other names.
    pub text: &'static str,
}

/// The manual of all primitives and queries, in its order.
pub fn documentation() -> impl Iterator<Item = Documentation> {
    ENTRIES.iter().map(|e| Documentation { name: e.name, signature: e.signature, summary: e.summary, text: e.doc })
}

/// Refuses a loop that an earlier step marked to be run in a special way.
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

/// Refuses what changes the order in which floats are added up, where that stays ([`taffeta_ast::Func::keeps_order`]).
pub(crate) fn require_any_order(func: &taffeta_ast::Func, dtype: taffeta_ast::DType) -> Result<(), Refusal> {
    if !func.keeps_order || !dtype.is_float() {
        return Ok(());
    }
    let message = "floats would be added up in another order, and rules leave that alone under strict floats";
    Err(Refusal::illegal(Refusal::ORDER_FREE, message.to_string()).help("a schedule function may ask for it"))
}

/// Refuses a loop whose body writes what its bounds read, for primitives that evaluate the bounds in the body.
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
