//! Cursors: the fibres that a loop traverses, and its body once one of them is consumed.

use super::exprs::{guarded, known, loads};
use super::run_reductions;
use super::scalars::scalar;
use super::state::{Bindings, Lower};
use crate::access;
use crate::level::{Parent, TensorLevel};
use crate::levels;
use crate::looplet::is_spike;
use crate::looplet::{Lookup, Looplet, Positions, Stepper};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;
use taffeta_analysis::pass::fill_propagation;
use taffeta_analysis::query::effects;
use taffeta_ast::Tensor;
use taffeta_ast::expr::Protocol;
use taffeta_ast::poly::{self, Poly};
use taffeta_ast::{Access, Expr, ExprKind, Literal, Op, Stmt, StmtId, StmtKind, Symbol};

/// Number of leading indices of an access to a fibre, before its coordinates: the first position, the end position
/// (exclusive), and the coordinate of the level above.
pub(super) const PATH: usize = 3;

/// Accesses that are traversed together: to one fibre, at one index, of all tensors with one pattern.
#[derive(Clone, Debug)]
pub(super) struct Cursor {
    pub(super) fibre: Symbol,
    /// Corresponding fibres of tensors stored over this one's pattern.
    pub(super) followers: Vec<Symbol>,
    pub(super) above: Parent,
    /// Index of the accesses at the level: the iterator of the loop plus a shift, or a value known before a statement.
    pub(super) index: Expr,
    /// Difference of the index and the iterator; 0 before a statement. Coordinates in the looplet are those of the
    /// loop: the level's minus this shift.
    pub(super) shift: Expr,
    pub(super) protocol: Protocol,
    /// Looplet of the fibre in the region being lowered.
    pub(super) looplet: Looplet,
    /// Whether the loop is known to stay in the dimension.
    pub(super) within: bool,
    /// Whether the indices of all accesses are known to stay in the tensor, whatever range the loop has.
    pub(super) inside: bool,
    /// Saved position of a stepper that is queried for increasing coordinates.
    pub(super) saved_position: Option<State>,
    /// Condition that the element of a spike is at the region's last coordinate; `None` if it always is.
    pub(super) here: Option<Expr>,
}

impl Cursor {
    /// Returns whether an expression is one of the cursor's accesses.
    pub(super) fn drives(&self, e: &Expr) -> bool {
        let ExprKind::Load(t, at) = e.kind() else { return false };
        (*t == self.fibre || self.followers.contains(t))
            && at[0].index == self.above.positions.first
            && at[1].index == self.above.positions.end
            && at[2].index == self.above.coordinate
            && at[PATH].index == self.index
    }

    /// Returns the cursor in a region where its fibre has another looplet.
    pub(super) fn with(&self, looplet: Looplet, here: Option<Expr>) -> Cursor {
        Cursor { looplet, here, ..self.clone() }
    }

    /// Returns the cursor in a loop whose iterator is its index minus a shift.
    fn shifted(self, by: &Expr) -> Cursor {
        Cursor { shift: by.clone(), looplet: self.looplet.shifted(by), ..self }
    }

    /// Returns the level's coordinate in an iteration of the loop.
    pub(super) fn coordinate(&self, at: &Expr) -> Expr {
        at.plus(&self.shift)
    }

    /// Returns whether an iteration of the loop is at the level's first coordinate.
    pub(super) fn starts(&self, at: &Expr) -> bool {
        poly::equal(&self.coordinate(at), &Expr::int(0)) == Some(true)
    }

    /// Returns whether a lookup of the next coordinate steps from one position to the next, and does not gallop.
    pub(super) fn walks(&self) -> bool {
        self.protocol == Protocol::Default && self.stepper().is_some_and(|s| !is_spike(s))
    }

    pub(super) fn stepper(&self) -> Option<&Stepper> {
        match &self.looplet {
            Looplet::Stepper(stepper) => Some(stepper),
            _ => None,
        }
    }
}

/// Returns the parent of the fibre of an access.
pub(super) fn above(at: &[Access]) -> Parent {
    let positions = Positions { first: at[0].index.clone(), end: at[1].index.clone() };
    Parent { positions, coordinate: at[2].index.clone() }
}

/// Returns the leading indices of an access to a fibre, at these positions and below that coordinate.
pub(super) fn path(positions: &Positions, coordinate: &Expr) -> impl Iterator<Item = Access> {
    [positions.first.clone(), positions.end.clone(), coordinate.clone()].into_iter().map(Access::from)
}

impl Lower {
    /// Collects the fibres that a loop traverses, at positions known outside of it and at its coordinate. The names
    /// bound outside and inside tell which indices are known to stay in the tensor.
    pub(super) fn cursors(&self, body: &Stmt, iter: &Symbol, [bound, inside]: [&Bindings; 2]) -> Vec<Cursor> {
        let mut out: Vec<Cursor> = Vec::new();
        let written = effects::writes(body);
        let mut look = |e: &Expr| {
            let ExprKind::Load(t, at) = e.kind() else { return };
            if !self.fibres.contains_key(t)
                || at[PATH].protocol == Protocol::Locate
                || self.grows(t, &written)
                || !at[..PATH].iter().all(|a| known(&a.index, bound) && !loads(&a.index, &written))
            {
                return;
            }
            let Some(shift) = shift_of(&at[PATH].index, iter, bound, &written) else { return };
            let is_inside = self.is_inside(e, inside);
            if let Some(c) = out.iter_mut().find(|c| c.drives(e)) {
                c.inside &= is_inside;
            }
            match out.iter_mut().find(|c| c.drives(e)) {
                // A protocol given for one access applies to all.
                Some(c) if c.protocol == Protocol::Default => c.protocol = at[PATH].protocol,
                Some(_) => {}
                None => out.extend(self.cursor(e).map(|c| Cursor { inside: is_inside, ..c.shifted(&shift) })),
            }
        };
        body.walk(&mut |s| access::exprs(s).iter().for_each(|e| e.walk(&mut look)));
        out
    }

    /// Builds the cursor of an access to a fibre.
    pub(super) fn cursor(&self, e: &Expr) -> Option<Cursor> {
        let ExprKind::Load(t, at) = e.kind() else { return None };
        let (tensor, k) = self.fibres.get(t)?;
        let tensor = self.pattern_of(tensor);
        let level = &self.tensors[tensor].levels[*k];
        let kind = levels::of_level(level)?;
        let what = match at[PATH].index.kind() {
            ExprKind::Var(s) => format!("{}.p", s.name()),
            _ => format!("{tensor}.p"),
        };
        let (above, index) = (above(at), at[PATH].index.clone());
        let looplet = kind.fibre(level, &above, &index, &Symbol::new(what));
        let (fibre, followers) = (self.tensors[tensor].fibres[*k].clone(), self.followers_at(tensor, *k));
        let (protocol, shift) = (at[PATH].protocol, Expr::int(0));
        let (within, inside) = (true, false);
        Some(Cursor {
            fibre,
            followers,
            above,
            index,
            shift,
            protocol,
            looplet,
            within,
            inside,
            saved_position: None,
            here: None,
        })
    }

    /// Replaces the cursor's accesses in the body by accesses below these positions.
    pub(super) fn consumed(&self, body: &Stmt, cursor: &Cursor, positions: &Positions) -> Stmt {
        access::rebuild(body, &mut |e| match e.kind() {
            ExprKind::Load(t, at) if cursor.drives(&e) => {
                let (tensor, k) = &self.fibres[t];
                let flat = &self.tensors[tensor];
                match flat.fibres.get(k + 1) {
                    Some(below) => {
                        let rest = at[PATH + 1..].iter().cloned();
                        Expr::load(below, path(positions, &at[PATH].index).chain(rest).collect(), e.dtype())
                    }
                    None => Expr::load(&flat.values.symbol, vec![positions.first.clone().into()], e.dtype()),
                }
            }
            _ => e,
        })
    }

    /// Rewrites the body for the case that none of the cursors stores an element. If nothing is left of the body, its
    /// iterations are skipped; otherwise it checks the indices of cursors that may leave their dimension. Loops of the
    /// body over the levels below become loops over runs of the fill.
    pub(super) fn filled<'c>(&self, body: &Stmt, cursors: impl IntoIterator<Item = &'c Cursor>) -> Stmt {
        let cursors: Vec<&Cursor> = cursors.into_iter().collect();
        let remaining = self.filled_and_checked(body, &cursors);
        if remaining.is_nop() {
            return remaining;
        }
        let mut loops: FxHashSet<StmtId> = FxHashSet::default();
        loops_with(body, &mut |e| cursors.iter().any(|c| c.drives(e)), &mut loops);
        run_reductions::summed_in(&remaining, &loops, self.rules())
    }

    fn filled_and_checked(&self, body: &Stmt, cursors: &[&Cursor]) -> Stmt {
        let filled = self.with_fill(body, cursors);
        let beyond: Vec<&&Cursor> = cursors.iter().filter(|c| !c.within).collect();
        if beyond.is_empty() || filled.is_nop() {
            return filled;
        }
        let mut checks: FxHashMap<StmtId, Vec<Stmt>> = FxHashMap::default();
        body.walk(&mut |s| {
            for e in access::exprs(s) {
                guarded(&e, &Expr::bool(true), &mut |e, guard| {
                    if beyond.iter().any(|c| c.drives(e)) {
                        checks.entry(s.id()).or_default().extend(self.all_range_checks(s, e, guard));
                    }
                });
            }
        });
        // Statements of which something remains are checked (of a branch, the statements in it may), and the conditions
        // of the checks are filled with the rest: they may have accesses that nothing else has.
        let mut remaining: FxHashSet<StmtId> = FxHashSet::default();
        filled.walk(&mut |s| {
            remaining.insert(s.id());
        });
        body.walk(&mut |s| {
            if checks.contains_key(&s.id()) {
                let mut remains = false;
                s.walk(&mut |s| remains |= remaining.contains(&s.id()));
                if !remains {
                    checks.remove(&s.id());
                }
            }
        });
        self.with_fill(&checked(body, &mut checks), cursors)
    }

    fn with_fill(&self, body: &Stmt, cursors: &[&Cursor]) -> Stmt {
        self.where_not_stored(body, &|e| cursors.iter().any(|c| c.drives(e)) || self.is_fresh(e))
    }

    /// Rewrites a statement for the case that these elements are not stored.
    pub(super) fn where_not_stored(&self, body: &Stmt, is: &dyn Fn(&Expr) -> bool) -> Stmt {
        let fill = |e: &Expr| {
            let ExprKind::Load(t, _) = e.kind() else { return None };
            (self.fibres.contains_key(t) && is(e)).then(|| {
                let tensor = &self.tensors[&self.fibres[t].0].tensor;
                tensor.format.fill.unwrap_or(Literal::zero(tensor.dtype))
            })
        };
        let carried = self.carried.iter().flatten();
        fill_propagation::run(body, carried, &self.several.borrow(), &fill, &|s, element| self.outside(s, element))
    }

    /// Returns the body at a coordinate with a computed position: if it is stored, and if it is not.
    pub(super) fn looked_up(&self, body: &Stmt, cursor: &Cursor, lookup: &Lookup) -> [Stmt; 2] {
        let stored = self.consumed(body, cursor, &Positions::one(lookup.position.clone()));
        [stored, self.filled(body, [cursor])]
    }

    /// Returns the name of the tensor that a cursor traverses.
    pub(super) fn tensor_of(&self, cursor: &Cursor) -> &Symbol {
        &self.fibres[&cursor.fibre].0
    }

    pub(super) fn level_of(&self, cursor: &Cursor) -> &TensorLevel {
        let (tensor, k) = &self.fibres[&cursor.fibre];
        &self.tensors[tensor].levels[*k]
    }

    /// Returns whether a loop runs over the whole dimension that a cursor traverses.
    pub(super) fn is_whole(&self, cursor: &Cursor, [begin, end]: [&Expr; 2]) -> bool {
        let level = self.level_of(cursor);
        let size = &level.size;
        match cursor.shift.as_int() {
            // Padding slots follow the last coordinate.
            _ if level.slots.is_some() => false,
            Some(0) => begin.as_int() == Some(0) && end == size,
            _ => {
                let [begin, end] = [begin, end].map(|e| cursor.coordinate(e));
                poly::equal(&begin, &Expr::int(0)) == Some(true) && poly::equal(&end, size) == Some(true)
            }
        }
    }
}

/// Collects the loops in a statement that contain a matching expression, and returns whether the statement contains
/// one.
fn loops_with(s: &Stmt, is: &mut dyn FnMut(&Expr) -> bool, out: &mut FxHashSet<StmtId>) -> bool {
    let mut has = access::exprs(s).iter().any(|e| e.any(is));
    for inner in s.kind().children() {
        has |= loops_with(inner, is, out);
    }
    if has && matches!(s.kind(), StmtKind::For { .. }) {
        out.insert(s.id());
    }
    has
}

/// Returns the difference of an index and an iterator, if it is known outside of the loop and not written in it.
pub(super) fn shift_of(index: &Expr, iter: &Symbol, bound: &Bindings, written: &FxHashSet<Symbol>) -> Option<Expr> {
    match index.kind() {
        ExprKind::Var(s) => return (s == iter).then(|| Expr::int(0)),
        ExprKind::Apply(Op::Add | Op::Sub, _) if effects::mentions(index, &[iter]) => {}
        _ => return None,
    }
    let shift = Poly::of(&index.minus(&Expr::var(iter)))?.expression(index.dtype())?;
    (!effects::mentions(&shift, &[iter]) && known(&shift, bound) && !loads(&shift, written)).then_some(shift)
}

/// Inserts checks before the nested statements that have some.
fn checked(s: &Stmt, checks: &mut FxHashMap<StmtId, Vec<Stmt>>) -> Stmt {
    let inner = s.map(&mut |s| checked(s, checks), &mut Expr::clone);
    match checks.remove(&s.id()) {
        Some(before) => Stmt::seq(before.into_iter().chain([inner]), s.origin().derive("structured", "checks")),
        None => inner,
    }
}

/// Current position of a stepper.
#[derive(Clone, Debug)]
pub(super) struct State {
    /// Scalar of the position.
    pub(super) position: Arc<Tensor>,
    /// Scalar of the end position, exclusive.
    pub(super) end: Arc<Tensor>,
}

impl State {
    pub(super) fn new(cursor: &Cursor, tensor: &Symbol) -> State {
        let name = match cursor.index.kind() {
            taffeta_ast::ExprKind::Var(iter) => format!("{}.{}", iter.name(), tensor.name()),
            _ => format!("{}.p", tensor.name()),
        };
        State { position: scalar(name.clone()), end: scalar(format!("{name}.end")) }
    }

    /// Returns the condition that positions are left.
    pub(super) fn is_left(&self) -> Expr {
        self.position.load([]).less(&self.end.load([]))
    }
}
