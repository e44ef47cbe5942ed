#![doc = include_str!("split.md")]

use super::{Entry, Run};
use crate::refusal::Refusal;
use crate::schedule::{Change, Schedule};
use crate::tree::{self, Loop};
use crate::value::{Args, Value};
use taffeta_analysis::query::walk;
use taffeta_ast::{Expr, Extent, LoopProps, Stmt, StmtKind, Symbol};

pub(crate) const ENTRY: Entry = Entry {
    name: "split",
    signature: "outer, inner = s.split(L, factor)",
    params: &["loop", "factor", "parts", "shift"],
    summary: "Splits a loop into two nested loops.",
    doc: include_str!("split.md"),
    run: Run::Primitive(run),
};

fn run(s: &Schedule, args: &Args<'_>) -> Result<Change, Refusal> {
    let l = s.loop_(args.need("loop")?)?;
    let by = match (args.positive("factor")?, args.positive("parts")?) {
        (Some(f), None) => By::Factor(f),
        (None, Some(p)) => By::Parts(p),
        (None, None) => return Err(Refusal::usage("neither `factor` nor `parts` is given")),
        (Some(_), Some(_)) => return Err(Refusal::usage("`factor` and `parts` exclude each other")),
    };
    let shift = args.int("shift")?.unwrap_or(0);
    Ok(apply(s, &check(s, l, by, shift)?))
}

#[derive(Clone, Copy)]
enum By {
    Factor(i64),
    Parts(i64),
}

struct Plan {
    target: Loop,
    outer: Expr,
    inner: Expr,
    /// The number of the iteration is `outer * inner length + inner - shift`.
    shift: i64,
    /// Whether iterations must be kept from running over the end.
    guarded: bool,
    length: Expr,
}

fn check(s: &Schedule, target: Loop, by: By, shift: i64) -> Result<Plan, Refusal> {
    let at = target.stmt.origin().span();
    // 1. A constant step.
    let Some(length) = target.length() else {
        return Err(Refusal::illegal(1, format!("the step of `{}` is no constant", target.iter)).label(at, "this loop"));
    };
    // 2. Nothing special.
    super::require_unmarked(2, &target)?;
    // 3. The bounds are evaluated in the body.
    super::require_invariant_bounds(3, &target)?;
    if shift < 0 {
        return Err(Refusal::usage(format!("`shift` is at least 0, and this is {shift}")));
    }
    let shifted = length.plus(&Expr::int(shift));
    let (outer, inner, whole) = match by {
        By::Factor(f) => (tree::ceil_div(&shifted, f), Expr::int(f), f),
        By::Parts(p) => (Expr::int(p), tree::ceil_div(&shifted, p), p),
    };
    let multiple = shifted.modulo(&Expr::int(whole)).equals(&Expr::int(0));
    let guarded = !walk::at(s.func(), target.stmt.id()).is_some_and(|mut facts| {
        // A negative length is no iteration, but would be a multiple as well.
        facts.prove(&multiple) && facts.prove(&Expr::int(0).less_eq(&length))
    });
    Ok(Plan { target, outer, inner, shift, guarded, length })
}

fn apply(s: &Schedule, plan: &Plan) -> Change {
    let Plan { target, outer, inner, shift, guarded, length } = plan;
    let origin = target.stmt.origin();
    let (o, i) = (Symbol::new(format!("{}~o", target.iter)), Symbol::new(format!("{}~i", target.iter)));
    let number = Expr::var(&o).times(inner).plus(&Expr::var(&i)).minus(&Expr::int(*shift));
    let mut body = tree::substitute(&target.body, &target.iter, &target.value(&number));
    if *guarded {
        body = Stmt::new(
            StmtKind::If { cond: number.less(length), then: body, otherwise: None },
            origin.derive("split", "tail"),
        );
    }
    if *shift > 0 {
        body = Stmt::new(
            StmtKind::If { cond: Expr::int(0).less_eq(&number), then: body, otherwise: None },
            origin.derive("split", "head"),
        );
    }
    let range = |end: &Expr| Extent::Range { begin: Expr::int(0), end: end.clone(), step: Expr::int(1) };
    // The inner loop is the old one, so that what pointed at it still does.
    let inside =
        target.stmt.with_kind(StmtKind::For { iter: i, extent: range(inner), props: LoopProps::default(), body });
    let kind = StmtKind::For { iter: o, extent: range(outer), props: LoopProps::default(), body: inside.clone() };
    let outside = Stmt::new(kind, origin.derive("split", "outer"));
    let made = Value::List(vec![outside.id().into(), inside.id().into()]);
    Change::new(tree::replace(s.func(), target.stmt.id(), &outside), made)
}
