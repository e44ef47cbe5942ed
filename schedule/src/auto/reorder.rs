//! `auto_reorder`: the order of nested loops, so that the innermost one goes through what lies side by side.
//!
//! ```text
//! for i: for j: for k: c[i, j] += a[i, k] * b[k, j]    ─▶    for i: for k: for j: …
//! ```
//!
//! Each loop of a nest is tried as the innermost one; those around it keep their order. Where that alone does not help,
//! each is also tried as the outermost one: what the others touch may then stay in a cache. Where there is more between
//! two loops than the inner one, that is also tried with loops of its own (`fission`), so that no condition in the
//! innermost loop says when it is its turn.

use super::model::Model;
use super::{Choice, Others, Rule, nest};
use crate::block::Block;
use crate::refusal::Refusal;
use crate::schedule::Schedule;
use crate::tree;
use crate::value::{Arg, Value};
use taffeta_ast::{Stmt, StmtId};

pub(super) const RULE: Rule = Rule {
    method: "auto_reorder",
    summary: "Orders nested loops so that what lies side by side is accessed one after the other.",
    why_here: "before marks, which fix the order of loops",
    gain: super::STRUCTURE,
    near_stored: false,
    rounds: 1,
    sites,
    options,
};

/// Loops of a nest of which more are not moved.
const MOST_LOOPS: usize = 5;

/// The outermost loops of nests of two and more.
fn sites(s: &Schedule) -> Vec<StmtId> {
    nest::chains(&s.func().body, 2..=MOST_LOOPS).iter().map(Stmt::id).collect()
}

fn options(s: &Schedule, _: &Model<'_>, site: StmtId) -> Vec<Choice> {
    let Some(root) = tree::find(&s.func().body, site) else { return Vec::new() };
    let loops = nest::chain(&root);
    let count = loops.len();
    if !(2..=MOST_LOOPS).contains(&count) {
        return Vec::new();
    }
    let mut out: Vec<Choice> = orders(count).into_iter().map(|order| reordered(s, &loops, &order)).collect();
    // The innermost loops that have more between them than each other, cut out first.
    if let Some(from) = (0..count - 1).rev().find(|k| !nest::is_alone(&loops[*k], &loops[k + 1])) {
        let part = &loops[from..];
        out.extend(orders(part.len()).into_iter().map(|order| cut_out(s, part, &order)));
    }
    out
}

/// Orders of so many loops, but for the one that there is: each loop innermost, and with that each other one outermost.
fn orders(count: usize) -> Vec<Vec<usize>> {
    let mut orders: Vec<Vec<usize>> = Vec::new();
    let mut add = |order: Vec<usize>| {
        if order.iter().enumerate().any(|(k, o)| k != *o) && !orders.contains(&order) {
            orders.push(order);
        }
    };
    for inner in 0..count {
        let around = || (0..count).filter(move |k| *k != inner);
        add(around().chain([inner]).collect());
        for outer in around() {
            add([outer].into_iter().chain(around().filter(|k| *k != outer)).chain([inner]).collect());
        }
    }
    orders
}

fn reordered(s: &Schedule, loops: &[Stmt], order: &[usize]) -> Choice {
    let ids: Vec<Value> = order.iter().map(|k| loops[*k].id().into()).collect();
    Choice {
        steps: text(s, loops, order),
        take: Box::new(move |s| s.call("reorder", &[Arg::from(Value::List(ids.clone()))]).map(|_| Others::default())),
        then: None,
        least: None,
    }
}

fn text(s: &Schedule, loops: &[Stmt], order: &[usize]) -> String {
    let names: Vec<String> = order.iter().map(|k| format!("\"{}\"", s.called(&loops[*k]))).collect();
    format!("reorder([{}])", names.join(", "))
}

/// The same, after what stands between the loops was given loops of its own.
fn cut_out(s: &Schedule, loops: &[Stmt], order: &[usize]) -> Choice {
    let (steps, ids) = (text(s, loops, order), loops.iter().map(Stmt::id).collect::<Vec<StmtId>>());
    let order = order.to_vec();
    Choice {
        steps,
        take: Box::new(move |s| {
            let (mut cut, mut steps) = (Vec::new(), Vec::new());
            let mut inner = Value::from(ids[ids.len() - 1]);
            cut.push(inner.clone());
            for l in ids[..ids.len() - 1].iter().rev() {
                inner = alone(s, Value::from(*l), inner, &mut steps)?;
                cut.insert(0, inner.clone());
            }
            let all = order.iter().map(|k| cut[*k].clone()).collect();
            s.call("reorder", &[Arg::from(Value::List(all))]).map(|_| Others { before: steps, ..Others::default() })
        }),
        then: None,
        least: None,
    }
}

/// Gives what stands in a loop before and after another one loops of its own. The loop that has the other one alone.
fn alone(s: &mut Schedule, outer: Value, inner: Value, steps: &mut Vec<String>) -> Result<Value, Refusal> {
    let mut outer = outer;
    for (side, which) in [("before", 1), ("after", 0)] {
        let (l, at) = (s.loop_(&Arg::from(outer.clone()))?, s.loop_(&Arg::from(inner.clone()))?);
        let (items, here) = (Block::of(&l.body).items, at.stmt.id());
        let Some(k) = items.iter().position(|i| i.id() == here) else { continue };
        let others = if side == "before" { k } else { items.len() - 1 - k };
        if others == 0 {
            continue;
        }
        let called = (s.called(&l.stmt), s.called(&at.stmt));
        let made = s.call("fission", &[Arg::from(outer.clone()), Arg::named(side, inner.clone())])?;
        if let Value::List(both) = made {
            outer = both.get(which).cloned().unwrap_or(outer);
        }
        steps.push(format!("fission(\"{}\", {side}=\"{}\")", called.0, called.1));
    }
    Ok(outer)
}
