//! Statements: a persistent tree with shared pointers. Copying a tree is copying a pointer; an edit copies the path to
//! it.

use crate::dtype::DType;
use crate::expr::{Access, Expr};
use crate::format::Format;
use crate::op::ReduceOp;
use crate::span::Span;
use crate::symbol::Symbol;
use rustc_hash::FxHashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

static NEXT: AtomicU64 = AtomicU64::new(1);

/// Names a statement through every edit that keeps it. Never reused; copies get new ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StmtId(pub u64);

impl StmtId {
    /// An id that no other statement has.
    pub fn fresh() -> StmtId {
        StmtId(NEXT.fetch_add(1, Ordering::Relaxed))
    }

    /// The bit that stands for it among those of [`Stmt::may_hold`].
    fn bit(self) -> u64 {
        1 << (self.0 % 64)
    }
}

/// A call that was inlined: which function, and where it was called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallSite {
    /// The function's name.
    pub function: String,
    /// The call.
    pub span: Span,
}

/// Where a statement comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The user's (or libop's) source.
    Source {
        /// The statement, or the part of it that this was made for.
        span: Span,
        /// What `label("…")` statements call it.
        labels: Vec<String>,
        /// The calls that inlined it, outermost first.
        chain: Arc<[CallSite]>,
    },
    /// A transformation made it from another statement.
    Derived {
        /// The transformation (`split`, `simplify`).
        step: &'static str,
        /// What it is in the result (`outer`, `tail`).
        role: &'static str,
        /// The statement that it was made from.
        from: Arc<Origin>,
    },
}

impl Origin {
    /// Code that stands nowhere.
    pub fn none() -> Origin {
        Origin::source(Span::NONE)
    }

    /// A place in the source, without labels and calls.
    pub fn source(span: Span) -> Origin {
        Origin::Source { span, labels: Vec::new(), chain: Arc::from([]) }
    }

    /// Made from this one by a transformation.
    pub fn derive(&self, step: &'static str, role: &'static str) -> Origin {
        Origin::Derived { step, role, from: Arc::new(self.clone()) }
    }

    /// The place in the source that this goes back to.
    pub fn span(&self) -> Span {
        match self {
            Origin::Source { span, .. } => *span,
            Origin::Derived { from, .. } => from.span(),
        }
    }

    /// The calls that inlined it, outermost first.
    pub fn chain(&self) -> &[CallSite] {
        match self {
            Origin::Source { chain, .. } => chain,
            Origin::Derived { from, .. } => from.chain(),
        }
    }

    /// What it is called by `label("…")` statements.
    pub fn labels(&self) -> &[String] {
        match self {
            Origin::Source { labels, .. } => labels,
            Origin::Derived { from, .. } => from.labels(),
        }
    }
}

/// What a tensor is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// A parameter that is only read.
    Input,
    /// A parameter that is read and written.
    InOut,
    /// What the caller gets back.
    Result,
    /// Declared in the program.
    Local,
    /// Values kept for the backward pass.
    Tape,
    /// The derivative of the result with respect to a tensor.
    Adjoint,
    /// Made by a transformation.
    Workspace,
}

impl Role {
    /// Whether the program declares the tensor, and no caller sees it.
    pub fn is_local(self) -> bool {
        !matches!(self, Role::Input | Role::InOut | Role::Result)
    }
}

/// Where a tensor's elements are kept while it is alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Memory {
    /// Lowering decides.
    #[default]
    Auto,
    /// A C variable for every element.
    Register,
    /// A C array of constant size.
    Stack,
    /// Its own allocation.
    Heap,
    /// A piece of the arena in the caller's context.
    Arena,
}

impl Memory {
    /// Largest array on the stack.
    pub const STACK_ARRAY_BYTES: i64 = 16 << 10;
    /// Most bytes of arrays on the stack in one entry: far below the 8 MiB of a main thread and the 2 MiB of others.
    pub const STACK_TOTAL_BYTES: i64 = 128 << 10;
}

/// The declaration of a tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tensor {
    /// Its name.
    pub symbol: Symbol,
    /// Type of its elements.
    pub dtype: DType,
    /// Sizes (i64 expressions over sizes, and in loops over iterators); empty for a scalar.
    pub shape: Vec<Expr>,
    /// How it is stored.
    pub format: Format,
    /// What it is for.
    pub role: Role,
    /// Where it is kept.
    pub memory: Memory,
}

impl Tensor {
    /// A dense tensor.
    pub fn dense(symbol: Symbol, dtype: DType, shape: Vec<Expr>, role: Role) -> Tensor {
        let format = Format::dense(shape.len());
        Tensor { symbol, dtype, shape, format, role, memory: Memory::Auto }
    }

    /// Another tensor of the same type and sizes, stored in the same way, over the same pattern.
    pub fn like(&self, symbol: Symbol, role: Role) -> Tensor {
        let (dtype, shape, format) = (self.dtype, self.shape.clone(), self.format.clone());
        Tensor { symbol, dtype, shape, format, role, memory: Memory::Auto }
    }

    /// A tensor for adjoints of this one, which is stored where this one is. Those of a workspace are dense: where it
    /// has elements is not known any more when they are asked for.
    pub fn adjoint(&self, symbol: Symbol, role: Role) -> Tensor {
        self.derivative(symbol, role, Format::derivative)
    }

    /// The same for tangents.
    pub fn tangent(&self, symbol: Symbol, role: Role) -> Tensor {
        self.derivative(symbol, role, Format::tangent)
    }

    fn derivative(&self, symbol: Symbol, role: Role, of: fn(&Format) -> Format) -> Tensor {
        let own = self.role.is_local() && self.format.inserts();
        let format = if own { Format::dense(self.ndim()) } else { of(&self.format) };
        Tensor { format, ..self.like(symbol, role) }
    }

    /// The bytes that it takes where its shape is constant; `None` where it is not, or where that is too much to be
    /// counted.
    pub fn constant_bytes(&self) -> Option<i64> {
        let size = |d: &Expr| d.as_int().filter(|d| *d >= 0);
        // (A tensor without elements may have other sizes that are too large for any tensor.)
        let most = self.shape.iter().try_fold(1i64, |n, d| n.checked_mul(size(d)?.max(1)));
        most.filter(|n| *n <= crate::value::MAX_SIZE)?;
        let count = self.shape.iter().try_fold(1i64, |n, d| n.checked_mul(size(d)?))?;
        count.max(1).checked_mul(self.dtype.size() as i64)
    }

    /// Number of dimensions.
    pub fn ndim(&self) -> usize {
        self.shape.len()
    }

    /// Whether these sizes are among its own, in any order: then what has them has no more elements, where sizes of 0
    /// count as 1.
    pub fn has_sizes(&self, sizes: &[Expr]) -> bool {
        let mut left: Vec<&Expr> = self.shape.iter().collect();
        sizes.iter().all(|d| left.iter().position(|l| *l == d).map(|k| left.swap_remove(k)).is_some())
    }

    /// Reads the element at `indices`.
    pub fn load(&self, indices: impl IntoIterator<Item = Expr>) -> Expr {
        Expr::load(&self.symbol, indices.into_iter().map(Access::from).collect(), self.dtype)
    }
}

/// What a loop runs over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Extent {
    /// `range(begin, end, step)` with Python's meaning. All three are i64; `step` may have either sign, and 0 stops the
    /// program. They are evaluated once, before the first iteration.
    Range {
        /// First value.
        begin: Expr,
        /// Where to stop (not included).
        end: Expr,
        /// From one value to the next.
        step: Expr,
    },
    /// All real numbers, in no order.
    Reals,
}

/// How a loop runs. Schedules set these; the front end makes plain loops. They change nothing of what a program means,
/// but for the order in which reductions are made: the interpreter ignores them.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct LoopProps {
    /// On several threads.
    pub parallel: Option<Parallel>,
    /// By vector instructions.
    pub vectorize: Option<Vectorize>,
    /// As copies of its body.
    pub unroll: bool,
    /// By a call of a library where there is one: the loop and those in it are a matrix product that writes nothing
    /// that it reads (`taffeta_analysis::query::product`). The nest is what it means, and what runs where the library
    /// does not take the matrices.
    pub library: bool,
    /// Reductions in the body that meet in one element in several iterations, of a loop that runs in any order. A
    /// tensor is listed once for each operator.
    pub reductions: Vec<Reduction>,
}

impl LoopProps {
    /// Whether iterations may run in any order, or at the same time.
    pub fn is_concurrent(&self) -> bool {
        self.parallel.is_some() || self.vectorize.is_some()
    }

    /// How the body's reductions of that operator into the tensor are kept from meeting; `None` if they never do.
    pub fn sharing(&self, tensor: &Symbol, op: ReduceOp) -> Option<Sharing> {
        self.reductions.iter().find(|r| r.tensor == *tensor && r.op == op).map(|r| r.sharing)
    }
}

/// How iterations are shared out among threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Parallel {
    /// Which thread gets which.
    pub distribution: Distribution,
    /// How many of them a thread gets at once (with `Guided` at least; with `Positions` what there is to be shared at
    /// least).
    pub chunk: Option<u32>,
    /// One thread runs them all where there are at most so many.
    pub above: Option<u64>,
}

impl Parallel {
    /// The positions from which on threads share them, where a schedule does not say: some microseconds of work, if
    /// there is no loop at each of them, or one.
    pub const POSITIONS: [i64; 2] = [8192, 2048];
}

/// Which thread gets which iterations, as in OpenMP; or by what is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Distribution {
    /// Decided when the loop starts: equal shares.
    #[default]
    Static,
    /// Whoever is done takes the next.
    Dynamic,
    /// Likewise, in shares that get smaller.
    Guided,
    /// Decided when the loop starts: consecutive iterations that go through equally many positions of structured
    /// tensors. Only logical programs have such loops: lowering cuts them into parts (`structured::lower`). `chunk` is
    /// how many positions there are at least where threads share them.
    Positions,
}

impl Distribution {
    /// All of them.
    pub const ALL: [Distribution; 4] =
        [Distribution::Static, Distribution::Dynamic, Distribution::Guided, Distribution::Positions];

    /// What schedules and OpenMP call it.
    pub fn name(self) -> &'static str {
        match self {
            Distribution::Static => "static",
            Distribution::Dynamic => "dynamic",
            Distribution::Guided => "guided",
            Distribution::Positions => "positions",
        }
    }
}

/// How a loop is made of vector instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Vectorize {
    /// Iterations at once; if it is not given, what fits the machine.
    pub width: Option<u32>,
}

/// A reduction that meets in one element in several iterations of a loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reduction {
    /// What is reduced into.
    pub tensor: Symbol,
    /// By which operator.
    pub op: ReduceOp,
    /// What keeps it right.
    pub sharing: Sharing,
}

/// How reductions that meet in one element are kept apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sharing {
    /// Every thread (or vector lane) reduces into partial results of its own, which are combined at the end.
    Partial,
    /// Every update is atomic.
    Atomic,
}

/// A piece of a [`Message`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MessagePart {
    /// As it is.
    Text(String),
    /// The value when the program stops.
    Value(Expr),
}

/// What a failed assertion says: text with values in it, written as an f-string in a program (`f"{n} faces"`).
pub type Message = Vec<MessagePart>;

/// A piece of what a [`StmtKind::Print`] writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PrintPart {
    /// As it is.
    Text(String),
    /// The value of an expression.
    Value(Expr),
    /// The elements of a tensor, in brackets.
    Tensor {
        /// The tensor.
        tensor: Symbol,
        /// Its first indices (i64); all elements below them are shown. On flat buffers, where the elements begin.
        at: Vec<Expr>,
        /// The sizes of the other dimensions (i64), with which the elements are shown.
        shape: Vec<Expr>,
    },
}

/// Who asks for an assertion: it decides the error code that a caller sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AssertKind {
    /// The program: an `assert`, or sizes that must agree.
    Program,
    /// An index must be in range (lowering makes these).
    Index,
    /// An operation must have a value: division by zero, a cast of NaN (lowering makes these).
    Arithmetic,
    /// A value must be finite (`taffeta_analysis::pass::check_finite` makes these). They stay where they are, so that
    /// the first one that fails is the first in the order in which the program runs.
    Finite,
}

/// The kinds of statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StmtKind {
    /// One after the other. No `Seq` directly in a `Seq`; the empty one is `pass`.
    Seq(Vec<Stmt>),
    /// A tensor that is alive in `body` and nowhere else, with unspecified contents at first.
    VarDef {
        /// The declaration.
        tensor: Arc<Tensor>,
        /// Its scope.
        body: Stmt,
    },
    /// A loop.
    For {
        /// Bound in the body.
        iter: Symbol,
        /// What it runs over.
        extent: Extent,
        /// How it runs.
        props: LoopProps,
        /// Once for each value.
        body: Stmt,
    },
    /// A branch on a `bool`.
    If {
        /// The condition.
        cond: Expr,
        /// If it holds.
        then: Stmt,
        /// If not.
        otherwise: Option<Stmt>,
    },
    /// Writes an element. Value and indices have the tensor's type and i64.
    Store {
        /// The tensor.
        tensor: Symbol,
        /// One for each dimension.
        indices: Vec<Access>,
        /// What is written.
        value: Expr,
    },
    /// Combines an element with a value. Reductions of one operator into one element commute.
    ReduceTo {
        /// The tensor.
        tensor: Symbol,
        /// One for each dimension.
        indices: Vec<Access>,
        /// The operator.
        op: ReduceOp,
        /// What is combined with the element.
        value: Expr,
    },
    /// Stops the program with the message if the condition does not hold.
    Assert {
        /// The condition.
        cond: Expr,
        /// Shown with the statement's place.
        message: Message,
        /// Who asks.
        kind: AssertKind,
    },
    /// Writes a line: the parts, one after the other. It is not an error, and changes nothing.
    Print {
        /// What is written.
        parts: Vec<PrintPart>,
    },
    /// A condition that holds here; analysis may use it, nothing is checked.
    Assume {
        /// The condition.
        cond: Expr,
    },
    /// A call of a function outside the program (libraries). `args` are tensors by name.
    Eval {
        /// The function.
        function: String,
        /// The tensors that it reads or writes.
        args: Vec<Symbol>,
    },
    /// Repeats while the condition holds (structured lowering alone makes it).
    While {
        /// The condition.
        cond: Expr,
        /// Repeated.
        body: Stmt,
    },
}

/// A shared statement with an id and an origin.
#[derive(Clone, Debug)]
pub struct Stmt(Arc<StmtNode>);

#[derive(Debug)]
struct StmtNode {
    id: StmtId,
    origin: Origin,
    kind: StmtKind,
    /// The bits of its id and of those of all statements inside.
    bits: u64,
    /// See [`Stmt::writes`]; of loops it is that of their body.
    writes: OnceLock<FxHashSet<Symbol>>,
}

impl StmtNode {
    fn new(id: StmtId, kind: StmtKind, origin: Origin) -> StmtNode {
        let bits = kind.inside().fold(id.bit(), |bits, s| bits | s.0.bits);
        StmtNode { id, origin, kind, bits, writes: OnceLock::new() }
    }
}

impl PartialEq for Stmt {
    /// The same tree with the same symbols; ids and origins do not count. See [`crate::func::same`] for programs that
    /// differ in symbols only.
    fn eq(&self, other: &Stmt) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.kind == other.0.kind
    }
}
impl Eq for Stmt {}

impl Stmt {
    /// A new statement with a fresh id.
    pub fn new(kind: StmtKind, origin: Origin) -> Stmt {
        Stmt(Arc::new(StmtNode::new(StmtId::fresh(), kind, origin)))
    }

    /// This statement with another kind: what keeps the statement keeps its id and origin.
    #[must_use]
    pub fn with_kind(&self, kind: StmtKind) -> Stmt {
        Stmt(Arc::new(StmtNode::new(self.0.id, kind, self.0.origin.clone())))
    }

    /// The node.
    pub fn kind(&self) -> &StmtKind {
        &self.0.kind
    }

    /// Its id.
    pub fn id(&self) -> StmtId {
        self.0.id
    }

    /// Whether this may be, or hold, the statement with that id: where it is `false`, nobody has to look inside.
    pub fn may_hold(&self, id: StmtId) -> bool {
        self.0.bits & id.bit() != 0
    }

    /// The tensors that it may write, those of its own declarations included. A call of an outside function may write
    /// all of its arguments. Every node keeps the answer, and so do the bodies of the loops inside: an edit asks again
    /// about the way to it alone.
    pub fn writes(&self) -> &FxHashSet<Symbol> {
        match self.kind() {
            StmtKind::For { body, .. } | StmtKind::While { body, .. } => body.writes(),
            _ => self.0.writes.get_or_init(|| {
                let mut all = FxHashSet::default();
                self.add_writes_inside(&mut all);
                all
            }),
        }
    }

    fn add_writes(&self, all: &mut FxHashSet<Symbol>) {
        match (self.0.writes.get(), self.kind()) {
            (Some(known), _) => all.extend(known.iter().cloned()),
            (_, StmtKind::For { body, .. } | StmtKind::While { body, .. }) => all.extend(body.writes().iter().cloned()),
            _ => self.add_writes_inside(all),
        }
    }

    fn add_writes_inside(&self, all: &mut FxHashSet<Symbol>) {
        match self.kind() {
            StmtKind::Store { tensor, .. } | StmtKind::ReduceTo { tensor, .. } => {
                all.insert(tensor.clone());
            }
            StmtKind::Eval { args, .. } => all.extend(args.iter().cloned()),
            // Its contents are new every time that the declaration is reached.
            StmtKind::VarDef { tensor, .. } => {
                all.insert(tensor.symbol.clone());
            }
            _ => {}
        }
        self.kind().inside().for_each(|s| s.add_writes(all));
    }

    /// Where it comes from.
    pub fn origin(&self) -> &Origin {
        &self.0.origin
    }

    /// Whether both are one and the same node in memory.
    pub fn same_node(&self, other: &Stmt) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// A sequence: nested sequences are spliced, and a sequence of one statement is that statement.
    pub fn seq(stmts: impl IntoIterator<Item = Stmt>, origin: Origin) -> Stmt {
        match <[Stmt; 1]>::try_from(Stmt::spliced(stmts)) {
            Ok([one]) => one,
            Err(flat) => Stmt::new(StmtKind::Seq(flat), origin),
        }
    }

    /// The statements, with those of sequences among them in their places.
    pub(crate) fn spliced(stmts: impl IntoIterator<Item = Stmt>) -> Vec<Stmt> {
        let mut flat = Vec::new();
        for s in stmts {
            match s.kind() {
                StmtKind::Seq(inner) => flat.extend(inner.iter().cloned()),
                _ => flat.push(s),
            }
        }
        flat
    }

    /// A statement that does nothing.
    pub fn nop() -> Stmt {
        Stmt::new(StmtKind::Seq(Vec::new()), Origin::none())
    }

    /// Whether it is the empty sequence.
    pub fn is_nop(&self) -> bool {
        matches!(self.kind(), StmtKind::Seq(v) if v.is_empty())
    }

    /// Whether a tensor is declared here, or inside, that is stored in a format that is not dense.
    pub fn declares_structured(&self) -> bool {
        let mut declares = false;
        self.walk(&mut |s| {
            declares |= matches!(s.kind(), StmtKind::VarDef { tensor, .. } if !tensor.format.is_dense());
        });
        declares
    }
}
