//! `auto_vectorize`: innermost loops by vector instructions.
//!
//! C compilers vectorise neither sums into one element nor mathematical functions by themselves; on other loops a mark
//! spares a run-time check. The model prices horizontal sums and gathers, so rows of a few elements and strided
//! elements stay scalar. Strided stores under a condition that varies in the loop are not tried at all.

use super::model::Model;
use super::model::access::{StrideClass, growth};
use super::nest;
use super::structured::traverses;
use crate::auto::rule::{Candidate, ExtraSteps, Rule};
use crate::schedule::Schedule;
use crate::tree::{self, Loop};
use crate::value::Arg;
use taffeta_analysis::query::effects;
use taffeta_ast::{LoopProps, Stmt, StmtId, StmtKind, Symbol, Vectorize};

pub(super) const RULE: Rule = Rule {
    method: "auto_vectorize",
    summary: "Runs innermost loops by vector instructions.",
    why_here: "after the order of loops is chosen, which determines the innermost ones, and before threads, since each \
               new mark rechecks the marked loops around it",
    gain: crate::auto::rule::MIN_GAIN_MARK,
    min_gain_sparse: Some(crate::auto::rule::MIN_GAIN_MARK),
    objective: None,
    rounds: 1,
    sites,
    candidates,
};

/// Collects unmarked innermost loops.
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

fn candidates(s: &Schedule, _: &Model<'_>, site: StmtId) -> Vec<Candidate> {
    let Some(l) = tree::find(&s.func().body, site) else { return Vec::new() };
    // Lowering decides whether lanes can share stored elements.
    if nest::is_in_library(s, site) || traverses(s.func(), &l) && !s.is_lowered() {
        return Vec::new();
    }
    if Loop::of(&l).is_some_and(|l| has_masked_strided_store(&l.body, &l.iter, false)) {
        return Vec::new();
    }
    let steps = format!("vectorize(\"{}\")", s.called(&l));
    let candidate =
        Candidate::new(steps, move |s| s.call("vectorize", &[Arg::from(site)]).map(|_| ExtraSteps::default()));
    vec![candidate.marked(site, LoopProps { vectorize: Some(Vectorize { width: None }), ..LoopProps::default() })]
}

/// Returns whether strided elements are stored under a condition that varies in the loop. Few machines have an
/// instruction for masked scatters: compilers give each lane a branch, and take minutes where there are many.
fn has_masked_strided_store(s: &Stmt, iter: &Symbol, masked: bool) -> bool {
    match s.kind() {
        StmtKind::If { cond, then, otherwise } => {
            let masked = masked || effects::mentions(cond, &[iter]) || !effects::loads(cond).is_empty();
            [Some(then), otherwise.as_ref()].into_iter().flatten().any(|s| has_masked_strided_store(s, iter, masked))
        }
        StmtKind::Store { indices, .. } => {
            masked && growth(indices.iter().map(|a| &a.index), &[iter])[0] > StrideClass::One
        }
        _ => s.kind().children().into_iter().any(|c| has_masked_strided_store(c, iter, masked)),
    }
}
