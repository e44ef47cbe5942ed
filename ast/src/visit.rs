//! Walks and rewrites of trees. A pass handles the cases that it changes, and leaves the rest to [`Stmt::map`] and
//! [`Expr::rewrite`].

use crate::expr::{Access, Expr, ExprKind};
use crate::stmt::{Extent, MessagePart, PrintPart, Stmt, StmtKind};
use crate::symbol::Symbol;

impl StmtKind {
    /// Returns the statements directly inside, in order.
    pub fn children(&self) -> Vec<&Stmt> {
        self.inside().collect()
    }

    /// Iterates over the statements directly inside, in order.
    pub fn inside(&self) -> impl Iterator<Item = &Stmt> {
        let (first, last) = match self {
            StmtKind::Seq(v) => (v.as_slice(), None),
            StmtKind::VarDef { body, .. } | StmtKind::For { body, .. } | StmtKind::While { body, .. } => {
                (std::slice::from_ref(body), None)
            }
            StmtKind::If { then, otherwise, .. } => (std::slice::from_ref(then), otherwise.as_ref()),
            _ => (&[][..], None),
        };
        first.iter().chain(last)
    }

    /// Returns whether both are equal with identical child nodes, without comparing the children's contents.
    fn same_nodes(&self, other: &StmtKind) -> bool {
        match (self, other) {
            (StmtKind::VarDef { tensor: a, body: x }, StmtKind::VarDef { tensor: b, body: y }) => {
                x.same_node(y) && a == b
            }
            (
                StmtKind::For { iter: i, extent: e, props: p, body: x },
                StmtKind::For { iter: j, extent: f, props: q, body: y },
            ) => x.same_node(y) && i == j && e == f && p == q,
            (StmtKind::While { cond: a, body: x }, StmtKind::While { cond: b, body: y }) => x.same_node(y) && a == b,
            (StmtKind::If { cond: a, .. }, StmtKind::If { cond: b, .. }) => {
                a == b
                    && self.inside().count() == other.inside().count()
                    && self.inside().zip(other.inside()).all(|(x, y)| x.same_node(y))
            }
            _ => self == other,
        }
    }

    /// Returns the expressions directly in the statement (not those of statements inside), in order of evaluation:
    /// shapes, bounds, conditions, indices, values.
    pub fn exprs(&self) -> Vec<&Expr> {
        match self {
            StmtKind::VarDef { tensor, .. } => tensor.shape.iter().collect(),
            StmtKind::For { extent: Extent::Range { begin, end, step }, .. } => vec![begin, end, step],
            StmtKind::If { cond, .. } | StmtKind::Assume { cond } | StmtKind::While { cond, .. } => vec![cond],
            StmtKind::Assert { cond, message, .. } => std::iter::once(cond)
                .chain(message.iter().filter_map(|p| match p {
                    MessagePart::Value(e) => Some(e),
                    MessagePart::Text(_) => None,
                }))
                .collect(),
            StmtKind::Print { parts } => parts
                .iter()
                .flat_map(|p| match p {
                    PrintPart::Text(_) => Vec::new(),
                    PrintPart::Value(e) => vec![e],
                    PrintPart::Tensor { at, shape, .. } => at.iter().chain(shape).collect(),
                })
                .collect(),
            StmtKind::Store { indices, value, .. } | StmtKind::ReduceTo { indices, value, .. } => {
                indices.iter().map(|a| &a.index).chain([value]).collect()
            }
            StmtKind::Call { operands, .. } => operands.iter().collect(),
            StmtKind::Seq(_) | StmtKind::For { extent: Extent::Reals, .. } => Vec::new(),
        }
    }

    /// Returns the tensors that a print shows: it reads many elements without a load in [`StmtKind::exprs`].
    pub fn printed(&self) -> Vec<&Symbol> {
        let StmtKind::Print { parts } = self else { return Vec::new() };
        let shown = parts.iter().filter_map(|p| match p {
            PrintPart::Tensor { tensor, .. } => Some(tensor),
            PrintPart::Text(_) | PrintPart::Value(_) => None,
        });
        shown.collect()
    }
}

impl PrintPart {
    /// Rewrites the part with `name` applied to tensors and `f` to expressions.
    #[must_use]
    pub fn map(&self, name: &mut dyn FnMut(&Symbol) -> Symbol, f: &mut dyn FnMut(&Expr) -> Expr) -> PrintPart {
        match self {
            PrintPart::Text(_) => self.clone(),
            PrintPart::Value(e) => PrintPart::Value(f(e)),
            PrintPart::Tensor { tensor, at, shape } => PrintPart::Tensor {
                tensor: name(tensor),
                at: at.iter().map(&mut *f).collect(),
                shape: shape.iter().map(f).collect(),
            },
        }
    }
}

impl Stmt {
    /// Calls `f` on this statement and all statements inside, in preorder.
    pub fn walk(&self, f: &mut dyn FnMut(&Stmt)) {
        f(self);
        for s in self.kind().inside() {
            s.walk(f);
        }
    }

    /// Calls `f` on every expression of this statement and of those inside, operands included.
    pub fn walk_exprs(&self, f: &mut dyn FnMut(&Expr)) {
        self.walk(&mut |s| {
            for e in s.kind().exprs() {
                e.walk(f);
            }
        });
    }

    /// Returns whether `f` holds for this statement or for one inside; stops at the first.
    pub fn any(&self, f: &mut dyn FnMut(&Stmt) -> bool) -> bool {
        f(self) || self.kind().inside().any(|s| s.any(f))
    }

    /// Returns whether `f` holds for an expression of this statement or of those inside, operands included; stops at
    /// the first.
    pub fn any_expr(&self, f: &mut dyn FnMut(&Expr) -> bool) -> bool {
        self.any(&mut |s| s.kind().exprs().into_iter().any(|e| e.any(f)))
    }

    /// Rewrites the statement with `on_stmt` applied to the statements directly inside and `on_expr` to the expressions
    /// directly in it. Keeps id and origin; returns the same node if nothing changed.
    #[must_use]
    pub fn map(&self, on_stmt: &mut dyn FnMut(&Stmt) -> Stmt, on_expr: &mut dyn FnMut(&Expr) -> Expr) -> Stmt {
        let accesses = |indices: &[Access], f: &mut dyn FnMut(&Expr) -> Expr| -> Vec<Access> {
            indices.iter().map(|a| a.map(f)).collect()
        };
        let kind = match self.kind() {
            StmtKind::Seq(v) => {
                let new: Vec<Stmt> = v.iter().map(&mut *on_stmt).collect();
                if new.iter().zip(v).all(|(a, b)| a.same_node(b)) {
                    return self.clone();
                }
                return match <[Stmt; 1]>::try_from(Stmt::spliced(new)) {
                    Ok([one]) => one,
                    Err(flat) => self.with_kind(StmtKind::Seq(flat)),
                };
            }
            StmtKind::VarDef { tensor, body } => {
                let shape: Vec<Expr> = tensor.shape.iter().map(&mut *on_expr).collect();
                let tensor = if shape == tensor.shape {
                    tensor.clone()
                } else {
                    std::sync::Arc::new(crate::stmt::Tensor { shape, ..(**tensor).clone() })
                };
                StmtKind::VarDef { tensor, body: on_stmt(body) }
            }
            StmtKind::For { iter, extent, props, body } => {
                let extent = match extent {
                    Extent::Range { begin, end, step } => {
                        Extent::Range { begin: on_expr(begin), end: on_expr(end), step: on_expr(step) }
                    }
                    Extent::Reals => Extent::Reals,
                };
                StmtKind::For { iter: iter.clone(), extent, props: props.clone(), body: on_stmt(body) }
            }
            StmtKind::If { cond, then, otherwise } => StmtKind::If {
                cond: on_expr(cond),
                then: on_stmt(then),
                otherwise: otherwise.as_ref().map(&mut *on_stmt),
            },
            StmtKind::Store { tensor, indices, value } => {
                StmtKind::Store { tensor: tensor.clone(), indices: accesses(indices, on_expr), value: on_expr(value) }
            }
            StmtKind::ReduceTo { tensor, indices, op, value } => StmtKind::ReduceTo {
                tensor: tensor.clone(),
                indices: accesses(indices, on_expr),
                op: *op,
                value: on_expr(value),
            },
            StmtKind::Assert { cond, message, kind } => StmtKind::Assert {
                cond: on_expr(cond),
                message: message
                    .iter()
                    .map(|p| match p {
                        MessagePart::Value(e) => MessagePart::Value(on_expr(e)),
                        text => text.clone(),
                    })
                    .collect(),
                kind: *kind,
            },
            StmtKind::Print { parts } => {
                StmtKind::Print { parts: parts.iter().map(|p| p.map(&mut Symbol::clone, on_expr)).collect() }
            }
            StmtKind::Assume { cond } => StmtKind::Assume { cond: on_expr(cond) },
            StmtKind::While { cond, body } => StmtKind::While { cond: on_expr(cond), body: on_stmt(body) },
            StmtKind::Call { routine, tensors, operands } => StmtKind::Call {
                routine: *routine,
                tensors: tensors.clone(),
                operands: operands.iter().map(on_expr).collect(),
            },
        };
        if self.kind().same_nodes(&kind) { self.clone() } else { self.with_kind(kind) }
    }
}

impl Expr {
    /// Calls `f` on this expression and all its operands, in preorder.
    pub fn walk(&self, f: &mut dyn FnMut(&Expr)) {
        f(self);
        for e in self.children() {
            e.walk(f);
        }
    }

    /// Returns whether `f` holds for this expression or for one of its operands, indices included; stops at the first.
    pub fn any(&self, f: &mut dyn FnMut(&Expr) -> bool) -> bool {
        f(self) || self.children().into_iter().any(|e| e.any(f))
    }

    /// Returns whether the expression mentions an iterator or a size for which `is` holds.
    pub fn mentions(&self, is: &dyn Fn(&Symbol) -> bool) -> bool {
        self.any(&mut |e| matches!(e.kind(), ExprKind::Var(s) if is(s)))
    }

    /// Rewrites the expression bottom-up, with `f` applied to every node after its operands. The result of `f` is not
    /// rewritten again: `j - 1` with `j + 1` for `j` is `j`.
    #[must_use]
    pub fn rewrite(&self, f: &mut dyn FnMut(Expr) -> Expr) -> Expr {
        let inner = self.map_children(&mut |e| e.rewrite(f));
        if inner.is_operand_of(self) { inner } else { f(inner) }
    }

    /// Returns whether rebuilding the operation `before` simplified it to one of its operands, or a part of one: the
    /// normal form of `(j + 1) - 1` is `j`. A bottom-up rewrite has handled that node already.
    #[must_use]
    pub fn is_operand_of(&self, before: &Expr) -> bool {
        matches!(self.kind(), ExprKind::Var(_) | ExprKind::Load(..))
            && matches!(before.kind(), ExprKind::Apply(..) | ExprKind::Cast(_))
    }
}
