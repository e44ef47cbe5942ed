//! Static values from outside the program (`--set w=32` sets a `static` parameter): parsing, display and conversion.

use super::value::Value;
use crate::syntax::{Expr, ExprKind, Item, UnaryOp};
use std::fmt;
use std::str::FromStr;
use taffeta_ast::{DType, FileId};

/// Compile-time value, as spelled in the source: `32`, `0.5`, `True`, `"same"`, `(1, 2)`, `f32`, `None`.
#[derive(Clone, Debug, PartialEq)]
pub enum StaticValue {
    /// Integer.
    Int(i128),
    /// Float.
    Float(f64),
    /// `True` or `False`
    Bool(bool),
    /// String.
    Str(String),
    /// Element type.
    DType(DType),
    /// `None`
    None,
    /// Tuple.
    Tuple(Vec<StaticValue>),
    /// List.
    List(Vec<StaticValue>),
}

impl FromStr for StaticValue {
    type Err = String;

    /// Parses a literal of the language.
    fn from_str(text: &str) -> Result<StaticValue, String> {
        let wrong =
            || format!("expected a static value (`32`, `0.5`, `True`, `\"a\"`, `(1, 2)`, `f32`), found `{text}`");
        let (module, problems) = crate::parse::parse(&format!("v = {}\n", text.trim()), FileId(0));
        match module.items.as_slice() {
            [Item::Assign { value, .. }] if problems.is_empty() => read(value).ok_or_else(wrong),
            _ => Err(wrong()),
        }
    }
}

fn read(e: &Expr) -> Option<StaticValue> {
    let all = |items: &[Expr]| items.iter().map(read).collect::<Option<Vec<_>>>();
    Some(match &e.kind {
        ExprKind::Int(Some(i)) => StaticValue::Int(*i),
        ExprKind::Float(f) => StaticValue::Float(*f),
        ExprKind::Bool(b) => StaticValue::Bool(*b),
        ExprKind::Str(s) => StaticValue::Str(s.clone()),
        ExprKind::None => StaticValue::None,
        ExprKind::Tuple(items) => StaticValue::Tuple(all(items)?),
        ExprKind::List(items) => StaticValue::List(all(items)?),
        ExprKind::Unary(UnaryOp::Neg, inner) => match read(inner)? {
            StaticValue::Int(i) => StaticValue::Int(-i),
            StaticValue::Float(f) => StaticValue::Float(-f),
            _ => return None,
        },
        ExprKind::Name(n) => match n.as_str() {
            "true" => StaticValue::Bool(true),
            "false" => StaticValue::Bool(false),
            "inf" => StaticValue::Float(f64::INFINITY),
            "nan" => StaticValue::Float(f64::NAN),
            n => StaticValue::DType(DType::parse(n)?),
        },
        _ => return None,
    })
}

impl From<&StaticValue> for Value {
    fn from(v: &StaticValue) -> Value {
        match v {
            StaticValue::Int(i) => Value::Int(*i),
            StaticValue::Float(f) => Value::Float(*f),
            StaticValue::Bool(b) => Value::Bool(*b),
            StaticValue::Str(s) => Value::str(s.as_str()),
            StaticValue::DType(d) => Value::DType(*d),
            StaticValue::None => Value::None,
            StaticValue::Tuple(items) => Value::Tuple(items.iter().map(Value::from).collect()),
            StaticValue::List(items) => Value::List(items.iter().map(Value::from).collect()),
        }
    }
}

impl fmt::Display for StaticValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&show(&Value::from(self)).unwrap_or_default())
    }
}

/// Formats a static value as Python does (strings without quotes, as in f-strings); `None` if the value is not static.
pub(crate) fn show(v: &Value) -> Option<String> {
    let join = |items: &[Value]| -> Option<String> {
        let all: Option<Vec<String>> = items.iter().map(show_nested).collect();
        Some(all?.join(", "))
    };
    Some(match v {
        Value::Int(i) => i.to_string(),
        Value::Float(x) if x.is_nan() => "nan".into(),
        Value::Float(x) => format!("{x:?}"),
        Value::Bool(true) => "True".into(),
        Value::Bool(false) => "False".into(),
        Value::Str(s) => s.to_string(),
        Value::DType(d) => d.name().into(),
        Value::None => "None".into(),
        Value::Tuple(items) if items.len() == 1 => format!("({},)", join(items)?),
        Value::Tuple(items) => format!("({})", join(items)?),
        Value::List(items) => format!("[{}]", join(items)?),
        _ => return None,
    })
}

fn show_nested(v: &Value) -> Option<String> {
    match v {
        Value::Str(s) => Some(format!("'{s}'")),
        v => show(v),
    }
}
