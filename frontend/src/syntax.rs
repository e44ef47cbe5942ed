//! Syntax tree, built by the parser and read by elaboration. The tree covers the part of Python's syntax that Taffeta
//! has, with spans and without meaning: loops over the reals (language.md, section 8) are represented here too, and
//! refused by elaboration.

pub mod show;

use taffeta_ast::Span;

/// Parsed file.
#[derive(Clone, Debug, PartialEq)]
pub struct Module {
    /// Docstring of the file.
    pub doc: Option<String>,
    /// Imports, static assignments and functions, in order.
    pub items: Vec<Item>,
}

/// Top-level item of a file.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// `from libop import softmax as s, relu`
    Import(Import),
    /// `N = 64`
    Assign {
        /// Name that is defined.
        name: Name,
        /// Static value.
        value: Expr,
    },
    /// `def f(…): …`
    Function(Function),
}

/// Identifier with its span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// Text of the identifier; loop targets may be dotted (`y.d0`), as printed programs have them.
    pub text: String,
    /// Source location.
    pub span: Span,
}

/// `from module import a, b as c`
#[derive(Clone, Debug, PartialEq)]
pub struct Import {
    /// Name of the module.
    pub module: Name,
    /// Imported names, each with its alias after `as`.
    pub names: Vec<(Name, Option<Name>)>,
    /// Span of the whole statement.
    pub span: Span,
}

/// Function, whether entry, template, schedule or gradient.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    /// Name of the function.
    pub name: Name,
    /// Decorators `@schedule(f)`, `@gradient(f)`: arbitrary expressions; elaboration checks which are allowed.
    pub decorators: Vec<Expr>,
    /// Parameters, in order.
    pub params: Vec<Param>,
    /// Return annotation after `->`.
    pub returns: Option<Expr>,
    /// Docstring of the function.
    pub doc: Option<String>,
    /// Body without the docstring.
    pub body: Vec<Stmt>,
    /// Span from `def` (or the first decorator) to the end of the body.
    pub span: Span,
}

/// Parameter. Annotations are expressions: `f32[n, m] @ csr` is a subscript under `@`.
#[derive(Clone, Debug, PartialEq)]
pub struct Param {
    /// Name of the parameter.
    pub name: Name,
    /// Annotation after `:`.
    pub annotation: Option<Expr>,
    /// Default value after `=`.
    pub default: Option<Expr>,
}

/// Statement.
#[derive(Clone, Debug, PartialEq)]
pub struct Stmt {
    /// Kind and operands of the statement.
    pub kind: StmtKind,
    /// Span of the whole statement; for compound statements with the body.
    pub span: Span,
}

/// Kinds of statement.
#[derive(Clone, Debug, PartialEq)]
pub enum StmtKind {
    /// `t = e`, `t[i] = e`, `a, b = f(x)`; several targets stand for a tuple on the left.
    Assign {
        /// Assigned targets; at least one.
        targets: Vec<Expr>,
        /// Right-hand side.
        value: Expr,
    },
    /// `t: f64[n] = e`; Python's syntax allows it without a value too, and elaboration refuses that.
    Declare {
        /// Declared name.
        name: Name,
        /// Annotation after `:`.
        annotation: Expr,
        /// Initial value after `=`.
        value: Option<Expr>,
    },
    /// `t[i] += e`
    Augment {
        /// Left-hand side.
        target: Expr,
        /// Operator, without `=`.
        op: BinOp,
        /// Right-hand side.
        value: Expr,
    },
    /// `for i, j in ndrange(n, m): …`
    For {
        /// Loop variables; at least one.
        targets: Vec<Name>,
        /// Iterated expression after `in`.
        iter: Expr,
        /// Loop body.
        body: Vec<Stmt>,
    },
    /// `if` with its `elif`s nested in `otherwise`.
    If {
        /// Condition.
        cond: Expr,
        /// Then-branch.
        then: Vec<Stmt>,
        /// Else-branch; empty without `else`.
        otherwise: Vec<Stmt>,
    },
    /// `assert c, "m"`
    Assert {
        /// Asserted condition.
        cond: Expr,
        /// Message after the comma.
        message: Option<Expr>,
    },
    /// `pass`
    Pass,
    /// `return e`
    Return {
        /// Returned results; a tuple for several.
        value: Option<Expr>,
    },
    /// Expression as a statement: a call or `...`; elaboration refuses others. The parser drops strings that stand
    /// alone.
    Expr(Expr),
}

/// Expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// Kind and operands of the expression.
    pub kind: ExprKind,
    /// Source location.
    pub span: Span,
}

/// Binary operators, with Python's precedences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the operators' usual names
pub enum BinOp {
    Add,
    Sub,
    Mul,
    Div,
    FloorDiv,
    Mod,
    Pow,
    MatMul,
    BitAnd,
    BitOr,
    BitXor,
    Shl,
    Shr,
}

/// Comparison operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the operators' usual names
pub enum CmpOp {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    In,
    NotIn,
    Is,
    IsNot,
}

/// Unary operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the operators' usual names
pub enum UnaryOp {
    Neg,
    Pos,
    Not,
    Invert,
}

/// Argument of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Arg {
    /// Keyword `name=`; `None` for positional arguments.
    pub name: Option<Name>,
    /// Value of the argument.
    pub value: Expr,
}

/// Kinds of expression.
#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    /// Identifier.
    Name(String),
    /// Integer literal; decimal, hexadecimal, octal or binary. `None` if it fits no 64-bit integer type or has too many
    /// digits.
    Int(Option<i128>),
    /// Float literal.
    Float(f64),
    /// `True`, `False`
    Bool(bool),
    /// `None`
    None,
    /// `...`
    Ellipsis,
    /// String literal; adjacent ones are joined.
    Str(String),
    /// `f"{n} faces"`: texts, each an [`ExprKind::Str`], and fields in order. Elaboration allows values of the running
    /// program in messages of assertions and in `print` only.
    Format(Vec<Expr>),
    /// `(a, b)`, or `a, b` where Python allows it bare.
    Tuple(Vec<Expr>),
    /// `[a, b]`
    List(Vec<Expr>),
    /// `[e for x in xs if c]`
    Comprehension {
        /// Element expression, evaluated for each item.
        element: Box<Expr>,
        /// Bound names.
        targets: Vec<Name>,
        /// Iterated expression.
        iter: Box<Expr>,
        /// Filter conditions; all must hold.
        conds: Vec<Expr>,
    },
    /// `a + b`
    Binary(BinOp, Box<Expr>, Box<Expr>),
    /// `-a`
    Unary(UnaryOp, Box<Expr>),
    /// `a and b and c`: at least two.
    And(Vec<Expr>),
    /// `a or b`
    Or(Vec<Expr>),
    /// `a < b <= c`: the first operand, then each comparison with its right operand.
    Compare(Box<Expr>, Vec<(CmpOp, Expr)>),
    /// `a if c else b`
    IfElse {
        /// Condition.
        cond: Box<Expr>,
        /// Value if the condition holds.
        then: Box<Expr>,
        /// Value otherwise.
        otherwise: Box<Expr>,
    },
    /// `f(a, k=b)`
    Call {
        /// Called expression.
        callee: Box<Expr>,
        /// Arguments, positional ones first.
        args: Vec<Arg>,
    },
    /// `a.b`
    Attribute(Box<Expr>, Name),
    /// `a[i, j:k]`: the items between the brackets; a tuple written with parentheses is one item.
    Subscript(Box<Expr>, Vec<Expr>),
    /// `a:b:c` inside a subscript.
    Slice {
        /// Lower bound (inclusive).
        lower: Option<Box<Expr>>,
        /// Upper bound (exclusive).
        upper: Option<Box<Expr>>,
        /// Step.
        step: Option<Box<Expr>>,
    },
    /// `lambda i, j: (i + j, j)`, which `permute` alone accepts.
    Lambda {
        /// Bound names.
        params: Vec<Name>,
        /// Value.
        body: Box<Expr>,
    },
}
