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
//! - **Reductions** of one operator into one element commute: such pairs may be left out ([`Ask::commute`]).
//! - **What is not affine** is an unknown value of its instance: the same one for both where its arguments are the same
//!   and nothing writes what it reads in between. So the answer "no dependence" is always right, and a dependence may
//!   be one that no run shows.
//!
//! Not done here: whether a value is overwritten in between (memory-based dependences, not value-based ones).

use super::Context;
use super::definition::Definitions;
pub use super::instance::Relation;
use super::instance::{Instance, Names, Pair, Side, Writes, unstable};
use super::linear::Linear;
use super::point::Assumptions;
use super::reference::{Reference, Step, Use, references};
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use taffeta_ast::op::Op;
use taffeta_ast::{DType, Expr, ExprKind, Func, Stmt, StmtId, StmtKind, Symbol};

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

/// A question about dependences.
pub struct Ask<'a> {
    /// Which references can be the source.
    pub source: &'a (dyn Fn(&Reference) -> bool + Sync),
    /// Which can be the sink.
    pub sink: &'a (dyn Fn(&Reference) -> bool + Sync),
    /// The iteration that the sink is in, for every loop around both.
    pub relate: &'a (dyn Fn(&Stmt) -> Relation + Sync),
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
}

/// The references of a program, ready to be asked about.
pub struct Dependences<'f> {
    func: &'f Func,
    all: Vec<Reference>,
    definitions: Definitions,
    /// Where the references to a tensor stand among them.
    by_tensor: FxHashMap<Symbol, Vec<usize>>,
}

/// Pairs of which fewer are not worth several threads.
const FEW: usize = 16;

impl<'f> Dependences<'f> {
    /// Collects the references.
    pub fn new(func: &'f Func) -> Dependences<'f> {
        let all = references(func);
        let mut by_tensor: FxHashMap<Symbol, Vec<usize>> = FxHashMap::default();
        for (k, r) in all.iter().enumerate() {
            by_tensor.entry(r.tensor.clone()).or_default().push(k);
        }
        Dependences { func, all, by_tensor, definitions: Definitions::of(func) }
    }

    /// The program.
    pub fn func(&self) -> &'f Func {
        self.func
    }

    pub(super) fn definitions(&self) -> &Definitions {
        &self.definitions
    }

    /// All references, in the order of the text.
    pub fn references(&self) -> &[Reference] {
        &self.all
    }

    /// The references to a tensor, in the order of the text.
    pub fn of(&self, tensor: &Symbol) -> impl Iterator<Item = &Reference> {
        self.by_tensor.get(tensor).into_iter().flatten().map(|k| &self.all[*k])
    }

    /// The first dependence that the question allows, in the order of the text; `None` is a proof that there is none.
    pub fn first(&self, ask: &Ask<'_>) -> Option<Dependence> {
        self.first_pair(pairs(&self.all, ask), ask)
    }

    /// The same among some of the references, which are in the order of the text.
    pub fn first_among(&self, references: &[&Reference], ask: &Ask<'_>) -> Option<Dependence> {
        self.first_pair(pairs(references.iter().copied(), ask), ask)
    }

    fn first_pair(&self, pairs: Vec<(&Reference, &Reference)>, ask: &Ask<'_>) -> Option<Dependence> {
        if pairs.len() < FEW {
            let mut prover = Prover::new(self.func, &self.definitions);
            return pairs.into_iter().find_map(|(a, b)| prover.pair(a, b, ask));
        }
        taffeta_ast::pool::run(|| {
            pairs
                .into_par_iter()
                .with_min_len(4)
                .map_init(|| Prover::new(self.func, &self.definitions), |prover, (a, b)| prover.pair(a, b, ask))
                .find_map_first(|found| found)
        })
    }

    /// Every pair of references that the question allows, once for each loop that carries a dependence between them.
    pub fn all(&self, ask: &Ask<'_>) -> Vec<Dependence> {
        let pairs = pairs(&self.all, ask);
        let found: Vec<Vec<Dependence>> = taffeta_ast::pool::run(|| {
            pairs
                .into_par_iter()
                .with_min_len(4)
                .map_init(
                    || Prover::new(self.func, &self.definitions),
                    |prover, (a, b)| prover.cases(a, b, ask, usize::MAX),
                )
                .collect()
        });
        found.into_iter().flatten().collect()
    }

    /// How far the sink's iterator is from the source's, for every loop around both; `None` where it is not always as
    /// far.
    pub fn distances(&self, d: &Dependence) -> Vec<Option<i64>> {
        let mut prover = Prover::new(self.func, &self.definitions);
        let relations: Vec<Relation> = d.loops.iter().map(|(_, r)| *r).collect();
        let common = d.source.site.common(&d.sink.site);
        let at = |list: &[(Symbol, i64)], iter: &Symbol| list.iter().find(|(s, _)| s == iter).map(|(_, v)| *v);
        let mut distance = |stmt: &Stmt, relation: Relation| {
            let StmtKind::For { iter, .. } = stmt.kind() else { return None };
            if relation == Relation::Same {
                return Some(0);
            }
            let seen = at(&d.witness.sink, iter)?.checked_sub(at(&d.witness.source, iter)?)?;
            let another = |a: &Iterators<'_>, b: &Iterators<'_>| match (a.of(stmt.id()), b.of(stmt.id())) {
                (Some(p), Some(q)) => vec![q.equals(&p.plus(&Expr::int(seen))).negate()],
                _ => Vec::new(),
            };
            prover.feasible(&d.source, &d.sink, common, &relations, Some(&another)).is_none().then_some(seen)
        };
        d.loops.iter().map(|(stmt, relation)| distance(stmt, *relation)).collect()
    }
}

/// The pairs that a question is about, in the order of the sources.
fn pairs<'r>(
    references: impl IntoIterator<Item = &'r Reference> + Clone,
    ask: &Ask<'_>,
) -> Vec<(&'r Reference, &'r Reference)> {
    let mut sinks: FxHashMap<&Symbol, Vec<&Reference>> = FxHashMap::default();
    for r in references.clone().into_iter().filter(|r| (ask.sink)(r)) {
        sinks.entry(&r.tensor).or_default().push(r);
    }
    let mut out = Vec::new();
    for a in references.into_iter().filter(|r| (ask.source)(r)) {
        for b in sinks.get(&a.tensor).into_iter().flatten() {
            let commute = ask.commute && matches!((a.kind, b.kind), (Use::Reduce(x), Use::Reduce(y)) if x == y);
            if (a.kind.writes() || b.kind.writes()) && !commute {
                out.push((a, *b));
            }
        }
    }
    out
}

/// Two instances, and what is known of them since a mark.
pub(super) struct Conflict {
    pub(super) mark: super::Mark,
    pub(super) assumed: Assumptions,
    pub(super) source: Instance,
    pub(super) sink: Instance,
    /// The indices of the source's element, and of the sink's.
    element: Option<Vec<Expr>>,
    other: Option<Vec<Expr>>,
}

/// What decides about pairs, on one thread.
pub(super) struct Prover<'f> {
    func: &'f Func,
    pub(super) ctx: Context,
    names: Names,
    writes: Writes,
    definitions: Definitions,
}

impl<'f> Prover<'f> {
    pub(super) fn new(func: &'f Func, definitions: &Definitions) -> Prover<'f> {
        let definitions = definitions.clone();
        Prover { func, ctx: Context::new(func), names: Names::default(), writes: Writes::default(), definitions }
    }

    fn pair(&mut self, a: &Reference, b: &Reference, ask: &Ask<'_>) -> Option<Dependence> {
        self.cases(a, b, ask, 1).pop()
    }

    /// The dependences of a pair, up to a number of them: one for each loop that can carry it.
    fn cases(&mut self, a: &Reference, b: &Reference, ask: &Ask<'_>, most: usize) -> Vec<Dependence> {
        let common = a.site.common(&b.site);
        let scope = a.scope();
        let mut loops = Vec::new();
        let mut asked = Vec::new();
        for (k, step) in a.site.path[..common].iter().enumerate() {
            let Step::Loop { stmt, .. } = step else { continue };
            let relation = (ask.relate)(stmt);
            // Around its declaration it is another tensor in every iteration.
            if k < scope && !relation.allows(Relation::Same) {
                return Vec::new();
            }
            asked.push(if k < scope { Relation::Same } else { relation });
            loops.push(stmt.clone());
        }
        let mut out = Vec::new();
        for relations in orders(&asked, ask.order, a.site.before(&b.site)) {
            if let Some(witness) = self.feasible(a, b, common, &relations, ask.extra) {
                let loops = loops.iter().cloned().zip(relations).collect();
                let (source, sink) = (a.clone(), b.clone());
                out.push(Dependence { kind: kind_of(a.kind, b.kind), source, sink, loops, witness });
                if out.len() >= most {
                    break;
                }
            }
        }
        out
    }

    /// Whether both can be executed in iterations that are so related, and touch one element.
    fn feasible(
        &mut self,
        a: &Reference,
        b: &Reference,
        common: usize,
        relations: &[Relation],
        extra: Option<&Extra<'_>>,
    ) -> Option<Witness> {
        self.with_conflict_assumed(a, b, common, relations, extra, |p, s| {
            p.witness(a, b, s.mark, &s.assumed, [&s.source, &s.sink], [(s.element, a), (s.other, b)])
        })
    }

    /// Supposes that both are executed in iterations that are so related, and touch one element. The facts of that are
    /// there while `f` runs.
    pub(super) fn with_conflict_assumed<T>(
        &mut self,
        a: &Reference,
        b: &Reference,
        common: usize,
        relations: &[Relation],
        extra: Option<&Extra<'_>>,
        f: impl FnOnce(&mut Self, Conflict) -> T,
    ) -> T {
        let between = outermost(a, common, relations).unwrap_or_else(|| self.func.body.clone());
        let unstable = unstable([&a.site, &b.site], &between, &mut self.writes);
        let mark = self.ctx.mark();
        let (mut source, mut sink) = (Instance::new(Side::Source), Instance::new(Side::Sink));
        let (definitions, assumed) = (&self.definitions, Assumptions::default());
        let mut pair = Pair { ctx: &mut self.ctx, names: &mut self.names, definitions, unstable, assumed };
        pair.enter_common(&a.site.path[..common], relations, &mut source, &mut sink);
        pair.enter_rest(&a.site.path[common..], &mut source);
        pair.enter_rest(&b.site.path[common..], &mut sink);
        let here = pair.execute(a, &mut source);
        let there = pair.execute(b, &mut sink);
        for cond in extra.map(|f| f(&Iterators(&source), &Iterators(&sink))).unwrap_or_default() {
            pair.suppose(&cond, true);
        }
        let (element, other) = (here.clone(), there.clone());
        pair.assumed.choices.extend(recombined(here.iter().flatten(), there.iter().flatten()));
        for (x, y) in here.into_iter().flatten().zip(there.into_iter().flatten()) {
            pair.assumed.impossible |= pair.ctx.differ(&x, &y);
            pair.suppose(&x.equals(&y), true);
            pair.ctx.assume_congruent(&x, &y);
        }
        let assumed = pair.assumed;
        let answer = f(self, Conflict { mark, assumed, source, sink, element, other });
        self.ctx.pop(mark);
        answer
    }

    fn witness(
        &mut self,
        a: &Reference,
        b: &Reference,
        mark: super::Mark,
        assumed: &Assumptions,
        instances: [&Instance; 2],
        elements: [(Option<Vec<Expr>>, &Reference); 2],
    ) -> Option<Witness> {
        let symbol = |e: &Expr| match e.kind() {
            taffeta_ast::ExprKind::Var(s) => Some(s.clone()),
            _ => None,
        };
        let of = |r: &Reference, i: &Instance| -> Vec<(Symbol, Symbol)> {
            r.site.loops().filter_map(|(s, iter)| Some((iter.clone(), symbol(i.iterator(s.id())?)?))).collect()
        };
        let (p, q) = (of(a, instances[0]), of(b, instances[1]));
        let mut first = self.func.sizes.clone();
        for (_, s) in p.iter().chain(&q) {
            if !first.contains(s) {
                first.push(s.clone());
            }
        }
        let point = self.ctx.point(mark, assumed, &first)?;
        let mut subscripts = elements.iter().flat_map(|(e, r)| e.iter().flatten().zip(r.indices.iter().flatten()));
        let opaque = subscripts.find(|(x, _)| self.ctx.is_opaque(x)).map(|(_, shown)| shown.clone());
        let [(element, _), _] = elements;
        let mut value = |s: &Symbol| {
            let l = Linear::atom(self.ctx.variable(s));
            point.of(&self.ctx, &l)
        };
        let known = |list: Vec<(Symbol, Symbol)>, value: &mut dyn FnMut(&Symbol) -> Option<i64>| {
            list.into_iter().filter_map(|(shown, s)| Some((shown, value(&s)?))).collect()
        };
        let sizes = self.func.sizes.iter().map(|s| (s.clone(), s.clone())).collect();
        let (sizes, source, sink) = (known(sizes, &mut value), known(p, &mut value), known(q, &mut value));
        let element = element.and_then(|e| {
            e.iter()
                .map(|x| {
                    let l = self.ctx.linear(x);
                    point.of(&self.ctx, &l)
                })
                .collect()
        });
        // Shown with numbers: `adj[0, 1]`, not `adj[i, j]` of one of both instances.
        let number = |e: &Expr, ctx: &mut Context| {
            e.rewrite(&mut |e| match e.kind() {
                taffeta_ast::ExprKind::Var(s) if e.dtype().is_int() => {
                    let l = Linear::atom(ctx.variable(s));
                    point.of(ctx, &l).map_or(e, Expr::int)
                }
                _ => e,
            })
        };
        let mut assumed: Vec<(Expr, i64)> = Vec::new();
        for (e, v) in &point.assumed {
            let shown = (number(&self.names.original(e.clone()), &mut self.ctx), *v);
            if !assumed.contains(&shown) {
                assumed.push(shown);
            }
        }
        Some(Witness { sizes, source, sink, element, assumed, exact: point.exact && opaque.is_none(), opaque })
    }
}

/// Divisions by unknowns that are put together again, at most for one pair of instances.
const MOST_DIVISIONS: usize = 2;

/// Quotient and remainder by one unknown are one number (`m // w` and `m % w`, of loops that were merged), which the
/// solvers do not see, because `w * (m // w)` is a product of unknowns: if two quotients are equal, so are these
/// products.
fn recombined<'e>(
    here: impl Iterator<Item = &'e Expr>,
    there: impl Iterator<Item = &'e Expr>,
) -> Vec<[(Expr, bool); 2]> {
    let (ours, theirs) = (divisions(here), divisions(there));
    let pairs = ours.iter().flat_map(|x| theirs.iter().map(move |y| (x, y)));
    pairs
        .filter(|((a, d), (b, e))| d == e && a != b)
        .map(|((a, d), (b, _))| {
            let same = a.floor_div(d).equals(&b.floor_div(d));
            let product = |x: &Expr| x.minus(&x.modulo(d));
            [(same.and(&product(a).equals(&product(b))), true), (same, false)]
        })
        .take(MOST_DIVISIONS)
        .collect()
}

/// What is divided in some indices by what is not a constant.
fn divisions<'e>(indices: impl Iterator<Item = &'e Expr>) -> Vec<(Expr, Expr)> {
    let mut out = Vec::new();
    for e in indices {
        e.walk(&mut |e| {
            if let ExprKind::Apply(Op::FloorDiv | Op::Mod, args) = e.kind()
                && e.dtype() == DType::I64
                && args[1].as_int().is_none()
            {
                let both = (args[0].clone(), args[1].clone());
                if !out.contains(&both) {
                    out.push(both);
                }
            }
        });
    }
    out
}

/// The outermost statement inside which everything happens between source and sink.
fn outermost(a: &Reference, common: usize, relations: &[Relation]) -> Option<Stmt> {
    let mut relations = relations.iter();
    for step in &a.site.path[..common] {
        if let Step::Loop { stmt, .. } = step
            && relations.next() != Some(&Relation::Same)
        {
            return Some(stmt.clone());
        }
    }
    a.site.path.get(common).map(|s| s.stmt().clone()).or_else(|| Some(a.site.stmt.clone()))
}

/// The relations of the loops, one case for every loop that can carry a dependence: those before it in the same
/// iteration.
pub(super) fn orders(asked: &[Relation], order: Order, before: bool) -> Vec<Vec<Relation>> {
    if order == Order::Either {
        return vec![asked.to_vec()];
    }
    let mut out = Vec::new();
    let mut same = Vec::new();
    let mut possible = true;
    for (k, r) in asked.iter().enumerate() {
        if r.allows(Relation::Later) {
            let mut case = same.clone();
            case.push(Relation::Later);
            case.extend(&asked[k + 1..]);
            out.push(case);
        }
        possible = r.allows(Relation::Same);
        if !possible {
            break;
        }
        same.push(Relation::Same);
    }
    if possible && before {
        // What stays within one iteration comes first: it is the simplest to show.
        out.insert(0, same);
    }
    out
}

pub(super) fn kind_of(source: Use, sink: Use) -> DependenceKind {
    match (source, sink) {
        (Use::Read, _) => DependenceKind::WriteAfterRead,
        (_, Use::Write) => DependenceKind::WriteAfterWrite,
        _ => DependenceKind::ReadAfterWrite,
    }
}
