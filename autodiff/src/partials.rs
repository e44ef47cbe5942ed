//! Partial derivatives of the operators: one row for each, used by both modes.
//!
//! # Points without a derivative
//!
//! - `min(a, b)` and `max(a, b)`: the whole derivative goes to the operand that the operator returns; of equals that is
//!   the second one.
//! - `abs(x)` at 0: 0, which is `sign(x)`. `sqrt(x)` at 0: infinite, as the limit is.
//! - `floor`, `ceil`, `round`, `trunc`, `sign`, `//`: 0, which is right everywhere but at the steps. `x % y` has 1 and
//!   `-(x // y)`.
//! - `a ** b`: with respect to `a` it is 0 where both are 0; with respect to `b` it is 0 where `a` is 0.
//! - `stop_gradient(x)`: 0, which is its purpose.
//! - `a if c else b`: the derivative of the chosen operand; `c` carries none.

use taffeta_ast::op::Op;
use taffeta_ast::{DType, Expr, Literal};

/// Effect of a change of an operand on the result.
pub(crate) enum PartialDerivative {
    /// No effect.
    None,
    /// Change times a factor, which is this expression.
    Scaled(Expr),
    /// Whole change where `cond` is equal to `holds`, none elsewhere. If `lazy`, the operand may not even be evaluated
    /// elsewhere.
    Where { cond: Expr, holds: bool, lazy: bool },
}

fn number(v: f64, dtype: DType) -> Expr {
    Expr::float(v, dtype)
}

fn call(op: Op, args: &[&Expr]) -> Expr {
    Expr::apply(op, args.iter().map(|e| (*e).clone()).collect())
}

fn is(e: &Expr, v: f64) -> bool {
    matches!(e.as_literal(), Some(Literal::Float(f)) if f == v)
}

/// Builds `a * b`, simplified where a factor is 1 or -1.
pub(crate) fn product(a: &Expr, b: &Expr) -> Expr {
    match () {
        () if is(a, 1.0) => b.clone(),
        () if is(b, 1.0) => a.clone(),
        () if is(a, -1.0) => call(Op::Neg, &[b]),
        () if is(b, -1.0) => call(Op::Neg, &[a]),
        () => a.times(b),
    }
}

/// Returns the type in which derivatives of values of a type are computed.
pub(crate) fn working(dtype: DType) -> DType {
    match dtype {
        DType::F16 | DType::Bf16 => DType::F32,
        other => other,
    }
}

/// Returns the effect of a change `d` of operand `k` on `op(args)`, in the type of `d`.
pub(crate) fn partial(op: Op, args: &[Expr], k: usize, d: &Expr) -> PartialDerivative {
    let t = d.dtype();
    let one = number(1.0, t);
    let wide = |e: &Expr| if e.dtype().is_float() { e.clone().cast(t) } else { e.clone() };
    // Operands that decide where a change goes are compared in the program's own type.
    let own = args;
    let args: Vec<Expr> = own.iter().map(wide).collect();
    let x = &args[0];
    let times = |f: Expr| PartialDerivative::Scaled(product(d, &f));
    let over = |f: Expr| PartialDerivative::Scaled(call(Op::Div, &[d, &f]));
    let minus = |p: PartialDerivative| match p {
        PartialDerivative::Scaled(e) => PartialDerivative::Scaled(call(Op::Neg, &[&e])),
        other => other,
    };
    let itself = || Expr::apply(op, own.to_vec()).cast(t);
    let square = |e: &Expr| e.times(e);
    match op {
        Op::Add => PartialDerivative::Scaled(d.clone()),
        Op::Sub if k == 0 => PartialDerivative::Scaled(d.clone()),
        Op::Sub | Op::Neg => PartialDerivative::Scaled(call(Op::Neg, &[d])),
        Op::Mul => times(args[1 - k].clone()),
        Op::Div if k == 0 => over(args[1].clone()),
        Op::Div => minus(PartialDerivative::Scaled(call(Op::Div, &[&product(d, &itself()), &args[1]]))),
        Op::Mod if k == 0 => PartialDerivative::Scaled(d.clone()),
        Op::Mod => minus(times(args[0].floor_div(&args[1]))),
        Op::Pow => power(&args, k, d),
        Op::Min | Op::Max => {
            PartialDerivative::Where { cond: is_first(op, &own[0], &own[1]), holds: k == 0, lazy: false }
        }
        Op::Abs => times(call(Op::Sign, &[x])),
        Op::Sqrt => over(number(2.0, t).times(&itself())),
        Op::Rsqrt => PartialDerivative::Scaled(call(Op::Div, &[&d.times(&number(-0.5, t)).times(&itself()), x])),
        Op::Exp => times(itself()),
        Op::Exp2 => times(itself().times(&number(std::f64::consts::LN_2, t))),
        Op::Expm1 => times(call(Op::Exp, &[x])),
        Op::Log => over(x.clone()),
        Op::Log2 => over(x.times(&number(std::f64::consts::LN_2, t))),
        Op::Log1p => over(one.plus(x)),
        Op::Sin => times(call(Op::Cos, &[x])),
        Op::Cos => minus(times(call(Op::Sin, &[x]))),
        Op::Tan => times(one.plus(&square(&itself()))),
        Op::Asin => over(call(Op::Sqrt, &[&one.minus(&square(x))])),
        Op::Acos => minus(over(call(Op::Sqrt, &[&one.minus(&square(x))]))),
        Op::Atan => over(one.plus(&square(x))),
        Op::Atan2 => {
            // Scaled by the larger magnitude, whose square may overflow or underflow.
            let larger = call(Op::Max, &[&call(Op::Abs, &[x]), &call(Op::Abs, &[&args[1]])]);
            // The scale is clamped to be finite: quotients of infinities would be NaN, infinite quotients are right.
            let largest = number(if t == DType::F64 { f64::MAX } else { f32::MAX.into() }, t);
            let larger = call(Op::StopGradient, &[&call(Op::Min, &[&larger, &largest])]);
            let [x, y] = [x, &args[1]].map(|e| call(Op::Div, &[e, &larger]));
            let sum = square(&x).plus(&square(&y));
            let own = call(Op::Div, &[if k == 0 { &y } else { &x }, &sum]);
            let part = PartialDerivative::Scaled(call(Op::Div, &[&product(d, &own), &larger]));
            if k == 0 { part } else { minus(part) }
        }
        Op::Sinh => times(call(Op::Cosh, &[x])),
        Op::Cosh => times(call(Op::Sinh, &[x])),
        Op::Tanh => times(one.minus(&square(&itself()))),
        Op::Sigmoid => times(itself().times(&one.minus(&itself()))),
        Op::Erf => {
            let bell = call(Op::Exp, &[&call(Op::Neg, &[&square(x)])]);
            times(number(std::f64::consts::FRAC_2_SQRT_PI, t).times(&bell))
        }
        Op::Fma if k == 2 => PartialDerivative::Scaled(d.clone()),
        Op::Fma => times(args[1 - k].clone()),
        Op::Select if k > 0 => PartialDerivative::Where { cond: args[0].clone(), holds: k == 1, lazy: true },
        // Steps, and operators whose result is not a floating-point number.
        Op::StopGradient => PartialDerivative::None,
        Op::FloorDiv
        | Op::Floor
        | Op::Ceil
        | Op::Round
        | Op::Trunc
        | Op::Sign
        | Op::IsNan
        | Op::Stored
        | Op::Select => PartialDerivative::None,
        Op::Eq | Op::Ne | Op::Lt | Op::Le | Op::Gt | Op::Ge | Op::And | Op::Or | Op::Not => PartialDerivative::None,
        Op::BitAnd | Op::BitOr | Op::BitXor | Op::BitNot | Op::Shl | Op::Shr => PartialDerivative::None,
    }
}

/// Builds the condition under which `min(x, y)` or `max(x, y)` is `x`, so that a change of `x` passes in full and one
/// of `y` not at all: of equals the operator returns `y`, and NaN stays.
pub(crate) fn is_first(op: Op, x: &Expr, y: &Expr) -> Expr {
    let (small, large) = if op == Op::Min { (x, y) } else { (y, x) };
    match y.as_literal() {
        // Equivalent to the condition below in one comparison, which C compilers vectorise.
        Some(Literal::Float(v)) if !v.is_nan() => large.less_eq(small).negate(),
        _ => small.less(large).or(&call(Op::IsNan, &[x])),
    }
}

/// Differentiates `a ** b`.
fn power(args: &[Expr], k: usize, d: &Expr) -> PartialDerivative {
    let (a, b, t) = (&args[0], &args[1], d.dtype());
    let zero = number(0.0, t);
    if k == 1 {
        let log = Expr::apply(Op::Log, vec![a.clone()]);
        let value = Expr::apply(Op::Pow, args.to_vec()).times(&log);
        return PartialDerivative::Scaled(a.equals(&zero).select(&zero, &product(d, &value)));
    }
    match b.as_literal() {
        Some(Literal::Float(0.0)) => PartialDerivative::None,
        Some(Literal::Float(1.0)) => PartialDerivative::Scaled(d.clone()),
        Some(Literal::Float(2.0)) => PartialDerivative::Scaled(product(d, &b.times(a))),
        Some(Literal::Float(n)) => {
            let less = Expr::apply(Op::Pow, vec![a.clone(), number(n - 1.0, t)]);
            PartialDerivative::Scaled(product(d, &b.times(&less)))
        }
        _ => {
            let less = Expr::apply(Op::Pow, vec![a.clone(), b.minus(&number(1.0, t))]);
            // Only where both are 0: elsewhere the factor `b` gives the 0, and has a derivative.
            let nothing = a.equals(&zero).and(&b.equals(&zero));
            PartialDerivative::Scaled(nothing.select(&zero, &product(d, &b.times(&less))))
        }
    }
}

/// Returns whether a change of operand `k` can reach the result at all.
pub(crate) fn passes(op: Op, args: &[Expr], k: usize) -> bool {
    args[k].dtype().is_float()
        && !matches!(partial(op, args, k, &number(1.0, args[k].dtype())), PartialDerivative::None)
}
