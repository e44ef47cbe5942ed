//! Scalar promotion of elements that a loop reduces into under conditions.
//!
//! **Does**, for each sequential loop: an element with loop-invariant indices, which is the only one of its tensor that
//! the loop accesses, is loaded into a local scalar before the loop and stored after it. Compilers do so where every
//! iteration writes the element; where only some do, they must not: an additional store could race with another
//! thread's.
//!
//! **Requires**: `checks` (a loop with a check in it is left alone, since its stores before a failure are visible),
//! `reductions`. **Ensures**: equal values, rounded in the same order; ids and origins of existing statements are kept.
//!
//! ```text
//!                                          y_i = y[i]
//! while p < p_end:                         while p < p_end:
//!     if crd[p] == j:                          if crd[p] == j:
//!         y[i] += val[p] * x[j]     ─▶             y_i += val[p] * x[j]
//!     p += 1                                   p += 1
//!                                          y[i] = y_i
//! ```
//!
//! **Leaves alone**: elements that every iteration writes; elements that may be out of range or uninitialised before
//! the loop; in parallel loops, tensors of which another iteration may access the same element.

use super::reductions::{changes, variant};
use indexmap::IndexMap;
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};
use std::sync::Arc;
use taffeta_analysis::pass::substitute;
use taffeta_analysis::query::{Context, effects, walk};
use taffeta_ast::expr::Access;
use taffeta_ast::stmt::Role;
use taffeta_ast::{DType, Expr, ExprKind, Extent, Func, Stmt, StmtKind, Symbol, Tensor};

type Tensors = FxHashMap<Symbol, Arc<Tensor>>;
/// Accesses to each tensor in a loop, in the order of first accesses.
type Found = IndexMap<Symbol, Accessed, FxBuildHasher>;

pub(super) fn run(func: &Func) -> Func {
    let tensors = func.interface().map(|t| (t.symbol.clone(), t.clone())).collect();
    let filled = func.params.iter().map(|p| (p.tensor.symbol.clone(), None)).collect();
    let mut pass = Pass { tensors, filled, parallel: Vec::new() };
    let body = pass.stmt(&func.body, &mut Context::new(func));
    func.with_body(body)
}

struct Pass {
    /// Tensors in memory, not in registers.
    tensors: Tensors,
    /// Elements initialised at the current position; `None` stands for all of a tensor.
    filled: Vec<(Symbol, Option<Vec<Access>>)>,
    /// Parallel loops around the current position.
    parallel: Vec<Stmt>,
}

/// Accesses to a tensor in a loop.
struct Accessed {
    /// Indices, if all accesses have the same.
    at: Option<Vec<Access>>,
    /// Whether a write is under a condition.
    conditional: bool,
}

impl Pass {
    fn stmt(&mut self, s: &Stmt, facts: &mut Context) -> Stmt {
        let outer = self.filled.len();
        if let StmtKind::VarDef { tensor, .. } = s.kind()
            && tensor.ndim() > 0
        {
            self.tensors.insert(tensor.symbol.clone(), tensor.clone());
        }
        let kept = match s.kind() {
            StmtKind::For { props, .. } if !props.is_concurrent() => self.kept(s, facts),
            StmtKind::While { .. } => self.kept(s, facts),
            _ => Vec::new(),
        };
        let is_parallel = matches!(s.kind(), StmtKind::For { props, .. } if props.parallel.is_some());
        if is_parallel {
            self.parallel.push(s.clone());
        }
        let renamed = kept.iter().fold(s.clone(), |s, (local, element)| renamed(&s, local, element));
        // The last statement of a sequence is followed by no read; skipping it keeps a chain of nested scopes linear.
        let last = match renamed.kind() {
            StmtKind::Seq(all) => all.last(),
            _ => None,
        };
        let new = walk::map(&renamed, facts, &mut |s, facts| {
            let new = self.stmt(s, facts);
            if last.is_some_and(|last| !last.same_node(s)) {
                filled(s, &self.tensors, &mut Vec::new(), &mut self.filled);
            }
            new
        });
        if is_parallel {
            self.parallel.pop();
        }
        self.filled.truncate(outer);
        facts.after(s);
        kept.iter().rev().fold(new, |new, (local, element)| around(new, s, local, element))
    }

    /// Returns the elements to keep in scalars while a loop runs, with these scalars.
    fn kept(&self, s: &Stmt, facts: &mut Context) -> Vec<(Arc<Tensor>, Expr)> {
        let mut found = Found::default();
        accesses(s, false, &mut found);
        if !found.values().any(|a| a.conditional) || has_checks(s) {
            return Vec::new();
        }
        let variant = variant(s);
        let mut out = Vec::new();
        for (symbol, Accessed { at, conditional }) in found {
            let (Some(at), true, Some(tensor)) = (at, conditional, self.tensors.get(&symbol)) else { continue };
            let fixed = at.iter().all(|a| !changes(&a.index, &variant) && !facts.may_stop(&a.index));
            let mut in_range = || at.iter().enumerate().all(|(k, a)| facts.in_range(&symbol, k, &a.index));
            // A byte that is neither 0 nor 1 must not be loaded as a `bool`.
            if fixed
                && tensor.dtype != DType::Bool
                && self.is_filled(&symbol, &at)
                && self.is_own(&symbol)
                && in_range()
            {
                let name = symbol.name().to_string();
                let local = Tensor::dense(Symbol::new(name), tensor.dtype, Vec::new(), Role::Local);
                out.push((Arc::new(local), Expr::load(&symbol, at, tensor.dtype)));
            }
        }
        out
    }

    fn is_filled(&self, tensor: &Symbol, at: &[Access]) -> bool {
        self.filled.iter().any(|(t, e)| t == tensor && e.as_ref().is_none_or(|e| same(e, at)))
    }

    /// Returns whether no other iteration of a surrounding parallel loop accesses the same element: all accesses have
    /// the loop's iterator as index of the same dimension.
    fn is_own(&self, tensor: &Symbol) -> bool {
        self.parallel.iter().all(|s| {
            let StmtKind::For { iter, props, body, .. } = s.kind() else { return false };
            let mut dims: Option<FxHashSet<usize>> = None;
            each_access(body, &mut |t, at| {
                if t == tensor {
                    let is_iter = |a: &Access| matches!(a.index.kind(), ExprKind::Var(v) if v == iter);
                    let own = (0..at.len()).filter(|k| is_iter(&at[*k])).collect::<FxHashSet<_>>();
                    dims = Some(dims.take().map_or(own.clone(), |d| &d & &own));
                }
            });
            declares(body, tensor)
                || props.reductions.iter().all(|r| r.tensor != *tensor) && dims.is_some_and(|d| !d.is_empty())
        })
    }
}

/// Collects the accesses in a statement, and notes whether writes are conditional.
fn accesses(s: &Stmt, conditional: bool, found: &mut Found) {
    let mut note = |tensor: &Symbol, at: Option<&[Access]>, conditional: bool| match found.get_mut(tensor) {
        Some(known) => {
            known.at = known.at.take().filter(|known| at.is_some_and(|at| same(known, at)));
            known.conditional |= conditional;
        }
        None => drop(found.insert(tensor.clone(), Accessed { at: at.map(<[Access]>::to_vec), conditional })),
    };
    each_own_access(s, &mut |tensor, at, written| note(tensor, at, written && conditional));
    match s.kind() {
        // Threads and lanes cannot share a scalar.
        StmtKind::For { props, body, .. } if props.is_concurrent() => {
            each_access(body, &mut |tensor, _| note(tensor, None, false));
        }
        kind => {
            let conditional = conditional || matches!(kind, StmtKind::If { .. } | StmtKind::While { .. });
            kind.children().into_iter().for_each(|inner| accesses(inner, conditional, found));
        }
    }
}

/// Callback for accesses: the tensor, the indices (`None` for all elements), and whether it is a write.
type OnAccess<'a> = dyn FnMut(&Symbol, Option<&[Access]>, bool) + 'a;

/// Calls `f` on every access of a statement itself, without those of nested statements.
fn each_own_access(s: &Stmt, f: &mut OnAccess<'_>) {
    for e in s.kind().exprs() {
        e.walk(&mut |e| {
            if let ExprKind::Load(tensor, at) = e.kind() {
                f(tensor, Some(at), false);
            }
        });
    }
    match s.kind() {
        StmtKind::Store { tensor, indices, .. } | StmtKind::ReduceTo { tensor, indices, .. } => {
            f(tensor, Some(indices), true);
        }
        StmtKind::Call { tensors, .. } => tensors.iter().for_each(|tensor| f(tensor, None, true)),
        kind => kind.printed().into_iter().for_each(|tensor| f(tensor, None, false)),
    }
}

/// Calls `f` on every access of a statement and of nested ones; an access to all elements has no indices.
fn each_access(s: &Stmt, f: &mut dyn FnMut(&Symbol, &[Access])) {
    s.walk(&mut |s| each_own_access(s, &mut |tensor, at, _| f(tensor, at.unwrap_or_default())));
}

fn same(a: &[Access], b: &[Access]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.index == b.index)
}

fn has_checks(s: &Stmt) -> bool {
    matches!(s.kind(), StmtKind::Assert { .. }) || s.kind().children().into_iter().any(has_checks)
}

fn declares(s: &Stmt, symbol: &Symbol) -> bool {
    match s.kind() {
        StmtKind::VarDef { tensor, .. } if tensor.symbol == *symbol => true,
        kind => kind.children().into_iter().any(|inner| declares(inner, symbol)),
    }
}

/// Collects the elements that a statement definitely initialises. `around` lists the surrounding loops over
/// `range(size)`, as pairs of iterator and size.
fn filled(s: &Stmt, tensors: &Tensors, around: &mut Vec<(Symbol, Expr)>, out: &mut Vec<(Symbol, Option<Vec<Access>>)>) {
    match s.kind() {
        StmtKind::Seq(_) | StmtKind::VarDef { .. } => {
            s.kind().children().into_iter().for_each(|inner| filled(inner, tensors, around, out));
        }
        StmtKind::For { iter, extent: Extent::Range { begin, end, step }, body, .. }
            if begin.as_int() == Some(0) && step.as_int() == Some(1) =>
        {
            around.push((iter.clone(), end.clone()));
            filled(body, tensors, around, out);
            around.pop();
        }
        StmtKind::Store { tensor, indices, .. } => {
            let Some(shape) = tensors.get(tensor).map(|t| &t.shape) else { return };
            let of = |a: &Access, size: &Expr| {
                let is_iter = |iter: &Symbol| matches!(a.index.kind(), ExprKind::Var(v) if v == iter);
                around.iter().position(|(iter, end)| end == size && is_iter(iter))
            };
            // Every loop must belong to a dimension of its own: a further loop may have no iterations, and a diagonal
            // does not cover the tensor.
            let loops: FxHashSet<Option<usize>> = indices.iter().zip(shape).map(|(a, size)| of(a, size)).collect();
            if !loops.contains(&None) && loops.len() == shape.len() && loops.len() == around.len() {
                out.push((tensor.clone(), None));
            } else if around.is_empty() && indices.iter().all(|a| effects::loads(&a.index).is_empty()) {
                out.push((tensor.clone(), Some(indices.clone())));
            }
        }
        _ => {}
    }
}

/// Replaces an element by a scalar in a loop.
fn renamed(s: &Stmt, local: &Tensor, element: &Expr) -> Stmt {
    let ExprKind::Load(of, _) = element.kind() else { return s.clone() };
    let scalar = |e: &Expr| matches!(e.kind(), ExprKind::Load(t, _) if t == of).then(|| local.load([]));
    let read = substitute::rewrite(s, &mut |e| scalar(e), &mut FxHashMap::default());
    written(&read, of, local)
}

fn written(s: &Stmt, of: &Symbol, local: &Tensor) -> Stmt {
    let (tensor, indices) = (local.symbol.clone(), Vec::new());
    match s.kind() {
        StmtKind::Store { tensor: t, value, .. } if t == of => {
            s.with_kind(StmtKind::Store { tensor, indices, value: value.clone() })
        }
        StmtKind::ReduceTo { tensor: t, op, value, .. } if t == of => {
            s.with_kind(StmtKind::ReduceTo { tensor, indices, op: *op, value: value.clone() })
        }
        _ => s.map(&mut |inner| written(inner, of, local), &mut Expr::clone),
    }
}

/// Wraps the loop between the load of an element and the store back.
fn around(new: Stmt, s: &Stmt, local: &Arc<Tensor>, element: &Expr) -> Stmt {
    let ExprKind::Load(of, at) = element.kind() else { return new };
    let origin = s.origin().derive("promote", "scalar");
    let store = |tensor: &Symbol, indices: Vec<Access>, value: Expr| {
        Stmt::new(StmtKind::Store { tensor: tensor.clone(), indices, value }, origin.clone())
    };
    let before = store(&local.symbol, Vec::new(), element.clone());
    let after = store(of, at.clone(), local.load([]));
    let body = Stmt::seq([before, new, after], origin.clone());
    Stmt::new(StmtKind::VarDef { tensor: local.clone(), body }, origin.clone())
}
