//! Replacement of small arrays by scalars.

use expect_test::expect;
use rustc_hash::FxHashSet;
use taffeta_analysis::pass::sroa::run;
use taffeta_ast::build::{Builder, block, local, looped, reduce, store, var_def};
use taffeta_ast::{DType, Expr, Func, ReduceOp, Stmt, StmtKind, Symbol, Tensor, print, validate};

/// Runs the pass on a loop over `i` that declares `l` with this shape and runs these statements, and prints the
/// program.
fn after(shape: &[i64], inside: impl FnOnce(&Tensor, [&Tensor; 2], &Expr) -> Vec<Stmt>) -> String {
    let mut b = Builder::new("f");
    let n = b.size("n");
    let x = b.input("x", DType::F64, [&n]);
    let y = b.result("y", DType::F64, [&n]);
    let i = Symbol::new("i");
    let l = local("l", DType::F64, shape.iter().map(|d| Expr::int(*d)).collect::<Vec<_>>().iter());
    let body = block(inside(&l, [&x, &y], &Expr::var(&i)));
    let f = b.finish(looped(&i, &n, var_def(&l, body)));
    let after = run(&f);
    assert_eq!(validate::logical(&after), Ok(()));
    let ids = |f: &Func| {
        let mut all = FxHashSet::default();
        f.body.walk(&mut |s| all.extend([s.id()]));
        all
    };
    let mut loops = 0;
    f.body.walk(&mut |s| loops += usize::from(matches!(s.kind(), StmtKind::For { .. })));
    assert!(loops > 1 || ids(&f).is_subset(&ids(&after)), "a statement lost its identifier");
    print::func(&after)
}

#[test]
fn example() {
    let text = after(&[2], |l, [x, y], i| {
        let [zero, one] = [0, 1].map(Expr::int);
        vec![
            store(l, [&zero], &x.load([i.clone()])),
            store(l, [&one], &l.load([zero.clone()]).plus(&Expr::float(1.0, DType::F64))),
            store(y, [i], &l.load([zero]).times(&l.load([one]))),
        ]
    });
    expect![[r#"
        def f(x: f64[n]) -> f64[n]:
            y = empty((n,), f64)
            for i in range(n):
                l_0 = empty((), f64)
                l_1 = empty((), f64)
                l_0 = x[i]
                l_1 = l_0 + 1.0
                y[i] = l_0 * l_1
            return y
    "#]]
    .assert_eq(&text);
}

/// Checks elements with several subscripts, reductions, and an element without accesses.
#[test]
fn matrices_and_reductions() {
    let text = after(&[2, 2], |l, [x, y], i| {
        let [zero, one] = [0, 1].map(Expr::int);
        vec![
            store(l, [&zero, &one], &x.load([i.clone()])),
            reduce(l, [&zero, &one], ReduceOp::Add, &x.load([i.clone()])),
            store(l, [&one, &one], &l.load([zero.clone(), one.clone()])),
            store(y, [i], &l.load([one.clone(), one])),
        ]
    });
    expect![[r#"
        def f(x: f64[n]) -> f64[n]:
            y = empty((n,), f64)
            for i in range(n):
                l_0_1 = empty((), f64)
                l_1_1 = empty((), f64)
                l_0_1 = x[i]
                l_0_1 += x[i]
                l_1_1 = l_0_1
                y[i] = l_1_1
            return y
    "#]]
    .assert_eq(&text);
}

/// Checks that loops over an array are unrolled, nested ones too.
#[test]
fn loops_over_arrays_are_unrolled() {
    let text = after(&[2, 2], |l, [x, y], i| {
        let [zero, one, two] = [0, 1, 2].map(Expr::int);
        let [j, k] = ["j", "k"].map(Symbol::new);
        let at = [Expr::var(&j), Expr::var(&k)];
        let clear = store(l, [&at[0], &at[1]], &Expr::float(0.0, DType::F64));
        let own = Symbol::new("j");
        let add = reduce(l, [&zero, &Expr::var(&own)], ReduceOp::Add, &x.load([i.plus(&Expr::var(&own))]));
        vec![
            looped(&j, &two, looped(&k, &two, clear)),
            looped(&own, &two, add),
            store(y, [i], &l.load([zero.clone(), zero]).times(&l.load([one.clone(), one]))),
        ]
    });
    expect![[r#"
        def f(x: f64[n]) -> f64[n]:
            y = empty((n,), f64)
            for i in range(n):
                l_0_0 = empty((), f64)
                l_0_1 = empty((), f64)
                l_1_0 = empty((), f64)
                l_1_1 = empty((), f64)
                l_0_0 = 0.0
                l_0_1 = 0.0
                l_1_0 = 0.0
                l_1_1 = 0.0
                l_0_0 += x[i]
                l_0_1 += x[i + 1]
                y[i] = l_0_0 * l_1_1
            return y
    "#]]
    .assert_eq(&text);
    // If the array stays because of another access, its loop stays, too.
    let text = after(&[2], |l, [x, y], i| {
        let k = Symbol::new("k");
        let clear = store(l, [&Expr::var(&k)], &x.load([i.clone()]));
        vec![looped(&k, &Expr::int(2), clear), store(y, [i], &l.load([i.modulo(&Expr::int(2))]))]
    });
    assert!(text.contains("for k in range(2):"), "{text}");
}

/// Checks that arrays stay that are too large, or have a subscript that is not a number or is out of range.
#[test]
fn large_or_dynamically_indexed_arrays_stay() {
    let zero = Expr::int(0);
    for (shape, at) in [(vec![33], zero.clone()), (vec![4], Expr::int(4)), (vec![4], Expr::int(-1))] {
        let text = after(&shape, |l, [x, y], i| {
            vec![store(l, [&zero], &x.load([i.clone()])), store(y, [i], &l.load([at.clone()]))]
        });
        assert!(text.contains("l[0] = x[i]"), "{text}");
    }
    let text = after(&[4], |l, [x, y], i| {
        vec![store(l, [&zero], &x.load([i.clone()])), store(y, [i], &l.load([i.modulo(&Expr::int(4))]))]
    });
    assert!(text.contains("l[0] = x[i]"), "{text}");
}
