//! Enumeration of the pairs of references that a query is about, up to pairs with equal answers.
//!
//! References of one class (`Reference::class`) are under the same loops, conditions and assertions and have the same
//! use of the same element, so a pair of classes has one answer for each order of its members in the text. A query for
//! many classes in two loop nests is first asked for the nests without conditions: if a dependence is impossible there,
//! it is impossible for all classes.

use super::answer::DependenceQuery;
use super::prover::{Meeting, Prover, asked, orders};
use crate::query::instance::Relation;
use crate::query::reference::{Reference, Site, Step, Use};
use rustc_hash::FxHashMap;
use std::cmp::Ordering;
use std::hash::Hash;
use std::sync::Arc;
use taffeta_ast::Symbol;

/// Key of a query about a pair of references: their classes, and the order in the text unless it is the same for all
/// members.
pub(super) type Key = (usize, usize, Ordering);

/// Returns the key of a pair.
pub(super) fn key(a: &Reference, b: &Reference) -> Key {
    let order = match a.site.run == b.site.run {
        true if a.beside(b) => Ordering::Equal,
        true => a.place.cmp(&b.place),
        false => Ordering::Less,
    };
    (a.class, b.class, order)
}

/// Removes queries with duplicate keys, and returns for every query the position of its representative.
pub(super) fn numbered<Q: Copy, K: Eq + Hash>(
    questions: impl IntoIterator<Item = Q>,
    key: impl Fn(Q) -> K,
) -> (Vec<Q>, Vec<usize>) {
    let (mut numbers, mut different) = (FxHashMap::default(), Vec::new());
    let number = |q| {
        *numbers.entry(key(q)).or_insert_with(|| {
            different.push(q);
            different.len() - 1
        })
    };
    let which = questions.into_iter().map(number).collect();
    (different, which)
}

/// Returns whether the order of two references to one tensor matters. If `commute` is set, that of reductions by one
/// operator, or of stores of one constant, does not.
pub(super) fn conflicts(a: &Reference, b: &Reference, commute: bool) -> bool {
    let alike = match (a.kind, b.kind) {
        (Use::Write, Use::Write) => a.constant().is_some_and(|c| b.constant() == Some(c)),
        _ => a.commutes(b),
    };
    let commutes = commute && alike;
    (a.kind.writes() || b.kind.writes()) && !commutes
}

/// Index of references to one tensor by a constant subscript: `t[i, 3]` and `t[j, 4]` never meet.
pub(super) struct Subscripts {
    /// Dimension with the most constants, among the dimensions in which all elements with a shared value agree.
    dim: Option<usize>,
    constant: FxHashMap<i64, Vec<usize>>,
    other: Vec<usize>,
    all: Vec<usize>,
}

fn constant(r: &Reference, dim: Option<usize>) -> Option<i64> {
    r.indices.as_ref()?.get(dim?)?.as_int()
}

impl Subscripts {
    pub(super) fn of(references: &[&Reference]) -> Subscripts {
        let identity = |r: &&Reference| r.declared.format.identity(r.declared.shape.len()).same;
        let dims = references.first().map(identity).unwrap_or_default();
        let variable = |dim: &usize| references.iter().filter(|r| constant(r, Some(*dim)).is_none()).count();
        let dim = dims.into_iter().min_by_key(variable);
        let all = (0..references.len()).collect();
        let mut index = Subscripts { dim, constant: FxHashMap::default(), other: Vec::new(), all };
        for (k, r) in references.iter().enumerate() {
            match constant(r, dim) {
                Some(c) => index.constant.entry(c).or_default().push(k),
                None => index.other.push(k),
            }
        }
        index
    }

    /// Returns the positions, from `from` on and in order, of the references that may access the element of `r`.
    pub(super) fn near(&self, r: &Reference, from: usize) -> impl Iterator<Item = usize> {
        let [mut x, mut y] = match constant(r, self.dim) {
            Some(c) => [self.constant.get(&c).map_or(&[][..], Vec::as_slice), &self.other],
            None => [&self.all[..], &[]],
        };
        (x, y) = (&x[x.partition_point(|k| *k < from)..], &y[y.partition_point(|k| *k < from)..]);
        std::iter::from_fn(move || {
            let next = match (x.first(), y.first()) {
                (Some(p), Some(q)) if q < p => &mut y,
                (Some(_), _) => &mut x,
                _ => &mut y,
            };
            let (first, rest) = next.split_first()?;
            *next = rest;
            Some(*first)
        })
    }
}

/// Returns the pairs that a query is about, in the order of the sources.
pub(super) fn every<'r>(
    references: impl IntoIterator<Item = &'r Reference> + Clone,
    ask: &DependenceQuery<'_>,
) -> Vec<(&'r Reference, &'r Reference)> {
    let mut sinks: FxHashMap<&Symbol, Vec<&Reference>> = FxHashMap::default();
    for r in references.clone().into_iter().filter(|r| (ask.sink)(r)) {
        sinks.entry(&r.tensor).or_default().push(r);
    }
    let mut out = Vec::new();
    for a in references.into_iter().filter(|r| (ask.source)(r)) {
        let sinks = sinks.get(&a.tensor).into_iter().flatten();
        out.extend(sinks.filter(|b| conflicts(a, b, ask.commute)).map(|b| (a, *b)));
    }
    out
}

/// Returns the first pair for each key, in the order of the sources. `impossible` returns whether there is no
/// dependence between any references in the same nests with the same uses and elements.
pub(super) fn distinct<'r>(
    references: impl IntoIterator<Item = &'r Reference> + Clone,
    ask: &DependenceQuery<'_>,
    impossible: &mut dyn FnMut(&Reference, &Reference) -> bool,
) -> Vec<(&'r Reference, &'r Reference)> {
    let sources = Broad::of(references.clone().into_iter().filter(|r| (ask.source)(r)));
    let sinks = Broad::of(references.into_iter().filter(|r| (ask.sink)(r)));
    let mut out = Vec::new();
    for (tensor, sources) in &sources {
        let Some(sinks) = sinks.get(tensor) else { continue };
        let first: Vec<&Reference> = sinks.iter().map(|b| b.classes[0][0]).collect();
        let index = Subscripts::of(&first);
        for s in sources {
            let a = s.classes[0][0];
            for t in index.near(a, 0).map(|k| &sinks[k]) {
                let b = t.classes[0][0];
                let many = s.classes.len() * t.classes.len() > MANY;
                if !conflicts(a, b, ask.commute) || many && impossible(a, b) {
                    continue;
                }
                let classes = s.classes.iter().flat_map(|x| t.classes.iter().map(move |y| (x, y)));
                classes.for_each(|(x, y)| first_of_each(x, y, &mut out));
            }
        }
    }
    out.sort_by_key(|(a, b)| (a.place, b.place));
    out
}

/// Number of pairs of classes above which a query for their nests pays off.
pub(super) const MANY: usize = 4;

/// References of one broad class (one loop nest, one use of one element), grouped by class.
struct Broad<'r> {
    classes: Vec<Vec<&'r Reference>>,
}

impl<'r> Broad<'r> {
    fn of(references: impl Iterator<Item = &'r Reference>) -> FxHashMap<&'r Symbol, Vec<Broad<'r>>> {
        let mut out: FxHashMap<&Symbol, Vec<Broad<'_>>> = FxHashMap::default();
        let (mut groups, mut classes) = (FxHashMap::default(), FxHashMap::default());
        for r in references {
            let of_tensor = out.entry(&r.tensor).or_default();
            let group = *groups.entry(r.broad).or_insert_with(|| {
                of_tensor.push(Broad { classes: Vec::new() });
                of_tensor.len() - 1
            });
            let group = &mut of_tensor[group].classes;
            let class = *classes.entry(r.class).or_insert_with(|| {
                group.push(Vec::new());
                group.len() - 1
            });
            group[class].push(r);
        }
        out
    }
}

/// Collects, for two classes, the first pair of members in each order in the text.
fn first_of_each<'r>(x: &[&'r Reference], y: &[&'r Reference], out: &mut Vec<(&'r Reference, &'r Reference)>) {
    let (a, b) = (x[0], y[0]);
    if a.site.run != b.site.run {
        return out.push((a, b));
    }
    let later =
        |r: &Reference, list: &[&'r Reference]| list.iter().find(|s| s.place > r.place && !s.beside(r)).copied();
    out.extend(later(a, y).map(|b| (a, b)));
    out.extend(later(b, x).map(|a| (a, b)));
    let (mut x, mut y) = (x.iter().peekable(), y.iter().peekable());
    while let (Some(a), Some(b)) = (x.peek(), y.peek()) {
        if a.beside(b) {
            return out.push((**a, **b));
        }
        if a.place < b.place {
            x.next()
        } else {
            y.next()
        };
    }
}

impl Prover<'_> {
    /// Returns whether no two references in these nests can have a dependence of the requested kind, under any
    /// conditions.
    pub(super) fn is_impossible(&mut self, a: &Reference, b: &Reference, ask: &DependenceQuery<'_>) -> bool {
        let Some(relations) = asked(a, b, ask) else { return true };
        let (a, b) = (unconditional(a), unconditional(b));
        let cases = orders(&relations, ask.order, true);
        // The path without conditions only tells which statements run between source and sink if a loop carries the
        // dependence.
        let carried = |r: &Vec<Relation>| r.iter().any(|r| *r != Relation::Same);
        ask.extra.is_none()
            && cases.iter().all(carried)
            && cases
                .iter()
                .all(|relations| self.feasible(Meeting { source: &a, sink: &b, relations, extra: None }).is_none())
    }
}

/// Returns the reference with its loops but without its conditions.
fn unconditional(r: &Reference) -> Reference {
    let mut steps = r.site.path.constraints();
    steps.retain(|(_, s)| matches!(s, Step::Loop { .. } | Step::Scope { .. }));
    let scope = steps.partition_point(|(k, _)| *k < r.scope());
    let path = steps.into_iter().map(|(_, s)| s.clone()).collect();
    let site = Site { stmt: r.site.stmt.clone(), path, run: r.site.run, nest: r.site.nest };
    // A class of its own: memoised results of the original class depend on its conditions.
    Reference { site: Arc::new(site), guards: Vec::new(), class: usize::MAX - r.broad, scope, ..r.clone() }
}
