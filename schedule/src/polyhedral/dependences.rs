//! The dependences of a model, and whether an order keeps them.

use super::extract::Model;
use crate::order;
use weft_analysis::polyhedral::{self, Term, Wishes};
use weft_analysis::query::depend::{Ask, Dependence, DependenceKind, Dependences, Iterators, Relation};
use weft_analysis::query::reference::Reference;
use weft_analysis::query::relation::{Leaf, Related};
use weft_ast::Expr;

/// All dependences between instances of a model's leaves.
pub struct Edges<'m> {
    model: &'m Model,
    all: Dependences<'m>,
    leaves: Vec<Leaf>,
    related: Vec<Related>,
}

impl<'m> Edges<'m> {
    /// Asks for them.
    pub fn of(model: &'m Model) -> Edges<'m> {
        let all = Dependences::new(&model.func);
        let leaves = model.known_leaves();
        let related = all.related(&leaves, &model.region.parameters);
        Edges { model, all, leaves, related }
    }

    /// What a scheduler is to look for.
    pub fn wishes(&self) -> Wishes {
        let chosen = |f: &dyn Fn(&Related) -> bool| {
            self.related.iter().filter(|r| f(r)).map(|r| r.edge.clone()).collect::<Vec<_>>()
        };
        Wishes {
            validity: chosen(&|r| !r.commutes),
            // A loop with reductions into one element is not what is wanted outside.
            coincidence: chosen(&|r| r.commutes),
            proximity: chosen(&|r| r.kind == DependenceKind::ReadAfterWrite),
        }
    }
}

/// The first dependence that an order of the leaves does not keep. `None` is a proof that it keeps all of them.
pub fn turned(edges: &Edges<'_>, order: &[Vec<Term>]) -> Option<Dependence> {
    let region = &edges.model.region;
    let suspects = edges.related.iter().filter(|r| !r.commutes && polyhedral::turned(region, &r.edge, order));
    suspects.into_iter().find_map(|r| edges.exactly(r, order))
}

impl Edges<'_> {
    /// Asked again of the pair of references, where alternatives between facts count as well.
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
            self.all.first(&Ask {
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
                ..Ask::default()
            })
        })
    }
}

/// A term as an expression.
pub fn expr(t: &Term, index: &dyn Fn(usize) -> Option<Expr>, parameter: &dyn Fn(usize) -> Option<Expr>) -> Option<Expr> {
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
