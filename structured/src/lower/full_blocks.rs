//! Separation of full blocks from those at an edge: the elements of a full block are not tested for being in the
//! tensor.
//!
//! ```text
//! for p in range(pos[i], pos[i + 1]):          for p in range(pos[i], pos[i + 1]):
//!     j = crd[p]                                   j = crd[p]
//!     for k in range(4):                           if j * 4 + 3 < m:
//!         if j * 4 + k < m:                            for k in range(4):
//!             y[i] += val[p, k] * x[j * 4 + k] ─▶          y[i] += val[p, k] * x[j * 4 + k]
//!                                                  else:
//!                                                      for k in range(4):
//!                                                          if j * 4 + k < m:
//!                                                              y[i] += val[p, k] * x[j * 4 + k]
//! ```
//!
//! The guards that hold in a full block are proved under its condition. Blocks at an edge are few: their loops run as
//! they are written, one element after the other.

use super::partition_loops::{Facts, conjuncts};
use rustc_hash::{FxHashMap, FxHashSet};
use taffeta_analysis::pass::{copy, substitute};
use taffeta_analysis::query::stride::constant_stride;
use taffeta_analysis::query::{Context, effects, walk};
use taffeta_ast::poly::Poly;
use taffeta_ast::stmt::LoopProps;
use taffeta_ast::{DType, Expr, ExprKind, Extent, Op, Stmt, StmtKind, Symbol};

/// Maximum number of edges per block; other blocks stay as they are.
const MAX_EDGES: usize = 4;

/// Splits the bodies of loops over stored blocks by one test per block, of whether the block is full.
pub(super) fn full_blocks(s: &Stmt, facts: &mut Context) -> Stmt {
    let new = match s.kind() {
        StmtKind::For { extent, body, .. } if ends(extent).is_none() && is_straight(body) => {
            walk::map(s, facts, &mut apart)
        }
        _ => walk::map(s, facts, &mut full_blocks),
    };
    facts.after(s);
    new
}

/// Returns whether all loops in a statement run over constant ranges, sequentially.
fn is_straight(s: &Stmt) -> bool {
    let mut straight = true;
    s.walk(&mut |s| {
        straight &= match s.kind() {
            StmtKind::For { extent, props, .. } => ends(extent).is_some() && props.parallel.is_none(),
            StmtKind::While { .. } => false,
            _ => true,
        }
    });
    straight
}

/// Returns the first and the last iteration of a loop over a constant range.
fn ends(extent: &Extent) -> Option<[i64; 2]> {
    let Extent::Range { begin, end, step } = extent else { return None };
    let (begin, end) = (begin.as_int()?, end.as_int()?);
    (step.as_int() == Some(1) && begin < end).then(|| [begin, end - 1])
}

/// Splits a loop's body, after its leading stores to scalars and assumptions, into the two cases.
fn apart(s: &Stmt, facts: &mut Context) -> Stmt {
    if matches!(s.kind(), StmtKind::VarDef { .. }) {
        let new = walk::map(s, facts, &mut apart);
        facts.after(s);
        return new;
    }
    let all = match s.kind() {
        StmtKind::Seq(all) => all.clone(),
        _ => vec![s.clone()],
    };
    let is_head = |s: &&Stmt| match s.kind() {
        StmtKind::Store { indices, .. } => indices.is_empty(),
        StmtKind::Assume { .. } | StmtKind::Assert { .. } => true,
        _ => false,
    };
    let head = all.iter().take_while(is_head).count();
    all[..head].iter().for_each(|s| facts.after(s));
    let rest = Stmt::seq(all[head..].iter().cloned(), s.origin().clone());
    let is_branch = matches!(rest.kind(), StmtKind::If { .. });
    match cases(&rest, facts).filter(|_| !is_branch) {
        Some(cases) => Stmt::seq(all[..head].iter().cloned().chain([cases]), s.origin().clone()),
        None => s.clone(),
    }
}

/// Builds the branch between the statement without the guards that hold in a full block, and the statement as it is;
/// `None` if no guard is dropped.
fn cases(s: &Stmt, facts: &mut Context) -> Option<Stmt> {
    let mut edges = Vec::new();
    edges_in(s, &mut Vec::new(), &effects::writes(s), &mut edges);
    if edges.is_empty() || edges.len() > MAX_EDGES {
        return None;
    }
    let full = edges.into_iter().map(|(cond, _)| cond).reduce(|all, cond| all.and(&cond))?;
    let mut dropped = 0;
    let then = facts.scoped(|facts| {
        facts.assume(&full);
        unguarded(s, facts, &mut dropped)
    });
    let otherwise = Some(one_by_one(&copy::statement(s, "structured", "edge")));
    let origin = s.origin().derive("structured", "full");
    (dropped > 0).then(|| Stmt::new(StmtKind::If { cond: full, then, otherwise }, origin))
}

/// Collects, for each guard, the sufficient condition that makes it true in the whole block, with its slack; of guards
/// that differ by a constant, the strongest.
fn edges_in(s: &Stmt, around: &mut Vec<(Symbol, [i64; 2])>, written: &FxHashSet<Symbol>, out: &mut Vec<(Expr, Expr)>) {
    let outside = around.len();
    match s.kind() {
        StmtKind::For { iter, extent, .. } => around.extend(ends(extent).map(|ends| (iter.clone(), ends))),
        StmtKind::If { cond, otherwise: None, .. } => {
            let mut all = Facts::new();
            conjuncts(cond, true, &mut all);
            let held = all.iter().filter(|(_, holds)| *holds);
            for (cond, room) in held.filter_map(|(cond, _)| edge(cond, around)) {
                if effects::loads(&cond).iter().any(|t| written.contains(t)) {
                    continue;
                }
                let apart = |other: &Expr| Poly::of(&room.minus(other)).and_then(|p| p.as_constant());
                match out.iter_mut().find_map(|(c, r)| Some((apart(r)?, c, r))) {
                    Some((by, c, r)) if by < 0 => (*c, *r) = (cond, room),
                    Some(_) => {}
                    None => out.push((cond, room)),
                }
            }
        }
        _ => {}
    }
    s.kind().children().into_iter().for_each(|s| edges_in(s, around, written, out));
    around.truncate(outside);
}

/// Replaces the iterators of enclosing loops in a comparison of integers by the iterations of least slack; returns it
/// with the slack.
fn edge(cond: &Expr, around: &[(Symbol, [i64; 2])]) -> Option<(Expr, Expr)> {
    let ExprKind::Apply(op, args) = cond.kind() else { return None };
    let [a, b] = &args[..] else { return None };
    let (small, large) = match op {
        Op::Lt | Op::Le => (a, b),
        Op::Gt | Op::Ge => (b, a),
        _ => return None,
    };
    let room = large.minus(small);
    if small.dtype() != DType::I64 || cond.may_fail() {
        return None;
    }
    let mut at: Vec<(&Symbol, i64)> = Vec::new();
    for (iter, [first, last]) in around.iter().filter(|(iter, _)| effects::mentions(cond, &[iter])) {
        let grows = constant_stride(&room, iter)? > 0;
        at.push((iter, if grows { *first } else { *last }));
    }
    let mut fixed = |e: &Expr| match e.kind() {
        ExprKind::Var(v) => at.iter().find(|(iter, _)| *iter == v).map(|(_, k)| Expr::int(*k)),
        _ => None,
    };
    let [cond, room] = [cond, &room].map(|e| substitute::rewrite_expr(e, &mut fixed, &mut FxHashMap::default()));
    Some((cond, room))
}

/// Removes the guards that are proved to hold.
fn unguarded(s: &Stmt, facts: &mut Context, dropped: &mut usize) -> Stmt {
    let holds = match s.kind() {
        StmtKind::If { cond, otherwise: None, .. } => facts.prove(cond),
        _ => false,
    };
    let new = walk::map(s, facts, &mut |s, facts| unguarded(s, facts, dropped));
    facts.after(s);
    match new.kind() {
        StmtKind::If { then, .. } if holds => {
            *dropped += 1;
            then.clone()
        }
        _ => new,
    }
}

/// Removes the annotations of all loops.
fn one_by_one(s: &Stmt) -> Stmt {
    let inner = s.map(&mut one_by_one, &mut Expr::clone);
    match inner.kind() {
        StmtKind::For { iter, extent, body, .. } => inner.with_kind(StmtKind::For {
            iter: iter.clone(),
            extent: extent.clone(),
            props: LoopProps::default(),
            body: body.clone(),
        }),
        _ => inner,
    }
}
