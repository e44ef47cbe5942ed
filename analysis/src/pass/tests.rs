//! Tests of the passes on small programs, printed; the example in the head of each pass is the first test of its name.

use super::{dead, hoist, simplify, stop_gradient};
use expect_test::{Expect, expect};
use std::sync::Arc;
use taffeta_ast::build::{self, Builder, block, local, looped, range, var_def};
use taffeta_ast::expr::Literal;
use taffeta_ast::op::Op;
use taffeta_ast::stmt::AssertKind;
use taffeta_ast::{DType, Expr, ExprKind, Func, Origin, ReduceOp, Stmt, StmtKind, Symbol, Tensor, print};

/// Program `f` with sizes `n` and `m`, inputs `x: f32[n, m]`, `idx: i32[n]` and `a: f32`, and a result `y: f32[n * m]`.
struct Program {
    interface: Func,
    n: Expr,
    m: Expr,
    x: Arc<Tensor>,
    idx: Arc<Tensor>,
    a: Arc<Tensor>,
    y: Arc<Tensor>,
}

impl Program {
    fn new() -> Program {
        let mut b = Builder::new("f");
        let (n, m) = (b.size("n"), b.size("m"));
        Program {
            x: b.input("x", DType::F32, [&n, &m]),
            idx: b.input("idx", DType::I32, [&n]),
            a: b.input("a", DType::F32, []),
            y: b.result("y", DType::F32, [&n.times(&m)]),
            interface: b.finish(Stmt::nop()),
            n,
            m,
        }
    }

    fn func(&self, body: Vec<Stmt>) -> Func {
        self.interface.with_body(block(body))
    }
}

fn repeat(i: &Symbol, end: &Expr, body: Vec<Stmt>) -> Stmt {
    looped(i, end, block(body))
}

fn store<const N: usize>(t: &Tensor, indices: [Expr; N], value: Expr) -> Stmt {
    build::store(t, &indices, &value)
}

fn branch(cond: Expr, then: Vec<Stmt>, otherwise: Vec<Stmt>) -> Stmt {
    let otherwise = (!otherwise.is_empty()).then(|| block(otherwise));
    build::branch(&cond, block(then), otherwise)
}

/// Builds an assertion as lowering inserts it before an access.
fn check_that(cond: Expr) -> Stmt {
    Stmt::new(StmtKind::Assert { cond, message: Vec::new(), kind: AssertKind::Index }, Origin::none())
}

fn check(pass: fn(&Func) -> Func, before: &Func, after: Expect) {
    let once = pass(before);
    after.assert_eq(&print::func(&once));
    assert_eq!(print::func(&pass(&once)), print::func(&once), "a second run changes the program");
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

#[test]
fn shared_operands_are_visited_once() {
    let p = Program::new();
    let i = Symbol::new("i");
    let at = p.idx.load([Expr::var(&i)]).cast(DType::I64);
    // There are 2^16 paths to the load, through sums and through lazy operands.
    let mut e = at.clone();
    let mut x = p.x.load([Expr::var(&i), int(0)]);
    for k in 0..8 {
        e = e.plus(&e).minus(&int(k));
        e = e.less(&at).select(&e.plus(&int(1)), &e);
        x = Expr::apply(Op::Lt, vec![x.clone(), x.clone()]).select(&x.plus(&x), &x);
    }
    let f = p.func(vec![repeat(&i, &p.n, vec![check_that(e.less(&p.n)), store(&p.y, [int(0)], x)])]);
    for pass in [simplify::run, dead::run, hoist::run] {
        let _ = pass(&f);
    }
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

#[test]
fn stop_gradient_example() {
    let p = Program::new();
    let (i, zero) = (Symbol::new("i"), Expr::int(0));
    let stopped = |e: Expr| Expr::apply(Op::StopGradient, vec![e]);
    let value = stopped(p.x.load([Expr::var(&i), zero]).minus(&stopped(p.a.load([]))));
    let f = p.func(vec![repeat(&i, &p.n, vec![store(&p.y, [Expr::var(&i)], Expr::apply(Op::Exp, vec![value]))])]);
    check(
        stop_gradient::run,
        &f,
        expect![[r#"
            def f(x: f32[n, m], idx: i32[n], a: f32) -> f32[n * m]:
                y = empty((n * m,), f32)
                for i in range(n):
                    y[i] = exp(x[i, 0] - a)
                return y
        "#]],
    );
}
