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

#[cfg(test)]
mod tests {
    use super::*;
    use taffeta_ast::{DType, Symbol};

    /// Checks every operator against all values of its operands.
    #[test]
    fn ranges_contain_all_values() {
        let [x, y] = ["x", "y"].map(Symbol::new);
        let (a, b) = (Expr::var(&x), Expr::var(&y));
        let exprs = [
            a.plus(&b),
            a.minus(&b),
            a.times(&b),
            a.min_with(&b),
            a.max_with(&b),
            a.floor_div(&b),
            Expr::apply(Op::Mod, vec![a.clone(), b.clone()]),
            Expr::apply(Op::Neg, vec![a.clone()]),
            a.times(&b).minus(&a.floor_div(&Expr::int(3))),
        ];
        let spans = [(-7i128, -3i128), (-4, 5), (0, 0), (1, 4), (2, 9)];
        let pairs = spans.iter().flat_map(|p| spans.iter().map(move |q| (p, q)));
        for (e, (of_x, of_y)) in exprs.iter().flat_map(|e| pairs.clone().map(move |p| (e, p))) {
            let divides =
                e.any(&mut |e| matches!(e.kind(), ExprKind::Apply(Op::FloorDiv | Op::Mod, args) if args[1] == b));
            if divides && of_y.0 <= 0 {
                continue;
            }
            let mut leaf = |e: &Expr| match e {
                e if *e == a => Some(*of_x),
                e if *e == b => Some(*of_y),
                _ => None,
            };
            let (lo, hi) = of(e, &mut leaf).expect("all leaves are known");
            for (v, w) in (of_x.0..=of_x.1).flat_map(|v| (of_y.0..=of_y.1).map(move |w| (v, w))) {
                let mut at = |e: Expr| match e.kind() {
                    ExprKind::Var(s) => Expr::int(if *s == x { v } else { w } as i64),
                    _ => e,
                };
                let value = e.rewrite(&mut at).as_int().expect("constants fold");
                assert!((lo..=hi).contains(&value.into()), "{e:?} at {v}, {w} is {value}, not in {lo}..={hi}");
            }
        }
    }

    #[test]
    fn results_that_may_wrap_have_the_range_of_their_type() {
        let x = Expr::var(&Symbol::new("x"));
        let narrow = x.cast(DType::I8);
        let double = Expr::apply(Op::Add, vec![narrow.clone(), narrow]);
        let upto = |hi: i128| of(&double, &mut |_| Some((0, hi)));
        assert_eq!((upto(63), upto(64)), (Some((0, 126)), Some((-128, 127))));
        assert!(is_exact(&double, &mut |_| Some((0, 63))) && !is_exact(&double, &mut |_| Some((0, 64))));
    }

    /// Checks that a product of unknown factors and an absolute value may wrap, also where leaves have the range of
    /// their type.
    #[test]
    fn unknown_results_may_wrap() {
        let (a, b) = (Expr::var(&Symbol::new("a")), Expr::var(&Symbol::new("b")));
        let absolute = Expr::apply(Op::Abs, vec![a.clone()]);
        for e in [a.times(&b), a.plus(&b), a.times(&b).minus(&a), absolute] {
            assert!(!is_exact(&e, &mut |e| e.dtype().int_range()), "{e:?}");
        }
        assert!(is_exact(&a.times(&b), &mut |_| Some((-9, 9))));
    }
}
