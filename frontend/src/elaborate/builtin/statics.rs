//! Functions of static values: `static isinstance enumerate zip reversed`.

use super::Builtin;
use crate::elaborate::call::Arg;
use crate::elaborate::value::{StaticType, Value};
use crate::elaborate::{Elab, R};
use taffeta_ast::Span;

impl Elab<'_> {
    /// Evaluates `static(e)`: the value of `e`, which must be known at compile time; for a range its list.
    pub(super) fn static_call(&mut self, args: Vec<Arg>, span: Span) -> R<Value> {
        let [x] = self.parameters(Builtin::Static, args, ["x"], 1, span)?;
        let (x, at) = self.required(Builtin::Static, x, span)?;
        match x {
            Value::Range(_) => Ok(Value::List(self.static_items(&x, at)?.into())),
            Value::NdRange(ranges) => Ok(Value::List(self.product(&ranges, at)?.into())),
            // The items of a static sequence may be tensors.
            Value::Tuple(_) | Value::List(_) => Ok(x),
            x if x.is_static() => Ok(x),
            x => {
                let found = x.describe();
                self.error_help(
                    "static::value",
                    at,
                    format!("expected a value known when compiling, found {found}"),
                    "sizes and values of tensors are not static; a `static` parameter is",
                )
            }
        }
    }

    /// Returns the tuples of an `ndrange`, in order.
    pub(crate) fn product(&mut self, ranges: &[Value], at: Span) -> R<Vec<Value>> {
        let mut all: Vec<Vec<Value>> = vec![Vec::new()];
        for r in ranges {
            let items = self.static_items(r, at)?;
            if all.len().saturating_mul(items.len()) > 1 << 20 {
                return self.error("static::sequence", at, "this static range is too long");
            }
            let longer = |before: &Vec<Value>| {
                let before = before.clone();
                items.iter().map(move |v| before.iter().cloned().chain([v.clone()]).collect()).collect::<Vec<_>>()
            };
            all = all.iter().flat_map(longer).collect();
        }
        Ok(all.into_iter().map(|v| Value::Tuple(v.into())).collect())
    }

    /// Evaluates `isinstance(x, tuple)` and `isinstance(x, (tuple, list))`.
    pub(super) fn isinstance(&mut self, args: Vec<Arg>, span: Span) -> R<Value> {
        let [x, types] = self.parameters(Builtin::IsInstance, args, ["x", "types"], 2, span)?;
        let (x, _) = self.required(Builtin::IsInstance, x, span)?;
        let (types, at) = self.required(Builtin::IsInstance, types, span)?;
        let all = match types.items() {
            Some(items) => items.to_vec(),
            None => vec![types],
        };
        let mut found = false;
        for t in all {
            found |= match t {
                Value::Type(StaticType::Int) => matches!(x, Value::Int(_)),
                Value::Type(StaticType::Float) => matches!(x, Value::Float(_)),
                Value::Type(StaticType::Str) => matches!(x, Value::Str(_)),
                Value::Type(StaticType::Tuple) => matches!(x, Value::Tuple(_)),
                Value::Type(StaticType::List) => matches!(x, Value::List(_)),
                Value::DType(taffeta_ast::DType::Bool) => matches!(x, Value::Bool(_)),
                other => {
                    let what = other.describe();
                    return self.error_help(
                        "type::operand",
                        at,
                        format!("`isinstance` takes int, float, bool, str, tuple and list, found {what}"),
                        "compare element types with `x.dtype == f32`",
                    );
                }
            };
        }
        Ok(Value::Bool(found))
    }

    /// Evaluates `enumerate(xs)`.
    pub(super) fn enumerate(&mut self, args: Vec<Arg>, span: Span) -> R<Value> {
        let [x] = self.parameters(Builtin::Enumerate, args, ["x"], 1, span)?;
        let (x, at) = self.required(Builtin::Enumerate, x, span)?;
        let items = self.static_items(&x, at)?;
        let pair = |(k, v): (usize, Value)| Value::Tuple([Value::Int(k as i128), v].into());
        Ok(Value::List(items.into_iter().enumerate().map(pair).collect()))
    }

    /// Evaluates `zip(xs, ys)`.
    pub(super) fn zip(&mut self, args: Vec<Arg>, span: Span) -> R<Value> {
        let mut columns = Vec::new();
        for (_, v, at) in &args {
            columns.push(self.static_items(v, *at)?);
        }
        let Some(n) = columns.iter().map(Vec::len).min() else {
            return self.error("call::arguments", span, "`zip` takes sequences");
        };
        Ok(Value::List((0..n).map(|k| Value::Tuple(columns.iter().map(|c| c[k].clone()).collect())).collect()))
    }

    /// Evaluates `reversed(xs)`.
    pub(super) fn reversed(&mut self, args: Vec<Arg>, span: Span) -> R<Value> {
        let [x] = self.parameters(Builtin::Reversed, args, ["x"], 1, span)?;
        let (x, at) = self.required(Builtin::Reversed, x, span)?;
        let mut items = self.static_items(&x, at)?;
        items.reverse();
        Ok(Value::List(items.into()))
    }
}
