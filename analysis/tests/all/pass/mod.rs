//! Tests of the passes on small programs, printed, and on random ones. The example in the head of each pass is the
//! first test of its file.

mod check_finite;
mod copy;
mod dead;
mod float;
mod hoist;
mod random;
mod rewrite_accesses;
mod shared_values;
mod simplify;
mod sroa;
mod stop_gradient;

use expect_test::Expect;
use std::sync::Arc;
use taffeta_analysis::pass;
use taffeta_ast::build::{self, Builder, block, looped};
use taffeta_ast::op::Op;
use taffeta_ast::stmt::AssertKind;
use taffeta_ast::{DType, Expr, Func, Origin, Stmt, StmtKind, Symbol, Tensor, print};

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
    for run in [pass::simplify::run, pass::dead::run, pass::hoist::run] {
        let _ = run(&f);
    }
}
