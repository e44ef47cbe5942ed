//! Names for subexpressions of long expressions, introduced before differentiation.
//!
//! The derivative of an expression repeats its operands: that of `f(g(h(x)))` has `h(x)` three times and `g` twice. An
//! operand of a nonlinear operator becomes a scalar of its own, which the backward pass computes once. A choice between
//! expressions becomes a branch, so that nothing is computed for the operand that is not chosen.
//!
//! before
//! ```text
//! y[i] = exp(x[i] * x[i] + 1.0) * (sin(x[i]) if x[i] > 0.0 else 0.0)
//! ```
//! after
//! ```text
//! y_part = x[i] * x[i] + 1.0
//! y_part_1 = exp(y_part)
//! if x[i] > 0.0:
//!     y_part_2 = sin(x[i])
//! else:
//!     y_part_2 = 0.0
//! y[i] = y_part_1 * y_part_2
//! ```

use crate::activity::Varying;
use crate::build;
use rustc_hash::FxHashSet;
use std::sync::Arc;
use taffeta_ast::op::Op;
use taffeta_ast::stmt::Role;
use taffeta_ast::{Expr, ExprKind, Func, Origin, Stmt, StmtKind, Symbol, Tensor};

/// Names subexpressions of the values that are written into `active` tensors.
pub(crate) fn run(func: &Func, active: &FxHashSet<Symbol>) -> Func {
    func.with_body(stmt(&func.body, active))
}

fn stmt(s: &Stmt, active: &FxHashSet<Symbol>) -> Stmt {
    let (tensor, value) = match s.kind() {
        StmtKind::Store { tensor, value, .. } | StmtKind::ReduceTo { tensor, value, .. } if active.contains(tensor) => {
            (tensor, value)
        }
        _ => return s.map(&mut |s| stmt(s, active), &mut Expr::clone),
    };
    let origin = s.origin().derive("grad", "part");
    let mut namer = Namer {
        varying: Varying::new(active),
        name: format!("{tensor}.part"),
        origin: &origin,
        parts: Vec::new(),
        before: Vec::new(),
    };
    let new = namer.visit(value);
    if namer.parts.is_empty() {
        return s.clone();
    }
    let kind = match s.kind().clone() {
        StmtKind::Store { tensor, indices, .. } => StmtKind::Store { tensor, indices, value: new },
        StmtKind::ReduceTo { tensor, indices, op, .. } => StmtKind::ReduceTo { tensor, indices, op, value: new },
        other => other,
    };
    let all = Stmt::seq(namer.before.into_iter().chain([s.with_kind(kind)]), origin.clone());
    build::declared(namer.parts, all, &origin)
}

/// Rewriter of one statement's value.
struct Namer<'a> {
    varying: Varying<'a>,
    name: String,
    origin: &'a Origin,
    parts: Vec<Arc<Tensor>>,
    before: Vec<Stmt>,
}

impl Namer<'_> {
    fn part(&mut self, like: &Expr) -> Arc<Tensor> {
        let t = Arc::new(Tensor::dense(Symbol::new(&self.name), like.dtype(), Vec::new(), Role::Local));
        self.parts.push(t.clone());
        t
    }

    /// Replaces subexpressions by names.
    fn visit(&mut self, e: &Expr) -> Expr {
        if !self.varying.contains(e) {
            return e.clone();
        }
        match e.kind() {
            ExprKind::Cast(inner) => self.visit(inner).cast(e.dtype()),
            ExprKind::Apply(Op::Select, args) => self.choice(e, args),
            ExprKind::Apply(op, args) => {
                let linear = matches!(op, Op::Add | Op::Sub | Op::Neg);
                let new = args.iter().map(|a| if linear { self.visit(a) } else { self.operand(a) }).collect();
                Expr::apply(*op, new)
            }
            _ => e.clone(),
        }
    }

    /// Names an operand of a nonlinear operator, unless a duplicate of it is free or it does not vary.
    fn operand(&mut self, e: &Expr) -> Expr {
        let value = self.visit(e);
        if is_leaf(&value) || !self.varying.contains(e) {
            return value;
        }
        let part = self.part(&value);
        self.before.push(build::store(&part.symbol, Vec::new(), value, self.origin));
        part.load([])
    }

    /// Turns `a if c else b` into a branch, unless its operands are leaves or do not vary.
    fn choice(&mut self, e: &Expr, args: &[Expr]) -> Expr {
        if args[1..].iter().all(|a| is_leaf(a) || !self.varying.contains(a)) {
            return e.clone();
        }
        let part = self.part(e);
        let outside = std::mem::take(&mut self.before);
        let [then, otherwise] = [&args[1], &args[2]].map(|a| {
            let value = self.visit(a);
            let stored = build::store(&part.symbol, Vec::new(), value, self.origin);
            Stmt::seq(std::mem::take(&mut self.before).into_iter().chain([stored]), self.origin.clone())
        });
        self.before = outside;
        let kind = StmtKind::If { cond: args[0].clone(), then, otherwise: Some(otherwise) };
        self.before.push(Stmt::new(kind, self.origin.clone()));
        part.load([])
    }
}

/// Returns whether a duplicate of the expression is free.
fn is_leaf(e: &Expr) -> bool {
    match e.kind() {
        ExprKind::Load(..) | ExprKind::Const(_) | ExprKind::Var(_) => true,
        ExprKind::Cast(inner) => is_leaf(inner),
        ExprKind::Apply(Op::Neg, args) => is_leaf(&args[0]),
        _ => false,
    }
}
