//! Refusal of loop annotations that C cannot express.

use taffeta_ast::build::{Builder, block, looped, store};
use taffeta_ast::{DType, Expr, LoopProps, Parallel, Stmt, StmtKind, Symbol};
use taffeta_codegen::{LowerOptions, lower};

/// Checks that a diagnostic names the second of two equally named loops as schedules do, `k#2`.
#[test]
fn loops_are_named_as_schedules_do() {
    let mut b = Builder::new("f");
    let n = b.size("n");
    let y = b.inout("y", DType::F32, [&n]);
    let loop_ = |name: &str, parallel: bool, inside: &dyn Fn(&Expr) -> Stmt| {
        let iter = Symbol::new(name);
        let plain = looped(&iter, &n, inside(&Expr::var(&iter)));
        let StmtKind::For { extent, body, .. } = plain.kind() else { unreachable!("it is a loop") };
        let props = LoopProps { parallel: parallel.then(Parallel::default), ..LoopProps::default() };
        plain.with_kind(StmtKind::For { iter, extent: extent.clone(), props, body: body.clone() })
    };
    let one = |at: &Expr| store(&y, [at], &Expr::float(1.0, DType::F32));
    let first = loop_("k", false, &one);
    let second = loop_("i", true, &|_| loop_("k", true, &one));
    let func = b.finish(block([first, second]));
    let Err(refused) = lower(&func, &LowerOptions::default()) else { panic!("it is not refused") };
    let expected = "the loop `k#2` cannot be parallel: it is inside a parallel or vectorised loop";
    assert_eq!(refused.0[0].message, expected);
}
