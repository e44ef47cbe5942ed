//! Checkpoints of a time loop (Griewank's, with segments of one length): the loop runs in segments, each on copies of
//! the state that it overwrites, so that the backward pass can recompute a segment from the state before it.
//!
//! before
//! ```text
//! for t in range(steps):
//!     u[...] = f(u)
//! ```
//! after
//! ```text
//! for t~o in range((steps + 31) // 32):
//!     u.now = empty(…)
//!     u.now[...] = u[...]
//!     for t in range(t~o * 32, min(steps, t~o * 32 + 32)):
//!         u.now[...] = f(u.now)
//!     u[...] = u.now[...]
//! ```
//! The backward pass then needs `u` before each segment, and within a segment `u.now` before each step:
//! `steps / 32 + 32` states instead of `steps`. Segments of segments need states in the order of the third root of the
//! steps, and so on.

use crate::custom_vjp::Calls;
use crate::{build, extent};
use std::sync::Arc;
use taffeta_analysis::pass::rewrite_accesses;
use taffeta_analysis::query::effects;
use taffeta_analysis::tree;
use taffeta_ast::stmt::Role;
use taffeta_ast::{Expr, Extent, Func, LoopProps, Op, Stmt, StmtId, StmtKind, Symbol, Tensor, poly};

/// Program with a loop cut into segments.
pub(crate) struct Segmented {
    pub func: Func,
    /// Loop over segments.
    pub outer: StmtId,
    /// Loop inside a segment.
    pub inner: StmtId,
    /// Copies of the state.
    pub copies: Vec<Arc<Tensor>>,
}

/// Cuts a loop into segments of `length` iterations, each on copies of `state`; every iteration has private tensors for
/// `scratch`. Returns `None` if the loop cannot be cut: it does not run in order, its step is not constant, its bounds
/// depend on its writes, a shape to copy is loaded, or a call with a custom gradient refers to the state by name.
pub(crate) fn run(
    func: &Func,
    calls: &Calls,
    at: StmtId,
    length: i64,
    state: &[Arc<Tensor>],
    scratch: &[Arc<Tensor>],
) -> Option<Segmented> {
    if state.iter().chain(scratch).any(|t| calls.is_place(&t.symbol)) {
        return None;
    }
    let (new, inner, copies) = cut(&tree::find(&func.body, at)?, length, state, scratch)?;
    Some(Segmented { func: tree::replace(func, at, &new), outer: new.id(), inner, copies })
}

fn cut(
    s: &Stmt,
    length: i64,
    state: &[Arc<Tensor>],
    scratch: &[Arc<Tensor>],
) -> Option<(Stmt, StmtId, Vec<Arc<Tensor>>)> {
    let StmtKind::For { iter, extent: Extent::Range { begin, end, step }, props, body } = s.kind() else { return None };
    let stride = step.as_int().filter(|v| *v != 0)?;
    let written = effects::writes(body);
    let moving = [begin, end].into_iter().flat_map(effects::loads).any(|t| written.contains(&t));
    let read = |t: &Arc<Tensor>| t.shape.iter().any(|d| !effects::loads(d).is_empty());
    if props.is_concurrent() || moving || state.iter().chain(scratch).any(read) {
        return None;
    }
    let origin = s.origin().derive("grad", "segment");
    let segment = Symbol::new(format!("{iter}~o"));
    let hop = Expr::int(length.checked_mul(stride)?);
    let first = begin.plus(&Expr::var(&segment).times(&hop));
    let last = first.plus(&hop);
    let last = if stride > 0 { last.min_with(end) } else { last.max_with(end) };
    let copies: Vec<Arc<Tensor>> = state.iter().map(|t| private(t)).collect();
    let own: Vec<Arc<Tensor>> = scratch.iter().map(|t| private(t)).collect();
    let old = state.iter().chain(scratch);
    let names = old.zip(copies.iter().chain(&own)).map(|(t, c)| (t.symbol.clone(), c.symbol.clone())).collect();
    let extent = Extent::Range { begin: first, end: last, step: step.clone() };
    let body = build::declared(own, rewrite_accesses::run(body, &names, &|at| at), &origin);
    let inner = Stmt::new(StmtKind::For { iter: iter.clone(), extent, props: props.clone(), body }, origin.clone());
    let inner_id = inner.id();
    let before = state.iter().zip(&copies).map(|(t, c)| build::copy(t, c, &origin));
    let after = state.iter().zip(&copies).map(|(t, c)| build::copy(c, t, &origin));
    let all = Stmt::seq(before.chain([inner]).chain(after), origin.clone());
    let extent = Extent::Range { begin: Expr::int(0), end: count(begin, end, stride, length), step: Expr::int(1) };
    let body = build::declared(copies.clone(), all, &origin);
    let outer = Stmt::new(StmtKind::For { iter: segment, extent, props: LoopProps::default(), body }, origin);
    Some((outer, inner_id, copies))
}

/// Returns the number of segments. An end that is a minimum is split into its operands: if one of them is the length of
/// an enclosing segment, the count folds to a constant.
fn count(begin: &Expr, end: &Expr, stride: i64, length: i64) -> Expr {
    let of = |end: &Expr| {
        let way = if stride > 0 { end.minus(begin) } else { begin.minus(end) };
        let way = poly::tidy(&way.plus(&Expr::int(stride.abs() - 1)));
        way.floor_div(&Expr::int(stride.abs())).plus(&Expr::int(length - 1)).floor_div(&Expr::int(length))
    };
    let ends = extent::operands(end, if stride > 0 { Op::Min } else { Op::Max });
    ends.iter().map(of).reduce(|a, b| a.min_with(&b)).unwrap_or_else(|| Expr::int(0))
}

/// Returns the copy of a tensor in a segment.
fn private(t: &Tensor) -> Arc<Tensor> {
    let name = t.symbol.name();
    let symbol = Symbol::new(format!("{}.now", name.strip_suffix(".now").unwrap_or(name)));
    Arc::new(t.like(symbol, Role::Tape))
}
