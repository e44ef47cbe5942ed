//! Hoisting of coordinates that loops inside of a loop over positions use, or several conditions: they are loaded once,
//! into a local scalar. C compilers do not see that they are invariant, and treat accesses at such a coordinate as
//! scattered.
//!
//! ```text
//! for p in range(pos[i], pos[i + 1]):          for p in range(pos[i], pos[i + 1]):
//!     for l in range(k):                           j = crd[p]
//!         C[i, l] += val[p] * B[crd[p], l]   ─▶    for l in range(k):
//!                                                      C[i, l] += val[p] * B[j, l]
//! ```

use super::scalars::scalar;
use super::state::Lower;
use crate::access;
use crate::level::TensorLevel;
use crate::levels;
use rustc_hash::FxHashSet;
use std::sync::Arc;
use taffeta_analysis::query::effects;
use taffeta_ast::{DType, Expr, ExprKind, Stmt, StmtKind, Symbol, Tensor};

impl Lower {
    /// Loads coordinates that inner loops or several conditions use into scalars.
    pub(super) fn hoist_coordinates(&self, s: &Stmt) -> Stmt {
        let coordinates = |level: &TensorLevel| {
            let (_, crd) = levels::of_level(level)?.contract(level.level)?.list?;
            level.arrays.get(crd).map(|a| a.symbol.clone())
        };
        let arrays = self.tensors.values().flat_map(|flat| &flat.levels).filter_map(coordinates).collect();
        hoist_coordinates(s, &arrays)
    }
}

fn hoist_coordinates(s: &Stmt, arrays: &FxHashSet<Symbol>) -> Stmt {
    let inner = s.map(&mut |s| hoist_coordinates(s, arrays), &mut Expr::clone);
    let StmtKind::For { iter, extent, props, body } = inner.kind() else { return inner };
    let mut found: Vec<Expr> = Vec::new();
    used_inside(body, iter, arrays, false, &mut found);
    let mut tested: Vec<Expr> = Vec::new();
    body.walk(&mut |s| {
        if let StmtKind::If { cond, .. } = s.kind() {
            elements(cond, iter, arrays, &mut tested);
        }
    });
    for (k, e) in tested.iter().enumerate() {
        if tested[..k].contains(e) && !found.contains(e) {
            found.push(e.clone());
        }
    }
    if found.is_empty() || props.is_concurrent() {
        return inner;
    }
    let origin = inner.origin().derive("structured", "coordinate");
    let name = iter.name().strip_suffix(".p").unwrap_or(iter.name());
    // Cast to the index type, in which all uses read it.
    let scalars: Vec<(Expr, Arc<Tensor>)> =
        found.iter().map(|e| (e.clone().cast(DType::I64), scalar(name.to_string()))).collect();
    let replaced = access::rebuild(body, &mut |e| {
        let known = scalars.iter().find(|(load, _)| *load == e).map(|(_, t)| t.load([]));
        known.unwrap_or(e)
    });
    let set = |(value, t): &(Expr, Arc<Tensor>)| {
        let (tensor, value) = (t.symbol.clone(), value.clone());
        Stmt::new(StmtKind::Store { tensor, indices: Vec::new(), value }, origin.clone())
    };
    // Assumptions about positions come first, so that the loaded element exists.
    let items = match replaced.kind() {
        StmtKind::Seq(all) => all.clone(),
        _ => vec![replaced],
    };
    let is_promise = |s: &Stmt| match s.kind() {
        StmtKind::Assume { cond } => effects::loads(cond).is_empty(),
        _ => false,
    };
    let first = items.iter().take_while(|s| is_promise(s)).count();
    let all = items[..first].iter().cloned().chain(scalars.iter().map(set)).chain(items[first..].iter().cloned());
    let body = scalars.iter().rev().fold(Stmt::seq(all, origin.clone()), |body, (_, tensor)| {
        Stmt::new(StmtKind::VarDef { tensor: tensor.clone(), body }, origin.clone())
    });
    inner.with_kind(StmtKind::For { iter: iter.clone(), extent: extent.clone(), props: props.clone(), body })
}

/// Collects the elements of the arrays at the iterator's position that inner loops read.
fn used_inside(s: &Stmt, iter: &Symbol, arrays: &FxHashSet<Symbol>, inside: bool, out: &mut Vec<Expr>) {
    if inside && !matches!(s.kind(), StmtKind::Assume { .. }) {
        let mut read = Vec::new();
        access::exprs(s).iter().for_each(|e| elements(e, iter, arrays, &mut read));
        read.into_iter().for_each(|e| out.extend((!out.contains(&e)).then_some(e)));
    }
    let inside = inside || matches!(s.kind(), StmtKind::For { .. });
    s.kind().children().into_iter().for_each(|s| used_inside(s, iter, arrays, inside, out));
}

/// Collects the elements of the arrays at the iterator's position that an expression reads.
fn elements(e: &Expr, iter: &Symbol, arrays: &FxHashSet<Symbol>, out: &mut Vec<Expr>) {
    e.walk(&mut |e| {
        if let ExprKind::Load(t, at) = e.kind()
            && arrays.contains(t)
            && matches!(at.as_slice(), [a] if matches!(a.index.kind(), ExprKind::Var(v) if v == iter))
        {
            out.push(e.clone());
        }
    });
}
