//! `auto_scatter`: scatter reductions on threads, each of which owns a block of columns.
//!
//! ```text
//! for e in range(m):                       for some in range(2):  # parallel
//!     for j in range(64):                      for e in range(m):
//!         y[to[e], j] += x[e, j]   ─▶              for j in 32 of them:  # vectorize
//!                                                      y[to[e], j] += x[e, j]
//! ```
//!
//! Any two iterations of `e` may update the same row, but never the same column on two threads: updates need not be
//! atomic, and threads need no private copies of rows.

use super::model::Model;
use super::nest;
use crate::auto::model::enclosing::{Stage, is_guess};
use crate::auto::rule::{Candidate, ExtraSteps, Rule};
use crate::refusal::Refusal;
use crate::schedule::Schedule;
use crate::tree::{self, Loop};
use crate::value::{Arg, Value};
use taffeta_analysis::query::effects;
use taffeta_ast::{Access, Stmt, StmtId, StmtKind};

pub(super) const RULE: Rule = Rule {
    method: "auto_scatter",
    summary: "Gives threads columns of their own in loops that scatter rows.",
    why_here: "before lanes, which the columns of a thread get too; other loops get threads after that",
    gain: crate::auto::rule::MIN_GAIN_STRUCTURAL,
    min_gain_sparse: None,
    objective: None,
    rounds: 1,
    sites,
    candidates,
};

/// Maximum depth of a nest to distribute over threads.
const MAX_LOOPS: usize = 5;
/// Minimum number of a thread's columns, in vectors.
const MIN_VECTORS: i64 = 2;

fn sites(s: &Schedule) -> Vec<StmtId> {
    nest::chains(&s.func().body, 2..=MAX_LOOPS).iter().map(Stmt::id).collect()
}

fn candidates(s: &Schedule, model: &Model<'_>, site: StmtId) -> Vec<Candidate> {
    let Some(root) = tree::find(&s.func().body, site) else { return Vec::new() };
    let loops = nest::chain(&root);
    let (Some(last), threads) = (loops.last().and_then(Loop::of), model.target.threads as i64) else {
        return Vec::new();
    };
    if threads < 2 || !scatters(&last.body) || loops.windows(2).any(|l| !nest::is_alone(&l[0], &l[1])) {
        return Vec::new();
    }
    let around: Vec<Stmt> = s.around(site).into_iter().chain(loops[..loops.len() - 1].iter().cloned()).collect();
    let trips = model.trips(s.func(), &around, &last);
    let lanes = (model.target.vector_bytes / 4) as i64;
    let width = (trips.value / threads as f64 / lanes as f64).ceil() as i64 * lanes;
    if is_guess(trips) || width < MIN_VECTORS * lanes || trips.value <= width as f64 {
        return Vec::new();
    }
    let steps = format!("columns of \"{}\" for threads, {width} each", s.called(&last.stmt));
    let ids: Vec<StmtId> = loops.iter().map(Stmt::id).collect();
    vec![Candidate::new(steps, move |s| apply(s, &ids, width))]
}

/// Applies this rule's candidate at `site`, if there is a legal one, as a follow-up step of other rules.
pub(super) fn expect_columns(s: &mut Schedule, site: StmtId) {
    let target = s.target();
    for candidate in candidates(s, &Model::new(&target, Stage::Structure), site) {
        let mut trial = s.trying();
        if (candidate.apply)(&mut trial).is_ok() {
            s.become_tried(trial);
        }
    }
}

/// Returns whether a statement contains a reduction at loaded indices.
fn scatters(s: &Stmt) -> bool {
    let is_loaded = |a: &Access| !effects::loads(&a.index).is_empty();
    s.any(&mut |s| matches!(s.kind(), StmtKind::ReduceTo { indices, .. } if indices.iter().any(is_loaded)))
}

fn apply(s: &mut Schedule, loops: &[StmtId], width: i64) -> Result<ExtraSteps, Refusal> {
    let Some((last, around)) = loops.split_last() else { return Err(Refusal::target("there is no loop")) };
    let made = s.call("split", &[Arg::from(*last), Arg::from(width)])?;
    let (some, columns) = nest::halves(made)?;
    let order: Vec<Value> =
        [some.clone()].into_iter().chain(around.iter().map(|l| Value::from(*l))).chain([columns.clone()]).collect();
    s.call("reorder", &[Arg::from(Value::List(order))])?;
    s.call("vectorize", &[Arg::from(columns.clone())])?;
    s.call("parallelize", &[Arg::from(some.clone())])?;
    Ok(ExtraSteps::default())
}
