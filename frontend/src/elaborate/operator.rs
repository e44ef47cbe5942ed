//! Elementwise operators on scalars and tensors: the common type of the operands, and the result's element.
//!
//! Weak operands (literals, sizes, iterators) take the type of the typed ones; typed ones promote as in JAX; `bool` is
//! not a number; `/` and the functions of floats turn integers into `f64`.

use super::broadcast::{all_weak, keeps_integers, stretch};
use super::value::{Lazy, Value};
use super::{Elab, R, static_eval};
use taffeta_ast::op::Domain;
use taffeta_ast::stmt::Role as TensorRole;
use taffeta_ast::{DType, Diagnostic, Expr, Kind, Literal, Op, Span};

/// Returns the common type of operands: typed ones promote, weak ones yield.
pub(crate) fn meet(operands: &[&Lazy]) -> DType {
    let typed = operands.iter().filter(|l| !l.weak).map(|l| l.expr.dtype()).reduce(DType::promote);
    let weak = operands.iter().filter(|l| l.weak).map(|l| l.expr.dtype().kind()).max();
    meeting(typed, weak)
}

/// Returns the common type of a typed operand and a weak one of that kind; either may be absent.
pub(crate) fn meeting(typed: Option<DType>, weak: Option<Kind>) -> DType {
    match (typed, weak) {
        (Some(t), None | Some(Kind::Bool)) => t,
        (Some(t), Some(Kind::Int)) => {
            if t == DType::Bool {
                DType::I32
            } else {
                t
            }
        }
        (Some(t), Some(Kind::Float)) => {
            if t.is_float() {
                t
            } else {
                DType::F64
            }
        }
        (None, Some(Kind::Int)) => DType::I64,
        (None, Some(Kind::Float)) => DType::F64,
        (None, _) => DType::Bool,
    }
}

/// Formats an element type for a message; weak values have none of their own.
fn type_name(l: &Lazy) -> String {
    match (l.weak, l.expr.dtype().kind()) {
        (true, Kind::Int) => "an integer".to_string(),
        (true, Kind::Float) => "a float".to_string(),
        _ => format!("`{}`", l.expr.dtype()),
    }
}

impl Elab<'_> {
    /// Applies an operator elementwise to operands.
    pub(crate) fn apply(&mut self, op: Op, args: &[(Value, Span)], span: Span) -> R<Value> {
        if args.iter().any(|(v, _)| matches!(v, Value::Missing(_))) {
            return self.apply_missing(op, args, span);
        }
        if op == Op::StopGradient && args[0].0.lazy().is_some_and(|l| l.weak || !l.expr.dtype().is_float()) {
            // The operand has no derivative to stop.
            return Ok(args[0].0.clone());
        }
        if op == Op::Stored {
            match &args[0].0 {
                // A local tensor may take the storage of a result later, and the index of an element is checked.
                Value::Tensor(v)
                    if v.tensor.format.is_dense()
                        && v.tensor.ndim() > 0
                        && v.shape.len() == v.tensor.ndim()
                        && v.tensor.role != TensorRole::Local =>
                {
                    let (shape, expr) = (v.shape.clone(), Expr::bool(true));
                    return Ok(Value::Lazy(Lazy { shape, expr, weak: false }));
                }
                Value::Tensor(v) if v.tensor.ndim() > 0 => {}
                other => {
                    let text = format!("`stored` takes an element of a tensor, found {}", other.describe());
                    let help = "write `stored(A[i, j])`; what is computed from elements is in no tensor";
                    return self.error_help("type::operand", args[0].1, text, help);
                }
            }
        }
        if let Some(folded) = static_eval::operator(op, args) {
            return match folded {
                Ok(v) => Ok(v),
                Err(why) => self.error("static::arithmetic", span, why),
            };
        }
        let mut operands = Vec::with_capacity(args.len());
        for (v, at) in args {
            self.note_operand(v);
            operands.push(self.operand(op, v, *at)?);
        }
        let spans: Vec<Span> = args.iter().map(|a| a.1).collect();
        if keeps_integers(op) && operands[0].expr.dtype().is_int() {
            return Ok(args[0].0.clone());
        }
        let values: &[Lazy] = if op == Op::Select { &operands[1..] } else { &operands };
        let dtype = self.operand_type(op, values, span)?;
        // A size that is compared with a narrow integer is not truncated to the integer's type, since the result has
        // neither type.
        let wide = op.is_comparison()
            && dtype.is_int()
            && dtype.size() < DType::I64.size()
            && values.iter().any(|v| v.weak && v.expr.as_literal().is_none());
        let dtype = if wide { DType::I64 } else { dtype };
        if op == Op::Select && operands[0].expr.dtype() != DType::Bool {
            return self.not_bool(&format!("`{}`", operands[0].expr.dtype()), spans[0]);
        }
        let shapes: Vec<(&[taffeta_ast::Expr], Span)> =
            operands.iter().zip(&spans).map(|(o, s)| (o.shape.as_slice(), *s)).collect();
        let shape = self.broadcast(&shapes, span)?;
        let mut elements = Vec::with_capacity(operands.len());
        for (k, o) in operands.iter().enumerate() {
            let element = stretch(o, &shape);
            let is_condition = op == Op::Select && k == 0;
            elements.push(if is_condition { element } else { self.in_type(element, o.weak, dtype, spans[k])? });
        }
        let weak = all_weak(&operands);
        for e in &elements {
            self.small_enough(e, span)?;
        }
        let folded = if dtype.is_float() { static_eval::typed_floats(op, &elements, dtype) } else { None };
        let expr = folded.unwrap_or_else(|| Expr::apply(op, elements));
        Ok(if weak && shape.is_empty() { Value::weak(expr) } else { Value::Lazy(Lazy { shape, expr, weak }) })
    }

    fn operand(&mut self, op: Op, v: &Value, span: Span) -> R<Lazy> {
        match v {
            Value::Empty(..) => self.error_help(
                "value::empty",
                span,
                "a tensor made by `empty` has no values yet",
                "give it a name and write its elements first, or use `zeros`",
            ),
            _ => match v.lazy() {
                Some(l) => Ok(l),
                None => {
                    let takes = if self.schedule.is_some() { "numbers" } else { "tensors and numbers" };
                    let (name, found) = (op.info().name, v.describe());
                    self.error("type::operand", span, format!("`{name}` takes {takes}, found {found}"))
                }
            },
        }
    }

    /// Returns the type to which an operator's operands are converted.
    fn operand_type(&mut self, op: Op, values: &[Lazy], span: Span) -> R<DType> {
        let refs: Vec<&Lazy> = values.iter().collect();
        let met = meet(&refs);
        let domain = op.info().domain;
        if domain.accepts(met) {
            return Ok(met);
        }
        let found: Vec<String> = values.iter().map(type_name).collect();
        let found = found.join(" and ");
        let name = op.info().name;
        match domain {
            Domain::Float if met.is_int() => Ok(DType::F64),
            Domain::Bool => self.error_help(
                "type::operand",
                span,
                format!("`{name}` takes `bool`, found {found}"),
                "compare first: `x != 0`; for the bits of integers, write `&`, `|` or `~`",
            ),
            Domain::Number | Domain::Float | Domain::Int if met == DType::Bool => {
                let help = match op {
                    Op::Add => "write `|` for a logical or, or convert with `cast(x, i32)` to count",
                    Op::Mul => "write `&` for a logical and, or convert with `cast(x, i32)` to compute",
                    Op::Sub => "write `^` to test whether they differ, or convert with `cast(x, i32)` to compute",
                    _ => "convert first: `cast(x, i32)`",
                };
                self.error_help("type::bool", span, format!("`{name}` takes numbers, found `bool`"), help)
            }
            _ => self.error_help(
                "type::operand",
                span,
                format!("`{name}` takes integers, found {found}"),
                "convert first: `cast(x, i64)`",
            ),
        }
    }

    /// Converts an element to `dtype`, to which it promotes.
    pub(crate) fn in_type(&mut self, e: Expr, weak: bool, dtype: DType, span: Span) -> R<Expr> {
        if weak
            && let (Some(Literal::Int(i)), Some((lo, hi))) = (e.as_literal(), dtype.int_range())
            && dtype != DType::Bool
            && !(lo..=hi).contains(&i)
        {
            return self.error_help(
                "type::literal",
                span,
                format!("{i} does not fit in `{dtype}`, which ranges from {lo} to {hi}"),
                "convert the other operand to a wider type with `cast`",
            );
        }
        Ok(e.cast(dtype))
    }

    /// Reports a condition that is not a `bool`.
    pub(crate) fn not_bool<T>(&mut self, found: &str, span: Span) -> R<T> {
        self.error_help(
            "type::condition",
            span,
            format!("expected a `bool` as a condition, found {found}"),
            "compare it: `x != 0`",
        )
    }

    /// Evaluates `cast(x, dtype)`.
    pub(crate) fn cast(&mut self, v: &Value, dtype: DType, span: Span) -> R<Value> {
        if let Value::Missing(m) = v {
            return self.cast_missing(m, dtype, span);
        }
        let Some(l) = v.lazy() else {
            return self.error(
                "type::operand",
                span,
                format!("`cast` takes tensors and numbers, found {}", v.describe()),
            );
        };
        if let (Some(Literal::Float(f)), Some((lo, hi))) = (l.expr.as_literal(), dtype.int_range())
            && dtype != DType::Bool
        {
            let t = f.trunc();
            if !(t >= lo as f64 && t <= hi as f64) {
                return self.error("type::literal", span, format!("{f} does not fit in `{dtype}`"));
            }
            return Ok(Value::Lazy(Lazy {
                shape: l.shape,
                expr: Expr::literal(Literal::Int(t as i128), dtype),
                weak: false,
            }));
        }
        Ok(Value::Lazy(Lazy { shape: l.shape, expr: l.expr.cast(dtype), weak: false }))
    }

    /// Converts the element of `value` for a store into a tensor of `dtype`: within a kind and from narrower kinds, but
    /// not from float to integer or to `bool`.
    pub(crate) fn stored(&mut self, value: &Lazy, dtype: DType, span: Span) -> R<Expr> {
        let from = value.expr.dtype();
        if from.kind() > dtype.kind() {
            let d = Diagnostic::new(
                "type::store",
                format!("cannot store {} into `{dtype}` without a conversion", type_name(value)),
            )
            .at(span);
            let d = match dtype.kind() {
                Kind::Bool => d.help("compare: `x != 0`"),
                _ => d.help(format!("write `cast(…, {dtype})`, which truncates, or make the target a float")),
            };
            return Err(self.report(d));
        }
        self.in_type(value.expr.clone(), value.weak, dtype, span)
    }
}
