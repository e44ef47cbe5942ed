//! What a gradient keeps, for people: a line for every tensor whose values the backward pass needs.

use crate::data::Residual;
use crate::memory::{self, Sizes};
use crate::plan::Planned;
use taffeta_ast::{Func, Span, print};

/// What is kept of one tensor.
#[derive(Clone, Debug)]
pub struct Row {
    /// The tensor of the program.
    pub tensor: String,
    /// What its values are kept in.
    pub kept: String,
    /// How many versions of it there are, in sizes.
    pub versions: String,
    /// Bytes of all versions, in sizes.
    pub bytes: String,
    /// The same as a number, where the sizes are known.
    pub amount: Option<u64>,
    /// `stays`, `tape`, `copied`, `marked`, or `computed again`.
    pub decision: &'static str,
    /// Why that was decided.
    pub why: String,
    /// Where the tensor is written first; none for what is given.
    pub span: Span,
}

/// What is kept for a backward pass.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// In the order in which the backward pass needs it.
    pub rows: Vec<Row>,
    /// What a budget of memory has changed.
    pub notes: Vec<String>,
    /// Bytes of all local tensors that are alive at one time; what is missing to tell, where it cannot be told.
    pub peak: Result<u64, Vec<String>>,
}

impl Explanation {
    pub(crate) fn nothing(func: &Func, sizes: &Sizes) -> Explanation {
        Explanation { rows: Vec::new(), notes: Vec::new(), peak: memory::peak(func, sizes) }
    }

    pub(crate) fn new(planned: &Planned) -> Explanation {
        let rows = planned.residuals.iter().map(row).collect();
        Explanation { rows, notes: planned.notes.clone(), peak: planned.peak.clone() }
    }
}

fn row(h: &Residual) -> Row {
    Row {
        tensor: h.tensor.symbol.to_string(),
        kept: h.kept.symbol.to_string(),
        versions: print::expr(&h.versions()),
        bytes: print::expr(&h.bytes()),
        amount: h.amount,
        decision: h.decision.name(),
        why: h.why.clone(),
        span: h.span,
    }
}
