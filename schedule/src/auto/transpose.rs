//! `auto_transpose`: blocks for loops that go through one tensor along its rows and through another one along its
//! columns.
//!
//! ```text
//! for i: for j: y[j, i] = x[i, j]
//!     ─▶
//! for j / 16: for i / 16:
//!     16 columns j, written out:
//!         for 16 rows i: y[j, i] = x[i, j]
//! ```
//!
//! No order of the loops is good for both: one of them touches a cache line, and soon a page, for each element. In a
//! block all that is brought in is used. Its innermost loops go along what is written, where vectors can.

use super::model::Model;
use super::model::touch::{Growth, growth};
use super::{Choice, Others, Rule, nest};
use crate::block::Block;
use crate::refusal::Refusal;
use crate::schedule::Schedule;
use crate::tree::{self, Loop};
use crate::value::{Arg, Value};
use taffeta_ast::{Expr, ExprKind, Stmt, StmtId, StmtKind, Symbol};

pub(super) const RULE: Rule = Rule {
    method: "auto_transpose",
    summary: "Goes through transposed tensors in blocks.",
    why_here: "after the order of loops is chosen, where no order is good, and before lanes and threads, which blocks \
               get too",
    gain: super::STRUCTURE,
    near_stored: None,
    weighs: None,
    rounds: 1,
    sites,
    options,
};

/// Loops of a nest of which more are left alone.
const MOST_LOOPS: usize = 5;
/// Rows and columns of a block: a cache line of elements of four bytes.
const BLOCK: i64 = 16;

fn sites(s: &Schedule) -> Vec<StmtId> {
    nest::chains(&s.func().body, 2..=MOST_LOOPS).iter().map(Stmt::id).collect()
}

fn options(s: &Schedule, _: &Model<'_>, site: StmtId) -> Vec<Choice> {
    let Some(root) = tree::find(&s.func().body, site) else { return Vec::new() };
    let loops = nest::chain(&root);
    let Some((row, column)) = crossing(&loops) else { return Vec::new() };
    let called = |k: usize| s.called(&loops[k]);
    let steps = format!("blocks of \"{}\" {BLOCK}, \"{}\" {BLOCK}", called(column), called(row));
    let ids: Vec<StmtId> = loops.iter().map(Stmt::id).collect();
    vec![Choice::new(steps, move |s| take(s, &ids, row, column))]
}

/// The loop along the rows of what is written, and the one along the rows of what is read across, in a nest that has
/// nothing but statements in its innermost loop.
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
    let along = |g: &[Growth], k: usize| g[k] == Growth::One;
    let row = (0..loops.len()).find(|k| !written.is_empty() && written.iter().all(|g| along(g, *k)))?;
    let crosses = |g: &&Vec<Growth>| g[row] == Growth::Far;
    let column = (0..loops.len()).find(|k| *k != row && read.iter().filter(crosses).any(|g| along(g, *k)))?;
    Some((row, column))
}

fn take(s: &mut Schedule, loops: &[StmtId], row: usize, column: usize) -> Result<Others, Refusal> {
    let (rows, rows_in) = nest::halves(s.call("split", &[Arg::from(loops[row]), Arg::from(BLOCK)])?)?;
    let (columns, columns_in) = nest::halves(s.call("split", &[Arg::from(loops[column]), Arg::from(BLOCK)])?)?;
    let others = (0..loops.len()).filter(|k| *k != row && *k != column).map(|k| Value::from(loops[k]));
    let order: Vec<Value> = others.chain([columns, rows, columns_in.clone(), rows_in]).collect();
    s.call("reorder", &[Arg::from(Value::List(order))])?;
    s.call("unroll", &[Arg::from(columns_in)]).map(|_| Others::default())
}
