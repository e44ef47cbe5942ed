//! Upper bounds in terms of sizes.

use taffeta_analysis::query::upper_bound::{Range, greatest};
use taffeta_ast::{Expr, Op, Symbol};

/// Returns the upper bound of an expression in `i` and `k` with `i` in `range(n)` and `k` in `range(i, m)`.
fn most(make: impl Fn(&Expr, &Expr, &Expr) -> Expr) -> Option<String> {
    let [n, m, i, k] = ["n", "m", "i", "k"].map(Symbol::new);
    let [size, other, of_i, of_k] = [&n, &m, &i, &k].map(Expr::var);
    let around = [
        Range { iter: i.clone(), begin: Expr::int(0), end: size.clone() },
        Range { iter: k.clone(), begin: of_i.clone(), end: other },
    ];
    greatest(&make(&of_i, &of_k, &size), &around, &[n, m]).map(|e| taffeta_ast::print::expr(&e))
}

fn smaller(a: &Expr, b: &Expr) -> Expr {
    Expr::apply(Op::Min, vec![a.clone(), b.clone()])
}

fn larger(a: &Expr, b: &Expr) -> Expr {
    Expr::apply(Op::Max, vec![a.clone(), b.clone()])
}

#[test]
fn upper_bounds_are_expressed_in_sizes() {
    let is = |text: &str, found: Option<String>| assert_eq!(found.as_deref(), Some(text));
    is("n", most(|i, _, _| i.plus(&Expr::int(1))));
    is("n", most(|i, _, n| n.minus(i)));
    is("min(32, n)", most(|i, _, n| smaller(&Expr::int(32), &n.minus(i))));
    // `k` is at least `i`, which is at least 0.
    is("n", most(|_, k, n| n.minus(k)));
    is("m - 1", most(|_, k, _| k.clone()));
    is("(n - 1) // 4", most(|i, _, _| i.floor_div(&Expr::int(4))));
    is("6", most(|i, k, _| i.times(k).modulo(&Expr::int(7))));
    is("8", most(|i, k, _| smaller(&i.times(k), &Expr::int(8))));
}

#[test]
fn indices_without_bounds_in_sizes_have_no_upper_bound() {
    let elsewhere = Expr::var(&Symbol::new("j"));
    assert_eq!(most(|i, k, _| i.times(k)), None);
    assert_eq!(most(|i, _, _| i.plus(&elsewhere)), None);
    assert_eq!(most(|i, _, _| i.times(&Expr::int(-2))), None);
    assert_eq!(most(|i, _, _| larger(i, &elsewhere)), None);
}
