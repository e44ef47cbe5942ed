//! Data types shared by the modules of the backward pass: sources of values, residuals, and plans. Each decision is
//! made in a module of its own.

use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;
use taffeta_ast::{Expr, Span, StmtId, Symbol, Tensor, poly};

/// Recompute scope of a tensor: the code whose forward run produces its values.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum RecomputeScope {
    /// The whole program, once.
    Program,
    /// Body of a loop, again in every iteration of the backward pass.
    Body(StmtId),
}

/// Tensor that stays alive until the backward pass reads it.
#[derive(Clone)]
pub(crate) struct Kept {
    pub tensor: Arc<Tensor>,
    /// Loops for which the tensor has a leading dimension each, outermost first.
    pub loops: Vec<StmtId>,
}

/// Contents of a snapshot.
#[derive(Clone)]
pub(crate) enum Saved {
    /// All elements of the tensor.
    Whole(Symbol),
    /// Value of the expression before the anchor runs (in the program's names).
    Value(Expr),
    /// Last iteration of a loop in which the anchor, a reduction, changed its element, that is, in which the condition
    /// held; -1 if there is none.
    Last { cond: Expr, iteration: StmtId },
}

/// Record of a tensor, an element, a condition or an iteration number, which the forward pass makes for the backward
/// pass.
#[derive(Clone)]
pub(crate) struct Snapshot {
    pub tensor: Arc<Tensor>,
    pub loops: Vec<StmtId>,
    /// Statement before which the record is made.
    pub anchor: StmtId,
    pub saved: Saved,
    pub scope: RecomputeScope,
}

/// Place of a forward value in the backward pass.
pub(crate) enum ValueSource {
    /// Kept tensor, read at the element's own indices.
    Kept(Kept),
    /// Snapshot: one of a whole tensor is read at the element's own indices, one of a single element without indices.
    Snapshot(Snapshot),
}

/// Recompute scope of a tensor declared in a loop, with the reason.
#[derive(Clone)]
pub(crate) struct Choice {
    pub scope: RecomputeScope,
    /// Number of the tensor's declaration among those in loops, in the order of the text; `None` if the choice is
    /// forced.
    pub number: Option<usize>,
    pub why: String,
}

/// Inversion of a tensor.
#[derive(Clone)]
pub(crate) struct Inverted {
    /// Tensor that holds the values in the backward pass: the tensor itself, or a copy of it if the caller sees it or
    /// the tape of a pair carries it.
    pub now: Arc<Tensor>,
    /// Loop whose body begins with the inversion of a whole iteration; without one, each statement is inverted in its
    /// turn.
    pub first_in: Option<StmtId>,
}

/// Choices that depart from the default gradient: for a separate backward pass, for structured parameters, and for a
/// memory budget.
#[derive(Clone, Default)]
pub(crate) struct Plan {
    /// Whether the backward pass is a separate program: it leaves its inputs unchanged, and may run again.
    pub separate: bool,
    /// Tensors recomputed for lack of memory.
    pub recomputed: FxHashSet<Symbol>,
    /// Tensors that are needed only where a structured parameter is stored, each with that parameter. They are
    /// recomputed, since their tapes would be dense.
    pub scattered: FxHashMap<Symbol, Symbol>,
    /// Loops over segments.
    pub segments: FxHashSet<StmtId>,
    /// Copies of the loop state, on which a segment runs.
    pub states: FxHashSet<Symbol>,
}

/// Facts about a generated gradient, for the modules that simplify it or cut it in two.
#[derive(Default)]
pub(crate) struct BackwardInfo {
    /// Backward loops, with the ranges that visit the same values in forward order.
    pub forwards: FxHashMap<StmtId, [Expr; 3]>,
    /// Adjoints that are initialised to 0, each with the statement that initialises it.
    pub zeros: Vec<(Symbol, StmtId)>,
    /// Accumulators, the tensors that they are rounded into, and the statements that round.
    pub rounded: Vec<(Symbol, Arc<Tensor>, StmtId)>,
    /// Outermost statements of the backward pass.
    pub backward: FxHashSet<StmtId>,
}

/// Mechanism that recovers a tensor's forward values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The tensor itself: nothing overwrites it.
    Unchanged,
    /// Tape of all values of the tensor.
    Tape,
    /// Recomputation of the tensor's values in the backward pass.
    Recompute,
    /// Snapshots of the tensor, made before it is overwritten.
    Copies,
    /// Record of the iteration that produced an extremum.
    Marks,
    /// Inversion of the forward updates, step by step.
    Inverted,
}

impl Decision {
    /// Returns the name of the mechanism in messages.
    pub fn name(self) -> &'static str {
        match self {
            Decision::Unchanged => "stays",
            Decision::Tape => "tape",
            Decision::Recompute => "recomputed",
            Decision::Copies => "copied",
            Decision::Marks => "marked",
            Decision::Inverted => "inverted",
        }
    }
}

/// Tensor whose values the backward pass needs.
pub(crate) struct Residual {
    pub decision: Decision,
    /// Number of the tensor's declaration, as in [`Choice::number`].
    pub choice: Option<usize>,
    pub why: String,
    /// Tensor of the program.
    pub tensor: Arc<Tensor>,
    /// Tensor that holds its values.
    pub kept: Arc<Tensor>,
    /// Loops with a version for every iteration, outermost first.
    pub loops: Vec<StmtId>,
    /// Recompute scope; the values live for one run of that code.
    pub scope: RecomputeScope,
    /// Tensors that a snapshot reads, with the loops around their declarations.
    pub reads: Vec<(Arc<Tensor>, Vec<StmtId>)>,
    /// Operations to compute an element, weighted by cost.
    pub operations: f64,
    /// Numbers of cheap and of costly operations to compute an element.
    pub work: [f64; 2],
    /// Bytes of all versions, where the sizes of a run are known.
    pub amount: Option<u64>,
    /// First write of the tensor in the text.
    pub span: Span,
}

impl Residual {
    /// Returns the number of versions, as an expression over sizes.
    pub fn versions(&self) -> Expr {
        product(&self.kept.shape[..self.loops.len()])
    }

    /// Returns the bytes of all versions, as an expression over sizes.
    pub fn bytes(&self) -> Expr {
        bytes(&self.kept)
    }
}

/// Returns the bytes of a tensor, as an expression over sizes.
pub(crate) fn bytes(t: &Tensor) -> Expr {
    product(&t.shape).times(&Expr::int(t.dtype.size() as i64))
}

fn product(dims: &[Expr]) -> Expr {
    poly::tidy(&dims.iter().fold(Expr::int(1), |a, b| a.times(b)))
}
