//! What the modules of the backward pass hand to each other, as data alone: where values come from, what is kept for
//! them, and which plan that follows. Whoever decides about it stands in a module of its own.

use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;
use taffeta_ast::{Expr, Span, StmtId, Symbol, Tensor, poly};

/// The code whose forward run makes a tensor's values.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Home {
    /// All of the program, once.
    Program,
    /// The body of a loop, again in every iteration of the backward pass.
    Body(StmtId),
}

/// A tensor that stays alive for the backward pass.
#[derive(Clone)]
pub(crate) struct Kept {
    pub tensor: Arc<Tensor>,
    /// Loops that it has dimensions for, outermost first.
    pub loops: Vec<StmtId>,
}

/// What a snapshot holds.
#[derive(Clone)]
pub(crate) enum Saved {
    /// All elements of the tensor.
    Whole(Symbol),
    /// What the expression is before the anchor runs (in names of the program).
    Value(Expr),
    /// In which iteration of a loop the anchor, a reduction, has last changed its element: where the condition held. -1
    /// if in none.
    Last { cond: Expr, iteration: StmtId },
}

/// A copy that the forward run makes.
#[derive(Clone)]
pub(crate) struct Snapshot {
    pub tensor: Arc<Tensor>,
    pub loops: Vec<StmtId>,
    /// The statement before which it is made.
    pub anchor: StmtId,
    pub saved: Saved,
    pub home: Home,
}

/// Where the backward pass reads a value of the forward pass.
pub(crate) enum ValueSource {
    /// In a tensor that is kept, at the element's own indices.
    Kept(Kept),
    /// In a snapshot of the whole tensor, likewise; of one element, without indices.
    Snapshot(Snapshot),
}

/// Where a tensor that is declared in a loop is at home, and why.
#[derive(Clone)]
pub(crate) struct Choice {
    pub home: Home,
    /// The place of its declaration among those in loops, in the order of the text, where either would be right.
    pub number: Option<usize>,
    pub why: String,
}

/// How a tensor is undone.
#[derive(Clone)]
pub(crate) struct Inverted {
    /// What holds it in the backward pass: itself, or a copy of what the caller sees and of what comes on the tape of a
    /// pair.
    pub now: Arc<Tensor>,
    /// The loop in whose body it is undone first of all. Where there is none, each statement is undone in its turn.
    pub first_in: Option<StmtId>,
}

/// What differs from a gradient without a budget, in one program.
#[derive(Clone, Default)]
pub(crate) struct Plan {
    /// The backward pass is to be a program of its own: it leaves what it is given as it is, and may run again.
    pub separate: bool,
    /// Tensors that are computed again for want of memory.
    pub recomputed: FxHashSet<Symbol>,
    /// Tensors that are computed again since they are needed where a parameter is stored, and a tape would be dense;
    /// with that parameter.
    pub scattered: FxHashMap<Symbol, Symbol>,
    /// Loops over segments.
    pub segments: FxHashSet<StmtId>,
    /// Copies of the state in a segment.
    pub states: FxHashSet<Symbol>,
}

/// What is known of a gradient where it is made, for those who make it short or cut it in two.
#[derive(Default)]
pub(crate) struct BackwardInfo {
    /// Backward loops, with the ranges that run through the same values forwards.
    pub forwards: FxHashMap<StmtId, [Expr; 3]>,
    /// Adjoints that are set to 0, by which statements.
    pub zeros: Vec<(Symbol, StmtId)>,
    /// Statements that round what was collected in one tensor into another one.
    pub rounded: Vec<(Symbol, Arc<Tensor>, StmtId)>,
    /// Statements of the backward pass that no other one of it is around.
    pub backward: FxHashSet<StmtId>,
}

/// In which form values come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The tensor stays as it is: nothing overwrites it.
    Unchanged,
    /// All its values are kept.
    Tape,
    /// Its values are made again in the backward pass.
    Recompute,
    /// Copies are made of it before it is overwritten.
    Copies,
    /// Which iteration made an extremum is remembered.
    Marks,
    /// What the forward pass did to it is undone step by step.
    Inverted,
}

impl Decision {
    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            Decision::Unchanged => "stays",
            Decision::Tape => "tape",
            Decision::Recompute => "computed again",
            Decision::Copies => "copied",
            Decision::Marks => "marked",
            Decision::Inverted => "undone",
        }
    }
}

/// A tensor whose values the backward pass needs.
pub(crate) struct Residual {
    pub decision: Decision,
    /// [`Choice::number`].
    pub choice: Option<usize>,
    pub why: String,
    /// The tensor of the program.
    pub tensor: Arc<Tensor>,
    /// What it is kept in.
    pub kept: Arc<Tensor>,
    /// The loops that it has a version for in every iteration, outermost first.
    pub loops: Vec<StmtId>,
    /// Loops around its home: it is kept for one iteration of them.
    pub home: Home,
    /// What a copy reads.
    pub reads: Vec<(Arc<Tensor>, Vec<StmtId>)>,
    /// Operations that an element takes to make.
    pub operations: f64,
    /// The cheap ones among them, and the others, by number.
    pub work: [f64; 2],
    /// Bytes of all versions, where the sizes of a run are known.
    pub amount: Option<u64>,
    /// Where the tensor is written.
    pub span: Span,
}

impl Residual {
    /// How many versions there are, in sizes.
    pub fn versions(&self) -> Expr {
        product(&self.kept.shape[..self.loops.len()])
    }

    /// Bytes of all of them.
    pub fn bytes(&self) -> Expr {
        bytes(&self.kept)
    }
}

/// The bytes of a tensor.
pub(crate) fn bytes(t: &Tensor) -> Expr {
    product(&t.shape).times(&Expr::int(t.dtype.size() as i64))
}

fn product(dims: &[Expr]) -> Expr {
    poly::tidy(&dims.iter().fold(Expr::int(1), |a, b| a.times(b)))
}
