//! Rewriting of accesses.

use expect_test::expect;
use taffeta_analysis::pass::rewrite_accesses::run;
use taffeta_ast::build::{Builder, block, reduce, store};
use taffeta_ast::stmt::{LoopProps, Parallel, Reduction, Sharing};
use taffeta_ast::{DType, Expr, Extent, Origin, ReduceOp, Stmt, StmtKind, Symbol, print, validate};

/// Checks the example, a subscript that is read from the tensor itself, and a loop with the tensor among its
/// reductions.
#[test]
fn example() {
    let mut b = Builder::new("f");
    let n = b.size("n");
    let x = b.input("x", DType::F32, [&n]);
    let y = b.inout("y", DType::F32, [&n, &n]);
    let z = b.inout("z", DType::F32, [&n, &n]);
    let f = b.finish(Stmt::nop());
    let (i, j) = (Symbol::new("i"), Symbol::new("j"));
    let (vi, vj) = (Expr::var(&i), Expr::var(&j));
    let value = y.load([vj.clone(), vi.clone()]).times(&x.load([vi.clone()]));
    let own = y.load([vi.clone(), vj.clone()]).cast(DType::I64);
    let all =
        [reduce(&y, [&vi, &vj], ReduceOp::Add, &value), store(&y, [&own, &vj], &y.load([own.clone(), vi.clone()]))];
    let reduction = Reduction { tensor: y.symbol.clone(), op: ReduceOp::Add, sharing: Sharing::Atomic };
    let props = LoopProps { parallel: Some(Parallel::default()), reductions: vec![reduction], ..LoopProps::default() };
    let extent = Extent::Range { begin: Expr::int(0), end: n.clone(), step: Expr::int(1) };
    let kind = StmtKind::For { iter: i, extent, props, body: block(all) };
    let before = taffeta_ast::build::looped(&j, &n, Stmt::new(kind, Origin::none()));
    let names = [(y.symbol.clone(), z.symbol.clone())].into_iter().collect();
    let after = run(&before, &names, &|at| at.into_iter().rev().collect());
    let (mut old, mut new) = (Vec::new(), Vec::new());
    before.walk(&mut |s| old.push(s.id()));
    after.walk(&mut |s| new.push(s.id()));
    assert_eq!(old, new);
    let f = f.with_body(after);
    assert_eq!(validate::logical(&f), Ok(()));
    expect![[r#"
        def f(x: f32[n], y: inout[f32[n, n]], z: inout[f32[n, n]]):
            for j in range(n):
                for i in range(n):  # parallel, atomic(z +)
                    z[j, i] += z[i, j] * x[i]
                    z[j, cast(z[j, i], i64)] = z[i, cast(z[j, i], i64)]
    "#]]
    .assert_eq(&print::func(&f));
}
