//! `auto_tile`: contractions in blocks of their result that stay in registers while the sum runs.
//!
//! ```text
//! for i: for j: for k: c[i, j] += a[i, k] * b[k, j]
//!     ─▶
//! for i / 4: for j / 16:
//!     sums of 4 × 16 elements in registers
//!     for k:
//!         for 16 columns, in vectors:     a row of b is loaded once for 4 rows of c
//!             4 multiply-adds
//! ```
//!
//! The *vector* loop goes along the rows of the result, the *row* loop over rows for which the same vectors are loaded;
//! the loops that sum run around the block. So this is for all sums of products that libraries do not know:
//! convolutions, products in pieces, weighted sums of neighbours. Blocks at the ends of rows and columns are loops of
//! their own.

use super::model::Model;
use super::model::touch::{Growth, growth};
use super::{Choice, Known, Others, Rule, nest};
use crate::block::Block;
use crate::refusal::Refusal;
use crate::schedule::Schedule;
use crate::tree::{self, Loop};
use crate::value::{Arg, Handle, Value};
use taffeta_ast::{Expr, ExprKind, Stmt, StmtId, StmtKind, Symbol};

pub(super) const RULE: Rule = Rule {
    method: "auto_tile",
    summary: "Sums blocks of contractions in registers.",
    why_here: "after the order of loops is chosen, whose nests it takes apart, and before lanes and threads, which tiles \
               get too",
    gain: super::STRUCTURE,
    near_stored: false,
    rounds: 1,
    sites,
    options,
};

/// Loops of a contraction of which more are left alone.
const MOST_LOOPS: usize = 7;
/// Rows and vectors of blocks that are tried: they leave registers for what is loaded.
const BLOCKS: [(i64, i64); 5] = [(4, 2), (6, 2), (4, 3), (3, 4), (2, 4)];
/// Vectors of a row that is not cut.
const WHOLE: i64 = 4;

fn sites(s: &Schedule) -> Vec<StmtId> {
    nest::chains(&s.func().body, 3..=MOST_LOOPS).iter().map(Stmt::id).collect()
}

/// A sum of products in loops that have nothing else in them.
struct Contraction {
    loops: Vec<Stmt>,
    /// Over rows of the result for which the same vectors are loaded.
    rows: Vec<usize>,
    /// Along the rows of the result.
    vector: usize,
    sums: Vec<usize>,
    result: Symbol,
    /// Elements of a vector.
    lanes: i64,
}

impl Contraction {
    fn of(chain: Vec<Stmt>, vector_bytes: usize) -> Option<Contraction> {
        if chain.windows(2).any(|pair| !nest::is_alone(&pair[0], &pair[1])) {
            return None;
        }
        let last = Loop::of(chain.last()?)?;
        let block = Block::of(&last.body);
        let [update] = block.items.as_slice() else { return None };
        let StmtKind::ReduceTo { tensor, indices, value, .. } = update.kind() else { return None };
        let iters: Vec<Symbol> = chain.iter().filter_map(Loop::of).map(|l| l.iter).collect();
        let iters: Vec<&Symbol> = iters.iter().collect();
        let result = growth(indices.iter().map(|a| &a.index), &iters);
        let mut loads: Vec<Vec<Growth>> = Vec::new();
        value.walk(&mut |e: &Expr| {
            if let ExprKind::Load(_, at) = e.kind()
                && !at.is_empty()
            {
                loads.push(growth(at.iter().map(|a| &a.index), &iters));
            }
        });
        let along = |k: &usize| result[*k] == Growth::One && loads.iter().all(|l| l[*k] <= Growth::One);
        let vector = (0..chain.len()).rev().find(along)?;
        let again = |k: &usize| loads.iter().all(|l| l[vector] == Growth::None || l[*k] == Growth::None);
        let rows = (0..chain.len()).filter(|k| *k != vector && result[*k] != Growth::None).filter(again).collect();
        let sums: Vec<usize> = (0..chain.len()).filter(|k| result[*k] == Growth::None).collect();
        let lanes = (vector_bytes / value.dtype().size()).max(1) as i64;
        (!sums.is_empty()).then_some(Contraction { loops: chain, rows, vector, sums, result: tensor.clone(), lanes })
    }
}

fn options(s: &Schedule, model: &Model<'_>, site: StmtId) -> Vec<Choice> {
    let Some(root) = tree::find(&s.func().body, site) else { return Vec::new() };
    let Some(c) = Contraction::of(nest::chain(&root), model.target.vector_bytes) else { return Vec::new() };
    let registers = model.target.registers() as i64;
    let mut out = Vec::new();
    for row in c.rows.iter().rev().take(2) {
        for (rows, vectors) in BLOCKS {
            if rows * vectors <= registers {
                out.push(blocked(s, model, &c, *row, rows, vectors * c.lanes));
            }
        }
    }
    out
}

/// A plan of blocks, with all that is needed to make them.
struct Plan {
    loops: Vec<StmtId>,
    row: usize,
    vector: usize,
    sums: Vec<usize>,
    result: Symbol,
    rows: i64,
    columns: i64,
    /// Whether rows of the result are short enough to be blocks as they are.
    whole: bool,
}

fn blocked(s: &Schedule, model: &Model<'_>, c: &Contraction, row: usize, rows: i64, columns: i64) -> Choice {
    let called = |k: usize| s.called(&c.loops[k]);
    let length = Loop::of(&c.loops[c.vector]).map(|l| model.trips(s.func(), &[], &l));
    let whole = length.is_some_and(|n| n.known == Known::Fact && n.value <= (WHOLE * c.lanes) as f64);
    let plan = Plan {
        loops: c.loops.iter().map(Stmt::id).collect(),
        row,
        vector: c.vector,
        sums: c.sums.clone(),
        result: c.result.clone(),
        rows,
        columns,
        whole,
    };
    let columns = if whole { String::new() } else { format!(", \"{}\" {columns}", called(c.vector)) };
    let steps = format!("blocks of \"{}\" {rows}{columns} in registers", called(row));
    Choice::new(steps, move |s| plan.take(s))
}

impl Plan {
    fn take(&self, s: &mut Schedule) -> Result<Others, Refusal> {
        let (row, row_in) = nest::halves(s.call("split", &[Arg::from(self.loops[self.row]), Arg::from(self.rows)])?)?;
        let (column, column_in) = match self.whole {
            true => (None, Value::from(self.loops[self.vector])),
            false => {
                let made = s.call("split", &[Arg::from(self.loops[self.vector]), Arg::from(self.columns)])?;
                let (outer, inner) = nest::halves(made)?;
                (Some(outer), inner)
            }
        };
        let own = |k: &usize| *k != self.row && *k != self.vector && !self.sums.contains(k);
        let at = |k: usize| Value::from(self.loops[k]);
        let around = (0..self.loops.len()).filter(own).map(at);
        let order: Vec<Value> = around
            .chain([row.clone()])
            .chain(column.clone())
            .chain(self.sums.iter().map(|k| at(*k)))
            .chain([column_in.clone(), row_in.clone()])
            .collect();
        s.call("reorder", &[Arg::from(Value::List(order))])?;
        let result = Value::Handle(Handle::Tensor(self.result.clone()));
        s.call("cache_reduction", &[Arg::from(at(self.sums[0])), Arg::from(result)])?;
        s.call("unroll", &[Arg::from(row_in)])?;
        s.call("vectorize", &[Arg::from(column_in)])?;
        // Where all blocks are whole there is nothing to cut.
        for l in column.into_iter().chain([row]) {
            nest::attempt(s, "separate_tail", &[Arg::from(l)]);
        }
        Ok(Others::default())
    }
}
