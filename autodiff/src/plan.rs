//! Choice of the residuals to keep, within a budget of memory.
//!
//! Without a budget, `recompute_policy` chooses the cheaper way for each tensor. With one, the sizes of a run give the
//! peak ([`memory::peak`] of the gradient), and as long as that is too high
//! 1. taped tensors are recomputed instead, in ascending order of operations per byte;
//! 2. the loop with the most bytes is cut into segments that are recomputed from checkpoints (`checkpointing`), in one,
//!    two, … levels.
//!
//! With `n` checkpoints of `C` bytes at each of `r` levels, and `S` iterations of `W` bytes in the innermost segment,
//! `N = n^r S`, and `r n C + S W` is least at `n C = S W`, where both are `λ = (N C^r W)^(1/(r+1))`. Each level runs
//! the loop's forward pass once more. (Griewank's binomial plan recomputes fewer steps for the same memory by segments
//! of different lengths, which one loop nest with known bounds does not have.)

use crate::custom_vjp::Calls;
use crate::data::{BackwardInfo, Decision, Plan, RecomputeScope, Residual};
use crate::memory;
use crate::program::{self, Derived};
use crate::request::Request;
use crate::{checkpointing, cleanup, copies, patterns};
use rustc_hash::FxHashSet;
use std::sync::Arc;
use taffeta_analysis::query::depend::Dependences;
use taffeta_analysis::query::effects;
use taffeta_analysis::query::reference::{Reference, Use};
use taffeta_analysis::tree;
use taffeta_ast::bytes::amount;
use taffeta_ast::selector;
use taffeta_ast::{Diagnostic, Diagnostics, Extent, Func, Stmt, StmtId, StmtKind, Symbol, Tensor, print};

/// Maximum number of checkpoint levels.
const MAX_LEVELS: u32 = 6;
/// Maximum number of loops cut into segments.
const MAX_LOOPS: usize = 8;

/// Gradient with its residuals and memory.
pub(crate) struct Planned {
    pub func: Func,
    /// Gradient before its clean-up: the forward pass stands before the backward pass.
    pub whole: Func,
    /// Facts about `whole`.
    pub info: BackwardInfo,
    /// Residuals of the backward pass.
    pub residuals: Vec<Residual>,
    /// Peak bytes of local tensors; the unknown quantities, if the peak depends on some.
    pub peak: Result<u64, Vec<String>>,
    /// Changes made for the budget.
    pub notes: Vec<String>,
}

/// Plans the gradient within its budget, if it has one; `separate` is that of [`Plan`]. `finish` turns a gradient into
/// the requested form, and returns the bytes that it takes besides the local tensors. If the sum exceeds the budget,
/// the gradient is planned again with that much less.
pub(crate) fn run<T>(
    request: &Request<'_>,
    calls: &Calls,
    separate: bool,
    finish: &dyn Fn(Planned) -> Result<(T, u64), Diagnostics>,
) -> Result<T, Diagnostics> {
    let task = Task { request, calls, separate };
    let planned = task.planned(request.memory)?;
    let Some(budget) = request.memory else { return Ok(finish(planned)?.0) };
    let bytes = |planned: &Planned| planned.peak.clone().unwrap_or(0);
    let peak = bytes(&planned);
    let (made, besides) = finish(planned)?;
    if peak.saturating_add(besides) <= budget {
        return Ok(made);
    }
    let copies = format!("{} of the budget are copies that outlive the forward pass", amount(besides));
    let noted = |d: Diagnostics| Diagnostics(d.0.into_iter().map(|d| d.note(copies.clone())).collect());
    let planned = task.planned(Some(budget.saturating_sub(besides))).map_err(noted)?;
    let peak = bytes(&planned);
    let (made, besides) = finish(planned)?;
    match peak.saturating_add(besides) {
        bytes if bytes > budget => Err(beyond(request, bytes, budget).into()),
        _ => Ok(made),
    }
}

/// Gradient to plan.
struct Task<'a, 'r> {
    request: &'a Request<'r>,
    calls: &'a Calls,
    separate: bool,
}

impl Task<'_, '_> {
    fn planned(&self, budget: Option<u64>) -> Result<Planned, Diagnostics> {
        let plan = Plan { separate: self.separate, ..Plan::default() };
        let first = Attempt { func: program::named(self.request, self.calls), plan, notes: Vec::new() };
        let mut best = first.made(self)?;
        let Some(budget) = budget else { return Ok(best) };
        let mut attempt = first;
        if best.peak.as_ref().map_err(|missing| unknown(self.request, missing))? > &budget {
            best = recompute(self, &mut attempt, best, budget)?;
        }
        let mut cut = FxHashSet::default();
        while best.peak.as_ref().is_ok_and(|b| *b > budget) && cut.len() < MAX_LOOPS {
            let Some(l) = largest(self, &attempt, &best.residuals, &cut) else { break };
            cut.insert(l);
            best = segmented(self, &mut attempt, best, l, budget)?;
        }
        match best.peak {
            Ok(bytes) if bytes > budget => Err(too_much(self.request, &best, bytes, budget).into()),
            _ => Ok(best),
        }
    }
}

/// Form of the program, with a plan for it.
#[derive(Clone)]
struct Attempt {
    func: Func,
    plan: Plan,
    notes: Vec<String>,
}

impl Attempt {
    fn made(&self, task: &Task<'_, '_>) -> Result<Planned, Diagnostics> {
        let sizes = &task.request.sizes;
        let mut plan = self.plan.clone();
        loop {
            let Derived { func: whole, info, mut residuals } =
                program::run(task.request, task.calls, &self.func, &plan)?;
            let func = cleanup::run(&whole, &info);
            let patterns = patterns::find(&func);
            let known = plan.scattered.len();
            for r in residuals.iter_mut().filter(|r| r.scope == RecomputeScope::Program) {
                let scattered = patterns.scattered.iter().find(|(t, _)| *t == r.kept.symbol);
                if let Some((_, of)) = scattered.filter(|_| r.decision == Decision::Tape) {
                    plan.scattered.insert(r.tensor.symbol.clone(), of.clone());
                }
                if let Some(of) = patterns.of(&r.kept.symbol) {
                    r.why.push_str(&format!("; only elements that `{of}` stores"));
                }
            }
            if plan.scattered.len() > known {
                continue;
            }
            let [whole, func] = [whole, func].map(|f| copies::filled(&patterns.apply(&f), &residuals));
            residuals.iter_mut().for_each(|r| r.amount = memory::number(&r.bytes(), sizes));
            let peak = memory::peak(&func, sizes);
            return Ok(Planned { func, whole, info, residuals, peak, notes: self.notes.clone() });
        }
    }
}

/// Recomputes taped tensors, cheapest first, until the gradient fits or no tape is left.
fn recompute(task: &Task<'_, '_>, attempt: &mut Attempt, best: Planned, budget: u64) -> Result<Planned, Diagnostics> {
    let taped = |h: &&Residual| h.decision == Decision::Tape;
    let mut tapes: Vec<(f64, u64, Symbol)> = Vec::new();
    for h in best.residuals.iter().filter(taped) {
        let bytes = h.amount.unwrap_or(0);
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
            next.plan.recomputed.insert(t);
            over = over.saturating_sub(bytes);
        }
        let made = next.made(task)?;
        // Recomputation may need more memory than it saves.
        if made.peak.as_ref().is_ok_and(|b| *b < peak) {
            (best, *attempt) = (made, next);
        }
    }
    Ok(best)
}

/// Returns the loop with the most bytes of versions, each residual counting for the outermost of its loops that may be
/// cut. Not cut are loops in `not`, loops over segments, and loops in calls with custom gradients.
fn largest(task: &Task<'_, '_>, attempt: &Attempt, residuals: &[Residual], not: &FxHashSet<StmtId>) -> Option<StmtId> {
    let mut loops: Vec<(StmtId, u64)> = Vec::new();
    let whole = |l: &StmtId| not.contains(l) || attempt.plan.segments.contains(l) || task.calls.contain(*l);
    for h in residuals.iter().filter(|h| h.scope == RecomputeScope::Program) {
        let Some(l) = h.loops.iter().find(|l| !whole(l)) else { continue };
        let bytes = h.amount.unwrap_or(0);
        match loops.iter_mut().find(|(x, _)| x == l) {
            Some((_, sum)) => *sum += bytes,
            None => loops.push((*l, bytes)),
        }
    }
    loops.into_iter().max_by_key(|(_, bytes)| *bytes).map(|(l, _)| l)
}

/// Cuts a loop into segments, in as many levels as it takes.
fn segmented(
    task: &Task<'_, '_>,
    attempt: &mut Attempt,
    best: Planned,
    l: StmtId,
    budget: u64,
) -> Result<Planned, Diagnostics> {
    let (from, mut best) = (attempt.clone(), best);
    let Some(mut cut) = Cut::new(task, &from, &best.residuals, l) else { return Ok(best) };
    for levels in 1..=MAX_LEVELS {
        // Discard a plan for which the number of values to keep is not known.
        let Ok(Some((next, made))) = cut.tried(task, &from, levels) else { break };
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

/// Loop to cut.
struct Cut {
    l: StmtId,
    /// Name in schedules.
    name: String,
    /// Trip count.
    steps: u64,
    /// Bytes per iteration.
    per_step: u64,
    /// Tensors that the loop overwrites and a later iteration reads.
    state: Vec<Arc<Tensor>>,
    /// Tensors that the loop overwrites and only the same iteration reads.
    scratch: Vec<Arc<Tensor>>,
}

impl Cut {
    fn new(task: &Task<'_, '_>, attempt: &Attempt, residuals: &[Residual], l: StmtId) -> Option<Cut> {
        let s = tree::find(&attempt.func.body, l)?;
        let StmtKind::For { extent: Extent::Range { .. }, .. } = s.kind() else { return None };
        let name = selector::called(&attempt.func, &s);
        let mut cut = Cut { l, name, steps: 0, per_step: 0, state: Vec::new(), scratch: Vec::new() };
        let mut bytes = 0;
        for h in residuals.iter().filter(|h| h.scope == RecomputeScope::Program && h.loops.contains(&l)) {
            let at = h.loops.iter().position(|x| *x == l)?;
            cut.steps = memory::number(&h.kept.shape[at], &task.request.sizes)?;
            bytes += h.amount.unwrap_or(0);
        }
        cut.per_step = bytes / cut.steps.max(1);
        cut.add(residuals.iter().filter(|h| h.loops.contains(&l)), &attempt.func, l, l);
        (cut.steps > 1).then_some(cut)
    }

    /// Adds the tensors that snapshots read, the loop overwrites, and that are declared around `outer` (the loop, or
    /// its outermost loop over segments) to the state or the scratch of the loop. Returns whether any were added.
    fn add<'h>(
        &mut self,
        residuals: impl Iterator<Item = &'h Residual>,
        func: &Func,
        l: StmtId,
        outer: StmtId,
    ) -> bool {
        let Some(s) = tree::find(&func.body, l) else { return false };
        let written = effects::writes(&s);
        let known = self.state.len() + self.scratch.len();
        for (t, loops) in residuals.flat_map(|h| &h.reads) {
            let outside = written.contains(&t.symbol) && !loops.contains(&outer);
            if !outside || self.state.iter().chain(&self.scratch).any(|k| k.symbol == t.symbol) {
                continue;
            }
            if is_scratch(func, &s, &t.symbol) { &mut self.scratch } else { &mut self.state }.push(t.clone());
        }
        self.state.len() + self.scratch.len() > known
    }

    /// Tries a number of levels. A recomputed segment may read further tensors that the loop overwrites: they become
    /// state too.
    fn tried(
        &mut self,
        task: &Task<'_, '_>,
        from: &Attempt,
        levels: u32,
    ) -> Result<Option<(Attempt, Planned)>, Diagnostics> {
        loop {
            let Some((next, outer)) = self.cut(task, from, levels) else { return Ok(None) };
            let made = next.made(task)?;
            let further = |h: &&Residual| h.loops.contains(&outer) && h.loops.last() != Some(&outer);
            if !self.add(made.residuals.iter().filter(further), &from.func, self.l, outer) {
                return Ok(Some((next, made)));
            }
        }
    }

    /// Cuts the loop into segments of segments; returns the outermost loop over segments too.
    fn cut(&self, task: &Task<'_, '_>, from: &Attempt, levels: u32) -> Option<(Attempt, StmtId)> {
        let bytes = |t: &Tensor| -> u64 {
            let dims = t.shape.iter().map(|d| memory::number(d, &task.request.sizes).unwrap_or(1));
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
            let made = checkpointing::run(&next.func, task.calls, l, length, &state, scratch)?;
            next.func = made.func;
            next.plan.segments.insert(made.outer);
            next.plan.states.extend(made.copies.iter().map(|t| t.symbol.clone()));
            outermost.get_or_insert(made.outer);
            (l, state, scratch) = (made.inner, made.copies, &[]);
            lengths.push(length.to_string());
        }
        let names: Vec<String> = self.state.iter().map(|t| format!("`{}`", t.symbol)).collect();
        next.notes.push(format!(
            "the loop `{}` runs in segments of {} iterations, recomputed from copies of {}",
            self.name,
            lengths.join(", of "),
            names.join(", "),
        ));
        Some((next, outermost?))
    }
}

/// Returns whether every iteration of a loop writes each element of a tensor before it reads it, and nothing outside of
/// the loop reads the tensor.
fn is_scratch(func: &Func, l: &Stmt, tensor: &Symbol) -> bool {
    if func.interface().any(|t| t.symbol == *tensor) {
        return false;
    }
    let dependences = Dependences::new(func);
    let outside = |r: &Reference| r.tensor == *tensor && r.kind != Use::Write && !r.site.inside(l.id());
    !dependences.references().iter().any(outside) && dependences.exposed_read(tensor, l).is_none()
}

/// Checks that a derivative without residuals fits in its budget: there is no other plan for it.
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
        format!("cannot tell whether the gradient fits in its memory budget without {}", missing.join(", ")),
    )
    .at(request.span)
    .help("give the sizes (`--size n=1000`), write constants in the program, or remove the budget")
    .into()
}

fn beyond(request: &Request<'_>, bytes: u64, budget: u64) -> Diagnostic {
    Diagnostic::new(
        "grad::memory",
        format!("the smallest gradient that was found takes {}, but the budget is {}", amount(bytes), amount(budget)),
    )
    .at(request.span)
    .help("raise the budget, or keep fewer values alive in the program")
}

fn too_much(request: &Request<'_>, best: &Planned, bytes: u64, budget: u64) -> Diagnostic {
    let mut d = beyond(request, bytes, budget);
    let mut largest: Vec<(u64, &Residual)> = best.residuals.iter().map(|h| (h.amount.unwrap_or(0), h)).collect();
    largest.sort_by_key(|(b, _)| std::cmp::Reverse(*b));
    for (bytes, h) in largest.iter().take(3).filter(|(b, _)| *b > 0) {
        let shape: Vec<String> = h.kept.shape.iter().map(print::expr).collect();
        let text = format!("`{}` takes {}: [{}]", h.kept.symbol, amount(*bytes), shape.join(", "));
        d = if h.span.is_none() { d.note(text) } else { d.label(h.span, text) };
    }
    d
}
