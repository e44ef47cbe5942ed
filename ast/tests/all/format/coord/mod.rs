//! Values and ranges of coordinates.

mod parse;

use taffeta_ast::format::Coord;
use taffeta_ast::{Expr, Op};

/// Applies an operator to two indices.
fn compute(op: Op, a: i64, b: i64) -> Option<i64> {
    Coord::apply(op, Coord::Dim(0), Coord::Dim(1)).value(&[a, b])
}

/// Returns the Morton code of indices.
fn interleaved(indices: &[i64]) -> Option<i64> {
    Coord::Morton((0..indices.len()).map(Coord::Dim).collect()).value(indices)
}

/// Checks floor division and remainder against Python's.
#[test]
fn quotients_and_remainders_have_the_divisors_sign() {
    for (a, b, q, r) in [(7, 2, 3, 1), (-7, 2, -4, 1), (7, -2, -4, -1), (-7, -2, 3, -1), (6, -3, -2, 0)] {
        assert_eq!((compute(Op::FloorDiv, a, b), compute(Op::Mod, a, b)), (Some(q), Some(r)), "{a} {b}");
    }
    assert_eq!((compute(Op::FloorDiv, 1, 0), compute(Op::Mod, 1, 0)), (None, None));
    assert_eq!((compute(Op::Shl, 1, 63), compute(Op::Shl, 3, 62), compute(Op::Shr, -8, 1)), (None, None, Some(-4)));
}

#[test]
fn bits_are_interleaved() {
    assert_eq!(interleaved(&[0b11, 0b00]), Some(0b1010));
    assert_eq!(interleaved(&[0b01, 0b11]), Some(0b0111));
    assert_eq!(interleaved(&[1, 0, 1]), Some(0b101));
    assert_eq!((interleaved(&[-1]), interleaved(&[1 << 32, 0])), (None, None));
}

#[test]
fn ranges_follow_from_the_ranges_of_indices() {
    let of = |c: &Coord| c.range(&[Expr::int(5), Expr::int(7)]).map(|[a, b]| (a.as_int(), b.as_int()));
    let (i, j) = (Coord::Dim(0), Coord::Dim(1));
    let apply = |op, a: &Coord, b: i64| Coord::apply(op, a.clone(), Coord::Int(b));
    assert_eq!(of(&Coord::apply(Op::Sub, j.clone(), i.clone())), Some((Some(-4), Some(7))));
    assert_eq!(of(&apply(Op::FloorDiv, &i, 2)), Some((Some(0), Some(3))));
    assert_eq!(of(&apply(Op::Mod, &j, 3)), Some((Some(0), Some(3))));
    assert_eq!(of(&apply(Op::Mul, &j, -2)), Some((Some(-12), Some(1))));
    assert_eq!(of(&Coord::Counter([i].into())), None);
}
