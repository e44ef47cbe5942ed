//! `auto_window`: blocks of iterations that traverse overlapping windows of a tensor.
//!
//! ```text
//! for i in range(n):                       for i in range(0, n, 4):
//!     for j in range(257):                     for k in range(3, 257):      # what all four windows have
//!         s[j] += f(q[i], x[i + j])   ─▶           for t in range(4):
//!                                                      s[t, k - t] += f(q[i + t], x[i + k])
//! ```
//!
//! A row of `x` is then loaded from its cache once per four iterations, and later rules jam the short loops over these
//! iterations, or keep their sums in registers. Local tensors of an iteration are expanded to an element per iteration
//! (`fission`), window position and iteration are skewed and interchanged (`permute` to `(i + j, i)`), and the ends of
//! the windows, which only some iterations have, are peeled (`separate_tail`).

use super::model::Model;
use super::nest;
use crate::auto::rule::{Candidate, ExtraSteps, Rule};
use crate::block::Block;
use crate::refusal::Refusal;
use crate::schedule::Schedule;
use crate::tree::{self, Loop};
use crate::value::{Arg, IndexMap, Value};
use taffeta_analysis::query::effects;
use taffeta_analysis::query::stride::constant_stride;
use taffeta_ast::{ExprKind, Stmt, StmtId};

pub(super) const RULE: Rule = Rule {
    method: "auto_window",
    summary: "Runs a few iterations over overlapping windows together.",
    why_here: "before short loops are jammed, as it makes some, and before loops are fused, which would hide windows",
    gain: crate::auto::rule::MIN_GAIN_STRUCTURAL,
    min_gain_sparse: None,
    objective: None,
    rounds: 1,
    sites,
    candidates,
};

/// Number of iterations per block: each keeps a row of its sums, or of its operands beside the window, in registers.
const ITERATIONS_PER_BLOCK: i64 = 4;

/// Minimum trip count of a window and of its enclosing loop: of shorter windows, a block shares too small a part.
const MIN_TRIPS: f64 = 4.0 * ITERATIONS_PER_BLOCK as f64;

/// Maximum number of window loops in one loop.
const MAX_WINDOWS: usize = 4;

/// Collects loops that contain window loops.
fn sites(s: &Schedule) -> Vec<StmtId> {
    let mut out = Vec::new();
    s.func().body.walk(&mut |l| {
        if nest::is_unmarked(l) && (1..=MAX_WINDOWS).contains(&windows(l).len()) {
            out.push(l.id());
        }
    });
    out
}

/// Returns the loops directly in a loop whose windows in consecutive outer iterations differ by one element.
fn windows(s: &Stmt) -> Vec<Loop> {
    let Some(l) = Loop::of(s).filter(|l| l.step.as_int() == Some(1)) else { return Vec::new() };
    let inner = Block::of(&l.body).items.iter().filter_map(Loop::of).collect::<Vec<_>>();
    let rows = |i: &Loop| nest::has_loop(&i.body) && !nest::has_marks(&i.stmt);
    inner.into_iter().filter(|i| i.step.as_int() == Some(1) && rows(i) && overlaps(&l, i)).collect()
}

/// Returns whether the inner loop has a load with one index that both iterators move by the same nonzero stride, and no
/// other index that mentions them.
fn overlaps(outer: &Loop, inner: &Loop) -> bool {
    inner.body.any_expr(&mut |e| {
        let ExprKind::Load(_, at) = e.kind() else { return false };
        let moved: Vec<_> = at.iter().filter(|a| effects::mentions(&a.index, &[&outer.iter, &inner.iter])).collect();
        let [a] = moved.as_slice() else { return false };
        let by = [outer, inner].map(|l| constant_stride(&a.index, &l.iter));
        by[0] == by[1] && by[0].is_some_and(|by| by != 0)
    })
}

fn candidates(s: &Schedule, model: &Model<'_>, site: StmtId) -> Vec<Candidate> {
    let Some(l) = tree::find(&s.func().body, site) else { return Vec::new() };
    let around: Vec<Stmt> = s.around(site).into_iter().chain([l.clone()]).collect();
    let long = |w: &Loop| model.trips(s.func(), &around, w).value >= MIN_TRIPS;
    let windows: Vec<Loop> = windows(&l).into_iter().filter(long).collect();
    let Some(own) = Loop::of(&l).filter(|_| !windows.is_empty()) else { return Vec::new() };
    if model.trips(s.func(), &around[..around.len() - 1], &own).value < MIN_TRIPS {
        return Vec::new();
    }
    let names: Vec<String> = windows.iter().map(|w| format!("\"{}\"", s.called(&w.stmt))).collect();
    let steps = format!("{ITERATIONS_PER_BLOCK} iterations of \"{}\" together in {}", s.called(&l), names.join(", "));
    let windows: Vec<StmtId> = windows.iter().map(|w| w.stmt.id()).collect();
    vec![Candidate {
        steps,
        apply: Box::new(move |s| apply(s, site, &windows)),
        follow_up: Some(Box::new(jammed)),
        lower_bound: None,
    }]
}

fn apply(s: &mut Schedule, site: StmtId, windows: &[StmtId]) -> Result<ExtraSteps, Refusal> {
    // Confines bounds conditions, if there are any, to the ends of the loop.
    nest::attempt(s, "separate_tail", &[Arg::from(site)]);
    let (some, mut rest) = nest::halves(s.call("split", &[Arg::from(site), Arg::from(ITERATIONS_PER_BLOCK)])?)?;
    nest::attempt(s, "separate_tail", &[Arg::from(some)]);
    for w in windows {
        let together = nest::alone(s, &mut rest, Value::from(*w), &mut Vec::new())?;
        let nest = Value::List(vec![together, Value::from(*w)]);
        let skewed = Value::Map(IndexMap::affine(&[vec![1, 1, 0], vec![1, 0, 0]]));
        let (key, _) = nest::halves(s.call("permute", &[Arg::from(nest), Arg::from(skewed)])?)?;
        nest::attempt(s, "separate_tail", &[Arg::from(key)]);
    }
    Ok(ExtraSteps::default())
}

/// Jams short loops, as the next rule is expected to do.
fn jammed(s: &mut Schedule) -> Result<ExtraSteps, Refusal> {
    for l in super::blend::sites(s) {
        nest::attempt(s, "blend", &[Arg::from(l)]);
    }
    Ok(ExtraSteps::default())
}
