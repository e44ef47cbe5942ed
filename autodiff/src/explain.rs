//! What a gradient keeps, for people: a line for every tensor whose values the backward pass needs.

use crate::data::{Decision, Residual, bytes};
use crate::memory::{self, Sizes, number};
use crate::plan::Planned;
use taffeta_ast::bytes::amount;
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
    /// Of a tensor that is on a tape and could be computed again, or is computed again and could be on one: its number
    /// for [`crate::Request::flipped`].
    pub choice: Option<usize>,
    /// What it takes to compute an element: additions and other cheap operations; functions, roots and divisions.
    pub work: [f64; 2],
    /// Bytes of an element.
    pub element: usize,
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
    /// That the local tensors take much more memory than all inputs and results, if they do, and how that can be
    /// changed.
    pub excess: Option<Excess>,
}

/// Local tensors that take much more memory than all inputs and results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excess {
    /// What takes how much, for people.
    pub message: String,
    /// What makes it less.
    pub help: String,
}

/// Local tensors that take so many times as much as all inputs and results are worth a note.
const EXCESS: u64 = 8;
/// Bytes that are worth a note, where sizes are known.
const WORTH_A_NOTE: u64 = 16_000_000;
/// A guess of a size that is not known.
const USUAL_SIZE: i64 = 1000;

impl Row {
    /// Whether all values of the tensor are kept on a tape.
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

/// Whether a gradient takes much more memory than its inputs and results. Sizes that are not known are guessed to be
/// equal, so that what has more dimensions is seen to be larger.
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
        _ => format!(", of which {}", large.iter().map(|r| one(r)).collect::<Vec<_>>().join(", ")),
    };
    let message = match known {
        Some((local, given)) => {
            let (local, given) = (amount(*local), amount(given));
            format!("the local tensors of the gradient take {local}, and its inputs and results {given}{of}")
        }
        None => format!("the local tensors of the gradient take much more memory than its inputs and results{of}"),
    };
    let taped = planned.residuals.iter().any(|r| r.decision == Decision::Tape);
    let recompute = if taped { "`--tape none` computes again what is on tapes, and " } else { "" };
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
