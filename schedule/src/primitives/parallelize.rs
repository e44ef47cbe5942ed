#![doc = include_str!("parallelize.md")]

use super::{Entry, Run};
use crate::concurrent::{self, Obstacle};
use crate::refusal::Refusal;
use crate::schedule::{Change, Schedule};
use crate::tree::{self, Loop};
use crate::value::Args;
use taffeta_analysis::query::depend::Dependences;
use taffeta_ast::{Distribution, LoopProps, Parallel, Stmt, StmtKind};

pub(crate) const ENTRY: Entry = Entry {
    name: "parallelize",
    signature: "s.parallelize(L, schedule=\"static\", chunk=…)",
    params: &["loop", "schedule", "chunk"],
    summary: "Runs a loop on several threads.",
    doc: include_str!("parallelize.md"),
    run: Run::Primitive(run),
};

fn run(s: &Schedule, args: &Args<'_>) -> Result<Change, Refusal> {
    let l = s.loop_(args.need("loop")?)?;
    let distribution = match args.str("schedule")? {
        None => Distribution::Static,
        Some(name) => Distribution::ALL.into_iter().find(|d| d.name() == name).ok_or_else(|| {
            Refusal::usage(format!("there is no schedule \"{name}\""))
                .at(args.get("schedule").map_or(taffeta_ast::Span::NONE, |a| a.span))
                .help("it is \"static\", \"dynamic\" or \"guided\"")
        })?,
    };
    let chunk = args.positive("chunk")?.map(|c| u32::try_from(c).unwrap_or(u32::MAX));
    let plan = check(s, &l, Parallel { distribution, chunk })?;
    Ok(Change::new(tree::replace(s.func(), l.stmt.id(), &plan), l.stmt.id().into()))
}

/// The loop as it will be.
fn check(s: &Schedule, l: &Loop, parallel: Parallel) -> Result<Stmt, Refusal> {
    // 1. One level of threads.
    let mut other = s.around(l.stmt.id()).into_iter().find(is_parallel);
    l.stmt.walk(&mut |inner| {
        if is_parallel(inner) {
            other = Some(inner.clone());
        }
    });
    if let Some(o) = other {
        if o.id() == l.stmt.id() {
            return Err(Refusal::illegal(1, "the loop is parallel already").label(o.origin().span(), "this loop"));
        }
        let text = "threads would start threads: the loops are nested in each other";
        return Err(Refusal::illegal(1, text)
            .label(o.origin().span(), "this loop is parallel already")
            .help("merge both loops (`s.merge`), and make the result parallel"));
    }
    if let Some(o) = s.around(l.stmt.id()).into_iter().find(concurrent::is_marked) {
        let text = "vector lanes would start threads: the loops are nested in each other".to_string();
        return Err(Refusal::illegal(1, text).label(o.origin().span(), "this loop is vectorised"));
    }
    let StmtKind::For { iter, extent, props, body } = l.stmt.kind() else { return Ok(l.stmt.clone()) };
    let props = LoopProps { parallel: Some(parallel), ..props.clone() };
    let marked =
        l.stmt.with_kind(StmtKind::For { iter: iter.clone(), extent: extent.clone(), props, body: body.clone() });
    let after = tree::replace(s.func(), l.stmt.id(), &marked);
    match concurrent::shared(&Dependences::inside(&after, marked.id()), &marked) {
        Ok(shared) => Ok(concurrent::with_shared(&marked, shared)),
        // 2. Dependences.
        Err(o @ Obstacle::Dependence(_)) => {
            Err(o.refusal(2, format!("the loop `{}` has a loop-carried dependence", s.called(&l.stmt))))
        }
        // 3. Reductions.
        Err(o @ Obstacle::Reduction(..)) => {
            Err(o.refusal(3, format!("iterations of `{}` reduce into one element", s.called(&l.stmt))))
        }
    }
}

fn is_parallel(s: &Stmt) -> bool {
    matches!(s.kind(), StmtKind::For { props, .. } if props.parallel.is_some())
}
