//! `auto_fission`: loop distribution that separates scatters, which threads cannot share, from the rest of a loop.
//!
//! ```text
//! for e in range(m):                       for e in range(m): w[e] = f(e)    # threads can
//!     w = f(e)                      ─▶     for e in range(m): y[to[e]] += w[e]
//!     y[to[e]] += w
//! ```
//!
//! Statements that write at loaded indices are cut out of outermost loops; per-iteration locals that are live across a
//! cut get an element per iteration. The gain is judged on the program that later rules are expected to make: loops
//! that scatter have columns per thread (`scatter`), and the other parts run on threads where that is legal. If the
//! program without threads has a lower estimate, that one counts.

use super::model::Model;
use super::nest;
use crate::auto::rule::{Candidate, ExtraSteps, Rule};
use crate::refusal::Refusal;
use crate::schedule::Schedule;
use crate::tree;
use crate::value::Arg;
use taffeta_ast::{Stmt, StmtId, StmtKind};

pub(super) const RULE: Rule = Rule {
    method: "auto_fission",
    summary: "Separates statements that threads cannot share from the rest of a loop.",
    why_here: "after loops are fused, so that it cuts fused loops, and before the nests that it makes are reordered",
    gain: crate::auto::rule::MIN_GAIN_STRUCTURAL,
    min_gain_sparse: None,
    objective: None,
    rounds: 1,
    sites,
    candidates,
};

/// Maximum number of scattering statements in a loop.
const MAX_CUTS: usize = 8;

/// Collects unmarked outermost loops that scatter and have other writes too.
fn sites(s: &Schedule) -> Vec<StmtId> {
    let outermost = nest::loops_in(&s.func().body);
    let parted = |l: &Stmt| !nest::has_marks(l) && (1..=MAX_CUTS).contains(&nest::scatters(l).len()) && has_others(l);
    outermost.iter().filter(|l| parted(l)).map(Stmt::id).collect()
}

/// Returns whether a loop has writes other than scatters.
fn has_others(l: &Stmt) -> bool {
    let apart = nest::scatters(l);
    l.any(&mut |s| matches!(s.kind(), StmtKind::Store { .. } | StmtKind::ReduceTo { .. }) && !apart.contains(&s.id()))
}

fn candidates(s: &Schedule, model: &Model<'_>, site: StmtId) -> Vec<Candidate> {
    let Some(l) = tree::find(&s.func().body, site) else { return Vec::new() };
    if model.target.threads < 2 {
        return Vec::new();
    }
    let cuts = nest::scatters(&l);
    let steps = format!("fission(\"{}\") around its scatters", s.called(&l));
    let before = nest::loops_in(&s.func().body).iter().map(Stmt::id).collect::<Vec<_>>();
    vec![Candidate {
        steps,
        apply: Box::new(move |s| apply(s, site, &cuts)),
        follow_up: Some(Box::new(move |s| Ok(nest::on_threads(s, site, &before)))),
        lower_bound: None,
    }]
}

/// Distributes the loop before and after each of the statements, except where nothing is left on that side.
fn apply(s: &mut Schedule, site: StmtId, cuts: &[StmtId]) -> Result<ExtraSteps, Refusal> {
    let mut rest = site;
    for at in cuts {
        for side in ["before", "after"] {
            let way = tree::path(&s.func().body, *at).unwrap_or_default();
            let Some(from) = way.iter().position(|l| l.id() == rest) else { continue };
            if super::outline_matmul::is_end(&way[from..], side == "before") {
                continue;
            }
            let made = s.call("fission", &[Arg::from(rest), Arg::named(side, *at)])?;
            let (_, second) = nest::halves(made)?;
            rest = s.loop_(&Arg::from(second))?.stmt.id();
        }
    }
    Ok(ExtraSteps::default())
}
