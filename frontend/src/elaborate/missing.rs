//! Values that may be missing (language.md, section 7): `A[permit(j)]` is missing where `j` is out of range, a result
//! computed from a missing operand is missing, and `coalesce(a, b)` is the first operand that is present.
//!
//! Presence is a condition beside the value, which is known while compiling: `coalesce(a, b)` is `select(there, a, b)`,
//! an ordinary operator, so that the tree has no missing values. Only expressions may be missing: [`Elab::eval`]
//! refuses a missing value that would be kept, and [`Elab::eval_operand`] passes it to operators, subscripts and
//! `coalesce`.

use super::broadcast::stretch;
use super::builtin::Builtin;
use super::call::Arg;
use super::expr::value_reads;
use super::value::{Lazy, Value};
use super::{Elab, R, axis};
use rustc_hash::FxHashSet;
use taffeta_ast::{Access, DType, Diagnostic, Expr, Literal, Op, Span, Symbol};

/// Value that may be missing.
#[derive(Clone, Debug)]
pub(crate) struct Missing {
    /// The value where it is present. It is not evaluated elsewhere.
    pub(crate) value: Lazy,
    /// Presence condition: a `bool` over the axes of the value.
    pub(crate) there: Expr,
}

impl Missing {
    /// Combines a value with its presence condition; a value that is always present stays as it is.
    pub(crate) fn of(value: Value, there: Expr) -> Value {
        match value.lazy() {
            Some(l) if there.as_bool() != Some(true) => Value::Missing(Box::new(Missing { value: l, there })),
            _ => value,
        }
    }

    /// Returns the part at these indices, of that shape.
    pub(crate) fn part(&self, at: &[Access], shape: Vec<Expr>) -> Missing {
        let expr = axis::subscripted_expr(&self.value.expr, at);
        let there = axis::subscripted_expr(&self.there, at);
        Missing { value: Lazy { shape, expr, weak: self.value.weak }, there }
    }

    fn there(&self) -> Value {
        Value::Lazy(Lazy { shape: self.value.shape.clone(), expr: self.there.clone(), weak: false })
    }
}

/// Combines a value with a presence condition, which is broadcast to the shape of the value.
fn missing(value: Value, there: &Value) -> Value {
    match (value.shape(), there.lazy()) {
        (Some(shape), Some(there)) => Missing::of(value, stretch(&there, &shape)),
        _ => value,
    }
}

impl Elab<'_> {
    /// Evaluates `permit(j)`: an index that may be out of range.
    pub(crate) fn permit_call(&mut self, args: Vec<Arg>, span: Span) -> R<Value> {
        let [index] = self.parameters(Builtin::Permit, args, ["index"], 1, span)?;
        let Some((index, at)) = index else { unreachable!("it is required") };
        match index.lazy() {
            Some(l) if l.expr.dtype().is_int() => {
                let expr = self.in_type(l.expr, l.weak, DType::I64, at)?;
                Ok(Value::Permit(Lazy { expr, ..l }))
            }
            _ => self.error("index::type", at, format!("expected an integer index, found {}", index.describe())),
        }
    }

    /// Evaluates `coalesce(a, b, …)`.
    pub(crate) fn coalesce_call(&mut self, args: Vec<Arg>, span: Span) -> R<Value> {
        if let Some((Some(_), _, at)) = args.iter().find(|(key, ..)| key.is_some()) {
            return self.error("call::arguments", *at, "`coalesce` takes positional arguments");
        }
        let mut all = args.into_iter().rev().map(|(_, v, at)| (v, at));
        let Some(mut chosen) = all.next() else {
            return self.error("call::arguments", span, "`coalesce` needs a value");
        };
        for (first, at) in all {
            let Value::Missing(m) = first else {
                chosen = (first, at);
                continue;
            };
            let (there, value) = ((m.there(), at), (Value::Lazy(m.value.clone()), at));
            chosen = match chosen {
                (Value::Missing(other), place) => {
                    let rest = (Value::Lazy(other.value.clone()), place);
                    let either = self.apply(Op::Or, &[there.clone(), (other.there(), place)], span)?;
                    let chosen = self.apply_select(there, value, rest, span)?;
                    (missing(chosen, &either), span)
                }
                rest => (self.apply_select(there, value, rest, span)?, span),
            };
        }
        Ok(chosen.0)
    }

    fn apply_select(&mut self, cond: (Value, Span), then: (Value, Span), other: (Value, Span), span: Span) -> R<Value> {
        self.apply(Op::Select, &[cond, then, other], span)
    }

    /// Applies an operator to operands some of which may be missing.
    pub(crate) fn apply_missing(&mut self, op: Op, args: &[(Value, Span)], span: Span) -> R<Value> {
        let value = |(v, at): &(Value, Span)| match v {
            Value::Missing(m) => (Value::Lazy(m.value.clone()), *at),
            v => (v.clone(), *at),
        };
        let values: Vec<(Value, Span)> = args.iter().map(value).collect();
        let there = |k: usize| match &args[k].0 {
            Value::Missing(m) => Some((m.there(), args[k].1)),
            _ => None,
        };
        let always = |at: Span| (Value::Bool(true), at);
        let mut conditions: Vec<(Value, Span)> = Vec::new();
        match op {
            // The presence of the operand that is not chosen does not count.
            Op::Select => {
                conditions.extend(there(0));
                if there(1).is_some() || there(2).is_some() {
                    let [then, other] = [1, 2].map(|k| there(k).unwrap_or(always(args[k].1)));
                    conditions.push((self.apply_select(values[0].clone(), then, other, span)?, span));
                }
            }
            _ => conditions.extend((0..args.len()).filter_map(there)),
        }
        let result = self.apply(op, &values, span)?;
        let mut all = always(span);
        for one in conditions {
            all = (self.apply(Op::And, &[all, one], span)?, span);
        }
        Ok(missing(result, &all.0))
    }

    /// Returns the value, with temporaries if it reads tensors that are `written` before its use.
    pub(crate) fn kept_missing(&mut self, m: &Missing, written: &FxHashSet<Symbol>) -> Value {
        let mut read = FxHashSet::default();
        value_reads(&Value::Missing(Box::new(m.clone())), &mut read);
        if read.is_disjoint(written) {
            return Value::Missing(Box::new(m.clone()));
        }
        // Out of range there is no element to read.
        let dtype = m.value.expr.dtype();
        let zero = Expr::literal(Literal::zero(dtype), dtype);
        let expr = Expr::apply(Op::Select, vec![m.there.clone(), m.value.expr.clone(), zero]);
        let value = Lazy { expr, ..m.value.clone() };
        let there = Lazy { expr: m.there.clone(), shape: m.value.shape.clone(), weak: false };
        let [value, there] = [value, there].map(|l| Value::Tensor(self.materialise(&l, l.expr.dtype(), "t")));
        missing(value, &there)
    }

    /// Evaluates `cast(x, dtype)` of a value that may be missing.
    pub(crate) fn cast_missing(&mut self, m: &Missing, dtype: DType, span: Span) -> R<Value> {
        let value = self.cast(&Value::Lazy(m.value.clone()), dtype, span)?;
        Ok(Missing::of(value, m.there.clone()))
    }

    /// Returns the condition that an index permitted to be out of range is in range.
    pub(crate) fn in_range(index: &Expr, n: &Expr) -> Expr {
        Expr::int(0).less_eq(index).and(&index.less(n))
    }

    /// Refuses a value that may be missing, where it would be kept.
    pub(crate) fn present(&mut self, v: Value, span: Span) -> R<Value> {
        match v {
            Value::Missing(_) => {
                let text = "the value may be missing: an index in it is permitted to be out of range";
                let d = Diagnostic::new("index::missing", text).at(span);
                Err(self.report(d.help("give a value for that case: `coalesce(…, 0.0)`")))
            }
            Value::Permit(_) => {
                let text = "expected a value, found an index that may be out of range";
                let d = Diagnostic::new("index::missing", text).at(span);
                Err(self.report(d.help("put it into a subscript: `A[permit(j)]`")))
            }
            v => Ok(v),
        }
    }
}
