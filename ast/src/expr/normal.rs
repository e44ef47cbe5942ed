//! Normal form that [`Expr::apply`] maintains: constants folded, identity operands dropped, integer constants on the
//! right and combined. Each rule is an identity of wrapping integers or of `bool`; for floats, only negation of
//! constants is folded.

use super::{Expr, ExprKind};
use crate::dtype::DType;
use crate::literal::{Literal, wrap_to};
use crate::op::Op;
use crate::scalar;

pub(super) fn apply(op: Op, args: Vec<Expr>) -> Expr {
    let operand = args.last().map_or(DType::Bool, Expr::dtype);
    let dtype = op.result(operand);
    if let Some(folded) = fold(op, &args, operand, dtype) {
        return folded;
    }
    if let Some(simple) = neutral(op, &args) {
        return simple;
    }
    if operand.is_int() && matches!(op, Op::Add | Op::Sub | Op::Mul) {
        return arithmetic(op, args, dtype);
    }
    Expr::raw(ExprKind::Apply(op, args), dtype)
}

/// Returns whether an integer division, shift or power with these operands cannot stop the program.
pub(super) fn safe_divisor(op: Op, args: &[Expr]) -> bool {
    args.get(1).and_then(Expr::as_int).is_some_and(|d| op.is_safe_by(d))
}

/// Folds an operator on integer or `bool` constants, unless evaluation stops the program.
fn fold(op: Op, args: &[Expr], operand: DType, dtype: DType) -> Option<Expr> {
    let constants: Vec<Literal> = args.iter().map(Expr::as_literal).collect::<Option<_>>()?;
    if operand.is_float() && op != Op::Neg {
        return None;
    }
    scalar::apply(op, operand, &constants).ok().map(|v| Expr::literal(v, dtype))
}

/// Removes identity operands and applies annihilators. An operand that could stop the program is dropped only if the
/// `and`, `or` or `select` would not evaluate it.
fn neutral(op: Op, args: &[Expr]) -> Option<Expr> {
    let (first, second) = (&args[0], args.get(1));
    match op {
        Op::And => match (first.as_bool(), second?.as_bool()) {
            (Some(true), _) => second.cloned(),
            (Some(false), _) => Some(Expr::bool(false)),
            (_, Some(true)) => Some(first.clone()),
            (_, Some(false)) if !first.may_fail() => Some(Expr::bool(false)),
            _ => None,
        },
        Op::Or => match (first.as_bool(), second?.as_bool()) {
            (Some(false), _) => second.cloned(),
            (Some(true), _) => Some(Expr::bool(true)),
            (_, Some(false)) => Some(first.clone()),
            (_, Some(true)) if !first.may_fail() => Some(Expr::bool(true)),
            _ => None,
        },
        Op::Select => match first.as_bool() {
            Some(true) => second.cloned(),
            Some(false) => args.get(2).cloned(),
            None if args[1] == args[2] && !first.may_fail() => second.cloned(),
            None => None,
        },
        Op::Not => match first.kind() {
            ExprKind::Apply(Op::Not, inner) => Some(inner[0].clone()),
            _ => None,
        },
        Op::FloorDiv if first.dtype().is_int() && second?.as_int() == Some(1) => Some(first.clone()),
        Op::Mod if first.dtype().is_int() && second?.as_int() == Some(1) && !first.may_fail() => {
            Some(Expr::literal(Literal::Int(0), first.dtype()))
        }
        Op::Min | Op::Max if first.dtype().is_int() && first == second? && !first.may_fail() => Some(first.clone()),
        _ => None,
    }
}

/// Normalises `+ - *` on integers of one type: the constant stands on the right, takes the nearer form of `+ c` and
/// `- c'`, and absorbs the constant of a sum below it.
fn arithmetic(op: Op, mut args: Vec<Expr>, dtype: DType) -> Expr {
    if matches!(op, Op::Add | Op::Mul) && args[0].as_literal().is_some() {
        args.swap(0, 1);
    }
    let constant = match args[1].as_literal() {
        Some(Literal::Int(c)) => Some(c),
        _ => None,
    };
    match (op, constant) {
        (Op::Mul, Some(1)) => args.swap_remove(0),
        (Op::Mul, Some(0)) if !args[0].may_fail() => args.swap_remove(1),
        (Op::Add, Some(c)) => add_constant(args.swap_remove(0), c, dtype),
        (Op::Sub, Some(c)) => add_constant(args.swap_remove(0), -c, dtype),
        (Op::Sub, None) if args[0] == args[1] && !args[0].may_fail() => Expr::literal(Literal::Int(0), dtype),
        _ => Expr::raw(ExprKind::Apply(op, args), dtype),
    }
}

/// Builds `e + c`, where `e` may itself end in `+ c'` or `- c'`.
fn add_constant(e: Expr, c: i128, dtype: DType) -> Expr {
    if let ExprKind::Apply(op @ (Op::Add | Op::Sub), inner) = e.kind()
        && let Some(Literal::Int(below)) = inner[1].as_literal()
    {
        let total = if *op == Op::Add { below + c } else { c - below };
        return add_constant(inner[0].clone(), total, dtype);
    }
    let wrapped = wrap_to(c, dtype);
    if wrapped == 0 {
        return e;
    }
    // Prefers the nearer of `+ c` and `- c'`: `x - 3` stays as written for unsigned types.
    let negated = wrap_to(-wrapped, dtype);
    let (op, shown) = if wrapped < 0 && negated > 0 || wrapped > negated && negated > 0 && dtype.is_unsigned_int() {
        (Op::Sub, negated)
    } else {
        (Op::Add, wrapped)
    };
    Expr::raw(ExprKind::Apply(op, vec![e, Expr::literal(Literal::Int(shown), dtype)]), dtype)
}
