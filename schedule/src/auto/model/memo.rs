//! Memo of loop estimates: after a step, only the changed loops and the loops around them are estimated again.
//!
//! An estimate is valid for the same node in the same place. A place comprises the inputs of a loop's estimate other
//! than the loop: the loops around it with their properties and the values of their iterators, the number of its
//! executions, and earlier accesses, which may have fetched its data. Whether all tensors of the program fit a cache
//! level is an input too; it is memoised as the range of total sizes for which the estimate holds.

use super::access::ReuseKey;
use super::estimator::out_of_order::LoopCost;
use super::footprint::WorkingSet;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::rc::Rc;
use taffeta_ast::{Stmt, StmtId};

/// Maximum number of places memoised per loop: with a step and without it.
const MAX_PLACES: usize = 4;

/// Memo of loop estimates.
#[derive(Default)]
pub(super) struct Memo {
    loops: FxHashMap<StmtId, VecDeque<MemoEntry>>,
    /// Working sets of loops, each with its node and the hash of the enclosing loops.
    sets: FxHashMap<StmtId, VecDeque<(Stmt, u64, Rc<WorkingSet>)>>,
}

/// Memoised estimate of a loop in a place.
struct MemoEntry {
    node: Stmt,
    place: u64,
    taken: LoopEstimate,
}

/// Estimate of a loop.
#[derive(Clone)]
pub(super) struct LoopEstimate {
    /// Time in nanoseconds.
    pub time: f64,
    /// Stalls and instructions that the loop passes to the enclosing loop.
    pub inner: LoopCost,
    /// Access patterns that the loop adds for comparison with later accesses.
    pub walks: Vec<ReuseKey>,
    /// Total tensor sizes for which the estimate holds.
    pub bytes: Bytes,
}

impl Memo {
    pub fn recall(&self, node: &Stmt, place: u64, bytes: f64) -> Option<&LoopEstimate> {
        let known = self.loops.get(&node.id())?;
        let fits = |l: &&MemoEntry| l.place == place && l.node.same_node(node) && l.taken.bytes.contain(bytes);
        known.iter().find(fits).map(|l| &l.taken)
    }

    pub fn remember(&mut self, node: &Stmt, place: u64, taken: LoopEstimate) {
        let known = self.loops.entry(node.id()).or_default();
        if known.len() >= MAX_PLACES {
            known.pop_front();
        }
        known.push_back(MemoEntry { node: node.clone(), place, taken });
    }

    pub fn recall_set(&self, node: &Stmt, path: u64) -> Option<Rc<WorkingSet>> {
        let known = self.sets.get(&node.id())?;
        known.iter().find(|(n, p, _)| *p == path && n.same_node(node)).map(|(_, _, set)| set.clone())
    }

    pub fn remember_set(&mut self, node: &Stmt, path: u64, set: Rc<WorkingSet>) {
        let known = self.sets.entry(node.id()).or_default();
        if known.len() >= MAX_PLACES {
            known.pop_front();
        }
        known.push_back((node.clone(), path, set));
    }

    pub fn clear(&mut self) {
        self.loops.clear();
        self.sets.clear();
    }
}

/// Range of byte counts: above the first bound, and at most the second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bytes(f64, f64);

impl Bytes {
    pub const ALL: Bytes = Bytes(f64::NEG_INFINITY, f64::INFINITY);

    fn contain(self, bytes: f64) -> bool {
        self.0 < bytes && bytes <= self.1
    }

    /// Returns the intersection of two ranges.
    pub fn and(self, other: Bytes) -> Bytes {
        Bytes(self.0.max(other.0), self.1.min(other.1))
    }

    /// Returns the range of sizes that fit into `room` bytes, or of sizes that do not.
    pub fn that_fit(fit: bool, room: f64) -> Bytes {
        if fit { Bytes(f64::NEG_INFINITY, room) } else { Bytes(room, f64::INFINITY) }
    }
}

#[cfg(test)]
mod tests {
    use crate::auto::model::Model;
    use crate::auto::model::enclosing::Stage;
    use crate::auto::{Target, rules};
    use crate::schedule::Schedule;
    use crate::tree;
    use std::sync::Arc;
    use taffeta_ast::build::{branch, local, var_def};
    use taffeta_ast::{DType, Expr, Extent, Func, LoopProps, Parallel, Stmt, StmtId, StmtKind, print};
    use taffeta_frontend::{NoHooks, NoLoader, Program, Source};

    const PROGRAM: &str = "
def f(q: f32[n, 64], k: f32[n, 64], v: inout[f32[n, 64]], t: inout[f32[n, n]]):
    for i in range(n):
        score = zeros((65,), f32)
        for j in range(65):
            if i + j < n:
                for c in range(64):
                    score[j] += q[i, c] * k[i + j, c]
        for j in range(65):
            if i + j < n:
                v[i] += score[j] * k[i + j]
    for i in range(n):
        for j in range(i):
            for l in range(j, n):
                t[i, j] += t[l, i] * exp(t[l, j])
        for j in range(n):
            t[i, j] = t[i, j] / 2.0
    for i in range(n):
        for c in range(64):
            v[i, c] += 2.0 * k[i, c]
        for c in range(64):
            v[i, c] *= q[i, c] + k[i, c]
";

    /// Returns variants of the program that change the place of the statements in a loop: threads, other iterations, a
    /// condition, a large array, or no first statement.
    fn others(func: &Func, id: StmtId) -> Vec<Func> {
        let Some(l) = tree::find(&func.body, id) else { return Vec::new() };
        let StmtKind::For { iter, extent: Extent::Range { begin, end, step }, props, body } = l.kind() else {
            return Vec::new();
        };
        let with = |by: [i64; 2], props: &LoopProps, body: Stmt| {
            let [begin, end] = [(begin, by[0]), (end, by[1])].map(|(e, by)| e.plus(&Expr::int(by)));
            let (extent, props) = (Extent::Range { begin, end, step: step.clone() }, props.clone());
            tree::replace(func, id, &l.with_kind(StmtKind::For { iter: iter.clone(), extent, props, body }))
        };
        let threads = LoopProps { parallel: Some(Parallel::default()), ..props.clone() };
        let large = local("large", DType::F64, [&Expr::int(1 << 22)]);
        let sometimes = branch(&Expr::var(iter).less(&Expr::int(2)), body.clone(), None);
        let mut out = vec![
            with([0, 0], &threads, body.clone()),
            with([3, 0], props, body.clone()),
            with([3, 3], props, body.clone()),
            with([0, 0], props, sometimes),
            with([0, 0], props, var_def(&large, body.clone())),
        ];
        if let StmtKind::Seq(all) = body.kind() {
            let rest = all.iter().enumerate().map(|(k, s)| if k == 0 { Stmt::nop() } else { s.clone() });
            out.push(with([0, 0], props, body.with_kind(StmtKind::Seq(rest.collect()))));
        }
        out
    }

    #[test]
    fn incremental_estimates_equal_fresh_ones() {
        let program = Program::load(Source::inline("f.ft", PROGRAM), &NoLoader);
        let func = program.elaborate("f", &Default::default(), &NoHooks).unwrap_or_else(|d| panic!("{d}"));
        // The tensors fit into the first cache level, into a later one, and into none.
        for n in [7, 300, 100_000] {
            let target = Target { sizes: [("n".to_string(), n)].into(), ..Target::portable(2) };
            let mut s = Schedule::new(func.clone()).aimed_at(Arc::new(target.clone()));
            let mut programs = vec![func.clone()];
            for rule in rules() {
                s.call(rule.method, &[]).unwrap_or_else(|r| panic!("{}", r.message));
                programs.push(s.func().clone());
            }
            for stage in [Stage::Structure, Stage::Marks] {
                let mut model = Model::new(&target, stage);
                let mut check = |func: &Func| {
                    // Outermost statements are memoised regardless of the rest of the program.
                    model.known.clear();
                    let fresh = Model::new(&target, stage).program(func);
                    assert_eq!(model.program(func).to_bits(), fresh.to_bits(), "{n}: {}", print::func(func));
                };
                for func in programs.iter().step_by(4) {
                    check(func);
                    let mut loops = Vec::new();
                    func.body.walk(&mut |s| loops.push(s.id()));
                    for other in loops.into_iter().flat_map(|l| others(func, l)) {
                        check(&other);
                        check(func);
                    }
                }
            }
        }
    }
}
