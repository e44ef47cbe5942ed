//! Copies of statements.
//!
//! **Does**: copies a statement with fresh symbols for its bound symbols (iterators, and tensors that are declared in
//! it), and a new id for every statement. A symbol that is bound outside of the statement may be replaced in the copy:
//! a tensor by a part of another one, a size or an iterator by an expression.
//!
//! **Requires**: arguments of outside functions, and structured tensors, are replaced by whole tensors; iterators over
//! the reals are replaced by such iterators.
//!
//! **Ensures**: copy and original can be in one program. A copy keeps the reductions in the properties of its loops,
//! with the new symbols, and its statements are derived from those of the original, whose labels and calls they keep.
//! [`Copier::ids`] maps original statements to copies.
//!
//! **Example**: with `z[k]` in place of the tensor `x`, and `m` in place of the size `n`
//!
//! before
//! ```text
//! for i in range(n):
//!     t = empty((), f32)
//!     t = x[i] * 2.0
//!     y[i] = t
//! ```
//! after
//! ```text
//! for i in range(m):
//!     t = empty((), f32)
//!     t = z[k, i] * 2.0
//!     y[i] = t
//! ```
//!
//! (where `i` and `t` are fresh symbols with the old names)
//!
//! **Leaves alone**: the original, and symbols that are neither bound in the statement nor replaced.

use super::substitute;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use taffeta_ast::stmt::{MessagePart, PrintPart};
use taffeta_ast::{Access, DType, Expr, ExprKind, Extent, Stmt, StmtId, StmtKind, Symbol, Tensor};

/// Copies a statement without replacements. The copy's origins are derived with this step and role.
pub fn statement(s: &Stmt, step: &'static str, role: &'static str) -> Stmt {
    Copier::new(step, role).stmt(s)
}

/// Copier of statements, with the replacements of symbols.
pub struct Copier {
    step: &'static str,
    role: &'static str,
    /// Replacements of tensors: a tensor, and leading indices that come before the access's own.
    pub tensors: FxHashMap<Symbol, (Symbol, Vec<Access>)>,
    /// Replacements of sizes and iterators.
    pub scalars: FxHashMap<Symbol, Expr>,
    /// Ids of the copied statements, with the ids of their copies.
    pub ids: FxHashMap<StmtId, StmtId>,
}

impl Copier {
    /// Returns a copier without replacements. The origins of its copies are derived with this step and role.
    pub fn new(step: &'static str, role: &'static str) -> Copier {
        let (tensors, scalars, ids) = (FxHashMap::default(), FxHashMap::default(), FxHashMap::default());
        Copier { step, role, tensors, scalars, ids }
    }

    /// Copies an expression.
    pub fn expr(&self, e: &Expr) -> Expr {
        if self.tensors.is_empty() && self.scalars.is_empty() {
            return e.clone();
        }
        let mut node = |e: Expr| match e.kind() {
            ExprKind::Var(s) => self.scalars.get(s).cloned().unwrap_or(e),
            ExprKind::Measure(m, s) => match self.scalars.get(s).map(Expr::kind) {
                Some(ExprKind::Var(new)) => Expr::raw(ExprKind::Measure(*m, new.clone()), e.dtype()),
                _ => e,
            },
            ExprKind::Load(t, at) => match self.tensors.get(t) {
                Some((new, before)) => Expr::load(new, before.iter().chain(at).cloned().collect(), e.dtype()),
                None => e,
            },
            _ => e,
        };
        substitute::rebuild_expr(e, &mut node, &mut FxHashMap::default())
    }

    /// Copies a declaration under a fresh symbol, and registers that symbol as the replacement of the old one.
    pub fn declare(&mut self, t: &Tensor) -> Arc<Tensor> {
        let shape = t.shape.iter().map(|d| self.expr(d)).collect();
        let new = Tensor { symbol: t.symbol.fresh(), shape, ..t.clone() };
        self.tensors.insert(t.symbol.clone(), (new.symbol.clone(), Vec::new()));
        Arc::new(new)
    }

    fn iterator(&mut self, iter: &Symbol, dtype: DType) -> Symbol {
        let new = iter.fresh();
        self.scalars.insert(iter.clone(), Expr::raw(ExprKind::Var(new.clone()), dtype));
        new
    }

    fn name(&self, t: &Symbol) -> Symbol {
        self.tensors.get(t).map_or(t, |(new, _)| new).clone()
    }

    fn element(&self, t: &Symbol, at: &[Access]) -> (Symbol, Vec<Access>) {
        let at = at.iter().map(|a| a.map(&mut |e| self.expr(e)));
        match self.tensors.get(t) {
            Some((new, before)) => (new.clone(), before.iter().cloned().chain(at).collect()),
            None => (t.clone(), at.collect()),
        }
    }

    fn part(&self, p: &PrintPart) -> PrintPart {
        let new = p.map(&mut |t| self.name(t), &mut |e| self.expr(e));
        match (p, new) {
            (PrintPart::Tensor { tensor: old, .. }, PrintPart::Tensor { tensor, at, shape }) => {
                let before = self.tensors.get(old).map_or(&[][..], |(_, before)| before);
                let at = before.iter().map(|a| a.index.clone()).chain(at).collect();
                PrintPart::Tensor { tensor, at, shape }
            }
            (_, new) => new,
        }
    }

    /// Copies a statement.
    pub fn stmt(&mut self, s: &Stmt) -> Stmt {
        let kind = match s.kind() {
            StmtKind::Seq(all) => StmtKind::Seq(all.iter().map(|s| self.stmt(s)).collect()),
            StmtKind::VarDef { tensor, body } => {
                let tensor = self.declare(tensor);
                StmtKind::VarDef { tensor, body: self.stmt(body) }
            }
            StmtKind::For { iter, extent, props, body } => {
                let (extent, dtype) = match extent {
                    Extent::Range { begin, end, step } => {
                        let [begin, end, step] = [begin, end, step].map(|e| self.expr(e));
                        (Extent::Range { begin, end, step }, DType::I64)
                    }
                    Extent::Reals => (Extent::Reals, DType::F64),
                };
                let iter = self.iterator(iter, dtype);
                let mut props = props.clone();
                props.reductions.iter_mut().for_each(|r| r.tensor = self.name(&r.tensor));
                StmtKind::For { iter, extent, props, body: self.stmt(body) }
            }
            StmtKind::If { cond, then, otherwise } => {
                let (cond, then) = (self.expr(cond), self.stmt(then));
                StmtKind::If { cond, then, otherwise: otherwise.as_ref().map(|o| self.stmt(o)) }
            }
            StmtKind::Store { tensor, indices, value } => {
                let (tensor, indices) = self.element(tensor, indices);
                StmtKind::Store { tensor, indices, value: self.expr(value) }
            }
            StmtKind::ReduceTo { tensor, indices, op, value } => {
                let (tensor, indices) = self.element(tensor, indices);
                StmtKind::ReduceTo { tensor, indices, op: *op, value: self.expr(value) }
            }
            StmtKind::Print { parts } => StmtKind::Print { parts: parts.iter().map(|p| self.part(p)).collect() },
            StmtKind::Assert { cond, message, kind } => {
                let part = |p: &MessagePart| match p {
                    MessagePart::Value(e) => MessagePart::Value(self.expr(e)),
                    text => text.clone(),
                };
                StmtKind::Assert { cond: self.expr(cond), message: message.iter().map(part).collect(), kind: *kind }
            }
            StmtKind::Assume { cond } => StmtKind::Assume { cond: self.expr(cond) },
            StmtKind::Call { routine, tensors, operands } => StmtKind::Call {
                routine: *routine,
                tensors: tensors.iter().map(|t| self.name(t)).collect(),
                operands: operands.iter().map(|e| self.expr(e)).collect(),
            },
            StmtKind::While { cond, body } => StmtKind::While { cond: self.expr(cond), body: self.stmt(body) },
        };
        let new = Stmt::new(kind, s.origin().derive(self.step, self.role));
        self.ids.insert(s.id(), new.id());
        new
    }
}
