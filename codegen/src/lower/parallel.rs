//! Checks that C can express the loop annotations of schedules.
//!
//! **Does**: refuses parallel loops inside parallel or vectorised ones; a vectorised loop that is not innermost,
//! contains checks, or updates an element from several lanes; and an unrolled loop of unknown length. That iterations
//! conflict only in the listed reductions is a condition of the schedule's legality, and not checked here.
//! **Requires**: `hoist`, since it moves checks out, and `reductions`. **Leaves alone**: the program.

use super::reductions;
use rustc_hash::FxHashSet;
use taffeta_analysis::query::effects;
use taffeta_ast::selector;
use taffeta_ast::{Diagnostic, Diagnostics, Extent, Func, Reduction, Sharing, Stmt, StmtKind, Symbol};

pub(super) fn check(func: &Func) -> Result<(), Diagnostics> {
    let mut found = Vec::new();
    let (mut registers, mut unsure) = (FxHashSet::default(), FxHashSet::default());
    func.body.walk(&mut |s| {
        if let StmtKind::VarDef { tensor, .. } = s.kind() {
            if tensor.ndim() == 0 {
                registers.insert(tensor.symbol.clone());
            }
            if tensor.shape.iter().any(|d| !effects::loads(d).is_empty()) {
                unsure.insert(tensor.symbol.clone());
            }
        }
    });
    walk(&func.body, false, [&registers, &unsure], &mut found);
    if found.is_empty() {
        return Ok(());
    }
    let names = selector::names(func);
    let refused = |(s, what): (Stmt, &str)| {
        let message = format!("the loop `{}` cannot be {what}", names[&s.id()]);
        Diagnostic::new("lower::loop", message).at(s.origin().span())
    };
    Err(Diagnostics(found.into_iter().map(refused).collect()))
}

/// Collects the loops with unsupported annotations. `concurrent`: whether the statement is inside a parallel or
/// vectorised loop. `tensors`: local scalars, and arrays whose shapes are read from memory. `found`: loops with the
/// reason of refusal.
fn walk(s: &Stmt, concurrent: bool, tensors: [&FxHashSet<Symbol>; 2], found: &mut Vec<(Stmt, &'static str)>) {
    let [registers, unsure] = tensors;
    let mut concurrent = concurrent;
    if let StmtKind::For { extent, props, body, .. } = s.kind() {
        let refuse = |what| (s.clone(), what);
        if props.parallel.is_some() && concurrent {
            found.push(refuse("parallel: it is inside a parallel or vectorised loop"));
        }
        let copied = |r: &&Reduction| r.sharing == Sharing::Partial;
        if props.reductions.iter().filter(copied).any(|r| unsure.contains(&r.tensor)) {
            found.push(refuse("parallel: the shape of its reduction target may have changed since the declaration"));
        }
        if props.vectorize.is_some() {
            if !is_plain(body) {
                found.push(refuse("vectorised: its body has loops, arrays or checks that depend on it"));
            }
            let alone = |r: &Reduction| r.sharing == Sharing::Partial && registers.contains(&r.tensor);
            // Every thread has a copy of an array, and lanes never update one element of it if the index varies with
            // the lane.
            let copied = |r: &Reduction| {
                props.parallel.is_some() && r.sharing == Sharing::Partial && changes_with_lanes(s, &r.tensor)
            };
            if !props.reductions.iter().all(|r| alone(r) || copied(r)) {
                found.push(refuse("vectorised: lanes would update one element at the same time"));
            }
        }
        if props.unroll && props.parallel.is_none() && length(extent).is_none() {
            found.push(refuse("unrolled: its length is not a constant of at most 64"));
        }
        concurrent |= props.is_concurrent();
    }
    s.kind().children().into_iter().for_each(|c| walk(c, concurrent, tensors, found));
}

/// Returns whether all reductions of a loop into a tensor have indices that vary with the iteration.
fn changes_with_lanes(s: &Stmt, tensor: &Symbol) -> bool {
    let variant = reductions::variant(s);
    let mut all = true;
    s.walk(&mut |inner| {
        if let StmtKind::ReduceTo { tensor: t, indices, .. } = inner.kind() {
            all &= t != tensor || indices.iter().any(|a| reductions::changes(&a.index, &variant));
        }
    });
    all
}

/// Returns the trip count of a loop that can be unrolled.
pub(crate) fn length(extent: &Extent) -> Option<i64> {
    let Extent::Range { begin, end, step } = extent else { return None };
    let (begin, end, step) = (begin.as_int()?, end.as_int()?, step.as_int()?);
    let length = match step {
        0 => return None,
        s if s > 0 => end.checked_sub(begin)?.max(0).checked_add(s - 1)? / s,
        s => begin.checked_sub(end)?.max(0).checked_add(s.checked_neg()? - 1)? / s.checked_neg()?,
    };
    (length <= 64).then_some(length)
}

/// Returns whether a statement consists of stores, reductions and branches, which become masks.
fn is_plain(s: &Stmt) -> bool {
    match s.kind() {
        StmtKind::Seq(v) => v.iter().all(is_plain),
        StmtKind::VarDef { tensor, body } => tensor.ndim() == 0 && is_plain(body),
        StmtKind::If { then, otherwise, .. } => is_plain(then) && otherwise.as_ref().is_none_or(is_plain),
        StmtKind::Store { .. } | StmtKind::ReduceTo { .. } | StmtKind::Assume { .. } => true,
        _ => false,
    }
}
