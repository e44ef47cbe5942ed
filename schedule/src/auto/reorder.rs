//! `auto_reorder`: interchange of nested loops, so that the innermost one accesses consecutive elements.
//!
//! ```text
//! for i: for j: for k: c[i, j] += a[i, k] * b[k, j]    ─▶    for i: for k: for j: …
//! ```
//!
//! Each loop of a nest is tried as the innermost one, first with the order of the others kept, then with each of the
//! others as the outermost one: data touched by the loops between may then stay in a cache. Where a loop contains more
//! than the next loop, its statements are also tried in loops of their own (`fission`), so that the innermost loop
//! needs no condition for them.
//!
//! Where a loop runs along rows of a tensor and contains several loops, one of which runs down its columns, each inner
//! loop is tried with an outer loop of its own and interchanged:
//!
//! ```text
//! for j:                                     for j: r[j] = 0
//!     r[j] = 0                               for i: for j: r[j] += q[i] * a[i, j]
//!     for i: r[j] += q[i] * a[i, j]   ─▶     for i: for j: a[i, j] -= q[i] * r[j]
//!     for i: a[i, j] -= q[i] * r[j]
//! ```

use super::model::Model;
use super::model::access::{StrideClass, growth};
use super::{nest, structured};
use crate::auto::rule::{Candidate, ExtraSteps, Rule};
use crate::block::Block;
use crate::schedule::Schedule;
use crate::tree::{self, Loop};
use crate::value::{Arg, Value};
use rustc_hash::FxHashMap;
use taffeta_analysis::query::effects;
use taffeta_ast::{Access, Expr, ExprKind, Stmt, StmtId, StmtKind, Symbol};

pub(super) const RULE: Rule = Rule {
    method: "auto_reorder",
    summary: "Orders nested loops so that consecutive iterations access adjacent elements.",
    why_here: "before marks, which fix the order of loops",
    gain: crate::auto::rule::MIN_GAIN_STRUCTURAL,
    min_gain_sparse: None,
    objective: None,
    rounds: 1,
    sites,
    candidates,
};

/// Maximum depth of a nest to permute.
const MAX_LOOPS: usize = 5;

/// Maximum number of loops in a loop to distribute.
const MAX_PARTS: usize = 4;

/// Collects the outermost loops of nests of two or more, and loops that contain several loops.
fn sites(s: &Schedule) -> Vec<StmtId> {
    let mut sites: Vec<StmtId> = nest::chains(&s.func().body, 2..=MAX_LOOPS).iter().map(Stmt::id).collect();
    s.func().body.walk(&mut |l| sites.extend((!columns(l).is_empty()).then(|| l.id())));
    sites
}

/// Returns the loops directly in a loop, if there are several, all unmarked, and one of them has a large stride in an
/// access with unit stride in the outer loop.
fn columns(s: &Stmt) -> Vec<StmtId> {
    let Some(l) = Loop::of(s).filter(|_| nest::is_unmarked(s)) else { return Vec::new() };
    let inner: Vec<Loop> = Block::of(&l.body).items.iter().filter_map(Loop::of).collect();
    if !(2..=MAX_PARTS).contains(&inner.len()) || !inner.iter().all(|i| !nest::has_marks(&i.stmt)) {
        return Vec::new();
    }
    let crosses = |i: &Loop| {
        let mut found = false;
        let mut look = |at: &[Access]| {
            found |= growth(at.iter().map(|a| &a.index), &[&l.iter, &i.iter]) == [StrideClass::One, StrideClass::Far];
        };
        i.body.walk(&mut |s: &Stmt| {
            if let StmtKind::Store { indices, .. } | StmtKind::ReduceTo { indices, .. } = s.kind() {
                look(indices);
            }
            let mut loads = |e: &Expr| {
                if let ExprKind::Load(_, at) = e.kind() {
                    look(at);
                }
            };
            s.kind().exprs().into_iter().for_each(|e| e.walk(&mut loads));
        });
        found
    };
    if inner.iter().any(crosses) { inner.iter().map(|i| i.stmt.id()).collect() } else { Vec::new() }
}

/// Returns the candidate to distribute a loop over the loops in it, and to interchange each of the pairs where that is
/// legal.
fn distribute_and_interchange(s: &Schedule, outer: &Stmt, inner: Vec<StmtId>) -> Candidate {
    let steps = format!("fission(\"{}\") around each loop in it", s.called(outer));
    let outer = outer.id();
    Candidate::new(steps, move |s| {
        let (mut steps, mut refused, mut swapped) = (Vec::new(), None, 0);
        let mut rest = Value::from(outer);
        for i in &inner {
            let own = nest::alone(s, &mut rest, Value::from(*i), &mut steps)?;
            let pair = [Value::from(*i), own];
            let called = pair.clone().map(|l| s.loop_(&Arg::from(l)).map(|l| s.called(&l.stmt)).unwrap_or_default());
            let mut trial = s.trying();
            match trial.call("reorder", &[Arg::from(Value::List(pair.to_vec()))]) {
                Ok(_) => {
                    s.become_tried(trial);
                    steps.push(format!("reorder([\"{}\", \"{}\"])", called[0], called[1]));
                    swapped += 1;
                }
                Err(r) => refused = Some(r),
            }
        }
        match refused {
            Some(r) if swapped == 0 => Err(r),
            _ => Ok(ExtraSteps { after: steps, ..ExtraSteps::default() }),
        }
    })
}

fn candidates(s: &Schedule, _: &Model<'_>, site: StmtId) -> Vec<Candidate> {
    let Some(root) = tree::find(&s.func().body, site) else { return Vec::new() };
    let inner = columns(&root);
    if !inner.is_empty() {
        return vec![distribute_and_interchange(s, &root, inner)];
    }
    let loops = nest::chain(&root);
    let count = loops.len();
    if !(2..=MAX_LOOPS).contains(&count) || goes_in_order(&loops) {
        return Vec::new();
    }
    let mut out: Vec<Candidate> = orders(count).into_iter().map(|order| reordered(s, &loops, &order)).collect();
    // Inner loops with other statements between them are distributed first.
    if let Some(from) = (0..count - 1).rev().find(|k| !nest::is_alone(&loops[*k], &loops[k + 1])) {
        let part = &loops[from..];
        out.extend(orders(part.len()).into_iter().map(|order| cut_out(s, part, &order)));
    }
    out
}

/// Returns whether a perfect nest accesses every tensor with one dimension per loop, in nest order, and no iteration
/// uses a value made by another one: no other order can do better.
fn goes_in_order(loops: &[Stmt]) -> bool {
    let all: Vec<Loop> = loops.iter().filter_map(Loop::of).collect();
    let Some(last) = all.last() else { return false };
    let mut in_order = all.windows(2).all(|l| l[0].body.id() == l[1].stmt.id());
    let mut touched: FxHashMap<Symbol, Vec<Access>> = FxHashMap::default();
    let written = effects::writes(&last.body);
    structured::accesses(&last.body, &mut |tensor, at| {
        let along = |(k, a): (usize, &Access)| {
            let mentions = |l: &Loop| effects::mentions(&a.index, &[&l.iter]);
            all.iter().enumerate().all(|(of, l)| mentions(l) == (of == k))
        };
        in_order &= at.is_empty() || at.len() == all.len() && at.iter().enumerate().all(along);
        if written.contains(tensor) {
            in_order &= touched.entry(tensor.clone()).or_insert_with(|| at.to_vec()).as_slice() == at;
        }
    });
    in_order
}

/// Lists the permutations of `count` loops to try, without the identity: each loop innermost with the order of the
/// others kept, then also with each of the others outermost.
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

fn reordered(s: &Schedule, loops: &[Stmt], order: &[usize]) -> Candidate {
    let ids: Vec<Value> = order.iter().map(|k| loops[*k].id().into()).collect();
    let candidate = Candidate::new(text(s, loops, order), move |s| {
        s.call("reorder", &[Arg::from(Value::List(ids.clone()))]).map(|_| ExtraSteps::default())
    });
    let Some(nest) = in_order(loops, order) else { return candidate };
    let outermost = loops[0].id();
    let lower_bound =
        move |s: &Schedule, model: &mut Model<'_>| model.program(&tree::replace(s.func(), outermost, &nest));
    Candidate { lower_bound: Some(Box::new(lower_bound)), ..candidate }
}

/// Builds the nest in another order without a check of legality; `None` if it is not perfect and rectangular.
fn in_order(loops: &[Stmt], order: &[usize]) -> Option<Stmt> {
    let all: Vec<Loop> = loops.iter().filter_map(Loop::of).collect();
    let iters: Vec<&Symbol> = all.iter().map(|l| &l.iter).collect();
    let is_box = |l: &Loop| [&l.begin, &l.end, &l.step].iter().all(|e| !effects::mentions(e, &iters));
    let are_perfect = all.windows(2).all(|l| l[0].body.id() == l[1].stmt.id());
    if all.len() != loops.len() || !all.iter().all(is_box) || !are_perfect {
        return None;
    }
    let body = all.last()?.body.clone();
    Some(order.iter().rev().fold(body, |body, k| loops[*k].map(&mut |_| body.clone(), &mut Expr::clone)))
}

fn text(s: &Schedule, loops: &[Stmt], order: &[usize]) -> String {
    let names: Vec<String> = order.iter().map(|k| format!("\"{}\"", s.called(&loops[*k]))).collect();
    format!("reorder([{}])", names.join(", "))
}

/// Returns the candidate to permute loops after distribution of the statements between them.
fn cut_out(s: &Schedule, loops: &[Stmt], order: &[usize]) -> Candidate {
    let (steps, ids) = (text(s, loops, order), loops.iter().map(Stmt::id).collect::<Vec<StmtId>>());
    let order = order.to_vec();
    Candidate {
        steps,
        apply: Box::new(move |s| {
            let mut steps = Vec::new();
            let cut = nest::perfect(s, &ids, &mut steps)?;
            let all = order.iter().map(|k| cut[*k].clone()).collect();
            s.call("reorder", &[Arg::from(Value::List(all))])
                .map(|_| ExtraSteps { before: steps, ..ExtraSteps::default() })
        }),
        follow_up: None,
        lower_bound: None,
    }
}
