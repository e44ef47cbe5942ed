//! Decision procedure for one pair of references: the facts about two instances are added to a context, and a point
//! that satisfies them is the witness of a dependence.
use super::answer::{Dependence, DependenceKind, DependenceQuery, Extra, Iterators, Order, Witness};
use crate::query::definition::Definitions;
use crate::query::feasibility::Assumptions;
use crate::query::instance::{Instance, Loaded, Names, Pair, Relation, Side};
use crate::query::linear::Linear;
use crate::query::reference::{Reference, Step, Use};
use crate::query::{Context, Mark};
use rustc_hash::{FxHashMap, FxHashSet};
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use taffeta_ast::op::Op;
use taffeta_ast::{DType, Expr, ExprKind, Func, Stmt, StmtKind, Symbol};

/// Query for two references that are executed in iterations with the given relations, and access one element.
#[derive(Clone, Copy)]
pub(in crate::query) struct Meeting<'r> {
    pub(in crate::query) source: &'r Reference,
    pub(in crate::query) sink: &'r Reference,
    /// Relations of the common loops.
    pub(in crate::query) relations: &'r [Relation],
    /// Additional condition.
    pub(in crate::query) extra: Option<&'r Extra<'r>>,
}

/// Two instances, and the facts about them since a mark.
pub(in crate::query) struct Conflict {
    pub(in crate::query) mark: Mark,
    pub(in crate::query) assumed: Assumptions,
    pub(in crate::query) source: Instance,
    pub(in crate::query) sink: Instance,
    /// Indices of the source's element, and of the sink's.
    element: Option<Vec<Expr>>,
    other: Option<Vec<Expr>>,
}

/// Decision procedure for pairs, on one thread.
pub(in crate::query) struct Prover<'f> {
    func: &'f Func,
    /// Counter of queries.
    asked: &'f AtomicUsize,
    pub(in crate::query) ctx: Context,
    names: Names,
    definitions: Definitions,
    /// Tensors loaded by the path and subscripts of each class.
    loaded: FxHashMap<usize, Rc<Loaded>>,
}

impl<'f> Prover<'f> {
    pub(in crate::query) fn new(func: &'f Func, definitions: &Definitions, asked: &'f AtomicUsize) -> Prover<'f> {
        let definitions = definitions.clone();
        Prover {
            func,
            asked,
            ctx: Context::new(func),
            names: Names::default(),
            definitions,
            loaded: FxHashMap::default(),
        }
    }

    /// Finds the first dependence of a pair.
    pub(super) fn pair(&mut self, a: &Reference, b: &Reference, ask: &DependenceQuery<'_>) -> Option<Dependence> {
        self.cases(a, b, ask, 1).pop()
    }

    /// Finds up to `most` dependences of a pair: one for each loop that can carry it.
    pub(super) fn cases(
        &mut self,
        a: &Reference,
        b: &Reference,
        ask: &DependenceQuery<'_>,
        most: usize,
    ) -> Vec<Dependence> {
        let Some(asked) = asked(a, b, ask) else { return Vec::new() };
        let mut out = Vec::new();
        for relations in orders(&asked, ask.order, a.site.before(&b.site)) {
            out.extend(self.related(a, b, relations, ask.extra));
            if out.len() >= most {
                break;
            }
        }
        out
    }

    /// Finds the dependence of a pair in iterations with these relations.
    pub(super) fn related(
        &mut self,
        a: &Reference,
        b: &Reference,
        relations: Vec<Relation>,
        extra: Option<&Extra<'_>>,
    ) -> Option<Dependence> {
        let witness = self.feasible(Meeting { source: a, sink: b, relations: &relations, extra })?;
        let loops = common_loops(a, b).cloned().zip(relations).collect();
        let (source, sink) = (a.clone(), b.clone());
        Some(Dependence { kind: kind_of(a.kind, b.kind), source, sink, loops, witness })
    }

    /// Finds a witness that both references access one element.
    pub(super) fn feasible(&mut self, both: Meeting<'_>) -> Option<Witness> {
        self.with_conflict_assumed(both, |p, s| p.witness(both.source, both.sink, s))
    }

    /// Runs `f` under the assumption that both references access one element.
    pub(in crate::query) fn with_conflict_assumed<T>(
        &mut self,
        Meeting { source: a, sink: b, relations, extra }: Meeting<'_>,
        f: impl FnOnce(&mut Self, Conflict) -> T,
    ) -> T {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let common = a.site.common(&b.site);
        let between = outermost([a, b], relations);
        let unstable = self.unstable([a, b], &between);
        let mark = self.ctx.mark();
        let (mut source, mut sink) = (Instance::new(Side::Source), Instance::new(Side::Sink));
        let (definitions, assumed) = (&self.definitions, Assumptions::default());
        let mut pair = Pair { ctx: &mut self.ctx, names: &mut self.names, definitions, unstable, assumed };
        let (ours, theirs) = (a.site.path.constraints(), b.site.path.constraints());
        let (both, ours) = ours.split_at(ours.partition_point(|(k, _)| *k < common));
        let theirs = &theirs[theirs.partition_point(|(k, _)| *k < common)..];
        pair.enter_common(both.iter().map(|(_, s)| *s), relations, &mut source, &mut sink);
        pair.enter_rest(ours.iter().map(|(_, s)| *s), &mut source);
        pair.enter_rest(theirs.iter().map(|(_, s)| *s), &mut sink);
        let here = pair.execute(a, &mut source);
        let there = pair.execute(b, &mut sink);
        for cond in extra.map(|f| f(&Iterators(&source), &Iterators(&sink))).unwrap_or_default() {
            pair.suppose(&cond, true);
        }
        let (element, other) = (here.clone(), there.clone());
        if let (Some(x), Some(y)) = (&here, &there) {
            pair.suppose_one(&a.declared, x, y);
            recombine(&mut pair, x, y);
        }
        let assumed = pair.assumed;
        let answer = f(self, Conflict { mark, assumed, source, sink, element, other });
        self.ctx.pop(mark);
        answer
    }

    /// Implements [`super::Dependences::distances`].
    pub(super) fn distances(&mut self, d: &Dependence) -> Vec<Option<i64>> {
        let relations: Vec<Relation> = d.loops.iter().map(|(_, r)| *r).collect();
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
            let farther = Meeting { source: &d.source, sink: &d.sink, relations: &relations, extra: Some(&another) };
            self.feasible(farther).is_none().then_some(seen)
        };
        d.loops.iter().map(|(stmt, relation)| distance(stmt, *relation)).collect()
    }

    /// Returns the tensors that two references load and that may change between source and sink.
    fn unstable(&mut self, references: [&Reference; 2], between: &Stmt) -> FxHashSet<Symbol> {
        let mut out = FxHashSet::default();
        for r in references {
            let loaded = self.loaded.entry(r.class).or_insert_with(|| Rc::new(Loaded::by(r))).clone();
            loaded.unstable(between, &mut out);
        }
        out
    }

    fn witness(&mut self, a: &Reference, b: &Reference, conflict: Conflict) -> Option<Witness> {
        let Conflict { mark, assumed, source, sink, element, other } = conflict;
        let symbol = |e: &Expr| match e.kind() {
            ExprKind::Var(s) => Some(s.clone()),
            _ => None,
        };
        let of = |r: &Reference, i: &Instance| -> Vec<(Symbol, Symbol)> {
            r.site.loops().filter_map(|(s, iter)| Some((iter.clone(), symbol(i.iterator(s.id())?)?))).collect()
        };
        let (p, q) = (of(a, &source), of(b, &sink));
        let mut first = self.func.sizes.clone();
        for (_, s) in p.iter().chain(&q) {
            if !first.contains(s) {
                first.push(s.clone());
            }
        }
        let point = self.ctx.point(mark, &assumed, &first)?;
        let elements = [(&element, a), (&other, b)];
        let mut subscripts = elements.iter().flat_map(|(e, r)| e.iter().flatten().zip(r.indices.iter().flatten()));
        let opaque = subscripts.find(|(x, _)| self.ctx.is_opaque(x)).map(|(_, shown)| shown.clone());
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
        // Shown with numbers, since the iterators in `adj[i, j]` would belong to one of both instances.
        let number = |e: &Expr, ctx: &mut Context| {
            e.rewrite(&mut |e| match e.kind() {
                ExprKind::Var(s) if e.dtype().is_int() => {
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
        let exact = point.exact && opaque.is_none();
        let found = Witness { sizes, source, sink, element, assumed, exact, opaque, found: true };
        let refuted = found.is_refuted(a, b, &self.definitions);
        Some(if refuted { Witness::not_found(found.opaque) } else { found })
    }
}

/// Returns the loops around both references.
pub(super) fn common_loops<'r>(a: &'r Reference, b: &Reference) -> impl Iterator<Item = &'r Stmt> + use<'r> {
    let common = a.site.common(&b.site);
    a.site.path.constraints().into_iter().take_while(move |(k, _)| *k < common).filter_map(|(_, s)| match s {
        Step::Loop { stmt, .. } => Some(stmt),
        _ => None,
    })
}

/// Returns the requested relations of the common loops; `None` if the query requires different iterations of a loop
/// around the tensor's declaration, each of which has a tensor of its own.
pub(super) fn asked(a: &Reference, b: &Reference, ask: &DependenceQuery<'_>) -> Option<Vec<Relation>> {
    let common = a.site.common(&b.site);
    let scope = a.scope();
    let mut asked = Vec::new();
    for (k, step) in a.site.path.constraints().into_iter().take_while(|(k, _)| *k < common) {
        let Step::Loop { stmt, .. } = step else { continue };
        let relation = (ask.relate)(stmt);
        // Every iteration of a loop around the declaration has a tensor of its own.
        if k < scope && !relation.allows(Relation::Same) {
            return None;
        }
        asked.push(if k < scope { Relation::Same } else { relation });
    }
    Some(asked)
}

/// Maximum number of pairs of divisions by one unknown that are considered for a pair of instances.
const MAX_DIVISIONS: usize = 16;
/// Maximum number of such pairs whose quotients may be equal or not, each of which doubles the cases.
const MAX_UNDECIDED: usize = 2;

/// Adds facts that recombine quotient and remainder by one unknown into one number (`m // w` and `m % w`, of fused
/// loops). The solvers do not find such facts, because `w * (m // w)` is a product of unknowns: if two quotients are
/// equal, so are these products. The products are assumed equal where the quotients are, which may prove the same for
/// the dividends: loops that were fused one after the other have nested divisions. Where the quotients' equality is
/// unknown, both cases are kept.
fn recombine(pair: &mut Pair<'_>, here: &[Expr], there: &[Expr]) {
    let (ours, theirs) = (divisions(here.iter()), divisions(there.iter()));
    let both = ours.iter().flat_map(|x| theirs.iter().map(move |y| (x, y)));
    let both = both.filter(|((a, d), (b, e))| d == e && a != b).take(MAX_DIVISIONS);
    let product = |x: &Expr, d: &Expr| x.minus(&x.modulo(d));
    let mut left: Vec<(Expr, Expr)> = both
        .map(|((a, d), (b, _))| (a.floor_div(d).equals(&b.floor_div(d)), product(a, d).equals(&product(b, d))))
        .collect();
    let mut before = usize::MAX;
    while left.len() < before {
        before = left.len();
        left.retain(|(quotients, products)| {
            let equal = pair.ctx.decide(quotients, true);
            if equal {
                pair.suppose(products, true);
            }
            !equal
        });
    }
    let cases = left.into_iter().map(|(quotients, products)| [(quotients.and(&products), true), (quotients, false)]);
    pair.assumed.choices.extend(cases.take(MAX_UNDECIDED));
}

/// Collects dividend and divisor of the i64 divisions by non-constants in some indices.
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

/// Returns the outermost statement that contains everything executed between source and sink.
fn outermost([a, b]: [&Reference; 2], relations: &[Relation]) -> Stmt {
    let carrier = common_loops(a, b).enumerate().find(|(k, _)| relations.get(*k) != Some(&Relation::Same));
    match (carrier, a.site.path.fork(&b.site.path).1) {
        (Some((_, stmt)), _) => stmt.clone(),
        (None, [Some(next), _]) => next.stmt().clone(),
        (None, [None, _]) => a.site.stmt.clone(),
    }
}

/// Splits the requested relations into one case for every loop that can carry a dependence, in which source and sink
/// are in the same iteration of the loops outside of the carrier. If the source runs `before` the sink within one
/// iteration, the case of one iteration of all loops comes first.
pub(in crate::query) fn orders(asked: &[Relation], order: Order, before: bool) -> Vec<Vec<Relation>> {
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
        // The dependence within one iteration comes first: it is the simplest to show.
        out.insert(0, same);
    }
    out
}

pub(in crate::query) fn kind_of(source: Use, sink: Use) -> DependenceKind {
    match (source, sink) {
        (Use::Read, _) => DependenceKind::WriteAfterRead,
        (_, Use::Write) => DependenceKind::WriteAfterWrite,
        _ => DependenceKind::ReadAfterWrite,
    }
}
