//! Values of the schedule language: arguments and results of primitives.

use crate::refusal::Refusal;
use taffeta_ast::{Expr, Span, StmtId, Symbol};

/// Reference of a schedule to a part of the program.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Handle {
    /// Loop or another statement.
    Stmt(StmtId),
    /// Tensor.
    Tensor(Symbol),
}

/// Index map such as `lambda i, j: (i + j, j)`: new indices, as integer expressions over the old ones and the program's
/// sizes.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexMap {
    /// Parameters, one for each old index.
    pub params: Vec<Symbol>,
    /// The new indices.
    pub results: Vec<Expr>,
}

/// Value of the schedule language.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `None`
    None,
    /// `True`, `False`
    Bool(bool),
    /// Integer.
    Int(i64),
    /// Float.
    Float(f64),
    /// String, for example a selector.
    Str(String),
    /// List or tuple.
    List(Vec<Value>),
    /// Handle returned by an earlier step.
    Handle(Handle),
    /// Function from indices to indices.
    Map(IndexMap),
}

impl Value {
    /// Describes the value for diagnostics.
    pub fn describe(&self) -> String {
        match self {
            Value::None => "None".into(),
            Value::Bool(b) => if *b { "True" } else { "False" }.into(),
            Value::Int(i) => format!("the integer {i}"),
            Value::Float(f) => format!("the float {f}"),
            Value::Str(s) => format!("the string \"{s}\""),
            Value::List(v) => format!("a list of length {}", v.len()),
            Value::Handle(Handle::Stmt(_)) => "a statement".into(),
            Value::Handle(Handle::Tensor(t)) => format!("the tensor `{t}`"),
            Value::Map(_) => "a function of indices".into(),
        }
    }
}

impl From<StmtId> for Value {
    fn from(id: StmtId) -> Value {
        Value::Handle(Handle::Stmt(id))
    }
}
impl From<&str> for Value {
    fn from(s: &str) -> Value {
        Value::Str(s.into())
    }
}
impl From<String> for Value {
    fn from(s: String) -> Value {
        Value::Str(s)
    }
}
impl From<i64> for Value {
    fn from(i: i64) -> Value {
        Value::Int(i)
    }
}
impl From<bool> for Value {
    fn from(b: bool) -> Value {
        Value::Bool(b)
    }
}
impl<T: Into<Value>> From<Vec<T>> for Value {
    fn from(v: Vec<T>) -> Value {
        Value::List(v.into_iter().map(Into::into).collect())
    }
}

/// Argument of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Arg {
    /// Keyword, if the argument was passed by keyword.
    pub name: Option<String>,
    /// Value of the argument.
    pub value: Value,
    /// Source location.
    pub span: Span,
}

impl<T: Into<Value>> From<T> for Arg {
    fn from(value: T) -> Arg {
        Arg { name: None, value: value.into(), span: Span::NONE }
    }
}

impl Arg {
    /// Creates a keyword argument.
    pub fn named(name: &str, value: impl Into<Value>) -> Arg {
        Arg { name: Some(name.into()), value: value.into(), span: Span::NONE }
    }
}

/// Arguments of one call, bound to the parameters of a primitive's signature.
pub(crate) struct Args<'a> {
    signature: &'static str,
    /// Parameters in order, each with its argument.
    bound: Vec<(&'static str, Option<&'a Arg>)>,
}

impl<'a> Args<'a> {
    /// Binds arguments to parameters. Refuses arguments that do not fit the signature.
    pub fn bind(signature: &'static str, params: &[&'static str], args: &'a [Arg]) -> Result<Args<'a>, Refusal> {
        let mut bound: Vec<(&'static str, Option<&'a Arg>)> = params.iter().map(|p| (*p, None)).collect();
        let wrong =
            |what: String, arg: &Arg| Err(Refusal::usage(what).at(arg.span).help(format!("write `{signature}`")));
        for (k, arg) in args.iter().enumerate() {
            let slot = match &arg.name {
                Some(n) => bound.iter_mut().find(|(p, _)| p == n),
                None => bound.get_mut(k),
            };
            match slot {
                None => {
                    return wrong(
                        match &arg.name {
                            Some(n) => format!("there is no parameter `{n}`"),
                            None => {
                                format!("found {} arguments, expected at most {}", args.len(), params.len())
                            }
                        },
                        arg,
                    );
                }
                Some((p, Some(_))) => return wrong(format!("`{p}` is given twice"), arg),
                Some((_, slot)) => *slot = Some(arg),
            }
        }
        Ok(Args { signature, bound })
    }

    /// Returns the argument for a parameter, or `None` if it is missing or has the value `None`.
    pub fn get(&self, name: &str) -> Option<&'a Arg> {
        let arg = self.bound.iter().find(|(p, _)| *p == name).and_then(|(_, a)| *a);
        arg.filter(|a| a.value != Value::None)
    }

    /// Returns a required argument.
    pub fn need(&self, name: &str) -> Result<&'a Arg, Refusal> {
        self.get(name)
            .ok_or_else(|| Refusal::usage(format!("`{name}` is missing")).help(format!("write `{}`", self.signature)))
    }

    /// Returns an integer argument, if given.
    pub fn int(&self, name: &str) -> Result<Option<i64>, Refusal> {
        match self.get(name).map(|a| (&a.value, a)) {
            None => Ok(None),
            Some((Value::Int(i), _)) => Ok(Some(*i)),
            Some((other, a)) => {
                Err(Refusal::usage(format!("expected an integer for `{name}`, found {}", other.describe())).at(a.span))
            }
        }
    }

    /// Returns an integer argument of at least 1, if given.
    pub fn positive(&self, name: &str) -> Result<Option<i64>, Refusal> {
        let value = self.int(name)?;
        match value {
            Some(v) if v < 1 => {
                let span = self.get(name).map_or(Span::NONE, |a| a.span);
                Err(Refusal::value(format!("expected at least 1 for `{name}`, found {v}")).at(span))
            }
            _ => Ok(value),
        }
    }

    /// Returns a Boolean argument, if given.
    pub fn flag(&self, name: &str) -> Result<Option<bool>, Refusal> {
        match self.get(name).map(|a| (&a.value, a)) {
            None => Ok(None),
            Some((Value::Bool(b), _)) => Ok(Some(*b)),
            Some((other, a)) => {
                Err(Refusal::usage(format!("expected True or False for `{name}`, found {}", other.describe()))
                    .at(a.span))
            }
        }
    }

    /// Returns a string argument, if given.
    pub fn str(&self, name: &str) -> Result<Option<&'a str>, Refusal> {
        match self.get(name).map(|a| (&a.value, a)) {
            None => Ok(None),
            Some((Value::Str(s), _)) => Ok(Some(s)),
            Some((other, a)) => {
                Err(Refusal::usage(format!("expected a string for `{name}`, found {}", other.describe())).at(a.span))
            }
        }
    }

    /// Returns the elements of a required list argument.
    pub fn list(&self, name: &str) -> Result<Vec<Arg>, Refusal> {
        let arg = self.need(name)?;
        match &arg.value {
            Value::List(v) => Ok(v.iter().map(|v| Arg { name: None, value: v.clone(), span: arg.span }).collect()),
            other => {
                Err(Refusal::usage(format!("expected a list for `{name}`, found {}", other.describe())).at(arg.span))
            }
        }
    }
}
