//! De-vectorisation of loops that print or check that values are finite.
//!
//! **Does**: removes the mark from vectorised loops with a statement that depends on the order of iterations: lines are
//! printed in order, and the first value that is not finite is reported. **Requires**: nothing. **Ensures**: ids and
//! origins are kept.
//!
//! ```text
//! for i in range(n):  # vectorize          for i in range(n):
//!     y[i] = x[i] + 1.0             →          y[i] = x[i] + 1.0
//!     print(y[i])                              print(y[i])
//! ```
//!
//! **Leaves alone**: marks of parallel loops; other loops.

use taffeta_ast::stmt::AssertKind;
use taffeta_ast::{Expr, Func, LoopProps, Stmt, StmtKind};

pub(super) fn run(func: &Func) -> Func {
    func.with_body(stmt(&func.body))
}

fn stmt(s: &Stmt) -> Stmt {
    let s = s.map(&mut stmt, &mut Expr::clone);
    match s.kind() {
        StmtKind::For { iter, extent, props, body } if props.vectorize.is_some() && has_order(body) => {
            let mut props = LoopProps { vectorize: None, ..props.clone() };
            if !props.is_concurrent() {
                props.reductions.clear();
            }
            let (iter, extent, body) = (iter.clone(), extent.clone(), body.clone());
            s.with_kind(StmtKind::For { iter, extent, props, body })
        }
        _ => s,
    }
}

fn has_order(s: &Stmt) -> bool {
    match s.kind() {
        StmtKind::Print { .. } | StmtKind::Assert { kind: AssertKind::Finite, .. } => true,
        kind => kind.children().into_iter().any(has_order),
    }
}
