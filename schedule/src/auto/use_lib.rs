//! `auto_use_lib`: matrix products by a library, or by our own kernel where there is none.
//!
//! The primitive decides what is a product, the model whether it is large enough for a call.

use super::model::Model;
use super::{Choice, Others, Rule};
use crate::primitives::as_lib;
use crate::schedule::Schedule;
use crate::tree::{self, Loop};
use crate::value::Arg;
use taffeta_ast::{Stmt, StmtId, StmtKind};

pub(super) const RULE: Rule = Rule {
    method: "auto_use_lib",
    summary: "Has a library do large matrix products.",
    why_here: "first, while products stand as they are written; what a library does is left alone by all others",
    rounds: 1,
    sites,
    options,
};

/// Loops with another one inside, outermost first.
fn sites(s: &Schedule) -> Vec<StmtId> {
    let mut out = Vec::new();
    s.func().body.walk(&mut |l| {
        if let StmtKind::For { body, props, .. } = l.kind()
            && *props == Default::default()
            && has_loop(body)
        {
            out.push(l.id());
        }
    });
    out
}

fn has_loop(s: &Stmt) -> bool {
    let mut found = false;
    s.walk(&mut |s| found |= matches!(s.kind(), StmtKind::For { .. }));
    found
}

fn options(s: &Schedule, _: &Model<'_>, site: StmtId) -> Vec<Choice> {
    let marked = |l: &Stmt| matches!(l.kind(), StmtKind::For { props, .. } if props.library);
    let Some(l) = tree::find(&s.func().body, site).as_ref().and_then(Loop::of) else { return Vec::new() };
    // Inside of a product that a library does already there is none.
    if s.around(site).iter().any(marked) || !as_lib::looks_like(s, &l) {
        return Vec::new();
    }
    let steps = format!("as_lib(\"{}\")", s.called(&l.stmt));
    vec![Choice { steps, take: Box::new(move |s| s.call("as_lib", &[Arg::from(site)]).map(|_| Others::default())) }]
}
