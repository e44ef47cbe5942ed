//! `print("text", x, i)`: a line that the running program writes.
//!
//! Compile-time values become text; scalars are printed as values; a tensor, or `x[i]` of one, is printed in
//! place, and any other tensor value is computed into a temporary first.

use super::value::{Value, View};
use super::{Elab, R, axis};
use crate::syntax::{self, ExprKind};
use taffeta_ast::stmt::PrintPart;
use taffeta_ast::{Span, StmtKind as Tree};

impl Elab<'_> {
    /// Returns the arguments of a call of the built-in `print`; a function of that name hides it.
    pub(crate) fn printed<'e>(&mut self, e: &'e syntax::Expr) -> Option<&'e [syntax::Arg]> {
        let ExprKind::Call { callee, args } = &e.kind else { return None };
        let ExprKind::Name(name) = &callee.kind else { return None };
        let own = name == "print" && self.schedule.is_none();
        let builtin = own && matches!(self.eval(callee), Ok(Value::Builtin(super::builtin::Builtin::Print)));
        builtin.then_some(args)
    }

    /// Evaluates `print(args)`.
    pub(crate) fn print(&mut self, args: &[syntax::Arg]) -> R<()> {
        let mut shown: Vec<(&syntax::Expr, bool)> = Vec::new();
        for (k, arg) in args.iter().enumerate() {
            if let Some(name) = &arg.name {
                return self.error_help(
                    "call::arguments",
                    name.span,
                    format!("`print` has no parameter `{}`", name.text),
                    "compose the text with f\"…\": `print` writes a line with spaces between its arguments",
                );
            }
            let parts = match &arg.value.kind {
                ExprKind::Format(parts) => parts.as_slice(),
                _ => std::slice::from_ref(&arg.value),
            };
            // An empty f-string is an argument too, with a space before it.
            if parts.is_empty() && k > 0 {
                shown.push((&arg.value, true));
            }
            shown.extend(parts.iter().enumerate().map(|(p, e)| (e, k > 0 && p == 0)));
        }
        let values = self.eval_all(shown.iter().filter(|(e, _)| !is_empty_format(e)).map(|(e, _)| *e))?;
        let mut values = values.into_iter();
        let mut parts = Vec::new();
        for (e, spaced) in shown {
            if spaced {
                push_text(&mut parts, " ");
            }
            if !is_empty_format(e)
                && let Some(v) = values.next()
            {
                self.print_value(&v, e.span, &mut parts)?;
            }
        }
        self.emit(Tree::Print { parts });
        Ok(())
    }

    fn print_value(&mut self, v: &Value, span: Span, parts: &mut Vec<PrintPart>) -> R<()> {
        if let Some(text) = super::literal::show(v) {
            push_text(parts, &text);
            return Ok(());
        }
        let part = match v {
            Value::Tensor(view) if !view.shape.is_empty() => shown(view),
            _ => None,
        };
        parts.push(match (part, v.lazy()) {
            (Some(part), _) => part,
            (None, Some(l)) if l.shape.is_empty() => match l.expr.as_literal() {
                // A constant becomes text, so that the printed program, parsed again, prints the same.
                Some(value) => {
                    push_text(parts, &taffeta_ast::show::value(value, l.expr.dtype()));
                    return Ok(());
                }
                None => PrintPart::Value(l.expr),
            },
            (None, Some(l)) => {
                let dtype = l.expr.dtype();
                let temporary = self.materialise(&l, dtype, "shown");
                match shown(&temporary) {
                    Some(part) => part,
                    None => unreachable!("a temporary is whole"),
                }
            }
            (None, None) => {
                let found = v.describe();
                return self.error(
                    "type::operand",
                    span,
                    format!("`print` takes tensors and values known when compiling, found {found}"),
                );
            }
        });
        Ok(())
    }
}

fn is_empty_format(e: &syntax::Expr) -> bool {
    matches!(&e.kind, ExprKind::Format(parts) if parts.is_empty())
}

fn push_text(parts: &mut Vec<PrintPart>, text: &str) {
    match parts.last_mut() {
        _ if text.is_empty() => {}
        Some(PrintPart::Text(t)) => t.push_str(text),
        _ => parts.push(PrintPart::Text(text.to_string())),
    }
}

/// Returns the part that prints a view of a whole tensor, or of all elements below its first indices; `None` for any
/// other view.
pub(crate) fn shown(view: &View) -> Option<PrintPart> {
    let ndim = view.shape.len();
    let (at, below) = view.indices.split_at(view.indices.len().checked_sub(ndim)?);
    let whole = below.iter().enumerate().all(|(d, a)| a.index == axis::var(ndim, d))
        && view.shape[..] == view.tensor.shape[at.len()..]
        && !at.iter().any(|a| axis::mentions_any(&a.index));
    whole.then(|| PrintPart::Tensor {
        tensor: view.tensor.symbol.clone(),
        at: at.iter().map(|a| a.index.clone()).collect(),
        shape: view.shape.clone(),
    })
}
