//! Ranges of integer expressions from the ranges of their leaves, without facts about the program: for the choice
//! between two forms of C, sizes of tapes, and other quick decisions. [`Context`](super::Context) proves more.

use super::interval::Interval;
use taffeta_ast::op::Op;
use taffeta_ast::{Expr, ExprKind};

/// Range of an expression: its least and its greatest value.
pub type Range = (i128, i128);

/// Ranges of leaves: variables, loads, and operators without a rule. `None` if unknown.
pub type Leaves<'a> = dyn FnMut(&Expr) -> Option<Range> + 'a;

/// Bounds an integer expression. Where a step of the computation may wrap, any value of its type is possible. Returns
/// `None` if a leaf is unknown.
pub fn of(e: &Expr, leaf: &mut Leaves<'_>) -> Option<Range> {
    let (lo, hi) = e.dtype().int_range()?;
    let (least, greatest) = unwrapped(e, leaf)?;
    Some(if lo <= least && greatest <= hi { (least, greatest) } else { (lo, hi) })
}

/// Proves that no step of computing an integer expression can wrap.
pub fn is_exact(e: &Expr, leaf: &mut Leaves<'_>) -> bool {
    let mut wraps = |e: &Expr| {
        let ExprKind::Apply(op @ (Op::Add | Op::Sub | Op::Mul | Op::Neg | Op::Abs), args) = e.kind() else {
            return false;
        };
        let Some((lo, hi)) = e.dtype().int_range() else { return false };
        // The range of a leaf would not do: it is that of the wrapped result.
        let operands: Option<Vec<Range>> = args.iter().map(|a| of(a, leaf)).collect();
        !operands.and_then(|r| applied(*op, &r)).is_some_and(|v| lo <= v.0 && v.1 <= hi)
    };
    !e.any(&mut wraps)
}

/// Bounds the mathematical value of an expression whose operands wrap, and which does not.
fn unwrapped(e: &Expr, leaf: &mut Leaves<'_>) -> Option<Range> {
    let (op, operands) = match e.kind() {
        ExprKind::Const(_) => return e.as_int().map(|v| (v.into(), v.into())),
        ExprKind::Cast(inner) if inner.dtype().is_int() => return of(inner, leaf),
        ExprKind::Apply(Op::Select, args) => (Op::Select, &args[1..]),
        ExprKind::Apply(op, args) if args.iter().all(|a| a.dtype().is_int()) => (*op, &args[..]),
        _ => return leaf(e),
    };
    let ranges: Vec<Range> = operands.iter().map(|a| of(a, leaf)).collect::<Option<_>>()?;
    applied(op, &ranges).or_else(|| leaf(e))
}

/// Bounds the result of an operator; `None` without a rule, and where the bounds are too large to compute.
fn applied(op: Op, operands: &[Range]) -> Option<Range> {
    let interval = |(lo, hi): Range| Interval::new(lo, hi);
    let (a, b) = match *operands {
        [a] => (interval(a), None),
        [a, b] => (interval(a), Some(interval(b))),
        _ => return None,
    };
    let found = match (op, b) {
        (Op::Neg, None) => a.scale(-1),
        (Op::Add, Some(b)) => a.plus(b),
        (Op::Sub, Some(b)) => a.plus(b.scale(-1)),
        (Op::Mul, Some(b)) => a.multiply(b),
        (Op::Select, Some(b)) => a.join(b),
        (Op::Min, Some(b)) => Interval::new(a.lo.min(b.lo), a.hi.min(b.hi)),
        (Op::Max, Some(b)) => Interval::new(a.lo.max(b.lo), a.hi.max(b.hi)),
        (Op::FloorDiv, Some(b)) if b.lo > 0 => a.floor_div(b.lo).join(a.floor_div(b.hi)),
        (Op::Mod, Some(b)) if b.lo > 0 => match (a.as_point(), b.as_point()) {
            (Some(a), Some(b)) => Interval::point(a.rem_euclid(b)),
            _ if a.lo >= 0 => Interval::new(0, a.hi.min(b.hi - 1)),
            _ => Interval::new(0, b.hi - 1),
        },
        _ => return None,
    };
    (Interval::ALL.lo < found.lo && found.hi < Interval::ALL.hi).then_some((found.lo, found.hi))
}
