//! Hoisting of lane-invariant values out of vectorised loops.
//!
//! **Does**, for each vectorised loop that runs at least once:
//! - hoists the declaration of a local scalar that gets a single, loop-invariant value;
//! - hoists a loop-invariant `min`, `max`, `select` or division of scalars into such a scalar.
//!
//! Compilers hoist most of these themselves, but not a `select`: gcc hoists its condition, and then cannot vectorise
//! the rest.
//!
//! **Requires**: `checks`, so that evaluating a value before the loop cannot fail. **Ensures**: ids and origins of
//! remaining statements are kept; every hoisted value is the one that the first iteration would compute.
//!
//! ```text
//! for j in range(8):  # vectorize          dx = p[1] - p[0]
//!     dx = p[1] - p[0]                     larger = max(dx * dx, a)
//!     y[j] = x[j] / max(dx * dx, a)   ─▶   for j in range(8):  # vectorize
//!                                              y[j] = x[j] / larger
//! ```
//!
//! **Leaves alone**: values under a condition or after a check, and loads from tensors that the loop writes.

use rustc_hash::FxHashSet;
use std::sync::Arc;
use taffeta_analysis::query::{Context, effects, walk};
use taffeta_ast::stmt::Role;
use taffeta_ast::{Expr, ExprKind, Extent, Func, Op, Stmt, StmtKind, Symbol, Tensor};

pub(super) fn run(func: &Func) -> Func {
    func.with_body(stmt(&func.body, &mut Context::new(func)))
}

fn stmt(s: &Stmt, facts: &mut Context) -> Stmt {
    if let StmtKind::For { iter, extent, props, body } = s.kind()
        && let Extent::Range { begin, end, step } = extent
        && props.vectorize.is_some()
        && step.as_int() == Some(1)
        && facts.prove(&begin.less(end))
    {
        let mut moved = Hoister { iter, written: effects::writes(body), found: Vec::new() };
        let body = moved.block(body);
        let kind = StmtKind::For { iter: iter.clone(), extent: extent.clone(), props: props.clone(), body };
        let origin = s.origin().derive("hoist_lane_invariants", "value");
        let new = moved.found.iter().rev().fold(s.with_kind(kind), |inside, (tensor, value)| {
            let store = StmtKind::Store { tensor: tensor.symbol.clone(), indices: Vec::new(), value: value.clone() };
            let body = Stmt::seq([Stmt::new(store, origin.clone()), inside], origin.clone());
            Stmt::new(StmtKind::VarDef { tensor: tensor.clone(), body }, origin.clone())
        });
        facts.after(s);
        return new;
    }
    let new = walk::map(s, facts, &mut stmt);
    facts.after(s);
    new
}

struct Hoister<'s> {
    iter: &'s Symbol,
    /// Symbols that the loop writes, except for hoisted scalars.
    written: FxHashSet<Symbol>,
    /// Hoisted scalars with their values, in order.
    found: Vec<(Arc<Tensor>, Expr)>,
}

impl Hoister<'_> {
    /// Hoists from the statements of a block that definitely run, up to the first that may fail or branch.
    fn block(&mut self, s: &Stmt) -> Stmt {
        match s.kind() {
            StmtKind::Seq(v) => {
                let mut straight = true;
                let new: Vec<Stmt> = v
                    .iter()
                    .map(|s| {
                        straight &= is_straight(s);
                        if straight { self.block(s) } else { s.clone() }
                    })
                    .collect();
                Stmt::seq(new, s.origin().clone())
            }
            StmtKind::VarDef { tensor, body } if tensor.ndim() == 0 => {
                if let Some((value, rest)) = only_value(&tensor.symbol, body)
                    && self.is_same(&value)
                {
                    let value = self.hoist_selects(&value);
                    self.written.remove(&tensor.symbol);
                    self.found.push((tensor.clone(), value));
                    return self.block(&rest);
                }
                s.with_kind(StmtKind::VarDef { tensor: tensor.clone(), body: self.block(body) })
            }
            StmtKind::Store { .. } | StmtKind::ReduceTo { .. } => {
                s.map(&mut Stmt::clone, &mut |e| self.hoist_selects(e))
            }
            _ => s.clone(),
        }
    }

    /// Returns whether a value is loop-invariant.
    fn is_same(&self, e: &Expr) -> bool {
        let mut same = true;
        e.walk(&mut |e| match e.kind() {
            ExprKind::Var(v) => same &= v != self.iter,
            ExprKind::Load(t, _) => same &= !self.written.contains(t),
            _ => {}
        });
        same
    }

    /// Replaces each loop-invariant `min`, `max`, `select` and division in an expression by a hoisted scalar. Array
    /// loads and integer divisions are not hoisted, since they may be in a branch that is never taken.
    fn hoist_selects(&mut self, e: &Expr) -> Expr {
        let scalars = !e.may_fail();
        let choice = matches!(e.kind(), ExprKind::Apply(Op::Min | Op::Max | Op::Select | Op::Div, _));
        if !(choice && scalars && self.is_same(e)) || e.as_literal().is_some() {
            return e.map_children(&mut |c| self.hoist_selects(c));
        }
        if let Some((known, _)) = self.found.iter().find(|(_, value)| value == e) {
            return Expr::load(&known.symbol, Vec::new(), e.dtype());
        }
        let name = match e.kind() {
            ExprKind::Apply(op, _) => op.info().name,
            _ => "value",
        };
        let name = if name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') { name } else { "value" };
        let tensor = Tensor::dense(Symbol::new(name), e.dtype(), Vec::new(), Role::Local);
        let load = Expr::load(&tensor.symbol, Vec::new(), e.dtype());
        self.found.push((Arc::new(tensor), e.clone()));
        load
    }
}

/// Returns whether the statements after this one definitely run.
fn is_straight(s: &Stmt) -> bool {
    match s.kind() {
        StmtKind::Store { .. } | StmtKind::ReduceTo { .. } | StmtKind::Assume { .. } => true,
        StmtKind::VarDef { body, .. } => is_straight(body),
        StmtKind::Seq(v) => v.iter().all(is_straight),
        _ => false,
    }
}

/// Returns the value that a scalar gets at the start of its scope and keeps, with the rest of the scope.
fn only_value(scalar: &Symbol, body: &Stmt) -> Option<(Expr, Stmt)> {
    let (value, rest) = first_value(scalar, body)?;
    let rest = Stmt::seq(rest.iter().cloned(), body.origin().clone());
    (!effects::writes(&rest).contains(scalar)).then(|| (value.clone(), rest))
}

/// Returns the value that the first statement of a scope gives to a scalar, with the remaining statements.
pub(crate) fn first_value<'s>(scalar: &Symbol, scope: &'s Stmt) -> Option<(&'s Expr, &'s [Stmt])> {
    let (first, rest): (&Stmt, &[Stmt]) = match scope.kind() {
        StmtKind::Seq(v) => v.split_first()?,
        _ => (scope, &[]),
    };
    let StmtKind::Store { tensor, value, .. } = first.kind() else { return None };
    (tensor == scalar && !effects::loads(value).contains(scalar)).then_some((value, rest))
}
