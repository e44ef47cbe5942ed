//! Queries on loop nests, steps shared by rules, and follow-up steps expected of later rules.

use super::scatter;
use crate::auto::rule::ExtraSteps;
use crate::block::Block;
use crate::refusal::Refusal;
use crate::schedule::Schedule;
use crate::tree::Loop;
use crate::value::{Arg, Value};
use taffeta_analysis::query::effects;
use taffeta_ast::{Expr, ExprKind, LoopProps, Stmt, StmtId, StmtKind, Symbol};

/// Returns whether a statement is a counted loop without marks.
pub(super) fn is_unmarked(s: &Stmt) -> bool {
    matches!(s.kind(), StmtKind::For { props, .. } if *props == LoopProps::default()) && Loop::of(s).is_some()
}

/// Returns whether a statement stands inside of a loop that a library executes.
pub(super) fn is_in_library(s: &Schedule, id: StmtId) -> bool {
    s.around(id).iter().any(|l| matches!(l.kind(), StmtKind::For { props, .. } if props.library))
}

/// Returns whether a statement is or contains a marked loop.
pub(super) fn has_marks(s: &Stmt) -> bool {
    s.any(&mut |s| matches!(s.kind(), StmtKind::For { .. }) && !is_unmarked(s))
}

/// Returns whether a statement is or contains a loop.
pub(super) fn has_loop(s: &Stmt) -> bool {
    s.any(&mut |s| matches!(s.kind(), StmtKind::For { .. } | StmtKind::While { .. }))
}

/// Collects the outermost loops in a statement, or the statement itself if it is a loop.
pub(super) fn loops_in(s: &Stmt) -> Vec<Stmt> {
    match s.kind() {
        StmtKind::For { .. } => vec![s.clone()],
        _ => s.kind().children().into_iter().flat_map(loops_in).collect(),
    }
}

/// Returns the unmarked loops of a nest from `s` inwards, each the only loop in the one around it.
pub(super) fn chain(s: &Stmt) -> Vec<Stmt> {
    let mut out = Vec::new();
    let mut next = Some(s.clone());
    while let Some(l) = next.take().filter(is_unmarked) {
        let StmtKind::For { body, .. } = l.kind() else { break };
        if let [one] = loops_in(body).as_slice() {
            next = Some(one.clone());
        }
        out.push(l);
    }
    out
}

/// Returns the unmarked loops of a nest from `s` inwards, descending at each level into the inner loop with the deepest
/// nest. A tie ends the descent.
pub(super) fn deepest(s: &Stmt) -> Vec<Stmt> {
    let mut out = Vec::new();
    let mut next = Some(s.clone());
    while let Some(l) = next.take().filter(is_unmarked) {
        let StmtKind::For { body, .. } = l.kind() else { break };
        let inside: Vec<(usize, Stmt)> = loops_in(body).into_iter().map(|l| (depth(&l), l)).collect();
        let most = inside.iter().map(|(depth, _)| *depth).max();
        let mut deep = inside.into_iter().filter(|(depth, _)| Some(*depth) == most);
        // With two inner nests of equal depth, neither represents the body.
        next = deep.next().filter(|_| deep.next().is_none()).map(|(_, l)| l);
        out.push(l);
    }
    out
}

/// Returns the maximum loop depth of a statement.
fn depth(s: &Stmt) -> usize {
    let own = usize::from(matches!(s.kind(), StmtKind::For { .. } | StmtKind::While { .. }));
    own + s.kind().children().into_iter().map(depth).max().unwrap_or(0)
}

/// Collects the outermost loops of chains whose length is in the range. The body of a chain's last loop may contain
/// further chains.
pub(super) fn chains(s: &Stmt, lengths: std::ops::RangeInclusive<usize>) -> Vec<Stmt> {
    let mut out = Vec::new();
    gather_chains(s, &lengths, &mut out);
    out
}

fn gather_chains(s: &Stmt, lengths: &std::ops::RangeInclusive<usize>, out: &mut Vec<Stmt>) {
    if let StmtKind::For { body, .. } = s.kind() {
        let chain = chain(s);
        if lengths.contains(&chain.len()) {
            out.push(s.clone());
        }
        let rest = chain.last().and_then(Loop::of).map_or_else(|| body.clone(), |l| l.body);
        return gather_chains(&rest, lengths, out);
    }
    s.kind().children().into_iter().for_each(|c| gather_chains(c, lengths, out));
}

/// Local scalars, each with its defining expression.
pub(super) type Scalars = Vec<(Symbol, Expr)>;

/// Replaces scalars by their defining expressions, each of which may use the scalars listed before it.
pub(super) fn substitute_scalars(e: &Expr, scalars: &[(Symbol, Expr)]) -> Expr {
    scalars.iter().rev().fold(e.clone(), |e, (t, from)| {
        e.rewrite(&mut |e| match e.kind() {
            ExprKind::Load(loaded, _) if loaded == t => from.clone(),
            _ => e,
        })
    })
}

/// Returns the two loops made by `split` or `fission`.
pub(super) fn halves(made: Value) -> Result<(Value, Value), Refusal> {
    let both = match made {
        Value::List(both) => <[Value; 2]>::try_from(both).ok(),
        _ => None,
    };
    let [first, second] = both.ok_or_else(|| Refusal::target("the loop was not cut into two"))?;
    Ok((first, second))
}

/// Returns whether a loop's body consists of `inner` alone, apart from declarations.
pub(super) fn is_alone(outer: &Stmt, inner: &Stmt) -> bool {
    Loop::of(outer).is_some_and(|l| matches!(Block::of(&l.body).items.as_slice(), [one] if one.id() == inner.id()))
}

/// Isolates the loop `inner` in the body of the loop `outer` by fission before and after it. Returns the part of
/// `outer` that contains `inner` alone, and sets `outer` to the last part.
pub(super) fn alone(
    s: &mut Schedule,
    outer: &mut Value,
    inner: Value,
    steps: &mut Vec<String>,
) -> Result<Value, Refusal> {
    let mut own = outer.clone();
    for side in ["before", "after"] {
        let (l, at) = (s.loop_(&Arg::from(outer.clone()))?, s.loop_(&Arg::from(inner.clone()))?);
        let (items, here) = (Block::of(&l.body).items, at.stmt.id());
        let Some(k) = items.iter().position(|i| i.id() == here) else { continue };
        let others = if side == "before" { k } else { items.len() - 1 - k };
        if others == 0 {
            continue;
        }
        steps.push(format!("fission(\"{}\", {side}=\"{}\")", s.called(&l.stmt), s.called(&at.stmt)));
        let made = s.call("fission", &[Arg::from(outer.clone()), Arg::named(side, inner.clone())])?;
        let (first, second) = halves(made)?;
        own = if side == "before" { second.clone() } else { first };
        *outer = second;
    }
    Ok(own)
}

/// Makes a nest perfect by fission of the statements between its loops. Returns the perfect nest, outermost loop first.
pub(super) fn perfect(s: &mut Schedule, nest: &[StmtId], steps: &mut Vec<String>) -> Result<Vec<Value>, Refusal> {
    let mut out: Vec<Value> = Vec::new();
    for l in nest.iter().rev() {
        out.push(match out.last().cloned() {
            Some(inner) => alone(s, &mut Value::from(*l), inner, steps)?,
            None => Value::from(*l),
        });
    }
    out.reverse();
    Ok(out)
}

/// Applies a step unless it is refused. Returns whether it was applied.
pub(super) fn attempt(s: &mut Schedule, step: &str, args: &[Arg]) -> bool {
    let mut trial = s.trying();
    let done = trial.call(step, args).is_ok();
    if done {
        s.become_tried(trial);
    }
    done
}

/// Collects the statements of a loop that write at loaded indices.
pub(super) fn scatters(l: &Stmt) -> Vec<StmtId> {
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

/// Runs the loop `site`, or the outermost loops it was turned into, on threads, as the last rules are expected to do;
/// loops that scatter get columns per thread. `before` lists the outermost loops of the program before the change.
pub(super) fn on_threads(s: &mut Schedule, site: StmtId, before: &[StmtId]) -> ExtraSteps {
    let is_part = |l: &&Stmt| (l.id() == site || !before.contains(&l.id())) && !has_marks(l);
    let parts = loops_in(&s.func().body);
    let (sharing, scattering): (Vec<&Stmt>, Vec<&Stmt>) =
        parts.iter().filter(is_part).partition(|l| scatters(l).is_empty());
    for l in sharing {
        attempt(s, "parallelize", &[Arg::from(l.id())]);
    }
    scattering.into_iter().for_each(|l| scatter::expect_columns(s, l.id()));
    ExtraSteps::default()
}
