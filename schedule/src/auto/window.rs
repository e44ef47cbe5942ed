//! `auto_window`: iterations that go through overlapping windows of a tensor, a few of them together.
//!
//! ```text
//! for i in range(n):                       for i in range(0, n, 4):
//!     for j in range(257):                     for k in range(3, 257):      # what all four windows have
//!         s[j] += f(q[i], x[i + j])   ─▶           for t in range(4):
//!                                                      s[t, k - t] += f(q[i + t], x[i + k])
//! ```
//!
//! A row of `x` is then brought from its cache once for four iterations, and short loops over these are jammed, or have
//! their sums in registers, by later rules. What an iteration has of its own gets a place for each of them (`fission`),
//! the window and the iteration change places (`permute` to `(i + j, i)`), and the ends of the windows, which not all
//! have, are cut off (`separate_tail`).

use super::model::Model;
use super::{Choice, Others, Rule, nest};
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
    summary: "Has a few iterations go through overlapping windows together.",
    why_here: "before short loops are jammed, which it makes, and before loops are fused, which would hide windows",
    gain: super::STRUCTURE,
    near_stored: None,
    weighs: None,
    rounds: 1,
    sites,
    options,
};

/// Iterations that go together: each has a row of what it reads besides the window in registers, or of what it sums.
const TOGETHER: i64 = 4;

/// Windows that are shorter than so many iterations together have no part that all of them share.
const LEAST: f64 = 4.0 * TOGETHER as f64;

/// Loops in one loop of which more are not taken apart.
const MOST_WINDOWS: usize = 4;

/// Loops that have others in them which go through windows.
fn sites(s: &Schedule) -> Vec<StmtId> {
    let mut out = Vec::new();
    s.func().body.walk(&mut |l| {
        if nest::is_unmarked(l) && (1..=MOST_WINDOWS).contains(&windows(l).len()) {
            out.push(l.id());
        }
    });
    out
}

/// The loops directly in a loop that, with the next iteration of it, go through the same elements but one.
fn windows(s: &Stmt) -> Vec<Loop> {
    let Some(l) = Loop::of(s).filter(|l| l.step.as_int() == Some(1)) else { return Vec::new() };
    let inner = Block::of(&l.body).items.iter().filter_map(Loop::of).collect::<Vec<_>>();
    let rows = |i: &Loop| nest::has_loop(&i.body) && !nest::has_marks(&i.stmt);
    inner.into_iter().filter(|i| i.step.as_int() == Some(1) && rows(i) && overlaps(&l, i)).collect()
}

/// Whether a loop reads a tensor where it and the loop around it move by the same, and nowhere else by either.
fn overlaps(outer: &Loop, inner: &Loop) -> bool {
    let mut found = false;
    inner.body.walk(&mut |s: &Stmt| {
        for e in s.kind().exprs() {
            e.walk(&mut |e| {
                let ExprKind::Load(_, at) = e.kind() else { return };
                let moved: Vec<_> =
                    at.iter().filter(|a| effects::mentions(&a.index, &[&outer.iter, &inner.iter])).collect();
                let [a] = moved.as_slice() else { return };
                let by = [outer, inner].map(|l| constant_stride(&a.index, &l.iter));
                found |= by[0] == by[1] && by[0].is_some_and(|by| by != 0);
            });
        }
    });
    found
}

fn options(s: &Schedule, model: &Model<'_>, site: StmtId) -> Vec<Choice> {
    let Some(l) = tree::find(&s.func().body, site) else { return Vec::new() };
    let around: Vec<Stmt> = s.around(site).into_iter().chain([l.clone()]).collect();
    let long = |w: &Loop| model.trips(s.func(), &around, w).value >= LEAST;
    let windows: Vec<Loop> = windows(&l).into_iter().filter(long).collect();
    let Some(own) = Loop::of(&l).filter(|_| !windows.is_empty()) else { return Vec::new() };
    if model.trips(s.func(), &around[..around.len() - 1], &own).value < LEAST {
        return Vec::new();
    }
    let names: Vec<String> = windows.iter().map(|w| format!("\"{}\"", s.called(&w.stmt))).collect();
    let steps = format!("{TOGETHER} iterations of \"{}\" together in {}", s.called(&l), names.join(", "));
    let windows: Vec<StmtId> = windows.iter().map(|w| w.stmt.id()).collect();
    vec![Choice {
        steps,
        take: Box::new(move |s| take(s, site, &windows)),
        then: Some(Box::new(jammed)),
        least: None,
        excluded: None,
    }]
}

fn take(s: &mut Schedule, site: StmtId, windows: &[StmtId]) -> Result<Others, Refusal> {
    // What is asked about the ends of the tensor is not asked far from them, if anything is asked.
    nest::attempt(s, "separate_tail", &[Arg::from(site)]);
    let (some, mut rest) = nest::halves(s.call("split", &[Arg::from(site), Arg::from(TOGETHER)])?)?;
    nest::attempt(s, "separate_tail", &[Arg::from(some)]);
    for w in windows {
        let together = nest::alone(s, &mut rest, Value::from(*w), &mut Vec::new())?;
        let nest = Value::List(vec![together, Value::from(*w)]);
        let skewed = Value::Map(IndexMap::affine(&[vec![1, 1, 0], vec![1, 0, 0]]));
        let (key, _) = nest::halves(s.call("permute", &[Arg::from(nest), Arg::from(skewed)])?)?;
        nest::attempt(s, "separate_tail", &[Arg::from(key)]);
    }
    Ok(Others::default())
}

/// The iterations that go together, jammed as the next rule would have it.
fn jammed(s: &mut Schedule) -> Result<Others, Refusal> {
    for l in super::blend::sites(s) {
        nest::attempt(s, "blend", &[Arg::from(l)]);
    }
    Ok(Others::default())
}
