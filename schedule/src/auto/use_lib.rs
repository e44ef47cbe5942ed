//! `auto_use_lib`: matrix products by a library, or by Taffeta's own kernel where there is none.
//!
//! The primitive recognises matrix products and cuts off the statements beside them; the model decides whether a
//! product is large enough for a call. Products among other statements of a loop are cut out of it (`outline_matmul`).

use super::model::Model;
use super::structured::is_near_stored;
use super::{nest, outline_matmul};
use crate::auto::rule::{Candidate, ExtraSteps, Rule};
use crate::primitives::as_lib;
use crate::schedule::Schedule;
use crate::tree::{self, Loop};
use crate::value::Arg;
use std::rc::Rc;
use taffeta_analysis::query::product::{Operand, Product};
use taffeta_ast::{Stmt, StmtId, StmtKind};

pub(super) const RULE: Rule = Rule {
    method: "auto_use_lib",
    summary: "Replaces large matrix products by library calls.",
    why_here: "before rules that change loops, while products stand as written; later rules leave library calls alone",
    gain: crate::auto::rule::MIN_GAIN_STRUCTURAL,
    min_gain_sparse: Some(crate::auto::rule::MIN_GAIN_STRUCTURAL),
    objective: None,
    rounds: 1,
    sites,
    candidates,
};

/// Minimum number of rows, columns and terms of a product worth a call.
const SHORT: f64 = 8.0;

/// Multiply-add limits of Taffeta's own kernel (`taffeta_gemm.h`): one thread below the first, several below the
/// second, a library from there on.
const OWN: [f64; 2] = [96.0 * 96.0 * 96.0, 640.0 * 640.0 * 640.0];

/// Collects loops that contain another one, outermost first, then sums.
fn sites(s: &Schedule) -> Vec<StmtId> {
    let mut out = Vec::new();
    s.func().body.walk(&mut |l| {
        if let StmtKind::For { body, .. } = l.kind()
            && nest::is_unmarked(l)
            && nest::has_loop(body)
        {
            out.push(l.id());
        }
    });
    out.extend(outline_matmul::sums(s));
    out
}

fn candidates(s: &Schedule, model: &Model<'_>, site: StmtId) -> Vec<Candidate> {
    let Some(stmt) = tree::find(&s.func().body, site) else { return Vec::new() };
    let pays = |l: StmtId, p: &Product| is_for_libraries(p) && is_large(s, model, l, p);
    // Outlining from a sparse loop would densify its per-element temporaries.
    let near_stored = is_near_stored(s, &stmt);
    let Some(l) = Loop::of(&stmt) else {
        return outline_matmul::outermost(s, site, &pays)
            .filter(|_| !near_stored)
            .map_or(Vec::new(), |c| on_threads(s, site, c));
    };
    // A nest that a library executes contains no further product.
    if nest::is_in_library(s, site) {
        return Vec::new();
    }
    let Some(p) = as_lib::sketch(s, &l).filter(|p| pays(site, p)) else {
        return outline_matmul::all(s, &l, &pays)
            .filter(|_| !near_stored)
            .map_or(Vec::new(), |c| on_threads(s, site, c));
    };
    // Products of a batch also get a thread each, unless they are large, where a library has threads of its own, or
    // small, where loops are as fast.
    let one = inside(&p).filter(|_| (OWN[0]..OWN[1]).contains(&work(s, model, site, &p)));
    let whole = [site].into_iter().chain(one);
    whole.filter_map(|id| tree::find(&s.func().body, id)).map(|l| product(s, site, &l)).collect()
}

/// Returns the candidates to cut products out of a loop or to keep the loop. A library runs on threads, so the
/// estimates are of the loop, or the rest of it, on threads too.
fn on_threads(s: &Schedule, site: StmtId, cut: Candidate) -> Vec<Candidate> {
    let before: Rc<[StmtId]> = nest::loops_in(&s.func().body).iter().map(Stmt::id).collect();
    let outermost = s.around(site).first().map_or(site, Stmt::id);
    let threads = move |s: &mut Schedule| Ok(nest::on_threads(s, outermost, &before));
    vec![Candidate::keep(threads.clone()), cut.with_follow_up(threads)]
}

/// Returns the outermost loop of a single product of a batch.
fn inside(p: &Product) -> Option<StmtId> {
    let around = p.around();
    let first = around.iter().enumerate().take_while(|(k, l)| k == *l).count();
    (first > 0 && first == around.len()).then(|| p.loops[first].stmt.id())
}

/// Returns the candidate to have a library execute a product. If `outermost` is another loop, the product is one of a
/// batch, whose products are expected to run in parallel, on one thread each.
fn product(s: &Schedule, outermost: StmtId, l: &Stmt) -> Candidate {
    let id = l.id();
    let candidate = Candidate::new(format!("as_lib(\"{}\")", s.called(l)), move |s| {
        s.call("as_lib", &[Arg::from(id)]).map(|_| ExtraSteps::default())
    });
    if id == outermost {
        return candidate;
    }
    let threads = move |s: &mut Schedule| s.call("parallelize", &[Arg::from(outermost)]).map(|_| ExtraSteps::default());
    Candidate { follow_up: Some(Box::new(threads)), ..candidate }
}

/// Returns whether a library has a routine for a product: both operands and the result are matrices with unit stride
/// along rows or columns. (A matrix-vector product reads every element once, and a loop is as fast.)
fn is_for_libraries(p: &Product) -> bool {
    let (Some(row), Some(column)) = (p.row, p.column) else { return false };
    let beside = |o: &Operand, loops: [usize; 2]| {
        o.factors.last().is_some_and(|by| loops.iter().any(|l| by[*l].as_int().is_some_and(|f| f.abs() == 1)))
    };
    beside(&p.c, [row, column]) && beside(&p.a, [row, p.sum]) && beside(&p.b, [p.sum, column])
}

/// Returns the trip counts of a single product's loops: rows, columns, and terms of a sum.
fn trips(s: &Schedule, model: &Model<'_>, site: StmtId, p: &Product) -> Vec<f64> {
    let mut around = s.around(site);
    around.extend(p.loops.iter().map(|l| l.stmt.clone()));
    let trips = |l: usize| {
        let within = around.len() - p.loops.len() + l;
        Loop::of(&p.loops[l].stmt).map_or(0.0, |own| model.trips(s.func(), &around[..within], &own).value)
    };
    [p.row, p.column, Some(p.sum)].into_iter().flatten().map(trips).collect()
}

/// Returns the number of multiply-adds of one product.
fn work(s: &Schedule, model: &Model<'_>, site: StmtId, p: &Product) -> f64 {
    trips(s, model, site, p).into_iter().product()
}

/// Returns whether every dimension of a product is long enough for mostly whole blocks.
fn is_large(s: &Schedule, model: &Model<'_>, site: StmtId, p: &Product) -> bool {
    trips(s, model, site, p).into_iter().all(|n| n >= SHORT)
}
