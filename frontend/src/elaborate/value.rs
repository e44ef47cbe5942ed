//! Values of expressions while compiling: static values, views of tensors, and values that are still expressions over
//! their indices.

use super::axis;
use super::func::FuncRef;
use super::grad::Gradient;
use super::missing::Missing;
use super::storage::Storage;
use std::sync::Arc;
use taffeta_ast::format::Format;
use taffeta_ast::{Access, DType, Expr, ExprKind, Literal, Op, Tensor};

/// Value at elaboration time.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    /// Static integer.
    Int(i128),
    /// Static float.
    Float(f64),
    /// Static `bool`.
    Bool(bool),
    /// String.
    Str(Arc<str>),
    /// Element type.
    DType(DType),
    /// `None`
    None,
    /// Tuple; its items may be of any kind.
    Tuple(Arc<[Value]>),
    /// List.
    List(Arc<[Value]>),
    /// `range(begin, end, step)`
    Range(Arc<[Value; 3]>),
    /// `ndrange(n, m)`: a range for each argument.
    NdRange(Arc<[Value]>),
    /// `reals`
    Reals,
    /// Function of the program or of the operator library.
    Function(FuncRef),
    /// Operator that is written as a call: `exp`.
    Operator(Op),
    /// Built-in function that is not an operator: `zeros`.
    Builtin(super::builtin::Builtin),
    /// Type of static values, for `isinstance`.
    Type(StaticType),
    /// Gradient: `grad(f, wrt=…)`, `vjp`, `jvp` and the other forms.
    Gradient(Arc<Gradient>),
    /// Tensor or part of one, by reference.
    Tensor(View),
    /// Value that is computed at its use, element by element.
    Lazy(Lazy),
    /// `empty(shape, dtype)`: a tensor without values.
    Empty(Vec<Expr>, DType),
    /// Level or format: `compressed`, `csr`.
    Storage(Storage),
    /// `offset(d)`, which is to be indexed; holds `d`.
    Offset(Lazy),
    /// `permit(j)`, an index that may be out of range; holds `j`.
    Permit(Lazy),
    /// Value that may be missing. No name and no tensor holds one.
    Missing(Box<Missing>),
    /// The schedule: parameter `s` of a schedule function.
    Schedule,
    /// Loop, statement or tensor that a method of the schedule returned.
    Handle(Handle),
}

/// Reference to an object of the scheduler.
#[derive(Clone, Debug)]
pub(crate) struct Handle {
    pub(crate) number: u64,
    /// Method that returned the handle.
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

/// Part of a tensor, by reference: the index of every dimension of the tensor, over the view's own axes (see [`axis`]).
#[derive(Clone, Debug)]
pub(crate) struct View {
    pub(crate) tensor: Arc<Tensor>,
    pub(crate) shape: Vec<Expr>,
    pub(crate) indices: Vec<Access>,
    /// Whether stores may go through the view.
    pub(crate) writable: bool,
    /// Whether an index tensor made the view: its elements may coincide, and passing it copies.
    pub(crate) gathered: bool,
    /// Whether the view is the only reference to an unnamed tensor: binding it needs no copy.
    pub(crate) owned: bool,
    /// Whether the type is unknown so far in this walk (see `declared`): a read gives a weak value.
    pub(crate) open: bool,
}

/// Elementwise value: its element as an expression over the axes.
#[derive(Clone, Debug)]
pub(crate) struct Lazy {
    pub(crate) shape: Vec<Expr>,
    pub(crate) expr: Expr,
    /// Whether the value consists of literals, sizes and iterators alone, or of names whose type is unknown so far in
    /// this walk.
    pub(crate) weak: bool,
}

impl View {
    /// Creates the view of a whole tensor.
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

    /// Returns whether the view is a whole tensor with its dimensions in order.
    pub(crate) fn is_whole(&self) -> bool {
        let ndim = self.tensor.ndim();
        self.shape.len() == ndim
            && self.shape == self.tensor.shape
            && self.indices.iter().enumerate().all(|(d, a)| *a == Access::from(axis::var(ndim, d)))
    }

    /// Returns the element of the view as an expression over the axes.
    pub(crate) fn load(&self) -> Expr {
        Expr::load(&self.tensor.symbol, self.indices.clone(), self.tensor.dtype)
    }
}

impl Lazy {
    /// Creates a scalar.
    pub(crate) fn scalar(expr: Expr, weak: bool) -> Lazy {
        Lazy { shape: Vec::new(), expr, weak }
    }

    /// Returns whether the value reads tensors.
    pub(crate) fn reads(&self) -> bool {
        fn any(e: &Expr) -> bool {
            matches!(e.kind(), ExprKind::Load(..)) || e.children().into_iter().any(any)
        }
        any(&self.expr)
    }
}

impl Value {
    /// Creates a string.
    pub(crate) fn str(s: impl Into<Arc<str>>) -> Value {
        Value::Str(s.into())
    }

    /// Creates a weak scalar: an expression of literals, sizes and iterators. Constants become static values.
    pub(crate) fn weak(expr: Expr) -> Value {
        match expr.as_literal() {
            Some(Literal::Int(i)) => Value::Int(i),
            Some(Literal::Bool(b)) => Value::Bool(b),
            Some(Literal::Float(f)) => Value::Float(f),
            None => Value::Lazy(Lazy::scalar(expr, true)),
        }
    }

    /// Returns the elementwise form of a tensor or a number.
    pub(crate) fn lazy(&self) -> Option<Lazy> {
        Some(match self {
            // The integer is kept as it is: its conversion to a type checks that it fits.
            Value::Int(i) => Lazy::scalar(Expr::raw(ExprKind::Const(Literal::Int(*i)), DType::I64), true),
            Value::Float(f) => Lazy::scalar(Expr::float(*f, DType::F64), true),
            Value::Bool(b) => Lazy::scalar(Expr::bool(*b), true),
            Value::Tensor(v) => Lazy { shape: v.shape.clone(), expr: v.load(), weak: v.open },
            Value::Lazy(l) => l.clone(),
            _ => return None,
        })
    }

    /// Returns the storage format: dense for computed values and for parts of tensors.
    pub(crate) fn format(&self) -> Format {
        match self {
            Value::Tensor(view) if view.is_whole() => view.tensor.format.clone(),
            v => Format::dense(v.shape().map_or(0, |shape| shape.len())),
        }
    }

    /// Returns whether the value is a tensor (a compile-time scalar is not).
    pub(crate) fn is_tensor(&self) -> bool {
        matches!(self, Value::Tensor(_) | Value::Lazy(_) | Value::Empty(..))
    }

    /// Returns whether the value is known at compile time.
    pub(crate) fn is_static(&self) -> bool {
        match self {
            Value::Tuple(items) | Value::List(items) => items.iter().all(Value::is_static),
            Value::Range(r) => r.iter().all(Value::is_static),
            Value::NdRange(items) => items.iter().all(Value::is_static),
            Value::Reals | Value::Permit(_) | Value::Missing(_) => false,
            _ => !self.is_tensor(),
        }
    }

    /// Returns whether the value is a scalar of literals, sizes and iterators alone.
    pub(crate) fn is_weak_scalar(&self) -> bool {
        match self {
            Value::Int(_) | Value::Float(_) | Value::Bool(_) => true,
            Value::Lazy(l) => l.weak && l.shape.is_empty() && !l.reads(),
            _ => false,
        }
    }

    /// Returns the shape of a tensor or a number.
    pub(crate) fn shape(&self) -> Option<Vec<Expr>> {
        match self {
            Value::Tensor(v) => Some(v.shape.clone()),
            Value::Lazy(l) => Some(l.shape.clone()),
            Value::Empty(shape, _) => Some(shape.clone()),
            Value::Int(_) | Value::Float(_) | Value::Bool(_) => Some(Vec::new()),
            _ => None,
        }
    }

    /// Returns the element type of a tensor or a number.
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

    /// Describes the kind of value for messages: "a string", "a tensor of 2 dimensions".
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
            Value::Offset(_) => "an offset without an index: `offset(d)[j]`".into(),
            Value::Permit(_) => "an index that may be out of range".into(),
            Value::Missing(_) => "a value that may be missing".into(),
            Value::Schedule => "the schedule".into(),
            Value::Handle(h) => format!("a handle returned by `{}`", h.method),
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

    /// Returns the items of a static sequence.
    pub(crate) fn items(&self) -> Option<&[Value]> {
        match self {
            Value::Tuple(v) | Value::List(v) => Some(v),
            _ => None,
        }
    }
}
