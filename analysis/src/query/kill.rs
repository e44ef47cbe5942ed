//! Kill analysis: proves that every element of a tensor that an iteration of a loop reads was written earlier in the
//! same iteration. Then no value flows into the iteration, and it may have a private copy of the tensor
//! (privatisation).
//!
//! The set of states in which a read is executed is over-approximated; the set of states in which an instance of a
//! write before it has certainly overwritten the same element is under-approximated, for every write. isl subtracts the
//! latter from the former.
//!
//! - A write only counts where its execution is exactly known: its loops have constant steps, and its conditions are
//!   conjunctions of integer comparisons, or guard the read as well.
//! - A loaded value (an index, a bound) only counts as equal in read and write where nothing in the loop writes its
//!   tensor, and where it does not depend on the write's own iterators.
//!
//! A read that the counted writes do not cover may be exposed.

use super::Context;
use super::context::{Def, Key};
use super::depend::Dependences;
use super::feasibility::{Assumptions, System};
use super::instance::Relation;
use super::instance::{Instance, Loaded, Names, Pair, Side};
use super::linear::Atom;
use super::reference::{Reference, Step, Use};
use crate::isl::{self, Row};
use rustc_hash::FxHashSet;
use taffeta_ast::{Expr, ExprKind, Stmt, Symbol};

/// Maximum number of parts of a union; isl's subtraction takes exponentially many steps in the worst case.
const MAX_PARTS: usize = 12;

impl Dependences<'_> {
    /// Finds a read of the tensor in the body of a loop that may see a value from before the iteration; the first one
    /// in program order. `None` proves that every iteration writes all elements that it reads of the tensor.
    ///
    /// A reduction reads the element that it combines.
    pub fn exposed_read(&self, tensor: &Symbol, within: &Stmt) -> Option<Reference> {
        self.exposed_reads(tensor, within).next().cloned()
    }

    /// Returns all exposed reads (see [`Dependences::exposed_read`]), in program order.
    pub fn exposed_reads<'a>(&'a self, tensor: &Symbol, within: &'a Stmt) -> impl Iterator<Item = &'a Reference> + 'a {
        self.exposed_reads_among(tensor, within, &|_| true)
    }

    /// Returns the exposed reads that satisfy a predicate, in program order.
    pub fn exposed_reads_among<'a>(
        &'a self,
        tensor: &Symbol,
        within: &'a Stmt,
        among: &'a dyn Fn(&Reference) -> bool,
    ) -> impl Iterator<Item = &'a Reference> + 'a {
        let inside: Vec<&Reference> = self.of(tensor).filter(|r| depth(r, within).is_some()).collect();
        let (writes, reads): (Vec<&Reference>, Vec<&Reference>) =
            inside.into_iter().partition(|r| r.kind == Use::Write);
        reads.into_iter().filter(move |r| among(r) && !self.is_killed(r, &writes, within))
    }

    fn is_killed(&self, read: &Reference, writes: &[&Reference], within: &Stmt) -> bool {
        let writes: Vec<_> = writes.iter().map(|w| (*w, cases(w, read, within))).collect();
        self.is_covered(read, &writes, within)
    }

    /// Returns whether every execution of `read` accesses an element that some execution of one of `others` accesses,
    /// too. Each of the others comes with the admissible relations of its iterations to those of `read`, for the common
    /// loops. Loads of tensors that may change in `within` are unknown values.
    pub(super) fn is_covered(
        &self,
        read: &Reference,
        others: &[(&Reference, Vec<Vec<Relation>>)],
        within: &Stmt,
    ) -> bool {
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

/// Returns the step of a reference's path that enters the loop's body.
fn depth(r: &Reference, within: &Stmt) -> Option<usize> {
    r.site.path.iter().position(|s| matches!(s, Step::Loop { stmt, .. } if stmt.id() == within.id()))
}

/// Returns the relations of the common loops under which the write precedes the read, in one iteration of `within` and
/// in the scope of the tensor.
fn cases(write: &Reference, read: &Reference, within: &Stmt) -> Vec<Vec<Relation>> {
    let common = write.site.common(&read.site);
    let loops = |steps: &[Step]| steps.iter().filter(|s| matches!(s, Step::Loop { .. })).count();
    let Some(entered) = depth(read, within) else { return Vec::new() };
    // Each iteration of a loop around its declaration has its own tensor.
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

/// Assumes that an instance of the write, in iterations with these relations to the read's, accesses the same element.
/// Returns the write's own iterators; `None` if the condition is not exactly known or impossible.
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

/// Parts of a read's executions that writes cover, over one list of atoms.
struct Sets {
    atoms: Vec<Atom>,
    /// Parts covered by writes. Atoms that only occur in a part are existentially quantified.
    parts: Vec<System>,
}

impl Sets {
    /// Adds the part that a write covers, unless the part depends on values that belong to one instance of the write.
    fn add(&mut self, ctx: &Context, names: &Names, own: &FxHashSet<Symbol>, system: &System) {
        if !system.complete {
            return;
        }
        let mut new = Vec::new();
        for &a in system.atoms.iter().filter(|a| !self.atoms.contains(a)) {
            let determined = match &ctx.atoms[a.0 as usize].key {
                Key::Expr(e) => matches!(e.kind(), ExprKind::Var(s) if own.contains(s)),
                Key::Trip(s) => own.contains(s),
                // The laws that come with the atom determine its value.
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

    /// Returns whether every point of `whole` is in some part.
    fn cover(&self, whole: &System) -> Option<bool> {
        if self.parts.is_empty() || self.parts.len() > MAX_PARTS {
            return None;
        }
        let parts: Vec<(usize, Vec<Row>)> = self.parts.iter().map(|p| p.over(&self.atoms)).collect();
        isl::covered(self.atoms.len(), &whole.over(&self.atoms).1, &parts)
    }
}

/// Returns whether an atom's value belongs to one instance of the write: it depends on the write's own iterators, or on
/// loads that may change.
fn belongs(ctx: &Context, names: &Names, own: &FxHashSet<Symbol>, a: Atom) -> bool {
    let in_expr = |e: &Expr| {
        e.any(&mut |e| match e.kind() {
            ExprKind::Var(s) => own.contains(s),
            ExprKind::Load(t, _) => names.may_change(t),
            _ => false,
        })
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
