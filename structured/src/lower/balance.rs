//! Parallel loops whose iterations are distributed by stored elements (`parallelize(L, schedule="positions")`): if row
//! lengths vary, equal numbers of rows are not equal work. The loop is cut into parts of about as many positions each,
//! which threads take as they take iterations.
//!
//! ```text
//!                                   for i.part in range(parts):        parallel
//! for i in range(n):     →              first = …; last = …            w(first) is part / parts of w(n) or more
//!     for p in pos[i] .. pos[i+1]       for i in range(first, last):
//!         …                                 for p in pos[i] .. pos[i + 1]
//! ```
//!
//! Threads start if there is at least a threshold of work to share; parts are about half as large as that threshold, or
//! larger if they would be too many.
//!
//! `w(i)` is `i` plus the number of positions before `i`, `pos[i]`, in the lists that the body traverses. It is
//! monotonic, and can be evaluated at any `i`, so the ends of parts are found by bisection. Iterations count beside
//! positions, since empty rows take time too.
//!
//! Parallel loops of another distribution are cut into equal parts if their bodies insert into workspaces: the arrays of
//! a workspace are cleared once for each part (`workspace`), and not once for each iteration.

use super::nest::LoopBuilder;
use super::scalars::scalar;
use super::state::{Bindings, Lower};
use crate::access;
use crate::level::TensorLevel;
use crate::levels;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;
use taffeta_analysis::query::effects;
use taffeta_ast::format::Rule;
use taffeta_ast::poly::{self, tidy};
use taffeta_ast::stmt::{Distribution, LoopProps, Parallel};
use taffeta_ast::{DType, Expr, ExprKind, Extent, Op, Sharing, Stmt, StmtKind, Symbol, Tensor};

/// Maximum number of parts of a loop: each is searched for, and 64 threads get one each.
const MAX_PARTS: i64 = 64;

/// Maximum number of equal parts of a loop whose iterations go to whichever thread is idle.
const MAX_CHUNKS: i64 = 8 * MAX_PARTS;

/// List whose ends are consecutive elements of an array, at the iterator plus a shift.
struct List {
    pos: Arc<Tensor>,
    shift: Expr,
}

impl Lower {
    /// Cuts loops that are distributed by positions, and loops that insert into workspaces, into parts.
    pub(super) fn balanced(&self, s: &Stmt) -> Stmt {
        let inner = s.map(&mut |s| self.balanced(s), &mut Expr::clone);
        let StmtKind::For { iter, extent, props, body } = inner.kind() else { return inner };
        let Some(parallel) = props.parallel else { return inner };
        let Extent::Range { begin, end, step } = extent else { return inner };
        let written = effects::writes(body);
        let fixed = [begin, end].iter().all(|e| effects::loads(e).is_disjoint(&written)) && step.as_int() == Some(1);
        let nest = LoopBuilder {
            s: &inner,
            iter: None,
            props: LoopProps::default(),
            inside: Bindings::default(),
            bodies: 0,
            id_taken: false,
        };
        let by_positions = parallel.distribution == Distribution::Positions;
        let lists = if by_positions && fixed { self.lists(body, iter) } else { Vec::new() };
        if !lists.is_empty() {
            return in_parts(&nest, iter, [begin, end], (props, parallel), body, &lists);
        }
        // The work of iterations is not known to differ.
        let parallel = match by_positions {
            true => Parallel { distribution: Distribution::Static, chunk: None, ..parallel },
            false => parallel,
        };
        if fixed && self.clears_once(body, iter) {
            return in_equal_parts(&nest, iter, [begin, end], (props, parallel), body);
        }
        let props = LoopProps { parallel: Some(parallel), ..props.clone() };
        inner.with_kind(StmtKind::For { iter: iter.clone(), extent: extent.clone(), props, body: body.clone() })
    }

    /// Collects the lists that a body traverses, if there is one list for each iteration of the loop.
    fn lists(&self, body: &Stmt, iter: &Symbol) -> Vec<List> {
        let rising = self.partitions();
        let mut inner: FxHashSet<Symbol> = FxHashSet::default();
        let mut reads: Vec<List> = Vec::new();
        body.walk(&mut |s| {
            if let StmtKind::For { iter, .. } = s.kind() {
                inner.insert(iter.clone());
            }
        });
        let mut look = |e: &Expr| {
            let ExprKind::Load(t, at) = e.kind() else { return };
            let Some(pos) = rising.get(t) else { return };
            let shift = tidy(&at[0].index.minus(&Expr::var(iter)));
            let mut fixed = effects::loads(&shift).is_empty();
            shift.walk(&mut |e| {
                if let ExprKind::Var(v) = e.kind() {
                    fixed &= v != iter && !inner.contains(v);
                }
            });
            if fixed && !reads.iter().any(|l| l.pos.symbol == *t && poly::equal(&l.shift, &shift) == Some(true)) {
                reads.push(List { pos: pos.clone(), shift });
            }
        };
        body.walk(&mut |s| {
            if !matches!(s.kind(), StmtKind::Assume { .. }) {
                access::exprs(s).iter().for_each(|e| e.walk(&mut look));
            }
        });
        let follows = |a: &List, b: &List| {
            a.pos.symbol == b.pos.symbol && poly::equal(&a.shift.plus(&Expr::int(1)), &b.shift) == Some(true)
        };
        let begins: Vec<bool> = reads.iter().map(|a| reads.iter().any(|b| follows(a, b))).collect();
        reads.into_iter().zip(begins).filter_map(|(l, begins)| begins.then_some(l)).collect()
    }

    /// Returns the arrays whose elements increase: each fibre's positions begin where those of its predecessor end.
    fn partitions(&self) -> FxHashMap<Symbol, Arc<Tensor>> {
        let levels = self.tensors.values().flat_map(|flat| &flat.levels);
        let of = |level: &TensorLevel| -> Vec<(Symbol, Arc<Tensor>)> {
            let rules = levels::of_level(level).and_then(|k| k.contract(level.level)).map_or(Vec::new(), |c| c.rules);
            let pos = |rule: Rule| match rule {
                Rule::Partition { pos, .. } => level.arrays.get(pos).map(|a| (a.symbol.clone(), a.clone())),
                _ => None,
            };
            rules.into_iter().filter_map(pos).collect()
        };
        levels.flat_map(of).collect()
    }
}

/// Returns whether a statement contains a loop inside of a loop.
fn has_nest(s: &Stmt) -> bool {
    let is_loop = |s: &Stmt| matches!(s.kind(), StmtKind::For { .. } | StmtKind::While { .. });
    s.any(&mut |s| is_loop(s) && s.kind().children().into_iter().any(|s| s.any(&mut |s| is_loop(s))))
}

/// Builds the parallel loop over parts of about equal work, around the loop over the iterations of each part.
fn in_parts(
    nest: &LoopBuilder<'_>,
    iter: &Symbol,
    [begin, end]: [&Expr; 2],
    (props, parallel): (&LoopProps, Parallel),
    body: &Stmt,
    lists: &[List],
) -> Stmt {
    let named = |what: &str| scalar(format!("{}.{what}", iter.name()));
    let [all, parts, first, last] = ["all", "parts", "first", "last"].map(named);
    let one = Expr::int(1);
    // Work before an iteration.
    let before = |at: &Expr| {
        let of = |l: &List| l.pos.load([at.plus(&l.shift)]);
        lists.iter().fold(at.clone(), |sum, l| sum.plus(&of(l).cast(DType::I64)))
    };
    let work = |at: &Expr| before(at).minus(&before(begin));
    let least = parallel.chunk.map_or(Parallel::POSITIONS[usize::from(has_nest(body))], i64::from);
    let some = all.load([]).floor_div(&Expr::int((least / 2).max(1))).min_with(&Expr::int(MAX_PARTS));
    let enough = Expr::int(least).less_eq(&all.load([]));
    let enough = match parallel.above {
        None => enough,
        Some(above) => enough.and(&Expr::int(i64::try_from(above).unwrap_or(i64::MAX)).less(&end.minus(begin))),
    };
    let some = Expr::apply(Op::Select, vec![enough, some, one.clone()]);
    let part = Symbol::new(format!("{}.part", iter.name()));
    let share = |k: Expr| k.times(&all.load([])).floor_div(&parts.load([]));
    let from = Expr::var(&part);
    let seek = |to: &Arc<Tensor>, share: &Expr| seek(nest, to, [begin, end], &|at| work(at).less(share));
    let here = nest.block([
        nest.set(&first, begin),
        seek(&first, &share(from.clone())),
        nest.set(&last, &first.load([])),
        seek(&last, &share(from.plus(&one))),
        iterations(nest, (iter, [begin, end]), [&first, &last], props, body),
    ]);
    let here = nest.with([first, last], here);
    // The first thread proceeds until others have woken up. Partial sums, one per thread, are computed over fixed
    // parts, so that results are reproducible.
    let fixed = props.reductions.iter().any(|r| r.sharing == Sharing::Partial);
    let distribution = if fixed { Distribution::Static } else { Distribution::Dynamic };
    let over = over_parts(nest, part, &parts, (props, distribution), here);
    let done = nest.block([nest.set(&all, &work(end)), nest.set(&parts, &some), over]);
    // Without iterations, there may be no list.
    nest.branch(&begin.less(end), nest.with([all, parts], done), Stmt::nop())
}

/// Builds the parallel loop over parts of equal length, around the loop over the iterations of each part:
/// `first = begin + part * all // parts`.
fn in_equal_parts(
    nest: &LoopBuilder<'_>,
    iter: &Symbol,
    [begin, end]: [&Expr; 2],
    (props, parallel): (&LoopProps, Parallel),
    body: &Stmt,
) -> Stmt {
    let named = |what: &str| scalar(format!("{}.{what}", iter.name()));
    let [all, parts, first, last] = ["all", "parts", "first", "last"].map(named);
    let most = if parallel.distribution == Distribution::Static { MAX_PARTS } else { MAX_CHUNKS };
    let chunk = i64::from(parallel.chunk.unwrap_or(1).max(1));
    let some = all.load([]).plus(&Expr::int(chunk - 1)).floor_div(&Expr::int(chunk)).min_with(&Expr::int(most));
    let some = match parallel.above {
        None => some,
        Some(above) => {
            let enough = Expr::int(i64::try_from(above).unwrap_or(i64::MAX)).less(&all.load([]));
            Expr::apply(Op::Select, vec![enough, some, Expr::int(1)])
        }
    };
    let part = Symbol::new(format!("{}.part", iter.name()));
    let share = |k: Expr| begin.plus(&k.times(&all.load([])).floor_div(&parts.load([])));
    let from = Expr::var(&part);
    let here = nest.block([
        nest.set(&first, &share(from.clone())),
        nest.set(&last, &share(from.plus(&Expr::int(1)))),
        iterations(nest, (iter, [begin, end]), [&first, &last], props, body),
    ]);
    let over = over_parts(nest, part, &parts, (props, parallel.distribution), nest.with([first, last], here));
    let done = nest.block([nest.set(&all, &end.minus(begin)), nest.set(&parts, &some), over]);
    nest.branch(&begin.less(end), nest.with([all, parts], done), Stmt::nop())
}

/// Builds the loop over the iterations of a part, which are within the range of the whole loop.
fn iterations(
    nest: &LoopBuilder<'_>,
    (iter, [begin, end]): (&Symbol, [&Expr; 2]),
    [first, last]: [&Arc<Tensor>; 2],
    props: &LoopProps,
    body: &Stmt,
) -> Stmt {
    let at = Expr::var(iter);
    let inside = nest.assume(&[begin.less_eq(&at).and(&at.less(end))]);
    let extent = Extent::Range { begin: first.load([]), end: last.load([]), step: Expr::int(1) };
    let props = LoopProps { parallel: None, reductions: Vec::new(), ..props.clone() };
    let body = nest.block(inside.into_iter().chain([body.clone()]));
    nest.derived(StmtKind::For { iter: iter.clone(), extent, props, body }, "iterations of a part")
}

/// Builds the parallel loop over parts, in the place of the loop that is cut.
fn over_parts(
    nest: &LoopBuilder<'_>,
    part: Symbol,
    parts: &Tensor,
    (props, distribution): (&LoopProps, Distribution),
    body: Stmt,
) -> Stmt {
    let threads = Parallel { distribution, chunk: None, above: Some(1) };
    let props = LoopProps { parallel: Some(threads), vectorize: None, unroll: false, library: false, ..props.clone() };
    let extent = Extent::Range { begin: Expr::int(0), end: parts.load([]), step: Expr::int(1) };
    nest.s.with_kind(StmtKind::For { iter: part, extent, props, body })
}

/// Advances to the first iteration that is not `before`, by bisection of the rest.
fn seek(nest: &LoopBuilder<'_>, to: &Arc<Tensor>, [begin, end]: [&Expr; 2], before: &dyn Fn(&Expr) -> Expr) -> Stmt {
    let [top, mid] = ["top", "mid"].map(|what| scalar(format!("{}.{what}", to.symbol.name())));
    let half = to.load([]).plus(&top.load([]).minus(&to.load([])).floor_div(&Expr::int(2)));
    let middle = mid.load([]);
    let mut halving = vec![nest.set(&mid, &half)];
    halving.extend(nest.assume(&[begin.less_eq(&middle).and(&middle.less(end))]));
    let on = nest.set(to, &middle.plus(&Expr::int(1)));
    halving.push(nest.branch(&before(&middle), on, nest.set(&top, &middle)));
    let halving = nest.with([mid], nest.block(halving));
    let halving = nest.derived(StmtKind::While { cond: to.load([]).less(&top.load([])), body: halving }, "seek");
    let all = nest.block([nest.set(&top, end), halving]);
    nest.with([top], all)
}
