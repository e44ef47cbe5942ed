#![doc = include_str!("split.md")]
use crate::entry::{Entry, Run};
use crate::refusal::Refusal;
use crate::schedule::{Change, Schedule};
use crate::tree::{self, Loop};
use crate::trip_count;
use crate::value::{Args, Value};
use taffeta_analysis::query::{Context, walk};
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

/// Maximum factor, number of parts, or shift for which a guard in each iteration excludes the surplus ones; above it,
/// the bounds of the loops exclude them.
const MAX_GUARDED: i64 = 1 << 16;

struct Plan {
    target: Loop,
    /// Range of the outer loop.
    outer: [Expr; 2],
    /// Length of the inner loop, before it is clipped.
    inner: Expr,
    /// Shift of the tiles: the number of an iteration is `outer * inner length + inner - shift`.
    shift: i64,
    length: Expr,
    tail: Tail,
}

/// Exclusion of surplus iterations at the end.
enum Tail {
    /// None, since the shifted length is a multiple of the factor or of the number of parts.
    Whole,
    /// Guard in the body.
    Guard,
    /// Bounds of the inner loop. With a shift, they also exclude surplus iterations at the begin.
    Bounds,
}

fn check(s: &Schedule, target: Loop, by: By, shift: i64) -> Result<Plan, Refusal> {
    let at = target.stmt.origin().span();
    // 1. A constant step.
    let mut facts = walk::at(s.func(), target.stmt.id()).unwrap_or_else(|| Context::new(s.func()));
    let Some(length) = target.trip_count(&mut facts) else {
        return Err(Refusal::illegal(1, format!("the step of `{}` is not a constant", s.called(&target.stmt)))
            .label(at, "this loop"));
    };
    // 2. No marks.
    crate::requirements::require_unmarked(s.func(), 2, &target)?;
    // 3. The body does not change the bounds, which are evaluated in it.
    crate::requirements::require_invariant_bounds(3, &target, &|| s.called(&target.stmt))?;
    if shift < 0 {
        return Err(Refusal::value(format!("expected at least 0 for `shift`, found {shift}")));
    }
    let (By::Factor(whole) | By::Parts(whole)) = by;
    // 4. Shifted numbers of iterations fit in 64 bits.
    let fits = facts.sum_fits(&[(&length, 1)], i128::from(shift) + i128::from(whole) - 1);
    if shift > 0 && !fits {
        let text = format!("the shifted iteration numbers of `{}` may not fit in 64 bits", s.called(&target.stmt));
        let help = "leave `shift` out, or bound the loop: `assert n <= 1000000` before it";
        return Err(Refusal::illegal(4, text).label(at, "this loop").help(help));
    }
    let shifted = length.plus(&Expr::int(shift));
    let count = trip_count::ceil_div(&mut facts, &shifted, whole);
    let (outer, inner) = match by {
        By::Factor(f) => (count, Expr::int(f)),
        By::Parts(p) => (Expr::int(p), count),
    };
    let multiple = shifted.modulo(&Expr::int(whole)).equals(&Expr::int(0));
    // A negative length means no iterations, but may be a multiple as well.
    let exact = facts.prove(&multiple) && facts.prove(&Expr::int(0).less_eq(&length));
    let small = shift <= MAX_GUARDED && fits && (exact && matches!(by, By::Factor(_)) || whole <= MAX_GUARDED);
    let zero = Expr::int(0);
    let (outer, tail) = match small {
        true => ([zero, outer], if exact { Tail::Whole } else { Tail::Guard }),
        false => {
            // A shift may leave the first outer iterations empty.
            let before = match shift {
                0 => zero,
                _ => Expr::int(shift).floor_div(&inner.max_with(&Expr::int(1))),
            };
            // Of more parts than there are iterations, most are empty.
            let end = if outer.as_int() == Some(whole) { outer.min_with(&shifted) } else { outer };
            ([before, end], Tail::Bounds)
        }
    };
    Ok(Plan { target, outer, inner, shift, length, tail })
}

fn apply(s: &Schedule, plan: &Plan) -> Change {
    let Plan { target, outer, inner, shift, length, tail } = plan;
    let origin = target.stmt.origin();
    let (o, i) = (Symbol::new(format!("{}~o", target.iter)), Symbol::new(format!("{}~i", target.iter)));
    let first = Expr::var(&o).times(inner);
    let number = first.plus(&Expr::var(&i)).minus(&Expr::int(*shift));
    let mut body = tree::substitute(&target.body, &target.iter, &target.value(&number));
    let guard = |cond: Expr, body, role| {
        Stmt::new(StmtKind::If { cond, then: body, otherwise: None }, origin.derive("split", role))
    };
    let zero = Expr::int(0);
    let mut bounds = [zero.clone(), inner.clone()];
    match tail {
        Tail::Bounds => {
            let left = length.plus(&Expr::int(*shift)).minus(&first);
            bounds = [zero.max_with(&Expr::int(*shift).minus(&first)), inner.min_with(&left)];
            if *shift == 0 {
                bounds[0] = zero;
            }
        }
        Tail::Whole | Tail::Guard => {
            if matches!(tail, Tail::Guard) {
                body = guard(number.less(length), body, "tail");
            }
            if *shift > 0 {
                body = guard(zero.less_eq(&number), body, "head");
            }
        }
    }
    let range = |[begin, end]: &[Expr; 2]| Extent::Range { begin: begin.clone(), end: end.clone(), step: Expr::int(1) };
    // The inner loop has the id of the old one, so that handles to it stay valid.
    let inside =
        target.stmt.with_kind(StmtKind::For { iter: i, extent: range(&bounds), props: LoopProps::default(), body });
    let kind = StmtKind::For { iter: o, extent: range(outer), props: LoopProps::default(), body: inside.clone() };
    let outside = Stmt::new(kind, origin.derive("split", "outer"));
    let made = Value::List(vec![outside.id().into(), inside.id().into()]);
    Change::new(tree::replace(s.func(), target.stmt.id(), &outside), made)
}
