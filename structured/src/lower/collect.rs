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

use super::append::path;
use super::passes::queries;
use super::remapping::{Remapping, known, local};
use super::state::Lower;
use super::workspace::count_to;
use crate::layout::TensorLevels;
use crate::level_assembly::{AssembledArrays, Path, iterator_of, set, store_at};
use std::sync::Arc;
use taffeta_ast::format::{Coord, Format};
use taffeta_ast::stmt::{AssertKind, MessagePart, Routine};
use taffeta_ast::{DType, Expr, Op, Origin, Stmt, StmtKind, Symbol, Tensor};

impl Lower {
    /// Builds the statements that sort a list of writes, add its elements to a tensor, and complete that.
    pub(super) fn assembled_from(&self, list: &Symbol, tensor: &Symbol, op: Option<Op>, origin: &Origin) -> Stmt {
        let (list, flat) = (&self.tensors[list], &self.tensors[tensor]);
        let (Some(made), Some(assembly)) = (&list.assembly, &flat.assembly) else { return Stmt::nop() };
        let count = made.levels[0].counts[0].load([]);
        let local = |what: &str, shape: Vec<Expr>| local(tensor, what, shape);
        let (order, elements) = (local("order", vec![count.clone()]), local("elements", Vec::new()));
        let source = Source::new(list, flat, assembly);

        let keys = source.keys(tensor, &count, origin);
        let tensors = [&order].into_iter().chain(&keys.arrays).map(|t| t.symbol.clone()).collect();
        let sort = StmtKind::Call { routine: Routine::Order, tensors, operands: vec![count.clone()] };
        let p = iterator_of(tensor, "p");
        let combined = combined(list, (&source.indices, op), [&order, &elements], &Expr::var(&p), origin);
        let mut body: Vec<Stmt> = keys.all;
        body.push(Stmt::new(sort, origin.clone()));
        body.push(set(&elements, Expr::int(0), origin));
        body.push(count_to(&p, &count, combined, origin.clone()));

        let over = |what: &str, of: &dyn Fn(&Expr, &[Expr]) -> Vec<Stmt>| {
            let q = iterator_of(tensor, what);
            let at = order.load([Expr::var(&q)]);
            let indices = source.at(&at);
            let one = of(&at, &source.remapping.coordinates(&indices));
            let one = Stmt::seq(one.into_iter().chain(source.remapping.counted(&indices, origin)), origin.clone());
            let all = count_to(&q, &elements.load([]), one, origin.clone());
            source.remapping.restarted(origin).into_iter().chain([all]).collect::<Vec<Stmt>>()
        };
        if assembly.has_query() {
            body.extend(over("e", &|_, coordinates| queries(tensor, assembly, coordinates, origin)));
            body.extend(assembly.decided(origin));
        }
        body.extend(over("q", &|at, coordinates| {
            let value = list.values.load([at.clone()]);
            let path = path(Path::new(tensor, assembly, coordinates, origin));
            self.marked.borrow_mut().extend(path.marked.map(|k| (tensor.clone(), k)));
            let (before, after) = match &assembly.value {
                Some(scalar) => (Some(set(scalar, value, origin)), None),
                None => (None, Some(store_at(&flat.values, &path.position, value, origin.clone()))),
            };
            before.into_iter().chain(path.all).chain(after).chain(path.last).collect()
        }));

        let own = [&order, &elements].into_iter().chain(&keys.own).chain(source.remapping.counters());
        let body = own.fold(Stmt::seq(body, origin.clone()), |body, tensor| {
            Stmt::new(StmtKind::VarDef { tensor: tensor.clone(), body }, origin.clone())
        });
        Stmt::seq([body, self.closed(tensor, origin)], origin.clone())
    }
}

/// Keys by which a list of writes is sorted.
struct Keys {
    /// All keys, the first one counts most.
    arrays: Vec<Arc<Tensor>>,
    /// Those that are not indices.
    own: Vec<Arc<Tensor>>,
    /// Statements that compute them.
    all: Vec<Stmt>,
}

/// List of writes as the source of a tensor's elements.
struct Source<'a> {
    /// Index arrays of the list, by dimension.
    by_dimension: Vec<Arc<Tensor>>,
    /// Index arrays in the order in which the list has them.
    indices: Vec<Arc<Tensor>>,
    /// Format of the tensor.
    format: &'a Format,
    assembly: &'a AssembledArrays,
    remapping: Remapping,
}

impl<'a> Source<'a> {
    fn new(list: &'a TensorLevels, flat: &'a TensorLevels, assembly: &'a AssembledArrays) -> Source<'a> {
        let indices: Vec<Arc<Tensor>> = list.levels.iter().filter_map(|l| l.arrays.last().cloned()).collect();
        let order = list.tensor.format.order().unwrap_or_default();
        let mut by_dimension: Vec<(usize, Arc<Tensor>)> = order.into_iter().zip(indices.iter().cloned()).collect();
        by_dimension.sort_by_key(|(d, _)| *d);
        let by_dimension = by_dimension.into_iter().map(|(_, array)| array).collect();
        let format = &flat.tensor.format;
        Source { by_dimension, indices, format, assembly, remapping: Remapping::new(&flat.tensor, format, assembly) }
    }

    /// Returns the indices of an element of the list.
    fn at(&self, element: &Expr) -> Vec<Expr> {
        self.by_dimension.iter().map(|array| array.load([element.clone()]).cast(DType::I64)).collect()
    }

    /// Computes the keys of all elements: the coordinates of the levels, with the format's own keys before them; the
    /// indices, where elements are counted in the order of these.
    fn keys(&self, tensor: &Symbol, count: &Expr, origin: &Origin) -> Keys {
        if self.format.order().is_some() || self.remapping.counters().next().is_some() {
            return Keys { arrays: self.indices.clone(), own: Vec::new(), all: Vec::new() };
        }
        let mut keys = Keys { arrays: Vec::new(), own: Vec::new(), all: Vec::new() };
        let e = iterator_of(tensor, "k");
        let element = Expr::var(&e);
        let at = self.at(&element);
        let mut body = Vec::new();
        for (k, c) in self.format.coords.iter().map(Some).chain([None]).enumerate() {
            let own = self.format.keys.iter().filter(|key| key.before == k).map(|key| (&key.coord, Expr::int(0)));
            let c = c.map(|c| (c, self.assembly.levels[k].level.low.clone()));
            for (c, low) in own.chain(c) {
                if let Coord::Dim(d) = c {
                    keys.arrays.push(self.by_dimension[*d].clone());
                    continue;
                }
                let array = local(tensor, &format!("key{}", keys.own.len()), vec![count.clone()]);
                match c {
                    Coord::Morton(of) => body.extend(morton(&array, &element, of, &at, origin)),
                    c => body.push(store_at(&array, &element, known(c, &at).minus(&low), origin.clone())),
                }
                keys.arrays.push(array.clone());
                keys.own.push(array);
            }
        }
        keys.all.push(count_to(&e, count, Stmt::seq(body, origin.clone()), origin.clone()));
        keys
    }
}

/// Builds the statements that compute a Morton code: the bits of its operands in turn, those of the last one lowest.
fn morton(key: &Tensor, element: &Expr, of: &[Coord], at: &[Expr], origin: &Origin) -> Vec<Stmt> {
    let bits = 63 / of.len().max(1) as i64;
    let n = of.len() as i64;
    let mut all = vec![store_at(key, element, Expr::int(0), origin.clone())];
    for (k, c) in of.iter().rev().enumerate() {
        let (part, b) = (known(c, at), iterator_of(&key.symbol, "bit"));
        let message = vec![
            MessagePart::Text("coordinate ".to_string()),
            MessagePart::Value(part.clone()),
            MessagePart::Text(format!(" has more than the {bits} bits that a Morton code has room for")),
        ];
        let cond = Expr::int(0).less_eq(&part).and(&part.less(&Expr::int(1 << bits)));
        all.push(Stmt::new(StmtKind::Assert { cond, message, kind: AssertKind::Index }, origin.clone()));
        let apply = |op: Op, a: Expr, b: Expr| Expr::apply(op, vec![a, b]);
        let bit = apply(Op::BitAnd, apply(Op::Shr, part, Expr::var(&b)), Expr::int(1));
        let to = Expr::var(&b).times(&Expr::int(n)).plus(&Expr::int(k as i64));
        let with = apply(Op::BitOr, key.load([element.clone()]), apply(Op::Shl, bit, to));
        let body = store_at(key, element, with, origin.clone());
        all.push(count_to(&b, &Expr::int(bits), body, origin.clone()));
    }
    all
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
