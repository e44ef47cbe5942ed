//! `auto_unroll`: full unrolling of short innermost loops, so that the enclosing loop becomes the innermost one.

use super::model::Model;
use super::nest;
use crate::auto::rule::{Candidate, ExtraSteps, Rule};
use crate::schedule::Schedule;
use crate::tree::{self, Loop};
use crate::value::Arg;
use taffeta_ast::{Stmt, StmtId, StmtKind};

pub(super) const RULE: Rule = Rule {
    method: "auto_unroll",
    summary: "Replaces innermost loops of a few iterations by copies of their bodies.",
    why_here: "after the order of loops is chosen, and before lanes, which only innermost loops take",
    gain: crate::auto::rule::MIN_GAIN_MARK,
    min_gain_sparse: Some(crate::auto::rule::MIN_GAIN_MARK),
    objective: None,
    rounds: 1,
    sites,
    candidates,
};

/// Maximum trip count of a loop to unroll.
const MAX_TRIPS: i64 = 4;
/// Maximum number of statements in a body to copy.
const MAX_STATEMENTS: usize = 64;

/// Collects unmarked short innermost loops nested in other loops.
fn sites(s: &Schedule) -> Vec<StmtId> {
    let mut out = Vec::new();
    short(&s.func().body, false, &mut out);
    out
}

fn short(s: &Stmt, inside: bool, out: &mut Vec<StmtId>) {
    if let Some(l) = Loop::of(s) {
        if inside && is_short(&l) && nest::is_unmarked(s) && !nest::has_loop(&l.body) && has_few_statements(&l.body) {
            out.push(s.id());
        }
        return short(&l.body, true, out);
    }
    s.kind().children().into_iter().for_each(|c| short(c, inside, out));
}

/// Returns whether a loop's trip count is a constant small enough for unrolling.
pub(super) fn is_short(l: &Loop) -> bool {
    l.constant_trip_count().is_some_and(|n| (1..=MAX_TRIPS).contains(&n))
}

/// Returns whether a body is small enough to copy and prints nothing.
pub(super) fn has_few_statements(body: &Stmt) -> bool {
    let (mut count, mut silent) = (0, true);
    body.walk(&mut |s| {
        count += 1;
        silent &= !matches!(s.kind(), StmtKind::Print { .. });
    });
    silent && count <= MAX_STATEMENTS
}

fn candidates(s: &Schedule, _: &Model<'_>, site: StmtId) -> Vec<Candidate> {
    let Some(l) = tree::find(&s.func().body, site).filter(|_| !nest::is_in_library(s, site)) else { return Vec::new() };
    let steps = format!("unroll(\"{}\")", s.called(&l));
    vec![Candidate::new(steps, move |s| s.call("unroll", &[Arg::from(site)]).map(|_| ExtraSteps::default()))]
}
