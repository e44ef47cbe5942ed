//! Conditions that are known in advance, taken out of a part of the program.

use crate::affine;
use rustc_hash::{FxHashMap, FxHashSet};
use taffeta_analysis::query::Context;
use taffeta_analysis::query::walk::{self, Visitor};
use taffeta_ast::op::Op;
use taffeta_ast::{Expr, ExprKind, Extent, Func, Stmt, StmtId, StmtKind};

/// A program in which what is known was taken out.
pub struct Eliminated {
    /// The program.
    pub func: Func,
    /// How many conditions, `min` and `max` there were.
    pub count: usize,
    /// Branches that are gone, and what took their place.
    pub moved: Vec<(StmtId, Vec<StmtId>)>,
}

/// Takes conditions that are proved to hold, or not to, out of the branches inside a statement, and `min` and `max`
/// that are proved to be one of their operands out of the bounds of loops in it. What could stop the program stays.
pub fn run(func: &Func, root: StmtId) -> Eliminated {
    let mut inside = statements(func, root);
    inside.remove(&root);
    eliminate(func, inside)
}

/// Likewise, the statement itself included.
pub fn within(func: &Func, root: StmtId) -> Eliminated {
    eliminate(func, statements(func, root))
}

/// A statement and those inside of it.
fn statements(func: &Func, root: StmtId) -> FxHashSet<StmtId> {
    let mut all = FxHashSet::default();
    if let Some(s) = crate::tree::find(&func.body, root) {
        s.walk(&mut |s| {
            all.insert(s.id());
        });
    }
    all
}

fn eliminate(func: &Func, inside: FxHashSet<StmtId>) -> Eliminated {
    let mut found = Finder { inside, conditions: FxHashMap::default(), bounds: FxHashMap::default() };
    walk::walk(&func.body, &mut Context::new(func), &mut found);
    let mut out = Eliminated { func: func.clone(), count: 0, moved: Vec::new() };
    let body = rewrite(&func.body, &found, &mut out);
    out.func = func.with_body(body);
    out
}

/// What is left of a condition.
enum Rest {
    Holds,
    Never,
    Only(Expr),
}

struct Finder {
    inside: FxHashSet<StmtId>,
    conditions: FxHashMap<StmtId, Rest>,
    bounds: FxHashMap<StmtId, [Expr; 2]>,
}

impl Visitor for Finder {
    fn stmt(&mut self, s: &Stmt, facts: &mut Context) {
        if !self.inside.contains(&s.id()) {
            return;
        }
        match s.kind() {
            StmtKind::If { cond, .. } => {
                if !cond.may_fail() && facts.refute(cond) {
                    self.conditions.insert(s.id(), Rest::Never);
                    return;
                }
                let all = conjuncts(cond);
                let left: Vec<&Expr> = all.iter().filter(|c| c.may_fail() || !facts.prove(c)).collect();
                if left.len() < all.len() {
                    let rest = left.into_iter().cloned().reduce(|a, b| a.and(&b));
                    self.conditions.insert(s.id(), rest.map_or(Rest::Holds, Rest::Only));
                }
            }
            StmtKind::For { extent: Extent::Range { begin, end, .. }, .. } => {
                let new = [chosen(begin, facts), chosen(end, facts)];
                if new != [begin.clone(), end.clone()] {
                    self.bounds.insert(s.id(), new);
                }
            }
            _ => {}
        }
    }
}

/// The conditions that must all hold.
pub fn conjuncts(cond: &Expr) -> Vec<Expr> {
    match cond.kind() {
        ExprKind::Apply(Op::And, a) => a.iter().flat_map(conjuncts).collect(),
        _ => vec![cond.clone()],
    }
}

/// The expression with the operand of `min` or `max` that it is proved to be, also in sums with such.
fn chosen(e: &Expr, facts: &mut Context) -> Expr {
    let ExprKind::Apply(op, a) = e.kind() else { return e.clone() };
    if e.may_fail() {
        return e.clone();
    }
    match op {
        Op::Min | Op::Max => {}
        Op::Add | Op::Sub => {
            let new = [chosen(&a[0], facts), chosen(&a[1], facts)];
            return if new[..] == a[..] { e.clone() } else { affine::tidy(&Expr::apply(*op, new.to_vec())) };
        }
        _ => return e.clone(),
    }
    let (x, y) = (chosen(&a[0], facts), chosen(&a[1], facts));
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
            Rest::Holds => Some(then),
            Rest::Never => otherwise.as_ref(),
            Rest::Only(cond) => {
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
