//! Elements of a tensor from the list of its writes ([`crate::assemble`]): the numbers of the writes are sorted by the
//! coordinates of the levels, those of one element are combined in order, and the elements appended.
//!
//! ```text
//! order(B.order, L.crd0, L.crd1, L.n0)
//! for p in range(L.n0):
//!     q = B.order[p]
//!     if B.elements > 0 and (L.crd0[q], L.crd1[q]) are those of B.order[B.elements - 1]:
//!         L.val[B.order[B.elements - 1]] += L.val[q]
//!     else:
//!         L.val[q] = 0 + L.val[q]
//!         B.order[B.elements] = q
//!         B.elements += 1
//! for p in range(B.elements):
//!     append the element at L.crd0[B.order[p]], L.crd1[B.order[p]] to B
//! ```

use super::append::{close, set};
use super::state::Lower;
use super::workspace::{count_to, iterator_of, store_at};
use crate::layout::TensorLevels;
use std::sync::Arc;
use taffeta_ast::stmt::{Role, Routine};
use taffeta_ast::{DType, Expr, Op, Origin, Stmt, StmtKind, Symbol, Tensor};

impl Lower {
    /// Builds the statements that sort a list of writes, append its elements to a tensor, and complete that.
    pub(super) fn assembled_from(&self, list: &Symbol, tensor: &Symbol, op: Option<Op>, origin: &Origin) -> Stmt {
        let (list, flat) = (&self.tensors[list], &self.tensors[tensor]);
        let Some(count) = list.lists.first().map(|list| list.count.load([])) else { return Stmt::nop() };
        let name = |what: &str| Symbol::new(format!("{}.{what}", tensor.name().replace('.', "_")));
        let order = Tensor::dense(name("order"), DType::I64, vec![count.clone()], Role::Workspace);
        let elements = Tensor::dense(name("elements"), DType::I64, Vec::new(), Role::Workspace);
        let (order, elements) = (Arc::new(order), Arc::new(elements));

        let crds: Vec<Arc<Tensor>> = list.levels.iter().filter_map(|l| l.arrays.last().cloned()).collect();
        let tensors = [&order].into_iter().chain(&crds).map(|t| t.symbol.clone()).collect();
        let sort = StmtKind::Call { routine: Routine::Order, tensors, operands: vec![count.clone()] };
        let p = iterator_of(tensor, "p");
        let combined = combined(list, (&crds, op), [&order, &elements], &Expr::var(&p), origin);
        let q = iterator_of(tensor, "q");
        let at = order.load([Expr::var(&q)]);
        let coordinates: Vec<Expr> = crds.iter().map(|crd| crd.load([at.clone()]).cast(DType::I64)).collect();
        let path = self.path(tensor, (0, Expr::int(0)), &coordinates, origin);
        let value = store_at(&flat.values, &path.position, list.values.load([at]), origin.clone());
        let append = Stmt::seq(path.all.into_iter().chain([value]).chain(path.last), origin.clone());

        let body = [
            Stmt::new(sort, origin.clone()),
            set(&elements, Expr::int(0), origin),
            count_to(&p, &count, combined, origin.clone()),
            count_to(&q, &elements.load([]), append, origin.clone()),
        ];
        let declared = |body: Stmt, tensor: &Arc<Tensor>| {
            Stmt::new(StmtKind::VarDef { tensor: tensor.clone(), body }, origin.clone())
        };
        let body = [&order, &elements].into_iter().fold(Stmt::seq(body, origin.clone()), declared);
        Stmt::seq([body, close(tensor, flat, origin)], origin.clone())
    }
}

/// Combines the write at place `p` with the previous one if that is of the same element; otherwise keeps its number.
fn combined(
    list: &TensorLevels,
    (crds, op): (&[Arc<Tensor>], Option<Op>),
    [order, elements]: [&Arc<Tensor>; 2],
    p: &Expr,
    origin: &Origin,
) -> Stmt {
    let (own, count) = (order.load([p.clone()]), elements.load([]));
    let before = order.load([count.minus(&Expr::int(1))]);
    let is_same = crds.iter().map(|crd| crd.load([own.clone()]).equals(&crd.load([before.clone()])));
    let is_same = is_same.fold(Expr::int(0).less(&count), |all, one| all.and(&one));
    let (value, fill) = (list.values.load([own.clone()]), Expr::literal(list.fill(), list.values.dtype));
    let with = |first: Expr| op.map_or_else(|| value.clone(), |op| Expr::apply(op, vec![first, value.clone()]));
    let then = store_at(&list.values, &before, with(list.values.load([before.clone()])), origin.clone());
    let first = op.map(|_| store_at(&list.values, &own, with(fill), origin.clone()));
    let kept = [store_at(order, &count, own.clone(), origin.clone()), set(elements, count.plus(&Expr::int(1)), origin)];
    let otherwise = Some(Stmt::seq(first.into_iter().chain(kept), origin.clone()));
    Stmt::new(StmtKind::If { cond: is_same, then, otherwise }, origin.clone())
}
