//! Ranges of integers, against all values of their operands.

use taffeta_analysis::query::value_range::{is_exact, of};
use taffeta_ast::{DType, Expr, ExprKind, Op, Symbol};

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
        let divides = e.any(&mut |e| matches!(e.kind(), ExprKind::Apply(Op::FloorDiv | Op::Mod, args) if args[1] == b));
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
