#![doc = include_str!("reverse.md")]
use crate::concurrent::carried;
use crate::entry::{Entry, Run};
use crate::refusal::Refusal;
use crate::schedule::{Change, Schedule};
use crate::tree::{self, Loop};
use crate::value::Args;
use taffeta_analysis::query::depend::Dependences;
use taffeta_analysis::query::{Context, walk};
use taffeta_ast::{Expr, Extent, Stmt, StmtKind, Symbol};

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

/// Builds the reversed loop, if it is legal.
fn check(s: &Schedule, l: &Loop) -> Result<Stmt, Refusal> {
    // 1. The trip count is known.
    let mut facts = walk::at(s.func(), l.stmt.id()).unwrap_or_else(|| Context::new(s.func()));
    let (Some(length), Some(step)) = (l.trip_count(&mut facts), l.step.as_int().and_then(i64::checked_neg)) else {
        return Err(Refusal::illegal(1, format!("the step of `{}` is not a constant", s.called(&l.stmt)))
            .label(l.stmt.origin().span(), "this loop"));
    };
    // 2. Dependences.
    if let Some(d) = carried(&Dependences::inside(s.func(), &[l.stmt.id()]), &l.stmt) {
        return Err(Refusal::dependence(
            2,
            format!("the loop `{}` has a loop-carried dependence", s.called(&l.stmt)),
            d,
        ));
    }
    // The values one step before the begin, and one step before the end, must fit in 64 bits.
    let [before, behind] = [&l.begin, &l.end].map(|e| facts.sum_fits(&[(e, 1)], i128::from(step)));
    let end = l.begin.minus(&l.step);
    if before && behind {
        let last = l.value(&length.minus(&Expr::int(1)));
        return Ok(l.with(facts.shorten(&last), facts.shorten(&end), Expr::int(step), l.body.clone()));
    }
    if before && step.abs() == 1 {
        let stop = if step < 0 { l.end.max_with(&l.begin) } else { l.end.min_with(&l.begin) };
        return Ok(l.with(stop.minus(&l.step), facts.shorten(&end), Expr::int(step), l.body.clone()));
    }
    // 3. Otherwise the new loop counts iterations, and the body evaluates the bounds.
    crate::requirements::require_invariant_bounds(3, l, &|| s.called(&l.stmt))?;
    let number = Symbol::new(format!("{}~k", l.iter));
    let value = l.value(&length.minus(&Expr::int(1)).minus(&Expr::var(&number)));
    let body = tree::substitute(&l.body, &l.iter, &value);
    let StmtKind::For { props, .. } = l.stmt.kind() else { return Ok(l.stmt.clone()) };
    let extent = Extent::Range { begin: Expr::int(0), end: length, step: Expr::int(1) };
    Ok(l.stmt.with_kind(StmtKind::For { iter: number, extent, props: props.clone(), body }))
}

fn apply(s: &Schedule, l: &Loop, new: &Stmt) -> Change {
    Change::new(tree::replace(s.func(), l.stmt.id(), new), l.stmt.id().into())
}
