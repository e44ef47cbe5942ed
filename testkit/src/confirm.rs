//! Refusals against brute force: the program runs at the sizes of the witness, with a trace of every instance's
//! accesses. Both instances must occur, the source first, and access the named element, one of them by a write.

use taffeta_analysis::query::depend::Dependence;
use taffeta_analysis::query::reference::{Reference, Use};
use taffeta_ast::interp::Inputs;
use taffeta_ast::random::trace::{Event, Fault, Touch, trace};
use taffeta_ast::{Expr, ExprKind, Func, Symbol, print};
use taffeta_schedule::Refusal;

/// Maximum size of a witness that is run, and maximum number of events of a run.
const LARGEST: i64 = 24;
const MAX_EVENTS: usize = 60_000;

/// Verdict of a run on a witness.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Seen {
    /// Both instances occur in this order, and access the element.
    Confirmed,
    /// The dependence rests on values that the program reads or on its storage, or is merely not excluded: no run has
    /// to show it.
    Conservative,
    /// The dependence is in the program after the step, which the refusal has discarded.
    After,
    /// The run stops before the instances, at a subscript out of range or an assertion, or would be too long.
    Stopped,
    /// The dependence does not occur.
    Wrong(String),
}

impl Seen {
    /// Returns the verdict in one word.
    pub fn word(&self) -> &'static str {
        match self {
            Seen::Confirmed => "confirmed",
            Seen::Conservative => "conservative",
            Seen::After => "of the program after the step",
            Seen::Stopped => "not reached",
            Seen::Wrong(_) => "wrong",
        }
    }
}

/// Returns the verdict of a run at the witness' sizes on a refusal, if it names a dependence.
pub fn seen(func: &Func, refusal: &Refusal, inputs: &dyn Fn(&[i64]) -> Inputs) -> Option<Seen> {
    let d = refusal.dependence.as_ref()?;
    if refusal.condition == Refusal::ORDER_FREE || ![&d.source, &d.sink].iter().all(|r| stands(func, r)) {
        return Some(Seen::After);
    }
    // A run traces elements, not stored values that stand for several.
    let own = d.source.declared.format.is_injective();
    if !own || !d.witness.exact || d.witness.element.is_none() {
        return Some(Seen::Conservative);
    }
    if d.witness.assumed.is_empty() {
        return Some(run(func, d, &mut |sizes| inputs(sizes)));
    }
    // With inputs that meet the assumptions, the dependence may occur; but the program may have written there before.
    let mut made = true;
    let seen = run(func, d, &mut |sizes| {
        let mut inputs = inputs(sizes);
        made = d.witness.assumed.iter().fold(true, |made, (e, v)| set(func, &mut inputs, e, *v) && made);
        inputs
    });
    Some(if made && seen == Seen::Confirmed { seen } else { Seen::Conservative })
}

/// Sets an element of a parameter to the value that a witness assumes.
fn set(func: &Func, inputs: &mut Inputs, element: &Expr, to: i64) -> bool {
    let ExprKind::Load(t, indices) = element.kind() else { return false };
    let Some(k) = func.params.iter().position(|p| p.tensor.symbol == *t) else { return false };
    let value = &mut inputs.params[k];
    let at: Option<Vec<i64>> = indices.iter().map(|a| a.index.as_int()).collect();
    let Some(at) = at.filter(|at| at.len() == value.shape().len()) else { return false };
    let inside = at.iter().zip(value.shape()).all(|(i, n)| (0..*n as i64).contains(i));
    let Some(to) = Expr::int(to).cast(value.dtype()).as_literal().filter(|_| inside) else { return false };
    let place = at.iter().zip(value.shape()).fold(0, |place, (i, n)| place * n + *i as usize);
    value.data_mut().set(place, to);
    true
}

/// Returns whether the program has the statement of a reference, with the same text.
fn stands(func: &Func, r: &Reference) -> bool {
    let mut found = false;
    let stmt = &r.site.stmt;
    func.body.walk(&mut |s| found |= s.id() == stmt.id() && print::stmt(s) == print::stmt(stmt));
    found
}

fn run(func: &Func, d: &Dependence, inputs: &mut dyn FnMut(&[i64]) -> Inputs) -> Seen {
    let w = &d.witness;
    let size = |s: &Symbol| w.sizes.iter().find(|(x, _)| x == s).map(|(_, v)| *v);
    let sizes: Option<Vec<i64>> = func.sizes.iter().map(size).collect();
    let Some(sizes) = sizes.filter(|v| v.iter().all(|s| *s <= LARGEST)) else { return Seen::Stopped };
    let trace = trace(func, &inputs(&sizes), Fault::Stops, MAX_EVENTS);
    let events = |r: &Reference, at: &[(Symbol, i64)]| -> Vec<&Event> {
        let fits = |e: &&Event| {
            e.instance.stmt == r.site.stmt.id()
                && e.tensor == r.tensor
                && same_use(e.touch, r.kind)
                && e.instance.loops.len() == at.len()
                && e.instance.loops.iter().zip(at).all(|(l, (_, v))| l.value == *v)
                && w.element.as_ref() == Some(&e.element)
        };
        trace.events.iter().filter(fits).collect()
    };
    let (sources, sinks) = (events(&d.source, &w.source), events(&d.sink, &w.sink));
    // An instance reads before it writes.
    let before = |a: &Event, b: &Event| {
        a.time < b.time || (a.time == b.time && a.touch == Touch::Read && b.touch != Touch::Read)
    };
    let ordered = |a: &&Event| sinks.iter().any(|b| a.allocation == b.allocation && before(a, b));
    // A declaration that would leave its loop merges the tensors of the iterations.
    let apart = |a: &&Event| sinks.iter().any(|b| a.allocation != b.allocation && a.time < b.time);
    if sources.iter().any(apart) && !sources.iter().any(ordered) {
        return Seen::After;
    }
    if (d.source.kind.writes() || d.sink.kind.writes()) && sources.iter().any(ordered) {
        return Seen::Confirmed;
    }
    if !trace.finished {
        return Seen::Stopped;
    }
    Seen::Wrong(format!(
        "{} of `{}` at {sizes:?}: {:?} and then {:?} access {:?}, one of them writing, but {} and {} of them occur",
        d.kind.short(),
        d.source.tensor,
        w.source,
        w.sink,
        w.element,
        sources.len(),
        sinks.len()
    ))
}

fn same_use(touch: Touch, kind: Use) -> bool {
    match (touch, kind) {
        (Touch::Read, Use::Read) | (Touch::Write, Use::Write) => true,
        (Touch::Reduce(a), Use::Reduce(b)) => a == b,
        _ => false,
    }
}
