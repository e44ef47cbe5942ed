//! Operators: rows of a table, not kinds of nodes. A new function of `math.h` needs its row, with its implementation
//! and its name in C, and its partial derivative in `autodiff`; any other operator also needs its implementation in
//! `scalar.rs` and its C in `codegen`.
//!
//! Semantics, shared by the interpreter, the simplifier and C:
//!
//! - Integers: exact results, then wrapped to the type. `//` and `%` by zero, or of the smallest integer by -1, `**`
//!   with a negative exponent and shifts by a negative count stop the program. Shifting by the width or more gives 0,
//!   or -1 for a negative value shifted right. `sign` of an unsigned integer is 0 or 1.
//! - Floats: computed in their type, except that `f16` and `bf16` are computed in `f32` and rounded after each
//!   operator. Functions are the C library's (`expf` for `f32`), including NaN and infinities. `f64` and integers
//!   become `f16` or `bf16` with one rounding.
//! - `x % y` is NumPy's: `r = fmod(x, y)`; a zero `r` gets the sign of `y`; if the signs of `r` and `y` differ, `y` is
//!   added; NaN for `y` = 0. `x // y` matches it: `q = (x - r) / y`, less 1 where `y` was added; 0 with the sign of
//!   `x / y` if `q` is 0, else `floor(q)`, plus 1 if `q - floor(q) > 0.5`; `x / y` for `y` = 0.
//! - `min(x, y)` is `x if x < y or isnan(x) else y`, `max(x, y)` is `x if x > y or isnan(x) else y`: NaN wins, and of
//!   equal zeros the second one.
//! - `sign(x)` is 1, -1, 0 (positive zero, for both zeros) or NaN. `round` rounds half to even. `rsqrt(x)` is
//!   `1 / sqrt(x)`. `sigmoid(x)` is `1 / (1 + exp(-x))`, whose limit stays correct where `exp` overflows. `fma` rounds
//!   once. `-x` and `abs` change the sign bit alone. Comparisons with NaN are false, except `!=`.

use crate::dtype::{DType, Kind};
use crate::literal::Literal;

/// Syntactic form of an operator in a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `-x`; the number is Python's precedence, higher binds tighter.
    Prefix(u8),
    /// `a + b`, with its precedence. `**` alone is right-associative.
    Infix(u8),
    /// `exp(x)`
    Call,
}

/// Admissible operand types. All operands have one type, except for the condition of `select`.
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
    /// Returns whether operands of type `d` are in the domain.
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

/// Implementation of a function in both types in which floats are computed.
#[derive(Clone, Copy, Debug)]
pub enum Function {
    /// One operand.
    Unary(fn(f32) -> f32, fn(f64) -> f64),
    /// Two operands.
    Binary(fn(f32, f32) -> f32, fn(f64, f64) -> f64),
    /// Three operands.
    Ternary(fn(f32, f32, f32) -> f32, fn(f64, f64, f64) -> f64),
}

impl Function {
    /// Evaluates the function in `f32`, ignoring superfluous operands.
    pub fn in_f32(self, [a, b, c]: [f32; 3]) -> f32 {
        match self {
            Function::Unary(f, _) => f(a),
            Function::Binary(f, _) => f(a, b),
            Function::Ternary(f, _) => f(a, b, c),
        }
    }

    /// Evaluates the function in `f64`, ignoring superfluous operands.
    pub fn in_f64(self, [a, b, c]: [f64; 3]) -> f64 {
        match self {
            Function::Unary(_, f) => f(a),
            Function::Binary(_, f) => f(a, b),
            Function::Ternary(_, f) => f(a, b, c),
        }
    }

    /// Returns the number of operands.
    pub fn arity(self) -> usize {
        match self {
            Function::Unary(..) => 1,
            Function::Binary(..) => 2,
            Function::Ternary(..) => 3,
        }
    }
}

/// Vector versions of a function in glibc's libmvec.
#[derive(Clone, Copy, Debug)]
pub struct Libmvec {
    /// Minor version of glibc 2 that introduced the vector versions.
    pub since: u32,
    /// For each operand, the interval of values that the probe of compilers uses.
    pub probed: &'static [(f64, f64)],
}

/// Row of the table.
#[derive(Clone, Copy, Debug)]
pub struct OpInfo {
    /// Name in programs (`+`, `exp`) and in messages.
    pub name: &'static str,
    /// Number of operands.
    pub arity: usize,
    /// Syntactic form.
    pub form: Form,
    /// Types of the operands.
    pub domain: Domain,
    /// Whether the result is `bool` for every operand type.
    pub gives_bool: bool,
    /// Whether evaluation can stop the program (division of integers, shifts by negative counts).
    pub may_fail_on_int: bool,
    /// Whether the value on floats is portable, because IEEE 754 demands correct rounding: constants may be folded.
    /// (`exp`, `sin` and similar functions differ between libraries.)
    pub exact: bool,
    /// Whether the value on finite floats is finite.
    pub keeps_finite: bool,
    /// Rough cost in floating-point additions.
    pub cost: u32,
    /// Implementation on floats, if it is a function; `scalar.rs` implements the others.
    pub function: Option<Function>,
    /// Function of `math.h` on doubles (the version for floats adds an `f`); `codegen` has the C of the others.
    pub c_name: Option<&'static str>,
    /// Vector versions in libmvec.
    pub libmvec: Option<Libmvec>,
}

/// Returns the last element of an optional column, or the default.
const fn given<T: Copy>(default: T, row: &[T]) -> T {
    match row.last() {
        Some(v) => *v,
        None => default,
    }
}

macro_rules! ops {
    ($($variant:ident $name:literal $arity:literal $form:expr, $domain:ident $(, bool $b:literal)? $(, fails $f:literal)?
        $(, exact $e:literal)? $(, finite $k:literal)? $(, cost $c:literal)?
        $(, value $function:expr)? $(, c $c_name:literal)?
        $(, libmvec $since:literal $probed:expr)?;)*) => {
        /// Operator or intrinsic function on scalars.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[allow(missing_docs)] // the table's names are the documentation
        pub enum Op { $($variant),* }

        impl Op {
            /// All operators.
            pub const ALL: &'static [Op] = &[$(Op::$variant),*];

            /// Returns the operator's row.
            pub fn info(self) -> &'static OpInfo {
                use Function::{Binary, Ternary, Unary};
                const ROWS: &[OpInfo] = &[$(OpInfo {
                    name: $name,
                    arity: $arity,
                    form: $form,
                    domain: Domain::$domain,
                    gives_bool: false $(|| $b)?,
                    may_fail_on_int: false $(|| $f)?,
                    exact: false $(|| $e)?,
                    keeps_finite: false $(|| $k)?,
                    cost: given(1, &[$($c)?]),
                    function: given(None, &[$(Some($function))?]),
                    c_name: given(None, &[$(Some($c_name))?]),
                    libmvec: given(None, &[$(Some(Libmvec { since: $since, probed: $probed }))?]),
                }),*];
                &ROWS[self as usize]
            }
        }
    };
}

/// Values of both signs whose results stay in the range of `f32`.
const WIDE: &[(f64, f64)] = &[(-20.0, 19.0)];
const POSITIVE: &[(f64, f64)] = &[(1e-3, 90.0)];

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
    Neg "-" 1 Form::Prefix(11), Number, exact true, finite true;
    BitNot "~" 1 Form::Prefix(11), Bits;
    Pow "**" 2 Form::Infix(12), Number, fails true, cost 16,
        value Binary(f32::powf, f64::powf), c "pow", libmvec 22 &[(0.1, 9.0), (-20.0, 19.0)];
    Min "min" 2 Form::Call, Number, exact true, finite true;
    Max "max" 2 Form::Call, Number, exact true, finite true;
    Abs "abs" 1 Form::Call, Number, exact true, finite true, value Unary(f32::abs, f64::abs), c "fabs";
    Sign "sign" 1 Form::Call, Number, exact true, finite true;
    Sqrt "sqrt" 1 Form::Call, Float, exact true, cost 4, value Unary(f32::sqrt, f64::sqrt), c "sqrt";
    Rsqrt "rsqrt" 1 Form::Call, Float, cost 4, value Unary(|a| 1.0 / a.sqrt(), |a| 1.0 / a.sqrt());
    Exp "exp" 1 Form::Call, Float, cost 8, value Unary(f32::exp, f64::exp), c "exp", libmvec 22 WIDE;
    Exp2 "exp2" 1 Form::Call, Float, cost 8, value Unary(f32::exp2, f64::exp2), c "exp2", libmvec 35 WIDE;
    Expm1 "expm1" 1 Form::Call, Float, cost 12, value Unary(f32::exp_m1, f64::exp_m1), c "expm1", libmvec 35 WIDE;
    Log "log" 1 Form::Call, Float, cost 8, value Unary(f32::ln, f64::ln), c "log", libmvec 22 POSITIVE;
    Log2 "log2" 1 Form::Call, Float, cost 8, value Unary(f32::log2, f64::log2), c "log2", libmvec 35 POSITIVE;
    Log1p "log1p" 1 Form::Call, Float, cost 12, value Unary(f32::ln_1p, f64::ln_1p), c "log1p", libmvec 35 POSITIVE;
    Sin "sin" 1 Form::Call, Float, finite true, cost 12, value Unary(f32::sin, f64::sin), c "sin", libmvec 22 WIDE;
    Cos "cos" 1 Form::Call, Float, finite true, cost 12, value Unary(f32::cos, f64::cos), c "cos", libmvec 22 WIDE;
    Tan "tan" 1 Form::Call, Float, cost 12, value Unary(f32::tan, f64::tan), c "tan", libmvec 35 WIDE;
    Asin "asin" 1 Form::Call, Float, cost 12, value Unary(f32::asin, f64::asin), c "asin", libmvec 35 &[(-1.0, 1.0)];
    Acos "acos" 1 Form::Call, Float, cost 12, value Unary(f32::acos, f64::acos), c "acos", libmvec 35 &[(-1.0, 1.0)];
    Atan "atan" 1 Form::Call, Float, finite true, cost 12,
        value Unary(f32::atan, f64::atan), c "atan", libmvec 35 WIDE;
    Atan2 "atan2" 2 Form::Call, Float, finite true, cost 16,
        value Binary(f32::atan2, f64::atan2), c "atan2", libmvec 35 &[(-5.0, 4.0), (-5.0, 4.0)];
    Sinh "sinh" 1 Form::Call, Float, cost 16, value Unary(f32::sinh, f64::sinh), c "sinh", libmvec 35 WIDE;
    Cosh "cosh" 1 Form::Call, Float, cost 16, value Unary(f32::cosh, f64::cosh), c "cosh", libmvec 35 WIDE;
    Tanh "tanh" 1 Form::Call, Float, finite true, cost 8,
        value Unary(f32::tanh, f64::tanh), c "tanh", libmvec 35 WIDE;
    Sigmoid "sigmoid" 1 Form::Call, Float, finite true, cost 8,
        value Unary(|a| 1.0 / (1.0 + (-a).exp()), |a| 1.0 / (1.0 + (-a).exp()));
    Erf "erf" 1 Form::Call, Float, finite true, cost 16, value Unary(libm::erff, libm::erf), c "erf", libmvec 35 WIDE;
    Floor "floor" 1 Form::Call, Float, exact true, finite true, value Unary(f32::floor, f64::floor), c "floor";
    Ceil "ceil" 1 Form::Call, Float, exact true, finite true, value Unary(f32::ceil, f64::ceil), c "ceil";
    Round "round" 1 Form::Call, Float, exact true, finite true,
        value Unary(f32::round_ties_even, f64::round_ties_even), c "rint";
    Trunc "trunc" 1 Form::Call, Float, exact true, finite true, value Unary(f32::trunc, f64::trunc), c "trunc";
    IsNan "isnan" 1 Form::Call, Float, bool true, exact true;
    // Whether a tensor that is not dense stores the element that the operand loads. Structured lowering decides it.
    Stored "stored" 1 Form::Call, Any, bool true, exact true;
    // Identity that blocks derivatives. Elaboration drops it on operands that are not floats, or are weakly typed.
    StopGradient "stop_gradient" 1 Form::Call, Float, exact true, finite true, cost 0, value Unary(|a| a, |a| a);
    Fma "fma" 3 Form::Call, Float, exact true, value Ternary(f32::mul_add, f64::mul_add), c "fma";
    // `select(c, a, b)` evaluates only the chosen operand; `a if c else b` is the same node.
    Select "select" 3 Form::Call, Any, finite true;
}

impl Op {
    /// Returns the operator that is written as a call of that name (`exp`, `min`, `select`).
    pub fn from_call(name: &str) -> Option<Op> {
        Op::ALL.iter().copied().find(|op| op.info().form == Form::Call && op.info().name == name)
    }

    /// Yields the operators that are functions of numbers; `stored` asks about a tensor.
    pub fn functions() -> impl Iterator<Item = Op> + Clone {
        Op::ALL.iter().copied().filter(|op| *op != Op::Stored)
    }

    /// Returns the type of the result, where the operands (for `select`, the last two) have type `operand`.
    pub fn result(self, operand: DType) -> DType {
        if self.info().gives_bool { DType::Bool } else { operand }
    }

    /// Returns whether this is one of the six comparisons.
    pub fn is_comparison(self) -> bool {
        matches!(self, Op::Eq | Op::Ne | Op::Lt | Op::Le | Op::Gt | Op::Ge)
    }

    /// Returns whether an integer division, shift or power by `by` cannot stop the program.
    pub(crate) fn is_safe_by(self, by: i64) -> bool {
        match self {
            // -1 is excluded: INT_MIN // -1 overflows.
            Op::FloorDiv | Op::Mod => !(-1..=0).contains(&by),
            _ => by >= 0,
        }
    }

    /// Returns whether operands after the first are evaluated only if needed.
    pub fn is_lazy(self) -> bool {
        matches!(self, Op::And | Op::Or | Op::Select)
    }
}

/// Operator of a [`crate::stmt::StmtKind::ReduceTo`].
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
    /// `x &= v` and `x = x and v`, on `bool`. Unlike the operator `and`, this always evaluates `v`.
    And,
    /// `x |= v` and `x = x or v`, on `bool`. Unlike the operator `or`, this always evaluates `v`.
    Or,
    /// `x &= v`, on integers
    BitAnd,
    /// `x |= v`, on integers
    BitOr,
}

/// Algebra of a reduction operator, on which legality and storage rely. All reductions are associative and commutative
/// (floats: up to rounding).
#[derive(Clone, Copy, Debug)]
pub struct ReduceInfo {
    /// Operator on scalars.
    pub op: Op,
    /// Augmented assignment, if there is one.
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

    /// Returns the operator's row.
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

    /// Returns the identity: `identity op v` is `v`. Integer `min` and `max` start from the ends of the type's range.
    pub fn identity(self, dtype: DType) -> crate::literal::Literal {
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

    /// Returns the annihilator, where one is known: `annihilator op v` is the annihilator for every `v`.
    pub fn annihilator(self, dtype: DType) -> Option<crate::literal::Literal> {
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
