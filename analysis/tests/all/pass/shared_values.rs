//! Stores to tensors with values that stand for several elements.

use expect_test::expect;
use std::sync::Arc;
use taffeta_analysis::pass::shared_values::run;
use taffeta_ast::build::{Builder, block, looped, reduce, store};
use taffeta_ast::format::{Format, Level, LevelKind, Pattern};
use taffeta_ast::stmt::Role;
use taffeta_ast::{DType, Expr, Func, ReduceOp, Stmt, Symbol, Tensor, print, validate};

/// Builds a program with `B`, a result over the pattern of `A`, which has runs; the body is made from both and `x`.
fn program(body: &dyn Fn([&Tensor; 3], [&Expr; 2]) -> Stmt) -> Func {
    let mut b = Builder::new("f");
    let (n, m) = (b.size("n"), b.size("m"));
    let levels = vec![Level::new(LevelKind::Dense), Level::new(LevelKind::RunLength)];
    let format = Format { pattern: Some(Pattern::fresh()), ..Format::new(levels) };
    let a = b.stored("A", DType::F64, [&n, &m], format);
    let x = b.input("x", DType::F64, [&m]);
    let result = Arc::new(a.like(Symbol::new("B"), Role::Result));
    let body = body([&a, &result, &x], [&n, &m]);
    let func = b.finish(body);
    Func { results: vec![result], ..func }
}

fn over(sizes: [&Expr; 2], body: &dyn Fn([&Expr; 2]) -> Stmt) -> Stmt {
    let [i, j] = ["i", "j"].map(Symbol::new);
    let at = [&i, &j].map(Expr::var);
    looped(&i, sizes[0], looped(&j, sizes[1], body([&at[0], &at[1]])))
}

fn made(func: &Func) -> String {
    let after = run(func).expect("every element is stored");
    assert_eq!(validate::logical(&after), Ok(()), "{}", print::func(&after));
    print::func(&after)
}

#[test]
fn example() {
    let func =
        program(&|[a, b, _], sizes| over(sizes, &|at| reduce(b, at, ReduceOp::Add, &a.load(at.map(Expr::clone)))));
    expect![[r#"
        def f(A: f64[n, m] @ format(dense, runlength), x: f64[m]) -> f64[n, m] @ pattern(A):
            B: f64[n, m] @ pattern(A) = empty((n, m), f64)
            B_before: f64[n, m] @ pattern(A) = empty((n, m), f64)
            for i in range(n):
                for j in range(m):
                    B_before[i, j] = B[i, j]
            for i in range(n):
                for j in range(m):
                    B_now = empty((), f64)
                    B_now = B_before[i, j]
                    B_now += A[i, j]
                    B[i, j] = B_now
            return B
    "#]]
    .assert_eq(&made(&func));
}

/// Checks that stores of a value that is equal for all elements of a run stay.
#[test]
fn stores_of_equal_values_stay() {
    let func = program(&|[a, b, x], sizes| {
        over(sizes, &|at| {
            let value = a.load(at.map(Expr::clone)).times(&x.load([Expr::int(0)]));
            store(b, at, &value)
        })
    });
    assert_eq!(made(&func), print::func(&func));
}

/// Checks that elements that may differ are compared.
#[test]
fn values_that_may_differ_are_compared() {
    let func = program(&|[a, b, x], sizes| {
        let twice = over(sizes, &|at| store(b, at, &a.load(at.map(Expr::clone))));
        let scaled = over(sizes, &|at| reduce(b, at, ReduceOp::Mul, &x.load([at[1].clone()])));
        block([twice, scaled])
    });
    expect![[r#"
        def f(A: f64[n, m] @ format(dense, runlength), x: f64[m]) -> f64[n, m] @ pattern(A):
            B: f64[n, m] @ pattern(A) = empty((n, m), f64)
            B_own = empty((n, m), f64)
            for B_own.d0 in range(n):
                for B_own.d1 in range(m):
                    B_own[B_own.d0, B_own.d1] = 0.0
            for i in range(n):
                for j in range(m):
                    B_own[i, j] = A[i, j]
            for i in range(n):
                for j in range(m):
                    B_own[i, j] *= x[j]
            for B_own.d0 in range(n):
                for B_own.d1 in range(m):
                    B[B_own.d0, B_own.d1] = B_own[B_own.d0, B_own.d1]
            for B_own.d0 in range(n):
                for B_own.d1 in range(m):
                    assert B[B_own.d0, B_own.d1] == 0.0 and 1.0 / B_own[B_own.d0, B_own.d1] == 1.0 / B[B_own.d0, B_own.d1] if B_own[B_own.d0, B_own.d1] == 0.0 else B_own[B_own.d0, B_own.d1] == B[B_own.d0, B_own.d1] or isnan(B_own[B_own.d0, B_own.d1]) and isnan(B[B_own.d0, B_own.d1]), f"element [{B_own.d0}, {B_own.d1}] of `B` is {B_own[B_own.d0, B_own.d1]}, and one that is stored as the same value is {B[B_own.d0, B_own.d1]}"  # storage
            return B
    "#]]
    .assert_eq(&made(&func));
}
