//! `auto_vectorize`: innermost loops by vector instructions.
//!
//! Sums into one element and mathematical functions are what C compilers do not do by themselves; a mark on another
//! loop says that no check is needed. Rows of a few elements, and elements that lie apart, are left as they are: the
//! model knows what the end of a sum and a gather take. Elements that lie apart and are stored under a condition of
//! their own are not tried at all.

use super::model::Model;
use super::model::touch::{Growth, growth};
use super::structured::traverses;
use super::{Answer, Choice, Others, Rule, nest};
use crate::schedule::Schedule;
use crate::tree::{self, Loop};
use crate::value::Arg;
use taffeta_analysis::query::effects;
use taffeta_ast::{LoopProps, Stmt, StmtId, StmtKind, Symbol, Vectorize};

pub(super) const RULE: Rule = Rule {
    method: "auto_vectorize",
    summary: "Runs innermost loops by vector instructions.",
    why_here: "the order of loops decides which are innermost; lanes are marked before threads, since a mark asks again \
               about the marked loops around it",
    gain: super::MARK,
    near_stored: Some(super::MARK),
    weighs: None,
    rounds: 1,
    sites,
    options,
};

/// Innermost loops that no mark is on, and then the loops around them, of which only is said why they have no lanes.
fn sites(s: &Schedule) -> Vec<StmtId> {
    let mut out = Vec::new();
    innermost(&s.func().body, &mut out);
    s.func().body.walk(&mut |l| {
        if nest::is_unmarked(l) && !inside(l).is_empty() && inside(l).iter().all(|i| !nest::has_loop(body_of(i))) {
            out.push(l.id());
        }
    });
    out
}

fn body_of(l: &Stmt) -> &Stmt {
    match l.kind() {
        StmtKind::For { body, .. } => body,
        _ => l,
    }
}

/// The loops in a loop, without those in them.
fn inside(l: &Stmt) -> Vec<Stmt> {
    nest::loops_in(body_of(l))
}

/// That a loop has no lanes since none of those in it could have any: they run in order, as the steps of a ray do, and
/// their iterations are not as many in each lane.
fn beyond_lanes(s: &Schedule, l: &Stmt) -> Vec<Choice> {
    let is_refused = |i: &Stmt| {
        let name = s.called(i);
        let mut of = s.decisions().iter().filter(|d| d.rule == RULE.method && d.site == name);
        of.any(|d| d.options.iter().any(|o| matches!(o.answer, Answer::Refused(_))))
    };
    let inner = inside(l);
    let Some(first) = inner.first().filter(|_| inner.iter().all(|i| nest::is_unmarked(i) && is_refused(i))) else {
        return Vec::new();
    };
    let why = format!("the loop `{}` in it runs in order, and lanes are for innermost loops", s.called(first));
    vec![Choice::excluded(format!("vectorize(\"{}\")", s.called(l)), why)]
}

fn innermost(s: &Stmt, out: &mut Vec<StmtId>) -> bool {
    let mut inside = false;
    for c in s.kind().children() {
        inside |= innermost(c, out);
    }
    match s.kind() {
        StmtKind::For { .. } => {
            if !inside && nest::is_unmarked(s) {
                out.push(s.id());
            }
            true
        }
        StmtKind::While { .. } => true,
        _ => inside,
    }
}

fn options(s: &Schedule, _: &Model<'_>, site: StmtId) -> Vec<Choice> {
    let Some(l) = tree::find(&s.func().body, site) else { return Vec::new() };
    if !inside(&l).is_empty() {
        return beyond_lanes(s, &l);
    }
    // Whether lanes can share what is stored, lowering says.
    if nest::is_in_library(s, site) || traverses(s.func(), &l) && !s.is_lowered() {
        return Vec::new();
    }
    if Loop::of(&l).is_some_and(|l| masks_what_lies_apart(&l.body, &l.iter, false)) {
        return Vec::new();
    }
    let steps = format!("vectorize(\"{}\")", s.called(&l));
    let choice = Choice::new(steps, move |s| s.call("vectorize", &[Arg::from(site)]).map(|_| Others::default()));
    vec![choice.marked(site, LoopProps { vectorize: Some(Vectorize { width: None }), ..LoopProps::default() })]
}

/// Whether elements that lie apart are stored where a condition says so that changes with the loop. Few machines have
/// an instruction for that: compilers give each lane a branch of its own, and take minutes where there are many.
fn masks_what_lies_apart(s: &Stmt, iter: &Symbol, masked: bool) -> bool {
    match s.kind() {
        StmtKind::If { cond, then, otherwise } => {
            let masked = masked || effects::mentions(cond, &[iter]) || !effects::loads(cond).is_empty();
            [Some(then), otherwise.as_ref()].into_iter().flatten().any(|s| masks_what_lies_apart(s, iter, masked))
        }
        StmtKind::Store { indices, .. } => masked && growth(indices.iter().map(|a| &a.index), &[iter])[0] > Growth::One,
        _ => s.kind().children().into_iter().any(|c| masks_what_lies_apart(c, iter, masked)),
    }
}
