//! The rules as methods of schedules: `s.auto()` applies all of them, `s.auto_reorder()` one.

use super::apply;
use crate::primitives::{Entry, Run};
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

pub(crate) const USE_LIB: Entry = Entry {
    name: super::use_lib::RULE.method,
    signature: "s.auto_use_lib()",
    params: &[],
    summary: super::use_lib::RULE.summary,
    doc: "",
    run: Run::Meta(|s, args| run(s, args, "s.auto_use_lib()", Some(super::use_lib::RULE.method))),
};

pub(crate) const INLINE: Entry = Entry {
    name: super::inline::RULE.method,
    signature: "s.auto_inline()",
    params: &[],
    summary: super::inline::RULE.summary,
    doc: "",
    run: Run::Meta(|s, args| run(s, args, "s.auto_inline()", Some(super::inline::RULE.method))),
};

pub(crate) const FUSE: Entry = Entry {
    name: super::fuse::RULE.method,
    signature: "s.auto_fuse()",
    params: &[],
    summary: super::fuse::RULE.summary,
    doc: "",
    run: Run::Meta(|s, args| run(s, args, "s.auto_fuse()", Some(super::fuse::RULE.method))),
};

pub(crate) const REORDER: Entry = Entry {
    name: super::reorder::RULE.method,
    signature: "s.auto_reorder()",
    params: &[],
    summary: super::reorder::RULE.summary,
    doc: "",
    run: Run::Meta(|s, args| run(s, args, "s.auto_reorder()", Some(super::reorder::RULE.method))),
};

pub(crate) const UNROLL: Entry = Entry {
    name: super::unroll::RULE.method,
    signature: "s.auto_unroll()",
    params: &[],
    summary: super::unroll::RULE.summary,
    doc: "",
    run: Run::Meta(|s, args| run(s, args, "s.auto_unroll()", Some(super::unroll::RULE.method))),
};

pub(crate) const VECTORIZE: Entry = Entry {
    name: super::vectorize::RULE.method,
    signature: "s.auto_vectorize()",
    params: &[],
    summary: super::vectorize::RULE.summary,
    doc: "",
    run: Run::Meta(|s, args| run(s, args, "s.auto_vectorize()", Some(super::vectorize::RULE.method))),
};

pub(crate) const PARALLELIZE: Entry = Entry {
    name: super::parallelize::RULE.method,
    signature: "s.auto_parallelize()",
    params: &[],
    summary: super::parallelize::RULE.summary,
    doc: "",
    run: Run::Meta(|s, args| run(s, args, "s.auto_parallelize()", Some(super::parallelize::RULE.method))),
};

fn run(s: &mut Schedule, args: &[Arg], signature: &'static str, rule: Option<&str>) -> Result<Value, Refusal> {
    Args::bind(signature, &[], args)?;
    apply(s, rule);
    Ok(Value::None)
}
