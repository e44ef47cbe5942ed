//! Separation of full tiles from partial ones: two versions of a tile's body, the first of which runs if the tile is
//! full. Its loops have just the bounds of the tile.
//!
//! ```text
//!  for i~o …:                                 for i~o …:
//!      for i~i in range(i~o * 8,         ─▶       if i~o * 8 + 8 <= n:
//!              min(n, i~o * 8 + 8)):                  for i~i in range(8):
//!          A(i~i)                                         A(i~o * 8 + i~i)
//!                                                 else:
//!                                                     for i~i in range(i~o * 8, min(n, i~o * 8 + 8)):
//!                                                         A(i~i)
//! ```
//!
//! The condition is a *guess*: each constraint of the leaves' domains holds at its least value in the tile. Correctness
//! does not rest on it, since both versions compute the same. The simpler bounds of the first version are *proved* from
//! the condition (`eliminate_guards`); a bound without a proof is kept. Loops that then have a constant trip count are
//! made to count from 0, so that later unrolling or staging finds constants.

use super::extract::PolyhedralModel;
use super::rebuild::Rebuilt;
use crate::eliminate_guards;
use crate::tree::{self, Loop};
use rustc_hash::FxHashMap;
use taffeta_analysis::pass::copy::Copier;
use taffeta_analysis::polyhedral::{Condition, Term};
use taffeta_analysis::query::{Context, walk};
use taffeta_ast::poly::Poly;
use taffeta_ast::{Expr, Func, Stmt, StmtId, StmtKind, Symbol};

/// Tiling of a nest, by which tile numbers stand for ranges of iterations.
pub struct Tiles {
    /// Loops of the nest that are tiled, with the sizes of their tiles.
    pub cut: Vec<(usize, i64)>,
    /// Whether the first tile loop runs over the sums of the first two tile numbers.
    pub wavefront: bool,
}

/// Program with full tiles separated.
pub struct Separated {
    /// Rewritten program.
    pub func: Func,
    /// Loops inside full tiles in textual order, each with its dimension of the order. They include loops of bodies
    /// that have a single version, since a second one would be the same.
    pub full: Vec<(usize, StmtId)>,
    /// Loops inside partial tiles.
    pub partial: Vec<(usize, StmtId)>,
    /// Removed branches, each with the statements that replace it.
    pub moved: Vec<(StmtId, Vec<StmtId>)>,
}

/// Duplicates the bodies of tiles wherever that simplifies bounds; `None` if it does so nowhere.
pub fn separate(model: &PolyhedralModel, rebuilt: &Rebuilt, tiles: &Tiles) -> Option<Separated> {
    let dimension: FxHashMap<StmtId, usize> = rebuilt.loops.iter().map(|(d, id)| (*id, *d)).collect();
    let mut bodies = Vec::new();
    collect(&tree::find(&rebuilt.func.body, rebuilt.root)?, &dimension, tiles, &mut Vec::new(), &mut bodies);
    let mut out = Separated { func: rebuilt.func.clone(), full: Vec::new(), partial: Vec::new(), moved: Vec::new() };
    let mut apart = false;
    for body in bodies {
        let own = rebuilt.loops.iter().filter(|(_, id)| tree::find(&body.stmt, *id).is_some());
        let Some(cond) = condition(&out.func, model, rebuilt, tiles, &body) else { continue };
        let mut copier = Copier::new("tile", "partial");
        let partial = copier.stmt(&body.stmt);
        let kind = StmtKind::If { cond, then: body.stmt.clone(), otherwise: Some(partial) };
        let branch = Stmt::new(kind, body.stmt.origin().derive("tile", "full"));
        let eliminated = eliminate_guards::within(&tree::replace(&out.func, body.stmt.id(), &branch), body.stmt.id());
        if eliminated.count == 0 {
            continue;
        }
        apart = true;
        out.func = own.clone().fold(eliminated.func, |func, (_, id)| from_zero(&func, *id).unwrap_or(func));
        out.moved.extend(eliminated.moved);
        out.partial.extend(own.filter_map(|(d, id)| Some((*d, *copier.ids.get(id)?))));
    }
    let is_there = |id: StmtId| tree::find(&out.func.body, id).is_some();
    let inside = rebuilt.loops.iter().filter(|(d, id)| *d >= tiles.cut.len() && is_there(*id));
    out.full = inside.copied().collect();
    apart.then_some(out)
}

/// Normalises a loop of constant trip count to begin at 0; `None` if that is impossible or changes nothing.
fn from_zero(func: &Func, id: StmtId) -> Option<Func> {
    let l = Loop::of(&tree::find(&func.body, id)?)?;
    if l.step.as_int() != Some(1) || l.begin.as_int() == Some(0) {
        return None;
    }
    let mut facts = walk::at(func, id)?;
    let length = l.trip_count(&mut facts)?;
    let length = facts.constant(&length).filter(|n| n.as_int() > Some(0))?;
    let body = tree::substitute(&l.body, &l.iter, &l.value(&Expr::var(&l.iter)));
    Some(tree::replace(func, id, &l.with(Expr::int(0), length, l.step.clone(), body)))
}

/// Body of a tile.
struct Body {
    stmt: Stmt,
    /// Iterators of the tile loops around it, by dimension.
    around: FxHashMap<usize, Symbol>,
}

/// Collects the largest statements without tile loops in them.
fn collect(
    s: &Stmt,
    dimension: &FxHashMap<StmtId, usize>,
    tiles: &Tiles,
    around: &mut Vec<(usize, Symbol)>,
    out: &mut Vec<Body>,
) {
    let of_tiles = |s: &Stmt| dimension.get(&s.id()).copied().filter(|d| *d < tiles.cut.len());
    let holds_tiles = s.any(&mut |s| of_tiles(s).is_some());
    if !holds_tiles {
        out.push(Body { stmt: s.clone(), around: around.iter().cloned().collect() });
        return;
    }
    let entered = match (of_tiles(s), s.kind()) {
        (Some(d), StmtKind::For { iter, .. }) => {
            around.push((d, iter.clone()));
            true
        }
        _ => false,
    };
    for c in s.kind().inside() {
        collect(c, dimension, tiles, around, out);
    }
    if entered {
        around.pop();
    }
}

/// Builds the condition that the tile around a body is full, without conjuncts that are proved or refuted.
fn condition(func: &Func, model: &PolyhedralModel, rebuilt: &Rebuilt, tiles: &Tiles, body: &Body) -> Option<Expr> {
    let range = Range::of(model, tiles, body);
    let mut wanted: Vec<Expr> = Vec::new();
    for (k, used) in rebuilt.instances.iter().enumerate() {
        if used.iter().any(|id| tree::find(&body.stmt, *id).is_some()) {
            let statement = &model.region.statements[k];
            range.conditions(&statement.domain, true, &mut wanted);
        }
    }
    let mut facts = walk::at(func, body.stmt.id())?;
    let chosen = facts.scoped(|facts| {
        let mut chosen: Vec<Expr> = Vec::new();
        for cond in wanted {
            if !facts.prove(&cond) && !facts.refute(&cond) {
                facts.assume(&cond);
                chosen.push(cond);
            }
        }
        chosen
    });
    without_implied(chosen, &mut facts).into_iter().reduce(|a, b| a.and(&b))
}

/// Removes the conditions that others imply.
fn without_implied(mut all: Vec<Expr>, facts: &mut Context) -> Vec<Expr> {
    for k in (0..all.len()).rev() {
        let follows = facts.scoped(|facts| {
            all.iter().enumerate().filter(|(other, _)| *other != k).for_each(|(_, c)| facts.assume(c));
            facts.prove(&all[k])
        });
        if follows {
            all.remove(k);
        }
    }
    all
}

/// Index ranges of the iterations in one tile.
struct Range<'m> {
    model: &'m PolyhedralModel,
    /// First and last value in the tile, for the loops of the nest whose ends are known.
    ends: FxHashMap<usize, [Expr; 2]>,
}

impl<'m> Range<'m> {
    fn of(model: &'m PolyhedralModel, tiles: &Tiles, body: &Body) -> Range<'m> {
        let iter = |d: usize| body.around.get(&d).map(Expr::var);
        let number = |k: usize| match k {
            0 if tiles.wavefront => Some(iter(0)?.minus(&iter(1)?)),
            _ => iter(k),
        };
        let ends = |(k, (index, size)): (usize, &(usize, i64))| {
            let first = number(k)?.times(&Expr::int(*size));
            let last = first.plus(&Expr::int(size - 1));
            Some((*index, [first, last]))
        };
        Range { model, ends: tiles.cut.iter().enumerate().filter_map(ends).collect() }
    }

    /// Adds sufficient conditions for a constraint to hold (or not to) in all iterations of the tile. A constraint
    /// whose least value is unknown is left out.
    fn conditions(&self, c: &Condition, holds: bool, out: &mut Vec<Expr>) {
        match c {
            Condition::All(all) if holds => all.iter().for_each(|c| self.conditions(c, holds, out)),
            Condition::Any(all) if !holds => all.iter().for_each(|c| self.conditions(c, holds, out)),
            Condition::Not(c) => self.conditions(c, !holds, out),
            Condition::NotNegative(t) if mentions(t) => {
                let least = if holds {
                    self.extreme(t, false)
                } else {
                    self.extreme(t, true).map(|most| Expr::int(-1).minus(&most))
                };
                let cond = least.map(|least| not_negative(&least));
                out.extend(cond.filter(|c| !out.contains(c)));
            }
            _ => {}
        }
    }

    /// Returns the largest or smallest value of a term in the tile, or a bound of it.
    fn extreme(&self, t: &Term, largest: bool) -> Option<Expr> {
        let joined = |all: &[Term], f: fn(&Expr, &Expr) -> Expr| {
            let each: Option<Vec<Expr>> = all.iter().map(|t| self.extreme(t, largest)).collect();
            each?.into_iter().reduce(|a, b| f(&a, &b))
        };
        match t {
            Term::Number(n) => Some(Expr::int(*n)),
            Term::Parameter(k) => self.model.region.parameters.get(*k).cloned(),
            Term::Index(k) => self.ends.get(k).map(|ends| ends[usize::from(largest)].clone()),
            Term::Sum(parts) => parts.iter().try_fold(Expr::int(0), |sum, (c, t)| {
                Some(sum.plus(&self.extreme(t, largest == (*c >= 0))?.times(&Expr::int(*c))))
            }),
            Term::Quotient(t, by) => Some(self.extreme(t, largest)?.floor_div(&Expr::int(*by))),
            Term::Least(all) => joined(all, Expr::min_with),
            Term::Greatest(all) => joined(all, Expr::max_with),
        }
    }
}

/// Returns whether a term depends on an index.
fn mentions(t: &Term) -> bool {
    match t {
        Term::Number(_) | Term::Parameter(_) => false,
        Term::Index(_) => true,
        Term::Sum(parts) => parts.iter().any(|(_, t)| mentions(t)),
        Term::Quotient(t, _) => mentions(t),
        Term::Least(all) | Term::Greatest(all) => all.iter().any(mentions),
    }
}

/// Builds `0 <= e`, with the terms of negative coefficients on the left, and those of positive ones on the right.
fn not_negative(e: &Expr) -> Expr {
    let Some(sum) = Poly::affine(e) else { return Expr::int(0).less_eq(e) };
    let int = |c: i128| Expr::int(i64::try_from(c).unwrap_or(i64::MAX));
    let part = |sign: i128, constant: i128| {
        let terms = sum.linear_terms().filter(|(_, c)| c.signum() == sign).map(|(e, c)| e.times(&int(c.abs())));
        terms.chain([int(constant)]).reduce(|sum, term| sum.plus(&term)).unwrap_or_else(|| Expr::int(0))
    };
    let constant = sum.constant_term();
    part(-1, constant.min(0).abs()).less_eq(&part(1, constant.max(0)))
}
