//! Builders of the statements that gradients consist of.

use std::sync::Arc;
use taffeta_ast::stmt::Role;
use taffeta_ast::{Access, DType, Expr, Extent, Literal, LoopProps, Origin, ReduceOp, Stmt, StmtKind, Symbol, Tensor};

/// Builds `tensor[indices] = value`.
pub(crate) fn store(tensor: &Symbol, indices: Vec<Access>, value: Expr, origin: &Origin) -> Stmt {
    Stmt::new(StmtKind::Store { tensor: tensor.clone(), indices: plain(indices), value }, origin.clone())
}

/// Drops the access protocols: the one of an element that was read does not hold for its adjoint.
fn plain(indices: Vec<Access>) -> Vec<Access> {
    indices.into_iter().map(|a| Access::from(a.index)).collect()
}

/// Builds `tensor[indices] op= value`, or a store if there is no operator.
pub(crate) fn update(
    tensor: &Symbol,
    indices: Vec<Access>,
    op: Option<ReduceOp>,
    value: Expr,
    origin: &Origin,
) -> Stmt {
    match op {
        None => store(tensor, indices, value, origin),
        Some(op) => {
            let (tensor, indices) = (tensor.clone(), plain(indices));
            Stmt::new(StmtKind::ReduceTo { tensor, indices, op, value }, origin.clone())
        }
    }
}

/// Builds loops over all elements of a tensor, with iterators `T.d0`, `T.d1`, …
pub(crate) fn every(tensor: &Tensor, origin: &Origin, body: impl FnOnce(Vec<Access>) -> Stmt) -> Stmt {
    // A name in the text of a program has at most one dot.
    let name = tensor.symbol.name().replace('.', "_");
    let iters: Vec<Symbol> = (0..tensor.ndim()).map(|k| Symbol::new(format!("{name}.d{k}"))).collect();
    let inner = body(iters.iter().map(|i| Access::from(Expr::var(i))).collect());
    iters.into_iter().zip(&tensor.shape).rev().fold(inner, |body, (iter, n)| {
        let extent = Extent::Range { begin: Expr::int(0), end: n.clone(), step: Expr::int(1) };
        Stmt::new(StmtKind::For { iter, extent, props: LoopProps::default(), body }, origin.clone())
    })
}

/// Sets all elements of a tensor to a value.
pub(crate) fn fill(tensor: &Tensor, value: Literal, origin: &Origin) -> Stmt {
    every(tensor, origin, |at| store(&tensor.symbol, at, Expr::literal(value, tensor.dtype), origin))
}

/// Copies all elements of a tensor, cast to the type of the target.
pub(crate) fn copy(from: &Tensor, to: &Tensor, origin: &Origin) -> Stmt {
    let element = |at| Expr::load(&from.symbol, at, from.dtype).cast(to.dtype);
    every(to, origin, |at| store(&to.symbol, at.clone(), element(at), origin))
}

/// Returns the accumulator of a derivative that is rounded into `t` afterwards.
pub(crate) fn sum(t: &Tensor, dtype: DType, role: Role) -> Arc<Tensor> {
    Arc::new(Tensor { dtype, ..t.like(Symbol::new(format!("{}.sum", t.symbol)), role) })
}

/// Declares tensors around a statement, the first one outermost.
pub(crate) fn declared(tensors: Vec<Arc<Tensor>>, body: Stmt, origin: &Origin) -> Stmt {
    tensors.into_iter().rev().fold(body, |body, tensor| Stmt::new(StmtKind::VarDef { tensor, body }, origin.clone()))
}

/// Returns the tensor as a local one.
pub(crate) fn local(t: &Arc<Tensor>) -> Arc<Tensor> {
    Arc::new(Tensor { role: Role::Local, ..(**t).clone() })
}

/// Returns the adjoint of a tensor, declared in the scope of that tensor.
pub(crate) fn adjoint(t: &Tensor, role: Role) -> Arc<Tensor> {
    Arc::new(t.adjoint(Symbol::new(format!("{}.grad", t.symbol)), role))
}
