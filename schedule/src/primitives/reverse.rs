#![doc = include_str!("reverse.md")]

use super::{Entry, Run};
use crate::concurrent::carried;
use crate::refusal::Refusal;
use crate::schedule::{Change, Schedule};
use crate::tree::{self, Loop};
use crate::value::Args;
use taffeta_analysis::query::depend::Dependences;
use taffeta_analysis::query::walk;
use taffeta_ast::{Expr, Stmt};

pub(crate) const ENTRY: Entry = Entry {
    name: "reverse",
    signature: "s.reverse(L)",
    params: &["loop"],
    summary: "Runs a loop from its last iteration to its first one.",
    doc: include_str!("reverse.md"),
    run: Run::Primitive(run),
};

fn run(s: &Schedule, args: &Args<'_>) -> Result<Change, Refusal> {
    let l = s.loop_(args.need("loop")?)?;
    let new = check(s, &l)?;
    Ok(apply(s, &l, &new))
}

/// The loop the other way round.
fn check(s: &Schedule, l: &Loop) -> Result<Stmt, Refusal> {
    // 1. Iterations can be counted.
    let (Some(length), Some(step)) = (l.length(), l.step.as_int().and_then(i64::checked_neg)) else {
        return Err(Refusal::illegal(1, format!("the step of `{}` is no constant", l.iter))
            .label(l.stmt.origin().span(), "this loop"));
    };
    // 2. Dependences.
    if let Some(d) = carried(&Dependences::new(s.func()), &l.stmt) {
        return Err(Refusal::dependence(2, format!("iterations of `{}` depend on each other", l.iter), d));
    }
    let last = l.value(&length.minus(&Expr::int(1)));
    let end = l.begin.minus(&l.step);
    let short = |e: Expr| walk::at(s.func(), l.stmt.id()).map_or(e.clone(), |mut facts| facts.shorten(&e));
    Ok(l.with(short(last), short(end), Expr::int(step), l.body.clone()))
}

fn apply(s: &Schedule, l: &Loop, new: &Stmt) -> Change {
    Change::new(tree::replace(s.func(), l.stmt.id(), new), l.stmt.id().into())
}
