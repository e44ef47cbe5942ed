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

use super::writes::{coordinates, sizes, writes};
use rustc_hash::FxHashMap;
use std::sync::Arc;
use taffeta_analysis::query::depend::{DependenceQuery, Dependences};
use taffeta_analysis::query::reference::{Reference, Use};
use taffeta_ast::stmt::{LoopProps, Role};
use taffeta_ast::{DType, Expr, Extent, Func, Origin, Stmt, StmtId, StmtKind, Symbol, Tensor};

/// Reason why writes do not append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Disorder {
    /// Several writes to one element.
    Twice,
    /// Writes against the order of the level.
    Backwards(usize),
    /// Levels whose coordinates are not indices.
    Remapped,
    /// Level whose positions depend on all elements.
    Query(usize),
}

/// Demands of a format on the order of writes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Demands {
    /// Number of levels in whose order elements must come.
    pub(super) levels: usize,
    /// Whether each element must be written at most once.
    pub(super) once: bool,
}

/// Checks that writes come to the elements in the order of the levels, and to each at most once, as demanded.
pub(super) fn check(func: &Func, tensor: &Arc<Tensor>, writes: &[Stmt], demands: Demands) -> Result<(), Disorder> {
    let places = |depth: usize| {
        writes.iter().map(|s| (s.id(), coordinates(s, tensor)[..depth].to_vec())).collect::<Vec<(StmtId, Vec<Expr>)>>()
    };
    let sizes = sizes(tensor);
    for level in 0..demands.levels {
        let probe = Probe::new(&sizes[..=level]);
        let around = places(level + 1).into_iter().map(|(id, at)| (id, probe.reads_behind(&at, &sizes[level])));
        let probed = probe.placed(func, tensor, around.collect());
        if meets(&probed, &probe.tensor.symbol, [Use::Write, Use::Read], &|_| true) {
            return Err(Disorder::Backwards(level));
        }
    }
    if !demands.once || is_once(func, tensor, writes) { Ok(()) } else { Err(Disorder::Twice) }
}

/// Returns whether writes come to each element at most once.
pub(super) fn is_once(func: &Func, tensor: &Arc<Tensor>, writes: &[Stmt]) -> bool {
    let probe = Probe::new(&sizes(tensor));
    let around = writes.iter().map(|s| (s.id(), probe.write(&coordinates(s, tensor))));
    let probed = probe.placed(func, tensor, around.collect());
    !meets(&probed, &probe.tensor.symbol, [Use::Write, Use::Write], &|_| true)
}

/// Returns whether a write may come to an element after one of `earlier`.
pub(super) fn follows(func: &Func, tensor: &Arc<Tensor>, earlier: &[StmtId], write: StmtId) -> bool {
    let probe = Probe::new(&sizes(tensor));
    let all = writes(&func.body, &tensor.symbol).into_iter().filter(|s| s.id() == write || earlier.contains(&s.id()));
    let probes = all.map(|s| (s.id(), probe.write(&coordinates(&s, tensor)))).collect::<Vec<(StmtId, Stmt)>>();
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
