//! Replacement of loops that only count by their last iteration.
//!
//! **Does**, for sequential loops of step 1: where every iteration adds 1 to scalars, and at most raises elements to such
//! a count, the scalars are set to their values before the last iteration, and only that one runs. A row with `k`
//! stored elements is counted in constant time, as `pos[i + 1] - pos[i]` (format-conversion, section 5.2).
//!
//! **Requires**: `checks` (a loop with a check in it is left alone), `promote`. **Ensures**: equal values; that no count
//! wraps is proved from the assumptions of structured lowering.
//!
//! ```text
//! for p in range(pos[i], pos[i + 1]):      if pos[i] < pos[i + 1]:
//!     if most < count + 1:                     count = count + (pos[i + 1] - pos[i] - 1)
//!         most = count + 1          ─▶         if most < count + 1:
//!     count = count + 1                            most = count + 1
//!                                              count = count + 1
//! ```

use taffeta_analysis::query::{Context, effects, walk};
use taffeta_ast::expr::Access;
use taffeta_ast::value::MAX_SIZE;
use taffeta_ast::{DType, Expr, ExprKind, Extent, Func, Op, Stmt, StmtKind, Symbol};

/// Bound of counts and of positions; sums of two of them do not wrap.
const LIMIT: i64 = 4 * MAX_SIZE;

pub(super) fn run(func: &Func) -> Func {
    func.with_body(stmt(&func.body, &mut Context::new(func)))
}

fn stmt(s: &Stmt, facts: &mut Context) -> Stmt {
    let new = match last_iteration(s, facts) {
        Some(last) => last,
        None => walk::map(s, facts, &mut stmt),
    };
    facts.after(s);
    new
}

/// Builds the last iteration of a loop that only counts, after the counts of all others.
fn last_iteration(s: &Stmt, facts: &mut Context) -> Option<Stmt> {
    let StmtKind::For { iter, extent, props, body } = s.kind() else { return None };
    let Extent::Range { begin, end, step } = extent else { return None };
    let parts = match body.kind() {
        StmtKind::Seq(parts) => &parts[..],
        _ => std::slice::from_ref(body),
    };
    let counts: Vec<&Symbol> = parts.iter().filter_map(count).collect();
    let steps: Vec<Stmt> = parts.iter().filter(|s| !matches!(s.kind(), StmtKind::Assume { .. })).cloned().collect();
    let alone = |t: &Symbol| counts.iter().filter(|other| **other == t).count() == 1;
    let counts_only = !props.is_concurrent()
        && step.as_int() == Some(1)
        && !counts.is_empty()
        && steps.iter().all(|s| count(s).is_some_and(alone) || raises(s, &counts, iter))
        && !effects::loads(begin).iter().chain(&effects::loads(end)).any(|t| body.writes_to(t));
    if !counts_only || !is_bounded(s, &counts, facts) {
        return None;
    }
    let before = end.minus(begin).minus(&Expr::int(1));
    let added = counts.iter().map(|t| {
        let (tensor, indices) = ((*t).clone(), Vec::new());
        let value = scalar(t).plus(&before);
        Stmt::new(StmtKind::Store { tensor, indices, value }, s.origin().derive("count_loops", "count"))
    });
    let then = Stmt::seq(added.chain(steps), s.origin().clone());
    Some(s.with_kind(StmtKind::If { cond: begin.less(end), then, otherwise: None }))
}

/// Returns the scalar to which a statement adds 1.
fn count(s: &Stmt) -> Option<&Symbol> {
    let StmtKind::Store { tensor, indices, value } = s.kind() else { return None };
    (indices.is_empty() && *value == scalar(tensor).plus(&Expr::int(1))).then_some(tensor)
}

/// Loads a scalar of type i64.
fn scalar(tensor: &Symbol) -> Expr {
    Expr::load(tensor, Vec::new(), DType::I64)
}

/// Returns whether a statement at most raises an element, which is the same in all iterations, to a count, or to one
/// more.
fn raises(s: &Stmt, counts: &[&Symbol], iter: &Symbol) -> bool {
    let StmtKind::If { cond, then, otherwise: None } = s.kind() else { return false };
    let StmtKind::Store { tensor, indices, value } = then.kind() else { return false };
    let ExprKind::Apply(Op::Lt, sides) = cond.kind() else { return false };
    let [old, new] = &sides[..] else { return false };
    let is_count = |t: &&Symbol| {
        let count = scalar(t);
        *new == count || *new == count.plus(&Expr::int(1))
    };
    let is_fixed = |a: &Access| effects::loads(&a.index).is_empty() && !effects::mentions(&a.index, &[iter]);
    let is_element = matches!(uncast(old).kind(), ExprKind::Load(t, at) if t == tensor && at == indices);
    is_element
        && uncast(value) == new
        && counts.iter().any(is_count)
        && !counts.contains(&tensor)
        && indices.iter().all(is_fixed)
}

fn uncast(e: &Expr) -> &Expr {
    match e.kind() {
        ExprKind::Cast(e) => e,
        _ => e,
    }
}

/// Proves that neither the counts nor the number of iterations are so large that they could wrap.
fn is_bounded(l: &Stmt, counts: &[&Symbol], facts: &mut Context) -> bool {
    let StmtKind::For { iter, extent, body, .. } = l.kind() else { return false };
    let small = |e: &Expr| Expr::int(0).less_eq(e).and(&e.less(&Expr::int(LIMIT)));
    counts.iter().all(|t| facts.prove(&small(&scalar(t))))
        && facts.scoped(|c| {
            c.enter_loop(iter, extent, body);
            body.walk(&mut |s| {
                if let StmtKind::Assume { cond } = s.kind() {
                    c.assume(cond);
                }
            });
            c.prove(&small(&Expr::var(iter)))
        })
}
