//! Arithmetic on static values: numbers (integers exactly, floats as f64; the values are those of the operators' table,
//! `ast::scalar`), sequences, strings and types.

use super::broadcast::keeps_integers;
use super::limits::MAX_ITEMS;
use super::value::Value;
use crate::syntax::CmpOp;
use std::cmp::Ordering;
use taffeta_ast::scalar::{self, Exact, Fault};
use taffeta_ast::{DType, Expr, Literal, Op, Span};

/// Applies an operator to static numbers; `None` if an operand is not a static number, or the operator does not take it
/// (the general case then reports the reason).
pub(crate) fn operator(op: Op, args: &[(Value, Span)]) -> Option<Result<Value, String>> {
    if let (Op::Select, (Value::Bool(c), _)) = (op, &args[0]) {
        let chosen = &args[if *c { 1 } else { 2 }].0;
        let plain = args[1..].iter().all(|(v, _)| matches!(v, Value::Int(_) | Value::Float(_) | Value::Bool(_)));
        return plain.then(|| Ok(chosen.clone()));
    }
    let values: Vec<&Value> = args.iter().map(|a| &a.0).collect();
    match values.as_slice() {
        // `~True` is a number in Python: the general case decides its meaning here.
        [Value::Bool(_)] if op == Op::BitNot => None,
        [Value::Bool(a)] => evaluated(op, DType::Bool, &[Literal::Bool(*a)]).map(Ok),
        [Value::Bool(a), Value::Bool(b)] => evaluated(op, DType::Bool, &[Literal::Bool(*a), Literal::Bool(*b)]).map(Ok),
        [Value::Int(a)] => int_unary(op, *a),
        [Value::Int(a), Value::Int(b)] => int_binary(op, *a, *b),
        all if all.iter().all(|v| matches!(v, Value::Int(_) | Value::Float(_))) => {
            let f: Vec<f64> = all.iter().filter_map(|v| number(v)).collect();
            floats(op, &f).map(Ok)
        }
        _ => None,
    }
}

fn number(v: &Value) -> Option<f64> {
    match v {
        Value::Int(i) => Some(*i as f64),
        Value::Float(f) => Some(*f),
        _ => None,
    }
}

/// Evaluates an operator by the table, to a static value.
fn evaluated(op: Op, dtype: DType, args: &[Literal]) -> Option<Value> {
    Some(match scalar::apply(op, dtype, args).ok()? {
        Literal::Bool(b) => Value::Bool(b),
        Literal::Int(i) => Value::Int(i),
        Literal::Float(f) => Value::Float(f),
    })
}

/// Checks that a static integer fits in `i64` or `u64`.
fn checked(v: Exact) -> Result<Value, String> {
    match v {
        Exact::Value(i) if i >= i128::from(i64::MIN) && i <= i128::from(u64::MAX) => Ok(Value::Int(i)),
        _ => Err("this static integer does not fit in 64 bits".to_string()),
    }
}

fn int_unary(op: Op, a: i128) -> Option<Result<Value, String>> {
    if keeps_integers(op) {
        return Some(Ok(Value::Int(a)));
    }
    scalar::exact_unary(op, a).map(|v| checked(Exact::Value(v)))
}

fn int_binary(op: Op, a: i128, b: i128) -> Option<Result<Value, String>> {
    match scalar::exact_int(op, a, b) {
        Ok(Some(v)) => Some(checked(v)),
        Ok(None) if op.is_comparison() => evaluated(op, DType::I64, &[Literal::Int(a), Literal::Int(b)]).map(Ok),
        Ok(None) => floats(op, &[a as f64, b as f64]).map(Ok),
        Err(Fault::NegativeExponent(_)) => {
            Some(Err("negative powers of integers are not supported: write `2.0 ** -1`".to_string()))
        }
        Err(Fault::NegativeShift(_)) => Some(Err("cannot shift by a negative number".to_string())),
        Err(fault) => Some(Err(fault.to_string())),
    }
}

/// Evaluates operators on floats whose result is the same on every machine. The others (`exp`, `sin`, `erf` …) are left
/// to the running program, which computes them as it does for tensors.
fn floats(op: Op, v: &[f64]) -> Option<Value> {
    let args: Vec<Literal> = v.iter().map(|f| Literal::Float(*f)).collect();
    op.info().exact.then(|| evaluated(op, DType::F64, &args)).flatten()
}

/// Folds an operator on constants of one floating-point type, rounded to it: constants are folded whether they are
/// typed or not, so that a printed program, whose constants have no types, folds the same constants.
pub(crate) fn typed_floats(op: Op, args: &[Expr], dtype: DType) -> Option<Expr> {
    let values: Vec<Literal> = args.iter().map(Expr::as_literal).collect::<Option<_>>()?;
    if !op.info().exact || !values.iter().all(|v| matches!(v, Literal::Float(_))) {
        return None;
    }
    Some(Expr::literal(scalar::apply(op, dtype, &values).ok()?, op.result(dtype)))
}

/// Evaluates `+` and `*` on sequences and strings.
pub(crate) fn sequence(op: Op, a: &Value, b: &Value) -> Option<Result<Value, String>> {
    let repeat = |items: &[Value], n: &i128| -> Result<Vec<Value>, String> {
        let n = usize::try_from((*n).max(0)).unwrap_or(usize::MAX);
        match items.len().checked_mul(n) {
            Some(total) if total <= MAX_ITEMS => Ok(items.iter().cloned().cycle().take(total).collect()),
            _ => Err(format!("a static sequence has more than {MAX_ITEMS} items")),
        }
    };
    match (op, a, b) {
        (Op::Add, Value::Str(a), Value::Str(b)) => Some(Ok(Value::str(format!("{a}{b}")))),
        (Op::Add, Value::Tuple(x), Value::Tuple(y)) => {
            Some(Ok(Value::Tuple(x.iter().chain(y.iter()).cloned().collect())))
        }
        (Op::Add, a, b) => {
            let all: Vec<Value> = a.items()?.iter().chain(b.items()?).cloned().collect();
            Some(if all.len() > MAX_ITEMS {
                Err(format!("a static sequence has more than {MAX_ITEMS} items"))
            } else {
                Ok(Value::List(all.into()))
            })
        }
        (Op::Mul, Value::Tuple(x), Value::Int(n)) | (Op::Mul, Value::Int(n), Value::Tuple(x)) => {
            Some(repeat(x, n).map(|v| Value::Tuple(v.into())))
        }
        (Op::Mul, Value::List(x), Value::Int(n)) | (Op::Mul, Value::Int(n), Value::List(x)) => {
            Some(repeat(x, n).map(|v| Value::List(v.into())))
        }
        _ => None,
    }
}

/// Returns whether two values are the same, as `==` on static values and `in` define it. A size is the same as another
/// one if both have the same expression, and differs from every constant.
pub(crate) fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Str(a), Value::Str(b)) => a == b,
        (Value::DType(a), Value::DType(b)) => a == b,
        (Value::None, Value::None) => true,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Int(a), Value::Int(b)) => a == b,
        (Value::Type(a), Value::Type(b)) => a == b,
        (Value::Operator(a), Value::Operator(b)) => a == b,
        (Value::Builtin(a), Value::Builtin(b)) => a == b,
        (Value::Function(a), Value::Function(b)) => a == b,
        (Value::Handle(a), Value::Handle(b)) => a.number == b.number,
        (Value::Int(_) | Value::Float(_), Value::Int(_) | Value::Float(_)) => number(a) == number(b),
        (Value::Tuple(a), Value::Tuple(b)) | (Value::List(a), Value::List(b)) => {
            a.len() == b.len() && a.iter().zip(b.iter()).all(|(x, y)| same(x, y))
        }
        (Value::Lazy(a), Value::Lazy(b)) => {
            a.weak && b.weak && a.shape.is_empty() && b.shape.is_empty() && a.expr == b.expr
        }
        _ => false,
    }
}

/// Evaluates `a in b` for a sequence, a range or a string; `None` if `b` is another value.
pub(crate) fn contains(a: &Value, b: &Value) -> Option<bool> {
    match (a, b) {
        (a, Value::Tuple(items) | Value::List(items)) => Some(items.iter().any(|i| same(a, i))),
        (Value::Str(a), Value::Str(b)) => Some(b.contains(&**a)),
        (Value::Int(i), Value::Range(_)) => match range_bounds(b)? {
            (lo, hi, step) if step > 0 => Some(*i >= lo && *i < hi && (*i - lo) % step == 0),
            (lo, hi, step) => Some(*i <= lo && *i > hi && (lo - *i) % -step == 0),
        },
        (_, Value::Range(_)) => range_bounds(b).map(|_| false),
        _ => None,
    }
}

/// Compares static values that are not numbers; `None` if the comparison does not apply to them.
pub(crate) fn compare(op: CmpOp, a: &Value, b: &Value) -> Option<bool> {
    let order = |a: &Value, b: &Value| -> Option<Ordering> {
        match (a, b) {
            (Value::Str(a), Value::Str(b)) => Some(a.cmp(b)),
            _ => None,
        }
    };
    match op {
        CmpOp::Eq => Some(same(a, b)),
        CmpOp::Ne => Some(!same(a, b)),
        CmpOp::Lt => order(a, b).map(Ordering::is_lt),
        CmpOp::Le => order(a, b).map(Ordering::is_le),
        CmpOp::Gt => order(a, b).map(Ordering::is_gt),
        CmpOp::Ge => order(a, b).map(Ordering::is_ge),
        CmpOp::In => contains(a, b),
        CmpOp::NotIn => contains(a, b).map(|x| !x),
        CmpOp::Is | CmpOp::IsNot => None,
    }
}

fn range_bounds(v: &Value) -> Option<(i128, i128, i128)> {
    match v {
        Value::Range(r) => match &**r {
            [Value::Int(a), Value::Int(b), Value::Int(s)] if *s != 0 => Some((*a, *b, *s)),
            _ => None,
        },
        _ => None,
    }
}

/// Returns the items of a static `for` or a comprehension; `None` if the value is not a static sequence.
pub(crate) fn iterate(v: &Value) -> Option<Result<Vec<Value>, String>> {
    if let Some(items) = v.items() {
        return Some(Ok(items.to_vec()));
    }
    if let Value::Str(s) = v {
        return Some(Ok(s.chars().map(|c| Value::str(c.to_string())).collect()));
    }
    let (a, b, s) = range_bounds(v)?;
    let span = if s > 0 { b - a } else { a - b };
    let count = if span <= 0 { 0 } else { (span + s.abs() - 1) / s.abs() };
    if count > MAX_ITEMS as i128 {
        return Some(Err(format!("a static sequence can have at most {MAX_ITEMS} items, found {count}")));
    }
    Some(Ok((0..count).map(|k| Value::Int(a + k * s)).collect()))
}
