//! Hoisting in small programs, printed.

use super::{Program, branch, check, check_that, int, repeat, store};
use expect_test::expect;
use taffeta_analysis::pass::hoist;
use taffeta_ast::build::{self, block, local, var_def};
use taffeta_ast::op::Op;
use taffeta_ast::{DType, Expr, ReduceOp, Symbol};

#[test]
fn hoist_example() {
    let p = Program::new();
    let (i, j) = (Symbol::new("i"), Symbol::new("j"));
    let (vi, vj) = (Expr::var(&i), Expr::var(&j));
    let check_row = check_that(p.idx.load([vi.clone()]).cast(DType::I64).less(&p.n));
    let exp = Expr::apply(Op::Exp, vec![p.a.load([])]);
    let value = p.x.load([vi.clone(), vj]).times(&exp);
    let inner = repeat(&j, &p.m, vec![check_row, build::reduce(&p.y, [&vi], ReduceOp::Add, &value)]);
    check(
        hoist::run,
        &p.func(vec![repeat(&i, &p.n, vec![inner])]),
        expect![[r#"
        def f(x: f32[n, m], idx: i32[n], a: f32) -> f32[n * m]:
            y = empty((n * m,), f32)
            exp_value = empty((), f32)
            exp_value = exp(a)
            for i in range(n):
                assert m <= 0 or cast(idx[i], i64) < n  # index
                for j in range(m):
                    y[i] += x[i, j] * exp_value
            return y
    "#]],
    );
}

#[test]
fn hoist_leaves_checks_in_empty_loops() {
    let p = Program::new();
    let i = Symbol::new("i");
    let never = build::range(&i, [&int(2), &int(2), &int(1)], check_that(p.n.equals(&p.m)));
    check(
        hoist::run,
        &p.func(vec![never]),
        expect![[r#"
        def f(x: f32[n, m], idx: i32[n], a: f32) -> f32[n * m]:
            y = empty((n * m,), f32)
            for i in range(2, 2):
                assert n == m  # index
            return y
    "#]],
    );
}

#[test]
fn hoist_leaves_checks_of_changing_values() {
    let p = Program::new();
    let (i, j, k) = (Symbol::new("i"), Symbol::new("j"), Symbol::new("k"));
    let t = local("t", DType::I64, []);
    let (vi, vj) = (Expr::var(&i), Expr::var(&j));
    let one = Expr::float(1.0, DType::F32);
    let body = vec![
        // The first changes in both loops; the second in neither, under an invariant branch; the third in neither,
        // under a variant one.
        check_that(t.load([]).less(&p.n)),
        branch(int(2).less(&p.m), vec![check_that(int(7).less(&p.n))], vec![]),
        branch(vj.less(&vi), vec![check_that(int(8).less(&p.n))], vec![]),
        // The load may be out of range before it is checked.
        check_that(p.idx.load([int(3)]).cast(DType::I64).less(&p.m)),
        store(&t, [], t.load([]).plus(&int(1))),
        store(&p.y, [p.n.plus(&vi).floor_div(&p.m)], one),
    ];
    let nest = repeat(&i, &p.n, vec![repeat(&j, &vi, body)]);
    // A check that is repeated in a loop moves out once.
    let again = repeat(&k, &p.n, vec![check_that(p.n.less(&p.m)), check_that(p.n.less(&p.m))]);
    let f = p.func(vec![var_def(&t, block([store(&t, [], int(0)), nest])), again]);
    check(
        hoist::run,
        &f,
        expect![[r#"
        def f(x: f32[n, m], idx: i32[n], a: f32) -> f32[n * m]:
            y = empty((n * m,), f32)
            t = empty((), i64)
            t = 0
            for i in range(n):
                assert i <= 0 or (m <= 2 or 7 < n)  # index
                for j in range(i):
                    assert t < n  # index
                    if 2 < m:
                        pass
                    if j < i:
                        assert 8 < n  # index
                    assert cast(idx[3], i64) < m  # index
                    t = t + 1
                    y[(n + i) // m] = 1.0
            del t
            assert n <= 0 or n < m  # index
            for k in range(n):
                pass
            return y
    "#]],
    );
}
