//! A statement once more: what it binds gets new names, and what it does not may stand for something else.

use rustc_hash::FxHashMap;
use std::sync::Arc;
use weft_ast::stmt::{MessagePart, Role};
use weft_ast::{Access, Expr, ExprKind, Extent, Stmt, StmtId, StmtKind, Symbol, Tensor};

/// What copies statements.
pub(crate) struct Copier {
    /// Of what is copied, for the origins of what comes out.
    pub role: &'static str,
    /// Tensors with what they stand for: a tensor, and indices that come before their own.
    pub tensors: FxHashMap<Symbol, (Symbol, Vec<Access>)>,
    /// Sizes and iterators with what they stand for.
    pub scalars: FxHashMap<Symbol, Expr>,
    /// Statements with their copies.
    pub ids: FxHashMap<StmtId, StmtId>,
}

impl Copier {
    pub fn new(role: &'static str) -> Copier {
        Copier { role, tensors: FxHashMap::default(), scalars: FxHashMap::default(), ids: FxHashMap::default() }
    }

    pub fn expr(&self, e: &Expr) -> Expr {
        e.rewrite(&mut |e| match e.kind() {
            ExprKind::Var(s) => self.scalars.get(s).cloned().unwrap_or(e),
            ExprKind::Load(t, at) => match self.tensors.get(t) {
                Some((symbol, before)) => Expr::load(symbol, before.iter().chain(at).cloned().collect(), e.dtype()),
                None => e,
            },
            _ => e,
        })
    }

    /// The declaration with a new name, which later mentions of it get too.
    pub fn tensor(&mut self, t: &Tensor, role: Role) -> Arc<Tensor> {
        let shape = t.shape.iter().map(|d| self.expr(d)).collect();
        let new = Tensor { symbol: t.symbol.fresh(), shape, role, ..t.clone() };
        self.tensors.insert(t.symbol.clone(), (new.symbol.clone(), Vec::new()));
        Arc::new(new)
    }

    fn target(&self, t: &Symbol, at: &[Access]) -> (Symbol, Vec<Access>) {
        let at = at.iter().map(|a| a.map(&mut |e| self.expr(e)));
        match self.tensors.get(t) {
            Some((symbol, before)) => (symbol.clone(), before.iter().cloned().chain(at).collect()),
            None => (t.clone(), at.collect()),
        }
    }

    fn symbol(&self, t: &Symbol) -> Symbol {
        self.tensors.get(t).map_or(t, |(s, _)| s).clone()
    }

    pub fn stmt(&mut self, s: &Stmt) -> Stmt {
        let kind = match s.kind() {
            StmtKind::Seq(all) => StmtKind::Seq(all.iter().map(|s| self.stmt(s)).collect()),
            StmtKind::VarDef { tensor, body } => {
                let tensor = self.tensor(tensor, tensor.role);
                StmtKind::VarDef { tensor, body: self.stmt(body) }
            }
            StmtKind::For { iter, extent, props, body } => {
                let extent = match extent {
                    Extent::Range { begin, end, step } => {
                        Extent::Range { begin: self.expr(begin), end: self.expr(end), step: self.expr(step) }
                    }
                    Extent::Reals => Extent::Reals,
                };
                let fresh = iter.fresh();
                self.scalars.insert(iter.clone(), Expr::var(&fresh));
                let mut props = props.clone();
                props.reductions.iter_mut().for_each(|r| r.tensor = self.symbol(&r.tensor));
                StmtKind::For { iter: fresh, extent, props, body: self.stmt(body) }
            }
            StmtKind::If { cond, then, otherwise } => {
                let (cond, then) = (self.expr(cond), self.stmt(then));
                StmtKind::If { cond, then, otherwise: otherwise.as_ref().map(|o| self.stmt(o)) }
            }
            StmtKind::Store { tensor, indices, value } => {
                let (tensor, indices) = self.target(tensor, indices);
                StmtKind::Store { tensor, indices, value: self.expr(value) }
            }
            StmtKind::ReduceTo { tensor, indices, op, value } => {
                let (tensor, indices) = self.target(tensor, indices);
                StmtKind::ReduceTo { tensor, indices, op: *op, value: self.expr(value) }
            }
            StmtKind::Assert { cond, message, kind } => {
                let part = |p: &MessagePart| match p {
                    MessagePart::Value(e) => MessagePart::Value(self.expr(e)),
                    text => text.clone(),
                };
                StmtKind::Assert { cond: self.expr(cond), message: message.iter().map(part).collect(), kind: *kind }
            }
            StmtKind::Assume { cond } => StmtKind::Assume { cond: self.expr(cond) },
            StmtKind::Eval { function, args } => {
                StmtKind::Eval { function: function.clone(), args: args.iter().map(|a| self.symbol(a)).collect() }
            }
            StmtKind::While { cond, body } => StmtKind::While { cond: self.expr(cond), body: self.stmt(body) },
            StmtKind::Structured { tensor, step } => StmtKind::Structured { tensor: self.symbol(tensor), step: *step },
        };
        let new = Stmt::new(kind, s.origin().derive("grad", self.role));
        self.ids.insert(s.id(), new.id());
        new
    }
}
