//! Statements of a backward pass that invert integer updates of the forward pass, for the tensors that `invert` has
//! chosen.

use super::Reverse;
use crate::build;
use crate::data::Inverted;
use crate::facts::Facts;
use rustc_hash::FxHashMap;
use taffeta_ast::{Access, Expr, Extent, LoopProps, Op, Origin, ReduceOp, Stmt, StmtId, StmtKind, Symbol};

/// Prepends the copies of inverted tensors to the backward pass.
pub(super) fn begin(facts: &Facts<'_>, inverted: &FxHashMap<Symbol, Inverted>, back: Stmt, origin: &Origin) -> Stmt {
    let mut copied: Vec<_> = inverted.iter().filter(|(t, u)| u.now.symbol != **t).collect();
    copied.sort_by_key(|(t, _)| t.name().to_string());
    let copies = copied.iter().map(|(t, u)| build::copy(&facts.declared[*t].tensor, &u.now, origin));
    let all = Stmt::seq(copies.chain([back]), origin.clone());
    build::declared(copied.iter().map(|(_, u)| u.now.clone()).collect(), all, origin)
}

impl Reverse<'_, '_> {
    /// Builds the inverse of one statement.
    pub(super) fn undo(&mut self, s: &Stmt, tensor: &Symbol, indices: &[Access], value: &Expr) -> Stmt {
        let origin = s.origin().derive("grad", "undo");
        let at = self.accesses(s.id(), indices);
        let value = Expr::apply(Op::Neg, vec![self.value(s.id(), value)]);
        let now = self.values.inverted[tensor].now.symbol.clone();
        build::update(&now, at, Some(ReduceOp::Add), value, &origin)
    }

    /// Builds the inverse of one iteration of a loop, for the tensors that are inverted before anything else in it.
    /// Sums commute, so that the order is that of the forward pass.
    pub(super) fn invert_iteration(&mut self, l: StmtId, s: &Stmt) -> Option<Stmt> {
        let origin = s.origin().derive("grad", "undo");
        let kind = match s.kind() {
            StmtKind::ReduceTo { tensor, indices, value, .. } => {
                let here = self.values.inverted.get(tensor).is_some_and(|u| u.first_in == Some(l));
                return here.then(|| self.undo(s, tensor, indices, value));
            }
            StmtKind::Seq(all) => {
                let all: Vec<Stmt> = all.iter().filter_map(|s| self.invert_iteration(l, s)).collect();
                return (!all.is_empty()).then(|| Stmt::seq(all, origin));
            }
            StmtKind::VarDef { body, .. } => return self.invert_iteration(l, body),
            StmtKind::For { iter, extent: Extent::Range { begin, end, step }, body, .. } => {
                let [begin, end, step] = [begin, end, step].map(|e| self.value(s.id(), e));
                let fresh = iter.fresh();
                self.iters.insert(iter.clone(), Expr::var(&fresh));
                let body = self.invert_iteration(l, body);
                self.iters.remove(iter);
                let extent = Extent::Range { begin, end, step };
                StmtKind::For { iter: fresh, extent, props: LoopProps::default(), body: body? }
            }
            StmtKind::If { cond, then, otherwise } => {
                let then = self.invert_iteration(l, then);
                let otherwise = otherwise.as_ref().and_then(|o| self.invert_iteration(l, o));
                if then.is_none() && otherwise.is_none() {
                    return None;
                }
                let cond = self.value(s.id(), cond);
                StmtKind::If { cond, then: then.unwrap_or_else(Stmt::nop), otherwise }
            }
            _ => return None,
        };
        Some(Stmt::new(kind, origin))
    }
}
