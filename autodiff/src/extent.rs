//! How often a loop runs: most iterations that it ever has, as an expression over the program's sizes alone. Tapes are
//! that long.

use rustc_hash::{FxHashMap, FxHashSet};
use taffeta_ast::op::Op;
use taffeta_ast::{Expr, ExprKind, Symbol, poly};

/// Differences of operands of `min` and `max` that are looked at.
const MOST_PAIRS: usize = 16;

/// What stands around an expression that is to be bounded.
#[derive(Default)]
pub(crate) struct Ranges<'a> {
    /// The ranges of iterators.
    pub iters: FxHashMap<Symbol, [Expr; 3]>,
    /// Parameters that nothing writes, if these may stand in a size.
    pub inputs: Option<&'a FxHashSet<Symbol>>,
}

/// Most iterations of `range(begin, end, step)` inside loops with these ranges; `None` if the program's sizes do not
/// say.
pub(crate) fn most_iterations([begin, end, step]: [&Expr; 3], outer: &Ranges<'_>) -> Option<Expr> {
    let step = step.as_int().filter(|s| *s != 0)?;
    let (low, high) = if step > 0 { (begin, end) } else { (end, begin) };
    // A least upper end, and a greatest lower end: every pair of operands bounds the difference.
    let (highs, lows) = (operands(high, Op::Min), operands(low, Op::Max));
    let mut best: Vec<Expr> = Vec::new();
    for h in &highs {
        for l in lows.iter().take(MOST_PAIRS / highs.len().max(1) + 1) {
            if let Some(e) = bound(&poly::tidy(&h.minus(l)), true, outer)
                && !best.contains(&e)
            {
                best.push(e);
            }
        }
    }
    let constant = best.iter().filter_map(Expr::as_int).min();
    best.retain(|e| e.as_int().is_none() || e.as_int() == constant);
    let length = best.into_iter().reduce(|a, b| a.min_with(&b))?;
    let size = i64::try_from(step.unsigned_abs()).ok()?;
    Some(if size == 1 { length } else { length.plus(&Expr::int(size - 1)).floor_div(&Expr::int(size)) })
}

/// What `op` is made of, or the expression itself.
pub(crate) fn operands(e: &Expr, op: Op) -> Vec<Expr> {
    match e.kind() {
        ExprKind::Apply(o, args) if *o == op => args.iter().flat_map(|a| operands(a, op)).collect(),
        _ => vec![e.clone()],
    }
}

/// A bound of an i64 expression (the greatest value if `upper`, else the least) over sizes alone.
pub(crate) fn bound(e: &Expr, upper: bool, outer: &Ranges<'_>) -> Option<Expr> {
    let both = |a: &Expr, b: &Expr, second: bool| Some((bound(a, upper, outer)?, bound(b, second, outer)?));
    match e.kind() {
        ExprKind::Const(_) => Some(e.clone()),
        ExprKind::Var(s) => match outer.iters.get(s) {
            None => Some(e.clone()),
            Some([begin, end, step]) => {
                let step = step.as_int()?;
                let one = Expr::int(step.signum());
                match (step > 0) == upper {
                    true => bound(&poly::tidy(&end.minus(&one)), upper, outer),
                    false => bound(begin, upper, outer),
                }
            }
        },
        // A number that the caller gives (`steps: i32`) is one throughout the program.
        ExprKind::Load(t, at) => {
            let fixed = |e: &Expr| bound(e, true, &Ranges { iters: FxHashMap::default(), inputs: outer.inputs });
            let fixed = at.iter().all(|a| {
                let mut iterates = false;
                a.index.walk(&mut |e| iterates |= matches!(e.kind(), ExprKind::Var(s) if outer.iters.contains_key(s)));
                !iterates && fixed(&a.index).is_some()
            });
            (fixed && outer.inputs.is_some_and(|i| i.contains(t))).then(|| e.clone())
        }
        ExprKind::Cast(inner) if inner.dtype().is_int() && e.dtype().size() >= inner.dtype().size() => {
            Some(bound(inner, upper, outer)?.cast(e.dtype()))
        }
        ExprKind::Apply(op, args) => match op {
            Op::Add => both(&args[0], &args[1], upper).map(|(a, b)| poly::tidy(&a.plus(&b))),
            Op::Sub => both(&args[0], &args[1], !upper).map(|(a, b)| poly::tidy(&a.minus(&b))),
            Op::Neg => Some(Expr::apply(Op::Neg, vec![bound(&args[0], !upper, outer)?])),
            Op::Min | Op::Max => both(&args[0], &args[1], upper).map(|(a, b)| Expr::apply(*op, vec![a, b])),
            Op::Mul => {
                let c = args[1].as_int()?;
                Some(bound(&args[0], upper == (c > 0), outer)?.times(&args[1]))
            }
            Op::FloorDiv => {
                args[1].as_int().filter(|c| *c > 0)?;
                Some(bound(&args[0], upper, outer)?.floor_div(&args[1]))
            }
            Op::Mod => {
                let c = args[1].as_int().filter(|c| *c > 0)?;
                Some(Expr::int(if upper { c - 1 } else { 0 }))
            }
            _ => None,
        },
        _ => None,
    }
}

/// The range that has the values of `range(begin, end, step)` from the last to the first; `None` if the step is not
/// known.
pub(crate) fn reversed([begin, end, step]: [&Expr; 3]) -> Option<[Expr; 3]> {
    let s = step.as_int().filter(|s| *s != 0)?;
    let last = if s.abs() == 1 {
        end.minus(step)
    } else {
        let times = end.minus(begin).plus(&Expr::int(s - s.signum())).floor_div(step);
        begin.plus(&times.minus(&Expr::int(1)).times(step))
    };
    let before = begin.minus(step);
    Some([poly::tidy(&last), poly::tidy(&before), Expr::int(-s)])
}
