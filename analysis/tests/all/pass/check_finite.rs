//! Checks that values are finite.

use taffeta_analysis::pass::check_finite::run;
use taffeta_ast::build::{Builder, block, looped, reduce, store};
use taffeta_ast::{
    DType, Expr, LoopProps, Op, Origin, Parallel, ReduceOp, Reduction, Sharing, Stmt, StmtKind, Symbol, print, validate,
};

/// Checks a quotient, a choice, a copy, a constant and a sum that threads compute together.
#[test]
fn example() {
    let mut b = Builder::new("f");
    let n = b.size("n");
    let (x, z) = (b.input("x", DType::F64, [&n]), b.input("z", DType::F64, []));
    let (y, s) = (b.inout("y", DType::F64, [&n]), b.inout("s", DType::F64, []));
    let i = Symbol::new("i");
    let at = Expr::var(&i);
    let xi = x.load([at.clone()]);
    let quotient = Expr::apply(Op::Div, vec![xi.clone(), z.load([])]);
    let root = Expr::apply(Op::Sqrt, vec![xi.clone()]);
    let choice = Expr::int(0).less(&at).select(&root, &Expr::float(f64::INFINITY, DType::F64));
    let all = [
        store(&y, [&at], &quotient),
        store(&y, [&at], &choice),
        store(&y, [&at], &xi),
        reduce(&y, [&at], ReduceOp::Mul, &xi),
        reduce(&s, [], ReduceOp::Add, &quotient),
    ];
    let other = looped(&Symbol::new("i"), &n, block([]));
    let mut body = looped(&i, &n, block(all));
    if let StmtKind::For { iter, extent, body: inner, .. } = body.kind().clone() {
        let reduction = Reduction { tensor: s.symbol.clone(), op: ReduceOp::Add, sharing: Sharing::Partial };
        let props =
            LoopProps { parallel: Some(Parallel::default()), reductions: vec![reduction], ..LoopProps::default() };
        body = Stmt::new(StmtKind::For { iter, extent, props, body: inner }, Origin::none());
    }
    let f = run(&b.finish(block([other, body])));
    assert_eq!(validate::logical(&f), Ok(()));
    let text = print::func(&f);
    assert_eq!(text.matches("# finite").count(), 4, "{text}");
    assert!(text.contains("becomes {x[i] / z}: x[{i}] = {x[i]}, z = {z} (i#2 = {i})"), "{text}");
    // Of the choice, only the operand that an operation computes is checked.
    assert!(text.contains("if 0 < i:") && text.contains("becomes {sqrt(x[i])}: x[{i}] = {x[i]}"), "{text}");
    // No thread reads the element that the threads reduce into.
    assert!(!text.contains("abs(s)") && text.contains("`s` becomes {x[i] / z}"), "{text}");
}
