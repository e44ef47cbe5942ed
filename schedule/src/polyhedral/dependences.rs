//! Dependences of a model, and the test that an order preserves them.

use super::extract::PolyhedralModel;
use crate::order;
use crate::tree::{self, Loop};
use taffeta_analysis::polyhedral::{self, Edge, OrderConstraints, Term};
use taffeta_analysis::query::depend::{Dependence, DependenceKind, DependenceQuery, Dependences, Iterators, Relation};
use taffeta_analysis::query::reference::{Reference, references};
use taffeta_analysis::query::relation::{Leaf, Related};
use taffeta_ast::{Expr, ExprKind, Func, Symbol};

/// Dependences between all instances of a model's leaves.
pub struct Edges<'m> {
    model: &'m PolyhedralModel,
    all: Dependences<'m>,
    leaves: Vec<Leaf>,
    related: Vec<Related>,
    /// Dependences to preserve, condensed by source, sink and carrying loop. An order that preserves the condensed ones
    /// preserves all of them.
    groups: Vec<(Edge, Vec<usize>)>,
}

impl<'m> Edges<'m> {
    /// Computes the dependences of a model.
    pub fn of(model: &'m PolyhedralModel) -> Edges<'m> {
        let all = Dependences::new(&model.func);
        let leaves = model.known_leaves();
        let related = all.related(&leaves, &model.region.parameters);
        let groups = groups(model, &related, &|r| !r.commutes);
        Edges { model, all, leaves, related, groups }
    }

    /// Builds the constraints for a scheduler. With `relaxed` the search is quicker, but may miss tilable or parallel
    /// loops.
    pub fn constraints(&self, relaxed: bool) -> OrderConstraints {
        let chosen = |e: Edge| if relaxed { polyhedral::relax(&self.model.region, &e) } else { e };
        let alone = |groups: Vec<(Edge, Vec<usize>)>| groups.into_iter().map(|(e, _)| chosen(e)).collect();
        // Proximity concerns, of all uses of a value, those in the next iteration of the loop that carries it.
        let flow = groups(self.model, &self.related, &|r| r.kind == DependenceKind::ReadAfterWrite);
        let near = flow.into_iter().map(|(mut edge, members)| {
            let level = members.first().map_or(0, |k| self.related[*k].level);
            let [ours, theirs] = [edge.source, edge.sink].map(|k| self.leaves[k].loops.len());
            let common = self.leaves[edge.source].loops.iter().zip(&self.leaves[edge.sink].loops);
            if level < common.take_while(|(a, b)| a == b).count() {
                let mut next = vec![0; 1 + ours + theirs];
                (next[0], next[1 + level], next[1 + ours + level]) = (1, 1, -1);
                edge.rows.push(next);
            }
            chosen(edge)
        });
        OrderConstraints {
            validity: alone(self.groups.clone()),
            // Reductions into one element commute, but a loop that carries them should not be outermost.
            coincidence: alone(groups(self.model, &self.related, &|r| r.commutes)),
            proximity: near.collect(),
        }
    }
}

fn groups(model: &PolyhedralModel, related: &[Related], of: &dyn Fn(&Related) -> bool) -> Vec<(Edge, Vec<usize>)> {
    let mut all: Vec<((usize, usize, usize), Vec<usize>)> = Vec::new();
    for (k, r) in related.iter().enumerate().filter(|(_, r)| of(r)) {
        let key = (r.edge.source, r.edge.sink, r.level);
        match all.iter_mut().find(|(other, _)| *other == key) {
            Some((_, members)) => members.push(k),
            None => all.push((key, vec![k])),
        }
    }
    let condensed = |members: Vec<usize>| {
        let edges: Vec<&Edge> = members.iter().map(|k| &related[*k].edge).collect();
        (polyhedral::condense(&model.region, &edges), members)
    };
    all.into_iter().map(|(_, members)| condensed(members)).collect()
}

/// Returns whether an order may reverse a dependence, judged by the condensed ones.
pub fn seems_turned(edges: &Edges<'_>, order: &[Vec<Term>]) -> bool {
    edges.groups.iter().any(|(e, _)| polyhedral::turned(&edges.model.region, e, order))
}

/// Finds the first dependence that an order of the leaves reverses. `None` is a proof that the order preserves all of
/// them.
pub fn turned(edges: &Edges<'_>, order: &[Vec<Term>]) -> Option<Dependence> {
    let region = &edges.model.region;
    let suspects = edges.groups.iter().filter(|(e, _)| polyhedral::turned(region, e, order));
    let each = suspects.flat_map(|(_, members)| members).map(|k| &edges.related[*k]);
    each.filter(|r| polyhedral::turned(region, &r.edge, order)).find_map(|r| edges.exactly(r, order))
}

impl Edges<'_> {
    /// Repeats the query for one pair of references by [`Dependences::first`], which, unlike relations, considers
    /// alternatives between facts, and finds a witness.
    fn exactly(&self, r: &Related, order: &[Vec<Term>]) -> Option<Dependence> {
        let around = order::around(&self.model.func, self.model.root);
        let [source, sink] = [r.references.0, r.references.1].map(|k| &self.all.references()[k]);
        let (ours, theirs) = (&order[r.edge.source], &order[r.edge.sink]);
        let same = |a: &Reference, b: &Reference| std::ptr::eq(a, b);
        let value = |leaf: usize, t: &Term, i: &Iterators<'_>| {
            let loops = &self.leaves[leaf].loops;
            expr(t, &|k| loops.get(k).and_then(|l| i.of(*l)), &|k| self.model.region.parameters.get(k).cloned())
        };
        (0..=ours.len()).find_map(|m| {
            self.all.first(&DependenceQuery {
                source: &|r| same(r, source),
                sink: &|r| same(r, sink),
                relate: &|s| if around.contains(&s.id()) { Relation::Same } else { Relation::Any },
                extra: Some(&|a, b| {
                    let both = ours.iter().zip(theirs).take(m + 1);
                    both.enumerate()
                        .filter_map(|(k, (x, y))| {
                            let (x, y) = (value(r.edge.source, x, a)?, value(r.edge.sink, y, b)?);
                            Some(if k < m { y.equals(&x) } else { y.less(&x) })
                        })
                        .collect()
                }),
                commute: false,
                ..DependenceQuery::default()
            })
        })
    }
}

/// Translates a dependence of a model back to the program: iterators of normalised loops get their original values, and
/// the statements are those of the program.
pub fn in_program_terms(func: &Func, model: &PolyhedralModel, mut d: Dependence) -> Dependence {
    let sizes = d.witness.sizes.clone();
    for (at, stmt) in [(&mut d.witness.source, &d.source.site.stmt), (&mut d.witness.sink, &d.sink.site.stmt)] {
        let path = tree::path(&func.body, stmt.id()).unwrap_or_default();
        // The loops of the model count by one; those around it are unchanged.
        let counted = |l: &Loop| {
            let now = tree::find(&model.func.body, l.stmt.id()).and_then(|s| Loop::of(&s));
            now.is_some_and(|now| now.step != l.step)
        };
        for l in path.iter().filter_map(Loop::of).filter(counted) {
            let Some(k) = at.iter().position(|(s, _)| *s == l.iter) else { continue };
            let known: Vec<(Symbol, i64)> = sizes.iter().chain(&at[..k]).cloned().collect();
            let value = l.value(&Expr::int(at[k].1)).rewrite(&mut |e| match e.kind() {
                ExprKind::Var(s) => known.iter().find(|(x, _)| x == s).map_or(e.clone(), |(_, v)| Expr::int(*v)),
                _ => e,
            });
            match value.as_int() {
                Some(v) => at[k].1 = v,
                None => d.witness.exact = false,
            }
        }
    }
    let (before, now) = (references(func), references(&model.func));
    let is_alike =
        |a: &Reference, b: &Reference| (a.site.stmt.id(), &a.tensor, a.kind) == (b.site.stmt.id(), &b.tensor, b.kind);
    let original = |r: &Reference| {
        let alike: Vec<&Reference> = now.iter().filter(|o| is_alike(o, r)).collect();
        let place = alike.iter().position(|o| o.indices == r.indices && o.guards == r.guards)?;
        before.iter().filter(|o| is_alike(o, r)).nth(place).cloned()
    };
    if let (Some(source), Some(sink)) = (original(&d.source), original(&d.sink)) {
        (d.source, d.sink) = (source, sink);
    }
    order::in_program_terms(func, d)
}

/// Converts a term to an expression.
pub fn expr(
    t: &Term,
    index: &dyn Fn(usize) -> Option<Expr>,
    parameter: &dyn Fn(usize) -> Option<Expr>,
) -> Option<Expr> {
    let sub = |t: &Term| expr(t, index, parameter);
    let joined = |all: &[Term], f: fn(&Expr, &Expr) -> Expr| {
        let mut all = all.iter().map(sub);
        let first = all.next()??;
        all.try_fold(first, |a, b| Some(f(&a, &b?)))
    };
    match t {
        Term::Number(n) => Some(Expr::int(*n)),
        Term::Index(k) => index(*k),
        Term::Parameter(k) => parameter(*k),
        Term::Sum(parts) => {
            parts.iter().try_fold(Expr::int(0), |sum, (c, t)| Some(sum.plus(&sub(t)?.times(&Expr::int(*c)))))
        }
        Term::Quotient(t, by) => Some(sub(t)?.floor_div(&Expr::int(*by))),
        Term::Least(all) => joined(all, Expr::min_with),
        Term::Greatest(all) => joined(all, Expr::max_with),
    }
}
