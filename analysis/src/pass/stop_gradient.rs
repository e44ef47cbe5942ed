//! Takes `stop_gradient` out of a program, which is its operand there.
//!
//! *Does*: replaces every `stop_gradient(e)` by `e`. *Requires*: nothing is going to differentiate the program.
//! *Ensures*: analyses, rules and code generation see the value itself. *Leaves alone*: statements.
//!
//! ```text
//! y[i] = exp(x[i] - stop_gradient(m))     becomes     y[i] = exp(x[i] - m)
//! ```

use super::substitute;
use taffeta_ast::{Expr, ExprKind, Func, Op};

/// The program without `stop_gradient`.
pub fn run(func: &Func) -> Func {
    func.with_body(substitute::rebuild(&func.body, &mut operand))
}

fn operand(e: Expr) -> Expr {
    match e.kind() {
        ExprKind::Apply(Op::StopGradient, args) => args[0].clone(),
        _ => e,
    }
}
