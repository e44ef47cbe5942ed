//! Printer of expressions, with Python's precedence and minimal parentheses.

use super::literal::{ATOM, Bound, UNARY, is_native, is_wide, literal};
use super::names::Names;
use crate::expr::{Access, Expr, ExprKind, Measure, Protocol};
use crate::op::{Form, Op};
use crate::symbol::Symbol;

/// Precedence of `a if c else b`.
const CONDITIONAL: u8 = 0;
/// Precedence of `**`.
const POWER: u8 = 12;

/// Prints an expression whose type does not follow from the context.
pub(super) fn standalone(e: &Expr, names: &Names) -> String {
    typed(e, names).0
}

/// Prints an expression where a value of its type is expected (a stored value, an index): literals are bare.
pub(super) fn expected(e: &Expr, names: &Names) -> String {
    expr(e, names).0
}

/// Prints `x[i, j]`; the name alone for a scalar.
pub(super) fn element(tensor: &Symbol, indices: &[Access], names: &Names) -> String {
    let name = names.text(tensor);
    if indices.is_empty() {
        return name;
    }
    let inner: Vec<String> = indices.iter().map(|a| access(a, names)).collect();
    format!("{name}[{}]", inner.join(", "))
}

fn enclose((text, strength): Bound, at_least: u8) -> String {
    if strength < at_least { format!("({text})") } else { text }
}

/// Prints like [`expr`], with a cast around a literal that would be read as one of another type.
fn typed(e: &Expr, names: &Names) -> Bound {
    let (text, strength) = expr(e, names);
    match e.as_literal() {
        Some(v) if !is_native(e.dtype()) && !is_wide(v) => cast(e, names),
        _ => (text, strength),
    }
}

fn cast(e: &Expr, names: &Names) -> Bound {
    (format!("cast({}, {})", expr(e, names).0, e.dtype()), ATOM)
}

fn expr(e: &Expr, names: &Names) -> Bound {
    match e.kind() {
        ExprKind::Const(v) => literal(*v, e.dtype()),
        ExprKind::Var(symbol) => (names.text(symbol), ATOM),
        ExprKind::Load(tensor, indices) => (element(tensor, indices, names), ATOM),
        ExprKind::Apply(op, args) => apply(*op, args, names),
        ExprKind::Cast(inner) => (format!("cast({}, {})", typed(inner, names).0, e.dtype()), ATOM),
        ExprKind::Measure(Measure::Lebesgue, x) => (format!("d({})", names.text(x)), ATOM),
        ExprKind::Measure(Measure::Counting, x) => (format!("count({})", names.text(x)), ATOM),
    }
}

fn apply(op: Op, args: &[Expr], names: &Names) -> Bound {
    // One typed operand determines the type; where all are literals, the first one gets a cast. The cast also keeps the
    // front end from folding an operation on floats that the tree leaves unfolded.
    let values = if op == Op::Select { args.get(1..).unwrap_or_default() } else { args };
    let all_literals = values.iter().all(|a| a.as_literal().is_some());
    let first = args.len() - values.len();
    let part = |k: usize| -> Bound {
        match args.get(k) {
            Some(a) if all_literals && k == first && a.dtype().is_float() => cast(a, names),
            Some(a) if all_literals && k == first => typed(a, names),
            Some(a) => expr(a, names),
            None => ("?".to_string(), ATOM),
        }
    };
    if op == Op::Select {
        let (c, a, b) = (enclose(part(0), 1), enclose(part(1), 1), part(2).0);
        return (format!("{a} if {c} else {b}"), CONDITIONAL);
    }
    let name = op.info().name;
    match op.info().form {
        Form::Prefix(strength) => {
            let space = if op == Op::Not { " " } else { "" };
            (format!("{name}{space}{}", enclose(part(0), strength)), strength)
        }
        Form::Infix(strength) => {
            let (left, right) = match op {
                // Right-associative, and a sign may stand in the exponent.
                Op::Pow => (POWER + 1, UNARY),
                // `a < b < c` would be a chain.
                _ if op.is_comparison() => (strength + 1, strength + 1),
                _ => (strength, strength + 1),
            };
            (format!("{} {name} {}", enclose(part(0), left), enclose(part(1), right)), strength)
        }
        Form::Call => {
            let inner: Vec<String> = (0..args.len()).map(|k| part(k).0).collect();
            (format!("{name}({})", inner.join(", ")), ATOM)
        }
    }
}

fn access(a: &Access, names: &Names) -> String {
    let index = expected(&a.index, names);
    match a.protocol {
        Protocol::Default => index,
        Protocol::Walk => format!("walk({index})"),
        Protocol::Gallop => format!("gallop({index})"),
        Protocol::Locate => format!("locate({index})"),
    }
}
