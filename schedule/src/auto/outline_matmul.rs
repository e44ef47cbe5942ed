//! Matrix products among other statements of a loop, cut out so that one library call can do them for all iterations.
//!
//! ```text
//! for i:                                       for i: t[i, :] = …
//!     t = …                                    for i: for k: for j: y[i, k] += t[i, j] * w[j, k]    # library
//!     for k: for j: y[i, k] += t[j] * w[j, k]  for i: use y[i, :]
//!     use y[i, :]                       ─▶
//! ```
//!
//! Local tensors of an iteration that are used on both sides of a cut are expanded to an element per iteration
//! (`fission`); the estimate includes that cost. Cheap scalars, such as the factors that gradients compute, are
//! recomputed in the product (`inline`).

use super::inline;
use super::nest::{self, Scalars};
use crate::auto::rule::{Candidate, ExtraSteps};
use crate::primitives::as_lib;
use crate::refusal::Refusal;
use crate::schedule::Schedule;
use crate::tree::{self, Loop};
use crate::value::{Arg, Handle, Value};
use rustc_hash::FxHashMap;
use taffeta_analysis::query::effects;
use taffeta_analysis::query::product::Product;
use taffeta_ast::{Access, Expr, ExprKind, ReduceOp, Stmt, StmtId, StmtKind, Symbol};

/// Predicate that accepts a product if it is worth a library call in the nest that starts at the given loop.
pub(super) type Pays<'p> = dyn Fn(StmtId, &Product) -> bool + 'p;

/// Collects the sites of products: additive reductions over a loop, in unmarked loops.
pub(super) fn sums(s: &Schedule) -> Vec<StmtId> {
    let mut out = Vec::new();
    gather_sums(&s.func().body, &mut Vec::new(), &mut out);
    out
}

fn gather_sums(s: &Stmt, way: &mut Vec<Stmt>, out: &mut Vec<StmtId>) {
    if matches!(s.kind(), StmtKind::For { .. }) && !nest::is_unmarked(s) {
        return;
    }
    way.push(s.clone());
    if matches!(s.kind(), StmtKind::ReduceTo { op: ReduceOp::Add, .. }) && sums_over_a_loop(way) {
        out.push(s.id());
    }
    s.kind().children().into_iter().for_each(|c| gather_sums(c, way, out));
    way.pop();
}

/// Returns the candidate to cut a sum's product out of the outermost enclosing loop whose nest is a product that `pays`
/// accepts.
pub(super) fn outermost(s: &Schedule, sum: StmtId, pays: &Pays<'_>) -> Option<Candidate> {
    let outer = among_others(s, sum, pays)?;
    let steps = format!("as_lib of the product in \"{}\", cut out", s.called(&outer));
    let outer = outer.id();
    Some(Candidate::new(steps, move |s| apply(s, outer, sum).map(|()| ExtraSteps::default())))
}

/// Returns the candidate to cut all products out of a loop at once, so that local tensors of its iterations are
/// expanded only once.
pub(super) fn all(s: &Schedule, l: &Loop, pays: &Pays<'_>) -> Option<Candidate> {
    let mut way = tree::path(&s.func().body, l.stmt.id())?;
    way.pop();
    let mut sums = Vec::new();
    gather_sums(&l.stmt, &mut way, &mut sums);
    sums.retain(|sum| around(s, *sum, pays).is_some());
    if sums.len() < 2 {
        return None;
    }
    let steps = format!("as_lib of {} products in \"{}\", cut out", sums.len(), s.called(&l.stmt));
    let apply = move |s: &mut Schedule| {
        let mut refused = None;
        let mut cut = 0;
        for sum in &sums {
            let mut trial = s.trying();
            let Some(outer) = around(&trial, *sum, &|_, _| true).map(|l| l.id()) else { continue };
            match apply(&mut trial, outer, *sum) {
                Ok(()) => {
                    s.become_tried(trial);
                    cut += 1;
                }
                Err(r) => refused = Some(r),
            }
        }
        match refused {
            Some(r) if cut == 0 => Err(r),
            _ => Ok(ExtraSteps::default()),
        }
    };
    Some(Candidate::new(steps, apply))
}

/// Returns the loop found by [`around`], if other statements stand beside the sum in that loop.
fn among_others(s: &Schedule, sum: StmtId, pays: &Pays<'_>) -> Option<Stmt> {
    let outer = around(s, sum, pays)?;
    let way = tree::path(&outer, sum)?;
    let stands_alone = is_end(&way, true) && is_end(&way, false);
    (!stands_alone).then_some(outer)
}

/// Returns the outermost enclosing loop whose nest, reduced to the sum, is a product that `pays` accepts.
fn around(s: &Schedule, sum: StmtId, pays: &Pays<'_>) -> Option<Stmt> {
    let way = tree::path(&s.func().body, sum)?;
    let loops = || way.iter().enumerate().filter(|(_, l)| matches!(l.kind(), StmtKind::For { .. }));
    if loops().any(|(_, l)| !nest::is_unmarked(l)) || !sums_over_a_loop(&way) {
        return None;
    }
    let cheap = inline::cheap(&way[0]);
    let found = |scalars: &dyn Fn(&[Stmt]) -> Scalars| {
        loops().find(|(k, l)| {
            let whole = Loop::of(&alone(&way[*k..], &scalars(&way[*k..]))).and_then(|l| as_lib::sketch(s, &l));
            whole.is_some_and(|p| pays(l.id(), &p))
        })
    };
    found(&|way| scalars(way, &cheap)).or_else(|| found(&|_| Vec::new())).map(|(_, outer)| outer.clone())
}

/// Returns whether some loop around a sum is a reduction loop: its iterator occurs in no index, and the accumulator is
/// declared outside of it. Without such a loop the sum is no product; this check is cheaper than computing the
/// expressions of its scalars.
fn sums_over_a_loop(way: &[Stmt]) -> bool {
    let Some(StmtKind::ReduceTo { tensor, indices, .. }) = way.last().map(Stmt::kind) else { return false };
    let declares = |s: &Stmt| matches!(s.kind(), StmtKind::VarDef { tensor: t, .. } if t.symbol == *tensor);
    let inside = way.iter().rposition(declares).unwrap_or(0);
    way[inside..].iter().any(|s| match s.kind() {
        StmtKind::For { iter, .. } => indices.iter().all(|a| !effects::mentions(&a.index, &[iter])),
        _ => false,
    })
}

/// Cuts off the statements before and after the sum, and has a library execute the rest.
fn apply(s: &mut Schedule, outer: StmtId, sum: StmtId) -> Result<(), Refusal> {
    let mut nest = outer;
    let way = tree::path(&s.func().body, sum).unwrap_or_default();
    let at = way.iter().position(|l| l.id() == outer).unwrap_or(0);
    let scalars = way.get(at).map_or(Vec::new(), |outer| scalars(&way[at..], &inline::cheap(outer)));
    if is_product(s, &alone(&way[at..], &scalars)) {
        for (t, _) in scalars {
            s.call("inline", &[Arg::from(Value::Handle(Handle::Tensor(t)))])?;
        }
    }
    for (side, first, which) in [("before", true, 1), ("after", false, 0)] {
        let way = tree::path(&s.func().body, sum).unwrap_or_default();
        let at = way.iter().position(|l| l.id() == nest).unwrap_or(0);
        if is_end(&way[at..], first) {
            continue;
        }
        let made = s.call("fission", &[Arg::from(nest), Arg::named(side, sum)])?;
        let (first, second) = nest::halves(made)?;
        let part = if which == 0 { first } else { second };
        nest = s.loop_(&Arg::from(part))?.stmt.id();
    }
    s.call("as_lib", &[Arg::from(nest)]).map(drop)
}

/// Returns whether a nest is one product as it stands.
fn is_product(s: &Schedule, nest: &Stmt) -> bool {
    Loop::of(nest).is_some_and(|l| as_lib::sketch(s, &l).is_some())
}

/// Returns cheap scalars around a sum, outermost first, with their defining expressions: the operands of the sum's
/// value, direct and indirect, and the scalars of the innermost loop, which would otherwise be expanded to an element
/// per iteration. `cheap` holds the expressions of cheap tensors ([`inline::cheap`]).
fn scalars(way: &[Stmt], cheap: &FxHashMap<Symbol, Expr>) -> Scalars {
    let Some(StmtKind::ReduceTo { value, .. }) = way.last().map(Stmt::kind) else { return Vec::new() };
    let cheap = |d: &Stmt| match d.kind() {
        StmtKind::VarDef { tensor, .. } if tensor.ndim() == 0 => {
            cheap.get(&tensor.symbol).map(|value| (tensor.symbol.clone(), value.clone()))
        }
        _ => None,
    };
    let mut read = effects::loads(value);
    let mut out = Scalars::new();
    let innermost = way.iter().rposition(|l| matches!(l.kind(), StmtKind::For { .. }));
    for (k, (t, from)) in way.iter().enumerate().rev().filter_map(|(k, d)| Some((k, cheap(d)?))) {
        if read.contains(&t) || innermost.is_some_and(|l| k > l) {
            read.extend(effects::loads(&from));
            out.push((t, from));
        }
    }
    out.reverse();
    out
}

/// Builds the loops around a sum with nothing else in them. Local tensors of their iterations are expanded to an
/// element per iteration, and `scalars` are replaced by their defining expressions.
fn alone(way: &[Stmt], scalars: &[(Symbol, Expr)]) -> Stmt {
    let (mut iters, mut own): (Vec<Expr>, Vec<(Symbol, Vec<Expr>)>) = (Vec::new(), Vec::new());
    for s in way {
        match s.kind() {
            StmtKind::For { iter, .. } => iters.push(Expr::var(iter)),
            StmtKind::VarDef { tensor, .. } => own.push((tensor.symbol.clone(), iters.clone())),
            _ => {}
        }
    }
    let placed = |t: &Symbol, at: &[Access]| -> Vec<Access> {
        let around = own.iter().find(|(o, _)| o == t).map_or(&[][..], |(_, i)| i.as_slice());
        around.iter().cloned().map(Access::from).chain(at.iter().cloned()).collect()
    };
    let value = |e: &Expr| {
        e.rewrite(&mut |e| match e.kind() {
            ExprKind::Load(t, at) => Expr::load(t, placed(t, at), e.dtype()),
            _ => e,
        })
    };
    let mut parts = way.iter().rev();
    let Some(sum) = parts.next() else { return way[0].clone() };
    let StmtKind::ReduceTo { tensor, indices, op, value: v } = sum.kind() else { return sum.clone() };
    let (tensor, indices) = (tensor.clone(), placed(tensor, indices));
    let v = nest::substitute_scalars(v, scalars);
    let update = sum.with_kind(StmtKind::ReduceTo { tensor, indices, op: *op, value: value(&v) });
    parts.fold(update, |body, s| match s.kind() {
        StmtKind::For { iter, extent, props, .. } => {
            s.with_kind(StmtKind::For { iter: iter.clone(), extent: extent.clone(), props: props.clone(), body })
        }
        _ => body,
    })
}

/// Returns whether no statement precedes (`first`) or follows the last statement of the path `way` in the loops around
/// it; `false` if a branch is on the path.
pub(super) fn is_end(way: &[Stmt], first: bool) -> bool {
    way.windows(2).all(|pair| match pair[0].kind() {
        StmtKind::Seq(all) => {
            let end = if first { all.first() } else { all.last() };
            end.is_some_and(|s| s.id() == pair[1].id())
        }
        StmtKind::If { .. } => false,
        _ => true,
    })
}
