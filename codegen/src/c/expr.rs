//! Expressions as C text, with as few parentheses as C's precedences need.

use super::emitter::{Emitter, Storage};
use super::half::Conversion;
use super::types;
use taffeta_ast::expr::{Access, Literal};
use taffeta_ast::{DType, Expr, ExprKind, Kind, Op, Symbol};

/// C's operator precedences; higher binds tighter.
pub(super) mod prec {
    pub const TERNARY: u8 = 3;
    pub const OR: u8 = 4;
    pub const AND: u8 = 5;
    pub const BIT_OR: u8 = 6;
    pub const BIT_XOR: u8 = 7;
    pub const BIT_AND: u8 = 8;
    pub const EQUAL: u8 = 9;
    pub const LESS: u8 = 10;
    pub const SHIFT: u8 = 11;
    pub const SUM: u8 = 12;
    pub const PRODUCT: u8 = 13;
    pub const UNARY: u8 = 14;
    pub const PRIMARY: u8 = 16;
}

/// C text with the precedence of its outermost operator.
#[derive(Clone, Debug)]
pub(super) struct Text {
    pub text: String,
    pub prec: u8,
}

impl Text {
    pub fn new(text: impl Into<String>, prec: u8) -> Text {
        Text { text: text.into(), prec }
    }

    /// Returns the text as an operand of at least the precedence `prec`, in parentheses if necessary.
    pub fn at(&self, prec: u8) -> String {
        if self.prec < prec { format!("({})", self.text) } else { self.text.clone() }
    }
}

impl Emitter<'_> {
    /// Prints an expression for a context that allows any operator but the comma.
    pub fn expr(&mut self, e: &Expr) -> String {
        self.text(e).text
    }

    /// Prints an expression, with the precedence by which operators around it decide on parentheses.
    pub fn text(&mut self, e: &Expr) -> Text {
        match e.kind() {
            ExprKind::Const(v) => constant(types::literal(*v, e.dtype(), false)),
            ExprKind::Var(s) => Text::new(self.names.get(s), prec::PRIMARY),
            ExprKind::Load(t, indices) => self.load(t, indices, e.dtype()),
            ExprKind::Cast(inner) => self.cast(inner, e.dtype()),
            ExprKind::Apply(op, args) => self.apply(*op, args, e.dtype()),
            ExprKind::Measure(..) => unreachable!("Plain: a measure over the reals"),
        }
    }

    /// Prints an element as an lvalue.
    pub fn element(&mut self, tensor: &Symbol, indices: &[Access]) -> Text {
        let name = self.names.get(tensor);
        match (self.place(tensor), indices) {
            (Storage::Variable, _) => Text::new(name, prec::PRIMARY),
            (Storage::Pointer, _) => Text::new(format!("*{name}"), prec::UNARY),
            (Storage::Array, [a]) => Text::new(format!("{name}[{}]", self.expr(&a.index)), prec::PRIMARY),
            (Storage::Array, other) => unreachable!("Flat, Dimensions: {} indices of `{tensor}`", other.len()),
        }
    }

    fn load(&mut self, tensor: &Symbol, indices: &[Access], dtype: DType) -> Text {
        let element = self.element(tensor, indices);
        if types::is_narrow_float(dtype) {
            let load = self.half(Conversion::Load, dtype);
            return Text::new(format!("{load}({})", element.text), prec::PRIMARY);
        }
        element
    }

    /// Returns the function for a conversion of 16-bit floats.
    pub fn half(&mut self, what: Conversion, dtype: DType) -> String {
        self.helpers.half_conversion(what, dtype, self.carried)
    }

    /// Prints a value in its storage type.
    pub fn stored(&mut self, value: &Expr) -> String {
        let dtype = value.dtype();
        if !types::is_narrow_float(dtype) {
            return self.expr(value);
        }
        let text = match value.kind() {
            // A loaded element is in storage form already.
            ExprKind::Load(t, indices) => return self.element(t, indices).text,
            // The store rounds, so the operation need not.
            ExprKind::Apply(op, args) if rounds(*op) => self.exact(*op, args, dtype).text,
            ExprKind::Const(_) | ExprKind::Var(_) | ExprKind::Apply(..) | ExprKind::Cast(_) | ExprKind::Measure(..) => {
                self.expr(value)
            }
        };
        format!("{}({text})", self.half(Conversion::Store, dtype))
    }

    fn cast(&mut self, e: &Expr, to: DType) -> Text {
        let from = e.dtype();
        if to == DType::Bool {
            return Text::new(format!("{} != 0", self.text(e).at(prec::EQUAL + 1)), prec::EQUAL);
        }
        if types::is_narrow_float(to) {
            // Via double, as in the interpreter; a float is rounded directly.
            let (what, text) = match from.kind() {
                Kind::Float if from == DType::F64 => (Conversion::RoundF64, self.expr(e)),
                Kind::Float => (Conversion::Round, self.expr(e)),
                Kind::Int | Kind::Bool => (Conversion::RoundF64, format!("(double){}", self.text(e).at(prec::UNARY))),
            };
            let helper = self.half(what, to);
            return Text::new(format!("{helper}({text})"), prec::PRIMARY);
        }
        if types::is_narrow_float(from) && to == DType::F32 {
            return self.text(e);
        }
        Text::new(format!("({}){}", types::value(to), self.text(e).at(prec::UNARY)), prec::UNARY)
    }

    fn apply(&mut self, op: Op, args: &[Expr], dtype: DType) -> Text {
        let text = self.exact(op, args, dtype);
        if types::is_narrow_float(dtype) && rounds(op) {
            let round = self.half(Conversion::Round, dtype);
            return Text::new(format!("{round}({})", text.text), prec::PRIMARY);
        }
        text
    }

    /// Returns the function for e^x: in vectorised loops in f32 our own, since libmvec's falls back to slow scalar code
    /// if any lane is out of range.
    fn exponential(&mut self, dtype: DType) -> String {
        if self.vectorised && dtype == DType::F32 {
            self.helpers.exponential()
        } else {
            self.helpers.math(Op::Exp, dtype)
        }
    }

    /// Prints an operator, in `float` and not yet rounded if the type is narrower.
    fn exact(&mut self, op: Op, args: &[Expr], dtype: DType) -> Text {
        let operand = args.last().map_or(dtype, Expr::dtype);
        if op == Op::Select {
            return self.select(args);
        }
        match operand.kind() {
            Kind::Bool => self.bool_operator(op, args),
            Kind::Int => self.int_operator(op, args, operand),
            Kind::Float => self.float_operator(op, args, operand),
        }
    }

    fn select(&mut self, args: &[Expr]) -> Text {
        let cond = self.text(&args[0]).at(prec::OR);
        let mut arm = |e: &Expr| match e.as_literal() {
            // Between two constants there is no operand to determine the width.
            Some(v) => constant(types::literal(v, e.dtype(), true)).at(prec::TERNARY + 1),
            None => self.text(e).at(prec::TERNARY + 1),
        };
        let (a, b) = (arm(&args[1]), arm(&args[2]));
        Text::new(format!("{cond} ? {a} : {b}"), prec::TERNARY)
    }

    fn infix(&mut self, args: &[Expr], symbol: &str, level: u8) -> Text {
        let (a, b) = (self.text(&args[0]), self.text(&args[1]));
        let (left, right) = match level {
            // Few readers know C's precedences of `&`, `^`, `|` and shifts, so operands are in parentheses.
            prec::BIT_OR..=prec::BIT_AND | prec::SHIFT => (a.at(prec::UNARY), b.at(prec::UNARY)),
            prec::EQUAL | prec::LESS => (a.at(prec::SUM), b.at(prec::SUM)),
            prec::OR => (a.at(if a.prec == prec::OR { prec::OR } else { prec::BIT_OR }), b.at(prec::BIT_OR)),
            _ => (a.at(level), b.at(level + 1)),
        };
        Text::new(format!("{left} {symbol} {right}"), level)
    }

    fn prefix(&mut self, e: &Expr, symbol: &str) -> Text {
        let operand = self.text(e);
        let inner = operand.at(prec::UNARY);
        let inner = if inner.starts_with(symbol) { format!("({inner})") } else { inner };
        Text::new(format!("{symbol}{inner}"), prec::UNARY)
    }

    fn helper(&mut self, what: &str, dtype: DType, args: &[Expr]) -> Text {
        let name = self.helpers.operator(what, dtype);
        self.call(&name, args)
    }

    fn call(&mut self, name: &str, args: &[Expr]) -> Text {
        let args: Vec<String> = args.iter().map(|a| self.expr(a)).collect();
        Text::new(format!("{name}({})", args.join(", ")), prec::PRIMARY)
    }

    fn bool_operator(&mut self, op: Op, args: &[Expr]) -> Text {
        match op {
            // Vectorised loops need code without branches, and compilers convert few of the short-circuit operators.
            Op::And if self.vectorised && is_free(&args[1]) => self.infix(args, "&", prec::BIT_AND),
            Op::Or if self.vectorised && is_free(&args[1]) => self.infix(args, "|", prec::BIT_OR),
            Op::And => self.infix(args, "&&", prec::AND),
            Op::Or => self.infix(args, "||", prec::OR),
            Op::BitAnd => self.infix(args, "&", prec::BIT_AND),
            Op::BitOr => self.infix(args, "|", prec::BIT_OR),
            Op::BitXor => self.infix(args, "^", prec::BIT_XOR),
            Op::Not | Op::BitNot => self.prefix(&args[0], "!"),
            Op::Eq => self.infix(args, "==", prec::EQUAL),
            Op::Ne => self.infix(args, "!=", prec::EQUAL),
            _ => not_in_domain(op, DType::Bool),
        }
    }

    fn int_operator(&mut self, op: Op, args: &[Expr], dtype: DType) -> Text {
        let signed = dtype.is_signed_int();
        let text = match op {
            Op::Add => self.infix(args, "+", prec::SUM),
            Op::Sub => self.infix(args, "-", prec::SUM),
            Op::Mul => self.infix(args, "*", prec::PRODUCT),
            Op::BitAnd => self.infix(args, "&", prec::BIT_AND),
            Op::BitOr => self.infix(args, "|", prec::BIT_OR),
            Op::BitXor => self.infix(args, "^", prec::BIT_XOR),
            Op::Neg => self.prefix(&args[0], "-"),
            Op::BitNot => self.prefix(&args[0], "~"),
            // An arithmetic right shift rounds down in every compiler that takes this code; masking gives the matching
            // remainder.
            Op::FloorDiv if signed && !self.is_plain_division(args) && power_of_two(&args[1]).is_some() => {
                let count = Expr::int(i64::from(power_of_two(&args[1]).unwrap_or(0)));
                self.infix(&[args[0].clone(), count], ">>", prec::SHIFT)
            }
            Op::Mod if signed && !self.is_plain_division(args) && power_of_two(&args[1]).is_some() => {
                let mask = Expr::int(args[1].as_int().unwrap_or(1) - 1);
                self.infix(&[args[0].clone(), mask.cast(dtype)], "&", prec::BIT_AND)
            }
            Op::FloorDiv if signed && !self.is_plain_division(args) => return self.helper("floordiv", dtype, args),
            Op::Mod if signed && !self.is_plain_division(args) => return self.helper("mod", dtype, args),
            Op::FloorDiv => self.infix(args, "/", prec::PRODUCT),
            Op::Mod => self.infix(args, "%", prec::PRODUCT),
            Op::Shl | Op::Shr
                if self.ranges.is_below(&args[1], dtype.size() as i64 * 8) && args[0].as_literal().is_none() =>
            {
                self.infix(args, if op == Op::Shl { "<<" } else { ">>" }, prec::SHIFT)
            }
            Op::Shl => return self.helper("shl", dtype, args),
            Op::Shr => return self.helper("shr", dtype, args),
            Op::Pow => return self.helper("pow", dtype, args),
            Op::Min => return self.helper("min", dtype, args),
            Op::Max => return self.helper("max", dtype, args),
            Op::Abs if signed => return self.helper("abs", dtype, args),
            Op::Abs => return self.text(&args[0]),
            Op::Sign => return self.helper("sign", dtype, args),
            Op::Eq => return self.infix(args, "==", prec::EQUAL),
            Op::Ne => return self.infix(args, "!=", prec::EQUAL),
            Op::Lt => return self.infix(args, "<", prec::LESS),
            Op::Le => return self.infix(args, "<=", prec::LESS),
            Op::Gt => return self.infix(args, ">", prec::LESS),
            Op::Ge => return self.infix(args, ">=", prec::LESS),
            _ => not_in_domain(op, dtype),
        };
        // C computes narrow integers as int.
        if dtype.size() < 4 {
            return Text::new(format!("({}){}", types::value(dtype), text.at(prec::UNARY)), prec::UNARY);
        }
        text
    }

    fn float_operator(&mut self, op: Op, args: &[Expr], dtype: DType) -> Text {
        let computed = if types::is_narrow_float(dtype) { DType::F32 } else { dtype };
        let one = if computed == DType::F64 { "1.0" } else { "1.0f" };
        match op {
            Op::Add => self.infix(args, "+", prec::SUM),
            Op::Sub => self.infix(args, "-", prec::SUM),
            Op::Mul => self.infix(args, "*", prec::PRODUCT),
            Op::Div => self.infix(args, "/", prec::PRODUCT),
            Op::Neg => self.prefix(&args[0], "-"),
            Op::FloorDiv => self.helper("floordiv", computed, args),
            Op::Mod => self.helper("mod", computed, args),
            // With a constant as first operand, the test for NaN folds away. (Not with 0: the order of equal zeros
            // determines the sign of the result.)
            Op::Min | Op::Max => {
                let name = if op == Op::Min { "min" } else { "max" };
                match args[1].as_literal() {
                    Some(Literal::Float(v)) if v != 0.0 && !v.is_nan() && args[0].as_literal().is_none() => {
                        self.helper(name, computed, &[args[1].clone(), args[0].clone()])
                    }
                    _ => self.helper(name, computed, args),
                }
            }
            Op::Sign => self.helper("sign", computed, args),
            Op::StopGradient => self.text(&args[0]),
            Op::IsNan => self.call("isnan", args),
            // Structured lowering has decided about all tensors but dense ones.
            Op::Stored => Text::new("true", prec::PRIMARY),
            Op::Rsqrt => {
                let root = self.helpers.math(Op::Sqrt, computed);
                Text::new(format!("{one} / {root}({})", self.expr(&args[0])), prec::PRODUCT)
            }
            Op::Sigmoid => {
                let exp = self.exponential(computed);
                let x = self.text(&args[0]).at(prec::UNARY);
                let minus = if x.starts_with('-') { format!("-({x})") } else { format!("-{x}") };
                Text::new(format!("{one} / ({one} + {exp}({minus}))"), prec::PRODUCT)
            }
            Op::Eq => self.infix(args, "==", prec::EQUAL),
            Op::Ne => self.infix(args, "!=", prec::EQUAL),
            Op::Lt => self.infix(args, "<", prec::LESS),
            Op::Le => self.infix(args, "<=", prec::LESS),
            Op::Gt => self.infix(args, ">", prec::LESS),
            Op::Ge => self.infix(args, ">=", prec::LESS),
            Op::Exp => {
                let name = self.exponential(computed);
                self.call(&name, args)
            }
            _ if op.info().c_name.is_some() => {
                let name = self.helpers.math(op, computed);
                self.call(&name, args)
            }
            _ => not_in_domain(op, dtype),
        }
    }

    /// Prints a size that evaluates to `INT64_MIN` if a step of it overflows; no tensor has such a size. The analysis
    /// relies on shapes that do not wrap.
    pub fn dim(&mut self, e: &Expr) -> String {
        let ExprKind::Apply(op, args) = e.kind() else { return self.expr(e) };
        if self.ranges.is_exact(e) {
            return self.expr(e);
        }
        let dims: Vec<String> = args.iter().map(|a| self.dim(a)).collect();
        match op {
            Op::Add => format!("taf_dim_add({})", dims.join(", ")),
            Op::Sub => format!("taf_dim_sub({})", dims.join(", ")),
            Op::Mul => format!("taf_dim_mul({})", dims.join(", ")),
            Op::Select => {
                let cond = self.expr(&args[0]);
                format!("({cond} ? {} : {})", dims[1], dims[2])
            }
            // The other operators cannot overflow by themselves.
            _ => {
                let value = self.expr(e);
                dims.iter().fold(value, |value, dim| format!("taf_dim_if({dim}, {value})"))
            }
        }
    }

    /// Returns whether C's truncating division of these operands rounds down: the dividend is not negative, and the
    /// divisor is a positive constant.
    fn is_plain_division(&self, args: &[Expr]) -> bool {
        args[1].as_int().is_some_and(|d| d > 0) && self.ranges.is_not_negative(&args[0])
    }
}

/// Panics on an operator outside its domain, which the validator of lowered programs excludes. (A test below checks
/// that no operator on its domain gets here.)
fn not_in_domain(op: Op, operands: DType) -> ! {
    unreachable!("Operands: `{}` of {operands}", op.info().name)
}

fn constant(text: String) -> Text {
    let prec = if text.starts_with('-') || text.starts_with('(') { prec::UNARY } else { prec::PRIMARY };
    Text::new(text, prec)
}

/// Returns whether a result in `f16` or `bf16` must be rounded; the other operators give numbers of the type already.
fn rounds(op: Op) -> bool {
    !matches!(
        op,
        Op::Select
            | Op::Neg
            | Op::Min
            | Op::Max
            | Op::Abs
            | Op::Sign
            | Op::Floor
            | Op::Ceil
            | Op::Round
            | Op::Trunc
            | Op::StopGradient
    )
}

/// Returns whether an operand may be evaluated speculatively: it loads no array element, and cannot fail.
fn is_free(e: &Expr) -> bool {
    let mut free = !e.may_fail();
    e.walk(&mut |e| free &= !matches!(e.kind(), ExprKind::Load(_, indices) if !indices.is_empty()));
    free
}

/// Returns the exponent, if an expression is a constant power of two.
fn power_of_two(e: &Expr) -> Option<u32> {
    e.as_int().filter(|v| v.count_ones() == 1 && *v > 0).map(i64::trailing_zeros)
}
