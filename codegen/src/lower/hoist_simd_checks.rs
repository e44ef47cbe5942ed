//! Hoisting of assertions out of vectorised loops, whose bodies must have no exits.
//!
//! **Does**, for each vectorised loop: assertions in it move into a loop of their own before it, with the branches and
//! local scalars that they depend on.
//!
//! **Requires**: `checks`, `hoist` and `guards_to_bounds`; the schedule has ensured that assertions do not depend on
//! the loop's writes. **Ensures**: remaining statements keep ids and origins; a failing program still fails, before the
//! loop has written anything.
//!
//! ```text
//! for j in range(32):  # vectorize                 for j in range(min(32, n - o * 32)):
//!     if o * 32 + j < n:                               assert k[o * 32 + j] < m
//!         assert k[o * 32 + j] < m          →      for j in range(min(32, n - o * 32)):  # vectorize
//!         y[o * 32 + j] = x[k[o * 32 + j]]             y[o * 32 + j] = x[k[o * 32 + j]]
//! ```
//!
//! A check loop that consists of assertions alone, all of whose conditions can be evaluated in every iteration whether
//! others hold or not, is vectorised: it finds whether any condition fails, and only then does the loop with exits run,
//! to report the first failure.
//!
//! ```text
//! fails = 0
//! for e in range(m):  # vectorize, partial(fails |)
//!     fails |= select(k[e] < n, 0, 1)
//! if fails != 0:
//!     for e in range(m):
//!         assert k[e] < n
//! ```
//!
//! **Leaves alone**: other loops; data-dependent conditions, which become masks; assertions that depend on the loop's
//! writes (`parallel` refuses them).

use rustc_hash::FxHashSet;
use std::sync::Arc;
use taffeta_analysis::pass::copy::Copier;
use taffeta_analysis::query::{Context, effects, walk};
use taffeta_ast::stmt::{LoopProps, Role, Vectorize};
use taffeta_ast::{
    DType, Expr, ExprKind, Extent, Func, Literal, Op, Origin, ReduceOp, Reduction, Sharing, Stmt, StmtKind, Symbol,
    Tensor,
};

pub(super) fn run(func: &Func) -> Func {
    func.with_body(stmt(&func.body, &mut Context::new(func)))
}

fn stmt(s: &Stmt, facts: &mut Context) -> Stmt {
    if let StmtKind::For { extent: Extent::Range { .. }, props, .. } = s.kind()
        && props.vectorize.is_some()
    {
        let new = checked_before(s, facts);
        facts.after(s);
        return new;
    }
    let new = walk::map(s, facts, &mut stmt);
    facts.after(s);
    new
}

/// Puts a loop with the assertions of a vectorised loop before it.
fn checked_before(s: &Stmt, facts: &mut Context) -> Stmt {
    let StmtKind::For { iter, extent, body, .. } = s.kind() else { return s.clone() };
    let Some(needed) = needed(body) else { return s.clone() };
    let origin = s.origin().derive("hoist_simd_checks", "checks");
    let Some(checks) = for_assertions(body, &needed) else { return s.clone() };
    let new = iter.fresh();
    let mut copier = Copier::new("vectorise", "check");
    copier.scalars.insert(iter.clone(), Expr::var(&new));
    let checks = copier.stmt(&checks);
    let conditions = at_once(&new, extent, &checks, facts);
    let kind = StmtKind::For { iter: new, extent: extent.clone(), props: LoopProps::default(), body: checks };
    let mut checks = Stmt::new(kind, origin.clone());
    if let Some(conditions) = conditions {
        checks = if_any_fails(&conditions, checks, &origin);
    }
    Stmt::seq([checks, without(s)], origin)
}

/// Minimum trip count for a vectorised check; shorter loops are as fast with exits.
const FEWEST_AT_ONCE: i64 = 64;

/// Returns the conditions of a check loop that can be vectorised: it consists of assertions, each of which can be
/// evaluated in every iteration whether the others hold or not. Loops with bounds read from memory, such as rows of a
/// sparse matrix, count as short and keep their exits.
fn at_once(iter: &Symbol, extent: &Extent, checks: &Stmt, facts: &mut Context) -> Option<Vec<Expr>> {
    let Extent::Range { begin, end, .. } = extent else { return None };
    let is_short = match (begin.as_int(), end.as_int()) {
        (Some(begin), Some(end)) => end.saturating_sub(begin) < FEWEST_AT_ONCE,
        _ => [begin, end].into_iter().any(|e| !effects::loads(e).is_empty()),
    };
    if is_short {
        return None;
    }
    let conditions = assertions(checks)?;
    let have_values = facts.scoped(|facts| {
        facts.enter_loop(iter, extent, checks);
        conditions.iter().all(|c| !facts.may_stop(c))
    });
    have_values.then_some(conditions)
}

/// Returns the conditions of a statement that consists of assertions alone; `None` for any other. (They are not joined
/// into one conjunction, as by `checks::all`: with `&&` compilers load element by element, which takes three times as
/// long.)
fn assertions(s: &Stmt) -> Option<Vec<Expr>> {
    match s.kind() {
        StmtKind::Assert { cond, .. } => Some(vec![cond.clone()]),
        StmtKind::Seq(v) => Some(v.iter().map(assertions).collect::<Option<Vec<_>>>()?.concat()),
        _ => None,
    }
}

/// Guards a check loop with exits by a vectorised loop over its conditions: it runs only if one of them fails.
fn if_any_fails(conditions: &[Expr], checks: Stmt, origin: &Origin) -> Stmt {
    let StmtKind::For { iter, extent, .. } = checks.kind() else { return checks };
    let flag = Arc::new(Tensor::dense(Symbol::new("fails"), DType::I32, Vec::new(), Role::Workspace));
    let (symbol, number) = (&flag.symbol, |v| Expr::literal(Literal::Int(v), DType::I32));
    let make = |kind| Stmt::new(kind, origin.clone());
    let clear = make(StmtKind::Store { tensor: symbol.clone(), indices: Vec::new(), value: number(0) });
    let own = iter.fresh();
    let is_iter = |e: &Expr| matches!(e.kind(), ExprKind::Var(s) if s == iter);
    let found = conditions.iter().map(|cond| {
        let here = cond.rewrite(&mut |e| if is_iter(&e) { Expr::var(&own) } else { e });
        let value = here.select(&number(0), &number(1));
        make(StmtKind::ReduceTo { tensor: symbol.clone(), indices: Vec::new(), op: ReduceOp::BitOr, value })
    });
    let body = Stmt::seq(found, origin.clone());
    let reduction = Reduction { tensor: symbol.clone(), op: ReduceOp::BitOr, sharing: Sharing::Partial };
    let vectorize = Some(Vectorize::default());
    let props = LoopProps { vectorize, reductions: vec![reduction], ..LoopProps::default() };
    let find = make(StmtKind::For { iter: own, extent: extent.clone(), props, body });
    let cond = Expr::apply(Op::Ne, vec![flag.load([]), number(0)]);
    let tell = make(StmtKind::If { cond, then: checks, otherwise: None });
    let body = Stmt::seq([clear, find, tell], origin.clone());
    make(StmtKind::VarDef { tensor: flag, body })
}

/// Returns the local scalars that the assertions in a loop's body depend on; `None` if there are no assertions, or if
/// they depend on the loop's writes.
fn needed(body: &Stmt) -> Option<FxHashSet<Symbol>> {
    let (mut locals, mut needed) = (FxHashSet::default(), FxHashSet::default());
    let mut any = false;
    body.walk(&mut |s| match s.kind() {
        StmtKind::VarDef { tensor, .. } => drop(locals.insert(tensor.symbol.clone())),
        StmtKind::Assert { .. } => {
            any = true;
            s.kind().exprs().into_iter().for_each(|e| needed.extend(effects::loads(e)));
        }
        _ => {}
    });
    if !any {
        return None;
    }
    for _ in 0..=locals.len() {
        needs(body, &locals, &mut needed);
    }
    let written = effects::writes(body);
    let early = needed.iter().all(|t| locals.contains(t) || !written.contains(t));
    early.then(|| needed.intersection(&locals).cloned().collect())
}

/// Returns whether a statement contains assertions, or assigns a local scalar in `needed`; adds the operands of these,
/// and of the conditions around them, to `needed`.
fn needs(s: &Stmt, locals: &FxHashSet<Symbol>, needed: &mut FxHashSet<Symbol>) -> bool {
    let mut inside = false;
    for inner in s.kind().inside() {
        inside |= needs(inner, locals, needed);
    }
    match s.kind() {
        StmtKind::Assert { .. } => true,
        StmtKind::Store { tensor, value, .. } | StmtKind::ReduceTo { tensor, value, .. }
            if locals.contains(tensor) && needed.contains(tensor) =>
        {
            needed.extend(effects::loads(value));
            true
        }
        StmtKind::If { cond, .. } if inside => {
            needed.extend(effects::loads(cond));
            true
        }
        _ => inside,
    }
}

/// Removes the assertions from a statement.
fn without(s: &Stmt) -> Stmt {
    match s.kind() {
        StmtKind::Assert { .. } => Stmt::nop(),
        _ => s.map(&mut without, &mut Expr::clone),
    }
}

/// Extracts the assertions of a body, with the conditions around them and the assignments of the scalars in `needed`;
/// `None` if it has neither.
fn for_assertions(s: &Stmt, needed: &FxHashSet<Symbol>) -> Option<Stmt> {
    let inner = |s: &Stmt| for_assertions(s, needed);
    match s.kind() {
        StmtKind::Seq(all) => {
            let all: Vec<Stmt> = all.iter().filter_map(inner).collect();
            (!all.is_empty()).then(|| Stmt::seq(all, s.origin().clone()))
        }
        StmtKind::VarDef { tensor, body } if needed.contains(&tensor.symbol) => {
            Some(s.with_kind(StmtKind::VarDef { tensor: tensor.clone(), body: inner(body)? }))
        }
        StmtKind::VarDef { body, .. } => inner(body),
        StmtKind::If { cond, then, otherwise } => {
            let (then, otherwise) = (inner(then), otherwise.as_ref().and_then(inner));
            if then.is_none() && otherwise.is_none() {
                return None;
            }
            let then = then.unwrap_or_else(Stmt::nop);
            Some(s.with_kind(StmtKind::If { cond: cond.clone(), then, otherwise }))
        }
        StmtKind::Store { tensor, .. } | StmtKind::ReduceTo { tensor, .. } if needed.contains(tensor) => {
            Some(s.clone())
        }
        StmtKind::Assert { .. } => Some(s.clone()),
        _ => None,
    }
}
