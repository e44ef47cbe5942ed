//! What an expression of the language evaluates to while compiling: static values, views of tensors, and values that
//! are still expressions over their indices.

use super::axis;
use super::func::FuncRef;
use super::grad::Gradient;
use super::missing::Missing;
use super::storage::Storage;
use std::sync::Arc;
use taffeta_ast::format::Format;
use taffeta_ast::{Access, DType, Expr, ExprKind, Literal, Op, Tensor};

/// A value at elaboration time.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    /// A static integer.
    Int(i128),
    /// A static float.
    Float(f64),
    /// A static `bool`.
    Bool(bool),
    /// A string.
    Str(Arc<str>),
    /// An element type.
    DType(DType),
    /// `None`
    None,
    /// A tuple; its items may be of any kind.
    Tuple(Arc<[Value]>),
    /// A list.
    List(Arc<[Value]>),
    /// `range(begin, end, step)`
    Range(Arc<[Value; 3]>),
    /// `ndrange(n, m)`: a range for each.
    NdRange(Arc<[Value]>),
    /// `reals`
    Reals,
    /// A function of the program or of the operator library.
    Function(FuncRef),
    /// An operator that is written as a call: `exp`.
    Operator(Op),
    /// A built-in function that is not an operator: `zeros`.
    Builtin(super::builtin::Builtin),
    /// A type of static values, for `isinstance`.
    Type(StaticType),
    /// `grad(f, wrt=…)` and its relatives.
    Gradient(Arc<Gradient>),
    /// A tensor or part of one, by reference.
    Tensor(View),
    /// A value that is computed where it is needed, element by element.
    Lazy(Lazy),
    /// `empty(shape, dtype)`: a tensor without values.
    Empty(Vec<Expr>, DType),
    /// A level or a format: `compressed`, `csr`.
    Storage(Storage),
    /// `offset(d)`, which is to be indexed: `d`.
    Offset(Lazy),
    /// `permit(j)`, an index that may be out of range: `j`.
    Permit(Lazy),
    /// A value that may be missing. No name and no tensor holds one.
    Missing(Box<Missing>),
    /// What a schedule function sees as `s`.
    Schedule,
    /// A loop, statement or tensor that a method of the schedule returned.
    Handle(Handle),
}

/// A thing of the scheduler's.
#[derive(Clone, Debug)]
pub(crate) struct Handle {
    pub(crate) number: u64,
    /// The method that returned it.
    pub(crate) method: Arc<str>,
}

/// `int`, `float`, `str`, `tuple`, `list` as arguments of `isinstance`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StaticType {
    Int,
    Float,
    Str,
    Tuple,
    List,
}

/// Part of a tensor, by reference: for every dimension of the tensor the index, over the view's own axes (see
/// [`axis`]).
#[derive(Clone, Debug)]
pub(crate) struct View {
    pub(crate) tensor: Arc<Tensor>,
    pub(crate) shape: Vec<Expr>,
    pub(crate) indices: Vec<Access>,
    /// Whether stores may go through it.
    pub(crate) writable: bool,
    /// Whether an index tensor made it: its elements may coincide, and passing it copies.
    pub(crate) gathered: bool,
    /// Whether this is the only way to reach a tensor without a name: binding it needs no copy.
    pub(crate) owned: bool,
    /// Whether its type is not known yet in this walk (see `declared`): reading it gives a weak value.
    pub(crate) open: bool,
}

/// An elementwise value: its element as an expression over the axes.
#[derive(Clone, Debug)]
pub(crate) struct Lazy {
    pub(crate) shape: Vec<Expr>,
    pub(crate) expr: Expr,
    /// Made of literals, sizes and iterators alone, or of names whose type is not known yet in this walk.
    pub(crate) weak: bool,
}

impl View {
    /// The whole of a tensor.
    pub(crate) fn whole(tensor: &Arc<Tensor>, writable: bool) -> View {
        let ndim = tensor.ndim();
        View {
            tensor: tensor.clone(),
            shape: tensor.shape.clone(),
            indices: (0..ndim).map(|d| Access::from(axis::var(ndim, d))).collect(),
            writable,
            gathered: false,
            owned: false,
            open: false,
        }
    }

    /// Whether this is a whole tensor with its dimensions in order.
    pub(crate) fn is_whole(&self) -> bool {
        let ndim = self.tensor.ndim();
        self.shape.len() == ndim
            && self.shape == self.tensor.shape
            && self.indices.iter().enumerate().all(|(d, a)| *a == Access::from(axis::var(ndim, d)))
    }

    /// Its element as an expression over the axes.
    pub(crate) fn load(&self) -> Expr {
        Expr::load(&self.tensor.symbol, self.indices.clone(), self.tensor.dtype)
    }
}

impl Lazy {
    /// A scalar.
    pub(crate) fn scalar(expr: Expr, weak: bool) -> Lazy {
        Lazy { shape: Vec::new(), expr, weak }
    }

    /// Whether it reads tensors.
    pub(crate) fn reads(&self) -> bool {
        fn any(e: &Expr) -> bool {
            matches!(e.kind(), ExprKind::Load(..)) || e.children().into_iter().any(any)
        }
        any(&self.expr)
    }
}

impl Value {
    /// A string.
    pub(crate) fn str(s: impl Into<Arc<str>>) -> Value {
        Value::Str(s.into())
    }

    /// A weak scalar: an expression of literals, sizes and iterators. Constants are static.
    pub(crate) fn weak(expr: Expr) -> Value {
        match expr.as_literal() {
            Some(Literal::Int(i)) => Value::Int(i),
            Some(Literal::Bool(b)) => Value::Bool(b),
            Some(Literal::Float(f)) => Value::Float(f),
            None => Value::Lazy(Lazy::scalar(expr, true)),
        }
    }

    /// The value element by element, if it is a tensor or a number.
    pub(crate) fn lazy(&self) -> Option<Lazy> {
        Some(match self {
            // As it is: whoever gives it a type checks that it fits.
            Value::Int(i) => Lazy::scalar(Expr::raw(ExprKind::Const(Literal::Int(*i)), DType::I64), true),
            Value::Float(f) => Lazy::scalar(Expr::float(*f, DType::F64), true),
            Value::Bool(b) => Lazy::scalar(Expr::bool(*b), true),
            Value::Tensor(v) => Lazy { shape: v.shape.clone(), expr: v.load(), weak: v.open },
            Value::Lazy(l) => l.clone(),
            _ => return None,
        })
    }

    /// How it is stored: computed values, and parts of tensors, densely.
    pub(crate) fn format(&self) -> Format {
        match self {
            Value::Tensor(view) if view.is_whole() => view.tensor.format.clone(),
            v => Format::dense(v.shape().map_or(0, |shape| shape.len())),
        }
    }

    /// Whether it is a tensor (a scalar that is known when compiling is none).
    pub(crate) fn is_tensor(&self) -> bool {
        matches!(self, Value::Tensor(_) | Value::Lazy(_) | Value::Empty(..))
    }

    /// Whether it is known when compiling.
    pub(crate) fn is_static(&self) -> bool {
        match self {
            Value::Tuple(items) | Value::List(items) => items.iter().all(Value::is_static),
            Value::Range(r) => r.iter().all(Value::is_static),
            Value::NdRange(items) => items.iter().all(Value::is_static),
            Value::Reals | Value::Permit(_) | Value::Missing(_) => false,
            _ => !self.is_tensor(),
        }
    }

    /// Whether it stands for a number of literals, sizes and iterators alone (scalars only).
    pub(crate) fn is_weak_scalar(&self) -> bool {
        match self {
            Value::Int(_) | Value::Float(_) | Value::Bool(_) => true,
            Value::Lazy(l) => l.weak && l.shape.is_empty() && !l.reads(),
            _ => false,
        }
    }

    /// The shape, if it is a tensor or a number.
    pub(crate) fn shape(&self) -> Option<Vec<Expr>> {
        match self {
            Value::Tensor(v) => Some(v.shape.clone()),
            Value::Lazy(l) => Some(l.shape.clone()),
            Value::Empty(shape, _) => Some(shape.clone()),
            Value::Int(_) | Value::Float(_) | Value::Bool(_) => Some(Vec::new()),
            _ => None,
        }
    }

    /// The element type, if it is a tensor or a number.
    pub(crate) fn dtype(&self) -> Option<DType> {
        match self {
            Value::Tensor(v) => Some(v.tensor.dtype),
            Value::Lazy(l) => Some(l.expr.dtype()),
            Value::Empty(_, d) => Some(*d),
            Value::Int(_) => Some(DType::I64),
            Value::Float(_) => Some(DType::F64),
            Value::Bool(_) => Some(DType::Bool),
            _ => None,
        }
    }

    /// What kind of thing it is, for messages: "a string", "a tensor of 2 dimensions".
    pub(crate) fn describe(&self) -> String {
        match self {
            Value::Int(_) => "an integer".into(),
            Value::Float(_) => "a float".into(),
            Value::Bool(_) => "a bool".into(),
            Value::Str(_) => "a string".into(),
            Value::DType(d) => format!("the type `{d}`"),
            Value::None => "`None`".into(),
            Value::Tuple(_) => "a tuple".into(),
            Value::List(_) => "a list".into(),
            Value::Range(_) | Value::NdRange(_) => "a range".into(),
            Value::Reals => "`reals`".into(),
            Value::Function(_) | Value::Operator(_) | Value::Builtin(_) | Value::Type(_) => "a function".into(),
            Value::Gradient(_) => "a gradient function".into(),
            Value::Storage(s) => s.describe(),
            Value::Offset(_) => "an offset, which is for indices: `offset(d)[j]`".into(),
            Value::Permit(_) => "an index that may be out of range".into(),
            Value::Missing(_) => "a value that may be missing".into(),
            Value::Schedule => "the schedule".into(),
            Value::Handle(h) => format!("a handle that `{}` returned", h.method),
            Value::Tensor(_) | Value::Lazy(_) | Value::Empty(..) => {
                let n = self.shape().map_or(0, |s| s.len());
                match n {
                    0 => "a scalar".into(),
                    1 => "a tensor of 1 dimension".into(),
                    n => format!("a tensor of {n} dimensions"),
                }
            }
        }
    }

    /// The items of a static sequence.
    pub(crate) fn items(&self) -> Option<&[Value]> {
        match self {
            Value::Tuple(v) | Value::List(v) => Some(v),
            _ => None,
        }
    }
}
