//! Order of the writes into a tensor, decided by the dependence analysis on a program with *probes*: accesses to a
//! dense tensor beside each write, which conflict exactly where the writes are out of order.
//!
//! ```text
//! for z in range(c + 1, n): u = T[…, z]        reads the elements behind the coordinate c of a level, below the same
//! T[…, c] = 0.0                                coordinates of the levels above; then writes the element at c
//! C[…, c, …] = …
//! ```
//!
//! A probe that reads an element which an earlier one has written is at a smaller coordinate than that.
//!
//! A loop over a level without order visits its coordinates in any order. Two iterations of it are in order whichever
//! comes first if they are in the program, and in the program with this loop reversed.

use super::writes::{indices, items, order_of, scope, writes};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;
use taffeta_analysis::pass::substitute;
use taffeta_analysis::query::depend::{DependenceQuery, Dependences};
use taffeta_analysis::query::reference::{Reference, Use};
use taffeta_ast::stmt::{LoopProps, Role};
use taffeta_ast::{DType, Expr, ExprKind, Extent, Func, Origin, Stmt, StmtId, StmtKind, Symbol, Tensor};

/// Reason why writes do not append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Disorder {
    /// Several writes to one element.
    Twice,
    /// Writes against the order of the level.
    Backwards(usize),
    /// Reads between writes.
    Read,
    /// Levels whose coordinates are not indices.
    Remapped,
    /// Level whose positions depend on all elements.
    Query(usize),
}

/// Lists through which loops may go.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lists<'a> {
    /// Workspaces whose lists are sorted before.
    pub(super) sorted: &'a [Symbol],
    /// Whether a loop may follow a list without order; otherwise its coordinates are looked up one after the other.
    pub(super) are_followed: bool,
}

/// Demands of a format on the order of writes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Demands {
    /// Number of levels in whose order elements must come.
    pub(super) levels: usize,
    /// Whether elements are appended: not all positions are computed.
    pub(super) appends: bool,
    /// Whether each element must be written at most once.
    pub(super) once: bool,
}

/// Checks that writes come to the elements in the order of the levels, and to each at most once, as demanded.
pub(super) fn check(
    func: &Func,
    tensor: &Arc<Tensor>,
    writes: &[Stmt],
    (demands, lists): (Demands, Lists<'_>),
) -> Result<(), Disorder> {
    let dims = order_of(tensor);
    let orders = if demands.levels > 0 { orders(func, tensor, lists) } else { Some(Vec::new()) };
    for level in 0..demands.levels {
        let is_ordered = |func: &Func| ascends(func, tensor, writes, &dims[..=level]);
        if !orders.as_ref().is_some_and(|all| all.iter().all(is_ordered)) {
            return Err(Disorder::Backwards(level));
        }
    }
    if !demands.once || is_once(func, tensor, writes) { Ok(()) } else { Err(Disorder::Twice) }
}

/// Returns whether elements with the same indices in `above` are written in the order of `below`, lexicographically.
pub(super) fn is_ascending(
    func: &Func,
    tensor: &Arc<Tensor>,
    writes: &[Stmt],
    [above, below]: [&[usize]; 2],
    lists: Lists<'_>,
) -> bool {
    let Some(orders) = orders(func, tensor, lists) else { return false };
    (1..=below.len()).all(|n| {
        let dims: Vec<usize> = above.iter().chain(&below[..n]).copied().collect();
        orders.iter().all(|func| ascends(func, tensor, writes, &dims))
    })
}

/// Returns whether elements with the same indices in all but the last of these dimensions are written in the order of
/// their index in that.
fn ascends(func: &Func, tensor: &Arc<Tensor>, writes: &[Stmt], dims: &[usize]) -> bool {
    let sizes: Vec<Expr> = dims.iter().map(|d| tensor.shape[*d].clone()).collect();
    let Some(last) = sizes.last() else { return true };
    let probe = Probe::new(&sizes);
    let ids: Vec<StmtId> = writes.iter().map(Stmt::id).collect();
    let own = super::writes::writes(&func.body, &tensor.symbol).into_iter().filter(|s| ids.contains(&s.id()));
    let around = own.map(|s| (s.id(), probe.reads_behind(&indices(&s, dims), last)));
    let probed = probe.placed(func, tensor, around.collect());
    !meets(&probed, &probe.tensor.symbol, [Use::Write, Use::Read], &|_| true)
}

/// Returns the program, and with it each program in which one of the loops over levels without order that write the
/// tensor is reversed; `None` if such a loop has another step than 1.
fn orders(func: &Func, tensor: &Arc<Tensor>, lists: Lists<'_>) -> Option<Vec<Func>> {
    let mut all = vec![func.clone()];
    for iter in unordered(func, tensor, lists) {
        all.push(func.with_body(reversed(&func.body, &iter)?));
    }
    Some(all)
}

/// Collects the iterators of loops that may go through a level without order, in the statements that write a tensor.
fn unordered(func: &Func, tensor: &Arc<Tensor>, lists: Lists<'_>) -> FxHashSet<Symbol> {
    let mut tensors: FxHashMap<Symbol, Arc<Tensor>> =
        func.params.iter().map(|p| (p.tensor.symbol.clone(), p.tensor.clone())).collect();
    func.body.walk(&mut |s| {
        if let StmtKind::VarDef { tensor, .. } = s.kind() {
            tensors.insert(tensor.symbol.clone(), tensor.clone());
        }
    });
    if !lists.are_followed {
        return FxHashSet::default();
    }
    let is_unordered = |t: &Tensor, k: usize| t.format.levels[k].lists_without_order();
    let mut found = FxHashSet::default();
    let mut collect = |e: &Expr| {
        if let ExprKind::Load(t, at) = e.kind()
            && let Some(t) = tensors.get(t).filter(|t| !lists.sorted.contains(&t.symbol))
        {
            let levels = (0..t.format.levels.len()).filter(|k| is_unordered(t, *k));
            for index in levels.flat_map(|k| t.format.coords[k].dims()).map(|d| &at[d].index) {
                index.any(&mut |e| {
                    found.extend(if let ExprKind::Var(iter) = e.kind() { Some(iter.clone()) } else { None });
                    false
                });
            }
        }
        false
    };
    for s in items(scope(func, tensor)).into_iter().filter(|s| s.writes_to(&tensor.symbol)) {
        s.any_expr(&mut collect);
    }
    found
}

/// Reverses the loop with an iterator; `None` if its step is not 1.
fn reversed(s: &Stmt, iter: &Symbol) -> Option<Stmt> {
    let mut is_reversed = true;
    let new = reversed_in(s, iter, &mut is_reversed);
    is_reversed.then_some(new)
}

fn reversed_in(s: &Stmt, iter: &Symbol, is_reversed: &mut bool) -> Stmt {
    match s.kind() {
        StmtKind::For { iter: own, extent: Extent::Range { begin, end, step }, props, body } if own == iter => {
            *is_reversed &= step.as_int() == Some(1);
            let last = begin.plus(end).minus(&Expr::int(1));
            let body = substitute::variable(body, iter, &last.minus(&Expr::var(iter)));
            let extent = Extent::Range { begin: begin.clone(), end: end.clone(), step: step.clone() };
            s.with_kind(StmtKind::For { iter: own.clone(), extent, props: props.clone(), body })
        }
        _ => s.map(&mut |s| reversed_in(s, iter, is_reversed), &mut Expr::clone),
    }
}

/// Returns whether writes come to each element at most once.
pub(super) fn is_once(func: &Func, tensor: &Arc<Tensor>, writes: &[Stmt]) -> bool {
    let (probe, dims) = (Probe::new(&tensor.shape), (0..tensor.shape.len()).collect::<Vec<usize>>());
    let around = writes.iter().map(|s| (s.id(), probe.write(&indices(s, &dims))));
    let probed = probe.placed(func, tensor, around.collect());
    !meets(&probed, &probe.tensor.symbol, [Use::Write, Use::Write], &|_| true)
}

/// Returns whether a write may come to an element after one of `earlier`.
pub(super) fn follows(func: &Func, tensor: &Arc<Tensor>, earlier: &[StmtId], write: StmtId) -> bool {
    let (probe, dims) = (Probe::new(&tensor.shape), (0..tensor.shape.len()).collect::<Vec<usize>>());
    let all = writes(&func.body, &tensor.symbol).into_iter().filter(|s| s.id() == write || earlier.contains(&s.id()));
    let probes = all.map(|s| (s.id(), probe.write(&indices(&s, &dims)))).collect::<Vec<(StmtId, Stmt)>>();
    let own = probes.iter().find(|(id, _)| *id == write).map(|(_, s)| s.id());
    let probed = probe.placed(func, tensor, probes);
    let is_own = |r: &Reference| Some(r.site.stmt.id()) == own;
    meets(&probed, &probe.tensor.symbol, [Use::Write, Use::Write], &is_own)
}

/// Returns whether a use of a probe's tensor and a later one, which `sink` selects, may come to one element.
fn meets(probed: &Func, tensor: &Symbol, [first, then]: [Use; 2], sink: &(dyn Fn(&Reference) -> bool + Sync)) -> bool {
    let is = |r: &Reference, kind: Use| r.tensor == *tensor && r.kind == kind;
    let query =
        DependenceQuery { source: &|r| is(r, first), sink: &|r| is(r, then) && sink(r), ..DependenceQuery::default() };
    Dependences::new(probed).first(&query).is_some()
}

/// Dense tensor whose accesses show the order of writes.
struct Probe {
    tensor: Arc<Tensor>,
    /// Scalar into which the elements are read.
    sink: Arc<Tensor>,
}

impl Probe {
    fn new(sizes: &[Expr]) -> Probe {
        let dense = |name: &str, shape| Arc::new(Tensor::dense(Symbol::new(name), DType::F64, shape, Role::Workspace));
        Probe { tensor: dense("probe", sizes.to_vec()), sink: dense("probed", Vec::new()) }
    }

    /// Builds the write of the element at these coordinates.
    fn write(&self, at: &[Expr]) -> Stmt {
        let indices = at.iter().cloned().map(Into::into).collect();
        let value = Expr::float(0.0, DType::F64);
        Stmt::new(StmtKind::Store { tensor: self.tensor.symbol.clone(), indices, value }, Origin::none())
    }

    /// Builds the reads of all elements behind the last coordinate, and the write of the element there.
    fn reads_behind(&self, at: &[Expr], size: &Expr) -> Stmt {
        let Some((last, above)) = at.split_last() else { return Stmt::nop() };
        let z = Symbol::new("z");
        let value = self.tensor.load(above.iter().cloned().chain([Expr::var(&z)]));
        let read = StmtKind::Store { tensor: self.sink.symbol.clone(), indices: Vec::new(), value };
        let extent = Extent::Range { begin: last.plus(&Expr::int(1)), end: size.clone(), step: Expr::int(1) };
        let body = Stmt::new(read, Origin::none());
        let reads = Stmt::new(StmtKind::For { iter: z, extent, props: LoopProps::default(), body }, Origin::none());
        Stmt::seq([reads, self.write(at)], Origin::none())
    }

    /// Places probes before statements, and declares their tensor where the written one is.
    fn placed(&self, func: &Func, of: &Tensor, probes: Vec<(StmtId, Stmt)>) -> Func {
        let probes: FxHashMap<StmtId, Stmt> = probes.into_iter().collect();
        let declared = |body: Stmt| {
            [&self.sink, &self.tensor]
                .into_iter()
                .fold(body, |body, tensor| Stmt::new(StmtKind::VarDef { tensor: tensor.clone(), body }, Origin::none()))
        };
        fn rewritten(s: &Stmt, of: &Symbol, probes: &FxHashMap<StmtId, Stmt>, declared: &dyn Fn(Stmt) -> Stmt) -> Stmt {
            let new = s.map(&mut |s| rewritten(s, of, probes, declared), &mut Expr::clone);
            match new.kind() {
                StmtKind::VarDef { tensor, body } if tensor.symbol == *of => {
                    new.with_kind(StmtKind::VarDef { tensor: tensor.clone(), body: declared(body.clone()) })
                }
                // Nested blocks are spliced.
                StmtKind::Seq(all) => new.with_kind(Stmt::seq(all.iter().cloned(), Origin::none()).kind().clone()),
                _ => match probes.get(&s.id()) {
                    Some(probe) => Stmt::seq([probe.clone(), new], Origin::none()),
                    None => new,
                },
            }
        }
        let body = rewritten(&func.body, &of.symbol, &probes, &declared);
        func.with_body(if of.role.is_local() { body } else { declared(body) })
    }
}
