//! Removal of statements without effect from small programs, printed.

use super::{Program, branch, check, check_that, int, repeat, store};
use expect_test::expect;
use taffeta_analysis::pass::{dead, hoist};
use taffeta_ast::build::{self, local, var_def};
use taffeta_ast::{DType, Expr, Origin, ReduceOp, Stmt, StmtKind, Symbol, print};

#[test]
fn dead_example() {
    let p = Program::new();
    let (t, i) = (local("t", DType::F32, [&p.n]), Symbol::new("i"));
    let vi = Expr::var(&i);
    let body = repeat(
        &i,
        &p.n,
        vec![
            store(&t, [vi.clone()], p.x.load([vi.clone(), int(0)])),
            branch(vi.less(&int(3)), vec![], vec![]),
            store(&p.y, [vi.clone()], Expr::float(1.0, DType::F32)),
        ],
    );
    let known = Stmt::new(StmtKind::Assume { cond: int(0).less(&p.m) }, Origin::none());
    let f = p.func(vec![known, var_def(&t, body)]);
    check(
        dead::run,
        &f,
        expect![[r#"
        def f(x: f32[n, m], idx: i32[n], a: f32) -> f32[n * m]:
            y = empty((n * m,), f32)
            assume(0 < m)
            for i in range(n):
                y[i] = 1.0
            return y
    "#]],
    );
}

#[test]
fn dead_removes_tensors_read_only_by_each_other() {
    let p = Program::new();
    let i = Symbol::new("i");
    let vi = Expr::var(&i);
    let (s, w) = (local("s", DType::F32, []), local("w", DType::F32, [&p.n]));
    let (kept, seen) = (local("kept", DType::F32, []), local("seen", DType::F32, []));
    let one = || Expr::float(1.0, DType::F32);
    // `s` is computed from `w` and `w` from `s`, as in a softmax; a condition reads `seen`, which is computed from
    // `kept`.
    let f = p.func(vec![var_def(
        &s,
        Stmt::seq(
            [
                store(&s, [], one()),
                var_def(
                    &w,
                    repeat(
                        &i,
                        &p.n,
                        vec![
                            store(&w, [vi.clone()], s.load([])),
                            build::reduce(&s, [], ReduceOp::Add, &w.load([vi.clone()])),
                        ],
                    ),
                ),
                var_def(
                    &kept,
                    var_def(
                        &seen,
                        Stmt::seq(
                            [
                                store(&kept, [], one()),
                                store(&seen, [], kept.load([])),
                                branch(seen.load([]).less(&one()), vec![store(&p.y, [int(0)], one())], vec![]),
                            ],
                            Origin::none(),
                        ),
                    ),
                ),
            ],
            Origin::none(),
        ),
    )]);
    check(
        dead::run,
        &f,
        expect![[r#"
        def f(x: f32[n, m], idx: i32[n], a: f32) -> f32[n * m]:
            y = empty((n * m,), f32)
            kept = empty((), f32)
            seen = empty((), f32)
            kept = 1.0
            seen = kept
            if seen < 1.0:
                y[0] = 1.0
            return y
    "#]],
    );
}

#[test]
fn dead_keeps_statements_that_may_fail() {
    let p = Program::new();
    let i = Symbol::new("i");
    let vi = Expr::var(&i);
    let at = p.idx.load([vi.clone()]).cast(DType::I64);
    let one = Expr::float(1.0, DType::F32);
    let scalar = |name: &str| local(name, DType::F32, []);
    let (unused, reads, negative) =
        (scalar("unused"), scalar("reads"), local("negative", DType::F32, [&p.n.minus(&int(1))]));
    let large = int(1 << 24);
    let overflows = local("overflows", DType::F32, [&large, &large, &int(0)]);
    let surely = local("surely", DType::F32, [&large, &large.plus(&p.n), &p.m]);
    let fits = local("fits", DType::F32, [&large, &int(1 << 23), &int(0)]);
    let unknown = local("unknown", DType::F32, [&p.n, &p.n, &p.m]);
    let f = p.func(vec![
        var_def(&unused, store(&unused, [], one.clone())),
        // The load may be out of range.
        var_def(
            &reads,
            repeat(&i, &p.n, vec![build::reduce(&reads, [], ReduceOp::Add, &p.x.load([at.clone(), int(0)]))]),
        ),
        // The size may be negative.
        var_def(&negative, Stmt::nop()),
        // No tensor has so many elements, not even an empty one: the product of its other sizes is too large. For
        // unknown sizes an overflow is not sure.
        var_def(&overflows, Stmt::nop()),
        var_def(&surely, Stmt::nop()),
        var_def(&fits, Stmt::nop()),
        var_def(&unknown, Stmt::nop()),
        branch(int(0).less(&p.x.load([int(0), int(0)]).cast(DType::I64)), vec![], vec![]),
    ]);
    check(
        dead::run,
        &f,
        expect![[r#"
        def f(x: f32[n, m], idx: i32[n], a: f32) -> f32[n * m]:
            y = empty((n * m,), f32)
            reads = empty((), f32)
            for i in range(n):
                reads += x[cast(idx[i], i64), 0]
            del reads
            negative = empty((n - 1,), f32)
            del negative
            overflows = empty((16777216, 16777216, 0), f32)
            del overflows
            surely = empty((16777216, n + 16777216, m), f32)
            del surely
            if 0 < cast(x[0, 0], i64):
                pass
            return y
    "#]],
    );
}

/// Checks that a dead tensor leaves a check of its sizes, unless a parameter has the same sizes.
#[test]
fn sizes_of_dead_tensors_are_checked() {
    let p = Program::new();
    let (small, large) = (local("s", DType::F32, [&p.m, &p.n]), local("t", DType::F32, [&p.n, &p.n]));
    let i = Symbol::new("i");
    let set = store(&p.y, [Expr::var(&i)], Expr::float(1.0, DType::F32));
    let body = repeat(&i, &p.n, vec![var_def(&small, var_def(&large, set))]);
    let f = p.func(vec![body]);
    check(
        |f| hoist::run(&dead::run_with_size_checks(f)),
        &f,
        expect![[r#"
        def f(x: f32[n, m], idx: i32[n], a: f32) -> f32[n * m]:
            y = empty((n * m,), f32)
            if 0 < n:
                t = empty((n, n), f32)
            for i in range(n):
                y[i] = 1.0
            return y
    "#]],
    );
}

/// Checks that a dead store goes if its index checks are repeated elsewhere, as a backward pass repeats those of a
/// forward pass.
#[test]
fn checks_that_are_repeated_are_dead() {
    let p = Program::new();
    let (i, j, k) = (Symbol::new("i"), Symbol::new("j"), Symbol::new("k"));
    let t = local("t", DType::F32, [&p.n]);
    let at = |i: &Symbol| Expr::load(&p.idx.symbol, vec![Expr::var(i).into()], DType::I32).cast(DType::I64);
    let load = |i: &Symbol, j: Expr| Expr::load(&p.x.symbol, vec![at(i).into(), j.into()], DType::F32);
    // The access `x[idx[i], 0]` needs `m > 0`.
    let dead = |last: Expr| {
        let fill = repeat(&i, &p.n, vec![store(&t, [Expr::var(&i)], load(&i, last))]);
        var_def(&t, fill)
    };
    let alive = |end: &Expr, of: &dyn Fn(&Symbol) -> Expr| {
        let y = |j: &Symbol| store(&p.y, [Expr::var(j)], of(j));
        repeat(&j, end, vec![y(&j)])
    };
    let some = check_that(Expr::int(0).less(&p.m));
    let first = |j: &Symbol| load(j, Expr::int(0));
    let run = |body: Vec<Stmt>| print::func(&dead::run_without_repeated_checks(&p.func(body)));
    let gone = |text: &str| !text.contains("t[i] = ");
    // The same iterations, after or before the dead store, or in reverse order.
    assert!(gone(&run(vec![some.clone(), dead(Expr::int(0)), alive(&p.n, &first)])));
    assert!(gone(&run(vec![some.clone(), alive(&p.n, &first), dead(Expr::int(0))])));
    let backwards = |j: &Symbol| {
        let from_the_end = p.n.minus(&Expr::int(1)).minus(&Expr::var(j));
        let at = Expr::load(&p.idx.symbol, vec![from_the_end.into()], DType::I32).cast(DType::I64);
        Expr::load(&p.x.symbol, vec![at.into(), Expr::int(0).into()], DType::F32)
    };
    assert!(gone(&run(vec![some.clone(), dead(Expr::int(0)), alive(&p.n, &backwards)])));
    // Fewer iterations; another dimension's size; an index without a counterpart; a condition; only another dead store.
    assert!(!gone(&run(vec![some.clone(), dead(Expr::int(0)), alive(&p.n.minus(&Expr::int(1)), &first)])));
    let other = |j: &Symbol| Expr::load(&p.x.symbol, vec![Expr::int(0).into(), Expr::var(j).into()], DType::F32);
    assert!(!gone(&run(vec![some.clone(), dead(Expr::int(0)), alive(&p.n, &other)])));
    assert!(!gone(&run(vec![some.clone(), dead(Expr::int(5)), alive(&p.n, &first)])));
    let guarded = branch(Expr::var(&k).less(&Expr::int(2)), vec![store(&p.y, [Expr::var(&k)], first(&k))], vec![]);
    assert!(!gone(&run(vec![some.clone(), dead(Expr::int(0)), repeat(&k, &p.n, vec![guarded])])));
    assert!(!gone(&run(vec![some.clone(), dead(Expr::int(0)), dead(Expr::int(0))])));
    // Other passes keep a store that may stop the program.
    let kept = print::func(&dead::run(&p.func(vec![some, dead(Expr::int(0)), alive(&p.n, &first)])));
    assert!(kept.contains("t[i] = "), "{kept}");
}
