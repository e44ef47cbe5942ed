//! Rules as methods of schedules: `s.auto()` applies all of them, `s.auto_reorder()` one.

use super::apply;
use crate::entry::{Entry, Run};
use crate::refusal::Refusal;
use crate::schedule::Schedule;
use crate::value::{Arg, Args, Value};

pub(crate) const AUTO: Entry = Entry {
    name: "auto",
    signature: "s.auto()",
    params: &[],
    summary: "Applies all rules of automatic scheduling, in their order.",
    doc: include_str!("../primitives/auto.md"),
    run: Run::Meta(|s, args| run(s, args, "s.auto()", None)),
};

/// Builds the entry of a method that applies one rule.
macro_rules! one {
    ($module:ident, $signature:literal) => {
        Entry {
            name: super::$module::RULE.method,
            signature: $signature,
            params: &[],
            summary: super::$module::RULE.summary,
            doc: "",
            run: Run::Meta(|s, args| run(s, args, $signature, Some(super::$module::RULE.method))),
        }
    };
}

pub(crate) const STORAGE: Entry = one!(storage, "s.auto_storage()");
pub(crate) const USE_LIB: Entry = one!(use_lib, "s.auto_use_lib()");
pub(crate) const INLINE: Entry = one!(inline, "s.auto_inline()");
pub(crate) const WINDOW: Entry = one!(unroll_and_jam, "s.auto_window()");
pub(crate) const BLEND: Entry = one!(blend, "s.auto_blend()");
pub(crate) const FUSE: Entry = one!(fuse, "s.auto_fuse()");
pub(crate) const FISSION: Entry = one!(fission, "s.auto_fission()");
pub(crate) const POLYHEDRAL: Entry = one!(polyhedral, "s.auto_polyhedral()");
pub(crate) const REORDER: Entry = one!(reorder, "s.auto_reorder()");
pub(crate) const TRANSPOSE: Entry = one!(transpose, "s.auto_transpose()");
pub(crate) const TILE: Entry = one!(tile, "s.auto_tile()");
pub(crate) const ACCUMULATE: Entry = one!(accumulate, "s.auto_accumulate()");
pub(crate) const SCATTER: Entry = one!(scatter, "s.auto_scatter()");
pub(crate) const UNROLL: Entry = one!(unroll, "s.auto_unroll()");
pub(crate) const VECTORIZE: Entry = one!(vectorize, "s.auto_vectorize()");
pub(crate) const PARALLELIZE: Entry = one!(parallelize, "s.auto_parallelize()");
pub(crate) const MEM_TYPE: Entry = one!(mem_type, "s.auto_mem_type()");

fn run(s: &mut Schedule, args: &[Arg], signature: &'static str, rule: Option<&str>) -> Result<Value, Refusal> {
    Args::bind(signature, &[], args)?;
    apply(s, rule);
    Ok(Value::None)
}
