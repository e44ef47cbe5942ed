//! Search for the direct dependences of a program, which do not follow from others, without queries about the others.
//!
//! ```text
//! for i: y[i] = y[i] * a[i]      s1 -> s2 and s2 -> s3 are direct;
//!        y[i] = y[i] + b[i]      s1 -> s3 follows from them, since s2 writes the element in every iteration in which
//!        y[i] = y[i] * c[i]      s1 and s3 touch it
//! ```
//!
//! References to one element form a *family* if they are executed in the same iterations: their loops, conditions and
//! subscripts are equal up to the names of iterators, and only load from tensors that the program never writes.
//! Consecutive members of a family that do not conflict (reads; reductions of one operator) form an *epoch*. Each epoch
//! conflicts with the next one, so that a chain of dependences leads from a member of one epoch to those of all later
//! ones, in the same iterations of the common loops.
//!
//! - **Within one iteration** of the loops around `a` and `b`, their dependence follows from `a -> … -> c` and `c ->
//!   b`, where `c` belongs to a later epoch of `a`'s family, precedes `b`, conflicts with it, and has the same loops in
//!   common with it as `a`. By symmetry, the dependence also follows from a `c` of an earlier epoch of `b`'s family.
//! - **Carried by a loop**, it follows where the loop is also around a `c` of a later epoch of `a`'s family that
//!   conflicts with `b`, or of an earlier epoch of `b`'s family that conflicts with `a`.
//!
//! Instances of one statement are totally ordered, so its reads and its write count as successive. By induction on the
//! text between source and sink, every dependence follows from direct ones, and a loop that carries a dependence on a
//! tensor carries a direct one.

use super::Dependences;
use super::answer::{Dependence, DependenceQuery};
use super::pairs::{self, Key, Subscripts, conflicts};
use super::prover::{Prover, common_loops};
use crate::pass::substitute::rewrite_expr;
use crate::query::definition::Definitions;
use crate::query::instance::Relation;
use crate::query::reference::{Reference, Step, Use};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Ordering;
use taffeta_ast::{Expr, ExprKind, Stmt, StmtId, Symbol};

/// Dependences that do not follow from others.
#[derive(Clone, Debug, Default)]
pub struct Direct {
    /// Direct dependences in program order; for each pair of references, within one iteration first, then by loops.
    pub dependences: Vec<Dependence>,
    /// Whether there are other dependences, which follow from these.
    pub has_implied: bool,
}

impl Dependences<'_> {
    /// Returns the dependences of the program that do not follow from others. Reductions of one operator do not depend
    /// on each other here.
    pub fn direct(&self) -> Direct {
        let mut search = DirectSearch::new(self);
        for tensor in self.by_tensor.keys() {
            let references: Vec<&Reference> = self.of(tensor).collect();
            if references.iter().any(|r| r.kind.writes()) {
                search.within(&references);
            }
        }
        for (depth, references) in self.in_loops() {
            search.carried(&references, depth);
        }
        search.answer()
    }

    /// Returns one dependence between reductions for every loop, tensor and operator, if the loop carries any between
    /// reductions of the tensor by that operator.
    pub fn carried_reductions(&self) -> Vec<Dependence> {
        let mut out = Vec::new();
        for (depth, references) in self.in_loops() {
            let mut kinds: Vec<Use> = Vec::new();
            for r in &references {
                if matches!(r.kind, Use::Reduce(_)) && !kinds.contains(&r.kind) {
                    kinds.push(r.kind);
                }
            }
            for kind in kinds {
                let relations = carried(references[0], depth);
                let relate = |s: &Stmt| related(references[0], &relations, s);
                let query = DependenceQuery { relate: &relate, commute: false, ..DependenceQuery::default() };
                let alike: Vec<&Reference> = references.iter().copied().filter(|r| r.kind == kind).collect();
                out.extend(self.first_among(&alike, &query));
            }
        }
        out.sort_by_key(|d| (d.source.place, d.sink.place));
        out
    }

    /// Returns the references to a tensor inside of a loop, with the loop's depth, for every loop and tensor that the
    /// loop may carry dependences on: the tensor is declared outside of the loop, and written in it.
    fn in_loops(&self) -> Vec<(usize, Vec<&Reference>)> {
        let mut found: FxHashMap<(StmtId, &Symbol), (usize, Vec<&Reference>)> = FxHashMap::default();
        for r in self.references() {
            let scope = r.scope();
            let loops = r.site.path.constraints().into_iter().filter(|(_, s)| matches!(s, Step::Loop { .. }));
            for (depth, (_, step)) in loops.enumerate().filter(|(_, (k, _))| *k >= scope) {
                found.entry((step.stmt().id(), &r.tensor)).or_insert((depth, Vec::new())).1.push(r);
            }
        }
        let mut all: Vec<_> = found.into_values().filter(|(_, v)| v.iter().any(|r| r.kind.writes())).collect();
        all.sort_by_key(|(depth, v)| (v[0].place, *depth));
        all
    }
}

/// Returns the relations of the loops around a reference for a dependence carried at a depth.
fn carried(r: &Reference, depth: usize) -> Vec<Relation> {
    let relation = |k: usize| match k.cmp(&depth) {
        Ordering::Less => Relation::Same,
        Ordering::Equal => Relation::Later,
        Ordering::Greater => Relation::Any,
    };
    (0..r.site.loops().count()).map(relation).collect()
}

/// Returns the relation of a loop: [`Relation::Any`] if the loop is not around the reference.
fn related(r: &Reference, relations: &[Relation], stmt: &Stmt) -> Relation {
    r.site.loops().position(|(s, _)| s.id() == stmt.id()).map_or(Relation::Any, |k| relations[k])
}

/// Pair of references that may be a direct dependence.
#[derive(Clone, Copy)]
struct ReferencePair<'a> {
    source: &'a Reference,
    sink: &'a Reference,
    /// Depth of the loop that carries the dependence; `None` within one iteration.
    carrier: Option<usize>,
}

struct DirectSearch<'a> {
    all: &'a Dependences<'a>,
    prover: Prover<'a>,
    /// Family of every reference, and its epoch in the family.
    member: Vec<(usize, usize)>,
    /// Epochs of every family.
    families: Vec<Vec<Vec<&'a Reference>>>,
    candidates: Vec<ReferencePair<'a>>,
    /// Pairs that others imply if they depend at all: one representative for each key.
    following: FxHashMap<(Key, Option<usize>), ReferencePair<'a>>,
}

impl<'a> DirectSearch<'a> {
    fn new(all: &'a Dependences<'a>) -> DirectSearch<'a> {
        let mut s = DirectSearch {
            all,
            prover: all.prover(),
            member: Vec::new(),
            families: Vec::new(),
            candidates: Vec::new(),
            following: FxHashMap::default(),
        };
        let written = all.references().iter().filter(|r| r.kind.writes()).map(|r| &r.tensor).collect();
        let mut family_keys = FamilyKeys { definitions: all.definitions(), written, iterators: Vec::new() };
        let (mut of_class, mut numbers): (FxHashMap<usize, Option<usize>>, FxHashMap<_, usize>) = Default::default();
        for r in all.references() {
            let shared = *of_class.entry(r.class).or_insert_with(|| {
                let next = numbers.len();
                family_keys.key(r).map(|key| *numbers.entry(key).or_insert(next))
            });
            // Numbers from `usize::MAX` downwards are families of single references.
            let family = shared.unwrap_or(usize::MAX - r.place);
            s.member.push((family, 0));
        }
        s.families = vec![Vec::new(); numbers.len()];
        for (r, member) in all.references().iter().zip(&mut s.member) {
            let Some(epochs) = s.families.get_mut(member.0) else { continue };
            match epochs.last_mut() {
                Some(last) if !conflicts(last[0], r, true) => last.push(r),
                _ => epochs.push(vec![r]),
            }
            member.1 = epochs.len() - 1;
        }
        s
    }

    /// Returns the members of the epoch `later` epochs after the reference's own in its family (negative: before it).
    fn epoch(&self, r: &Reference, later: isize) -> Option<&[&'a Reference]> {
        let (family, epoch) = self.member[r.place];
        Some(self.families.get(family)?.get(epoch.checked_add_signed(later)?)?)
    }

    /// Collects candidates within one iteration of the common loops.
    fn within(&mut self, references: &[&'a Reference]) {
        let index = Subscripts::of(references);
        for (k, a) in references.iter().enumerate() {
            for b in index.near(a, k + 1).map(|k| references[k]) {
                if !conflicts(a, b, true) || !a.site.before(&b.site) {
                    continue;
                }
                let pair = ReferencePair { source: a, sink: b, carrier: None };
                if self.follows_within(a, b) {
                    self.following.entry((pairs::key(a, b), None)).or_insert(pair);
                    if self.all_follow(a, b) {
                        break;
                    }
                } else {
                    self.candidates.push(pair);
                }
            }
        }
    }

    fn follows_within(&self, a: &Reference, b: &Reference) -> bool {
        let ((f, e), (g, h)) = (self.member[a.place], self.member[b.place]);
        if f == g {
            return h > e + 1;
        }
        let common = loops_around_both(a, b);
        let after =
            |c: &Reference| c.site.before(&b.site) && conflicts(c, b, true) && loops_around_both(c, b) == common;
        let before =
            |c: &Reference| a.site.before(&c.site) && conflicts(a, c, true) && loops_around_both(a, c) == common;
        let next = |later| self.epoch(a, later).and_then(|m| m.first()).is_some_and(|c| c.place > a.place && after(c));
        let last = |later| self.epoch(b, later).and_then(|m| m.last()).is_some_and(|c| c.place < b.place && before(c));
        [1, 2].into_iter().any(next) || [-1, -2].into_iter().any(last)
    }

    /// Returns whether the dependences of all references after `b` on `a` follow from others, as that of `b` does: two
    /// later epochs of `a`'s family begin before `b`. One of the two conflicts with any later reference, and a later
    /// reference has the same loops in common with both as with `a`.
    fn all_follow(&self, a: &Reference, b: &Reference) -> bool {
        let passed = |later| {
            let c = self.epoch(a, later).and_then(|m| m.first());
            c.is_some_and(|c| c.place < b.place && loops_around_both(c, b) <= loops_around_both(a, c))
        };
        passed(1) && passed(2)
    }

    /// Collects candidates that are carried by the loop at a depth, among all references to a tensor in the loop.
    fn carried(&mut self, references: &[&'a Reference], depth: usize) {
        // First and last epoch of each family in the loop.
        let mut ends: FxHashMap<usize, [usize; 2]> = FxHashMap::default();
        for (family, epoch) in references.iter().map(|r| self.member[r.place]) {
            let [first, last] = ends.entry(family).or_insert([epoch, epoch]);
            (*first, *last) = ((*first).min(epoch), (*last).max(epoch));
        }
        let select = |near: &dyn Fn([usize; 2], usize) -> bool| -> Vec<&'a Reference> {
            let is_near = |r: &&&Reference| near(ends[&self.member[r.place].0], self.member[r.place].1);
            references.iter().filter(is_near).copied().collect()
        };
        let sources = select(&|[_, last], epoch| epoch + 1 >= last);
        let sinks = select(&|[first, _], epoch| epoch <= first + 1);
        let at_end = |r: &Reference, end: usize, by: isize| -> Option<&'a Reference> {
            let (family, _) = self.member[r.place];
            self.families.get(family)?.get(ends[&family][end].checked_add_signed(by)?)?.first().copied()
        };
        let follows = |a: &Reference, b: &Reference| {
            let ((f, e), (g, h)) = (self.member[a.place], self.member[b.place]);
            let later = |by: isize| ends[&f][1].checked_add_signed(by).is_some_and(|k| k > e);
            let sooner = |by: isize| ends[&g][0].checked_add_signed(by).is_some_and(|k| k < h);
            [0, -1].into_iter().any(|by| later(by) && at_end(a, 1, by).is_some_and(|c| conflicts(c, b, true)))
                || [0, 1].into_iter().any(|by| sooner(by) && at_end(b, 0, by).is_some_and(|c| conflicts(a, c, true)))
        };
        let relations = carried(references[0], depth);
        let query =
            DependenceQuery { relate: &|s| related(references[0], &relations, s), ..DependenceQuery::default() };
        let (sources, sinks) = (by_element(sources), by_element(sinks));
        let first: Vec<&Reference> = sinks.iter().map(|t| t[0]).collect();
        let index = Subscripts::of(&first);
        for s in &sources {
            for t in index.near(s[0], 0).map(|k| &sinks[k]) {
                let is_large = s.len() * t.len() > pairs::MANY;
                if !conflicts(s[0], t[0], true) || is_large && self.prover.is_impossible(s[0], t[0], &query) {
                    continue;
                }
                for (a, b) in s.iter().flat_map(|a| t.iter().map(move |b| (*a, *b))) {
                    let pair = ReferencePair { source: a, sink: b, carrier: Some(depth) };
                    if follows(a, b) {
                        self.following.entry((pairs::key(a, b), Some(depth))).or_insert(pair);
                    } else {
                        self.candidates.push(pair);
                    }
                }
            }
        }
    }

    /// Decides which candidates are dependences, and whether there are dependences that follow from them.
    fn answer(mut self) -> Direct {
        let order = |p: &ReferencePair<'_>| (p.source.place, p.sink.place, p.carrier);
        self.candidates.sort_by_key(order);
        let key = |p: ReferencePair<'_>| (pairs::key(p.source, p.sink), p.carrier);
        let (asked, which) = pairs::numbered(self.candidates.iter().copied(), key);
        let answers = self.all.each(asked, None, ask);
        let found = self.candidates.iter().zip(which);
        let dependences = found.filter_map(|(p, k)| Some(answers[k].as_ref()?.between(p.source, p.sink))).collect();
        let mut following: Vec<ReferencePair<'_>> = self.following.into_values().collect();
        following.sort_by_key(order);
        let has_implied = following.into_iter().any(|p| ask(&mut self.prover, p).is_some());
        Direct { dependences, has_implied }
    }
}

fn ask(prover: &mut Prover<'_>, pair: ReferencePair<'_>) -> Option<Dependence> {
    let ReferencePair { source, sink, carrier } = pair;
    let common = loops_around_both(source, sink);
    let mut relations = carrier.map_or_else(|| vec![Relation::Same; common], |depth| carried(source, depth));
    relations.truncate(common);
    prover.related(source, sink, relations, None)
}

/// Returns the number of loops around both references.
fn loops_around_both(a: &Reference, b: &Reference) -> usize {
    common_loops(a, b).count()
}

/// Groups references to one tensor by use, element and loop nest, in program order.
fn by_element(references: Vec<&Reference>) -> Vec<Vec<&Reference>> {
    let mut numbers = FxHashMap::default();
    let mut out: Vec<Vec<&Reference>> = Vec::new();
    for r in references {
        let k = *numbers.entry(r.broad).or_insert_with(|| {
            out.push(Vec::new());
            out.len() - 1
        });
        out[k].push(r);
    }
    out
}

/// Key of a family, equal for its members. Iterators are replaced by canonical ones, one for each depth of loops.
#[derive(PartialEq, Eq, Hash)]
struct FamilyKey {
    tensor: Symbol,
    enclosing: Vec<EnclosingStep>,
    indices: Vec<Expr>,
    guards: Vec<(Expr, bool)>,
}

#[derive(PartialEq, Eq, Hash)]
enum EnclosingStep {
    Loop([Expr; 3]),
    Branch(Expr, bool),
}

/// Builder of the keys of families.
struct FamilyKeys<'a> {
    definitions: &'a Definitions,
    /// Tensors that the program writes.
    written: FxHashSet<&'a Symbol>,
    /// Canonical iterators by depth.
    iterators: Vec<Expr>,
}

impl FamilyKeys<'_> {
    /// Returns the key of the reference's family; `None` if its execution or its element depends on values of tensors
    /// that the program writes, or on a loop without known bounds.
    fn key(&mut self, r: &Reference) -> Option<FamilyKey> {
        let mut iterators: FxHashMap<Symbol, Expr> = FxHashMap::default();
        let mut enclosing = Vec::new();
        for (_, step) in r.site.path.constraints() {
            match step {
                Step::Child { .. } | Step::Scope { .. } => {}
                Step::Loop { bounds: None, .. } => return None,
                Step::Loop { iter, bounds: Some([begin, end, step]), .. } => {
                    let bound = |e| self.renamed(e, &iterators);
                    enclosing.push(EnclosingStep::Loop([bound(begin)?, bound(end)?, bound(step)?]));
                    let depth = iterators.len();
                    if depth == self.iterators.len() {
                        self.iterators.push(Expr::var(&Symbol::new(format!("{depth}"))));
                    }
                    iterators.insert(iter.clone(), self.iterators[depth].clone());
                }
                Step::Branch { cond, then, .. } => {
                    enclosing.push(EnclosingStep::Branch(self.renamed(cond, &iterators)?, *then))
                }
            }
        }
        let indices = r.indices.as_ref()?.iter().map(|e| self.renamed(e, &iterators)).collect::<Option<_>>()?;
        let guards = r.guards.iter().map(|(e, holds)| Some((self.renamed(e, &iterators)?, *holds)));
        Some(FamilyKey { tensor: r.tensor.clone(), enclosing, indices, guards: guards.collect::<Option<_>>()? })
    }

    /// Rewrites the expression to canonical iterators; `None` if it loads from a tensor that the program writes.
    fn renamed(&self, e: &Expr, iterators: &FxHashMap<Symbol, Expr>) -> Option<Expr> {
        let mut fixed = true;
        let new = rewrite_expr(
            e,
            &mut |e| match e.kind() {
                ExprKind::Var(s) => iterators.get(s).map(|v| Expr::raw(v.kind().clone(), e.dtype())),
                ExprKind::Load(t, _) => {
                    let value = self.definitions.value(t).map(|value| self.renamed(value, iterators));
                    fixed &= match &value {
                        Some(value) => value.is_some(),
                        None => !self.written.contains(t),
                    };
                    value.flatten()
                }
                _ => None,
            },
            &mut FxHashMap::default(),
        );
        fixed.then_some(new)
    }
}
