//! Index modifiers (language.md, section 7): `A[window(a, b)[j]]` is `A[a + j]` for `j` from 0 to `b - a`, and
//! `A[offset(d)[j]]` is `A[j - d]`. Both evaluate to plain integers: an index that is an iterator plus a shift is
//! traversed like the iterator, whatever the tensor's format.

use super::builtin::Builtin;
use super::call::Arg;
use super::value::{Lazy, Value};
use super::{Elab, R, axis};
use crate::syntax;
use taffeta_ast::poly::tidy;
use taffeta_ast::{Expr, Span};

impl Elab<'_> {
    /// Evaluates `window(a, b)`: the integers from `a` to `b`, indexed by position, which is checked like every index.
    pub(crate) fn window_call(&mut self, args: Vec<Arg>, span: Span) -> R<Value> {
        let [begin, end] = self.parameters(Builtin::Window, args, ["begin", "end"], 2, span)?;
        let (Some((begin, first)), Some((end, second))) = (begin, end) else { unreachable!("both are required") };
        let weak = begin.is_weak_scalar() && end.is_weak_scalar();
        let (begin, end) = (self.loop_bound(&begin, first)?, self.loop_bound(&end, second)?);
        let expr = begin.plus(&axis::var(1, 0));
        let length = tidy(&end.minus(&begin));
        Ok(Value::Lazy(Lazy { shape: vec![length], expr, weak }))
    }

    /// Evaluates `offset(d)`: all integers, less `d`.
    pub(crate) fn offset_call(&mut self, args: Vec<Arg>, span: Span) -> R<Value> {
        let [by] = self.parameters(Builtin::Offset, args, ["by"], 1, span)?;
        let Some((by, at)) = by else { unreachable!("it is required") };
        let weak = by.is_weak_scalar();
        let expr = self.loop_bound(&by, at)?;
        Ok(Value::Offset(Lazy { shape: Vec::new(), expr, weak }))
    }

    /// Evaluates `offset(d)[j]`.
    pub(crate) fn offset_item(&mut self, by: &Lazy, items: &[syntax::Expr], span: Span) -> R<Value> {
        let [item] = items else {
            return self.error("type::subscript", span, "`offset(d)` takes one index");
        };
        let v = self.eval(item)?;
        let weak = by.weak && v.is_weak_scalar();
        let index = match v.lazy() {
            Some(l) if l.shape.is_empty() && l.expr.dtype().is_int() => {
                self.in_type(l.expr, l.weak, taffeta_ast::DType::I64, item.span)?
            }
            _ => {
                let found = v.describe();
                return self.error("index::type", item.span, format!("expected an integer index, found {found}"));
            }
        };
        let expr: Expr = index.minus(&by.expr);
        Ok(Value::Lazy(Lazy { shape: Vec::new(), expr, weak }))
    }
}
