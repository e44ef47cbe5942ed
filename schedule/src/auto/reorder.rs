//! `auto_reorder`: the order of nested loops, so that the innermost one goes through what lies side by side.
//!
//! ```text
//! for i: for j: for k: c[i, j] += a[i, k] * b[k, j]    ─▶    for i: for k: for j: …
//! ```
//!
//! Each loop of a nest is tried as the innermost one; those around it keep their order. Where that alone does not help,
//! each is also tried as the outermost one: what the others touch may then stay in a cache.

use super::model::Model;
use super::{Choice, Rule};
use crate::schedule::Schedule;
use crate::tree::{self, Loop};
use crate::value::{Arg, Value};
use taffeta_ast::{Stmt, StmtId, StmtKind};

pub(super) const RULE: Rule = Rule {
    method: "auto_reorder",
    summary: "Orders nested loops so that what lies side by side is accessed one after the other.",
    why_here: "before marks, which fix the order of loops",
    sites,
    options,
};

/// Loops of a nest of which more are not moved.
const MOST_LOOPS: usize = 5;

/// The outermost loops of nests of two and more.
fn sites(s: &Schedule) -> Vec<StmtId> {
    let mut out = Vec::new();
    nests(&s.func().body, &mut out);
    out
}

fn nests(s: &Stmt, out: &mut Vec<StmtId>) {
    if matches!(s.kind(), StmtKind::For { .. }) {
        let chain = chain(s);
        if (2..=MOST_LOOPS).contains(&chain.len()) {
            out.push(s.id());
        }
        // What stands in the last loop of the chain may be nests again.
        if let Some(StmtKind::For { body, .. }) = chain.last().map(Stmt::kind) {
            nests(body, out);
        }
        return;
    }
    s.kind().children().into_iter().for_each(|c| nests(c, out));
}

/// A loop and those inside of it, each the only loop of the one before, without marks.
fn chain(s: &Stmt) -> Vec<Stmt> {
    let mut out = Vec::new();
    let mut next = Some(s.clone());
    while let Some(l) = next.take() {
        let StmtKind::For { props, body, .. } = l.kind() else { break };
        if *props != Default::default() || Loop::of(&l).is_none() {
            break;
        }
        let mut inside = Vec::new();
        loops_in(body, &mut inside);
        if let [one] = inside.as_slice() {
            next = Some(one.clone());
        }
        out.push(l);
    }
    out
}

fn loops_in(s: &Stmt, out: &mut Vec<Stmt>) {
    match s.kind() {
        StmtKind::For { .. } => out.push(s.clone()),
        _ => s.kind().children().into_iter().for_each(|c| loops_in(c, out)),
    }
}

fn options(s: &Schedule, _: &Model<'_>, site: StmtId) -> Vec<Choice> {
    let Some(root) = tree::find(&s.func().body, site) else { return Vec::new() };
    let loops = chain(&root);
    let count = loops.len();
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
    let choice = |order: Vec<usize>| {
        let names: Vec<String> = order.iter().map(|k| format!("\"{}\"", s.called(&loops[*k]))).collect();
        let ids: Vec<Value> = order.iter().map(|k| loops[*k].id().into()).collect();
        Choice {
            steps: format!("reorder([{}])", names.join(", ")),
            take: Box::new(move |s| s.call("reorder", &[Arg::from(Value::List(ids.clone()))]).map(drop)),
        }
    };
    orders.into_iter().map(choice).collect()
}
