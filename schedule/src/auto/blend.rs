//! `auto_blend`: unroll-and-jam of short loops into the loops inside of them.
//!
//! ```text
//! for j in range(3):                       for c in range(n):
//!     for c in range(n):            ─▶         y[c] += x[k[0], c]
//!         y[c] += x[k[j], c]                   y[c] += x[k[1], c]
//!                                              y[c] += x[k[2], c]
//! ```
//!
//! Loads and stores shared by the iterations are then executed once.

use super::model::Model;
use super::{nest, unroll};
use crate::auto::rule::{Candidate, ExtraSteps, Rule};
use crate::schedule::Schedule;
use crate::tree::{self, Loop};
use crate::value::Arg;
use taffeta_ast::{Stmt, StmtId};

pub(super) const RULE: Rule = Rule {
    method: "auto_blend",
    summary: "Unrolls loops of a few iterations and jams them into the loops inside.",
    why_here: "before loops are fused, which then have no short loops between them",
    gain: crate::auto::rule::MIN_GAIN_MARK,
    min_gain_sparse: None,
    objective: None,
    rounds: 1,
    sites,
    candidates,
};

/// Collects unmarked short loops nested in other loops, whose inner loops are all innermost and longer.
pub(super) fn sites(s: &Schedule) -> Vec<StmtId> {
    let mut out = Vec::new();
    for outer in nest::loops_in(&s.func().body) {
        let Some(body) = Loop::of(&outer).map(|l| l.body) else { continue };
        body.walk(&mut |l| out.extend(is_short_around_long(l).then(|| l.id())));
    }
    out
}

fn is_short_around_long(l: &Stmt) -> bool {
    let Some(own) = Loop::of(l).filter(|_| !nest::has_marks(l)) else { return false };
    let inside = nest::loops_in(&own.body);
    let long = |l: &Stmt| Loop::of(l).is_some_and(|l| !unroll::is_short(&l) && !nest::has_loop(&l.body));
    unroll::is_short(&own) && !inside.is_empty() && inside.iter().all(long) && unroll::has_few_statements(&own.body)
}

fn candidates(s: &Schedule, _: &Model<'_>, site: StmtId) -> Vec<Candidate> {
    let Some(l) = tree::find(&s.func().body, site) else { return Vec::new() };
    let steps = format!("blend(\"{}\")", s.called(&l));
    vec![Candidate::new(steps, move |s| s.call("blend", &[Arg::from(site)]).map(|_| ExtraSteps::default()))]
}
