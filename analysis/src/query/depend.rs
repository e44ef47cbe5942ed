//! Dependences at the precision of statement instances (FreeTensor, section 4.2; Feautrier 1991): which two executions
//! of statements touch one element, one of them writing it, and in which iterations of the loops around them.
//!
//! A question is asked about every pair of [`Reference`]s to one tensor: is there a state in which both are executed,
//! in iterations related as asked, and address the same element? Bounds, conditions, assertions and subscripts become
//! facts about two instances (`instance.rs`); isl decides whether they have a common point. Where none exists, that is
//! a proof. Where one exists it is the *witness*: two concrete instances and the element that they share, exact unless
//! it rests on values that the program reads (which are then named).
//!
//! - **Stack scope**: a tensor is another one in every iteration of the loops around its declaration, so a dependence
//!   on it stays within one iteration of those.
//! - **Reductions** of one operator into one element commute: such pairs may be left out ([`Ask::commute`]), unless the
//!   program says that those of floats do not ([`Func::keeps_order`]).
//! - **What is not affine** is an unknown value of its instance: the same one for both where its arguments are the same
//!   and nothing writes what it reads in between. So the answer "no dependence" is always right, and a dependence may
//!   be one that no run shows.
//!
//! Questions are asked once for all pairs that they cannot tell apart (`pairs.rs`), and `direct.rs` leaves out the
//! dependences that follow from others, so that what is asked grows with the program and not with its square.
//!
//! Not done here: whether a value is overwritten in between (memory-based dependences, not value-based ones).

mod direct;
mod evaluated;
mod pairs;
mod prover;

pub use self::direct::Direct;
pub(super) use self::prover::{Conflict, Meeting, Prover, kind_of, orders};
use super::definition::Definitions;
use super::instance::Instance;
pub use super::instance::Relation;
use super::reference::{Reference, inside, references};
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use taffeta_ast::{Expr, Func, Stmt, StmtId, Symbol};

/// Which of both runs first in the program as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The source.
    SourceFirst,
    /// Either: only the relations of the loops are asked for.
    Either,
}

/// What a dependence does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DependenceKind {
    /// The sink reads what the source wrote (RAW, flow).
    ReadAfterWrite,
    /// The sink overwrites what the source read (WAR, anti).
    WriteAfterRead,
    /// The sink overwrites what the source wrote (WAW, output).
    WriteAfterWrite,
}

impl DependenceKind {
    /// As people abbreviate it.
    pub fn short(self) -> &'static str {
        match self {
            DependenceKind::ReadAfterWrite => "RAW",
            DependenceKind::WriteAfterRead => "WAR",
            DependenceKind::WriteAfterWrite => "WAW",
        }
    }
}

/// A condition on both instances, beyond the relations of the loops around both.
pub type Extra<'a> = dyn Fn(&Iterators<'_>, &Iterators<'_>) -> Vec<Expr> + Sync + 'a;

/// The iterators of an instance.
pub struct Iterators<'a>(&'a Instance);

impl Iterators<'_> {
    /// The value of the loop's iterator, if the loop is around the instance.
    pub fn of(&self, stmt: StmtId) -> Option<Expr> {
        self.0.iterator(stmt).cloned()
    }
}

/// Some of the references of a program.
pub type Which<'a> = &'a (dyn Fn(&Reference) -> bool + Sync);

/// The iteration that the sink is in, for a loop around both.
pub type Relate<'a> = &'a (dyn Fn(&Stmt) -> Relation + Sync);

/// A question about dependences.
pub struct Ask<'a> {
    /// Which references can be the source.
    pub source: Which<'a>,
    /// Which can be the sink.
    pub sink: Which<'a>,
    /// The iteration that the sink is in, for every loop around both.
    pub relate: Relate<'a>,
    /// What must hold besides.
    pub extra: Option<&'a Extra<'a>>,
    /// Which one runs first.
    pub order: Order,
    /// Leave out reductions of one operator.
    pub commute: bool,
}

impl Default for Ask<'_> {
    /// Every dependence of a program but those between reductions of one operator.
    fn default() -> Self {
        Ask {
            source: &|_| true,
            sink: &|_| true,
            relate: &|_| Relation::Any,
            extra: None,
            order: Order::SourceFirst,
            commute: true,
        }
    }
}

/// Two instances and the element that they share.
#[derive(Clone, Debug)]
pub struct Witness {
    /// Values of the program's sizes.
    pub sizes: Vec<(Symbol, i64)>,
    /// Iterators of the loops around the source, outermost first.
    pub source: Vec<(Symbol, i64)>,
    /// Iterators of the loops around the sink.
    pub sink: Vec<(Symbol, i64)>,
    /// The element's indices, if they are known.
    pub element: Option<Vec<i64>>,
    /// What the program would have to read for it: an element of a tensor, and its value.
    pub assumed: Vec<(Expr, i64)>,
    /// Whether this happens in every run with these sizes (and what is assumed), and is not only not excluded.
    pub exact: bool,
    /// A subscript of the element that was not understood: then nothing else in the witness says anything.
    pub opaque: Option<Expr>,
    /// Whether instances are known. If not, there is no proof that there are none, and nothing else is said: the
    /// numbers that were found are none of the program's.
    pub found: bool,
}

impl Witness {
    /// That there may be instances, of which none is known.
    fn not_found(opaque: Option<Expr>) -> Witness {
        let (sizes, source, sink, assumed) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Witness { sizes, source, sink, element: None, assumed, exact: false, opaque, found: false }
    }
}

/// A pair of references that touch one element, one of them writing it.
#[derive(Clone, Debug)]
pub struct Dependence {
    /// The instance that must run first.
    pub source: Reference,
    /// The one that must run later.
    pub sink: Reference,
    /// What it does.
    pub kind: DependenceKind,
    /// The loops around both, outermost first, with the iteration that the sink is in.
    pub loops: Vec<(Stmt, Relation)>,
    /// Where it happens.
    pub witness: Witness,
}

impl Dependence {
    /// The loop that carries it: the outermost one in which source and sink are in different iterations. `None` if it
    /// is within one iteration of all of them.
    pub fn carrier(&self) -> Option<&Stmt> {
        self.loops.iter().find(|(_, r)| *r != Relation::Same).map(|(s, _)| s)
    }

    /// The same dependence of two other references, which no question tells apart from these.
    fn between(&self, source: &Reference, sink: &Reference) -> Dependence {
        Dependence { source: source.clone(), sink: sink.clone(), ..self.clone() }
    }
}

/// The references of a program, ready to be asked about.
pub struct Dependences<'f> {
    func: &'f Func,
    all: Vec<Reference>,
    definitions: OnceLock<Definitions>,
    /// Where the references to a tensor stand among them.
    by_tensor: FxHashMap<Symbol, Vec<usize>>,
    /// How many questions were asked.
    asked: AtomicUsize,
}

/// Pairs of which fewer are not worth several threads: waking one up, and learning there what the program says of its
/// sizes, takes as long as many answers.
const FEW: usize = 24;
/// Questions that one thread is given at least, for the same reason.
const AT_ONCE: usize = 8;

impl<'f> Dependences<'f> {
    /// Collects the references.
    pub fn new(func: &'f Func) -> Dependences<'f> {
        Dependences::among(func, references(func))
    }

    /// Collects the references in some statements and inside of them alone, for questions about no others.
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

    /// The program.
    pub fn func(&self) -> &'f Func {
        self.func
    }

    pub(super) fn definitions(&self) -> &Definitions {
        self.definitions.get_or_init(|| Definitions::remembered(self.func))
    }

    /// All references, in the order of the text.
    pub fn references(&self) -> &[Reference] {
        &self.all
    }

    /// The references to a tensor, in the order of the text.
    pub fn of(&self, tensor: &Symbol) -> impl DoubleEndedIterator<Item = &Reference> + ExactSizeIterator {
        self.by_tensor.get(tensor).map_or(&[][..], Vec::as_slice).iter().map(|k| &self.all[*k])
    }

    /// The first dependence that the question allows, in the order of the text; `None` is a proof that there is none.
    pub fn first(&self, ask: &Ask<'_>) -> Option<Dependence> {
        self.first_pair(&self.all, ask)
    }

    /// The first pair of references, one of each kind, that touch one element, in whatever order they run; `None` is a
    /// proof that there is none. The source of what is found runs first. (`relate`: in the same iteration, or in any.)
    pub fn meeting(&self, one: Which<'_>, other: Which<'_>, relate: Relate<'_>) -> Option<Dependence> {
        let ask = |source, sink, order| self.first(&Ask { source, sink, relate, order, ..Ask::default() });
        let any = ask(one, other, Order::Either)?;
        let ordered = ask(one, other, Order::SourceFirst).or_else(|| ask(other, one, Order::SourceFirst));
        // Or it is one instance, which reads before it writes.
        let reads_first = || if any.sink.kind.writes() { None } else { ask(other, one, Order::Either) };
        ordered.or_else(reads_first).or(Some(any))
    }

    /// The same as `first` among some of the references, which are in the order of the text.
    pub fn first_among(&self, references: &[&Reference], ask: &Ask<'_>) -> Option<Dependence> {
        self.first_pair(references.iter().copied(), ask)
    }

    fn first_pair<'r>(
        &self,
        references: impl IntoIterator<Item = &'r Reference> + Clone,
        ask: &Ask<'_>,
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

    /// Every pair of references that the question allows, once for each loop that carries a dependence between them.
    pub fn all(&self, ask: &Ask<'_>) -> Vec<Dependence> {
        let pairs = pairs::every(&self.all, ask);
        let (asked, which) = pairs::numbered(pairs.iter().copied(), |(a, b)| pairs::key(a, b));
        let answers = self.cases(asked, None, ask);
        let answered = pairs.iter().zip(which).map(|(pair, k)| (pair, &answers[k]));
        answered.flat_map(|((a, b), found)| found.iter().map(|d| d.between(a, b))).collect()
    }

    /// The same, with one pair for all that the question cannot tell apart: of references in one place that do the same
    /// to the same element.
    pub fn distinct(&self, ask: &Ask<'_>) -> Vec<Dependence> {
        let (pairs, prover) = self.distinct_pairs(&self.all, ask);
        self.cases(pairs, prover, ask).into_iter().flatten().collect()
    }

    fn cases<'p>(
        &'p self,
        pairs: Vec<(&Reference, &Reference)>,
        prover: Option<Prover<'p>>,
        ask: &Ask<'_>,
    ) -> Vec<Vec<Dependence>> {
        self.each(pairs, prover, |prover, (a, b)| prover.cases(a, b, ask, usize::MAX))
    }

    /// The answers to questions that are independent of each other.
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

    /// The pairs that are asked about, with what found them, where any were looked at.
    fn distinct_pairs<'r, 'p>(
        &'p self,
        references: impl IntoIterator<Item = &'r Reference> + Clone,
        ask: &Ask<'_>,
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

    /// How many questions were asked of the facts about two instances: what the time goes with.
    pub fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }

    /// How far the sink's iterator is from the source's, for every loop around both of each dependence; `None` where it
    /// is not always as far.
    pub fn distances(&self, all: &[Dependence]) -> Vec<Vec<Option<i64>>> {
        let relations = |d: &Dependence| d.loops.iter().map(|(_, r)| *r).collect::<Vec<Relation>>();
        let (asked, which) = pairs::numbered(all, |d| (pairs::key(&d.source, &d.sink), relations(d)));
        let answers = self.each(asked, None, |prover, d| prover.distances(d));
        which.into_iter().map(|k| answers[k].clone()).collect()
    }
}
