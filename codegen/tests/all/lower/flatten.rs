//! Flattening of the sizes of local tensors.

use taffeta_ast::build::{Builder, block, local, store, var_def};
use taffeta_ast::{DType, Expr, Op, SourceMap};
use taffeta_codegen::{LowerOptions, c, lower};

/// Checks a size that is an element of a two-dimensional tensor.
#[test]
fn sizes_of_locals_are_flattened() {
    let mut b = Builder::new("f");
    let n = b.size("n");
    let y = b.result("y", DType::I64, [&Expr::int(1)]);
    let t = local("t", DType::I64, [&Expr::int(2), &n]);
    let at = [Expr::int(1), Expr::int(0)];
    let size = Expr::apply(Op::Max, vec![Expr::int(0), t.load(at.clone())]);
    let u = local("u", DType::I64, [&size]);
    let first = [Expr::int(0)];
    let inner = block([store(&u, &first, &Expr::int(7)), store(&y, &first, &u.load(first.clone()))]);
    let body = var_def(&t, block([store(&t, &at, &Expr::int(3)), var_def(&u, inner)]));
    let lowered = lower(&b.finish(body), &LowerOptions::default()).expect("it can be lowered");
    let text = c::emit(&lowered, &SourceMap::default()).code;
    let check = text.lines().find(|l| l.contains("taf_local") && l.contains("\"u\""));
    assert!(check.is_some_and(|l| l.contains("t[n]")), "{text}");
}
