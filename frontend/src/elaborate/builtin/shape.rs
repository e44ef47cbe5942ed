//! Ranges and lengths: `range ndrange len`.

use super::Builtin;
use crate::elaborate::call::Arg;
use crate::elaborate::value::Value;
use crate::elaborate::{Elab, R, axis};
use std::sync::Arc;
use taffeta_ast::Span;

impl Elab<'_> {
    /// Evaluates `range(end)` and `range(begin, end, step)`.
    pub(super) fn range(&mut self, args: Vec<Arg>, span: Span) -> R<Value> {
        if args.iter().any(|a| a.0.is_some()) || args.is_empty() || args.len() > 3 {
            return self.error("call::arguments", span, "`range` takes one to three positional arguments");
        }
        let mut v: Vec<Value> = Vec::new();
        for (_, value, at) in args {
            self.loop_bound(&value, at)?;
            v.push(value);
        }
        let range = match <[Value; 3]>::try_from(v) {
            Ok(all) => all,
            Err(v) => match v.as_slice() {
                [end] => [Value::Int(0), end.clone(), Value::Int(1)],
                [begin, end] => [begin.clone(), end.clone(), Value::Int(1)],
                _ => return self.error("call::arguments", span, "`range` takes one to three arguments"),
            },
        };
        if let Value::Int(0) = range[2] {
            return self.error("range::step", span, "the step of a range cannot be 0");
        }
        Ok(Value::Range(Arc::new(range)))
    }

    /// Evaluates `ndrange(n, m)`: a range for each argument.
    pub(super) fn ndrange(&mut self, args: Vec<Arg>, span: Span) -> R<Value> {
        if args.len() > axis::MAX_NDIM {
            let most = axis::MAX_NDIM;
            return self.error("shape::rank", span, format!("`ndrange` takes at most {most} sizes, one for each loop"));
        }
        let mut ranges = Vec::new();
        for (key, v, at) in args {
            if key.is_some() {
                return self.error("call::arguments", at, "`ndrange` takes positional arguments");
            }
            ranges.push(match v {
                Value::Range(_) => v,
                v => {
                    self.loop_bound(&v, at)?;
                    Value::Range(Arc::new([Value::Int(0), v, Value::Int(1)]))
                }
            });
        }
        if ranges.is_empty() {
            return self.error("call::arguments", span, "`ndrange` needs a size for each loop");
        }
        Ok(Value::NdRange(ranges.into()))
    }

    /// Evaluates `len(x)`.
    pub(super) fn len(&mut self, args: Vec<Arg>, span: Span) -> R<Value> {
        let [x] = self.parameters(Builtin::Len, args, ["x"], 1, span)?;
        let (x, at) = self.required(Builtin::Len, x, span)?;
        if let Some(items) = x.items() {
            return Ok(Value::Int(items.len() as i128));
        }
        if let Value::Str(s) = &x {
            return Ok(Value::Int(s.chars().count() as i128));
        }
        if let Value::Range(_) = x
            && let Some(Ok(items)) = crate::elaborate::static_eval::iterate(&x)
        {
            return Ok(Value::Int(items.len() as i128));
        }
        match x.shape().as_deref() {
            Some([n, ..]) => Ok(Value::weak(n.clone())),
            _ => {
                let found = x.describe();
                self.error("type::operand", at, format!("{found} has no length"))
            }
        }
    }
}
