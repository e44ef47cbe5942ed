//! The syntax tree: what the parser makes of a file and elaboration reads. It is Python's syntax (the part that Taffeta
//! has) with spans, and says nothing of meaning: sections 7 and 8 of the language are here too, and refused later.

pub mod show;

use taffeta_ast::Span;

/// A parsed file.
#[derive(Clone, Debug, PartialEq)]
pub struct Module {
    /// The string that the file starts with.
    pub doc: Option<String>,
    /// Imports, static assignments and functions, in order.
    pub items: Vec<Item>,
}

/// Something at the top level of a file.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// `from libop import softmax as s, relu`
    Import(Import),
    /// `N = 64`
    Assign {
        /// The name.
        name: Name,
        /// A static value.
        value: Expr,
    },
    /// `def f(…): …`
    Function(Function),
}

/// A name and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// The text; loop targets may be dotted (`y.d0`), as printed programs have them.
    pub text: String,
    /// Where.
    pub span: Span,
}

/// `from module import a, b as c`
#[derive(Clone, Debug, PartialEq)]
pub struct Import {
    /// The module's name.
    pub module: Name,
    /// What is imported, and what it is called here.
    pub names: Vec<(Name, Option<Name>)>,
    /// The whole statement.
    pub span: Span,
}

/// A function, whether entry, template, schedule or gradient.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    /// Its name.
    pub name: Name,
    /// `@schedule(f)`, `@gradient(f)`: any expressions; elaboration knows which are allowed.
    pub decorators: Vec<Expr>,
    /// Parameters, in order.
    pub params: Vec<Param>,
    /// After `->`.
    pub returns: Option<Expr>,
    /// The string that the body starts with.
    pub doc: Option<String>,
    /// The rest of the body.
    pub body: Vec<Stmt>,
    /// From `def` (or the first decorator) to the end of the body.
    pub span: Span,
}

/// A parameter. Annotations are expressions: `f32[n, m] @ csr` is a subscript under `@`.
#[derive(Clone, Debug, PartialEq)]
pub struct Param {
    /// Its name.
    pub name: Name,
    /// After `:`.
    pub annotation: Option<Expr>,
    /// After `=`.
    pub default: Option<Expr>,
}

/// A statement.
#[derive(Clone, Debug, PartialEq)]
pub struct Stmt {
    /// What it is.
    pub kind: StmtKind,
    /// All of it; for compound statements with the body.
    pub span: Span,
}

/// The kinds of statement.
#[derive(Clone, Debug, PartialEq)]
pub enum StmtKind {
    /// `t = e`, `t[i] = e`, `a, b = f(x)`; several targets stand for a tuple on the left.
    Assign {
        /// At least one.
        targets: Vec<Expr>,
        /// The right-hand side.
        value: Expr,
    },
    /// `t: f64[n] = e`; without value in Python's syntax too, which elaboration refuses.
    Declare {
        /// The name.
        name: Name,
        /// After `:`.
        annotation: Expr,
        /// After `=`.
        value: Option<Expr>,
    },
    /// `t[i] += e`
    Augment {
        /// The left-hand side.
        target: Expr,
        /// The operator, without `=`.
        op: BinOp,
        /// The right-hand side.
        value: Expr,
    },
    /// `for i, j in ndrange(n, m): …`
    For {
        /// At least one name.
        targets: Vec<Name>,
        /// After `in`.
        iter: Expr,
        /// The body.
        body: Vec<Stmt>,
    },
    /// `if` with its `elif`s nested in `otherwise`.
    If {
        /// The condition.
        cond: Expr,
        /// If it holds.
        then: Vec<Stmt>,
        /// If not; empty where there is no `else`.
        otherwise: Vec<Stmt>,
    },
    /// `assert c, "m"`
    Assert {
        /// The condition.
        cond: Expr,
        /// After the comma.
        message: Option<Expr>,
    },
    /// `pass`
    Pass,
    /// `return e`
    Return {
        /// The results; a tuple for several.
        value: Option<Expr>,
    },
    /// An expression as a statement: a call or a label. Docstrings inside bodies are dropped by the parser.
    Expr(Expr),
}

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// What it is.
    pub kind: ExprKind,
    /// Where.
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

/// Comparisons.
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

/// An argument of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Arg {
    /// `name=`, for keyword arguments.
    pub name: Option<Name>,
    /// The value.
    pub value: Expr,
}

/// The kinds of expression.
#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    /// A name.
    Name(String),
    /// An integer literal; decimal, hexadecimal, octal or binary. `None` if it does not fit 128 bits.
    Int(Option<i128>),
    /// A float literal.
    Float(f64),
    /// `True`, `False`
    Bool(bool),
    /// `None`
    None,
    /// `...`
    Ellipsis,
    /// A string; adjacent ones are joined.
    Str(String),
    /// `f"{n} faces"`: messages of assertions alone have them. Plain text is a [`ExprKind::Str`] in the list.
    Format(Vec<Expr>),
    /// `(a, b)`, or `a, b` where Python allows it bare.
    Tuple(Vec<Expr>),
    /// `[a, b]`
    List(Vec<Expr>),
    /// `[e for x in xs if c]`
    Comprehension {
        /// For each.
        element: Box<Expr>,
        /// The names bound.
        targets: Vec<Name>,
        /// What is run over.
        iter: Box<Expr>,
        /// All must hold.
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
    /// `a < b <= c`: the first operand, then each comparison with its right side.
    Compare(Box<Expr>, Vec<(CmpOp, Expr)>),
    /// `a if c else b`
    IfElse {
        /// The condition.
        cond: Box<Expr>,
        /// If it holds.
        then: Box<Expr>,
        /// If not.
        otherwise: Box<Expr>,
    },
    /// `f(a, k=b)`
    Call {
        /// What is called.
        callee: Box<Expr>,
        /// Positional arguments first.
        args: Vec<Arg>,
    },
    /// `a.b`
    Attribute(Box<Expr>, Name),
    /// `a[i, j:k]`: the items between the brackets; a tuple written with parentheses is one item.
    Subscript(Box<Expr>, Vec<Expr>),
    /// `a:b:c` inside a subscript.
    Slice {
        /// First.
        lower: Option<Box<Expr>>,
        /// Last (not included).
        upper: Option<Box<Expr>>,
        /// Step.
        step: Option<Box<Expr>>,
    },
    /// `lambda i, j: (i + j, j)`, which `permute` alone accepts.
    Lambda {
        /// The names bound.
        params: Vec<Name>,
        /// The value.
        body: Box<Expr>,
    },
}
