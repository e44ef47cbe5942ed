//! `auto_fuse`: fusion of consecutive loops where the second one uses data that the first has just touched, and
//! contraction of the tensors between them (`contract`).
//!
//! ```text
//! for i: t[i] = f(x[i])                    for i:
//! for i: y[i] = g(t[i])         ─▶             t = f(x[i])
//!                                              y[i] = g(t)
//! ```
//!
//! Inner loops that share tensors are fused too, one pair per loop and round. Loops of different trip counts stay
//! apart, and so do loops that are parallel separately but not once fused.

use super::model::Model;
use super::nest;
use crate::auto::rule::{Candidate, ExtraSteps, Rule};
use crate::block::Block;
use crate::refusal::Refusal;
use crate::schedule::Schedule;
use crate::tree::{self, Loop};
use crate::value::{Arg, Handle, Value};
use rustc_hash::FxHashSet;
use taffeta_analysis::query::effects;
use taffeta_ast::{Stmt, StmtId, StmtKind, Symbol, poly};

pub(super) const RULE: Rule = Rule {
    method: "auto_fuse",
    summary: "Fuses loops that use the same tensors, and shrinks the tensors between them.",
    why_here: "after libraries have taken their products, and before loops are reordered: it makes the nests that \
               later rules work on",
    gain: crate::auto::rule::MIN_GAIN_STRUCTURAL,
    min_gain_sparse: Some(crate::auto::rule::MIN_GAIN_STRUCTURAL),
    objective: None,
    rounds: 4,
    sites,
    candidates,
};

/// Collects loops followed by a loop that may be fused with them.
fn sites(s: &Schedule) -> Vec<StmtId> {
    let mut out = Vec::new();
    blocks(&s.func().body, &mut out);
    out
}

fn blocks(s: &Stmt, out: &mut Vec<StmtId>) {
    let block = Block::of(s);
    for pair in block.items.windows(2) {
        if neighbours(&pair[0], &pair[1]) {
            out.push(pair[0].id());
        }
    }
    for item in &block.items {
        item.kind().children().into_iter().for_each(|c| blocks(c, out));
    }
}

/// Returns whether two statements are unmarked loops of equal trip count that touch a common array.
fn neighbours(a: &Stmt, b: &Stmt) -> bool {
    let (Some(one), Some(two)) = (Loop::of(a), Loop::of(b)) else { return false };
    let same = match (one.length(), two.length()) {
        (Some(m), Some(n)) => poly::equal(&m, &n) == Some(true),
        _ => false,
    };
    nest::is_unmarked(a) && nest::is_unmarked(b) && same && !touched(a).is_disjoint(&touched(b))
}

/// Returns the arrays that a statement reads or writes.
fn touched(s: &Stmt) -> FxHashSet<Symbol> {
    let mut out = effects::writes(s);
    s.walk(&mut |s| s.kind().exprs().into_iter().for_each(|e| out.extend(effects::loads(e))));
    out
}

fn candidates(s: &Schedule, _: &Model<'_>, site: StmtId) -> Vec<Candidate> {
    let Some(first) = tree::find(&s.func().body, site) else { return Vec::new() };
    let Some(second) = next(s, site).filter(|n| neighbours(&first, n)) else { return Vec::new() };
    let (a, b) = (first.id(), second.id());
    vec![Candidate {
        steps: format!("fuse(\"{}\", \"{}\")", s.called(&first), s.called(&second)),
        apply: Box::new(move |s| {
            let mut after = Vec::new();
            fuse(s, a.into(), b.into(), &mut after)?;
            Ok(ExtraSteps { after, ..ExtraSteps::default() })
        }),
        follow_up: None,
        lower_bound: None,
    }]
}

/// Returns the next statement of the same block.
fn next(s: &Schedule, id: StmtId) -> Option<Stmt> {
    let block = Block::around(s.func(), id)?;
    let at = block.items.iter().position(|i| i.id() == id)?;
    block.items.get(at + 1).cloned()
}

/// Fuses two loops, then the first pair of inner loops that can be fused, and contracts tensors used in the fused loop
/// alone.
fn fuse(s: &mut Schedule, a: Value, b: Value, steps: &mut Vec<String>) -> Result<(), Refusal> {
    let free = |s: &Schedule, l: &Value| s.trying().call("parallelize", &[Arg::from(l.clone())]).is_ok();
    let before = s.trying();
    let made = s.call("fuse", &[Arg::from(a.clone()), Arg::from(b.clone())])?;
    if !free(s, &made) && free(&before, &a) && free(&before, &b) {
        return Err(Refusal::illegal(0, "the fused loop could no longer run on threads"));
    }
    let l = s.loop_(&Arg::from(made.clone()))?;
    for pair in Block::of(&l.body).items.windows(2) {
        if neighbours(&pair[0], &pair[1]) {
            // An inner pair that cannot be fused stays as it is.
            let (mut inner, mut more) = (s.trying(), Vec::new());
            let text = format!("fuse(\"{}\", \"{}\")", s.called(&pair[0]), s.called(&pair[1]));
            if fuse(&mut inner, pair[0].id().into(), pair[1].id().into(), &mut more).is_ok() {
                s.become_tried(inner);
                steps.extend([text].into_iter().chain(more));
                break;
            }
        }
    }
    let Ok(l) = s.loop_(&Arg::from(made)) else { return Ok(()) };
    let mut elsewhere = FxHashSet::default();
    touched_beside(&s.func().body, l.stmt.id(), &mut elsewhere);
    let own = |t: &Symbol| l.stmt.writes_to(t) && !elsewhere.contains(t);
    for t in declared_around(s, l.stmt.id()).into_iter().filter(own) {
        // Contraction is refused for tensors live across iterations.
        let name = t.name().to_string();
        if s.call("contract", &[Arg::from(Value::Handle(Handle::Tensor(t)))]).is_ok() {
            steps.push(format!("contract(\"{name}\")"));
        }
    }
    Ok(())
}

/// Collects the arrays read or written in a statement outside of one part of it, which it contains.
fn touched_beside(s: &Stmt, part: StmtId, out: &mut FxHashSet<Symbol>) {
    if s.id() == part {
        return;
    }
    out.extend(s.kind().exprs().into_iter().flat_map(effects::loads));
    for inner in s.kind().inside() {
        match tree::find(inner, part) {
            None => out.extend(touched(inner)),
            Some(_) => touched_beside(inner, part, out),
        }
    }
}

/// Returns the local tensors in scope at a statement.
fn declared_around(s: &Schedule, id: StmtId) -> Vec<Symbol> {
    let way = tree::path(&s.func().body, id).unwrap_or_default();
    let declared = way.iter().filter_map(|s| match s.kind() {
        StmtKind::VarDef { tensor, .. } => Some(tensor.symbol.clone()),
        _ => None,
    });
    declared.collect()
}
