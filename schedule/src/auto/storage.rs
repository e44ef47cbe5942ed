//! `auto_storage`: loop order that matches the order in which a structured tensor stores its levels.
//!
//! ```text
//! csc: the columns are stored first               for i: for j     ─▶    for j: for i
//! bcsr(4, 4): (i // 4, j // 4, i % 4, j % 4)      for i: for j     ─▶    for i / 4: for j / 4: for 4 i: for 4 j
//! dia: (j - i, i)                                 for i: for j     ─▶    for j - i: for i
//! ```
//!
//! In any other order lowered code searches for coordinates, or traverses stored elements several times. Trip counts
//! cannot rank the orders, since they depend on the data; lowering reports the search that is left instead.

use super::model::Model;
use super::nest;
use super::structured::{accesses, formats};
use crate::auto::rule::{Candidate, ExtraSteps, Rule};
use crate::refusal::Refusal;
use crate::schedule::Schedule;
use crate::tree::{self, Loop};
use crate::value::{Arg, IndexMap, Value};
use taffeta_ast::format::{Coord, Format};
use taffeta_ast::{Access, ExprKind, Op, Stmt, StmtId, Symbol};

pub(super) const RULE: Rule = Rule {
    method: "auto_storage",
    summary: "Orders loops over structured tensors by the order of the stored levels.",
    why_here: "before all other rules, which keep the order of loops over stored elements",
    gain: 0.0,
    min_gain_sparse: Some(0.0),
    objective: Some(weight),
    rounds: 1,
    sites,
    candidates,
};

/// Maximum depth of a nest to reorder.
const MAX_LOOPS: usize = 6;
/// Number of elements along a diagonal in one part for a thread: few enough for accumulated elements to stay in cache,
/// and enough to read memory in long runs.
const PART: i64 = 1 << 15;
/// Weight of a program that cannot be lowered.
const NEVER: f64 = 1e18;

/// Weighs the search left in lowered code: scans first, then searches, then levels traversed out of order.
fn weight(s: &Schedule) -> f64 {
    s.traversal().map_or(NEVER, |t| 1e9 * t.scans as f64 + 1e3 * t.seeks as f64 + t.order_violations as f64)
}

fn sites(s: &Schedule) -> Vec<StmtId> {
    if !s.is_lowered() || formats(s.func()).is_empty() {
        return Vec::new();
    }
    nest::chains(&s.func().body, 2..=MAX_LOOPS).iter().map(Stmt::id).collect()
}

fn candidates(s: &Schedule, model: &Model<'_>, site: StmtId) -> Vec<Candidate> {
    let Some(root) = tree::find(&s.func().body, site) else { return Vec::new() };
    let loops: Vec<Loop> = nest::chain(&root).iter().filter_map(Loop::of).collect();
    let formats = formats(s.func());
    let mut orders: Vec<Vec<LoopCoord>> = Vec::new();
    if let Some(l) = loops.last() {
        accesses(&l.body, &mut |tensor, at| {
            let format = formats.iter().find(|(t, _)| t == tensor).map(|(_, format)| format);
            let order = format.and_then(|format| stored_order(format, at, &loops));
            orders.extend(order.filter(|o| !orders.contains(o)));
        });
    }
    let in_order =
        |o: &Vec<LoopCoord>| o.windows(2).all(|w| matches!(w, [LoopCoord::Loop(a), LoopCoord::Loop(b)] if a < b));
    orders.retain(|o| !in_order(o));
    orders.into_iter().map(|order| choice(s, &loops, order, model.target.threads > 1)).collect()
}

/// Iterator of a loop in the new order, in terms of the loops of the nest, which are given by position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LoopCoord {
    Loop(usize),
    /// Quotient of an iterator by a constant.
    Block(usize, i64),
    /// Remainder of an iterator by a constant.
    Within(usize, i64),
    /// First loop's iterator minus the second's.
    Diagonal(usize, usize),
}

/// Returns the order in which a format stores the elements of an access, if its coordinates are iterators of the nest,
/// functions of them, or invariant in the nest, and at least two loops take part.
fn stored_order(format: &Format, at: &[Access], loops: &[Loop]) -> Option<Vec<LoopCoord>> {
    let iter = |d: usize| match at[d].index.kind() {
        ExprKind::Var(v) => loops.iter().position(|l| l.iter == *v),
        _ => None,
    };
    let mut out: Vec<LoopCoord> = Vec::new();
    // The diagonal and the other index determine this iterator, so it needs no loop.
    let follows = |out: &[LoopCoord], k: usize| {
        out.iter().any(|p| match p {
            LoopCoord::Diagonal(a, b) => {
                (k == *a && out.contains(&LoopCoord::Loop(*b))) || (k == *b && out.contains(&LoopCoord::Loop(*a)))
            }
            _ => false,
        })
    };
    let mut add = |p: LoopCoord| {
        let known = out.contains(&p) || matches!(p, LoopCoord::Loop(k) if follows(&out, k));
        out.extend((!known).then_some(p));
    };
    for c in format.coords.iter() {
        match c {
            // Indices invariant in the nest need no loop.
            Coord::Dim(d) => iter(*d).into_iter().for_each(|k| add(LoopCoord::Loop(k))),
            // Slots (`Counter`) get no loop of their own: they are traversed row by row.
            Coord::Counter(_) | Coord::Int(_) => {}
            Coord::Apply(op, args) => match (op, &**args) {
                (Op::FloorDiv, [Coord::Dim(d), Coord::Int(by)]) => add(LoopCoord::Block(iter(*d)?, *by)),
                (Op::Mod, [Coord::Dim(d), Coord::Int(by)]) => add(LoopCoord::Within(iter(*d)?, *by)),
                (Op::Sub, [Coord::Dim(a), Coord::Dim(b)]) => add(LoopCoord::Diagonal(iter(*a)?, iter(*b)?)),
                _ => return None,
            },
            _ => return None,
        }
    }
    (out.len() > 1).then_some(out)
}

fn choice(s: &Schedule, loops: &[Loop], order: Vec<LoopCoord>, threads: bool) -> Candidate {
    let names: Vec<String> = loops.iter().map(|l| s.called(&l.stmt)).collect();
    let text = |p: &LoopCoord| match p {
        LoopCoord::Loop(k) => names[*k].clone(),
        LoopCoord::Block(k, by) => format!("{} // {by}", names[*k]),
        LoopCoord::Within(k, by) => format!("{} % {by}", names[*k]),
        LoopCoord::Diagonal(a, b) => format!("{} - {}", names[*a], names[*b]),
    };
    let steps = format!("loops over ({})", order.iter().map(text).collect::<Vec<_>>().join(", "));
    let ids: Vec<StmtId> = loops.iter().map(|l| l.stmt.id()).collect();
    Candidate::new(steps, move |s| apply(s, &ids, &order, threads))
}

/// Splits and reorders the loops of a nest as `order` says; loops missing in `order` follow.
fn apply(s: &mut Schedule, nest: &[StmtId], order: &[LoopCoord], threads: bool) -> Result<ExtraSteps, Refusal> {
    let mut steps = Vec::new();
    let loops = nest::perfect(s, nest, &mut steps)?;
    let mut blocks: Vec<(usize, [Value; 2])> = Vec::new();
    for p in order {
        if let LoopCoord::Block(k, by) = p {
            steps.push(format!("split({}, {by})", named(s, &loops[*k])));
            let (outer, inner) = nest::halves(s.call("split", &[Arg::from(loops[*k].clone()), Arg::from(*by)])?)?;
            blocks.push((*k, [outer, inner]));
        }
    }
    let half = |k: usize, which: usize| {
        let found = blocks.iter().find(|(b, _)| *b == k).map(|(_, halves)| halves[which].clone());
        found.ok_or_else(|| Refusal::target("the format stores the remainder of an index, but not its quotient"))
    };
    if let Some(LoopCoord::Diagonal(a, b)) = order.iter().find(|p| matches!(p, LoopCoord::Diagonal(..))) {
        return diagonals(s, &loops, (*a, *b), (order, threads), steps);
    }
    let mut new: Vec<Value> = Vec::new();
    for p in order {
        new.push(match p {
            LoopCoord::Loop(k) => loops[*k].clone(),
            LoopCoord::Block(k, _) => half(*k, 0)?,
            LoopCoord::Within(k, _) => half(*k, 1)?,
            LoopCoord::Diagonal(..) => continue,
        });
    }
    let moved = |k: usize| {
        let of = |p: &LoopCoord| match p {
            LoopCoord::Loop(l) | LoopCoord::Block(l, _) | LoopCoord::Within(l, _) => *l == k,
            LoopCoord::Diagonal(a, b) => *a == k || *b == k,
        };
        order.iter().any(of)
    };
    let first = (0..loops.len()).find(|k| moved(*k)).unwrap_or(0);
    new.extend((first..loops.len()).filter(|k| !moved(*k)).map(|k| loops[k].clone()));
    let names: Vec<String> = new.iter().map(|l| named(s, l)).collect();
    steps.push(format!("reorder([{}])", names.join(", ")));
    s.call("reorder", &[Arg::from(Value::List(new))])?;
    Ok(ExtraSteps { after: steps, ..ExtraSteps::default() })
}

/// Permutes a pair of loops to one over the diagonals and one along each of them. For threads the loop along a diagonal
/// is first split into parts to share, since all diagonals may update the same element.
fn diagonals(
    s: &mut Schedule,
    loops: &[Value],
    (a, b): (usize, usize),
    (order, threads): (&[LoopCoord], bool),
    mut steps: Vec<String>,
) -> Result<ExtraSteps, Refusal> {
    let along = match order {
        [LoopCoord::Diagonal(..), LoopCoord::Loop(k)] if *k == a || *k == b => k,
        _ => return Err(Refusal::target("the coordinate stored beside the diagonal is not one of its indices")),
    };
    // Makes the pair adjacent; the loops between them move inside.
    let pair = [a.min(b), a.max(b)];
    if pair[1] != pair[0] + 1 {
        let rest = (pair[0]..loops.len()).filter(|k| !pair.contains(k));
        let all: Vec<Value> = pair.into_iter().chain(rest).map(|k| loops[k].clone()).collect();
        steps.push(format!("reorder([{}])", all.iter().map(|l| named(s, l)).collect::<Vec<_>>().join(", ")));
        s.call("reorder", &[Arg::from(Value::List(all))])?;
    }
    let mut two: Vec<Value> = pair.iter().map(|k| loops[*k].clone()).collect();
    if threads {
        let k = usize::from(*along == pair[1]);
        steps.push(format!("split({}, {PART})", named(s, &two[k])));
        let (outer, inner) = nest::halves(s.call("split", &[Arg::from(two[k].clone()), Arg::from(PART)])?)?;
        two[k] = inner;
        if k == 1 {
            let order = vec![outer, two[0].clone(), two[1].clone()];
            steps.push(format!("reorder([{}])", order.iter().map(|l| named(s, l)).collect::<Vec<_>>().join(", ")));
            s.call("reorder", &[Arg::from(Value::List(order))])?;
        }
    }
    let names: Vec<String> = two.iter().map(|l| named(s, l)).collect();
    let params = ["i", "j"].map(Symbol::new);
    let of = |k: usize| taffeta_ast::Expr::var(&params[usize::from(k == pair[1])]);
    let results = vec![of(a).minus(&of(b)), of(*along)];
    let (sign, kept) = (if a == pair[0] { "i - j" } else { "j - i" }, if *along == pair[0] { "i" } else { "j" });
    steps.push(format!("permute([{}], lambda i, j: ({sign}, {kept}))", names.join(", ")));
    let map = Value::Map(IndexMap { params: params.to_vec(), results });
    s.call("permute", &[Arg::from(Value::List(two)), Arg::from(map)])?;
    Ok(ExtraSteps { after: steps, ..ExtraSteps::default() })
}

/// Returns the loop's selector in quotes.
fn named(s: &Schedule, l: &Value) -> String {
    s.loop_(&Arg::from(l.clone())).map(|l| format!("\"{}\"", s.called(&l.stmt))).unwrap_or_default()
}
