//! `auto_tile`: register blocking of contractions; a block of the result stays in registers while the sum runs.
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
//! The *vector* loop runs along rows of the result, the *row* loop over rows for which the same vectors are loaded; the
//! reduction loops run around the block. The rule serves all sums of products that libraries lack: convolutions,
//! products in pieces, weighted sums of neighbours. Partial blocks at the ends of rows and columns are peeled.
//! Statements before and after the sum, mostly its initialisation, are first distributed into loops of their own;
//! several terms of a sum may stand in the innermost loop, as `auto_blend` leaves them. Sums into several tensors
//! there, as in gradients of contractions, are distributed into nests of their own, if one of these can then be
//! blocked.

use super::model::Model;
use super::model::access::{StrideClass, growth};
use super::nest;
use super::trip_counts::Basis;
use crate::auto::rule::{Candidate, ExtraSteps, Rule};
use crate::block::Block;
use crate::refusal::Refusal;
use crate::schedule::Schedule;
use crate::tree::{self, Loop};
use crate::value::{Arg, Handle, Value};
use taffeta_analysis::query::effects;
use taffeta_ast::{Expr, ExprKind, Stmt, StmtId, StmtKind, Symbol};

pub(super) const RULE: Rule = Rule {
    method: "auto_tile",
    summary: "Sums blocks of contractions in registers.",
    why_here: "after the order of loops is chosen, since it takes nests apart, and before lanes and threads, which \
               tiles get too",
    gain: crate::auto::rule::MIN_GAIN_STRUCTURAL,
    min_gain_sparse: None,
    objective: None,
    rounds: 1,
    sites,
    candidates,
};

/// Maximum depth of a contraction.
const MAX_LOOPS: usize = 7;
/// Maximum number of statements in the innermost loop.
const MAX_TERMS: usize = 4;
/// Candidate block shapes in rows and vectors; each leaves registers for operands.
const BLOCKS: [(i64, i64); 5] = [(4, 2), (6, 2), (4, 3), (3, 4), (2, 4)];
/// Maximum number of shapes tried per row loop: the ones with the least wasted work.
const MAX_BLOCKS: usize = 3;
/// Maximum number of vectors in a row that is not split.
const WHOLE: i64 = 4;

fn sites(s: &Schedule) -> Vec<StmtId> {
    let mut out = Vec::new();
    nest::loops_in(&s.func().body).iter().for_each(|l| gather(l, &mut out));
    out
}

/// Collects the outermost loops of nests that may be contractions.
fn gather(l: &Stmt, out: &mut Vec<StmtId>) {
    let nest = nest::deepest(l);
    if nest.len() >= 3 {
        out.push(l.id());
    }
    // Nests may also start beside the loops of this nest, or in its innermost loop.
    for (k, own) in nest.iter().enumerate() {
        let next = nest.get(k + 1).map(Stmt::id);
        let inside = Loop::of(own).map(|l| nest::loops_in(&l.body)).unwrap_or_default();
        inside.iter().filter(|l| Some(l.id()) != next).for_each(|l| gather(l, out));
    }
    if nest.is_empty() {
        let inside = l.kind().children().into_iter().flat_map(nest::loops_in).collect::<Vec<_>>();
        inside.iter().for_each(|l| gather(l, out));
    }
}

/// Sum of products in a nest. Other statements may stand only before and after its reduction loops. Loops are given by
/// position in `loops`.
struct Contraction {
    loops: Vec<Stmt>,
    /// Loops over rows of the result for which the same vectors are loaded.
    rows: Vec<usize>,
    /// Loop along the rows of the result.
    vector: usize,
    sums: Vec<usize>,
    result: Symbol,
    /// Number of elements per vector.
    lanes: i64,
}

impl Contraction {
    fn of(nest: Vec<Stmt>, vector_bytes: usize) -> Option<Contraction> {
        let last = Loop::of(nest.last()?)?;
        let terms = Block::of(&last.body).items;
        let (result, at, size) = updated(&terms)?;
        let iters: Vec<Symbol> = nest.iter().filter_map(Loop::of).map(|l| l.iter).collect();
        // A reduction loop must contain nothing else; from other loops the rest can be distributed.
        let alone = |k: usize| k + 1 == nest.len() || nest::is_alone(&nest[k], &nest[k + 1]);
        let sums = |k: usize| !at.iter().any(|e| effects::mentions(e, &[&iters[k]]));
        let first = (0..nest.len()).rev().take_while(|k| alone(*k) || !sums(*k)).last()?;
        let (loops, iters) = (nest[first..].to_vec(), iters[first..].iter().collect::<Vec<_>>());
        let result_growth = growth(at.iter(), &iters);
        let loads: Vec<Vec<StrideClass>> = terms.iter().flat_map(|t| loads(t, &iters)).collect();
        let along =
            |k: &usize| result_growth[*k] == StrideClass::One && loads.iter().all(|l| l[*k] <= StrideClass::One);
        let vector = (0..loops.len()).rev().find(along)?;
        let again = |k: &usize| loads.iter().all(|l| l[vector] == StrideClass::None || l[*k] == StrideClass::None);
        let rows: Vec<usize> =
            (0..loops.len()).filter(|k| *k != vector && result_growth[*k] != StrideClass::None).filter(again).collect();
        let sums: Vec<usize> = (0..loops.len()).filter(|k| result_growth[*k] == StrideClass::None).collect();
        let lanes = (vector_bytes / size).max(1) as i64;
        let known = !sums.is_empty() && loops.len() >= 3;
        known.then_some(Contraction { loops, rows, vector, sums, result, lanes })
    }
}

/// Returns the element that all statements, at most `MAX_TERMS`, reduce into: its tensor, its indices and its size in
/// bytes.
fn updated(terms: &[Stmt]) -> Option<(Symbol, Vec<Expr>, usize)> {
    let update = |s: &Stmt| match s.kind() {
        StmtKind::ReduceTo { tensor, indices, value, .. } => {
            let at = indices.iter().map(|a| a.index.clone()).collect::<Vec<_>>();
            Some((tensor.clone(), at, value.dtype().size()))
        }
        _ => None,
    };
    let found = update(terms.first()?)?;
    let same = terms.iter().all(|s| update(s).as_ref() == Some(&found));
    (same && terms.len() <= MAX_TERMS).then_some(found)
}

/// Returns the stride class in each loop of every load of a statement.
fn loads(s: &Stmt, iters: &[&Symbol]) -> Vec<Vec<StrideClass>> {
    let StmtKind::ReduceTo { value, .. } = s.kind() else { return Vec::new() };
    let mut out = Vec::new();
    value.walk(&mut |e: &Expr| {
        if let ExprKind::Load(_, at) = e.kind()
            && !at.is_empty()
        {
            out.push(growth(at.iter().map(|a| &a.index), iters));
        }
    });
    out
}

fn candidates(s: &Schedule, model: &Model<'_>, site: StmtId) -> Vec<Candidate> {
    let Some(root) = tree::find(&s.func().body, site) else { return Vec::new() };
    let nest = nest::deepest(&root);
    match Contraction::of(nest.clone(), model.target.vector_bytes) {
        Some(c) => plans(s, model, &c).into_iter().map(|plan| plan.choice(s)).collect(),
        None => parted(s, model, &nest).into_iter().collect(),
    }
}

/// Plans blocks of a contraction, by increasing wasted work for each row loop.
fn plans(s: &Schedule, model: &Model<'_>, c: &Contraction) -> Vec<Plan> {
    let registers = model.target.registers() as i64;
    let mut out = Vec::new();
    if c.loops.len() > MAX_LOOPS {
        return out;
    }
    let length = |k: usize| Loop::of(&c.loops[k]).map_or(1.0, |l| model.trips(s.func(), &c.loops[..k], &l).value);
    for row in c.rows.iter().rev().take(2) {
        let lengths = [length(*row), length(c.vector)];
        let wasted = |(rows, vectors): &(i64, i64)| wasted([*rows as f64, *vectors as f64], lengths, c.lanes as f64);
        let mut blocks: Vec<_> = BLOCKS.into_iter().filter(|(rows, vectors)| rows * vectors <= registers).collect();
        blocks.sort_by(|a, b| wasted(a).total_cmp(&wasted(b)));
        blocks.truncate(MAX_BLOCKS);
        out.extend(blocks.into_iter().map(|(rows, vectors)| Plan::new(s, model, c, *row, rows, vectors * c.lanes)));
    }
    out
}

/// Returns the candidate to distribute the sums of an innermost loop into nests, and to block those nests that are
/// contractions.
fn parted(s: &Schedule, model: &Model<'_>, nest: &[Stmt]) -> Option<Candidate> {
    let last = Loop::of(nest.last()?)?;
    let terms = Block::of(&last.body).items;
    let (sums, others): (Vec<Stmt>, Vec<Stmt>) =
        terms.into_iter().partition(|t| matches!(t.kind(), StmtKind::ReduceTo { .. }));
    if nest.len() < 3 || !(2..=MAX_TERMS).contains(&sums.len()) {
        return None;
    }
    // Scalars computed before the sums are recomputed at their uses.
    let scalars: nest::Scalars = others.iter().filter_map(scalar).collect();
    // Each sum is planned as if it stood alone in the loops.
    let plan = |sum: &Stmt| {
        let c = Contraction::of(alone(nest, sum, &scalars)?, model.target.vector_bytes)?;
        plans(s, model, &c).into_iter().next()
    };
    let plans: Vec<Option<Plan>> = sums.iter().map(plan).collect();
    let steps = plans.iter().flatten().map(|p| p.steps(s)).collect::<Vec<_>>();
    if steps.is_empty() {
        return None;
    }
    let steps = format!("{} nests of \"{}\", {}", sums.len(), s.called(&nest[0]), steps.join(", "));
    let loops: Vec<StmtId> = nest.iter().map(Stmt::id).collect();
    let sums: Vec<StmtId> = sums.iter().map(Stmt::id).collect();
    Some(Candidate::new(steps, move |s| {
        for (t, _) in &scalars {
            s.call("inline", &[Arg::from(Value::Handle(Handle::Tensor(t.clone())))])?;
        }
        let mut before = Vec::new();
        let whole = nest::perfect(s, &loops, &mut before)?;
        let mut rest = whole.first().cloned().ok_or_else(|| Refusal::target("there is no loop"))?;
        for sum in &sums[1..] {
            (_, rest) = nest::halves(s.call("fission", &[Arg::from(rest), Arg::named("before", *sum)])?)?;
        }
        for (sum, plan) in sums.iter().zip(&plans) {
            let Some(plan) = plan else { continue };
            // The plan was made for the innermost loops around the sum.
            let around = s.around(*sum);
            let own = around.iter().skip(around.len().saturating_sub(plan.loops.len())).map(Stmt::id).collect();
            Plan { loops: own, ..plan.clone() }.apply(s)?;
        }
        Ok(ExtraSteps { before, ..ExtraSteps::default() })
    }))
}

/// Returns the local scalar that a statement stores, with its defining expression.
fn scalar(s: &Stmt) -> Option<(Symbol, Expr)> {
    match s.kind() {
        StmtKind::Store { tensor, indices, value } if indices.is_empty() => Some((tensor.clone(), value.clone())),
        _ => None,
    }
}

/// Builds the nest with one of its sums alone in the innermost loop, and scalars replaced by their defining
/// expressions.
fn alone(nest: &[Stmt], sum: &Stmt, scalars: &[(Symbol, Expr)]) -> Option<Vec<Stmt>> {
    let mut out: Vec<Stmt> = Vec::new();
    let StmtKind::ReduceTo { tensor, indices, op, value } = sum.kind() else { return None };
    let value = nest::substitute_scalars(value, scalars);
    let mut body =
        sum.with_kind(StmtKind::ReduceTo { tensor: tensor.clone(), indices: indices.clone(), op: *op, value });
    for l in nest.iter().rev() {
        let StmtKind::For { iter, extent, props, .. } = l.kind() else { return None };
        let (iter, extent, props) = (iter.clone(), extent.clone(), props.clone());
        body = l.with_kind(StmtKind::For { iter, extent, props, body });
        out.push(body.clone());
    }
    out.reverse();
    Some(out)
}

/// Returns the work of a block shape per useful multiply-add: excess multiply-adds of partial blocks at the ends of
/// rows and columns of these lengths, and operand loads. (Making and peeling a block takes long, so this value selects
/// the blocks to make.)
fn wasted([rows, vectors]: [f64; 2], [height, width]: [f64; 2], lanes: f64) -> f64 {
    let whole = |n: f64, part: f64| if n > 0.0 { (n / part).ceil() * part / n } else { 1.0 };
    whole(height, rows) * whole(width, vectors * lanes) * (1.0 + 1.0 / rows + 1.0 / vectors)
}

/// Plan of blocks for a contraction: the loops with their roles, and the shape of a block in elements.
#[derive(Clone)]
struct Plan {
    loops: Vec<StmtId>,
    row: usize,
    vector: usize,
    sums: Vec<usize>,
    result: Symbol,
    rows: i64,
    columns: i64,
    /// Whether rows of the result are short enough to be blocks unsplit.
    whole: bool,
}

impl Plan {
    fn new(s: &Schedule, model: &Model<'_>, c: &Contraction, row: usize, rows: i64, columns: i64) -> Plan {
        let length = Loop::of(&c.loops[c.vector]).map(|l| model.trips(s.func(), &[], &l));
        let whole = length.is_some_and(|n| n.basis == Basis::Fact && n.value <= (WHOLE * c.lanes) as f64);
        Plan {
            loops: c.loops.iter().map(Stmt::id).collect(),
            row,
            vector: c.vector,
            sums: c.sums.clone(),
            result: c.result.clone(),
            rows,
            columns,
            whole,
        }
    }

    fn choice(self, s: &Schedule) -> Candidate {
        Candidate::new(self.steps(s), move |s| self.apply(s))
    }

    /// Describes the steps in one phrase, for decisions.
    fn steps(&self, s: &Schedule) -> String {
        let called = |k: usize| tree::find(&s.func().body, self.loops[k]).map_or(String::new(), |l| s.called(&l));
        let columns = match self.whole {
            true => String::new(),
            false => format!(", \"{}\" {}", called(self.vector), self.columns),
        };
        format!("blocks of \"{}\" {}{columns} in registers", called(self.row), self.rows)
    }

    fn apply(&self, s: &mut Schedule) -> Result<ExtraSteps, Refusal> {
        let mut before = Vec::new();
        let loops = nest::perfect(s, &self.loops, &mut before)?;
        let at = |k: usize| Arg::from(loops[k].clone());
        let (row, row_in) = nest::halves(s.call("split", &[at(self.row), Arg::from(self.rows)])?)?;
        let (column, column_in) = match self.whole {
            true => (None, loops[self.vector].clone()),
            false => {
                let made = s.call("split", &[at(self.vector), Arg::from(self.columns)])?;
                let (outer, inner) = nest::halves(made)?;
                (Some(outer), inner)
            }
        };
        let own = |k: &usize| *k != self.row && *k != self.vector && !self.sums.contains(k);
        let around = (0..loops.len()).filter(own).map(|k| loops[k].clone());
        let order: Vec<Value> = around
            .chain([row.clone()])
            .chain(column.clone())
            .chain(self.sums.iter().map(|k| loops[*k].clone()))
            .chain([column_in.clone(), row_in.clone()])
            .collect();
        s.call("reorder", &[Arg::from(Value::List(order))])?;
        let result = Value::Handle(Handle::Tensor(self.result.clone()));
        s.call("cache_reduction", &[at(self.sums[0]), Arg::from(result)])?;
        s.call("unroll", &[Arg::from(row_in)])?;
        s.call("vectorize", &[Arg::from(column_in)])?;
        // Without partial blocks there is no tail to peel.
        for l in column.into_iter().chain([row]) {
            nest::attempt(s, "separate_tail", &[Arg::from(l)]);
        }
        Ok(ExtraSteps { before, ..ExtraSteps::default() })
    }
}
