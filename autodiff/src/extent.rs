//! Bounds of integers over the program's sizes alone. Upper bounds of trip counts are the lengths of tapes.

use rustc_hash::{FxHashMap, FxHashSet};
use taffeta_ast::op::Op;
use taffeta_ast::{DType, Expr, ExprKind, Symbol, poly};

/// Maximum number of combinations of `min` and `max` operands to try.
const MAX_CHOICES: usize = 16;

/// Context of an expression to bound.
#[derive(Default)]
pub(crate) struct Ranges<'a> {
    /// Ranges of the iterators.
    pub iters: FxHashMap<Symbol, [Expr; 3]>,
    /// Read-only parameters, if a bound may contain their elements.
    pub inputs: Option<&'a FxHashSet<Symbol>>,
}

impl Ranges<'_> {
    /// Returns the largest absolute values of the iterators, where they are known.
    fn magnitudes(&self) -> FxHashMap<Symbol, Option<i64>> {
        let of = |e: &Expr| magnitude(e, &FxHashMap::default());
        let one =
            |(s, [begin, end, _]): (&Symbol, &[Expr; 3])| (s.clone(), of(begin).zip(of(end)).map(|(a, b)| a.max(b)));
        self.iters.iter().map(one).collect()
    }
}

/// Bounds the trip count of `range(begin, end, step)` inside loops with these ranges; returns `None` if the program's
/// sizes do not bound it.
pub(crate) fn most_iterations([begin, end, step]: [&Expr; 3], outer: &Ranges<'_>) -> Option<Expr> {
    let step = step.as_int().filter(|s| *s != 0)?;
    let (low, high) = if step > 0 { (begin, end) } else { (end, begin) };
    if let (Some(low), Some(high)) = (low.as_int(), high.as_int()) {
        let (span, size) = (i128::from(high) - i128::from(low), i128::from(step.unsigned_abs()));
        // Iterations are counted from `begin`, in 64 bits.
        i64::try_from(span).ok()?;
        return i64::try_from((span.max(0) + size - 1) / size).ok().map(Expr::int);
    }
    // The upper end is a minimum, the lower end a maximum: every pair of operands bounds the difference.
    let (highs, lows) = (operands(high, Op::Min), operands(low, Op::Max));
    let mut best: Vec<Expr> = Vec::new();
    for h in &highs {
        for l in lows.iter().take(MAX_CHOICES / highs.len().max(1) + 1) {
            best.extend(distance(l, h, outer));
        }
    }
    let length = tightest(best, true)?;
    let size = i64::try_from(step.unsigned_abs()).ok()?;
    Some(if size == 1 { length } else { length.plus(&Expr::int(size - 1)).floor_div(&Expr::int(size)) })
}

/// Bounds `high - low` from above; where the difference may wrap, its maximum with 0.
fn distance(low: &Expr, high: &Expr, outer: &Ranges<'_>) -> Option<Expr> {
    if let (Some(low), Some(high)) = (low.as_int(), high.as_int()) {
        return if high < low { Some(Expr::int(0)) } else { high.checked_sub(low).map(Expr::int) };
    }
    let both = bound(&poly::tidy(&high.minus(low)), true, outer)?;
    let leaf = matches!(both.kind(), ExprKind::Const(_) | ExprKind::Var(_) | ExprKind::Load(..));
    if leaf || magnitude(&both, &FxHashMap::default()).is_some() {
        return Some(both);
    }
    let (low, high) = (bound(low, false, outer)?, bound(high, true, outer)?);
    Some(high.max_with(&low).minus(&low))
}

/// Returns the operands of nested applications of `op`; any other expression is its own operand.
pub(crate) fn operands(e: &Expr, op: Op) -> Vec<Expr> {
    match e.kind() {
        ExprKind::Apply(o, args) if *o == op => args.iter().flat_map(|a| operands(a, op)).collect(),
        _ => vec![e.clone()],
    }
}

/// Expands a sum with minima and maxima into the sums that have one operand in place of each. Each of these bounds the
/// original: `min(n, i + 5) - max(0, i - 4)` is at most `n - 0`, `n - (i - 4)`, `i + 5 - 0` and `i + 5 - (i - 4)`, of
/// which the last one is 9. Returns `None` if there is no choice of operands.
fn choices(e: &Expr, upper: bool) -> Option<Vec<Expr>> {
    let mut terms = Vec::new();
    summands(e, true, &mut terms);
    let options = |(positive, t): &(bool, Expr)| {
        let op = if *positive == upper { Op::Min } else { Op::Max };
        (*positive, operands(t, op))
    };
    let terms: Vec<(bool, Vec<Expr>)> = terms.iter().map(options).collect();
    if terms.len() < 2 || terms.iter().all(|(_, all)| all.len() == 1) {
        return None;
    }
    let mut sums = vec![Expr::int(0)];
    for (positive, all) in &terms {
        let add = |s: &Expr, t: &Expr| if *positive { s.plus(t) } else { s.minus(t) };
        let room = (MAX_CHOICES / sums.len()).max(1);
        sums = sums.iter().flat_map(|s| all.iter().take(room).map(move |t| add(s, t))).collect();
    }
    Some(sums.iter().map(poly::tidy).collect())
}

/// Collects the terms of a sum with their signs; `positive` if `e` is added.
fn summands(e: &Expr, positive: bool, out: &mut Vec<(bool, Expr)>) {
    match e.kind() {
        ExprKind::Apply(Op::Add, args) => args.iter().for_each(|a| summands(a, positive, out)),
        ExprKind::Apply(Op::Sub, args) => {
            summands(&args[0], positive, out);
            summands(&args[1], !positive, out);
        }
        ExprKind::Apply(Op::Neg, args) => summands(&args[0], !positive, out),
        _ => out.push((positive, e.clone())),
    }
}

/// Combines several bounds into the tightest one; a bound that another one implies is dropped.
fn tightest(all: Vec<Expr>, upper: bool) -> Option<Expr> {
    let mut best: Vec<Expr> = Vec::new();
    let looser = |a: &Expr, b: &Expr| {
        let difference = poly::tidy(&if upper { a.minus(b) } else { b.minus(a) });
        difference.as_int().is_some_and(|d| d >= 0)
    };
    for e in all {
        if !best.iter().any(|b| looser(&e, b)) {
            best.retain(|b| !looser(b, &e));
            best.push(e);
        }
    }
    best.into_iter().reduce(|a, b| if upper { a.min_with(&b) } else { a.max_with(&b) })
}

/// Bounds an i64 expression over sizes alone: from above if `upper`, else from below.
pub(crate) fn bound(e: &Expr, upper: bool, outer: &Ranges<'_>) -> Option<Expr> {
    let both = |a: &Expr, b: &Expr, second: bool| Some((bound(a, upper, outer)?, bound(b, second, outer)?));
    if let Some(sums) = choices(e, upper)
        && magnitude(e, &outer.magnitudes()).is_some()
    {
        let all = sums.iter().filter_map(|sum| bound(sum, upper, outer)).collect();
        return tightest(all, upper);
    }
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
        // A scalar parameter (`steps: i32`) is constant throughout the program.
        ExprKind::Load(t, at) => {
            let fixed = |e: &Expr| bound(e, true, &Ranges { iters: FxHashMap::default(), inputs: outer.inputs });
            let fixed = at.iter().all(|a| {
                let iterates =
                    a.index.any(&mut |e| matches!(e.kind(), ExprKind::Var(s) if outer.iters.contains_key(s)));
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

/// Bounds the absolute value of an integer expression, as far as its operands and the types of its loads allow; returns
/// `None` if sums of a few such values may overflow i64. `iters` has the bounds of iterators; all other variables are
/// sizes.
pub(crate) fn magnitude(e: &Expr, iters: &FxHashMap<Symbol, Option<i64>>) -> Option<i64> {
    let largest = |a: i128| i64::try_from(a).ok().filter(|a| *a < i64::MAX / 4);
    let of = |e: &Expr| magnitude(e, iters).map(i128::from);
    match e.kind() {
        ExprKind::Const(_) => largest(i128::from(e.as_int()?).abs()),
        ExprKind::Var(s) => iters.get(s).copied().unwrap_or(Some(taffeta_analysis::query::MAX_SIZE)),
        ExprKind::Load(..) => largest(e.dtype().int_range().map(|(lo, hi)| hi.max(-lo))?),
        ExprKind::Cast(inner) if inner.dtype().is_int() && e.dtype() == DType::I64 => largest(of(inner)?),
        ExprKind::Apply(Op::Min | Op::Max, a) => largest(of(&a[0])?.max(of(&a[1])?)),
        ExprKind::Apply(Op::Select, a) => largest(of(&a[1])?.max(of(&a[2])?)),
        ExprKind::Apply(op, a) if e.dtype() == DType::I64 => match op {
            Op::Add | Op::Sub => largest(of(&a[0])? + of(&a[1])?),
            Op::Neg => largest(of(&a[0])?),
            Op::Mul => largest(of(&a[0])?.checked_mul(of(&a[1])?)?),
            Op::FloorDiv => a[1].as_int().filter(|d| *d > 0).and(largest(of(&a[0])?)),
            Op::Mod => largest(i128::from(a[1].as_int().filter(|d| *d > 0)?)),
            _ => None,
        },
        _ => None,
    }
}

/// Returns the range with the values of `range(begin, end, step)` from the last to the first; `None` if the step is not
/// known, or `begin - step` might wrap. `small`: whether begin and end have a [`magnitude`].
pub(crate) fn reversed([begin, end, step]: [&Expr; 3], small: [bool; 2]) -> Option<[Expr; 3]> {
    let s = step.as_int().filter(|s| *s != 0 && s.unsigned_abs() < 1 << 60)?;
    let last = match small {
        [true, true] if s.abs() == 1 => end.minus(step),
        [true, true] => {
            let times = end.minus(begin).plus(&Expr::int(s - s.signum())).floor_div(step);
            begin.plus(&times.minus(&Expr::int(1)).times(step))
        }
        [true, false] if s.abs() == 1 => {
            let stop = if s > 0 { end.max_with(begin) } else { end.min_with(begin) };
            stop.minus(step)
        }
        _ => return None,
    };
    let before = begin.minus(step);
    Some([poly::tidy(&last), poly::tidy(&before), Expr::int(-s)])
}

/// Returns the trip count of `range(begin, end, step)`, for any begin, end and step.
pub(crate) fn trip_count([begin, end, step]: [&Expr; 3]) -> Expr {
    let (zero, one) = (Expr::int(0), Expr::int(1));
    let up = zero.less(step);
    let (low, high) = (up.select(begin, end), up.select(end, begin));
    let size = up.select(step, &zero.minus(&step.max_with(&Expr::int(-i64::MAX))));
    let high = high.max_with(&low);
    // high - low = size * (high // size - low // size) + (high % size - low % size)
    let whole = high.floor_div(&size).minus(&low.floor_div(&size));
    let rest = high.modulo(&size).minus(&low.modulo(&size));
    let trips = whole.plus(&rest.max_with(&zero).min_with(&one));
    // The step `i64::MIN` has no absolute value in i64, and fits at most twice between the ends of i64.
    let least = Expr::int(i64::MIN);
    let again = zero.less_eq(begin).and(&end.less(&begin.plus(&least)));
    let few = end.less(begin).select(&again.select(&Expr::int(2), &one), &zero);
    step.equals(&least).select(&few, &trips)
}
