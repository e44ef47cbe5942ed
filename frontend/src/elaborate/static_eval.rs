//! Arithmetic on static values: numbers as Python computes them (integers exactly, floats as f64), sequences, strings
//! and types.

use super::value::Value;
use crate::syntax::CmpOp;
use std::cmp::Ordering;
use taffeta_ast::{DType, Expr, Literal, Op, Span};

/// The longest static sequence.
const MAX_ITEMS: usize = 1 << 20;

/// An operator on static numbers; `None` where an operand is no static number, or the operator does not take it (the
/// general case then says why).
pub(crate) fn operator(op: Op, args: &[(Value, Span)]) -> Option<Result<Value, String>> {
    if let (Op::Select, (Value::Bool(c), _)) = (op, &args[0]) {
        let chosen = &args[if *c { 1 } else { 2 }].0;
        let plain = args[1..].iter().all(|(v, _)| matches!(v, Value::Int(_) | Value::Float(_) | Value::Bool(_)));
        return plain.then(|| Ok(chosen.clone()));
    }
    let values: Vec<&Value> = args.iter().map(|a| &a.0).collect();
    match values.as_slice() {
        [Value::Bool(a)] if op == Op::Not => Some(Ok(Value::Bool(!a))),
        [Value::Bool(a), Value::Bool(b)] => bools(op, *a, *b).map(|b| Ok(Value::Bool(b))),
        [Value::Int(a)] => int_unary(op, *a).map(checked),
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

fn bools(op: Op, a: bool, b: bool) -> Option<bool> {
    Some(match op {
        Op::And | Op::BitAnd => a & b,
        Op::Or | Op::BitOr => a | b,
        Op::BitXor | Op::Ne => a != b,
        Op::Eq => a == b,
        _ => return None,
    })
}

/// Static integers are those of `i64` and `u64`.
fn checked(v: Option<i128>) -> Result<Value, String> {
    match v {
        Some(i) if i >= i128::from(i64::MIN) && i <= i128::from(u64::MAX) => Ok(Value::Int(i)),
        _ => Err("this static integer does not fit in 64 bits".to_string()),
    }
}

fn int_unary(op: Op, a: i128) -> Option<Option<i128>> {
    Some(Some(match op {
        Op::Neg => -a,
        Op::BitNot => !a,
        Op::Abs => a.abs(),
        Op::Sign => a.signum(),
        Op::Floor | Op::Ceil | Op::Round | Op::Trunc => a,
        _ => return None,
    }))
}

fn int_binary(op: Op, a: i128, b: i128) -> Option<Result<Value, String>> {
    let truth = |b: bool| Some(Ok(Value::Bool(b)));
    Some(checked(match op {
        Op::Add => a.checked_add(b),
        Op::Sub => a.checked_sub(b),
        Op::Mul => a.checked_mul(b),
        Op::FloorDiv | Op::Mod if b == 0 => return Some(Err("division by zero".to_string())),
        Op::FloorDiv => Some(floor_div(a, b)),
        Op::Mod => Some(a - b * floor_div(a, b)),
        Op::Pow if b < 0 => {
            return Some(Err("an integer has no negative power: write `2.0 ** -1`".to_string()));
        }
        Op::Pow => u32::try_from(b).ok().and_then(|b| a.checked_pow(b)),
        Op::Min => Some(a.min(b)),
        Op::Max => Some(a.max(b)),
        Op::BitAnd => Some(a & b),
        Op::BitOr => Some(a | b),
        Op::BitXor => Some(a ^ b),
        Op::Shl | Op::Shr if b < 0 => return Some(Err("a shift by a negative number".to_string())),
        Op::Shl => u32::try_from(b).ok().filter(|b| *b < 64).and_then(|b| a.checked_mul(1i128 << b)),
        Op::Shr => Some(a >> b.min(100)),
        Op::Eq => return truth(a == b),
        Op::Ne => return truth(a != b),
        Op::Lt => return truth(a < b),
        Op::Le => return truth(a <= b),
        Op::Gt => return truth(a > b),
        Op::Ge => return truth(a >= b),
        Op::Div => {
            return Some(Ok(Value::Float(a as f64 / b as f64)));
        }
        _ => return floats(op, &[a as f64, b as f64]).map(Ok),
    }))
}

fn floor_div(a: i128, b: i128) -> i128 {
    let q = a / b;
    if a % b != 0 && (a < 0) != (b < 0) { q - 1 } else { q }
}

/// Operators on floats of which the value is the same everywhere. The others (`exp`, `sin`, `erf` …) are left to the
/// program, which computes them as it computes those of tensors.
fn floats(op: Op, v: &[f64]) -> Option<Value> {
    let nan = v.iter().any(|x| x.is_nan());
    Some(match op {
        Op::Add => Value::Float(v[0] + v[1]),
        Op::Sub => Value::Float(v[0] - v[1]),
        Op::Mul => Value::Float(v[0] * v[1]),
        Op::Div => Value::Float(v[0] / v[1]),
        Op::Neg => Value::Float(-v[0]),
        Op::Abs => Value::Float(v[0].abs()),
        Op::Sqrt => Value::Float(v[0].sqrt()),
        Op::Floor => Value::Float(v[0].floor()),
        Op::Ceil => Value::Float(v[0].ceil()),
        Op::Trunc => Value::Float(v[0].trunc()),
        Op::Round => Value::Float(v[0].round_ties_even()),
        Op::Min if nan => Value::Float(f64::NAN),
        Op::Max if nan => Value::Float(f64::NAN),
        Op::Min => Value::Float(v[0].min(v[1])),
        Op::Max => Value::Float(v[0].max(v[1])),
        Op::Eq => Value::Bool(v[0] == v[1]),
        Op::Ne => Value::Bool(v[0] != v[1]),
        Op::Lt => Value::Bool(v[0] < v[1]),
        Op::Le => Value::Bool(v[0] <= v[1]),
        Op::Gt => Value::Bool(v[0] > v[1]),
        Op::Ge => Value::Bool(v[0] >= v[1]),
        Op::IsNan => Value::Bool(v[0].is_nan()),
        _ => return None,
    })
}

/// An operator on constants of one floating-point type, rounded to it: constants are folded whether they are typed or
/// not, so that a printed program, whose constants have no types, folds the same ones.
pub(crate) fn typed_floats(op: Op, args: &[Expr], dtype: DType) -> Option<Expr> {
    let constant = |e: &Expr| match e.as_literal()? {
        Literal::Float(f) => Some(f),
        _ => None,
    };
    let v: Vec<f64> = args.iter().map(constant).collect::<Option<_>>()?;
    match floats(op, &v)? {
        Value::Float(f) => Some(Expr::float(f, dtype)),
        Value::Bool(b) => Some(Expr::bool(b)),
        _ => None,
    }
}

/// `+` and `*` on sequences and strings.
pub(crate) fn sequence(op: Op, a: &Value, b: &Value) -> Option<Result<Value, String>> {
    let repeat = |items: &[Value], n: &i128| -> Result<Vec<Value>, String> {
        let n = usize::try_from((*n).max(0)).unwrap_or(usize::MAX);
        match items.len().checked_mul(n) {
            Some(total) if total <= MAX_ITEMS => Ok(items.iter().cloned().cycle().take(total).collect()),
            _ => Err(format!("a static sequence has at most {MAX_ITEMS} items")),
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
                Err(format!("a static sequence has at most {MAX_ITEMS} items"))
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

/// Whether two values are the same, as `==` on static values and `in` see it. A size is the same as another one if both
/// have the same expression, and differs from every constant.
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

/// `a in b` for a sequence, a range or a string; `None` where `b` is none.
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

/// A comparison of static values that are no numbers; `None` if they are not comparable in this way.
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

/// What a static `for` or a comprehension runs over; `None` where it is no static sequence.
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
        return Some(Err(format!("a static sequence has at most {MAX_ITEMS} items, and this has {count}")));
    }
    Some(Ok((0..count).map(|k| Value::Int(a + k * s)).collect()))
}
