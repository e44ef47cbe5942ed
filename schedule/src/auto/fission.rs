//! `auto_fission`: what threads cannot share out, parted from what they can.
//!
//! ```text
//! for e in range(m):                       for e in range(m): w[e] = f(e)    # threads can
//!     w = f(e)                      ─▶     for e in range(m): y[to[e]] += w[e]
//!     y[to[e]] += w
//! ```
//!
//! Statements that write where a tensor says are cut out of outermost loops; what iterations have of their own, and use
//! on both sides, gets a place for each of them. Whether that pays is asked of the program in which the other loops run
//! on threads, as far as they may.

use super::model::Model;
use super::{Choice, Others, Rule, nest};
use crate::block::Block;
use crate::refusal::Refusal;
use crate::schedule::Schedule;
use crate::tree::{self, Loop};
use crate::value::Arg;
use taffeta_analysis::query::effects;
use taffeta_ast::{Stmt, StmtId, StmtKind};

pub(super) const RULE: Rule = Rule {
    method: "auto_fission",
    summary: "Parts what threads cannot share out from what they can.",
    why_here: "after loops were fused, so that it cuts what is left, and before the nests that it makes are put in order",
    gain: super::STRUCTURE,
    near_stored: None,
    weighs: None,
    rounds: 1,
    sites,
    options,
};

/// Statements of one loop that are cut out.
const MOST_CUTS: usize = 8;

/// Outermost loops without marks that write where a tensor says, and do something else.
fn sites(s: &Schedule) -> Vec<StmtId> {
    let outermost = nest::loops_in(&s.func().body);
    let parted = |l: &Stmt| !nest::has_marks(l) && (1..=MOST_CUTS).contains(&scatters(l).len()) && has_others(l);
    outermost.iter().filter(|l| parted(l)).map(Stmt::id).collect()
}

/// The statements in a loop that write where a tensor says.
fn scatters(l: &Stmt) -> Vec<StmtId> {
    let mut out = Vec::new();
    l.walk(&mut |s| {
        if let StmtKind::Store { indices, .. } | StmtKind::ReduceTo { indices, .. } = s.kind()
            && indices.iter().any(|a| !effects::loads(&a.index).is_empty())
        {
            out.push(s.id());
        }
    });
    out
}

/// Whether a loop has more to do than to scatter.
fn has_others(l: &Stmt) -> bool {
    let apart = scatters(l);
    let mut others = false;
    l.walk(&mut |s| {
        let writes = matches!(s.kind(), StmtKind::Store { .. } | StmtKind::ReduceTo { .. });
        others |= writes && !apart.contains(&s.id());
    });
    others
}

fn options(s: &Schedule, model: &Model<'_>, site: StmtId) -> Vec<Choice> {
    let Some(l) = tree::find(&s.func().body, site) else { return Vec::new() };
    if model.target.threads < 2 {
        return Vec::new();
    }
    let cuts = scatters(&l);
    let steps = format!("fission(\"{}\") around what it scatters", s.called(&l));
    let before = nest::loops_in(&s.func().body).iter().map(Stmt::id).collect::<Vec<_>>();
    vec![Choice {
        steps,
        take: Box::new(move |s| take(s, site, &cuts)),
        then: Some(Box::new(move |s| threads(s, site, &before))),
        least: None,
    }]
}

/// Cuts before each of the statements and after it, where there is something.
fn take(s: &mut Schedule, site: StmtId, cuts: &[StmtId]) -> Result<Others, Refusal> {
    let mut rest = site;
    for at in cuts {
        for side in ["before", "after"] {
            let way = tree::path(&s.func().body, *at).unwrap_or_default();
            let Some(from) = way.iter().position(|l| l.id() == rest) else { continue };
            if super::cut::is_end(&way[from..], side == "before") {
                continue;
            }
            let made = s.call("fission", &[Arg::from(rest), Arg::named(side, *at)])?;
            let (_, second) = nest::halves(made)?;
            rest = s.loop_(&Arg::from(second))?.stmt.id();
        }
    }
    Ok(Others::default())
}

/// Threads for the parts, as the rule that comes last would have it.
fn threads(s: &mut Schedule, site: StmtId, before: &[StmtId]) -> Result<Others, Refusal> {
    let Some(block) = Block::around(s.func(), site) else { return Ok(Others::default()) };
    let parts = block.items.iter().filter(|i| Loop::of(i).is_some() && (i.id() == site || !before.contains(&i.id())));
    for l in parts.filter(|l| scatters(l).is_empty()).map(Stmt::id).collect::<Vec<_>>() {
        nest::attempt(s, "parallelize", &[Arg::from(l)]);
    }
    Ok(Others::default())
}
