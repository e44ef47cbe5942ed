#![doc = include_str!("parallelize.md")]

use super::mark;
use crate::concurrent::{self, Obstacle};
use crate::entry::{Entry, Run};
use crate::refusal::Refusal;
use crate::schedule::{Change, Schedule};
use crate::structured;
use crate::tree::{self, Loop};
use crate::value::Args;
use taffeta_ast::{Distribution, Func, LoopProps, Parallel, Span, Stmt, StmtKind};

pub(crate) const ENTRY: Entry = Entry {
    name: "parallelize",
    signature: "s.parallelize(L, schedule=\"static\", chunk=…, above=…)",
    params: &["loop", "schedule", "chunk", "above"],
    summary: "Runs a loop on several threads.",
    doc: include_str!("parallelize.md"),
    run: Run::Primitive(run),
};

fn run(s: &Schedule, args: &Args<'_>) -> Result<Change, Refusal> {
    let target = args.need("loop")?;
    let loops = mark::targets(s, target)?;
    let parallel = distribution(args)?;
    // 1. One level of threads.
    if let Some(l) = loops.iter().find(|l| is_parallel(&l.stmt)) {
        let name = s.called(&l.stmt);
        return Err(Refusal::illegal(1, format!("the loop `{name}` is already parallel"))
            .label(l.stmt.origin().span(), "this loop"));
    }
    if parallel.distribution == Distribution::Positions {
        loops.iter().try_for_each(|l| require_traversal(s, l))?;
    }
    let with = |props: &LoopProps| LoopProps { parallel: Some(parallel), ..props.clone() };
    let after = mark::with_marks(s.func(), &loops, &with);
    loops.iter().try_for_each(|l| one_level(&after, l, &loops))?;
    mark::proved(after, &loops, target, &|l, obstacle| match obstacle {
        // 2. Dependences.
        Obstacle::Dependence(_) => {
            obstacle.refusal(2, format!("the loop `{}` has a loop-carried dependence", s.called(&l.stmt)))
        }
        // 3. Reductions.
        Obstacle::Reduction(..) => {
            obstacle.refusal(3, format!("iterations of `{}` reduce into one element", s.called(&l.stmt)))
        }
    })
}

/// Reads the distribution of iterations, the chunk size and the minimum trip count.
fn distribution(args: &Args<'_>) -> Result<Parallel, Refusal> {
    let distribution = match args.str("schedule")? {
        None => Distribution::Static,
        Some(name) => Distribution::ALL.into_iter().find(|d| d.name() == name).ok_or_else(|| {
            Refusal::usage(format!("there is no schedule \"{name}\""))
                .at(args.get("schedule").map_or(Span::NONE, |a| a.span))
                .help("use \"static\", \"dynamic\", \"guided\" or \"positions\"")
        })?,
    };
    let chunk = args.positive("chunk")?.map(|c| u32::try_from(c).unwrap_or(u32::MAX));
    let above = args.positive("above")?.map(i64::unsigned_abs);
    Ok(Parallel { distribution, chunk, above })
}

/// Refuses a distribution by positions where no structured tensor is traversed.
fn require_traversal(s: &Schedule, l: &Loop) -> Result<(), Refusal> {
    if structured::traversed(s.func(), &l.stmt).is_some() {
        return Ok(());
    }
    let text = format!("the loop `{}` does not index a structured tensor, and has no positions", s.called(&l.stmt));
    Err(Refusal::unsupported(0, text)
        .label(l.stmt.origin().span(), "this loop")
        .help("distribute its iterations: use schedule=\"static\" or \"dynamic\""))
}

/// Refuses threads and lanes around a loop that becomes parallel, and threads inside it.
fn one_level(after: &Func, l: &Loop, given: &[Loop]) -> Result<(), Refusal> {
    let mut around = tree::path(&after.body, l.stmt.id()).unwrap_or_default();
    let marked = around.pop();
    let inside = marked.as_ref().and_then(concurrent::threads_inside);
    if let Some(o) = around.iter().find(|s| is_parallel(s)).cloned().or(inside) {
        let text = "a parallel loop would be nested in another parallel loop";
        let too = given.iter().any(|g| g.stmt.id() == o.id());
        let label = if too { "this loop would be parallel too" } else { "this loop is already parallel" };
        return Err(Refusal::illegal(1, text)
            .label(o.origin().span(), label)
            .help("merge both loops (`s.merge`), and make the result parallel"));
    }
    match around.iter().find(|s| concurrent::is_marked(s)) {
        None => Ok(()),
        Some(o) => {
            let text = "a parallel loop would be nested in a vectorised loop".to_string();
            Err(Refusal::illegal(1, text).label(o.origin().span(), "this loop is vectorised"))
        }
    }
}

fn is_parallel(s: &Stmt) -> bool {
    matches!(s.kind(), StmtKind::For { props, .. } if props.parallel.is_some())
}
