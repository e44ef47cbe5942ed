//! Explanation of a gradient's residuals: one row for every tensor whose values the backward pass needs.

use crate::data::{Decision, Residual, bytes};
use crate::memory::{self, Sizes, number};
use crate::plan::Planned;
use taffeta_ast::bytes::amount;
use taffeta_ast::{Func, Span, print};

/// Residual of one tensor.
#[derive(Clone, Debug)]
pub struct Row {
    /// Tensor of the program.
    pub tensor: String,
    /// Tensor that holds its values.
    pub kept: String,
    /// Number of versions, in sizes.
    pub versions: String,
    /// Bytes of all versions, in sizes.
    pub bytes: String,
    /// Bytes of all versions as a number, where the sizes are known.
    pub amount: Option<u64>,
    /// Decision: `stays`, `tape`, `copied`, `marked`, `inverted` or `recomputed`.
    pub decision: &'static str,
    /// Reason for the decision.
    pub why: String,
    /// Number for [`crate::Request::flipped`], if the tensor may be toggled between a tape and recomputation.
    pub choice: Option<usize>,
    /// Operations to compute an element: additions and other cheap ones; functions, roots and divisions.
    pub work: [f64; 2],
    /// Bytes of an element.
    pub element: usize,
    /// First write of the tensor in the text; none for an input.
    pub span: Span,
}

/// Residuals and memory of a gradient.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// Kept tensors in the order of first need, then inverted ones by name, then snapshots in the order of first need.
    pub rows: Vec<Row>,
    /// Changes made for a memory budget.
    pub notes: Vec<String>,
    /// Peak bytes of the local tensors; the unknown quantities, if the peak depends on some.
    pub peak: Result<u64, Vec<String>>,
    /// Report, with a remedy, if the local tensors take much more memory than all inputs and results.
    pub excess: Option<Excess>,
}

/// Report of local tensors that take much more memory than all inputs and results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excess {
    /// Memory of the local tensors, and of inputs and results, and the largest residuals, for people.
    pub message: String,
    /// Remedy.
    pub help: String,
}

/// Minimum ratio of the local tensors' bytes to those of all inputs and results for a report.
const EXCESS: u64 = 8;
/// Minimum bytes of the local tensors for a report, where the sizes are known.
const WORTH_A_NOTE: u64 = 16_000_000;
/// Assumed value of an unknown size.
const USUAL_SIZE: i64 = 1000;

impl Row {
    /// Returns whether all values of the tensor are on a tape.
    pub fn is_taped(&self) -> bool {
        self.decision == Decision::Tape.name()
    }
}

impl Explanation {
    pub(crate) fn nothing(func: &Func, sizes: &Sizes) -> Explanation {
        Explanation { rows: Vec::new(), notes: Vec::new(), peak: memory::peak(func, sizes), excess: None }
    }

    pub(crate) fn new(planned: &Planned, sizes: &Sizes) -> Explanation {
        let rows = planned.residuals.iter().map(row).collect();
        let (notes, peak, excess) = (planned.notes.clone(), planned.peak.clone(), excess(planned, sizes));
        Explanation { rows, notes, peak, excess }
    }
}

/// Reports a gradient that takes much more memory than its inputs and results. Unknown sizes are assumed to be equal,
/// so that a tensor of more dimensions counts as larger.
fn excess(planned: &Planned, sizes: &Sizes) -> Option<Excess> {
    let func = &planned.func;
    let mut guessed = sizes.clone();
    let numbers = func.params.iter().map(|p| &p.tensor).filter(|t| t.ndim() == 0 && t.dtype.is_int());
    for name in func.sizes.iter().chain(numbers.map(|t| &t.symbol)) {
        guessed.entry(name.name().to_string()).or_insert(USUAL_SIZE);
    }
    let outside = |sizes: &Sizes| func.interface().try_fold(0u64, |sum, t| sum.checked_add(number(&bytes(t), sizes)?));
    let (local, given) = (memory::peak(func, &guessed).ok()?, outside(&guessed)?);
    let known = planned.peak.as_ref().ok().zip(outside(sizes));
    if local / EXCESS < given.max(1) || known.is_some_and(|(local, _)| *local < WORTH_A_NOTE) {
        return None;
    }
    let mut kept: Vec<(u64, &Residual)> =
        planned.residuals.iter().filter_map(|r| Some((number(&r.bytes(), &guessed)?, r))).collect();
    kept.sort_by_key(|(bytes, _)| std::cmp::Reverse(*bytes));
    let large: Vec<&Residual> = kept.iter().filter(|(b, _)| *b > given).map(|(_, r)| *r).take(3).collect();
    let one = |r: &Residual| match r.amount {
        Some(n) => format!("`{}` {}", r.kept.symbol, amount(n)),
        None => format!("`{}` {} bytes", r.kept.symbol, print::expr(&r.bytes())),
    };
    let of = match large[..] {
        [] => String::new(),
        _ => format!("; largest: {}", large.iter().map(|r| one(r)).collect::<Vec<_>>().join(", ")),
    };
    let message = match known {
        Some((local, given)) => {
            let (local, given) = (amount(*local), amount(given));
            format!("the local tensors of the gradient take {local}, its inputs and results {given}{of}")
        }
        None => format!("the local tensors of the gradient take much more memory than its inputs and results{of}"),
    };
    let taped = planned.residuals.iter().any(|r| r.decision == Decision::Tape);
    let recompute = if taped { "`--tape none` recomputes the taped values, and " } else { "" };
    Some(Excess { message, help: format!("{recompute}`--memory 100MB` keeps the gradient within a budget") })
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
        choice: h.choice,
        work: h.work,
        element: h.kept.dtype.size(),
        span: h.span,
    }
}
