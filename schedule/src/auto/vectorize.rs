//! `auto_vectorize`: innermost loops by vector instructions.
//!
//! Sums into one element and mathematical functions are what C compilers do not do by themselves; a mark on another
//! loop says that no check is needed. Rows of a few elements, and elements that lie apart, are left as they are: the
//! model knows what the end of a sum and a gather take.

use super::model::Model;
use super::structured::traverses;
use super::{Choice, Others, Rule, nest};
use crate::schedule::Schedule;
use crate::value::Arg;
use taffeta_ast::{LoopProps, Stmt, StmtId, StmtKind, Vectorize};

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

/// Innermost loops that no mark is on.
fn sites(s: &Schedule) -> Vec<StmtId> {
    let mut out = Vec::new();
    innermost(&s.func().body, &mut out);
    out
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
    let Some(l) = crate::tree::find(&s.func().body, site) else { return Vec::new() };
    // Whether lanes can share what is stored, lowering says.
    if nest::is_in_library(s, site) || traverses(s.func(), &l) && !s.is_lowered() {
        return Vec::new();
    }
    let steps = format!("vectorize(\"{}\")", s.called(&l));
    let choice = Choice::new(steps, move |s| s.call("vectorize", &[Arg::from(site)]).map(|_| Others::default()));
    vec![choice.marked(site, LoopProps { vectorize: Some(Vectorize { width: None }), ..LoopProps::default() })]
}
