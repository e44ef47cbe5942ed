//! The passes on small programs, printed; the example in the head of each pass is the first test of its name.

use super::simplify;
use crate::testing::{branch, check_that, repeat, store};
use expect_test::{Expect, expect};
use std::sync::Arc;
use weft_ast::expr::Literal;
use weft_ast::func::Param;
use weft_ast::op::Op;
use weft_ast::stmt::Role;
use weft_ast::{DType, Expr, Func, Origin, ParamMode, Stmt, Symbol, Tensor, print};

/// A program `f` with sizes `n` and `m`, inputs `x: f32[n, m]`, `idx: i32[n]`, and a result `y: f32[n * m]`.
struct Program {
    n: Symbol,
    m: Symbol,
    x: Arc<Tensor>,
    idx: Arc<Tensor>,
    y: Arc<Tensor>,
}

impl Program {
    fn new() -> Program {
        let (n, m) = (Symbol::new("n"), Symbol::new("m"));
        let (vn, vm) = (Expr::var(&n), Expr::var(&m));
        let tensor = |name: &str, dtype, shape, role| Arc::new(Tensor::dense(Symbol::new(name), dtype, shape, role));
        Program {
            x: tensor("x", DType::F32, vec![vn.clone(), vm.clone()], Role::Input),
            idx: tensor("idx", DType::I32, vec![vn.clone()], Role::Input),
            y: tensor("y", DType::F32, vec![vn.times(&vm)], Role::Result),
            n,
            m,
        }
    }

    fn func(&self, body: Vec<Stmt>) -> Func {
        let param = |t: &Arc<Tensor>| Param { tensor: t.clone(), mode: ParamMode::In };
        Func {
            name: "f".to_string(),
            doc: None,
            sizes: vec![self.n.clone(), self.m.clone()],
            params: vec![param(&self.x), param(&self.idx)],
            results: vec![self.y.clone()],
            body: Stmt::seq(body, Origin::none()),
        }
    }
}

fn check(pass: fn(&Func) -> Func, before: &Func, after: Expect) {
    let once = pass(before);
    after.assert_eq(&print::func(&once));
    assert_eq!(print::func(&pass(&once)), print::func(&once), "a second run changes something");
}

fn int(v: i64) -> Expr {
    Expr::int(v)
}

#[test]
fn simplify_example() {
    let p = Program::new();
    let (i, j) = (Symbol::new("i"), Symbol::new("j"));
    let flat = Expr::var(&i).times(&int(4)).plus(&Expr::var(&j));
    let (row, column) = (flat.floor_div(&int(4)), flat.modulo(&int(4)));
    let body = branch(
        int(0).less_eq(&flat),
        vec![check_that(row.less(&Expr::var(&p.n))), store(&p.y, [row.clone()], p.x.load([row, column]))],
        vec![],
    );
    let f = p.func(vec![repeat(&i, 0, &p.n, vec![repeat(&j, 0, 4, vec![body])])]);
    check(
        simplify::run,
        &f,
        expect![[r#"
        def f(x: f32[n, m], idx: i32[n]) -> f32[n * m]:
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
    let (vi, vj, vm) = (Expr::var(&i), Expr::var(&j), Expr::var(&p.m));
    let flat = vi.times(&vm).plus(&vj);
    let size = Expr::var(&p.n).times(&vm);
    let f = p.func(vec![repeat(
        &i,
        0,
        &p.n,
        vec![repeat(
            &j,
            0,
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
            def f(x: f32[n, m], idx: i32[n]) -> f32[n * m]:
                y = empty((n * m,), f32)
                for i in range(n):
                    for j in range(m):
                        y[i * m + j] = x[i, j]
                return y
        "#]],
    );
}

#[test]
fn simplify_keeps_what_it_cannot_prove() {
    let p = Program::new();
    let i = Symbol::new("i");
    let at = p.idx.load([Expr::var(&i)]).cast(DType::I64);
    let inside = int(0).less_eq(&at).and(&at.less(&Expr::var(&p.n)));
    let value = p.x.load([at.clone(), int(0)]);
    let f = p.func(vec![repeat(
        &i,
        0,
        &p.n,
        vec![
            check_that(inside.clone()),
            // The second time it was checked already.
            check_that(inside),
            check_that(int(0).less(&Expr::var(&p.m))),
            store(&p.y, [Expr::var(&i)], value),
        ],
    )]);
    check(
        simplify::run,
        &f,
        expect![[r#"
        def f(x: f32[n, m], idx: i32[n]) -> f32[n * m]:
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
    let clipped = vi.max_with(&int(0)).min_with(&Expr::var(&p.n));
    let f = p.func(vec![repeat(&i, 0, &p.n, vec![store(&p.y, [clipped], value)])]);
    check(
        simplify::run,
        &f,
        expect![[r#"
        def f(x: f32[n, m], idx: i32[n]) -> f32[n * m]:
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
    let (vn, vi, vj) = (Expr::var(&p.n), Expr::var(&i), Expr::var(&j));
    let one = Expr::float(1.0, DType::F32);
    let f = p.func(vec![
        // From n to n: never. From n to n + 1: once.
        repeat(&i, &vn, &vn, vec![store(&p.y, [vi.clone()], one.clone())]),
        repeat(&j, &vn, vn.plus(&int(1)), vec![store(&p.y, [vj.clone()], one.clone())]),
        repeat(
            &k,
            0,
            &p.m,
            vec![repeat(&i, 0, Expr::var(&k).min_with(&Expr::var(&p.m)), vec![store(&p.y, [vi], one)])],
        ),
    ]);
    check(
        simplify::run,
        &f,
        expect![[r#"
        def f(x: f32[n, m], idx: i32[n]) -> f32[n * m]:
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
        def f(x: f32[n, m], idx: i32[n]) -> f32[n * m]:
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
fn simplify_forgets_what_a_store_changes() {
    let p = Program::new();
    let t = Tensor::dense(Symbol::new("t"), DType::I64, vec![], Role::Local);
    let i = Symbol::new("i");
    let positive = int(0).less(&t.load([]));
    let set = |v: i64| store(&p.y, [int(0)], Expr::float(v as f64, DType::F32));
    let body = vec![
        store(&t, [], int(5)),
        check_that(positive.clone()),
        repeat(
            &i,
            0,
            &p.n,
            vec![branch(positive.clone(), vec![set(1)], vec![set(2)]), store(&t, [], t.load([]).minus(&int(1)))],
        ),
        branch(positive.clone(), vec![branch(positive, vec![set(3)], vec![set(4)])], vec![]),
    ];
    let body = Stmt::seq(body, Origin::none());
    let def = crate::testing::stmt(weft_ast::StmtKind::VarDef { tensor: Arc::new(t), body });
    check(
        simplify::run,
        &p.func(vec![def]),
        expect![[r#"
        def f(x: f32[n, m], idx: i32[n]) -> f32[n * m]:
            y = empty((n * m,), f32)
            t = empty((), i64)
            t = 5
            assert 0 < t  # index
            for i in range(n):
                if 0 < t:
                    y[0] = 1.0
                else:
                    y[0] = 2.0
                t = t - 1
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
    let folded = Expr::raw(weft_ast::ExprKind::Cast(Expr::float(2.75, DType::F64)), DType::I32);
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
        def f(x: f32[n, m], idx: i32[n]) -> f32[n * m]:
            y = empty((n * m,), f32)
            y[0] = cast(idx[0], f32)
            y[1] = cast(cast(idx[0], i8), f32)
            y[2] = 2.0
            y[3] = 3.0
            return y
    "#]],
    );
}
