//! Which values are kept for the backward pass, so that a budget of memory is kept too.
//!
//! Without a budget, `homes` decides tensor by tensor what costs less. With one, the sizes of a run say what that takes
//! ([`memory::peak`] of the gradient), and as long as it is too much
//! 1. tensors are computed again that would be on a tape, first those whose bytes are worth the fewest operations;
//! 2. the loop with the most bytes is cut into segments that run again from checkpoints (`segments`), in one, two, …
//!    levels.
//!
//! With `n` checkpoints of `C` bytes at each of `r` levels, and `S` iterations of `W` bytes in the innermost segment,
//! `N = n^r S`, and `r n C + S W` is least where `n C = S W`: there both are `λ = (N C^r W)^(1/(r+1))`. Each level runs
//! the loop's forward pass once more. (Griewank's binomial plan takes fewer steps again for the same memory, by
//! segments of different lengths, which one loop nest with bounds that are known does not have.)

use crate::held::{Decision, Held};
use crate::memory::{self, Sizes};
use crate::program::{self, Derived};
use crate::tidy::{self, Made};
use crate::values::Home;
use crate::{Request, own, segments};
use rustc_hash::FxHashSet;
use std::sync::Arc;
use taffeta_analysis::query::depend::Dependences;
use taffeta_analysis::query::effects;
use taffeta_analysis::query::reference::{Reference, Use};
use taffeta_ast::{Diagnostic, Diagnostics, Extent, Func, Stmt, StmtId, StmtKind, Symbol, Tensor, print};

/// Levels of checkpoints, at most.
const MOST_LEVELS: u32 = 6;
/// Loops that are cut into segments, at most.
const MOST_LOOPS: usize = 8;

/// What differs from a gradient without a budget, in one program.
#[derive(Clone, Default)]
pub(crate) struct Plan {
    /// The backward pass is to be a program of its own: it leaves what it is given as it is, and may run again.
    pub apart: bool,
    /// Tensors that are computed again for want of memory.
    pub again: FxHashSet<Symbol>,
    /// Loops over segments.
    pub segments: FxHashSet<StmtId>,
    /// Copies of the state in a segment.
    pub states: FxHashSet<Symbol>,
}

/// A gradient, and what it takes.
pub(crate) struct Planned {
    pub func: Func,
    /// The same before it was made short: forward pass and backward pass stand one after the other.
    pub whole: Func,
    /// What is known of that.
    pub made: Made,
    /// What is kept for the backward pass.
    pub held: Vec<Held>,
    /// Bytes of local tensors; what is missing to tell, if it cannot be told.
    pub peak: Result<u64, Vec<String>>,
    /// What the budget has changed.
    pub notes: Vec<String>,
}

/// The gradient, within its budget if it has one; `apart` is that of [`Plan`].
pub(crate) fn run(request: &Request<'_>, apart: bool) -> Result<Planned, Diagnostics> {
    let plan = Plan { apart, ..Plan::default() };
    let first = Attempt { func: program::named(request), plan, notes: Vec::new() };
    let mut best = first.made(request)?;
    let Some(budget) = request.memory else { return Ok(best) };
    let mut attempt = first;
    if best.peak.as_ref().map_err(|missing| unknown(request, missing))? > &budget {
        best = again(request, &mut attempt, best, budget)?;
    }
    let mut cut = FxHashSet::default();
    while best.peak.as_ref().is_ok_and(|b| *b > budget) && cut.len() < MOST_LOOPS {
        let Some(l) = largest(&attempt, &best.held, &request.sizes, &cut) else { break };
        cut.insert(l);
        best = segmented(request, &mut attempt, best, l, budget)?;
    }
    match best.peak {
        Ok(bytes) if bytes > budget => Err(too_much(request, &best, bytes, budget).into()),
        _ => Ok(best),
    }
}

/// A form of the program, and a plan for it.
#[derive(Clone)]
struct Attempt {
    func: Func,
    plan: Plan,
    notes: Vec<String>,
}

impl Attempt {
    fn made(&self, request: &Request<'_>) -> Result<Planned, Diagnostics> {
        let Derived { func: whole, made, held } = program::run(request, &self.func, &self.plan)?;
        let func = tidy::run(&whole, &made);
        let peak = memory::peak(&func, &request.sizes);
        Ok(Planned { func, whole, made, held, peak, notes: self.notes.clone() })
    }

    fn bytes(&self, request: &Request<'_>, h: &Held) -> u64 {
        memory::number(&self.func, &h.bytes(), &request.sizes).unwrap_or(0)
    }
}

/// Computes tapes again, cheapest first, until it fits or all are.
fn again(request: &Request<'_>, attempt: &mut Attempt, best: Planned, budget: u64) -> Result<Planned, Diagnostics> {
    let taped = |h: &&Held| h.decision == Decision::Tape;
    let mut tapes: Vec<(f64, u64, Symbol)> = Vec::new();
    for h in best.held.iter().filter(taped) {
        let bytes = attempt.bytes(request, h);
        let elements = bytes as f64 / h.kept.dtype.size() as f64;
        tapes.push((h.operations * elements / bytes.max(1) as f64, bytes, h.tensor.symbol.clone()));
    }
    tapes.sort_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)));
    let mut best = best;
    let mut rest = tapes.into_iter().peekable();
    while rest.peek().is_some() {
        let Ok(peak) = best.peak else { break };
        let mut over = peak.saturating_sub(budget);
        if over == 0 {
            break;
        }
        let mut next = attempt.clone();
        while let Some((_, bytes, t)) = rest.next_if(|_| over > 0) {
            next.plan.again.insert(t);
            over = over.saturating_sub(bytes);
        }
        let made = next.made(request)?;
        // What is made again may have needed more than it saved.
        if made.peak.as_ref().is_ok_and(|b| *b < peak) {
            (best, *attempt) = (made, next);
        }
    }
    Ok(best)
}

/// The outermost loop that most bytes have a version for in every iteration. A call that has its own gradient stays in
/// one piece.
fn largest(attempt: &Attempt, held: &[Held], sizes: &Sizes, not: &FxHashSet<StmtId>) -> Option<StmtId> {
    let mut loops: Vec<(StmtId, u64)> = Vec::new();
    let pieces = own::bodies(&attempt.func.own_gradients);
    let whole = |l: &StmtId| not.contains(l) || attempt.plan.segments.contains(l) || pieces.contains(l);
    for h in held.iter().filter(|h| h.home == Home::Program) {
        let Some(l) = h.loops.iter().find(|l| !whole(l)) else { continue };
        let bytes = memory::number(&attempt.func, &h.bytes(), sizes).unwrap_or(0);
        match loops.iter_mut().find(|(x, _)| x == l) {
            Some((_, sum)) => *sum += bytes,
            None => loops.push((*l, bytes)),
        }
    }
    loops.into_iter().max_by_key(|(_, bytes)| *bytes).map(|(l, _)| l)
}

/// Cuts a loop into segments, in as many levels as it takes.
fn segmented(
    request: &Request<'_>,
    attempt: &mut Attempt,
    best: Planned,
    l: StmtId,
    budget: u64,
) -> Result<Planned, Diagnostics> {
    let (from, mut best) = (attempt.clone(), best);
    let Some(mut cut) = Cut::new(request, &from, &best.held, l) else { return Ok(best) };
    for levels in 1..=MOST_LEVELS {
        // Where it is no longer known how many values there are, this is no plan.
        let Ok(Some((next, made))) = cut.tried(request, &from, levels) else { break };
        let (Ok(new), Ok(old)) = (&made.peak, &best.peak) else { break };
        if new >= old {
            break;
        }
        let fits = *new <= budget;
        (best, *attempt) = (made, next);
        if fits {
            break;
        }
    }
    Ok(best)
}

/// A loop that is cut.
struct Cut {
    l: StmtId,
    iter: String,
    /// Iterations.
    steps: u64,
    /// Bytes that an iteration needs.
    per_step: u64,
    /// What it overwrites and reads in a later iteration.
    state: Vec<Arc<Tensor>>,
    /// What it overwrites and reads in the same iteration alone.
    scratch: Vec<Arc<Tensor>>,
}

impl Cut {
    fn new(request: &Request<'_>, attempt: &Attempt, held: &[Held], l: StmtId) -> Option<Cut> {
        let s = find(&attempt.func.body, l)?;
        let StmtKind::For { iter, extent: Extent::Range { .. }, .. } = s.kind() else { return None };
        let mut cut = Cut { l, iter: iter.to_string(), steps: 0, per_step: 0, state: Vec::new(), scratch: Vec::new() };
        let mut bytes = 0;
        for h in held.iter().filter(|h| h.home == Home::Program && h.loops.contains(&l)) {
            let at = h.loops.iter().position(|x| *x == l)?;
            cut.steps = memory::number(&attempt.func, &h.kept.shape[at], &request.sizes)?;
            bytes += attempt.bytes(request, h);
        }
        cut.per_step = bytes / cut.steps.max(1);
        cut.add(held.iter().filter(|h| h.loops.contains(&l)), &attempt.func, l, l);
        (cut.steps > 1).then_some(cut)
    }

    /// What copies read of what the loop overwrites and is declared around it (not in `outer`, which the loop is or has
    /// become) is state of the loop, or scratch. Whether there is more of it now.
    fn add<'h>(&mut self, held: impl Iterator<Item = &'h Held>, func: &Func, l: StmtId, outer: StmtId) -> bool {
        let Some(s) = find(&func.body, l) else { return false };
        let written = effects::writes(&s);
        let known = self.state.len() + self.scratch.len();
        for (t, loops) in held.flat_map(|h| &h.reads) {
            let outside = written.contains(&t.symbol) && !loops.contains(&outer);
            if !outside || self.state.iter().chain(&self.scratch).any(|k| k.symbol == t.symbol) {
                continue;
            }
            if is_scratch(func, &s, &t.symbol) { &mut self.scratch } else { &mut self.state }.push(t.clone());
        }
        self.state.len() + self.scratch.len() > known
    }

    /// With that many levels. What runs again in a segment may read further tensors that the loop overwrites: they are
    /// state too.
    fn tried(
        &mut self,
        request: &Request<'_>,
        from: &Attempt,
        levels: u32,
    ) -> Result<Option<(Attempt, Planned)>, Diagnostics> {
        loop {
            let Some((next, outer)) = self.cut(request, from, levels) else { return Ok(None) };
            let made = next.made(request)?;
            let further = |h: &&Held| h.loops.contains(&outer) && h.loops.last() != Some(&outer);
            if !self.add(made.held.iter().filter(further), &from.func, self.l, outer) {
                return Ok(Some((next, made)));
            }
        }
    }

    /// The loop in segments of segments; and the outermost loop over segments.
    fn cut(&self, request: &Request<'_>, from: &Attempt, levels: u32) -> Option<(Attempt, StmtId)> {
        let bytes = |t: &Tensor| -> u64 {
            let dims = t.shape.iter().map(|d| memory::number(&from.func, d, &request.sizes).unwrap_or(1));
            dims.product::<u64>() * t.dtype.size() as u64
        };
        let checkpoint = self.state.iter().map(|t| bytes(t)).sum::<u64>().max(1) as f64;
        let (steps, per_step, r) = (self.steps as f64, self.per_step.max(1) as f64, f64::from(levels));
        let each = (steps * checkpoint.powf(r) * per_step).powf(1.0 / (r + 1.0));
        let innermost = (each / per_step).round().max(1.0);
        let count = (steps / innermost).powf(1.0 / r).ceil().max(1.0);
        let mut next = from.clone();
        let (mut l, mut state, mut outermost) = (self.l, self.state.clone(), None);
        let mut scratch = &self.scratch[..];
        let mut lengths = Vec::new();
        for level in (0..levels).rev() {
            let length = (innermost * count.powf(f64::from(level))) as i64;
            let made = segments::run(&next.func, l, length, &state, scratch)?;
            next.func = made.func;
            next.plan.segments.insert(made.outer);
            next.plan.states.extend(made.copies.iter().map(|t| t.symbol.clone()));
            outermost.get_or_insert(made.outer);
            (l, state, scratch) = (made.inner, made.copies, &[]);
            lengths.push(length.to_string());
        }
        let names: Vec<String> = self.state.iter().map(|t| format!("`{}`", t.symbol)).collect();
        next.notes.push(format!(
            "the loop `{}` runs in segments of {} iterations, again from copies of {}",
            self.iter,
            lengths.join(", of "),
            names.join(", "),
        ));
        Some((next, outermost?))
    }
}

/// Whether every iteration of a loop writes all that it reads of the tensor, and nobody reads it outside of the loop.
fn is_scratch(func: &Func, l: &Stmt, tensor: &Symbol) -> bool {
    if func.interface().any(|t| t.symbol == *tensor) {
        return false;
    }
    let dependences = Dependences::new(func);
    let outside = |r: &Reference| r.tensor == *tensor && r.kind != Use::Write && !r.site.inside(l.id());
    !dependences.references().iter().any(outside) && dependences.exposed_read(tensor, l).is_none()
}

fn find(s: &Stmt, id: StmtId) -> Option<Stmt> {
    let mut found = None;
    s.walk(&mut |s| {
        if s.id() == id {
            found = Some(s.clone());
        }
    });
    found
}

/// Whether a derivative that keeps nothing fits in its budget: there is no other plan for it.
pub(crate) fn fits(request: &Request<'_>, peak: &Result<u64, Vec<String>>) -> Result<(), Diagnostics> {
    let Some(budget) = request.memory else { return Ok(()) };
    match peak {
        Err(missing) => Err(unknown(request, missing)),
        Ok(bytes) if *bytes > budget => Err(beyond(request, *bytes, budget).into()),
        Ok(_) => Ok(()),
    }
}

fn unknown(request: &Request<'_>, missing: &[String]) -> Diagnostics {
    Diagnostic::new(
        "grad::memory",
        format!("whether the gradient fits in its budget of memory cannot be told without {}", missing.join(", ")),
    )
    .at(request.span)
    .help("give the sizes (`--size n=1000`), write numbers in the program, or leave the budget out")
    .into()
}

pub(crate) fn beyond(request: &Request<'_>, bytes: u64, budget: u64) -> Diagnostic {
    Diagnostic::new(
        "grad::memory",
        format!(
            "the gradient takes {} in the thriftiest way that was found, and the budget is {}",
            crate::held::amount(bytes),
            crate::held::amount(budget)
        ),
    )
    .at(request.span)
    .help("raise the budget, or write the program so that fewer values of it are alive")
}

fn too_much(request: &Request<'_>, best: &Planned, bytes: u64, budget: u64) -> Diagnostic {
    let mut d = beyond(request, bytes, budget);
    let mut held: Vec<(u64, &Held)> =
        best.held.iter().map(|h| (memory::number(request.func, &h.bytes(), &request.sizes).unwrap_or(0), h)).collect();
    held.sort_by_key(|(b, _)| std::cmp::Reverse(*b));
    for (bytes, h) in held.iter().take(3).filter(|(b, _)| *b > 0) {
        let shape: Vec<String> = h.kept.shape.iter().map(print::expr).collect();
        let text = format!("`{}` takes {}: [{}]", h.kept.symbol, crate::held::amount(*bytes), shape.join(", "));
        d = if h.span.is_none() { d.note(text) } else { d.label(h.span, text) };
    }
    d
}
