//! Whether loops that a schedule made parallel or vectorised can be written so in C without a race.
//!
//! *does*: refuses a parallel or vectorised loop in which a reduction may meet itself in another iteration, a vectorised
//! one with checks left in it or that is not innermost, and an unrolled one of unknown length. Stores are not asked
//! about: that they do not meet is what made the schedule legal.
//! *requires*: `hoist`, since it moves checks out. *leaves alone*: the program.
//!
//! A reduction `t[…] += v` does not meet itself if one index is `c * i + r`, with `i` the loop's iterator, `c` a constant
//! other than 0 and `r` the same in all iterations of the loop.

use rustc_hash::FxHashSet;
use weft_ast::expr::Access;
use weft_ast::poly::Poly;
use weft_ast::{Diagnostic, Diagnostics, Expr, ExprKind, Extent, Func, Stmt, StmtKind, Symbol};

pub(super) fn check(func: &Func) -> Result<(), Diagnostics> {
    let mut found = Vec::new();
    func.body.walk(&mut |s| {
        if let StmtKind::For { iter, extent, props, body } = s.kind() {
            let refuse = |what: String| {
                Diagnostic::new("lower::loop", format!("the loop `{iter}` cannot be {what}")).at(s.origin().span())
            };
            if props.parallel || props.vectorize {
                let how = if props.parallel { "parallel" } else { "vectorised" };
                for tensor in reductions(iter, body) {
                    found.push(refuse(format!("{how} yet: iterations may reduce into the same element of `{tensor}`")));
                }
            }
            if props.vectorize && !is_plain(body) {
                found.push(refuse("vectorised yet: its body has checks, branches or loops in it".into()));
            }
            if props.unroll && !props.parallel && length(extent).is_none() {
                found.push(refuse("unrolled: its length is not a constant up to 64".into()));
            }
        }
    });
    if found.is_empty() { Ok(()) } else { Err(Diagnostics(found)) }
}

/// The length of a loop that can be unrolled.
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

/// Tensors declared outside of the loop into which two iterations may reduce the same element.
fn reductions(iter: &Symbol, body: &Stmt) -> Vec<Symbol> {
    let mut inside: FxHashSet<Symbol> = FxHashSet::default();
    body.walk(&mut |s| match s.kind() {
        StmtKind::For { iter, .. } => drop(inside.insert(iter.clone())),
        StmtKind::VarDef { tensor, .. } => drop(inside.insert(tensor.symbol.clone())),
        StmtKind::Store { tensor, .. } | StmtKind::ReduceTo { tensor, .. } => drop(inside.insert(tensor.clone())),
        _ => {}
    });
    let mut local: FxHashSet<Symbol> = FxHashSet::default();
    body.walk(&mut |s| {
        if let StmtKind::VarDef { tensor, .. } = s.kind() {
            local.insert(tensor.symbol.clone());
        }
    });
    let mut found = Vec::new();
    body.walk(&mut |s| {
        if let StmtKind::ReduceTo { tensor, indices, .. } = s.kind()
            && !local.contains(tensor)
            && !indices.iter().any(|a: &Access| separates(&a.index, iter, &inside))
            && !found.contains(tensor)
        {
            found.push(tensor.clone());
        }
    });
    found
}

/// Whether `index` is `c * iter + r` with `r` free of what changes inside the loop.
fn separates(index: &Expr, iter: &Symbol, inside: &FxHashSet<Symbol>) -> bool {
    let Some(poly) = Poly::of(index) else { return false };
    let mut linear = false;
    for (monomial, _) in poly.terms() {
        if let [e] = monomial
            && matches!(e.kind(), ExprKind::Var(v) if v == iter)
        {
            linear = true;
            continue;
        }
        let mut varies = false;
        for e in monomial {
            e.walk(&mut |e| {
                if let ExprKind::Var(v) | ExprKind::Load(v, _) = e.kind() {
                    varies |= v == iter || inside.contains(v);
                }
            });
        }
        if varies {
            return false;
        }
    }
    linear
}

/// Stores and reductions, one after the other.
fn is_plain(s: &Stmt) -> bool {
    match s.kind() {
        StmtKind::Seq(v) => v.iter().all(is_plain),
        StmtKind::VarDef { tensor, body } => tensor.ndim() == 0 && is_plain(body),
        StmtKind::Store { .. } | StmtKind::ReduceTo { .. } | StmtKind::Assume { .. } => true,
        _ => false,
    }
}
