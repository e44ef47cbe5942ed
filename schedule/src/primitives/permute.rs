#![doc = include_str!("permute.md")]

use super::reorder::{PerfectNest, chain, perfect};
use crate::entry::{Entry, Run};
use crate::polyhedron::{self, Constraint, Matrix};
use crate::refusal::Refusal;
use crate::schedule::{Change, Schedule};
use crate::tree::{self, Loop};
use crate::value::{Args, Value};
use crate::{order, trace};
use rustc_hash::FxHashSet;
use taffeta_analysis::query::depend::{Dependence, DependenceQuery, Dependences, Iterators, Relation};
use taffeta_analysis::query::{Context, effects, walk};
use taffeta_ast::op::Op;
use taffeta_ast::poly::{self, Poly};
use taffeta_ast::{Expr, ExprKind, Extent, Func, LoopProps, Stmt, StmtId, StmtKind, Symbol};

pub(crate) const ENTRY: Entry = Entry {
    name: "permute",
    signature: "s.permute([L, …], lambda i, j: (i + j, j))",
    params: &["loops", "map"],
    summary: "Runs a nest of loops over new indices.",
    doc: include_str!("permute.md"),
    run: Run::Primitive(run),
};

fn run(s: &Schedule, args: &Args<'_>) -> Result<Change, Refusal> {
    let loops = args.list("loops")?.iter().map(|a| s.loop_(a)).collect::<Result<Vec<_>, _>>()?;
    let map = args.need("map")?;
    let rows = match &map.value {
        Value::Map(m) if m.params.len() == loops.len() && m.results.len() == loops.len() => trace::coefficients(m),
        Value::Map(m) => {
            let text = format!(
                "expected one parameter and one new index per loop, found {} loops, {} parameters and {} new indices",
                loops.len(),
                m.params.len(),
                m.results.len()
            );
            return Err(Refusal::illegal(1, text).at(map.span));
        }
        other => {
            return Err(Refusal::usage(format!("expected a function of indices, found {}", other.describe()))
                .at(map.span)
                .help("write `lambda i, j: (i + j, j)`"));
        }
    };
    let Some(rows) = rows else {
        return Err(Refusal::illegal(3, "a new index is not affine in the old ones").at(map.span));
    };
    Ok(apply(s, &check(s, &loops, rows)?))
}

struct Plan {
    nest: PerfectNest,
    /// Coefficients of the new indices in the iterators of the nest; `constants` are their constant terms.
    map: Matrix,
    constants: Vec<i64>,
    inverse: Matrix,
    bounds: Vec<Constraint>,
    /// New loops, outermost first.
    loops: Vec<NewLoop>,
}

/// Loop of the new nest, which takes the id of the old nest's loop at position `statement`.
struct NewLoop {
    statement: usize,
    iter: Symbol,
    range: (Expr, Expr),
}

fn check(s: &Schedule, wanted: &[Loop], rows: Vec<Vec<i64>>) -> Result<Plan, Refusal> {
    // 1. Nested in each other.
    let chain = chain(s, wanted)?;
    let at = |l: &Loop| l.stmt.origin().span();
    let count = chain.iter().filter(|s| matches!(s.kind(), StmtKind::For { .. })).count();
    if count != wanted.len() {
        return Err(Refusal::illegal(1, "another loop stands between the loops").label(at(&wanted[0]), "one of them"));
    }
    // 2. Perfect.
    let nest = perfect(s, &chain).map_err(|mut r| {
        r.condition = 2;
        r
    })?;
    // Columns follow the order of the nest.
    let column = |l: &Loop| wanted.iter().position(|w| w.stmt.id() == l.stmt.id()).unwrap_or(0);
    let columns: Vec<usize> = nest.loops.iter().map(column).collect();
    let map: Matrix = rows.iter().map(|r| columns.iter().map(|c| r[*c]).collect()).collect();
    let constants = rows.iter().map(|r| r[wanted.len()]).collect();
    // 3. A one-to-one map of integer points.
    let Some(inverse) = polyhedron::inverse(&map) else {
        let text = "the new indices do not enumerate every iteration exactly once: the determinant is not 1 or -1";
        return Err(Refusal::illegal(3, text).label(at(&nest.loops[0]), "the nest"));
    };
    // 4. Steps of 1 or -1, and no marks.
    for l in &nest.loops {
        crate::requirements::require_unmarked(s.func(), 4, l)?;
        if !matches!(l.step.as_int(), Some(1 | -1)) {
            let text = format!("the step of `{}` is neither 1 nor -1", s.called(&l.stmt));
            return Err(Refusal::illegal(4, text).label(at(l), "this loop"));
        }
    }
    // 5. Bounds.
    let mut plan = Plan { nest, map, constants, inverse, bounds: Vec::new(), loops: Vec::new() };
    let written = effects::writes(&plan.nest.loops[0].body);
    for k in 0..plan.nest.loops.len() {
        let l = &plan.nest.loops[k];
        let loads: FxHashSet<Symbol> = [&l.begin, &l.end].into_iter().flat_map(effects::loads).collect();
        let found = plan.constraints(k).filter(|_| loads.is_disjoint(&written));
        let Some(found) = found else {
            let text =
                format!("the bounds of `{}` are not affine in the iterators of the nest around it", s.called(&l.stmt));
            return Err(Refusal::illegal(5, text).label(at(l), "this loop"));
        };
        plan.bounds.extend(found);
    }
    super::reorder::evaluated(s, &chain, &plan.nest, 5, &|_, _| true)?;
    let sided = |c: &[Constraint], k: usize| c.iter().any(|c| c.new[k] > 0) && c.iter().any(|c| c.new[k] < 0);
    let levels = polyhedron::levels(&plan.bounds, plan.nest.loops.len());
    if !levels.iter().enumerate().all(|(k, c)| sided(c, k)) {
        let text = "the coefficients of the new bounds are too large";
        return Err(Refusal::illegal(5, text).label(at(&plan.nest.loops[0]), "the nest"));
    }
    let iters: Vec<(usize, Symbol)> = plan.new_iterators();
    let facts = walk::at(s.func(), plan.nest.loops[0].stmt.id()).unwrap_or_else(|| Context::new(s.func()));
    let names: Vec<Symbol> = iters.iter().map(|(_, i)| i.clone()).collect();
    let Some(ranges) = ranges(facts, &plan.bounds, &names) else {
        let text = "a new index may not fit in 64 bits";
        let help = "bound the ranges of the loops: write `assert n <= 1000000` before them";
        return Err(Refusal::illegal(5, text).label(at(&plan.nest.loops[0]), "the nest").help(help));
    };
    let made = iters.into_iter().zip(ranges);
    plan.loops = made.map(|((statement, iter), range)| NewLoop { statement, iter, range }).collect();
    // 6. Dependences, in the perfect nest in its old order.
    let old: Vec<usize> = (0..plan.nest.loops.len()).collect();
    let before = tree::replace(s.func(), plan.nest.loops[0].stmt.id(), &plan.nest.build(&old, &[]));
    match plan.turned(&before) {
        Some(d) => Err(plan.nest.turned(s.func(), d)),
        None => Ok(plan),
    }
}

impl Plan {
    /// Converts the bounds of a loop to constraints on the new indices.
    fn constraints(&self, k: usize) -> Option<Vec<Constraint>> {
        let l = &self.nest.loops[k];
        let up = l.step.as_int() == Some(1);
        // lowest <= i < highest, or lowest < i <= highest
        let (lowest, highest) = if up { (&l.begin, &l.end) } else { (&l.end, &l.begin) };
        let (below, above) = if up { (0, -1) } else { (-1, 0) };
        let i = Poly::atom(&Expr::var(&l.iter));
        let mut out = Vec::new();
        for e in parts(lowest, Op::Max) {
            out.push(self.constraint(&i.clone().plus(&e?, -1)?, below)?);
        }
        for e in parts(highest, Op::Min) {
            out.push(self.constraint(&e?.plus(&i, -1)?, above)?);
        }
        Some(out)
    }

    /// Builds the constraint `sum + constant >= 0` over the new indices.
    fn constraint(&self, sum: &Poly, constant: i128) -> Option<Constraint> {
        let iters: Vec<&Symbol> = self.nest.loops.iter().map(|l| &l.iter).collect();
        let is_nonlinear = |e: &Expr| !matches!(e.kind(), ExprKind::Var(_)) && effects::mentions(e, &iters);
        if sum.linear_terms().any(|(e, _)| is_nonlinear(e)) {
            return None;
        }
        let old: Option<Vec<i64>> = iters.iter().map(|i| i64::try_from(sum.coefficient(i)).ok()).collect();
        let new = polyhedron::times(&old?, &self.inverse)?;
        let moved = |sum: i128, (c, k): (&i64, &i64)| sum.checked_sub(i128::from(c.checked_mul(*k)?));
        let constant = new.iter().zip(&self.constants).try_fold(constant, moved)?;
        let rest = iters.iter().fold(sum.clone(), |s, i| s.without(i)).plus(&Poly::constant(constant), 1)?;
        Some(Constraint { new, rest })
    }

    /// Finds the first dependence whose sink runs before its source in the new order.
    fn turned(&self, before: &Func) -> Option<Dependence> {
        let loops = &self.nest.loops;
        let outermost = loops[0].stmt.id();
        let around = order::around(before, outermost);
        let inside = |r: &taffeta_analysis::query::reference::Reference| r.site.inside(outermost);
        let index = |k: usize, of: &Iterators<'_>| -> Option<Expr> {
            let mut used = loops.iter().zip(&self.map[k]).filter(|(_, c)| **c != 0);
            let add = |sum: Poly, (l, c): (&Loop, &i64)| sum.plus(&Poly::atom(&of.of(l.stmt.id())?), (*c).into());
            used.try_fold(Poly::default(), add).map(|sum| sum.sum())
        };
        let all = Dependences::inside(before, &[outermost]);
        (0..loops.len()).find_map(|m| {
            all.first(&DependenceQuery {
                source: &inside,
                sink: &inside,
                relate: &|s| if around.contains(&s.id()) { Relation::Same } else { Relation::Any },
                extra: Some(&|source, sink| {
                    let mut out = Vec::new();
                    for k in 0..=m {
                        if let (Some(a), Some(b)) = (index(k, source), index(k, sink)) {
                            out.push(if k < m { b.equals(&a) } else { b.less(&a) });
                        }
                    }
                    out
                }),
                ..DependenceQuery::default()
            })
        })
    }

    /// Names the iterators of the new loops, each with the loop of the nest that it replaces. A new index that equals
    /// an old iterator keeps that loop; the remaining loops take the remaining places in their order.
    fn new_iterators(&self) -> Vec<(usize, Symbol)> {
        let loops = &self.nest.loops;
        let kept: Vec<Option<usize>> = (0..loops.len()).map(|k| self.itself(k)).collect();
        let mut free = (0..loops.len()).filter(|l| !kept.contains(&Some(*l)));
        let named = |k: usize| {
            let used = loops.iter().zip(&self.map[k]).filter(|(_, c)| **c != 0).map(|(l, _)| l.iter.name());
            Symbol::new(used.collect::<Vec<_>>().join("~"))
        };
        let place = |(k, old): (usize, &Option<usize>)| match old {
            Some(l) => (*l, loops[*l].iter.clone()),
            None => (free.next().unwrap_or(0), named(k)),
        };
        kept.iter().enumerate().map(place).collect()
    }

    /// Returns the loop of the nest whose iterator equals a new index.
    fn itself(&self, k: usize) -> Option<usize> {
        let old = self.map[k].iter().position(|c| *c == 1)?;
        let alone = self.map[k].iter().filter(|c| **c != 0).count() == 1;
        (alone && self.constants[k] == 0).then_some(old)
    }
}

/// Splits a bound into bounds that must all hold, the operands of `min` or `max`, each in affine form.
fn parts(e: &Expr, op: Op) -> Vec<Option<Poly>> {
    match e.kind() {
        ExprKind::Apply(o, a) if *o == op => a.iter().flat_map(|e| parts(e, op)).collect(),
        _ => vec![Poly::affine(e)],
    }
}

fn apply(s: &Schedule, plan: &Plan) -> Change {
    let loops = &plan.nest.loops;
    let mut body = plan.nest.core.clone();
    for (l, row) in loops.iter().zip(&plan.inverse) {
        let index = plan.loops.iter().zip(&plan.constants).map(|(new, k)| Expr::var(&new.iter).minus(&Expr::int(*k)));
        let sum = row.iter().zip(index).fold(Expr::int(0), |sum, (c, i)| sum.plus(&i.times(&Expr::int(*c))));
        body = tree::substitute(&body, &l.iter, &poly::normalized_sum(&sum));
    }
    for new in plan.loops.iter().rev() {
        let (begin, end) = new.range.clone();
        let extent = Extent::Range { begin, end, step: Expr::int(1) };
        let kind = StmtKind::For { iter: new.iter.clone(), extent, props: LoopProps::default(), body };
        body = loops[new.statement].stmt.with_kind(kind);
    }
    for (stmt, tensor) in plan.nest.declared.iter().rev() {
        body = stmt.with_kind(StmtKind::VarDef { tensor: tensor.clone(), body });
    }
    let made: Vec<StmtId> = plan.loops.iter().map(|new| loops[new.statement].stmt.id()).collect();
    Change::new(
        tree::replace(s.func(), loops[0].stmt.id(), &body),
        Value::List(made.into_iter().map(Value::from).collect()),
    )
}

/// Computes begin and end of each new loop, outermost first; `None` if one of them may wrap.
fn ranges(mut facts: Context, bounds: &[Constraint], iters: &[Symbol]) -> Option<Vec<(Expr, Expr)>> {
    let levels = polyhedron::levels(bounds, iters.len());
    let mut out = Vec::new();
    for (k, level) in levels.iter().enumerate() {
        let (mut lower, mut upper) = (Vec::new(), Vec::new());
        for c in level {
            // c · u + rest >= 0
            let mut indices = iters[..k].iter().zip(&c.new);
            let add = |sum: Poly, (i, c): (&Symbol, &i64)| sum.plus(&Poly::atom(&Expr::var(i)), (*c).into());
            let others = indices.try_fold(Poly::default(), add)?.plus(&c.rest, 1)?;
            let own = c.new[k];
            let narrow = |(e, c): (_, i128)| Some((e, i64::try_from(c).ok()?));
            let terms: Vec<(&Expr, i64)> = others.linear_terms().map(narrow).collect::<Option<_>>()?;
            let constant = others.constant_term();
            // The dividend must fit, and with it, for a coefficient of 1 or -1, the bound itself.
            let fits = if own > 0 {
                let negative: Option<Vec<_>> = terms.iter().map(|(e, c)| Some((*e, c.checked_neg()?))).collect();
                negative.is_some_and(|t| facts.sum_fits(&t, i128::from(own) - 1 - constant))
            } else {
                own > i64::MIN && facts.sum_fits(&terms, constant - i128::from(own))
            };
            if !fits {
                return None;
            }
            if own > 0 {
                let negated = Poly::default().plus(&others, -1)?;
                lower.push(poly::normalized_sum(&tree::ceil_div(&negated.sum(), own)));
            } else {
                upper.push(poly::normalized_sum(&others.sum().floor_div(&Expr::int(-own)).plus(&Expr::int(1))));
            }
        }
        let begin = tightest(&mut facts, lower, false);
        let end = tightest(&mut facts, upper, true);
        let extent = Extent::Range { begin: begin.clone(), end: end.clone(), step: Expr::int(1) };
        facts.enter_loop(&iters[k], &extent, &Stmt::nop());
        out.push((begin, end));
    }
    Some(out)
}

/// Joins bounds to the least or the largest one. Bounds proved to be redundant are left out.
fn tightest(facts: &mut Context, mut all: Vec<Expr>, least: bool) -> Expr {
    let mut k = 0;
    while k < all.len() {
        let others = (0..all.len()).filter(|j| *j != k);
        let needless = others.clone().any(|j| {
            let cond = if least { all[j].less_eq(&all[k]) } else { all[k].less_eq(&all[j]) };
            all[j] == all[k] || facts.prove(&cond)
        });
        if needless {
            all.remove(k);
        } else {
            k += 1;
        }
    }
    let join = |a: Expr, b: Expr| if least { a.min_with(&b) } else { a.max_with(&b) };
    all.into_iter().reduce(join).unwrap_or_else(|| Expr::int(0))
}
