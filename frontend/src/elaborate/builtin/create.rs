//! Tensors made from scratch: `zeros ones empty full arange`, and `cast`, `clip`.

use super::Builtin;
use crate::elaborate::call::Arg;
use crate::elaborate::value::{Lazy, Value};
use crate::elaborate::{Elab, R, axis};
use taffeta_ast::{DType, Expr, Op, Span};

impl Elab<'_> {
    /// Converts an argument to a shape: a tuple or list of sizes, or one size.
    pub(crate) fn shape_argument(&mut self, v: &Value, span: Span) -> R<Vec<Expr>> {
        let shape = match v.items() {
            Some(items) => items.to_vec().iter().map(|n| self.as_size(n, span)).collect::<R<Vec<Expr>>>()?,
            None => vec![self.as_size(v, span)?],
        };
        if shape.len() > axis::MAX_NDIM {
            return self.error("shape::rank", span, format!("a tensor has at most {} dimensions", axis::MAX_NDIM));
        }
        Ok(shape)
    }

    /// Converts an argument to an element type.
    fn dtype_argument(&mut self, arg: Option<(Value, Span)>, default: DType) -> R<DType> {
        match arg {
            None | Some((Value::None, _)) => Ok(default),
            Some((Value::DType(d), _)) => Ok(d),
            Some((v, span)) => {
                let found = v.describe();
                self.error_help(
                    "type::dtype",
                    span,
                    format!("expected an element type, found {found}"),
                    "write `f32`, `f64`, `i32`, `x.dtype` …",
                )
            }
        }
    }

    /// Evaluates `zeros(shape, dtype)` and `ones(shape, dtype)`.
    pub(super) fn filled(&mut self, b: Builtin, v: Value, args: Vec<Arg>, span: Span) -> R<Value> {
        let [shape, dtype] = self.parameters(b, args, ["shape", "dtype"], 1, span)?;
        let (shape, at) = self.required(b, shape, span)?;
        let shape = self.shape_argument(&shape, at)?;
        let dtype = self.dtype_argument(dtype, DType::F32)?;
        let expr = v.lazy().map_or_else(|| Expr::int(0), |l| l.expr).cast(dtype);
        Ok(Value::Lazy(Lazy { shape, expr, weak: false }))
    }

    /// Evaluates `empty(shape, dtype)`.
    pub(super) fn empty(&mut self, args: Vec<Arg>, span: Span) -> R<Value> {
        let [shape, dtype] = self.parameters(Builtin::Empty, args, ["shape", "dtype"], 1, span)?;
        let (shape, at) = self.required(Builtin::Empty, shape, span)?;
        let shape = self.shape_argument(&shape, at)?;
        Ok(Value::Empty(shape, self.dtype_argument(dtype, DType::F32)?))
    }

    /// Evaluates `full(shape, value, dtype)`.
    pub(super) fn full(&mut self, args: Vec<Arg>, span: Span) -> R<Value> {
        let [shape, value, dtype] = self.parameters(Builtin::Full, args, ["shape", "value", "dtype"], 2, span)?;
        let (shape, at) = self.required(Builtin::Full, shape, span)?;
        let (value, value_at) = self.required(Builtin::Full, value, span)?;
        let shape = self.shape_argument(&shape, at)?;
        let l = match value.lazy() {
            Some(l) if l.shape.is_empty() => l,
            _ => {
                let found = value.describe();
                return self.error("type::operand", value_at, format!("`full` takes one number, found {found}"));
            }
        };
        let own = if l.weak { crate::elaborate::call::default_type(l.expr.dtype()) } else { l.expr.dtype() };
        let dtype = self.dtype_argument(dtype, own)?;
        let expr = self.stored(&l, dtype, value_at)?;
        Ok(Value::Lazy(Lazy { shape, expr, weak: false }))
    }

    /// Evaluates `arange(end)` and `arange(begin, end, step)`: integers, which are weak like iterators unless `dtype`
    /// is given.
    pub(super) fn arange(&mut self, args: Vec<Arg>, span: Span) -> R<Value> {
        let positional = args.iter().filter(|a| a.0.is_none()).count();
        let names = if positional <= 1 { ["end", "begin", "step", "dtype"] } else { ["begin", "end", "step", "dtype"] };
        let [first, second, step, dtype] = self.parameters(Builtin::Arange, args, names, 1, span)?;
        let (begin, end) = if positional <= 1 { (second, first) } else { (first, second) };
        let bound = |this: &mut Self, arg: Option<(Value, Span)>, default: i64| match arg {
            Some((v, at)) => {
                if !v.is_weak_scalar() {
                    let found = v.describe();
                    return this.error(
                        "shape::data",
                        at,
                        format!("expected a size as a bound of `arange`, found {found}"),
                    );
                }
                this.loop_bound(&v, at)
            }
            None => Ok(Expr::int(default)),
        };
        let begin = bound(self, begin, 0)?;
        let end = bound(self, end, 0)?;
        let step = bound(self, step, 1)?;
        let Some(s) = step.as_int().filter(|s| *s != 0) else {
            return self.error(
                "range::step",
                span,
                "expected a nonzero integer known when compiling as the step of `arange`",
            );
        };
        let (low, high) = if s > 0 { (&begin, &end) } else { (&end, &begin) };
        let width = high.minus(low);
        let m = s.saturating_abs();
        let len = width.plus(&Expr::int(m - 1)).floor_div(&Expr::int(m));
        // With bounds in the wrong order the sequence is empty, as for a range.
        let len = if self.is_nonnegative(&width) { len } else { len.max_with(&Expr::int(0)) };
        let expr = axis::var(1, 0).times(&Expr::int(s)).plus(&begin);
        match dtype {
            None => Ok(Value::Lazy(Lazy { shape: vec![len], expr, weak: true })),
            given => {
                let dtype = self.dtype_argument(given, DType::I64)?;
                Ok(Value::Lazy(Lazy { shape: vec![len], expr: expr.cast(dtype), weak: false }))
            }
        }
    }

    /// Evaluates `cast(x, dtype)`.
    pub(super) fn cast_call(&mut self, args: Vec<Arg>, span: Span) -> R<Value> {
        let [x, dtype] = self.parameters(Builtin::Cast, args, ["x", "dtype"], 2, span)?;
        let (x, at) = self.required(Builtin::Cast, x, span)?;
        let dtype = self.dtype_argument(dtype, DType::F32)?;
        self.cast(&x, dtype, at)
    }

    /// Evaluates `clip(x, lo, hi)` as `min(max(x, lo), hi)`.
    pub(super) fn clip(&mut self, args: Vec<Arg>, span: Span) -> R<Value> {
        let [x, lo, hi] = self.parameters(Builtin::Clip, args, ["x", "lo", "hi"], 3, span)?;
        let x = self.required(Builtin::Clip, x, span)?;
        let lo = self.required(Builtin::Clip, lo, span)?;
        let hi = self.required(Builtin::Clip, hi, span)?;
        let raised = self.apply(Op::Max, &[x, lo], span)?;
        self.apply(Op::Min, &[(raised, span), hi], span)
    }
}
