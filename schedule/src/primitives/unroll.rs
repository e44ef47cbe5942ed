#![doc = include_str!("unroll.md")]
use crate::entry::{Entry, Run};
use crate::refusal::Refusal;
use crate::schedule::{Change, Schedule};
use crate::tree::{self, Loop};
use crate::value::{Arg, Args, Handle, Value};
use taffeta_analysis::pass::copy;
use taffeta_analysis::query::{Context, effects, walk};
use taffeta_ast::{Expr, Stmt, StmtId, StmtKind};

pub(crate) const ENTRY: Entry = Entry {
    name: "unroll",
    signature: "s.unroll(L, factor=…)",
    params: &["loop", "factor"],
    summary: "Replaces a loop by copies of its body.",
    doc: include_str!("unroll.md"),
    run: Run::Primitive(run),
};

/// Maximum number of copies.
const MAX_COPIES: i64 = 64;

fn run(s: &Schedule, args: &Args<'_>) -> Result<Change, Refusal> {
    let l = s.loop_(args.need("loop")?)?;
    let Some(factor) = args.positive("factor")? else { return Ok(apply(s, &check(s, &l)?)) };
    // 2. Checked before the split, which makes unmarked loops.
    crate::requirements::require_unmarked(s.func(), 2, &l)?;
    if factor > MAX_COPIES || l.length().is_none() {
        let text = format!(
            "cannot unroll `{}` by {factor}: the factor is too large, or the step of the loop is not a constant",
            s.called(&l.stmt)
        );
        return Err(Refusal::illegal(1, text).label(l.stmt.origin().span(), "this loop"));
    }
    let mut split = s.clone();
    let made = split.call("split", &[Arg::from(l.stmt.id()), Arg::from(factor)])?;
    let outer = match made {
        Value::List(v) => v.first().cloned().unwrap_or(Value::None),
        other => other,
    };
    let inner = split.loop_(&Arg::from(l.stmt.id()))?;
    let change = apply(&split, &check(&split, &inner)?);
    let made = match outer {
        Value::Handle(Handle::Stmt(id)) => id.into(),
        other => other,
    };
    Ok(Change { made, ..change })
}

/// Copies of a loop's body, one for each iteration in order, and the loop that they replace.
pub(crate) struct Copies {
    pub target: Loop,
    pub bodies: Vec<Stmt>,
}

/// Checks that the loop can be replaced by copies (conditions 1 to 3), and makes the copies.
pub(crate) fn check(s: &Schedule, l: &Loop) -> Result<Copies, Refusal> {
    let refuse = |n, text: String| Err(Refusal::illegal(n, text).label(l.stmt.origin().span(), "this loop"));
    // 1. A small constant trip count.
    let mut facts = walk::at(s.func(), l.stmt.id()).unwrap_or_else(|| Context::new(s.func()));
    let Some(length) = l.trip_count(&mut facts) else {
        return refuse(1, format!("the step of `{}` is not a constant", s.called(&l.stmt)));
    };
    let constant = facts.constant(&length).unwrap_or(length).as_int();
    let Some(count) = constant.map(|c| c.max(0)).filter(|c| *c <= MAX_COPIES) else {
        let found =
            constant.map_or("is not a constant".to_string(), |c| format!("is {c}, which is more than {MAX_COPIES}"));
        return refuse(1, format!("the length of `{}` {found}", s.called(&l.stmt)))
            .map_err(|r: Refusal| r.help("give a factor, or split the loop and unroll the inner one"));
    };
    // 2. No marks.
    crate::requirements::require_unmarked(s.func(), 2, l)?;
    // 3. The body does not change the begin, from which iterations are counted.
    if !l.body.writes().is_disjoint(&effects::loads(&l.begin)) {
        return refuse(3, format!("the begin of `{}` changes in its body", s.called(&l.stmt)));
    }
    let bodies = (0..count)
        .map(|k| {
            // The first copy is the old body, so that handles into it stay valid.
            let body = if k == 0 { l.body.clone() } else { copy::statement(&l.body, "unroll", "copy") };
            tree::substitute(&body, &l.iter, &l.value(&Expr::int(k)))
        })
        .collect();
    Ok(Copies { target: l.clone(), bodies })
}

fn apply(s: &Schedule, plan: &Copies) -> Change {
    let new = Stmt::seq(plan.bodies.iter().cloned(), plan.target.stmt.origin().derive("unroll", "copies"));
    replaced(s, &plan.target, &new)
}

/// Replaces a loop by a statement. The result is the list of its parts.
pub(crate) fn replaced(s: &Schedule, l: &Loop, new: &Stmt) -> Change {
    let ids: Vec<StmtId> = match new.kind() {
        StmtKind::Seq(all) => all.iter().map(Stmt::id).collect(),
        _ => vec![new.id()],
    };
    let made = Value::List(ids.iter().map(|id| Value::from(*id)).collect());
    Change::new(tree::replace(s.func(), l.stmt.id(), new), made).moved(l.stmt.id(), ids)
}
