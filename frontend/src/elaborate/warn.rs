//! Warnings about valid programs that may not do as intended; `taffeta check` shows them.

use super::Elab;
use super::report::same_mistake;
use super::value::View;
use taffeta_ast::{DType, Diagnostic, Expr, ExprKind, Literal, Op, ReduceOp, Span};

impl Elab<'_> {
    /// Records a warning about the user's own text, once.
    pub(crate) fn warn(&mut self, d: Diagnostic) {
        if !self.in_library(d.span().file) && !self.warnings.iter().any(|known| same_mistake(known, &d)) {
            self.warnings.push(d);
        }
    }

    /// Warns if a tensor with a declared type takes values of a wider one.
    pub(crate) fn warn_narrowing(&mut self, target: &View, value: &Expr, site: Span, span: Span) {
        let (from, to) = (value.dtype(), target.tensor.dtype);
        if self.is_weakly_declared(&target.tensor.symbol) || chooses_literals(value, to) {
            return;
        }
        // A result has no place in the text but its annotation.
        let name = if site == span { "the result".to_string() } else { self.quote(site) };
        self.warn_conversion(&name, from, to, span);
    }

    /// Warns if a conversion from type `from` to `to` loses values.
    pub(crate) fn warn_conversion(&mut self, name: &str, from: DType, to: DType, span: Span) {
        if from.kind() != to.kind() || from.promote(to) == to {
            return;
        }
        let lost = if to.is_float() { "rounds it" } else { "wraps it around" };
        let message = format!("storing a value of type `{from}` into {name} of type `{to}` {lost}");
        let whole = match name.split_once('[') {
            Some((tensor, _)) => format!("{tensor}`"),
            None => name.to_string(),
        };
        let help = format!("declare {whole} with `{from}`, or write `cast(…, {to})` if this is intended");
        self.warn(Diagnostic::warning("type::narrowing", message).at(span).help(help));
    }

    /// Warns if a name whose type was inferred from the values added to it accumulates in a narrow type.
    pub(crate) fn warn_narrow_sum(&mut self, target: &View, op: ReduceOp, span: Span) {
        let dtype = target.tensor.dtype;
        if dtype.size() >= 4 || !matches!(op, ReduceOp::Add | ReduceOp::Mul) {
            return;
        }
        let symbol = &target.tensor.symbol;
        if target.open || !self.is_weakly_declared(symbol) {
            return;
        }
        let name = symbol.name().to_string();
        let message = format!("`{name}` accumulates in `{dtype}`, the type of the values stored into it");
        let wide = if dtype.is_float() { "f32" } else { "i64" };
        let help = format!("declare it with a wider type: `{name}: {wide} = …`");
        self.warn(Diagnostic::warning("type::narrow_sum", message).at(span).help(help));
    }
}

/// Returns whether a value is a choice of literals (`1 if c else 0`), each of which `dtype` would hold if it stood
/// alone. The condition gives such a choice a type, although no literal loses its value.
fn chooses_literals(value: &Expr, dtype: DType) -> bool {
    match value.kind() {
        ExprKind::Const(Literal::Int(i)) => dtype.int_range().is_none_or(|(lo, hi)| (lo..=hi).contains(i)),
        ExprKind::Const(Literal::Float(_) | Literal::Bool(_)) => true,
        ExprKind::Apply(Op::Select, args) => args[1..].iter().all(|arm| chooses_literals(arm, dtype)),
        _ => false,
    }
}
