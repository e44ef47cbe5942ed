//! Loops over a run that store one value at each coordinate of a tensor in runs: they append the run.
//!
//! ```text
//! for j in range(3, 8):              for j in range(3, min(4, 8)):
//!     A[i, j] = v            →           append a run of v that begins at j and ends at 8
//! ```

use super::cursor::PATH;
use super::exprs::load;
use super::state::Lower;
use crate::access;
use taffeta_analysis::query::effects;
use taffeta_ast::{Expr, ExprKind, Stmt, StmtKind, Symbol};

impl Lower {
    /// Returns whether a loop's body does nothing else than to append an element at the iterator to tensors in runs,
    /// and the values do not depend on the iterator.
    pub(super) fn appends_runs(&self, body: &Stmt, iter: &Symbol) -> bool {
        let (mut locals, mut appends) = (Vec::new(), false);
        self.only_appends(body, iter, &mut locals, &mut appends) && appends
    }

    fn only_appends(&self, s: &Stmt, iter: &Symbol, locals: &mut Vec<Symbol>, appends: &mut bool) -> bool {
        let varies = |e: &Expr| effects::mentions(e, &[iter]);
        match s.kind() {
            StmtKind::Assume { .. } => true,
            StmtKind::Seq(all) => all.iter().all(|s| self.only_appends(s, iter, locals, appends)),
            StmtKind::VarDef { tensor, body } if tensor.ndim() == 0 => {
                locals.push(tensor.symbol.clone());
                self.only_appends(body, iter, locals, appends)
            }
            StmtKind::If { cond, then, otherwise } => {
                !varies(cond)
                    && self.only_appends(then, iter, locals, appends)
                    && otherwise.as_ref().is_none_or(|s| self.only_appends(s, iter, locals, appends))
            }
            StmtKind::Store { tensor, value, .. } if locals.contains(tensor) => !varies(value),
            StmtKind::Store { value, .. } => {
                let target = access::target(s);
                *appends |= target.is_some();
                !varies(value) && target.is_some_and(|element| self.is_at(&element, iter))
            }
            _ => false,
        }
    }

    /// Returns whether an element that is appended to a tensor in runs has the iterator as its last coordinate alone.
    fn is_at(&self, element: &Expr, iter: &Symbol) -> bool {
        let Some((fibre, at)) = load(element) else { return false };
        let Some((tensor, k)) = self.fibres.get(fibre) else { return false };
        let levels = PATH..PATH + self.tensors[tensor].levels.len() - k;
        let assembly = self.tensors[tensor].assembly.as_ref();
        let joins = assembly.and_then(|a| a.levels.last()).is_some_and(|last| last.how.joins());
        let plain = !self.passes.contains_key(tensor) && !self.collected.contains_key(tensor);
        let Some((last, above)) = at.get(levels).and_then(<[_]>::split_last) else { return false };
        joins
            && plain
            && !self.tensors[tensor].tensor.format.is_remapped()
            && matches!(last.index.kind(), ExprKind::Var(s) if s == iter)
            && !above.iter().chain(&at[..PATH]).any(|a| effects::mentions(&a.index, &[iter]))
    }
}
