//! Expressions: immutable typed scalars, made by smart constructors, with a cached structural hash.
//!
//! The constructors keep integer index arithmetic in a light normal form (constants folded and on the right, `x + 0`,
//! `x * 1` and double casts removed), so that printing a tree and parsing it again gives the same tree, and structural
//! equality is useful. They never drop an operand that could stop the program, and leave floats as written. Rewrites
//! that need facts about the program belong to the simplifier (`taffeta-analysis`).

mod normal;

use crate::dtype::{DType, Kind};
pub use crate::literal::Literal;
use crate::literal::int_to_float;
pub use crate::literal::{round_to, wrap_to};
use crate::op::Op;
use crate::symbol::Symbol;
use rustc_hash::FxHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Access protocol of a level for one index (language.md section 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// Choice of lowering.
    Default,
    /// `walk(j)`
    Walk,
    /// `gallop(j)`
    Gallop,
    /// `follow(j)`, `locate(j)`: random access.
    Locate,
}

/// Subscript of an access: the index, with its protocol.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Access {
    /// Index, of type i64.
    pub index: Expr,
    /// Access protocol of the level.
    pub protocol: Protocol,
}

impl From<Expr> for Access {
    fn from(index: Expr) -> Access {
        Access { index, protocol: Protocol::Default }
    }
}

/// Measure over the reals (language.md section 8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Measure {
    /// `d(x)`
    Lebesgue,
    /// `count(x)`
    Counting,
}

/// Kinds of expression.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ExprKind {
    /// Constant.
    Const(Literal),
    /// Iterator or size (i64; an iterator over the reals is f64).
    Var(Symbol),
    /// Tensor element: one access per dimension, none for a scalar.
    Load(Symbol, Vec<Access>),
    /// Operator on operands of one type (`select` has a `bool` condition first).
    Apply(Op, Vec<Expr>),
    /// Conversion to the type of the expression. Float to integer truncates, and stops the program for NaN and values
    /// out of range; integer to a narrower integer wraps; conversion to `bool` is `!= 0`.
    Cast(Expr),
    /// Measure of an iterator over the reals.
    Measure(Measure, Symbol),
}

/// Shared, immutable scalar expression.
#[derive(Clone)]
pub struct Expr(Arc<ExprNode>);

struct ExprNode {
    kind: ExprKind,
    dtype: DType,
    hash: u64,
}

impl PartialEq for Expr {
    fn eq(&self, other: &Expr) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
            || (self.0.hash == other.0.hash && self.0.dtype == other.0.dtype && self.0.kind == other.0.kind)
    }
}
impl Eq for Expr {}
impl Hash for Expr {
    fn hash<H: Hasher>(&self, h: &mut H) {
        h.write_u64(self.0.hash);
    }
}
impl std::fmt::Debug for Expr {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}:{}", self.0.kind, self.0.dtype)
    }
}

impl Expr {
    /// Creates a node as given, without normalisation: for rebuilding, tests and the constructors below.
    pub fn raw(kind: ExprKind, dtype: DType) -> Expr {
        let mut h = FxHasher::default();
        kind.hash(&mut h);
        dtype.hash(&mut h);
        Expr(Arc::new(ExprNode { kind, dtype, hash: h.finish() }))
    }

    /// Returns the kind of the node, with its operands.
    pub fn kind(&self) -> &ExprKind {
        &self.0.kind
    }

    /// Returns the element type.
    pub fn dtype(&self) -> DType {
        self.0.dtype
    }

    /// Returns an identity of the node for cheap memoisation; valid while the expression lives.
    pub fn address(&self) -> usize {
        Arc::as_ptr(&self.0) as usize
    }

    /// Creates an i64 constant.
    pub fn int(v: i64) -> Expr {
        Expr::literal(Literal::Int(i128::from(v)), DType::I64)
    }

    /// Creates a `bool` constant.
    pub fn bool(v: bool) -> Expr {
        Expr::literal(Literal::Bool(v), DType::Bool)
    }

    /// Creates a float constant, rounded to `dtype`.
    pub fn float(v: f64, dtype: DType) -> Expr {
        Expr::literal(Literal::Float(v), dtype)
    }

    /// Creates a constant of type `dtype`, converting a value of another kind (an integer becomes a float and so on).
    ///
    /// Callers must not give a float with a fractional part for an integer type: it is truncated.
    pub fn literal(v: Literal, dtype: DType) -> Expr {
        let v = match (v, dtype.kind()) {
            (Literal::Bool(_), Kind::Bool) => v,
            (Literal::Bool(b), Kind::Int) => Literal::Int(i128::from(b)),
            (Literal::Bool(b), Kind::Float) => Literal::Float(f64::from(u8::from(b))),
            (Literal::Int(i), Kind::Bool) => Literal::Bool(i != 0),
            (Literal::Int(i), Kind::Int) => Literal::Int(wrap_to(i, dtype)),
            (Literal::Int(i), Kind::Float) => Literal::Float(int_to_float(i, dtype)),
            (Literal::Float(f), Kind::Bool) => Literal::Bool(f != 0.0),
            (Literal::Float(f), Kind::Int) => Literal::Int(wrap_to(f as i128, dtype)),
            (Literal::Float(f), Kind::Float) => Literal::Float(round_to(f, dtype)),
        };
        Expr::raw(ExprKind::Const(v), dtype)
    }

    /// Creates a reference to an integer iterator or a size.
    pub fn var(symbol: &Symbol) -> Expr {
        Expr::raw(ExprKind::Var(symbol.clone()), DType::I64)
    }

    /// Creates the load of a tensor element of type `dtype`.
    pub fn load(tensor: &Symbol, indices: Vec<Access>, dtype: DType) -> Expr {
        Expr::raw(ExprKind::Load(tensor.clone(), indices), dtype)
    }

    /// Converts to `dtype`; drops identity conversions and folds conversions of constants that cannot fail.
    pub fn cast(self, dtype: DType) -> Expr {
        if self.dtype() == dtype {
            return self;
        }
        if let ExprKind::Const(v) = self.kind() {
            let may_fail = self.dtype().is_float() && dtype.is_int();
            if !may_fail {
                return Expr::literal(*v, dtype);
            }
        }
        Expr::raw(ExprKind::Cast(self), dtype)
    }

    /// Applies an operator to operands of one type (for `select`, the last two), in normal form.
    pub fn apply(op: Op, args: Vec<Expr>) -> Expr {
        debug_assert_eq!(op.info().arity, args.len(), "{op:?}");
        normal::apply(op, args)
    }

    /// Returns the value of a constant.
    pub fn as_literal(&self) -> Option<Literal> {
        match self.kind() {
            ExprKind::Const(v) => Some(*v),
            _ => None,
        }
    }

    /// Returns the value of an integer constant that fits i64.
    pub fn as_int(&self) -> Option<i64> {
        match self.as_literal() {
            Some(Literal::Int(i)) => i64::try_from(i).ok(),
            _ => None,
        }
    }

    /// Returns the value of a `bool` constant.
    pub fn as_bool(&self) -> Option<bool> {
        match self.as_literal() {
            Some(Literal::Bool(b)) => Some(b),
            _ => None,
        }
    }

    /// Returns whether evaluation can stop the program: an element access (the index may be out of range), integer
    /// division, a cast from float to integer.
    pub fn may_fail(&self) -> bool {
        self.may_fail_itself()
            || !matches!(self.kind(), ExprKind::Load(..)) && self.children().into_iter().any(Expr::may_fail)
    }

    /// Returns whether evaluating the node can stop the program where its operands have values.
    pub fn may_fail_itself(&self) -> bool {
        match self.kind() {
            ExprKind::Load(_, indices) => !indices.is_empty(),
            ExprKind::Apply(op, args) => {
                op.info().may_fail_on_int && self.dtype().is_int() && !normal::safe_divisor(*op, args)
            }
            ExprKind::Cast(e) => e.dtype().is_float() && self.dtype().is_int(),
            ExprKind::Const(_) | ExprKind::Var(_) | ExprKind::Measure(..) => false,
        }
    }

    /// Splits a condition into its conjuncts, in order; any other expression is its own only conjunct.
    pub fn conjuncts(&self) -> Vec<Expr> {
        match self.kind() {
            ExprKind::Apply(Op::And, both) => both.iter().flat_map(Expr::conjuncts).collect(),
            _ => vec![self.clone()],
        }
    }

    /// Returns whether the value depends on iterators, sizes and constants alone, and evaluation cannot stop the
    /// program: the iteration determines the value.
    pub fn is_of_indices(&self) -> bool {
        let reads = self.any(&mut |e| matches!(e.kind(), ExprKind::Load(..)));
        !reads && !self.may_fail()
    }

    /// Returns the operands in order of evaluation (indices of an access included).
    pub fn children(&self) -> Vec<&Expr> {
        match self.kind() {
            ExprKind::Const(_) | ExprKind::Var(_) | ExprKind::Measure(..) => Vec::new(),
            ExprKind::Cast(e) => vec![e],
            ExprKind::Apply(_, args) => args.iter().collect(),
            ExprKind::Load(_, indices) => indices.iter().map(|a| &a.index).collect(),
        }
    }

    /// Rebuilds the node with `f` applied to every operand, in normal form; returns the same pointer if nothing
    /// changed.
    pub fn map_children(&self, f: &mut dyn FnMut(&Expr) -> Expr) -> Expr {
        let new = match self.kind() {
            ExprKind::Const(_) | ExprKind::Var(_) | ExprKind::Measure(..) => return self.clone(),
            ExprKind::Cast(e) => f(e).cast(self.dtype()),
            ExprKind::Apply(op, args) => {
                let new: Vec<Expr> = args.iter().map(&mut *f).collect();
                if new.iter().zip(args).all(|(a, b)| Arc::ptr_eq(&a.0, &b.0)) {
                    return self.clone();
                }
                Expr::apply(*op, new)
            }
            ExprKind::Load(t, indices) => {
                let indices = indices.iter().map(|a| a.map(f)).collect();
                Expr::load(t, indices, self.dtype())
            }
        };
        if new == *self { self.clone() } else { new }
    }
}

impl Access {
    /// Applies `f` to the index.
    pub fn map(&self, f: &mut dyn FnMut(&Expr) -> Expr) -> Access {
        Access { index: f(&self.index), protocol: self.protocol }
    }
}

macro_rules! shorthand {
    ($($(#[$doc:meta])* $name:ident $op:ident;)*) => {
        impl Expr {
            $($(#[$doc])* pub fn $name(&self, other: &Expr) -> Expr {
                Expr::apply(Op::$op, vec![self.clone(), other.clone()])
            })*
        }
    };
}

shorthand! {
    /// Builds `self + other`.
    plus Add;
    /// Builds `self - other`.
    minus Sub;
    /// Builds `self * other`.
    times Mul;
    /// Builds `self // other`.
    floor_div FloorDiv;
    /// Builds `self % other`.
    modulo Mod;
    /// Builds `min(self, other)`.
    min_with Min;
    /// Builds `max(self, other)`.
    max_with Max;
    /// Builds `self == other`.
    equals Eq;
    /// Builds `self < other`.
    less Lt;
    /// Builds `self <= other`.
    less_eq Le;
    /// Builds `self and other`.
    and And;
    /// Builds `self or other`.
    or Or;
}

impl Expr {
    /// Builds `not self`.
    pub fn negate(&self) -> Expr {
        Expr::apply(Op::Not, vec![self.clone()])
    }

    /// Builds `a if self else b`.
    pub fn select(&self, a: &Expr, b: &Expr) -> Expr {
        Expr::apply(Op::Select, vec![self.clone(), a.clone(), b.clone()])
    }
}
