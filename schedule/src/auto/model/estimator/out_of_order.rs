//! Overlap of iterations by out-of-order execution, as a part of the cost model: while a reduction waits for its
//! additions, the core executes the next iteration of the enclosing loop, if that is independent.
//!
//! ```text
//! for j in range(n):
//!     dot = 0.0
//!     for c in range(64):                  # unrolled to additions of 8 vectors: each waits for its predecessor,
//!         dot += q[c] * k[j, c]            # and meanwhile those of the next `j` are executed
//!     score[j] = dot
//! ```
//!
//! The iterations therefore take at least the time of their instructions, and at least the latency of one iteration
//! divided by the number of iterations in flight, which the reorder buffer bounds. This holds for straight-line code
//! alone: loop exits are mispredicted so often that little after them is executed ahead.

use crate::auto::model::access::Element;
use crate::auto::model::access::{AccessPattern, StrideClass};
use crate::auto::model::work::Work;
use crate::tree::Loop;
use rustc_hash::FxHashSet;
use taffeta_analysis::query::effects;
use taffeta_ast::{Expr, Stmt, StmtKind, Symbol};

/// Effective size of the reorder buffer in instructions: less than current processors have (224 to 512), since they
/// have fewer entries for vector instructions.
const REORDER_BUFFER_SIZE: f64 = 200.0;
/// Number of instructions of an exponential.
const EXPONENTIAL: f64 = 20.0;

/// Dependence chain of a reduction or a recurrence.
#[derive(Clone)]
pub(super) struct Chain {
    element: Element,
    /// Latency in nanoseconds.
    pub time: f64,
    /// Tensors read by the operands of the chain.
    reads: FxHashSet<Symbol>,
}

/// Stall of a loop, beyond the time of its instructions, because of chains.
#[derive(Clone)]
pub(super) struct Stall {
    pub chains: Vec<Chain>,
    pub time: f64,
}

/// Stalls and instructions that a loop passes to the enclosing loop.
#[derive(Clone, Default)]
pub(in crate::auto::model) struct LoopCost {
    /// Stalls, which the time of the loop excludes.
    pub(super) stalls: Vec<Stall>,
    /// Number of instructions executed.
    pub(super) instructions: f64,
}

impl LoopCost {
    /// Returns the total stall without overlap.
    pub(super) fn stall_time(&self) -> f64 {
        self.stalls.iter().map(|s| s.time).sum()
    }

    pub(super) fn add(&mut self, other: &LoopCost) {
        self.stalls.extend(other.stalls.iter().cloned());
        self.instructions += other.instructions;
    }

    /// Returns the time of all iterations of a loop around these stalls; `time` excludes the stalls.
    pub(super) fn overlapped(self, time: f64, l: &Loop, iterations: f64) -> f64 {
        if self.stalls.is_empty() {
            return time;
        }
        let written = effects::writes(&l.body);
        let is_independent = |s: &&Stall| s.chains.iter().all(|c| c.is_independent(l, &written));
        let independent: f64 = self.stalls.iter().filter(is_independent).map(|s| s.time).sum();
        let in_flight = (REORDER_BUFFER_SIZE * iterations / self.instructions.max(1.0)).max(1.0);
        time.max((time + independent) / in_flight) + self.stall_time() - independent
    }
}

impl Chain {
    pub(super) fn new(element: Element, time: f64, value: &Expr) -> Chain {
        Chain { element, time, reads: effects::loads(value) }
    }

    /// Adds the latency of another statement to the chain of the same element. Returns whether the element is the same.
    pub(super) fn lengthen(&mut self, element: &Element, time: f64, value: &Expr) -> bool {
        let same = self.element == *element;
        if same {
            self.time += time;
            self.reads.extend(effects::loads(value));
        }
        same
    }

    /// Returns whether the chain in an iteration of an enclosing loop is independent of values that earlier iterations
    /// have `written`.
    fn is_independent(&self, l: &Loop, written: &FxHashSet<Symbol>) -> bool {
        let (tensor, at) = &self.element;
        let (mut is_private, mut reads_written) = (at.iter().any(|e| effects::mentions(e, &[&l.iter])), false);
        l.body.walk(&mut |s: &Stmt| match s.kind() {
            StmtKind::VarDef { tensor: t, .. } => is_private |= t.symbol == *tensor,
            StmtKind::Store { tensor: t, indices, value } if t == tensor => {
                is_private |= indices.iter().map(|a| &a.index).eq(at);
                reads_written |= !effects::loads(value).is_disjoint(written);
            }
            _ => {}
        });
        is_private && !reads_written && self.reads.is_disjoint(written)
    }
}

/// Returns the number of instructions per execution of a statement; accesses in registers, and invariant ones, need
/// none.
pub(super) fn instructions(work: &Work, accesses: &[AccessPattern], lanes: f64) -> f64 {
    let stays = |a: &&AccessPattern| a.in_registers || a.last() == Some(StrideClass::None);
    let moved = accesses.iter().filter(|a| !stays(a)).count() as f64;
    (work.simple + work.divide + work.transcendental * EXPONENTIAL + moved) / lanes
}
