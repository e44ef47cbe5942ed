//! Scalar promotion: an element that a loop reduces into under conditions is kept in a local scalar while the loop
//! runs.
//!
//! *does*, for each loop that runs in order: an element whose indices do not change in it, to which all accesses of its
//! tensor in the loop are, is loaded before the loop and stored after it. Compilers do the same where every iteration
//! writes the element; where only some do, they must not: a store that the program does not make could meet one of
//! another thread.
//!
//! *requires*: `checks` (a loop with a check in it is left alone: what it wrote before it stops is seen), `reductions`.
//! *ensures*: every value and its order of rounding; ids and origins of what stays.
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
//! *leaves alone*: what every iteration writes; elements that may not be in range or may have no value before the loop;
//! in parallel loops, tensors of which another iteration may access the same element.

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
/// What of each tensor is accessed in a loop, in the order of first accesses.
type Found = IndexMap<Symbol, Accessed, FxBuildHasher>;

pub(super) fn run(func: &Func) -> Func {
    let tensors = func.interface().map(|t| (t.symbol.clone(), t.clone())).collect();
    let filled = func.params.iter().map(|p| (p.tensor.symbol.clone(), None)).collect();
    let mut pass = Pass { tensors, filled, parallel: Vec::new() };
    let body = pass.stmt(&func.body, &mut Context::new(func));
    func.with_body(body)
}

struct Pass {
    /// Tensors with memory.
    tensors: Tensors,
    /// Elements that have a value where the pass is; `None`: all of a tensor.
    filled: Vec<(Symbol, Option<Vec<Access>>)>,
    /// Parallel loops around it.
    parallel: Vec<Stmt>,
}

/// The accesses to a tensor in a loop.
struct Accessed {
    /// Their indices, if they are the same.
    at: Option<Vec<Access>>,
    /// Whether some write under a condition.
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
        // What the last one of a sequence fills is read by nothing in it; so a chain of scopes is gone through once.
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

    /// The elements that are kept in scalars while a loop runs.
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
            // A byte that is no `bool` must not be loaded as one.
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

    /// Whether no other iteration of a parallel loop around accesses the same element: all accesses have its iterator
    /// as the same index.
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

/// Adds the accesses in a statement, those that are made under a condition apart.
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
        // Threads and lanes share no scalar.
        StmtKind::For { props, body, .. } if props.is_concurrent() => {
            each_access(body, &mut |tensor, _| note(tensor, None, false));
        }
        kind => {
            let conditional = conditional || matches!(kind, StmtKind::If { .. } | StmtKind::While { .. });
            kind.children().into_iter().for_each(|inner| accesses(inner, conditional, found));
        }
    }
}

/// What is called on accesses: the tensor, the indices (`None`: of all elements), and whether it is a write.
type OnAccess<'a> = dyn FnMut(&Symbol, Option<&[Access]>, bool) + 'a;

/// Calls `f` on every access that stands in a statement itself.
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
        StmtKind::Eval { args, .. } => args.iter().for_each(|tensor| f(tensor, None, true)),
        kind => kind.printed().into_iter().for_each(|tensor| f(tensor, None, false)),
    }
}

/// Calls `f` on every access in a statement and inside it; one to all elements has no indices.
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

/// The elements to which a statement surely gives a value. `around`: the iterators of loops over all of a dimension,
/// and its size.
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
            // Every loop is a dimension's: others may not run, and a diagonal is not all.
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

/// The loop with a scalar in the place of an element.
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

/// The loop between loading an element and storing it.
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
