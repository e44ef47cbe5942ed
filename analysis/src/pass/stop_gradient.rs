//! Replacement of `stop_gradient` by its operand.
//!
//! **Does**: replaces every `stop_gradient(e)` by `e`. **Requires**: the program will not be differentiated afterwards.
//! **Ensures**: analyses, rules and code generation see the operand itself. **Leaves alone**: statements.
//!
//! ```text
//! y[i] = exp(x[i] - stop_gradient(m))     becomes     y[i] = exp(x[i] - m)
//! ```

use super::substitute;
use taffeta_ast::{Expr, ExprKind, Func, Op};

/// Returns the program without `stop_gradient`.
pub fn run(func: &Func) -> Func {
    func.with_body(substitute::rebuild(&func.body, &mut operand))
}

fn operand(e: Expr) -> Expr {
    match e.kind() {
        ExprKind::Apply(Op::StopGradient, args) => args[0].clone(),
        _ => e,
    }
}
