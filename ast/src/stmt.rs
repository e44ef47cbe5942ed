//! Statements: a persistent tree with shared pointers. Copying a tree copies a pointer; an edit copies the path to the
//! edited node.

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

/// Identity of a statement through every edit that keeps it. Ids are never reused; copies get new ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StmtId(pub u64);

impl StmtId {
    /// Returns an id that no other statement has.
    pub fn fresh() -> StmtId {
        StmtId(NEXT.fetch_add(1, Ordering::Relaxed))
    }

    /// Returns the id's bit in the Bloom filter behind [`Stmt::may_hold`].
    fn bit(self) -> u64 {
        1 << (self.0 % 64)
    }
}

/// Inlined call: the function and its call site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallSite {
    /// Name of the function.
    pub function: String,
    /// Location of the call.
    pub span: Span,
}

/// Origin of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Statement in the user's (or libop's) source.
    Source {
        /// Location of the statement, or of the part from which it was made.
        span: Span,
        /// Labels given by `label("…")` statements.
        labels: Vec<String>,
        /// Calls through which it was inlined, outermost first.
        chain: Arc<[CallSite]>,
    },
    /// Statement that a transformation made from another one.
    Derived {
        /// Transformation (`split`, `simplify`).
        step: &'static str,
        /// Part in the result (`outer`, `tail`).
        role: &'static str,
        /// Origin of the source statement.
        from: Arc<Origin>,
    },
}

impl Origin {
    /// Creates the origin of code without a location.
    pub fn none() -> Origin {
        Origin::source(Span::NONE)
    }

    /// Creates an origin in the source, without labels and calls.
    pub fn source(span: Span) -> Origin {
        Origin::Source { span, labels: Vec::new(), chain: Arc::from([]) }
    }

    /// Creates the origin of a statement that a transformation makes from this one.
    pub fn derive(&self, step: &'static str, role: &'static str) -> Origin {
        Origin::Derived { step, role, from: Arc::new(self.clone()) }
    }

    /// Returns the location in the source.
    pub fn span(&self) -> Span {
        match self {
            Origin::Source { span, .. } => *span,
            Origin::Derived { from, .. } => from.span(),
        }
    }

    /// Returns the calls through which the statement was inlined, outermost first.
    pub fn chain(&self) -> &[CallSite] {
        match self {
            Origin::Source { chain, .. } => chain,
            Origin::Derived { from, .. } => from.chain(),
        }
    }

    /// Returns the labels given by `label("…")` statements.
    pub fn labels(&self) -> &[String] {
        match self {
            Origin::Source { labels, .. } => labels,
            Origin::Derived { from, .. } => from.labels(),
        }
    }
}

/// Role of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Read-only parameter.
    Input,
    /// Parameter that is read and written.
    InOut,
    /// Result, returned to the caller.
    Result,
    /// Tensor declared in the program.
    Local,
    /// Values saved for the backward pass.
    Tape,
    /// Derivative of the result with respect to a tensor.
    Adjoint,
    /// Temporary made by a transformation.
    Workspace,
}

impl Role {
    /// Returns whether the tensor is declared in the program, invisible to callers.
    pub fn is_local(self) -> bool {
        !matches!(self, Role::Input | Role::InOut | Role::Result)
    }
}

/// Storage of a tensor's elements while the tensor is alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Memory {
    /// Choice of lowering.
    #[default]
    Auto,
    /// One C variable per element.
    Register,
    /// C array of constant size.
    Stack,
    /// Allocation of its own.
    Heap,
    /// Slot of the arena in the caller's context.
    Arena,
}

impl Memory {
    /// Maximum size of an array on the stack, in bytes.
    pub const STACK_ARRAY_BYTES: i64 = 16 << 10;
    /// Maximum total size of arrays on the stack of one entry, in bytes: far below the 8 MiB of a main thread and the 2
    /// MiB of others.
    pub const STACK_TOTAL_BYTES: i64 = 128 << 10;
}

/// Declaration of a tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tensor {
    /// Name.
    pub symbol: Symbol,
    /// Element type.
    pub dtype: DType,
    /// Sizes (i64 expressions over sizes, and over iterators inside loops); empty for a scalar.
    pub shape: Vec<Expr>,
    /// Storage format.
    pub format: Format,
    /// Role.
    pub role: Role,
    /// Memory.
    pub memory: Memory,
}

impl Tensor {
    /// Creates a dense tensor.
    pub fn dense(symbol: Symbol, dtype: DType, shape: Vec<Expr>, role: Role) -> Tensor {
        let format = Format::dense(shape.len());
        Tensor { symbol, dtype, shape, format, role, memory: Memory::Auto }
    }

    /// Returns a tensor of the same type and sizes, stored in the same format, over the same pattern.
    pub fn like(&self, symbol: Symbol, role: Role) -> Tensor {
        let (dtype, shape, format) = (self.dtype, self.shape.clone(), self.format.clone());
        Tensor { symbol, dtype, shape, format, role, memory: Memory::Auto }
    }

    /// Returns a tensor for the adjoint of this one, stored over the same pattern. The adjoint of a workspace is dense,
    /// because the workspace's pattern is lost by the time it is needed.
    pub fn adjoint(&self, symbol: Symbol, role: Role) -> Tensor {
        self.derivative(symbol, role, Format::derivative)
    }

    /// Returns a tensor for the tangent of this one; as for adjoints, that of a workspace is dense.
    pub fn tangent(&self, symbol: Symbol, role: Role) -> Tensor {
        self.derivative(symbol, role, Format::tangent)
    }

    fn derivative(&self, symbol: Symbol, role: Role, of: fn(&Format) -> Format) -> Tensor {
        let own = self.role.is_local() && self.format.inserts();
        let format = if own { Format::dense(self.ndim()) } else { of(&self.format) };
        Tensor { format, ..self.like(symbol, role) }
    }

    /// Returns the tensor's size in bytes if its shape is constant; `None` if it is not, or the size is too large.
    pub fn constant_bytes(&self) -> Option<i64> {
        let size = |d: &Expr| d.as_int().filter(|d| *d >= 0);
        // A tensor without elements may have other sizes that exceed the limit.
        let most = self.shape.iter().try_fold(1i64, |n, d| n.checked_mul(size(d)?.max(1)));
        most.filter(|n| *n <= crate::value::MAX_SIZE)?;
        let count = self.shape.iter().try_fold(1i64, |n, d| n.checked_mul(size(d)?))?;
        count.max(1).checked_mul(self.dtype.size() as i64)
    }

    /// Returns the number of dimensions.
    pub fn ndim(&self) -> usize {
        self.shape.len()
    }

    /// Returns whether these sizes are among the tensor's own, in any order. A tensor of these sizes then has no more
    /// elements than this one, counting sizes of 0 as 1.
    pub fn has_sizes(&self, sizes: &[Expr]) -> bool {
        let mut left: Vec<&Expr> = self.shape.iter().collect();
        sizes.iter().all(|d| left.iter().position(|l| *l == d).map(|k| left.swap_remove(k)).is_some())
    }

    /// Builds the load of the element at `indices`.
    pub fn load(&self, indices: impl IntoIterator<Item = Expr>) -> Expr {
        Expr::load(&self.symbol, indices.into_iter().map(Access::from).collect(), self.dtype)
    }
}

/// Iteration space of a loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Extent {
    /// `range(begin, end, step)` with Python's meaning. All three are i64; `step` may have either sign, and 0 stops the
    /// program. They are evaluated once, before the first iteration.
    Range {
        /// First value.
        begin: Expr,
        /// Exclusive bound.
        end: Expr,
        /// Step.
        step: Expr,
    },
    /// All real numbers, in no order.
    Reals,
}

/// Execution properties of a loop. Schedules set these; the front end makes plain loops. The properties do not change
/// the meaning of a program, except for the order of reductions: the interpreter ignores them.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct LoopProps {
    /// Execution on several threads.
    pub parallel: Option<Parallel>,
    /// Execution by vector instructions.
    pub vectorize: Option<Vectorize>,
    /// Full unrolling.
    pub unroll: bool,
    /// Replacement by a library call where possible: the loop and those in it are a matrix product whose operands and
    /// result do not overlap (`taffeta_analysis::query::product`). The nest defines the meaning, and runs where the
    /// library does not accept the matrices.
    pub library: bool,
    /// Reductions in the body of a concurrent loop that update one element in several iterations. A tensor is listed
    /// once per operator.
    pub reductions: Vec<Reduction>,
}

impl LoopProps {
    /// Returns whether iterations may run in any order, or at the same time.
    pub fn is_concurrent(&self) -> bool {
        self.parallel.is_some() || self.vectorize.is_some()
    }

    /// Returns the marks in words that complete "the loop is already …".
    pub fn marks(&self) -> String {
        let all = [
            (self.parallel.is_some(), "parallel"),
            (self.vectorize.is_some(), "vectorised"),
            (self.unroll, "unrolled"),
            (self.library, "a library call"),
        ];
        let marks: Vec<&str> = all.iter().filter(|(marked, _)| *marked).map(|(_, word)| *word).collect();
        marks.join(" and ")
    }

    /// Returns the synchronisation of the body's reductions of that operator into the tensor; `None` if iterations
    /// never update the same element.
    pub fn sharing(&self, tensor: &Symbol, op: ReduceOp) -> Option<Sharing> {
        self.reductions.iter().find(|r| r.tensor == *tensor && r.op == op).map(|r| r.sharing)
    }
}

/// Distribution of iterations among threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Parallel {
    /// Scheduling kind.
    pub distribution: Distribution,
    /// Number of iterations per chunk (`Guided`: the minimum; `Positions`: the minimum number of positions worth
    /// sharing).
    pub chunk: Option<u32>,
    /// Maximum trip count at which a single thread runs the whole loop.
    pub above: Option<u64>,
}

impl Parallel {
    /// Default minimum number of positions that threads share, without and with an inner loop at each position: a few
    /// microseconds of work.
    pub const POSITIONS: [i64; 2] = [8192, 2048];
}

/// Scheduling kind of a parallel loop, as in OpenMP, or by stored positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Distribution {
    /// Equal shares, fixed when the loop starts.
    #[default]
    Static,
    /// Next chunk to whichever thread is idle.
    Dynamic,
    /// Next chunk to whichever thread is idle, in decreasing sizes.
    Guided,
    /// Consecutive iterations with equal numbers of stored positions of structured tensors, fixed when the loop starts.
    /// Only logical programs have such loops: lowering cuts them into parts (`structured::lower`). `chunk` is the
    /// minimum number of positions that threads share.
    Positions,
}

impl Distribution {
    /// All scheduling kinds.
    pub const ALL: [Distribution; 4] =
        [Distribution::Static, Distribution::Dynamic, Distribution::Guided, Distribution::Positions];

    /// Returns the name in schedules and in OpenMP.
    pub fn name(self) -> &'static str {
        match self {
            Distribution::Static => "static",
            Distribution::Dynamic => "dynamic",
            Distribution::Guided => "guided",
            Distribution::Positions => "positions",
        }
    }
}

/// Vectorisation of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Vectorize {
    /// Number of lanes; `None` for that of the machine.
    pub width: Option<u32>,
}

/// Reduction that updates one element in several iterations of a loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reduction {
    /// Target.
    pub tensor: Symbol,
    /// Operator.
    pub op: ReduceOp,
    /// Synchronisation.
    pub sharing: Sharing,
}

/// Synchronisation of reductions that update the same element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sharing {
    /// Every thread (or vector lane) reduces into partial results of its own, which are combined at the end.
    Partial,
    /// Every update is atomic.
    Atomic,
}

/// Piece of a [`Message`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MessagePart {
    /// Literal text.
    Text(String),
    /// Value when the program stops.
    Value(Expr),
}

/// Message of a failed assertion: text with values in it, written as an f-string in a program (`f"{n} faces"`).
pub type Message = Vec<MessagePart>;

/// Piece of the line that a [`StmtKind::Print`] writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PrintPart {
    /// Literal text.
    Text(String),
    /// Value of an expression.
    Value(Expr),
    /// Elements of a tensor, in brackets.
    Tensor {
        /// Tensor.
        tensor: Symbol,
        /// Leading indices (i64) of the printed subtensor. On flat buffers, the offset of its first element.
        at: Vec<Expr>,
        /// Sizes of the remaining dimensions (i64), which give the printed shape.
        shape: Vec<Expr>,
    },
}

/// Origin of an assertion, which determines the error code that a caller sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AssertKind {
    /// The program: an `assert`, or sizes that must agree.
    Program,
    /// Bounds check of an index (made by lowering).
    Index,
    /// Check that a format can hold an element (made by lowering).
    Storage,
    /// Check that an operation has a value: division by zero, a cast of NaN (made by lowering).
    Arithmetic,
    /// Check that a value is finite (made by `taffeta_analysis::pass::check_finite`). These checks are never moved, so
    /// that the first one to fail is the first in program order.
    Finite,
}

/// Routines on flat arrays, by which structured lowering assembles storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Routine {
    /// `grow(length, array, …, least)`: makes the arrays, at least one, at least `least` elements long and keeps their
    /// contents. `length`, a scalar, is the shape of all of them, and holds the new length afterwards: that of before if
    /// it suffices, else at least twice as much.
    Grow,
    /// `fit(length, array, …, exact)`: makes the arrays exactly that long, and sets `length`.
    Fit,
    /// `sort(array, begin, end)`: sorts the elements from `begin` up to `end`, integers that are not negative, in
    /// ascending order. `sort(array, values, begin, end)` moves those of `values` with them; equal ones stay in order.
    Sort,
    /// `order(numbers, key, …, count)`: sets the first `count` elements of `numbers`, of type i64, to the numbers from
    /// 0 in the ascending order of their keys, integers that are not negative. The first key counts most, and numbers
    /// with equal keys stay in order.
    Order,
}

impl Routine {
    /// All routines.
    pub const ALL: [Routine; 4] = [Routine::Grow, Routine::Fit, Routine::Sort, Routine::Order];

    /// Returns the name in printed programs.
    pub fn name(self) -> &'static str {
        match self {
            Routine::Grow => "grow",
            Routine::Fit => "fit",
            Routine::Sort => "sort",
            Routine::Order => "order",
        }
    }

    /// Returns the number of operands that the routine takes.
    pub fn operands(self) -> usize {
        match self {
            Routine::Grow | Routine::Fit | Routine::Order => 1,
            Routine::Sort => 2,
        }
    }

    /// Returns the length of arrays after `grow`.
    pub fn grown(length: i64, least: i64) -> i64 {
        if least <= length { length } else { least.max(length.saturating_mul(2)) }
    }
}

/// Kinds of statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StmtKind {
    /// Sequence. No `Seq` is directly in a `Seq`; the empty one is `pass`.
    Seq(Vec<Stmt>),
    /// Declaration of a tensor that is alive in `body` only, with unspecified initial contents.
    VarDef {
        /// Declaration.
        tensor: Arc<Tensor>,
        /// Scope.
        body: Stmt,
    },
    /// Loop.
    For {
        /// Iterator, bound in the body.
        iter: Symbol,
        /// Iteration space.
        extent: Extent,
        /// Execution properties.
        props: LoopProps,
        /// Body, executed once per value.
        body: Stmt,
    },
    /// Branch on a `bool`.
    If {
        /// Condition.
        cond: Expr,
        /// Statement executed if the condition holds.
        then: Stmt,
        /// Statement executed otherwise.
        otherwise: Option<Stmt>,
    },
    /// Store to an element. The value has the tensor's type, indices are i64.
    Store {
        /// Tensor.
        tensor: Symbol,
        /// Indices, one per dimension.
        indices: Vec<Access>,
        /// Stored value.
        value: Expr,
    },
    /// Combination of an element with a value. Reductions of one operator into one element commute.
    ReduceTo {
        /// Tensor.
        tensor: Symbol,
        /// Indices, one per dimension.
        indices: Vec<Access>,
        /// Operator.
        op: ReduceOp,
        /// Value combined with the element.
        value: Expr,
    },
    /// Assertion that stops the program with the message if the condition does not hold.
    Assert {
        /// Condition.
        cond: Expr,
        /// Message, shown with the statement's location.
        message: Message,
        /// Origin of the assertion.
        kind: AssertKind,
    },
    /// Output of a line made of the parts; a print has no other effect.
    Print {
        /// Parts of the line.
        parts: Vec<PrintPart>,
    },
    /// Condition that holds here. Analyses may use it; the interpreter checks it, generated code does not.
    Assume {
        /// Condition.
        cond: Expr,
    },
    /// Call of a run-time routine (made by structured lowering alone).
    Call {
        /// Routine.
        routine: Routine,
        /// Tensors that the routine may read and write, as many as it takes.
        tensors: Vec<Symbol>,
        /// Operands (i64), as many as it takes.
        operands: Vec<Expr>,
    },
    /// Loop while the condition holds (made by structured lowering alone).
    While {
        /// Condition.
        cond: Expr,
        /// Body.
        body: Stmt,
    },
}

/// Shared statement with an id and an origin.
#[derive(Clone, Debug)]
pub struct Stmt(Arc<StmtNode>);

#[derive(Debug)]
struct StmtNode {
    id: StmtId,
    origin: Origin,
    kind: StmtKind,
    /// Bloom filter: union of the bits of this id and those of all statements inside.
    bits: u64,
    /// Bloom filter of the tensors in [`Stmt::writes`].
    written: u64,
    /// Cached result of [`Stmt::writes`]; loops use that of their body.
    writes: OnceLock<FxHashSet<Symbol>>,
}

impl StmtNode {
    fn new(id: StmtId, kind: StmtKind, origin: Origin) -> StmtNode {
        let bits = kind.inside().fold(id.bit(), |bits, s| bits | s.0.bits);
        let own = kind.writes_itself().iter().fold(0, |bits, t| bits | bit(t));
        let written = kind.inside().fold(own, |bits, s| bits | s.0.written);
        StmtNode { id, origin, kind, bits, written, writes: OnceLock::new() }
    }
}

/// Returns a tensor's bit in the Bloom filter behind [`Stmt::writes_to`].
fn bit(tensor: &Symbol) -> u64 {
    1 << (tensor.id() % 64)
}

impl StmtKind {
    /// Returns the tensors that a statement writes by itself, not by statements inside it. A declaration makes the
    /// contents unspecified each time it is reached.
    fn writes_itself(&self) -> &[Symbol] {
        match self {
            StmtKind::Store { tensor, .. } | StmtKind::ReduceTo { tensor, .. } => std::slice::from_ref(tensor),
            StmtKind::VarDef { tensor, .. } => std::slice::from_ref(&tensor.symbol),
            StmtKind::Call { tensors, .. } => tensors,
            _ => &[],
        }
    }
}

impl PartialEq for Stmt {
    /// Compares trees with the same symbols, ignoring ids and origins. See [`crate::func::same`] for programs that
    /// differ only in symbols.
    fn eq(&self, other: &Stmt) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.kind == other.0.kind
    }
}
impl Eq for Stmt {}

impl Stmt {
    /// Creates a statement with a fresh id.
    pub fn new(kind: StmtKind, origin: Origin) -> Stmt {
        Stmt(Arc::new(StmtNode::new(StmtId::fresh(), kind, origin)))
    }

    /// Replaces the kind, keeping id and origin, for edits that preserve the statement's identity.
    #[must_use]
    pub fn with_kind(&self, kind: StmtKind) -> Stmt {
        Stmt(Arc::new(StmtNode::new(self.0.id, kind, self.0.origin.clone())))
    }

    /// Returns the kind of the node, with its operands.
    pub fn kind(&self) -> &StmtKind {
        &self.0.kind
    }

    /// Returns the id.
    pub fn id(&self) -> StmtId {
        self.0.id
    }

    /// Returns whether this may be or contain the statement with that id; `false` rules it out without a walk.
    pub fn may_hold(&self, id: StmtId) -> bool {
        self.0.bits & id.bit() != 0
    }

    /// Returns the tensors that this statement may write, including those it declares. A run-time routine may
    /// write all of its tensors. Every node caches the result, and so do the bodies of the loops inside: after an
    /// edit, only the path to it is recomputed.
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

    /// Returns whether [`Stmt::writes`] contains a tensor. Of the statements inside, only bodies of loops collect their
    /// sets, so the answers for a chain of declarations cost no set each.
    pub fn writes_to(&self, tensor: &Symbol) -> bool {
        if self.0.written & bit(tensor) == 0 {
            return false;
        }
        match (self.0.writes.get(), self.kind()) {
            (Some(known), _) => known.contains(tensor),
            (_, StmtKind::For { body, .. } | StmtKind::While { body, .. }) => body.writes().contains(tensor),
            (_, kind) => kind.writes_itself().contains(tensor) || kind.inside().any(|s| s.writes_to(tensor)),
        }
    }

    fn add_writes_inside(&self, all: &mut FxHashSet<Symbol>) {
        all.extend(self.kind().writes_itself().iter().cloned());
        self.kind().inside().for_each(|s| s.add_writes(all));
    }

    /// Returns the origin.
    pub fn origin(&self) -> &Origin {
        &self.0.origin
    }

    /// Returns whether both are the same node in memory.
    pub fn same_node(&self, other: &Stmt) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Builds a sequence: splices nested sequences, and returns a single statement as it is.
    pub fn seq(stmts: impl IntoIterator<Item = Stmt>, origin: Origin) -> Stmt {
        match <[Stmt; 1]>::try_from(Stmt::spliced(stmts)) {
            Ok([one]) => one,
            Err(flat) => Stmt::new(StmtKind::Seq(flat), origin),
        }
    }

    /// Returns the statements with nested sequences spliced.
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

    /// Creates a statement that does nothing.
    pub fn nop() -> Stmt {
        Stmt::new(StmtKind::Seq(Vec::new()), Origin::none())
    }

    /// Returns whether this is the empty sequence.
    pub fn is_nop(&self) -> bool {
        matches!(self.kind(), StmtKind::Seq(v) if v.is_empty())
    }

    /// Returns whether this statement contains the declaration of a tensor whose format is not dense.
    pub fn declares_structured(&self) -> bool {
        self.any(&mut |s| matches!(s.kind(), StmtKind::VarDef { tensor, .. } if !tensor.format.is_dense()))
    }
}
