//! Moves checks out of loops in which they are invariant.
//!
//! *does*: an assertion that lowering made (kind `Index` or `Arithmetic`), with the `if`s that guard it, leaves every loop
//! that neither binds a variable of it nor writes a tensor it reads; it then stands before the loop, under the condition
//! that the loop runs at all. *requires*: `checks`. *ensures*: the same runs fail. A run in which several checks fail may
//! report another one of them.
//!
//! ```text
//! for k in range(feats):                        if 0 < feats:
//!     assert 0 <= adj[i, j] and …       →           assert 0 <= adj[i, j] and …
//!     y[i, k] += e[adj[i, j], k]                for k in range(feats):
//!                                                   y[i, k] += e[adj[i, j], k]
//! ```
//!
//! *leaves alone*: assertions of the program and what stands behind one, since its message should come first; what stands
//! in a branch whose condition varies in the loop.

use rustc_hash::FxHashSet;
use weft_ast::stmt::AssertKind;
use weft_ast::{Expr, ExprKind, Extent, Func, Stmt, StmtKind, Symbol};

pub(super) fn run(func: &Func) -> Func {
    func.with_body(stmt(&func.body))
}

/// Innermost loops first, so that a check can leave several.
fn stmt(s: &Stmt) -> Stmt {
    let s = s.map(&mut stmt, &mut Expr::clone);
    let StmtKind::For { iter, extent: Extent::Range { begin, end, step }, props, body } = s.kind() else { return s };
    let mut bound: FxHashSet<Symbol> = FxHashSet::default();
    bound.insert(iter.clone());
    body.walk(&mut |inner| {
        match inner.kind() {
            StmtKind::For { iter, .. } => bound.insert(iter.clone()),
            StmtKind::VarDef { tensor, .. } => bound.insert(tensor.symbol.clone()),
            StmtKind::Store { tensor, .. } | StmtKind::ReduceTo { tensor, .. } => bound.insert(tensor.clone()),
            _ => false,
        };
    });
    let mut out = Vec::new();
    let body = take(body, &bound, &mut out);
    if out.is_empty() {
        return s;
    }
    let kind = StmtKind::For {
        iter: iter.clone(),
        extent: Extent::Range { begin: begin.clone(), end: end.clone(), step: step.clone() },
        props: props.clone(),
        body,
    };
    let origin = s.origin().derive("hoist", "checks");
    let checks = Stmt::seq(out, origin.clone());
    let runs = match step.as_int() {
        Some(step) if step > 0 => begin.less(end),
        Some(_) => end.less(begin),
        None => Expr::int(0).less(step).select(&begin.less(end), &end.less(begin)),
    };
    let guarded = match runs.as_bool() {
        Some(true) => checks,
        _ => Stmt::new(StmtKind::If { cond: runs, then: checks, otherwise: None }, origin.clone()),
    };
    Stmt::seq([guarded, s.with_kind(kind)], origin)
}

/// Takes the invariant checks from the statements that run unconditionally in every iteration.
fn take(body: &Stmt, bound: &FxHashSet<Symbol>, out: &mut Vec<Stmt>) -> Stmt {
    match body.kind() {
        StmtKind::Seq(v) => {
            let mut asserted = false;
            let mut kept = Vec::new();
            for s in v {
                let left = if asserted { s.clone() } else { take(s, bound, out) };
                asserted = asserted || asserts(s);
                kept.extend((!left.is_nop()).then_some(left));
            }
            if kept.len() == v.len() && kept.iter().zip(v).all(|(a, b)| a.same_node(b)) {
                body.clone()
            } else {
                Stmt::seq(kept, body.origin().clone())
            }
        }
        StmtKind::VarDef { tensor, body: inner } => {
            body.with_kind(StmtKind::VarDef { tensor: tensor.clone(), body: take(inner, bound, out) })
        }
        _ if is_check(body) && invariant(body, bound) => {
            out.push(body.clone());
            Stmt::nop()
        }
        _ => body.clone(),
    }
}

/// Whether an assertion of the program is in it.
fn asserts(s: &Stmt) -> bool {
    let mut found = false;
    s.walk(&mut |s| found |= matches!(s.kind(), StmtKind::Assert { kind: AssertKind::Program, .. }));
    found
}

/// An assertion that lowering made, or such assertions under a guard.
fn is_check(s: &Stmt) -> bool {
    match s.kind() {
        StmtKind::Assert { kind, .. } => *kind != AssertKind::Program,
        StmtKind::If { then, otherwise: None, .. } => is_check(then),
        StmtKind::Seq(v) => !v.is_empty() && v.iter().all(is_check),
        _ => false,
    }
}

fn invariant(s: &Stmt, bound: &FxHashSet<Symbol>) -> bool {
    let mut ok = true;
    s.walk_exprs(&mut |e| {
        if let ExprKind::Var(v) | ExprKind::Load(v, _) = e.kind() {
            ok &= !bound.contains(v);
        }
    });
    ok
}
