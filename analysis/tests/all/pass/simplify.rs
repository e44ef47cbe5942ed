//! Simplification of small programs, printed.

use super::{Program, branch, check, check_that, int, repeat, store};
use expect_test::expect;
use taffeta_analysis::pass::simplify;
use taffeta_ast::build::{block, local, range, var_def};
use taffeta_ast::expr::Literal;
use taffeta_ast::op::Op;
use taffeta_ast::{DType, Expr, ExprKind, Symbol};

#[test]
fn simplify_example() {
    let p = Program::new();
    let (i, j) = (Symbol::new("i"), Symbol::new("j"));
    let flat = Expr::var(&i).times(&int(4)).plus(&Expr::var(&j));
    let (row, column) = (flat.floor_div(&int(4)), flat.modulo(&int(4)));
    let body = branch(
        int(0).less_eq(&flat),
        vec![check_that(row.less(&p.n)), store(&p.y, [row.clone()], p.x.load([row, column]))],
        vec![],
    );
    let f = p.func(vec![repeat(&i, &p.n, vec![repeat(&j, &int(4), vec![body])])]);
    check(
        simplify::run,
        &f,
        expect![[r#"
        def f(x: f32[n, m], idx: i32[n], a: f32) -> f32[n * m]:
            y = empty((n * m,), f32)
            for i in range(n):
                for j in range(4):
                    y[i] = x[i, j]
            return y
    "#]],
    );
}

#[test]
fn simplify_flattening() {
    let p = Program::new();
    let (i, j) = (Symbol::new("i"), Symbol::new("j"));
    let (vi, vj, vm) = (Expr::var(&i), Expr::var(&j), p.m.clone());
    let flat = vi.times(&vm).plus(&vj);
    let size = p.n.times(&vm);
    let f = p.func(vec![repeat(
        &i,
        &p.n,
        vec![repeat(
            &j,
            &p.m,
            vec![
                check_that(int(0).less_eq(&flat).and(&flat.less(&size))),
                store(&p.y, [flat.clone()], p.x.load([flat.floor_div(&vm), flat.modulo(&vm)])),
            ],
        )],
    )]);
    check(
        simplify::run,
        &f,
        expect![[r#"
            def f(x: f32[n, m], idx: i32[n], a: f32) -> f32[n * m]:
                y = empty((n * m,), f32)
                for i in range(n):
                    for j in range(m):
                        y[i * m + j] = x[i, j]
                return y
        "#]],
    );
}

#[test]
fn simplify_keeps_unproved_checks() {
    let p = Program::new();
    let i = Symbol::new("i");
    let at = p.idx.load([Expr::var(&i)]).cast(DType::I64);
    let inside = int(0).less_eq(&at).and(&at.less(&p.n));
    let value = p.x.load([at.clone(), int(0)]);
    let f = p.func(vec![repeat(
        &i,
        &p.n,
        vec![
            check_that(inside.clone()),
            // The second assertion is redundant.
            check_that(inside),
            check_that(int(0).less(&p.m)),
            store(&p.y, [Expr::var(&i)], value),
        ],
    )]);
    check(
        simplify::run,
        &f,
        expect![[r#"
        def f(x: f32[n, m], idx: i32[n], a: f32) -> f32[n * m]:
            y = empty((n * m,), f32)
            for i in range(n):
                assert 0 <= cast(idx[i], i64) and cast(idx[i], i64) < n  # index
                assert 0 < m  # index
                y[i] = x[cast(idx[i], i64), 0]
            return y
    "#]],
    );
}

#[test]
fn simplify_guards() {
    let p = Program::new();
    let i = Symbol::new("i");
    let vi = Expr::var(&i);
    let before = vi.minus(&int(1));
    let zero = Expr::float(0.0, DType::F32);
    let inner = int(0).less_eq(&before).select(&p.x.load([before.clone(), int(0)]), &zero);
    let value = int(0).less(&vi).select(&inner, &zero);
    let clipped = vi.max_with(&int(0)).min_with(&p.n);
    let f = p.func(vec![repeat(&i, &p.n, vec![store(&p.y, [clipped], value)])]);
    check(
        simplify::run,
        &f,
        expect![[r#"
        def f(x: f32[n, m], idx: i32[n], a: f32) -> f32[n * m]:
            y = empty((n * m,), f32)
            for i in range(n):
                y[i] = x[i - 1, 0] if 0 < i else 0.0
            return y
    "#]],
    );
}

#[test]
fn simplify_loops() {
    let p = Program::new();
    let (i, j, k) = (Symbol::new("i"), Symbol::new("j"), Symbol::new("k"));
    let (vn, vi, vj) = (p.n.clone(), Expr::var(&i), Expr::var(&j));
    let one = Expr::float(1.0, DType::F32);
    let f = p.func(vec![
        // The range from n to n is empty, the one from n to n + 1 has one iteration.
        range(&i, [&vn, &vn, &int(1)], store(&p.y, [vi.clone()], one.clone())),
        range(&j, [&vn, &vn.plus(&int(1)), &int(1)], store(&p.y, [vj.clone()], one.clone())),
        repeat(&k, &p.m, vec![repeat(&i, &Expr::var(&k).min_with(&p.m), vec![store(&p.y, [vi], one)])]),
    ]);
    check(
        simplify::run,
        &f,
        expect![[r#"
        def f(x: f32[n, m], idx: i32[n], a: f32) -> f32[n * m]:
            y = empty((n * m,), f32)
            y[n] = 1.0
            for k in range(m):
                for i in range(k):
                    y[i] = 1.0
            return y
    "#]],
    );
}

#[test]
fn simplify_leaves_floats() {
    let p = Program::new();
    let v = p.x.load([int(0), int(0)]);
    let f32 = |c: f64| Expr::float(c, DType::F32);
    let apply = |op, a: &Expr, b: &Expr| Expr::apply(op, vec![a.clone(), b.clone()]);
    let f = p.func(vec![
        store(&p.y, [int(0)], v.times(&f32(0.0)).plus(&f32(0.0))),
        store(&p.y, [int(1)], v.minus(&v)),
        store(&p.y, [int(2)], apply(Op::Eq, &v, &v).select(&f32(1.0), &f32(2.0))),
        store(&p.y, [int(3)], apply(Op::Div, &f32(1.0), &f32(3.0))),
        branch(apply(Op::Lt, &v, &f32(0.0)).negate(), vec![store(&p.y, [int(4)], v.clone())], vec![]),
    ]);
    check(
        simplify::run,
        &f,
        expect![[r#"
        def f(x: f32[n, m], idx: i32[n], a: f32) -> f32[n * m]:
            y = empty((n * m,), f32)
            y[0] = x[0, 0] * 0.0 + 0.0
            y[1] = x[0, 0] - x[0, 0]
            y[2] = cast(1.0, f32) if x[0, 0] == x[0, 0] else 2.0
            y[3] = 0.33333334
            if not x[0, 0] < 0.0:
                y[4] = x[0, 0]
            return y
    "#]],
    );
}

#[test]
fn simplify_forgets_facts_about_stored_tensors() {
    let p = Program::new();
    let t = local("t", DType::I64, []);
    let i = Symbol::new("i");
    let positive = int(0).less(&t.load([]));
    let set = |v: i64| store(&p.y, [int(0)], Expr::float(v as f64, DType::F32));
    let loops = vec![
        branch(positive.clone(), vec![set(1)], vec![set(2)]),
        store(&t, [], t.load([]).minus(&int(1))),
        // After the store, facts about `t` hold again: `-1 < t` implies `-2 < t`.
        branch(int(-1).less(&t.load([])), vec![branch(int(-2).less(&t.load([])), vec![set(5)], vec![])], vec![]),
    ];
    let body = vec![
        store(&t, [], int(5)),
        check_that(positive.clone()),
        repeat(&i, &p.n, loops),
        branch(positive.clone(), vec![branch(positive, vec![set(3)], vec![set(4)])], vec![]),
    ];
    check(
        simplify::run,
        &p.func(vec![var_def(&t, block(body))]),
        expect![[r#"
        def f(x: f32[n, m], idx: i32[n], a: f32) -> f32[n * m]:
            y = empty((n * m,), f32)
            t = empty((), i64)
            t = 5
            for i in range(n):
                if 0 < t:
                    y[0] = 1.0
                else:
                    y[0] = 2.0
                t = t - 1
                if -1 < t:
                    y[0] = 5.0
            if 0 < t:
                y[0] = 3.0
            return y
    "#]],
    );
}

#[test]
fn simplify_casts() {
    let p = Program::new();
    let at = p.idx.load([int(0)]);
    let back = at.clone().cast(DType::I64).cast(DType::I32);
    let narrow = at.cast(DType::I8).cast(DType::I32);
    let f32 = |e: Expr| e.cast(DType::F32);
    let folded = Expr::raw(ExprKind::Cast(Expr::float(2.75, DType::F64)), DType::I32);
    let f = p.func(vec![
        store(&p.y, [int(0)], f32(back)),
        store(&p.y, [int(1)], f32(narrow)),
        store(&p.y, [int(2)], f32(folded)),
        store(&p.y, [int(3)], f32(Expr::literal(Literal::Int(3), DType::U8))),
    ]);
    check(
        simplify::run,
        &f,
        expect![[r#"
        def f(x: f32[n, m], idx: i32[n], a: f32) -> f32[n * m]:
            y = empty((n * m,), f32)
            y[0] = cast(idx[0], f32)
            y[1] = cast(cast(idx[0], i8), f32)
            y[2] = 2.0
            y[3] = 3.0
            return y
    "#]],
    );
}

#[test]
fn simplify_comparisons_of_equal_operands() {
    let p = Program::new();
    let i = Symbol::new("i");
    let k = p.idx.load([Expr::var(&i)]);
    let more = k.plus(&Expr::literal(Literal::Int(1), DType::I32));
    let x = p.x.load([Expr::var(&i), int(0)]);
    let nothing = repeat(&i, &p.n, vec![check_that(k.equals(&k)), check_that(more.equals(&more))]);
    // NaN differs from itself, and a load that may be out of range is still evaluated.
    let kept = repeat(&i, &p.n, vec![check_that(x.equals(&x))]);
    let beyond = p.idx.load([p.n.clone()]);
    let f = p.func(vec![nothing, kept, check_that(beyond.equals(&beyond))]);
    check(
        simplify::run,
        &f,
        expect![[r#"
        def f(x: f32[n, m], idx: i32[n], a: f32) -> f32[n * m]:
            y = empty((n * m,), f32)
            for i in range(n):
                assert x[i, 0] == x[i, 0]  # index
            assert idx[n] == idx[n]  # index
            return y
    "#]],
    );
}
