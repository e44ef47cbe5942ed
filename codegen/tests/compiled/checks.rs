//! Checks in vectorised loops, which leave them.

use crate::scheduled::{compare, scheduled};
use taffeta_ast::stmt::{LoopProps, Vectorize};
use taffeta_ast::{Expr, Stmt, StmtKind};
use taffeta_codegen::LowerOptions;

/// The statement with all loops vectorised, as steps mark them that see fewer checks than lowering makes.
fn vectorised(s: &Stmt) -> Stmt {
    let s = match s.kind() {
        StmtKind::For { iter, extent, props, body } => {
            let props = LoopProps { vectorize: Some(Vectorize::default()), ..props.clone() };
            s.with_kind(StmtKind::For { iter: iter.clone(), extent: extent.clone(), props, body: body.clone() })
        }
        _ => s.clone(),
    };
    s.map(&mut vectorised, &mut Expr::clone)
}

/// What a check needs is known before the loop; that another condition reads what the loop writes is all the same.
#[test]
fn a_check_beside_a_condition_on_what_is_written() {
    let beside = "
def f(k: i64[n], x: f64[n], y: inout[f64[n]], z: inout[i64[n]]):
    for i in range(n):
        if not (y[i] < 1.0):
            z[i] = i
        y[i] += x[k[i]]
";
    let under = "
def f(k: i64[n], x: f64[n], y: inout[f64[n]], z: inout[i64[n]]):
    for i in range(n):
        if x[i] < 2.0:
            t = x[k[i]]
            if y[i] < t:
                z[i] = i
        else:
            if y[i] > 3.0:
                z[i] = 1
        y[i] += 1.0
";
    for program in [beside, under] {
        let (func, _, program) = scheduled(program, &[]);
        let after = func.with_body(vectorised(&func.body));
        let code = compare(&func, &after, &program, &LowerOptions::default());
        assert!(code.contains("omp simd"), "{code}");
        assert_eq!(code.matches("for (int64_t i").count(), 2, "{code}");
    }
}
