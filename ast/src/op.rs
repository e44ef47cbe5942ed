//! Operators: rows in a table, not kinds of nodes. Adding one is adding a row here, its value in `interp/scalar.rs`,
//! its C in `codegen`, and its partial derivatives in `autodiff`.
//!
//! What they compute, wherever they are computed (the interpreter, the simplifier, C):
//!
//! - Integers: exactly, then wrapped to the type. `//`, `%` by zero and of the smallest integer by -1, `**` with a
//!   negative exponent and shifts by a negative count stop the program. Shifting by the width or more gives 0, or -1
//!   for a negative value shifted right. `sign` of an unsigned integer is 0 or 1.
//! - Floats: in their type, `f16` and `bf16` in `f32` and rounded after each operator. Functions are the C library's
//!   (`expf` for `f32`), NaN and infinities as there. `f64` and integers become `f16` or `bf16` with one rounding.
//! - `x % y` is NumPy's: `r = fmod(x, y)`; if `r` is 0 it gets the sign of `y`, else if the signs of `r` and `y`
//!   differ, `y` is added; NaN for `y` = 0. `x // y` goes with it: `q = (x - r) / y`, less 1 where `y` was added; 0
//!   with the sign of `x / y` if `q` is 0, else `floor(q)`, plus 1 if `q - floor(q) > 0.5`; `x / y` for `y` = 0.
//! - `min(x, y)` is `x if x < y or isnan(x) else y`, `max(x, y)` is `x if x > y or isnan(x) else y`: NaN wins, and of
//!   equal zeros the second one.
//! - `sign(x)` is 1, -1, 0 (without sign, for both zeros) or NaN. `round` is half to even. `rsqrt(x)` is `1 / sqrt(x)`.
//!   `sigmoid(x)` is `1 / (1 + exp(-x))`, which overflows to the right limit. `fma` rounds once. `-x` and `abs` change
//!   the sign bit alone. Comparisons with NaN are false, but for `!=`.

use crate::dtype::{DType, Kind};

/// How an operator is written in a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `-x`; the number is Python's precedence, higher binds tighter.
    Prefix(u8),
    /// `a + b`, with its precedence. `**` alone is right-associative.
    Infix(u8),
    /// `exp(x)`
    Call,
}

/// What an operator's operands may be. All operands have one type, but for `select`'s condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Domain {
    /// `bool` only.
    Bool,
    /// Integers only.
    Int,
    /// Floats only.
    Float,
    /// Integers and floats.
    Number,
    /// `bool` and integers.
    Bits,
    /// Every type.
    Any,
}

impl Domain {
    /// Whether operands of type `d` are in the domain.
    pub fn accepts(self, d: DType) -> bool {
        match (self, d.kind()) {
            (Domain::Any, _) => true,
            (Domain::Bool, k) => k == Kind::Bool,
            (Domain::Int, k) => k == Kind::Int,
            (Domain::Float, k) => k == Kind::Float,
            (Domain::Number, k) => k != Kind::Bool,
            (Domain::Bits, k) => k != Kind::Float,
        }
    }
}

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub struct OpInfo {
    /// As it is written in a program (`+`, `exp`), and in messages.
    pub name: &'static str,
    /// Number of operands.
    pub arity: usize,
    /// How it is written.
    pub form: Form,
    /// Types of its operands.
    pub domain: Domain,
    /// Whether the result is `bool` whatever the operands are.
    pub gives_bool: bool,
    /// Whether it can stop the program (division of integers, shifts by negative counts).
    pub may_fail_on_int: bool,
    /// Whether its value on floats is the same everywhere, since IEEE 754 rounds it correctly: it may be computed while
    /// compiling. (`exp`, `sin` and their like differ between libraries.)
    pub exact: bool,
    /// Roughly what it takes, in additions of floats.
    pub cost: u32,
}

macro_rules! ops {
    ($($variant:ident $name:literal $arity:literal $form:expr, $domain:ident $(, bool $b:literal)? $(, fails $f:literal)? $(, exact $e:literal)?
        $(, cost $c:literal)?;)*) => {
        /// An operator or intrinsic function on scalars.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[allow(missing_docs)] // the table's names are the documentation
        pub enum Op { $($variant),* }

        impl Op {
            /// All operators.
            pub const ALL: &'static [Op] = &[$(Op::$variant),*];

            /// The operator's row.
            pub fn info(self) -> OpInfo {
                match self {
                    $(Op::$variant => OpInfo {
                        name: $name,
                        arity: $arity,
                        form: $form,
                        domain: Domain::$domain,
                        gives_bool: false $(|| $b)?,
                        may_fail_on_int: false $(|| $f)?,
                        exact: false $(|| $e)?,
                        cost: *[1 $(, $c)?].last().expect("it has an element"),
                    }),*
                }
            }
        }
    };
}

ops! {
    // Python's precedences: or 1, and 2, not 3, comparison 4, | 5, ^ 6, & 7, shifts 8, + - 9, * / // % 10, unary 11, **
    // 12
    Or "or" 2 Form::Infix(1), Bool, bool true;
    And "and" 2 Form::Infix(2), Bool, bool true;
    Not "not" 1 Form::Prefix(3), Bool, bool true;
    Eq "==" 2 Form::Infix(4), Any, bool true, exact true;
    Ne "!=" 2 Form::Infix(4), Any, bool true, exact true;
    Lt "<" 2 Form::Infix(4), Number, bool true, exact true;
    Le "<=" 2 Form::Infix(4), Number, bool true, exact true;
    Gt ">" 2 Form::Infix(4), Number, bool true, exact true;
    Ge ">=" 2 Form::Infix(4), Number, bool true, exact true;
    BitOr "|" 2 Form::Infix(5), Bits;
    BitXor "^" 2 Form::Infix(6), Bits;
    BitAnd "&" 2 Form::Infix(7), Bits;
    Shl "<<" 2 Form::Infix(8), Int, fails true;
    Shr ">>" 2 Form::Infix(8), Int, fails true;
    Add "+" 2 Form::Infix(9), Number, exact true;
    Sub "-" 2 Form::Infix(9), Number, exact true;
    Mul "*" 2 Form::Infix(10), Number, exact true;
    Div "/" 2 Form::Infix(10), Float, exact true, cost 4;
    FloorDiv "//" 2 Form::Infix(10), Number, fails true, cost 6;
    Mod "%" 2 Form::Infix(10), Number, fails true, cost 6;
    Neg "-" 1 Form::Prefix(11), Number, exact true;
    BitNot "~" 1 Form::Prefix(11), Bits;
    Pow "**" 2 Form::Infix(12), Number, fails true, cost 16;
    Min "min" 2 Form::Call, Number, exact true;
    Max "max" 2 Form::Call, Number, exact true;
    Abs "abs" 1 Form::Call, Number, exact true;
    Sign "sign" 1 Form::Call, Number, exact true;
    Sqrt "sqrt" 1 Form::Call, Float, exact true, cost 4;
    Rsqrt "rsqrt" 1 Form::Call, Float, cost 4;
    Exp "exp" 1 Form::Call, Float, cost 8;
    Exp2 "exp2" 1 Form::Call, Float, cost 8;
    Expm1 "expm1" 1 Form::Call, Float, cost 12;
    Log "log" 1 Form::Call, Float, cost 8;
    Log2 "log2" 1 Form::Call, Float, cost 8;
    Log1p "log1p" 1 Form::Call, Float, cost 12;
    Sin "sin" 1 Form::Call, Float, cost 12;
    Cos "cos" 1 Form::Call, Float, cost 12;
    Tan "tan" 1 Form::Call, Float, cost 12;
    Asin "asin" 1 Form::Call, Float, cost 12;
    Acos "acos" 1 Form::Call, Float, cost 12;
    Atan "atan" 1 Form::Call, Float, cost 12;
    Atan2 "atan2" 2 Form::Call, Float, cost 16;
    Sinh "sinh" 1 Form::Call, Float, cost 16;
    Cosh "cosh" 1 Form::Call, Float, cost 16;
    Tanh "tanh" 1 Form::Call, Float, cost 8;
    Sigmoid "sigmoid" 1 Form::Call, Float, cost 8;
    Erf "erf" 1 Form::Call, Float, cost 16;
    Floor "floor" 1 Form::Call, Float, exact true;
    Ceil "ceil" 1 Form::Call, Float, exact true;
    Round "round" 1 Form::Call, Float, exact true;
    Trunc "trunc" 1 Form::Call, Float, exact true;
    IsNan "isnan" 1 Form::Call, Float, bool true, exact true;
    Fma "fma" 3 Form::Call, Float, exact true;
    // `select(c, a, b)` evaluates only the operand that is chosen; `a if c else b` is the same node.
    Select "select" 3 Form::Call, Any;
}

impl Op {
    /// The operator that is written as a call of that name (`exp`, `min`, `select`).
    pub fn from_call(name: &str) -> Option<Op> {
        Op::ALL.iter().copied().find(|op| op.info().form == Form::Call && op.info().name == name)
    }

    /// Type of the result where the operands (for `select`, the last two) have type `operand`.
    pub fn result(self, operand: DType) -> DType {
        if self.info().gives_bool { DType::Bool } else { operand }
    }

    /// Whether it is one of the six comparisons.
    pub fn is_comparison(self) -> bool {
        matches!(self, Op::Eq | Op::Ne | Op::Lt | Op::Le | Op::Gt | Op::Ge)
    }

    /// Whether operands after the first are evaluated only if they are needed.
    pub fn is_lazy(self) -> bool {
        matches!(self, Op::And | Op::Or | Op::Select)
    }
}

/// The operator of a [`crate::StmtKind::ReduceTo`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ReduceOp {
    /// `x += v`
    Add,
    /// `x *= v`
    Mul,
    /// `x = min(x, v)`
    Min,
    /// `x = max(x, v)`
    Max,
    /// `x &= v` and `x = x and v`, on `bool`. Unlike the operator `and`, it evaluates `v` in any case.
    And,
    /// `x |= v` and `x = x or v`, on `bool`. Unlike the operator `or`, it evaluates `v` in any case.
    Or,
    /// `x &= v`, on integers
    BitAnd,
    /// `x |= v`, on integers
    BitOr,
}

/// The algebra of a reduction operator, which legality and storage rely on. All of them are associative and commutative
/// (floats: up to rounding).
#[derive(Clone, Copy, Debug)]
pub struct ReduceInfo {
    /// The operator on scalars.
    pub op: Op,
    /// How the augmented assignment is written, if there is one.
    pub augmented: Option<&'static str>,
    /// Whether `v op v` is `v`.
    pub idempotent: bool,
}

impl ReduceOp {
    /// All reduction operators.
    pub const ALL: [ReduceOp; 8] = [
        ReduceOp::Add,
        ReduceOp::Mul,
        ReduceOp::Min,
        ReduceOp::Max,
        ReduceOp::And,
        ReduceOp::Or,
        ReduceOp::BitAnd,
        ReduceOp::BitOr,
    ];

    /// The operator's row.
    pub fn info(self) -> ReduceInfo {
        let row = |op, augmented, idempotent| ReduceInfo { op, augmented, idempotent };
        match self {
            ReduceOp::Add => row(Op::Add, Some("+="), false),
            ReduceOp::Mul => row(Op::Mul, Some("*="), false),
            ReduceOp::Min => row(Op::Min, None, true),
            ReduceOp::Max => row(Op::Max, None, true),
            ReduceOp::And => row(Op::And, Some("&="), true),
            ReduceOp::Or => row(Op::Or, Some("|="), true),
            ReduceOp::BitAnd => row(Op::BitAnd, Some("&="), true),
            ReduceOp::BitOr => row(Op::BitOr, Some("|="), true),
        }
    }

    /// `identity op v` is `v`. For integers `min` and `max` start from the ends of the type's range.
    pub fn identity(self, dtype: DType) -> crate::Literal {
        use crate::Literal;
        let range = dtype.int_range();
        match (self, range) {
            (ReduceOp::And, _) => Literal::Bool(true),
            (ReduceOp::Or, _) => Literal::Bool(false),
            (ReduceOp::Add, Some(_)) => Literal::Int(0),
            (ReduceOp::Add, None) => Literal::Float(0.0),
            (ReduceOp::Mul, Some(_)) => Literal::Int(1),
            (ReduceOp::Mul, None) => Literal::Float(1.0),
            (ReduceOp::Min, Some((_, hi))) => Literal::Int(hi),
            (ReduceOp::Max, Some((lo, _))) => Literal::Int(lo),
            (ReduceOp::Min, None) => Literal::Float(f64::INFINITY),
            (ReduceOp::Max, None) => Literal::Float(f64::NEG_INFINITY),
            (ReduceOp::BitAnd, Some((lo, hi))) => Literal::Int(if lo < 0 { -1 } else { hi }),
            (ReduceOp::BitAnd | ReduceOp::BitOr, _) => Literal::Int(0),
        }
    }

    /// `annihilator op v` is the annihilator for every `v`, where there is such a value.
    pub fn annihilator(self, dtype: DType) -> Option<crate::Literal> {
        use crate::Literal;
        match self {
            ReduceOp::Mul if !dtype.is_float() => Some(Literal::Int(0)),
            ReduceOp::And => Some(Literal::Bool(false)),
            ReduceOp::Or => Some(Literal::Bool(true)),
            ReduceOp::BitAnd => Some(Literal::Int(0)),
            ReduceOp::Min if !dtype.is_float() => Some(ReduceOp::Max.identity(dtype)),
            ReduceOp::Max if !dtype.is_float() => Some(ReduceOp::Min.identity(dtype)),
            _ => None,
        }
    }
}
