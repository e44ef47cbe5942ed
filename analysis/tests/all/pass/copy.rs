//! Copies of statements.

use expect_test::expect;
use std::sync::Arc;
use taffeta_analysis::pass::copy::{Copier, statement};
use taffeta_ast::build::{Builder, assert, block, local, looped, reduce, store, var_def};
use taffeta_ast::expr::Measure;
use taffeta_ast::stmt::{LoopProps, MessagePart, Parallel, Reduction, Sharing};
use taffeta_ast::{
    Access, DType, Expr, ExprKind, Extent, Func, Origin, ReduceOp, Stmt, StmtKind, Symbol, Tensor, print, validate,
};

/// Prints a program of a statement and its copy. Every statement inside must have a copy, and the program be valid.
fn both(f: &Func, original: &Stmt, copy: Stmt, copier: &Copier) -> String {
    original.walk(&mut |s| assert!(copier.ids.get(&s.id()).is_some_and(|id| *id != s.id()), "no copy of {s:?}"));
    let both = f.with_body(block([original.clone(), copy]));
    assert_eq!(validate::logical(&both), Ok(()));
    print::func(&both)
}

#[test]
fn example() {
    let mut b = Builder::new("f");
    let (n, m) = (b.size("n"), b.size("m"));
    let x = b.input("x", DType::F32, [&n]);
    let z = b.input("z", DType::F32, [&m, &m]);
    let y = b.result("y", DType::F32, [&n]);
    let f = b.finish(Stmt::nop());
    let (i, k, t) = (Symbol::new("i"), Symbol::new("k"), local("t", DType::F32, []));
    let at = Expr::var(&i);
    let double = x.load([at.clone()]).times(&Expr::float(2.0, DType::F32));
    let body = block([store(&t, [], &double), store(&y, [&at], &t.load([]))]);
    let original = looped(&i, &n, var_def(&t, body));
    let mut copier = Copier::new("test", "copy");
    copier.tensors.insert(x.symbol.clone(), (z.symbol.clone(), vec![Access::from(Expr::var(&k))]));
    copier.scalars.insert(f.sizes[0].clone(), m.clone());
    let copy = looped(&k, &m, copier.stmt(&original));
    expect![[r#"
        def f(x: f32[n], z: f32[m, m]) -> f32[n]:
            y = empty((n,), f32)
            for i in range(n):
                t = empty((), f32)
                t = x[i] * 2.0
                y[i] = t
            for k in range(m):
                for i in range(m):
                    t = empty((), f32)
                    t = z[k, i] * 2.0
                    y[i] = t
            return y
    "#]]
    .assert_eq(&both(&f, &original, copy, &copier));
}

/// Checks that reductions of loops and values in messages refer to the copies.
#[test]
fn reductions_and_messages_refer_to_the_copies() {
    let mut b = Builder::new("f");
    let n = b.size("n");
    let y = b.result("y", DType::F32, [&n]);
    let f = b.finish(Stmt::nop());
    let (i, j, t) = (Symbol::new("i"), Symbol::new("j"), local("t", DType::F32, []));
    let (at, one) = (Expr::var(&i), Expr::float(1.0, DType::F32));
    let of = |t: &Tensor| Reduction { tensor: t.symbol.clone(), op: ReduceOp::Add, sharing: Sharing::Partial };
    let (parallel, reductions) = (Some(Parallel::default()), vec![of(&t), of(&y)]);
    let props = LoopProps { parallel, reductions, ..LoopProps::default() };
    let extent = Extent::Range { begin: Expr::int(0), end: at.clone(), step: Expr::int(1) };
    let body = block([reduce(&t, [], ReduceOp::Add, &one), reduce(&y, [&at], ReduceOp::Add, &one)]);
    let inner = Stmt::new(StmtKind::For { iter: j, extent, props, body }, Origin::none());
    let message = vec![MessagePart::Text("at ".into()), MessagePart::Value(at.clone())];
    let original = looped(&i, &n, block([assert(&at.less(&n), message), var_def(&t, inner)]));
    let mut copier = Copier::new("test", "copy");
    let copy = copier.stmt(&original);
    expect![[r#"
        def f() -> f32[n]:
            y = empty((n,), f32)
            for i in range(n):
                assert i < n, f"at {i}"
                t = empty((), f32)
                for j in range(i):  # parallel, partial(t +, y +)
                    t += 1.0
                    y[i] += 1.0
            for i in range(n):
                assert i < n, f"at {i}"
                t = empty((), f32)
                for j in range(i):  # parallel, partial(t +, y +)
                    t += 1.0
                    y[i] += 1.0
            return y
    "#]]
    .assert_eq(&both(&f, &original, copy, &copier));
}

#[test]
fn origins_keep_labels() {
    let labels = vec!["L".to_string()];
    let origin = Origin::Source { span: taffeta_ast::Span::NONE, labels, chain: Arc::from([]) };
    let copy = statement(&Stmt::new(StmtKind::Seq(Vec::new()), origin), "test", "copy");
    assert!(matches!(copy.origin(), Origin::Derived { step: "test", role: "copy", .. }));
    assert_eq!(copy.origin().labels(), ["L"]);
}

#[test]
fn iterators_over_the_reals_stay_real() {
    let integrand = |x: &Symbol| {
        let measure = Expr::raw(ExprKind::Measure(Measure::Lebesgue, x.clone()), DType::F64);
        Expr::raw(ExprKind::Var(x.clone()), DType::F64).times(&measure)
    };
    let (x, y) = (Symbol::new("x"), local("y", DType::F64, []));
    let body = reduce(&y, [], ReduceOp::Add, &integrand(&x));
    let kind = StmtKind::For { iter: x.clone(), extent: Extent::Reals, props: LoopProps::default(), body };
    let copy = statement(&Stmt::new(kind, Origin::none()), "test", "copy");
    let StmtKind::For { iter, body, .. } = copy.kind() else { panic!("a loop") };
    assert_ne!(*iter, x);
    assert_eq!(*body, reduce(&y, [], ReduceOp::Add, &integrand(iter)));
}
