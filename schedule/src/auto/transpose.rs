//! `auto_transpose`: tiling of nests that traverse one tensor along its rows and another one along its columns.
//!
//! ```text
//! for i: for j: y[j, i] = x[i, j]
//!     ─▶
//! for j / 8: for i / 2:
//!     8 columns j and 2 rows i, written out: y[j, i] = x[i, j]
//! ```
//!
//! Neither loop order suits both tensors: one of them touches a cache line, and soon a page, per element. A block uses
//! all elements of the lines that it reads, and its writes continue those of the block before. Blocks are small,
//! because rows that lie a multiple of a page apart, as power-of-two rows do, map to the same cache sets. Partial
//! blocks are peeled (`separate_tail`).
//!
//! Where computing an element takes longer than moving it, blocks are larger, and their innermost loops run along rows
//! of the written tensor, in vectors:
//!
//! ```text
//! for j / 16: for i / 16:
//!     16 columns j, written out:
//!         for 16 rows i: y[j, i] = exp(x[i, j])
//! ```

use super::model::Model;
use super::model::access::{StrideClass, growth};
use super::model::work::Work;
use super::nest;
use crate::auto::rule::{Candidate, ExtraSteps, Rule};
use crate::block::Block;
use crate::refusal::Refusal;
use crate::schedule::Schedule;
use crate::tree::{self, Loop};
use crate::value::{Arg, Value};
use taffeta_ast::{Expr, ExprKind, Stmt, StmtId, StmtKind, Symbol};

pub(super) const RULE: Rule = Rule {
    method: "auto_transpose",
    summary: "Traverses transposed tensors in blocks.",
    why_here: "after the order of loops is chosen, for nests without a good order, and before lanes and threads, which \
               blocks get too",
    gain: crate::auto::rule::MIN_GAIN_STRUCTURAL,
    min_gain_sparse: None,
    objective: None,
    rounds: 1,
    sites,
    candidates,
};

/// Maximum depth of a nest to tile.
const MAX_LOOPS: usize = 5;
/// Rows and columns of a block that moves elements. (Measured on Zen 3: in blocks of 2 × 8, 4 × 16 and 8 × 8 and in
/// rows of 16, 2048² takes 4.4, 3.9, 7.9 and 9.4 ms; 1000² 0.28, 0.30, 0.32 and 0.30; 2000² 3.8, 3.1, 3.9 and 4.2.
/// Scheduling 64 statements takes a second.)
const MOVED: [i64; 2] = [2, 8];
/// Rows and columns of a block computed in vectors: the longest vector of four-byte elements.
const COMPUTED: [i64; 2] = [16, 16];

fn sites(s: &Schedule) -> Vec<StmtId> {
    nest::chains(&s.func().body, 2..=MAX_LOOPS).iter().map(Stmt::id).collect()
}

fn candidates(s: &Schedule, _: &Model<'_>, site: StmtId) -> Vec<Candidate> {
    let Some(root) = tree::find(&s.func().body, site) else { return Vec::new() };
    let loops = nest::chain(&root);
    let Some((row, column)) = crossing(&loops) else { return Vec::new() };
    let called = |k: usize| s.called(&loops[k]);
    let moves = only_moves(&loops);
    let [rows, columns] = if moves { MOVED } else { COMPUTED };
    let steps = format!("blocks of \"{}\" {columns}, \"{}\" {rows}", called(column), called(row));
    let ids: Vec<StmtId> = loops.iter().map(Stmt::id).collect();
    vec![Candidate::new(steps, move |s| apply(s, &ids, row, column, moves))]
}

/// Returns whether the nest has a single statement, which writes a distinct element per iteration and applies only
/// simple operations: no division, no costly function.
fn only_moves(loops: &[Stmt]) -> bool {
    let loops: Vec<Loop> = loops.iter().filter_map(Loop::of).collect();
    let Some(block) = loops.last().map(|l| Block::of(&l.body)) else { return false };
    let [only] = &block.items[..] else { return false };
    let (StmtKind::Store { indices, .. } | StmtKind::ReduceTo { indices, .. }) = only.kind() else { return false };
    let iters: Vec<&Symbol> = loops.iter().map(|l| &l.iter).collect();
    let mut moves = !growth(indices.iter().map(|a| &a.index), &iters).contains(&StrideClass::None);
    for e in only.kind().exprs() {
        e.walk(&mut |e| moves &= !matches!(e.kind(), ExprKind::Apply(op, _) if Work::of(*op, 4.0).simple == 0.0));
    }
    moves
}

/// Returns the positions of the loop with unit stride in all writes, and of the loop with unit stride in a load that
/// has a large stride in the first loop; `None` unless the nest is perfect.
fn crossing(loops: &[Stmt]) -> Option<(usize, usize)> {
    if loops.windows(2).any(|pair| !nest::is_alone(&pair[0], &pair[1])) {
        return None;
    }
    let iters: Vec<Symbol> = loops.iter().filter_map(Loop::of).map(|l| l.iter).collect();
    let iters: Vec<&Symbol> = iters.iter().collect();
    let block = Block::of(&Loop::of(loops.last()?)?.body);
    if iters.len() != loops.len() || block.items.iter().any(nest::has_loop) {
        return None;
    }
    let (mut written, mut read) = (Vec::new(), Vec::new());
    for s in &block.items {
        if let StmtKind::Store { indices, .. } | StmtKind::ReduceTo { indices, .. } = s.kind() {
            written.push(growth(indices.iter().map(|a| &a.index), &iters));
        }
        for e in s.kind().exprs() {
            e.walk(&mut |e: &Expr| {
                if let ExprKind::Load(_, at) = e.kind()
                    && !at.is_empty()
                {
                    read.push(growth(at.iter().map(|a| &a.index), &iters));
                }
            });
        }
    }
    let along = |g: &[StrideClass], k: usize| g[k] == StrideClass::One;
    let row = (0..loops.len()).find(|k| !written.is_empty() && written.iter().all(|g| along(g, *k)))?;
    let crosses = |g: &&Vec<StrideClass>| g[row] == StrideClass::Far;
    let column = (0..loops.len()).find(|k| *k != row && read.iter().filter(crosses).any(|g| along(g, *k)))?;
    Some((row, column))
}

fn apply(s: &mut Schedule, loops: &[StmtId], row: usize, column: usize, moves: bool) -> Result<ExtraSteps, Refusal> {
    let by = if moves { MOVED } else { COMPUTED };
    let (rows, rows_in) = nest::halves(s.call("split", &[Arg::from(loops[row]), Arg::from(by[0])])?)?;
    let (columns, columns_in) = nest::halves(s.call("split", &[Arg::from(loops[column]), Arg::from(by[1])])?)?;
    let others = (0..loops.len()).filter(|k| *k != row && *k != column).map(|k| Value::from(loops[k]));
    let inner = [columns.clone(), rows.clone(), columns_in.clone(), rows_in.clone()];
    s.call("reorder", &[Arg::from(Value::List(others.chain(inner).collect()))])?;
    if moves {
        s.call("unroll", &[Arg::from(rows_in)])?;
    }
    s.call("unroll", &[Arg::from(columns_in)])?;
    // Without partial blocks there is no tail to peel.
    for l in [rows, columns].into_iter().filter(|_| moves) {
        nest::attempt(s, "separate_tail", &[Arg::from(l)]);
    }
    Ok(ExtraSteps::default())
}
