//! Splitting of loops that count the pairs of two ranges (`merge`) into two loops, in the same order, so that each of
//! them traverses the coordinates of a level.
//!
//! ```text
//! for ij in range(n * m):                         for i in range(n):
//!     y[ij // m] += A[ij // m, ij % m]     →          for j in range(m):
//!                                                         y[i] += A[i, j]
//! ```
//!
//! The iterator must have no other uses, and both ranges must be known not to be negative. Threads run the outer loop;
//! without threads, lanes are those of the inner one.

use super::state::Lower;
use crate::access;
use rustc_hash::FxHashMap;
use taffeta_analysis::pass::substitute;
use taffeta_analysis::query::{Context, effects, walk};
use taffeta_ast::stmt::LoopProps;
use taffeta_ast::{Expr, ExprKind, Extent, Op, Stmt, StmtKind, Symbol};

impl Lower {
    /// Splits each loop over pairs that traverses a structured tensor.
    pub(super) fn split_fused_loops(&self, s: &Stmt, facts: &mut Context) -> Stmt {
        let s = self.pair(s, facts).unwrap_or_else(|| s.clone());
        let new = walk::map(&s, facts, &mut |s, facts| self.split_fused_loops(s, facts));
        facts.after(&s);
        new
    }

    fn pair(&self, s: &Stmt, facts: &mut Context) -> Option<Stmt> {
        let StmtKind::For { iter, extent: Extent::Range { begin, end, step }, props, body } = s.kind() else {
            return None;
        };
        if begin.as_int() != Some(0) || step.as_int() != Some(1) || !self.traverses(body, iter) {
            return None;
        }
        let by = divisor(body, iter)?;
        let times = quotient(end, &by)?;
        let zero = Expr::int(0);
        let fixed = [&by, &times].iter().all(|e| effects::loads(e).is_empty());
        if !fixed || ![&by, &times].iter().all(|e| facts.prove(&zero.less_eq(e))) {
            return None;
        }
        let [outer, inner] =
            ["outer", "inner"].map(|what| Symbol::new(format!("{}.{what}", iter.name().replace('.', "_"))));
        let mut of = |e: &Expr| match e.kind() {
            ExprKind::Apply(op @ (Op::FloorDiv | Op::Mod), args) if is(&args[0], iter) && args[1] == by => {
                Some(Expr::var(if *op == Op::FloorDiv { &outer } else { &inner }))
            }
            _ => None,
        };
        let body = substitute::rewrite(body, &mut of, &mut FxHashMap::default());
        let lanes = props.vectorize.is_some() && props.parallel.is_none();
        let threads = LoopProps { vectorize: None, ..props.clone() };
        let [outside, inside] = if lanes { [&LoopProps::default(), props] } else { [&threads, &LoopProps::default()] };
        let counted = |iter: &Symbol, end: &Expr, props: &LoopProps, body: Stmt| StmtKind::For {
            iter: iter.clone(),
            extent: Extent::Range { begin: Expr::int(0), end: end.clone(), step: Expr::int(1) },
            props: props.clone(),
            body,
        };
        let row = Stmt::new(counted(&inner, &by, inside, body), s.origin().derive("structured", "pairs"));
        Some(s.with_kind(counted(&outer, &times, outside, row)))
    }

    /// Returns whether an iterator is in an index of a structured tensor.
    fn traverses(&self, body: &Stmt, iter: &Symbol) -> bool {
        let mut uses = |e: &Expr| match e.kind() {
            ExprKind::Load(t, at) => {
                self.tensors.contains_key(t) && at.iter().any(|a| effects::mentions(&a.index, &[iter]))
            }
            _ => false,
        };
        body.any(&mut |s| access::exprs(s).iter().any(|e| e.any(&mut uses)))
    }
}

fn is(e: &Expr, iter: &Symbol) -> bool {
    matches!(e.kind(), ExprKind::Var(s) if s == iter)
}

/// Returns the only divisor of an iterator, if its only uses are quotients and remainders by it.
fn divisor(body: &Stmt, iter: &Symbol) -> Option<Expr> {
    let (mut by, mut uses, mut inside): (Option<Expr>, usize, usize) = (None, 0, 0);
    let mut same = true;
    body.walk_exprs(&mut |e| match e.kind() {
        ExprKind::Var(s) if s == iter => uses += 1,
        ExprKind::Apply(Op::FloorDiv | Op::Mod, args) if is(&args[0], iter) => {
            inside += 1;
            same &= by.get_or_insert_with(|| args[1].clone()) == &args[1];
            same &= !effects::mentions(&args[1], &[iter]);
        }
        _ => {}
    });
    by.filter(|_| same && uses == inside)
}

/// Divides a product by one of its factors.
fn quotient(product: &Expr, by: &Expr) -> Option<Expr> {
    if let (Some(n), Some(by)) = (product.as_int(), by.as_int()) {
        return (by > 0 && n % by == 0).then(|| Expr::int(n / by));
    }
    let ExprKind::Apply(Op::Mul, args) = product.kind() else { return None };
    match (args[0] == *by, args[1] == *by) {
        (_, true) => Some(args[0].clone()),
        (true, false) => Some(args[1].clone()),
        _ => quotient(&args[0], by).map(|q| q.times(&args[1])),
    }
}
