//! Arithmetic of intervals and residue classes.

use taffeta_analysis::query::{Congruence, Interval};

/// Absence of a bound.
const INFINITY: i128 = Interval::ALL.hi;

#[test]
fn infinite_bounds_stay_infinite() {
    let from_zero = Interval::new(0, INFINITY);
    assert_eq!(from_zero.plus(Interval::point(-5)), Interval::new(-5, INFINITY));
    assert_eq!(from_zero.scale(-3), Interval::new(-INFINITY, 0));
    assert_eq!(from_zero.multiply(from_zero), from_zero);
    assert_eq!(Interval::ALL.floor_div(7), Interval::ALL);
    assert_eq!(Interval::new(-7, 7).floor_div(4), Interval::new(-2, 1));
}

#[test]
fn congruences_of_all_small_values_hold() {
    let classes: Vec<Congruence> = (0..7).flat_map(|m| (-3..7).map(move |r| Congruence::new(m, r))).collect();
    let members = |c: Congruence| {
        (-30i128..30).filter(move |v| match c.modulus {
            0 => *v == c.residue,
            m => (v - c.residue) % m == 0,
        })
    };
    let holds = |c: Congruence, v: i128| match c.modulus {
        0 => v == c.residue,
        m => (v - c.residue) % m == 0,
    };
    for &a in &classes {
        for &b in &classes {
            for x in members(a) {
                assert!(holds(a.join(b), x) && holds(a.scale(6), x * 6));
                for y in members(b) {
                    assert!(holds(a.plus(b), x + y) && holds(a.multiply(b), x * y));
                }
            }
        }
    }
}
