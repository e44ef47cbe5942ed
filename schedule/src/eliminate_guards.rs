//! Guard elimination in a part of the program: removal of conditions that are proved true or false, and of redundant
//! `min` and `max` in loop bounds. Primitives that cut the range of a loop or specialise a copy of a statement run it
//! on the parts that they made.

use crate::tree;
use rustc_hash::FxHashMap;
use taffeta_analysis::query::Context;
use taffeta_analysis::query::walk::{self, Visitor};
use taffeta_ast::op::Op;
use taffeta_ast::{Expr, ExprKind, Extent, Func, Stmt, StmtId, StmtKind, poly};

/// Program after guard elimination.
pub struct Eliminated {
    /// Rewritten program.
    pub func: Func,
    /// Number of simplified branches and loops.
    pub count: usize,
    /// Removed branches, each with the statements that replace it.
    pub moved: Vec<(StmtId, Vec<StmtId>)>,
}

/// Removes conditions proved true or false from the branches inside a statement, and `min` and `max` proved equal to
/// one of their operands from the loop bounds inside. Operations that may stop the program are kept.
pub fn run(func: &Func, root: StmtId) -> Eliminated {
    eliminate(func, root, false)
}

/// Eliminates guards as [`run`] does, including the statement itself.
pub fn within(func: &Func, root: StmtId) -> Eliminated {
    eliminate(func, root, true)
}

/// Eliminates guards inside a statement and, with `itself`, those of the statement. Only this part of the program is
/// walked, since steps make many parts.
fn eliminate(func: &Func, root: StmtId, itself: bool) -> Eliminated {
    let mut out = Eliminated { func: func.clone(), count: 0, moved: Vec::new() };
    let (Some(part), Some(mut facts)) = (tree::find(&func.body, root), walk::at(func, root)) else { return out };
    let spared = (!itself).then_some(root);
    let mut found = Finder { spared, conditions: FxHashMap::default(), bounds: FxHashMap::default() };
    walk::walk(&part, &mut facts, &mut found);
    let new = rewrite(&part, &found, &mut out);
    out.func = tree::replace(func, root, &new);
    out
}

/// Simplification of a branch's condition.
enum SimplifiedCondition {
    Holds,
    Never,
    Only(Expr),
}

struct Finder {
    /// Statement that is kept as it is, except for its substatements.
    spared: Option<StmtId>,
    conditions: FxHashMap<StmtId, SimplifiedCondition>,
    bounds: FxHashMap<StmtId, [Expr; 2]>,
}

impl Visitor for Finder {
    fn stmt(&mut self, s: &Stmt, facts: &mut Context) {
        if self.spared == Some(s.id()) {
            return;
        }
        match s.kind() {
            StmtKind::If { cond, .. } => {
                if !cond.may_fail() && facts.refute(cond) {
                    self.conditions.insert(s.id(), SimplifiedCondition::Never);
                    return;
                }
                let all = cond.conjuncts();
                let left: Vec<&Expr> = all.iter().filter(|c| c.may_fail() || !facts.prove(c)).collect();
                if left.len() < all.len() {
                    let rest = left.into_iter().cloned().reduce(|a, b| a.and(&b));
                    self.conditions.insert(s.id(), rest.map_or(SimplifiedCondition::Holds, SimplifiedCondition::Only));
                }
            }
            StmtKind::For { extent: Extent::Range { begin, end, .. }, .. } => {
                let new = [simplify_min_max(begin, facts), simplify_min_max(end, facts)];
                if new != [begin.clone(), end.clone()] {
                    self.bounds.insert(s.id(), new);
                }
            }
            _ => {}
        }
    }
}

/// Replaces `min` and `max` by the operand that they are proved to equal, at the top and within sums and differences.
fn simplify_min_max(e: &Expr, facts: &mut Context) -> Expr {
    let ExprKind::Apply(op, a) = e.kind() else { return e.clone() };
    if e.may_fail() {
        return e.clone();
    }
    match op {
        Op::Min | Op::Max => {}
        Op::Add | Op::Sub => {
            let new = [simplify_min_max(&a[0], facts), simplify_min_max(&a[1], facts)];
            return if new[..] == a[..] { e.clone() } else { poly::normalized_sum(&Expr::apply(*op, new.to_vec())) };
        }
        _ => return e.clone(),
    }
    let (x, y) = (simplify_min_max(&a[0], facts), simplify_min_max(&a[1], facts));
    let (small, large) = (facts.prove(&x.less_eq(&y)), facts.prove(&y.less_eq(&x)));
    match (op, small, large) {
        (Op::Min, true, _) | (Op::Max, false, true) => x,
        (Op::Min, false, true) | (Op::Max, true, _) => y,
        _ => Expr::apply(*op, vec![x, y]),
    }
}

fn rewrite(s: &Stmt, found: &Finder, out: &mut Eliminated) -> Stmt {
    if let (Some(rest), StmtKind::If { then, otherwise, .. }) = (found.conditions.get(&s.id()), s.kind()) {
        out.count += 1;
        let taken = match rest {
            SimplifiedCondition::Holds => Some(then),
            SimplifiedCondition::Never => otherwise.as_ref(),
            SimplifiedCondition::Only(cond) => {
                let (then, otherwise) = (rewrite(then, found, out), otherwise.as_ref().map(|o| rewrite(o, found, out)));
                return s.with_kind(StmtKind::If { cond: cond.clone(), then, otherwise });
            }
        };
        let new = taken.map_or_else(Stmt::nop, |t| rewrite(t, found, out));
        let ids = match new.kind() {
            StmtKind::Seq(all) => all.iter().map(Stmt::id).collect(),
            _ => vec![new.id()],
        };
        out.moved.push((s.id(), ids));
        return new;
    }
    let mut inner = s.map(&mut |c| rewrite(c, found, out), &mut Expr::clone);
    if let (Some([begin, end]), StmtKind::For { iter, extent: Extent::Range { step, .. }, props, body }) =
        (found.bounds.get(&s.id()), inner.kind())
    {
        out.count += 1;
        let extent = Extent::Range { begin: begin.clone(), end: end.clone(), step: step.clone() };
        inner = inner.with_kind(StmtKind::For { iter: iter.clone(), extent, props: props.clone(), body: body.clone() });
    }
    inner
}
