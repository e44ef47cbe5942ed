//! Accesses by level: from a tensor's indices to accesses of its outermost fibre, and from each fibre to the one below
//! as soon as the position is known.

use super::bounds_checks;
use super::cursor::{PATH, above, path};
use super::exprs::{guarded, known, load};
use super::state::{Bindings, Lower};
use crate::access;
use crate::level::TensorLevel;
use crate::levels;
use crate::looplet::Positions;
use taffeta_analysis::query::{Context, walk};
use taffeta_ast::expr::Protocol;
use taffeta_ast::poly::tidy;
use taffeta_ast::{Access, Expr, ExprKind, Span, Stmt, Symbol};

impl Lower {
    /// Replaces each access to a structured tensor by one to its outermost fibre: `A[i, j]` with the columns first
    /// becomes `A.fibre0[0, 1, 0, j, i]`. The indices of the program are appended if checks or messages need them
    /// ([`bounds_checks::carries`]).
    pub(super) fn open_accesses(&self, s: &Stmt) -> Stmt {
        let opened = access::rebuild(s, &mut |e| match e.kind() {
            ExprKind::Load(t, at) => match self.tensors.get(t) {
                Some(flat) => {
                    let indices = flat.levels.iter().map(|l| coordinate(l, at));
                    let own = if bounds_checks::carries(flat) { at.as_slice() } else { &[] };
                    let (root, zero) = (Positions::one(Expr::int(0)), Expr::int(0));
                    let all = path(&root, &zero).chain(indices).chain(own.iter().cloned());
                    Expr::load(&flat.fibres[0], all.collect(), e.dtype())
                }
                None => e,
            },
            _ => e,
        });
        self.shared_values(&opened)
    }

    /// Simplifies coordinates by known facts, which reveals blocks and diagonals in the indices of split or skewed
    /// loops. (Other expressions stay: deciding a condition would change which values derive from the fill.)
    pub(super) fn simplify_coordinates(&self, s: &Stmt, facts: &mut Context) -> Stmt {
        let own = access::rebuild_here(s, &mut |e| match load(&e) {
            Some((t, at)) if let Some((tensor, k)) = self.fibres.get(t) => {
                let levels = PATH..PATH + self.tensors[tensor].levels.len() - k;
                let one = |(n, a): (usize, &Access)| match levels.contains(&n) {
                    true => Access { index: shorter(&a.index, facts), protocol: a.protocol },
                    false => a.clone(),
                };
                Expr::load(t, at.iter().enumerate().map(one).collect(), e.dtype())
            }
            _ => e,
        });
        let new = walk::map(&own, facts, &mut |s, facts| self.simplify_coordinates(s, facts));
        facts.after(s);
        new
    }

    /// Returns assertions that the indices of a statement's accesses are in range, for indices from which positions are
    /// computed and that are not known to be in range.
    pub(super) fn checks(&self, s: &Stmt, bound: &Bindings) -> Vec<Stmt> {
        let mut out = Vec::new();
        for e in access::exprs(s) {
            guarded(&e, &Expr::bool(true), &mut |e, guard| out.extend(self.checks_of(s, e, guard, bound)));
        }
        out
    }

    /// Returns the assertions for one access.
    pub(super) fn checks_of(&self, s: &Stmt, e: &Expr, guard: &Expr, bound: &Bindings) -> Vec<Stmt> {
        let (mut out, mut e) = (Vec::new(), e.clone());
        while self.is_known(&e, bound)
            && let Some(position) = self.position(&e)
        {
            out.extend(self.range_checks(s, &e, guard, bound));
            e = self.below(&e, position);
        }
        out
    }

    /// Locates accesses: consumes each level whose position is computed from bound names and whose indices are known to
    /// be in range.
    pub(super) fn resolve_positions(&self, s: &Stmt, bound: &Bindings) -> Stmt {
        access::rebuild(s, &mut |e| self.locate(e, bound, &|e| self.is_inside(e, bound)))
    }

    /// Locates the accesses directly in the statement, whether their indices are known to be in range or not.
    pub(super) fn resolve_positions_here(&self, s: &Stmt, bound: &Bindings) -> Stmt {
        access::rebuild_here(s, &mut |e| self.locate(e, bound, &|_| true))
    }

    /// Consumes the levels of an access as long as its coordinate is known, `fits` accepts the access, and the position
    /// can be computed.
    pub(super) fn locate(&self, e: Expr, bound: &Bindings, fits: &dyn Fn(&Expr) -> bool) -> Expr {
        let mut e = e;
        while self.is_known(&e, bound)
            && let Some(position) = self.position(&e)
            && fits(&e)
        {
            e = self.below(&e, position);
        }
        e
    }

    /// Returns whether an expression is an access to a fibre at a known position and coordinate: they mention bound
    /// names only, and contain no accesses that must be located first.
    pub(super) fn is_known(&self, e: &Expr, bound: &Bindings) -> bool {
        let found = |a: &Access| known(&a.index, bound) && !self.is_of_fibres(&a.index);
        load(e).is_some_and(|(t, at)| self.fibres.contains_key(t) && at[..=PATH].iter().all(found))
    }

    /// Returns whether an expression contains accesses to fibres.
    pub(super) fn is_of_fibres(&self, e: &Expr) -> bool {
        e.any(&mut |e| load(e).is_some_and(|(t, _)| self.fibres.contains_key(t)))
    }

    /// Returns whether a fibre is one of a remapped tensor, whose coordinates do not tell the range of the indices.
    pub(super) fn is_remapped(&self, fibre: &Symbol) -> bool {
        self.fibres.get(fibre).is_some_and(|(tensor, _)| self.tensors[tensor].tensor.format.is_remapped())
    }

    /// Returns the position of an access, if it is computed from the parent position and the coordinate alone.
    pub(super) fn position(&self, e: &Expr) -> Option<Expr> {
        let (t, at) = load(e)?;
        let (tensor, k) = self.fibres.get(t)?;
        let level = &self.tensors[tensor].levels[*k];
        levels::of_level(level)?.located(level, &above(at), &at[PATH].index)
    }

    /// Returns the number of coordinates of a fibre's level.
    pub(super) fn size(&self, fibre: &Symbol) -> &Expr {
        let (tensor, k) = &self.fibres[fibre];
        &self.tensors[tensor].levels[*k].size
    }

    /// Returns the access below a position: to the next fibre, or to the values after the last level.
    pub(super) fn below(&self, e: &Expr, position: Expr) -> Expr {
        let Some((t, at)) = load(e) else { return e.clone() };
        let (tensor, k) = &self.fibres[t];
        let flat = &self.tensors[tensor];
        match flat.fibres.get(k + 1) {
            Some(below) => {
                let rest = at[PATH + 1..].iter().cloned();
                Expr::load(below, path(&Positions::one(position), &at[PATH].index).chain(rest).collect(), e.dtype())
            }
            None => Expr::load(&flat.values.symbol, vec![position.into()], e.dtype()),
        }
    }

    /// Refuses accesses that no enclosing loop drives.
    pub(super) fn refuse_rest(&mut self, e: &Expr, span: Span) {
        let mut undriven: Vec<(Symbol, usize)> = Vec::new();
        e.walk(&mut |e| {
            if let ExprKind::Load(t, _) = e.kind()
                && let Some(found) = self.fibres.get(t)
                && !undriven.contains(found)
            {
                undriven.push(found.clone());
            }
        });
        for (tensor, k) in undriven {
            let level = &self.tensors[&tensor].levels[k];
            let stored = match level.dimension() {
                Some(d) => format!("dimension {d}"),
                None => format!("`{}`", level.coord),
            };
            let text = format!(
                "no loop traverses `{tensor}` here: its level {k}, `{}`, stores {stored}, whose index is not the \
                 iterator of a loop over the whole dimension inside the loops of the levels above",
                level.level
            );
            self.refuse_at(span, text);
        }
    }
}

/// Simplifies an integer expression bottom-up by known facts.
pub(super) fn shorter(e: &Expr, facts: &mut Context) -> Expr {
    let inner = match e.kind() {
        ExprKind::Apply(op, _) if !op.is_lazy() => e.map_children(&mut |c| shorter(c, facts)),
        _ => return e.clone(),
    };
    let new = facts.constant(&inner).unwrap_or_else(|| facts.shorten(&inner));
    if facts.may_stop(&inner) { inner } else { new }
}

/// Returns the coordinate that a level stores for an element at these indices. The protocol of the first of the indices
/// that has one applies to the coordinate.
pub(super) fn coordinate(level: &TensorLevel, at: &[Access]) -> Access {
    if let Some(d) = level.dimension() {
        return at[d].clone();
    }
    let indices: Vec<Expr> = at.iter().map(|a| a.index.clone()).collect();
    let Some(index) = level.coord.at(&indices) else {
        unreachable!("levels of counters are not traversed (`TensorLevels::levels`)")
    };
    let index = tidy(&index.minus(&level.low));
    let protocol = level.coord.dims().into_iter().map(|d| at[d].protocol).find(|p| *p != Protocol::Default);
    Access { index, protocol: protocol.unwrap_or(Protocol::Default) }
}
