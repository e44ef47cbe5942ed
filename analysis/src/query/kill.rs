//! Kill analysis: is every element that is read in an iteration of a loop certainly written before, in the same
//! iteration? Then no value comes in from outside, and the iteration may have a tensor of its own (privatisation).
//!
//! For a read, the set of all states in which it is executed is taken, larger rather than smaller; for every write
//! before it, the states in which some instance of the write has certainly overwritten the same element, smaller rather
//! than larger. isl subtracts the ones from the other.
//!
//! - A write counts only where it is exact when it is executed: its loops have constant steps, its conditions are
//!   conjunctions of comparisons of integers, or were passed by the read as well.
//! - A value that is read (an index, a bound) counts as the same for both only where nothing in the loop writes it and
//!   it belongs to no particular instance of the write.
//!
//! Everything else may be exposed.

use super::Context;
use super::context::{Def, Key};
use super::depend::Dependences;
use super::instance::Relation;
use super::instance::{Instance, Loaded, Names, Pair, Side};
use super::linear::Atom;
use super::point::{Assumptions, System};
use super::reference::{Reference, Step, Use};
use crate::isl::{self, Row};
use rustc_hash::FxHashSet;
use taffeta_ast::{Expr, ExprKind, Stmt, Symbol};

/// Parts of which a set may be put together; isl's subtraction takes exponentially many steps in the worst case.
const MOST_PARTS: usize = 12;

impl Dependences<'_> {
    /// A read of the tensor, in the body of a loop, that may see what was written before the iteration began; the first
    /// one in the order of the text. `None` is a proof that every iteration writes all that it reads of the tensor.
    ///
    /// A reduction reads the element that it combines.
    pub fn exposed_read(&self, tensor: &Symbol, within: &Stmt) -> Option<Reference> {
        self.exposed_reads(tensor, within).next().cloned()
    }

    /// All of them, in the order of the text.
    pub fn exposed_reads<'a>(&'a self, tensor: &Symbol, within: &'a Stmt) -> impl Iterator<Item = &'a Reference> + 'a {
        let inside: Vec<&Reference> = self.of(tensor).filter(|r| depth(r, within).is_some()).collect();
        let (writes, reads): (Vec<&Reference>, Vec<&Reference>) =
            inside.into_iter().partition(|r| r.kind == Use::Write);
        reads.into_iter().filter(move |r| !self.is_killed(r, &writes, within))
    }

    fn is_killed(&self, read: &Reference, writes: &[&Reference], within: &Stmt) -> bool {
        let writes: Vec<_> = writes.iter().map(|w| (*w, cases(w, read, within))).collect();
        self.is_met(read, &writes, within)
    }

    /// Whether for every execution of a reference there is one of the others, in iterations that are related to it in
    /// one of the ways that are given for it (for the loops around both), that has the same element. Nothing is
    /// believed of what is read that may change in `within`.
    pub(super) fn is_met(&self, read: &Reference, others: &[(&Reference, Vec<Vec<Relation>>)], within: &Stmt) -> bool {
        let mut changing = FxHashSet::default();
        for r in [read].into_iter().chain(others.iter().map(|(w, _)| *w)) {
            Loaded::by(r).unstable(within, &mut changing);
        }
        let (mut ctx, mut names) = (Context::new(self.func()), Names::default());
        let mark = ctx.mark();
        let (definitions, assumed) = (self.definitions(), Assumptions::default());
        let mut pair = Pair { ctx: &mut ctx, names: &mut names, definitions, unstable: changing, assumed };
        let mut here = Instance::new(Side::Shared);
        pair.enter_rest(&read.site.path, &mut here);
        let Some(element) = pair.execute(read, &mut here) else { return false };
        if pair.assumed.impossible || pair.ctx.is_unreachable() {
            return true;
        }
        let whole = pair.ctx.system(mark, &self.func().sizes);
        let mut sets = Sets { atoms: whole.atoms.clone(), parts: Vec::new() };
        for (w, cases) in others {
            for relations in cases {
                let before = pair.ctx.mark();
                pair.assumed = Assumptions::default();
                if let Some(own) = meets(&mut pair, w, read, relations, &element) {
                    let system = pair.ctx.system(mark, &self.func().sizes);
                    sets.add(pair.ctx, pair.names, &own, &system);
                }
                pair.ctx.pop(before);
            }
        }
        sets.cover(&whole) == Some(true)
    }
}

/// At which step of its way a reference enters the loop's body.
fn depth(r: &Reference, within: &Stmt) -> Option<usize> {
    r.site.path.iter().position(|s| matches!(s, Step::Loop { stmt, .. } if stmt.id() == within.id()))
}

/// How the write can come before the read in one iteration of `within`, in the scope of the tensor: the relations of the
/// loops around both.
fn cases(write: &Reference, read: &Reference, within: &Stmt) -> Vec<Vec<Relation>> {
    let common = write.site.common(&read.site);
    let loops = |steps: &[Step]| steps.iter().filter(|s| matches!(s, Step::Loop { .. })).count();
    let Some(entered) = depth(read, within) else { return Vec::new() };
    // Iterations of loops around its declaration have a tensor each.
    let outside = loops(&read.site.path[..read.scope().max(entered + 1)]);
    let all = loops(&read.site.path[..common]);
    let mut out = Vec::new();
    if write.site.before(&read.site) {
        out.push(vec![Relation::Same; all]);
    }
    for carrier in outside..all {
        let mut case = vec![Relation::Same; carrier];
        case.push(Relation::Later);
        case.resize(all, Relation::Any);
        out.push(case);
    }
    out
}

/// Supposes that an instance of the write, in iterations that are so related to the read's, has the same element. Gives
/// the iterators that are the write's own; `None` if it is not known exactly when that is.
fn meets(
    pair: &mut Pair<'_>,
    write: &Reference,
    read: &Reference,
    relations: &[Relation],
    element: &[Expr],
) -> Option<FxHashSet<Symbol>> {
    let common = write.site.common(&read.site);
    let mut there = Instance::new(Side::Source);
    let own = pair.enter_before(&write.site.path[..common], relations, &mut there);
    pair.enter_rest(&write.site.path[common..], &mut there);
    let written = pair.execute(write, &mut there)?;
    for (x, y) in written.iter().zip(element) {
        pair.suppose(&x.equals(y), true);
    }
    let exact = !pair.assumed.vague && pair.assumed.choices.is_empty();
    let possible = !pair.assumed.impossible && !pair.ctx.is_unreachable();
    let mut own: FxHashSet<Symbol> = own.into_iter().collect();
    own.extend(write.site.path[common..].iter().filter_map(|s| match s {
        Step::Loop { iter, .. } => Some(pair.names.iterator(iter, Side::Source)),
        _ => None,
    }));
    (exact && possible).then_some(own)
}

/// Sets over one list of atoms: what a read needs, and what writes give.
struct Sets {
    atoms: Vec<Atom>,
    /// What writes give. Of atoms of a part alone any value will do.
    parts: Vec<System>,
}

impl Sets {
    /// Adds what a write gives, unless it rests on values that only one instance of the write has.
    fn add(&mut self, ctx: &Context, names: &Names, own: &FxHashSet<Symbol>, system: &System) {
        if !system.complete {
            return;
        }
        let mut new = Vec::new();
        for &a in system.atoms.iter().filter(|a| !self.atoms.contains(a)) {
            let determined = match &ctx.atoms[a.0 as usize].key {
                Key::Expr(e) => matches!(e.kind(), ExprKind::Var(s) if own.contains(s)),
                Key::Trip(s) => own.contains(s),
                // There is exactly one, by the laws that come with it.
                Key::Quotient(_, d) | Key::Remainder(_, d) => d.as_constant().is_some(),
                _ => false,
            };
            if determined {
                continue;
            }
            if belongs(ctx, names, own, a) {
                return;
            }
            new.push(a);
        }
        self.atoms.extend(new);
        self.parts.push(system.clone());
    }

    /// Whether every point of `whole` is in some part.
    fn cover(&self, whole: &System) -> Option<bool> {
        if self.parts.is_empty() || self.parts.len() > MOST_PARTS {
            return None;
        }
        let parts: Vec<(usize, Vec<Row>)> = self.parts.iter().map(|p| p.over(&self.atoms)).collect();
        isl::covered(self.atoms.len(), &whole.over(&self.atoms).1, &parts)
    }
}

/// Whether an atom's value belongs to one instance of the write: it is made from its iterators, or from what may
/// change.
fn belongs(ctx: &Context, names: &Names, own: &FxHashSet<Symbol>, a: Atom) -> bool {
    let in_expr = |e: &Expr| {
        let mut found = false;
        e.walk(&mut |e| {
            found |= match e.kind() {
                ExprKind::Var(s) => own.contains(s),
                ExprKind::Load(t, _) => names.may_change(t),
                _ => false,
            }
        });
        found
    };
    let in_form = |l: &super::linear::Linear| l.terms.iter().any(|(b, _)| belongs(ctx, names, own, *b));
    let info = &ctx.atoms[a.0 as usize];
    let by_key = match &info.key {
        Key::Expr(e) => in_expr(e),
        Key::Trip(s) => own.contains(s),
        Key::Product(factors) => factors.iter().any(|f| belongs(ctx, names, own, *f)),
        Key::Quotient(x, y) | Key::Remainder(x, y) | Key::Min(x, y) | Key::Max(x, y) => in_form(x) || in_form(y),
        Key::Select(e, x, y) => in_expr(e) || in_form(x) || in_form(y),
    };
    by_key || matches!(&info.def, Def::Select(cond, ..) if in_expr(cond))
}
