//! Dependences at the precision of statement instances (FreeTensor, section 4.2; Feautrier 1991): pairs of executions
//! of statements that access one element, one of them writing it, with the iterations of the enclosing loops.
//!
//! A query asks for every pair of [`Reference`]s to one tensor: is there a state in which both are executed, in
//! iterations with the requested relations, and address the same element? Bounds, conditions, assertions and subscripts
//! become facts about two instances (`instance.rs`); isl decides whether they have a common point. If none exists,
//! independence is proved. Otherwise the point is the *witness*: two concrete instances and the element that they
//! share, exact unless it rests on values that the program reads (which are then named).
//!
//! - **Stack scope**: a tensor is another one in every iteration of the loops around its declaration, so a dependence
//!   on it stays within one iteration of those.
//! - **Reductions** of one operator into one element commute: such pairs may be left out
//!   ([`DependenceQuery::commute`]), unless the program says that those of floats do not ([`Func::keeps_order`]).
//! - **A non-affine expression** is an unknown value of its instance, shared by both instances if its arguments are
//!   equal and nothing writes the tensors it reads in between. So the answer "no dependence" is always right, but a
//!   reported dependence may occur in no run.
//!
//! A query is answered once for all equivalent pairs (`pairs.rs`), and `direct.rs` leaves out the dependences that
//! follow from others, so that the number of queries grows with the program and not with its square.
//!
//! Not modelled: whether a value is overwritten in between (dependences are memory-based, not value-based).

mod answer;
mod direct;
mod evaluated;
mod pairs;
mod prover;

pub use self::answer::{Dependence, DependenceKind, DependenceQuery, Extra, Iterators, Order, Relate, Which, Witness};
pub use self::direct::Direct;
pub(super) use self::prover::{Conflict, Meeting, Prover, kind_of, orders};
use super::definition::Definitions;
pub use super::instance::Relation;
use super::reference::{Reference, inside, references};
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use taffeta_ast::{Func, StmtId, Symbol};

/// References of a program, indexed for queries.
pub struct Dependences<'f> {
    func: &'f Func,
    all: Vec<Reference>,
    definitions: OnceLock<Definitions>,
    /// Positions of the references to a tensor.
    by_tensor: FxHashMap<Symbol, Vec<usize>>,
    /// Number of queries so far.
    asked: AtomicUsize,
}

/// Number of pairs below which several threads do not pay off: to wake a thread, and to build its facts about the
/// program's sizes, takes as long as many answers.
const FEW: usize = 24;
/// Minimum number of queries per thread, for the same reason.
const AT_ONCE: usize = 8;

impl<'f> Dependences<'f> {
    /// Collects the references.
    pub fn new(func: &'f Func) -> Dependences<'f> {
        Dependences::among(func, references(func))
    }

    /// Collects only the references in some statements and their descendants, for queries about no others.
    pub fn inside(func: &'f Func, parts: &[StmtId]) -> Dependences<'f> {
        Dependences::among(func, inside(func, parts))
    }

    fn among(func: &'f Func, all: Vec<Reference>) -> Dependences<'f> {
        let mut by_tensor: FxHashMap<Symbol, Vec<usize>> = FxHashMap::default();
        for (k, r) in all.iter().enumerate() {
            by_tensor.entry(r.tensor.clone()).or_default().push(k);
        }
        Dependences { func, all, by_tensor, definitions: OnceLock::new(), asked: AtomicUsize::new(0) }
    }

    /// Returns the program.
    pub fn func(&self) -> &'f Func {
        self.func
    }

    pub(super) fn definitions(&self) -> &Definitions {
        self.definitions.get_or_init(|| Definitions::remembered(self.func))
    }

    /// Returns all references, in program order.
    pub fn references(&self) -> &[Reference] {
        &self.all
    }

    /// Returns the references to a tensor, in program order.
    pub fn of(&self, tensor: &Symbol) -> impl DoubleEndedIterator<Item = &Reference> + ExactSizeIterator {
        self.by_tensor.get(tensor).map_or(&[][..], Vec::as_slice).iter().map(|k| &self.all[*k])
    }

    /// Finds the first dependence that the query allows, in program order; `None` proves that there is none.
    pub fn first(&self, ask: &DependenceQuery<'_>) -> Option<Dependence> {
        self.first_pair(&self.all, ask)
    }

    /// Finds the first pair of references, one selected by each predicate, that access one element, in any order;
    /// `None` proves that there is none. The source of the returned dependence runs first. `relate` must be symmetric:
    /// the same iteration, or any.
    pub fn meeting(&self, one: Which<'_>, other: Which<'_>, relate: Relate<'_>) -> Option<Dependence> {
        let ask = |source, sink, order| {
            self.first(&DependenceQuery { source, sink, relate, order, ..DependenceQuery::default() })
        };
        let any = ask(one, other, Order::Either)?;
        let ordered = ask(one, other, Order::SourceFirst).or_else(|| ask(other, one, Order::SourceFirst));
        // Otherwise both are one instance, which reads before it writes.
        let reads_first = || if any.sink.kind.writes() { None } else { ask(other, one, Order::Either) };
        ordered.or_else(reads_first).or(Some(any))
    }

    /// Finds the first dependence, as [`Dependences::first`] does, among some of the references, which are in program
    /// order.
    pub fn first_among(&self, references: &[&Reference], ask: &DependenceQuery<'_>) -> Option<Dependence> {
        self.first_pair(references.iter().copied(), ask)
    }

    fn first_pair<'r>(
        &self,
        references: impl IntoIterator<Item = &'r Reference> + Clone,
        ask: &DependenceQuery<'_>,
    ) -> Option<Dependence> {
        let (pairs, prover) = self.distinct_pairs(references, ask);
        if pairs.is_empty() {
            return None;
        }
        if pairs.len() < FEW {
            let mut prover = prover.unwrap_or_else(|| self.prover());
            return pairs.into_iter().find_map(|(a, b)| prover.pair(a, b, ask));
        }
        taffeta_ast::pool::run(|| {
            pairs
                .into_par_iter()
                .with_min_len(AT_ONCE)
                .map_init(|| self.prover(), |prover, (a, b)| prover.pair(a, b, ask))
                .find_map_first(|found| found)
        })
    }

    /// Returns every dependence that the query allows, once for each loop that carries it.
    pub fn all(&self, ask: &DependenceQuery<'_>) -> Vec<Dependence> {
        let pairs = pairs::every(&self.all, ask);
        let (asked, which) = pairs::numbered(pairs.iter().copied(), |(a, b)| pairs::key(a, b));
        let answers = self.cases(asked, None, ask);
        let answered = pairs.iter().zip(which).map(|(pair, k)| (pair, &answers[k]));
        answered.flat_map(|((a, b), found)| found.iter().map(|d| d.between(a, b))).collect()
    }

    /// Returns the dependences that the query allows, with one pair for all equivalent ones: references in one place
    /// with the same use of the same element.
    pub fn distinct(&self, ask: &DependenceQuery<'_>) -> Vec<Dependence> {
        let (pairs, prover) = self.distinct_pairs(&self.all, ask);
        self.cases(pairs, prover, ask).into_iter().flatten().collect()
    }

    fn cases<'p>(
        &'p self,
        pairs: Vec<(&Reference, &Reference)>,
        prover: Option<Prover<'p>>,
        ask: &DependenceQuery<'_>,
    ) -> Vec<Vec<Dependence>> {
        self.each(pairs, prover, |prover, (a, b)| prover.cases(a, b, ask, usize::MAX))
    }

    /// Answers independent queries, on several threads if there are many.
    fn each<'p, Q: Send, A: Send>(
        &'p self,
        questions: Vec<Q>,
        prover: Option<Prover<'p>>,
        answer: impl Fn(&mut Prover<'_>, Q) -> A + Sync,
    ) -> Vec<A> {
        if questions.is_empty() {
            return Vec::new();
        }
        if questions.len() < FEW {
            let mut prover = prover.unwrap_or_else(|| self.prover());
            return questions.into_iter().map(|q| answer(&mut prover, q)).collect();
        }
        let all = questions.into_par_iter().with_min_len(AT_ONCE);
        taffeta_ast::pool::run(|| all.map_init(|| self.prover(), |prover, q| answer(prover, q)).collect())
    }

    /// Returns the distinct pairs of a query, with the prover that filtered them, if one was needed.
    fn distinct_pairs<'r, 'p>(
        &'p self,
        references: impl IntoIterator<Item = &'r Reference> + Clone,
        ask: &DependenceQuery<'_>,
    ) -> (Vec<(&'r Reference, &'r Reference)>, Option<Prover<'p>>) {
        let mut prover = None;
        let pairs = pairs::distinct(references, ask, &mut |a, b| {
            prover.get_or_insert_with(|| self.prover()).is_impossible(a, b, ask)
        });
        (pairs, prover)
    }

    pub(super) fn prover(&self) -> Prover<'_> {
        Prover::new(self.func, self.definitions(), &self.asked)
    }

    /// Returns the number of queries for two instances, which dominate the time.
    pub fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }

    /// Returns the distance of the sink's iterator from the source's, for every common loop of each dependence; `None`
    /// where it is not constant.
    pub fn distances(&self, all: &[Dependence]) -> Vec<Vec<Option<i64>>> {
        let relations = |d: &Dependence| d.loops.iter().map(|(_, r)| *r).collect::<Vec<Relation>>();
        let (asked, which) = pairs::numbered(all, |d| (pairs::key(&d.source, &d.sink), relations(d)));
        let answers = self.each(asked, None, |prover, d| prover.distances(d));
        which.into_iter().map(|k| answers[k].clone()).collect()
    }
}
