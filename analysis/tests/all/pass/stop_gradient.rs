//! Removal of `stop_gradient`.

use super::{Program, check, repeat, store};
use expect_test::expect;
use taffeta_analysis::pass::stop_gradient;
use taffeta_ast::op::Op;
use taffeta_ast::{Expr, Symbol};

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
