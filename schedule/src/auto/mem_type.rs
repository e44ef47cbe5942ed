//! `auto_mem_type`: arena memory, laid out once per call, for scratch arrays whose size changes with the loops around
//! them.
//!
//! ```text
//! for i in range(n):                       for i in range(n):
//!     t = empty((i + 1,), f64)       ─▶        t = empty((i + 1,), f64)  # arena: room for n
//! ```
//!
//! Lowering chooses the memory of all other local arrays, and no other candidate is better. Only these arrays would be
//! allocated in every iteration.

use super::allocation::is_allocated;
use super::model::Model;
use crate::auto::rule::{Candidate, ExtraSteps, Rule};
use crate::primitives::set_mem_type::has_room;
use crate::schedule::Schedule;
use crate::tree;
use crate::value::{Arg, Handle, Value};
use taffeta_ast::{Func, Stmt, StmtId, StmtKind};

pub(super) const RULE: Rule = Rule {
    method: "auto_mem_type",
    summary: "Puts local arrays of changing size into an arena, which is laid out once.",
    why_here: "at the end, when the other rules have made all of their arrays",
    gain: crate::auto::rule::MIN_GAIN_MARK,
    min_gain_sparse: Some(crate::auto::rule::MIN_GAIN_MARK),
    objective: None,
    rounds: 1,
    sites,
    candidates,
};

/// Collects declarations of arrays that would be allocated in every iteration of a loop.
fn sites(s: &Schedule) -> Vec<StmtId> {
    let mut out = Vec::new();
    allocated(s.func(), &s.func().body, false, &mut out);
    out
}

fn allocated(func: &Func, s: &Stmt, inside: bool, out: &mut Vec<StmtId>) {
    if let StmtKind::VarDef { tensor, .. } = s.kind()
        && inside
        && is_allocated(&func.sizes, tensor)
        && has_room(func, s, tensor)
    {
        out.push(s.id());
    }
    let inside = inside || matches!(s.kind(), StmtKind::For { .. } | StmtKind::While { .. });
    s.kind().children().into_iter().for_each(|c| allocated(func, c, inside, out));
}

fn candidates(s: &Schedule, _: &Model<'_>, site: StmtId) -> Vec<Candidate> {
    let Some(d) = tree::find(&s.func().body, site) else { return Vec::new() };
    let StmtKind::VarDef { tensor, .. } = d.kind() else { return Vec::new() };
    let t = Value::Handle(Handle::Tensor(tensor.symbol.clone()));
    vec![Candidate::new(format!("set_mem_type(\"{}\", \"arena\")", tensor.symbol.name()), move |s| {
        s.call("set_mem_type", &[Arg::from(t.clone()), Arg::from("arena")]).map(|_| ExtraSteps::default())
    })]
}
