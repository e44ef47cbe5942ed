//! Flattening of tensors into row-major buffers.
//!
//! **Does**: gives every tensor one dimension (scalars keep none), and every access one index. **Requires**: every
//! access is in range of each dimension in its context (`checks`). **Ensures**: ids and origins are kept.
//!
//! ```text
//! y[i, j] += a[i, k] * b[k, j]      →      y[i * m + j] += a[i * p + k] * b[k * m + j]
//! ```
//!
//! The original shapes of local tensors are returned with their accesses flattened as well: C checks each size at the
//! tensor's declaration, and a size may be an element of another tensor.
//!
//! **Leaves alone**: tensors with at most one dimension.

use rustc_hash::FxHashMap;
use std::sync::Arc;
use taffeta_ast::expr::Access;
use taffeta_ast::format::Format;
use taffeta_ast::{Expr, ExprKind, Func, Param, PrintPart, Stmt, StmtKind, Symbol, Tensor};

/// Flattens the program's buffers, and the accesses in the shapes `locals` of its local tensors.
pub(super) fn run(func: &Func, mut locals: Shapes) -> (Func, Shapes) {
    let mut pass = Pass { shapes: FxHashMap::default() };
    let params = func.params.iter().map(|p| Param { tensor: pass.declare(&p.tensor), mode: p.mode }).collect();
    let results = func.results.iter().map(|t| pass.declare(t)).collect();
    let body = pass.stmt(&func.body);
    locals.values_mut().flatten().for_each(|size| *size = pass.expr(size));
    (Func { params, results, body, ..func.clone() }, locals)
}

/// Shapes of tensors.
type Shapes = FxHashMap<Symbol, Vec<Expr>>;

/// Returns the number of elements of a shape.
pub(crate) fn count(shape: &[Expr]) -> Expr {
    shape.iter().fold(Expr::int(1), |n, d| n.times(d))
}

struct Pass {
    shapes: Shapes,
}

impl Pass {
    fn declare(&mut self, t: &Arc<Tensor>) -> Arc<Tensor> {
        self.shapes.insert(t.symbol.clone(), t.shape.clone());
        if t.ndim() <= 1 {
            return t.clone();
        }
        Arc::new(Tensor { shape: vec![count(&t.shape)], format: Format::dense(1), ..(**t).clone() })
    }

    fn stmt(&mut self, s: &Stmt) -> Stmt {
        match s.kind() {
            StmtKind::VarDef { tensor, body } => {
                let shape = tensor.shape.iter().map(|e| self.expr(e)).collect();
                let tensor = self.declare(&Arc::new(Tensor { shape, ..(**tensor).clone() }));
                let body = self.stmt(body);
                s.with_kind(StmtKind::VarDef { tensor, body })
            }
            StmtKind::Store { tensor, indices, value } => s.with_kind(StmtKind::Store {
                tensor: tensor.clone(),
                indices: self.indices(tensor, indices),
                value: self.expr(value),
            }),
            StmtKind::ReduceTo { tensor, indices, op, value } => s.with_kind(StmtKind::ReduceTo {
                tensor: tensor.clone(),
                indices: self.indices(tensor, indices),
                op: *op,
                value: self.expr(value),
            }),
            StmtKind::Print { parts } => {
                s.with_kind(StmtKind::Print { parts: parts.iter().map(|p| self.shown(p)).collect() })
            }
            _ => {
                let exprs = s.map(&mut Stmt::clone, &mut |e| self.expr(e));
                exprs.map(&mut |inner| self.stmt(inner), &mut Expr::clone)
            }
        }
    }

    /// Flattens a printed tensor: its start becomes a flat index, its shape stays.
    fn shown(&self, part: &PrintPart) -> PrintPart {
        let part = part.map(&mut Symbol::clone, &mut |e| self.expr(e));
        let PrintPart::Tensor { tensor, at, shape } = &part else { return part };
        let zeros = shape.iter().map(|_| Expr::int(0));
        let first: Vec<Access> = at.iter().cloned().chain(zeros).map(Access::from).collect();
        let at = self.flat(tensor, &first).into_iter().map(|a| a.index).collect();
        PrintPart::Tensor { tensor: tensor.clone(), at, shape: shape.clone() }
    }

    fn indices(&self, tensor: &Symbol, indices: &[Access]) -> Vec<Access> {
        let indices: Vec<Access> = indices.iter().map(|a| a.map(&mut |e| self.expr(e))).collect();
        self.flat(tensor, &indices)
    }

    fn expr(&self, e: &Expr) -> Expr {
        e.rewrite(&mut |e| match e.kind() {
            ExprKind::Load(t, indices) if indices.len() > 1 => Expr::load(t, self.flat(t, indices), e.dtype()),
            _ => e,
        })
    }

    /// Computes the flat index by Horner's rule: `(i * m + j) * p + k`.
    fn flat(&self, tensor: &Symbol, indices: &[Access]) -> Vec<Access> {
        match (indices, self.shapes.get(tensor)) {
            ([first, rest @ ..], Some(shape)) if !rest.is_empty() => {
                let flat = rest
                    .iter()
                    .zip(&shape[1..])
                    .fold(first.index.clone(), |flat, (a, size)| flat.times(size).plus(&a.index));
                vec![Access::from(flat)]
            }
            _ => indices.to_vec(),
        }
    }
}
