//! `auto_accumulate`: accumulators in registers for the sums of a loop, added to memory once.
//!
//! ```text
//! for k in range(n):                       sums of 32 elements in registers
//!     for j in range(32):                  for k in range(n):
//!         y[i, j] += w[k] * h[k, j]   ─▶       for j in range(32):
//!                                                  sums[j] += w[k] * h[k, j]
//!                                          y[i, :] += sums
//! ```
//!
//! The rule is for loops of constant trip count inside of the reduction loop. If the sums of several rows exceed the
//! registers, the whole loop runs for some columns before others (`y[0, j] += …`, `y[1, j] += …`, `y[2, j] += …` for 64
//! `j`, sixteen at a time). Operands of the rows are then read once per part, from a near cache level, and no sum is
//! written in between.

use super::model::Model;
use super::nest;
use super::trip_counts::Basis;
use crate::auto::rule::{Candidate, ExtraSteps, Rule};
use crate::schedule::Schedule;
use crate::tree::{self, Loop};
use crate::value::{Arg, Handle, Value};
use taffeta_analysis::query::effects;
use taffeta_ast::{Stmt, StmtId, StmtKind, Symbol};

pub(super) const RULE: Rule = Rule {
    method: "auto_accumulate",
    summary: "Keeps sums of loops in registers.",
    why_here: "after contractions are tiled, whose sums are in registers already, and before lanes, which these sums \
               get too",
    gain: crate::auto::rule::MIN_GAIN_MARK,
    min_gain_sparse: Some(-STORED),
    objective: None,
    rounds: 1,
    sites,
    candidates,
};

/// Accepted increase of the estimate in loops over stored elements, as a fraction. C compilers optimise nests over rows
/// at loaded indices poorly: sums in an array of their own are 2 to 4 times as fast there, in registers or not.
const STORED: f64 = 0.1;

/// Maximum number of elements of an array in registers.
const MAX_ELEMENTS: i64 = 256;

/// Fraction of the registers for sums of columns; the others hold operands.
const SUMS: f64 = 2.0 / 3.0;

/// Collects unmarked loops that contain another one, outermost first.
fn sites(s: &Schedule) -> Vec<StmtId> {
    let mut out = Vec::new();
    s.func().body.walk(&mut |l| {
        if nest::is_unmarked(l) && Loop::of(l).is_some_and(|l| nest::has_loop(&l.body)) {
            out.push(l.id());
        }
    });
    out
}

fn candidates(s: &Schedule, model: &Model<'_>, site: StmtId) -> Vec<Candidate> {
    let Some(l) = tree::find(&s.func().body, site).as_ref().and_then(Loop::of) else { return Vec::new() };
    // Trip counts must be known at compile time.
    let trips = |l: &Loop| {
        let found = model.trips(s.func(), &[], l);
        (found.basis == Basis::Fact).then_some(found.value as i64)
    };
    let around = tree::path(&s.func().body, site).unwrap_or_default();
    let in_registers: Vec<&Symbol> = around.iter().filter_map(|d| small_array(d)).collect();
    let found = sums(&l, &trips).into_iter().filter(|t| !in_registers.contains(&t));
    found.flat_map(|t| [Some(whole(s, &l, &t)), columns(s, model, &l, &t, &trips)]).flatten().collect()
}

/// Returns the candidate to keep all sums of a loop into tensor `t` in registers, with lanes where that is legal.
fn whole(s: &Schedule, l: &Loop, t: &Symbol) -> Candidate {
    let steps = format!("cache_reduction(\"{}\", \"{}\")", s.called(&l.stmt), t.name());
    let lanes = rows(&l.body, t);
    let (site, tensor) = (l.stmt.id(), Value::Handle(Handle::Tensor(t.clone())));
    Candidate::new(steps, move |s| {
        s.call("cache_reduction", &[Arg::from(site), Arg::from(tensor.clone())])?;
        let mut after = Vec::new();
        for l in &lanes {
            if nest::attempt(s, "vectorize", &[Arg::from(*l)]) {
                after.extend(s.stmt(&Arg::from(*l)).map(|l| format!("vectorize(\"{}\")", s.called(&l))));
            }
        }
        Ok(ExtraSteps { after, ..ExtraSteps::default() })
    })
}

/// Returns the candidate to sum blocks of columns one after the other, if the rows have more columns than registers
/// hold.
fn columns(s: &Schedule, model: &Model<'_>, l: &Loop, t: &Symbol, trips: &Trips<'_>) -> Option<Candidate> {
    let [inner] = nest::loops_in(&l.body).try_into().ok()?;
    let own = Loop::of(&inner).filter(|own| nest::is_alone(&l.stmt, &inner) && !nest::has_loop(&own.body))?;
    let (rows, bytes) = added(&own.body, t)?;
    let lanes = (model.target.vector_bytes / bytes) as i64;
    let width = lanes * ((SUMS * model.target.registers()) as i64 / rows).max(1);
    if trips(&own)? <= width {
        return None;
    }
    let steps = format!("columns of \"{}\" in registers, {width} at a time", s.called(&inner));
    let (site, inner, tensor) = (l.stmt.id(), inner.id(), Value::Handle(Handle::Tensor(t.clone())));
    Some(Candidate::new(steps, move |s| {
        let (some, columns) = nest::halves(s.call("split", &[Arg::from(inner), Arg::from(width)])?)?;
        let order = Value::List(vec![some, Value::from(site), columns.clone()]);
        s.call("reorder", &[Arg::from(order)])?;
        s.call("cache_reduction", &[Arg::from(site), Arg::from(tensor.clone())])?;
        s.call("vectorize", &[Arg::from(columns)]).map(|_| ExtraSteps::default())
    }))
}

/// Returns the number of statements that reduce into a tensor, and the size of its elements in bytes.
fn added(s: &Stmt, t: &Symbol) -> Option<(i64, usize)> {
    let mut found = None;
    s.walk(&mut |s| {
        if let StmtKind::ReduceTo { tensor, value, .. } = s.kind()
            && tensor == t
        {
            let (rows, bytes) = found.unwrap_or((0, value.dtype().size()));
            found = Some((rows + 1, bytes));
        }
    });
    found
}

/// Returns the tensor that a statement declares, if it is small enough to be in registers without this rule.
fn small_array(s: &Stmt) -> Option<&Symbol> {
    let StmtKind::VarDef { tensor, .. } = s.kind() else { return None };
    let elements = tensor.shape.iter().try_fold(1i64, |n, d| n.checked_mul(d.as_int()?))?;
    (elements <= MAX_ELEMENTS).then_some(&tensor.symbol)
}

/// Lookup of a loop's trip count, if it is known at compile time.
type Trips<'t> = dyn Fn(&Loop) -> Option<i64> + 't;

/// Collects the arrays that a loop reduces into at the same few elements in every iteration.
fn sums(l: &Loop, trips: &Trips<'_>) -> Vec<Symbol> {
    let mut out: Vec<Symbol> = Vec::new();
    gather(&l.body, &l.iter, trips, &mut Vec::new(), &mut out);
    // Tensors declared in the body carry no sum across iterations.
    l.body.walk(&mut |s| {
        if let StmtKind::VarDef { tensor, .. } = s.kind() {
            out.retain(|t| *t != tensor.symbol);
        }
    });
    out
}

fn gather(s: &Stmt, iter: &Symbol, trips: &Trips<'_>, inside: &mut Vec<Loop>, out: &mut Vec<Symbol>) {
    if let StmtKind::ReduceTo { tensor, indices, .. } = s.kind()
        && !indices.is_empty()
        && !inside.is_empty()
        && !out.contains(tensor)
        && !indices.iter().any(|a| effects::mentions(&a.index, &[iter]) || !effects::loads(&a.index).is_empty())
        && elements(indices.iter().map(|a| &a.index), trips, inside).is_some_and(|n| (2..=MAX_ELEMENTS).contains(&n))
    {
        out.push(tensor.clone());
    }
    match Loop::of(s) {
        Some(l) => {
            let body = l.body.clone();
            inside.push(l);
            gather(&body, iter, trips, inside, out);
            inside.pop();
        }
        None => s.kind().children().into_iter().for_each(|c| gather(c, iter, trips, inside, out)),
    }
}

/// Collects the unmarked innermost loops that reduce into a tensor: with lanes there, registers hold vectors of its
/// elements.
fn rows(s: &Stmt, tensor: &Symbol) -> Vec<StmtId> {
    let mut out = Vec::new();
    s.walk(&mut |l| {
        if let Some(own) = Loop::of(l).filter(|own| nest::is_unmarked(l) && !nest::has_loop(&own.body)) {
            let adds = |s: &Stmt| matches!(s.kind(), StmtKind::ReduceTo { tensor: t, .. } if t == tensor);
            let found = own.body.any(&mut |s| adds(s));
            out.extend(found.then(|| l.id()));
        }
    });
    out
}

/// Returns the number of elements that an access covers in the loops around it, if that is a constant.
fn elements<'e>(at: impl Iterator<Item = &'e taffeta_ast::Expr>, trips: &Trips<'_>, inside: &[Loop]) -> Option<i64> {
    let at: Vec<_> = at.collect();
    let own = inside.iter().filter(|l| at.iter().any(|e| effects::mentions(e, &[&l.iter])));
    own.map(trips).try_fold(1i64, |n, trips| n.checked_mul(trips?))
}
