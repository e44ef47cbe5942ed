//! Conversion of guards on a loop's iterator into loop bounds.
//!
//! **Does**, for loops of step 1: an integer comparison that guards the whole body, and one side of which grows by 1 or
//! -1 with the iterator, restricts the loop's range instead of being evaluated in each iteration.
//!
//! **Requires**: `checks`, which proves accesses in range from the guards. **Ensures**: ids and origins are kept; the
//! same statements run in the same order, which is proved for each guard.
//!
//! ```text
//! for j in range(16):                      for j in range(min(16, n - i * 16)):
//!     if i * 16 + j < n:            ─▶         x[i * 16 + j] = 0.0
//!         x[i * 16 + j] = 0.0                  y[i * 16 + j] = 0.0
//!     if i * 16 + j < n:
//!         y[i * 16 + j] = 0.0
//! ```
//!
//! The aim is vectorised loops: compilers vectorise loops without branches, and fully unroll those of constant length.
//!
//! **Leaves alone**: conditions with loads, loops to be unrolled.

use taffeta_analysis::query::guard::{Bound, bound, guards};
use taffeta_analysis::query::{Context, walk};
use taffeta_ast::{Expr, Extent, Func, Op, Stmt, StmtKind};

pub(super) fn run(func: &Func) -> Func {
    func.with_body(stmt(&func.body, &mut Context::new(func)))
}

fn stmt(s: &Stmt, facts: &mut Context) -> Stmt {
    let new = walk::map(&bounded(s, facts), facts, &mut stmt);
    facts.after(s);
    new
}

/// Turns the guards of a loop's whole body into its bounds.
fn bounded(s: &Stmt, facts: &mut Context) -> Stmt {
    let StmtKind::For { iter, extent, props, body } = s.kind() else { return s.clone() };
    let Extent::Range { begin, end, step } = extent else { return s.clone() };
    if step.as_int() != Some(1) || props.unroll {
        return s.clone();
    }
    let (mut first, mut last, mut rest) = (begin.clone(), end.clone(), body.clone());
    for guard in guards(body) {
        match bound(&guard, iter).filter(|b| is_equivalent(b, &guard, s, facts)) {
            Some(Bound::Below(e)) => last = Expr::apply(Op::Min, vec![last, e]),
            Some(Bound::From(e)) => first = Expr::apply(Op::Max, vec![first, e]),
            None => continue,
        }
        rest = without(&rest, &guard);
    }
    let extent = Extent::Range { begin: first, end: last, step: step.clone() };
    s.with_kind(StmtKind::For { iter: iter.clone(), extent, props: props.clone(), body: rest })
}

/// Proves that a bound is equivalent to a guard in every iteration; integers wrap, so it may not be.
fn is_equivalent(b: &Bound, guard: &Expr, l: &Stmt, facts: &mut Context) -> bool {
    let StmtKind::For { iter, extent, body, .. } = l.kind() else { return false };
    let i = Expr::var(iter);
    let inside = match b {
        Bound::Below(e) => i.less(e),
        Bound::From(e) => e.less_eq(&i),
    };
    facts.scoped(|c| {
        c.enter_loop(iter, extent, body);
        let mark = c.mark();
        c.assume(guard);
        let there = c.prove(&inside);
        c.pop(mark);
        c.assume_not(guard);
        there && c.refute(&inside)
    })
}

/// Removes a guard that covers the whole statement.
fn without(s: &Stmt, guard: &Expr) -> Stmt {
    match s.kind() {
        StmtKind::If { cond, then, otherwise: None } => {
            let left: Vec<Expr> = cond.conjuncts().into_iter().filter(|c| c != guard).collect();
            let then = without(then, guard);
            match left.into_iter().reduce(|a, b| a.and(&b)) {
                Some(cond) => s.with_kind(StmtKind::If { cond, then, otherwise: None }),
                None => then,
            }
        }
        // A guarded sequence is spliced into this one.
        StmtKind::Seq(_) => s.map(&mut |p| without(p, guard), &mut Expr::clone),
        StmtKind::VarDef { tensor, body } => {
            s.with_kind(StmtKind::VarDef { tensor: tensor.clone(), body: without(body, guard) })
        }
        _ => s.clone(),
    }
}
