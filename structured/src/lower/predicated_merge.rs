//! Merges with one body, where a body for each combination of stored lists would be too many. The loop advances to the
//! next coordinate of any of the lists, and tests each list there; elements that are not stored are distinguished by
//! expressions (`blend`), and fibres that are not stored have no positions.
//!
//! ```text
//! a_at = a.crd[p] if p < p_end else m            the next coordinate of each list
//! b_at = …
//! j = min(a_at, b_at)
//! while j < m:
//!     a_here = a_at == j; b_here = b_at == j
//!     …
//!     if a_here: p += 1; a_at = a.crd[p] if p < p_end else m
//!     if b_here: …
//!     j = min(a_at, b_at)
//! ```
//!
//! Blocks, runs and other looplets with several coordinates per position are traversed coordinate by coordinate.

use super::blend::{Blend, BlendTarget, Blended, both, either};
use super::cursor::State;
use super::cursor::{Cursor, PATH, path};
use super::exprs::load;
use super::nest::{LoopBuilder, LoopRange, Region};
use super::scalars::{flag, replaced, scalar, substituted};
use super::state::{EnclosingLoop, Lower};
use crate::access;
use crate::explain::{Explained, FibreRole};
use crate::looplet::is_spike;
use crate::looplet::{Fibre, Looplet, Phase, Positions, Stepper};
use std::sync::Arc;
use taffeta_analysis::query::effects;
use taffeta_ast::{DType, Diagnostic, Expr, Literal, Stmt, Symbol, Tensor, poly};

/// Maximum number of bodies in an outermost loop; beyond, elements are distinguished by expressions.
pub(super) const MANY_BODIES: usize = 100;

/// Diagnostics and records at a point of lowering, to be restored after an attempt that is discarded.
#[derive(Clone)]
struct Snapshot {
    found: Vec<Diagnostic>,
    warnings: Vec<Diagnostic>,
    explained: Vec<Explained>,
    /// Innermost enclosing loop, if there is one.
    innermost: Option<Option<EnclosingLoop>>,
}

/// List that is merged with others.
struct MergedList {
    cursor: Cursor,
    stepper: Stepper,
    state: State,
    /// Next coordinate of the list.
    at: Arc<Tensor>,
    /// Whether the next coordinate is the current one.
    here: Arc<Tensor>,
    /// Position after those of the current coordinate; `None` for a list with one position per coordinate.
    to: Option<Arc<Tensor>>,
}

impl MergedList {
    /// Evaluates an expression of the stepper at the current position.
    fn now(&self, e: &Expr) -> Expr {
        replaced(e, &self.stepper.position, &self.state.position.load([]))
    }

    /// Returns the looplet at the current position.
    fn looplet(&self) -> Looplet {
        substituted(&self.stepper.body, &self.stepper.position, &self.state.position.load([])).open_ended()
    }
}

/// Content of a cursor at a coordinate.
struct Occupancy {
    stored: Expr,
    positions: Positions,
}

impl Occupancy {
    /// Substitutes a coordinate for the iterator.
    fn at(&self, iter: &Symbol, at: &Expr) -> Occupancy {
        let to = |e: &Expr| replaced(e, iter, at);
        let positions = Positions { first: to(&self.positions.first), end: to(&self.positions.end) };
        Occupancy { stored: to(&self.stored), positions }
    }

    /// Makes the range of positions empty where nothing is stored.
    fn or_none(self) -> Occupancy {
        let Occupancy { stored, positions } = self;
        let end = match stored.as_bool() {
            Some(true) => positions.end,
            // (A range of several positions may be empty already.)
            _ if !is_one(&positions) => positions.end,
            _ => positions.first.plus(&stored.clone().cast(DType::I64)),
        };
        Occupancy { stored, positions: Positions { first: positions.first, end } }
    }
}

impl Lower {
    /// Lowers a region of an outermost loop: with a body for each combination of stored lists, or, if these are many,
    /// with bodies that distinguish elements by expressions.
    pub(super) fn lower_with_fewer_bodies(
        &mut self,
        nest: &mut LoopBuilder<'_>,
        cursors: Vec<Cursor>,
        region: &Region,
        body: &Stmt,
    ) -> Stmt {
        let (before, start) = (self.snapshot(), nest.clone());
        self.emitted = 0;
        let first = self.region(nest, cursors.clone(), region, body.clone());
        let bodies = |pass: &Lower| (pass.found.len() > before.found.len(), pass.emitted);
        let separately = bodies(self);
        if separately <= (false, MANY_BODIES) {
            return first;
        }
        let (specialised, end) = (self.snapshot(), nest.clone());
        self.restore(before.clone());
        *nest = start;
        self.emitted = 0;
        self.predicated = true;
        let second = self.region(nest, cursors, region, body.clone());
        self.predicated = false;
        let (refused, bodies) = bodies(self);
        if !refused && (separately.0 || bodies < separately.1) {
            return second;
        }
        self.restore(specialised);
        *nest = end;
        first
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot {
            found: self.found.clone(),
            warnings: self.warnings.clone(),
            explained: self.explained.clone(),
            innermost: self.around.last().cloned(),
        }
    }

    fn restore(&mut self, snapshot: Snapshot) {
        let Snapshot { found, warnings, explained, innermost } = snapshot;
        (self.found, self.warnings, self.explained) = (found, warnings, explained);
        if let (Some(current), Some(before)) = (self.around.last_mut(), innermost) {
            *current = before;
        }
    }

    /// Merges these lists with one body; `None` if a part of it cannot be expressed in this way.
    pub(super) fn predicated_merge(
        &mut self,
        nest: &mut LoopBuilder<'_>,
        (steppers, others): (&[Cursor], &[Cursor]),
        LoopRange { begin, end, whole }: LoopRange<'_>,
        body: &Stmt,
    ) -> Option<Stmt> {
        let iter = nest.iter?;
        let lists = steppers.iter().map(|c| self.merged_list(c)).collect::<Option<Vec<MergedList>>>()?;
        let coordinate = scalar(iter.name().to_string());
        let at = coordinate.load([]);
        let [limit, next] = ["limit", "next"].map(|what| scalar(format!("{}.{what}", iter.name())));
        let last = limit.load([]);
        let (mut occupancies, mut asked, mut scalars) = (Vec::new(), Vec::new(), Vec::new());
        for list in &lists {
            // Positions are computed from the iterator.
            let mut occupancy = occupancy_at(&list.looplet(), &at)?.at(iter, &at);
            if let Some(to) = &list.to {
                occupancy.positions = Positions { first: list.state.position.load([]), end: to.load([]) };
            }
            let assumed = nest.assume(&list.stepper.assumptions.iter().map(|e| list.now(e)).collect::<Vec<_>>());
            let here = Some((list.here.load([]), assumed));
            occupancies.push((
                &list.cursor,
                self.materialize(nest, &list.cursor, occupancy, here, (&mut asked, &mut scalars))?,
            ));
        }
        for c in others {
            let occupancy = occupancy_at(&c.looplet, &at)?.at(iter, &at);
            occupancies.push((c, self.materialize(nest, c, occupancy, None, (&mut asked, &mut scalars))?));
        }
        let blended = self.blend_elements(nest, &occupancies, body)?;
        let skipped = self.filled(body, steppers);
        let between = !skipped.is_nop();

        steppers.iter().for_each(|c| self.record_role(c, FibreRole::Merged));
        self.record_trip_count(&steppers.iter().collect::<Vec<_>>(), FibreRole::Merged);
        self.warn_of_steps(nest, &lists);
        let mut out = vec![nest.set(&limit, end)];
        for list in &lists {
            out.push(self.start(nest, &list.state, &list.stepper));
            if !whole && !list.cursor.starts(begin) {
                out.push(self.seek(nest, &list.state, &list.stepper, begin));
            }
            out.push(set_next_coordinate(nest, list, begin, &last));
        }
        out.extend(between.then(|| nest.set(&next, begin)));
        let Some(first) = lists.iter().map(|l| l.at.load([])).reduce(|a, b| a.min_with(&b)) else {
            unreachable!("a merge has several lists")
        };
        out.push(nest.set(&coordinate, &first));
        let mut inner = Vec::new();
        if between {
            let gap = Region::range(&next.load([]), &at);
            inner.push(self.region(nest, others.to_vec(), &gap, skipped.clone()));
        }
        for list in &lists {
            inner.push(nest.set(&list.here, &list.at.load([]).equals(&at)));
            if let Some(to) = &list.to {
                inner.push(nest.set(to, &list.state.position.load([])));
                let segment = self.segment(nest, &list.state, &list.stepper, to);
                let assumed = nest.assume(&list.stepper.assumptions.iter().map(|e| list.now(e)).collect::<Vec<_>>());
                let segment = nest.block(assumed.into_iter().chain([segment]));
                inner.push(nest.branch(&list.here.load([]), segment, Stmt::nop()));
            }
        }
        if !begin.may_fail() {
            inner.extend(nest.assume(&[begin.less_eq(&at).and(&at.less(&last))]));
        }
        inner.append(&mut asked);
        inner.extend(blended.values);
        inner.push(self.region(nest, Vec::new(), &Region::Point(at.clone()), blended.body));
        let after = at.plus(&Expr::int(1));
        for list in &lists {
            let on = self.advance(nest, list, [&at, &after], &last);
            inner.push(nest.branch(&list.here.load([]), on, Stmt::nop()));
        }
        inner.extend(between.then(|| nest.set(&next, &after)));
        inner.push(nest.set(&coordinate, &first));
        let inner = nest.block(inner);
        out.push(nest.while_loop(at.less(&last), inner));
        if between {
            let rest = Region::range(&next.load([]), &last);
            out.push(self.region(nest, others.to_vec(), &rest, skipped));
        }
        let all = nest.block(out);
        let scalars_of = |l: MergedList| [Some(l.state.position), Some(l.state.end), Some(l.at), Some(l.here), l.to];
        let scalars = lists.into_iter().flat_map(scalars_of).flatten().chain(scalars).chain(blended.scalars);
        let scalars = scalars.chain([coordinate, limit]);
        Some(nest.with(scalars.chain(between.then_some(next)), all))
    }

    /// Returns the state of a list in a merge, if it can be merged in this way.
    fn merged_list(&self, c: &Cursor) -> Option<MergedList> {
        let stepper = c.stepper()?.clone();
        let state = State::new(c, self.tensor_of(c));
        let name = state.position.symbol.name();
        let to = (!stepper.unique).then(|| scalar(format!("{name}.to")));
        let (at, here) = (scalar(format!("{name}.at")), flag(format!("{name}.here")));
        // Beyond the dimension, accesses are checked in the cases in which they are made.
        let can = stepper.ordered && c.within && c.here.is_none() && (stepper.unique || is_spike(&stepper));
        can.then_some(MergedList { cursor: c.clone(), stepper, state, at, here, to })
    }

    /// Moves an occupancy into scalars if its computation may fail; it is then computed only where its list is at the
    /// coordinate. `None` if it may have several positions.
    fn materialize(
        &self,
        nest: &LoopBuilder<'_>,
        c: &Cursor,
        occupancy: Occupancy,
        here: Option<(Expr, Vec<Stmt>)>,
        (asked, scalars): (&mut Vec<Stmt>, &mut Vec<Arc<Tensor>>),
    ) -> Option<Occupancy> {
        let Occupancy { stored, positions } = occupancy;
        if !stored.may_fail() && !positions.first.may_fail() {
            let stored = here.map_or(stored.clone(), |(here, _)| both(&here, &stored));
            return Some(Occupancy { stored, positions }.or_none());
        }
        if !is_one(&positions) {
            return None;
        }
        let name = self.tensor_of(c);
        let (is_stored, position) = (flag(format!("{name}.stored")), scalar(format!("{name}.place")));
        let found = nest.branch(&is_stored.load([]), nest.set(&position, &positions.first), Stmt::nop());
        let here = match here {
            None => nest.block([nest.set(&is_stored, &stored), found]),
            Some((here, assumed)) => {
                let all = nest.block(assumed.into_iter().chain([nest.set(&is_stored, &stored), found]));
                nest.block([nest.set(&is_stored, &Expr::bool(false)), nest.branch(&here, all, Stmt::nop())])
            }
        };
        asked.extend([nest.set(&position, &Expr::int(0)), here]);
        let occupancy = Occupancy { stored: is_stored.load([]), positions: Positions::one(position.load([])) };
        scalars.extend([is_stored, position]);
        Some(occupancy.or_none())
    }

    /// Advances a list from the current coordinate.
    fn advance(&self, nest: &LoopBuilder<'_>, list: &MergedList, [at, after]: [&Expr; 2], limit: &Expr) -> Stmt {
        let p = &list.state.position;
        let on = match (&list.to, is_spike(&list.stepper)) {
            (Some(to), _) => nest.set(p, &to.load([])),
            (None, true) => nest.set(p, &p.load([]).plus(&Expr::int(1))),
            (None, false) => {
                let assumed = nest.assume(&list.stepper.assumptions.iter().map(|e| list.now(e)).collect::<Vec<_>>());
                let ends = list.now(&list.stepper.last).equals(at);
                let on = nest.branch(&ends, nest.set(p, &p.load([]).plus(&Expr::int(1))), Stmt::nop());
                nest.block(assumed.into_iter().chain([on]))
            }
        };
        nest.block([on, set_next_coordinate(nest, list, after, limit)])
    }

    /// Rewrites the body so that the accesses of these cursors are distinguished by expressions; `None` if that is not
    /// possible.
    fn blend_elements(
        &mut self,
        nest: &LoopBuilder<'_>,
        occupancies: &[(&Cursor, Occupancy)],
        body: &Stmt,
    ) -> Option<BlendedBody> {
        let several = self.several.borrow().clone();
        let mut blend = Blend::new(body, &several, nest.s.origin());
        let written = effects::writes(body);
        let mut blended = BlendedBody { body: body.clone(), values: Vec::new(), scalars: Vec::new() };
        for (c, occupancy) in occupancies {
            let (tensor, k) = self.fibres[&c.fibre].clone();
            let all = elements_of(&blended.body, c);
            if self.tensors[&tensor].fibres.len() > k + 1 {
                if !all.iter().all(|(e, _)| self.may_be_empty(e, c, occupancy)) {
                    return None;
                }
                blended.body = self.consumed(&blended.body, c, &occupancy.positions);
                continue;
            }
            let q = &occupancy.positions.first;
            let promise = Expr::int(0).less_eq(q).and(&q.less(&self.tensors[&tensor].levels[k].positions));
            for (e, is_written) in all {
                let flat = &self.tensors[&self.fibres[load(&e)?.0].0];
                let element = Expr::load(&flat.values.symbol, vec![q.clone().into()], e.dtype());
                if is_written {
                    // A write where nothing is stored must have no effect, and be no error.
                    if !self.outside(body, &e).is_nop() {
                        return None;
                    }
                    let stored = occupancy.stored.clone();
                    blend.targets.push(BlendTarget { element: e, stored, replacement: element });
                    continue;
                }
                if flat.fibres.iter().any(|f| written.contains(f)) {
                    return None;
                }
                let fill = flat.tensor.format.fill.unwrap_or(Literal::zero(flat.tensor.dtype));
                let name = format!("{}.value", flat.tensor.symbol.name());
                let value = Arc::new(Tensor { dtype: e.dtype(), ..(*scalar(name)).clone() });
                let assumed = nest.assume(std::slice::from_ref(&promise));
                let set = nest.block(assumed.into_iter().chain([nest.set(&value, &element)]));
                blended.values.push(nest.set(&value, &Expr::literal(fill, e.dtype())));
                blended.values.push(nest.branch(&occupancy.stored, set, Stmt::nop()));
                let cases = match occupancy.stored.as_bool() {
                    Some(true) => Vec::new(),
                    _ => vec![(occupancy.stored.negate(), fill)],
                };
                blend.elements.insert(e, Blended { expr: value.load([]), cases });
                blended.scalars.push(value);
            }
        }
        // Loops over the levels below determine themselves which values derive from the fill.
        if !blend.elements.is_empty() && self.has_other_accesses(&blended.body, &blend) {
            return None;
        }
        blended.body = blend.body(&blended.body)?;
        let any_left = occupancies.iter().any(|(c, _)| !elements_of(&blended.body, c).is_empty());
        (!any_left).then_some(blended)
    }

    /// Returns whether a statement has accesses to fibres other than these elements.
    fn has_other_accesses(&self, s: &Stmt, blend: &Blend<'_>) -> bool {
        let is_blended = |e: &Expr| blend.elements.contains_key(e) || blend.targets.iter().any(|t| t.element == *e);
        let mut is_other = |e: &Expr| load(e).is_some_and(|(t, _)| self.fibres.contains_key(t)) && !is_blended(e);
        s.any(&mut |s| access::exprs(s).iter().any(|e| e.any(&mut is_other)))
    }

    /// Returns whether the fibre below an access may have no positions: it is a list, whose range may be empty.
    fn may_be_empty(&self, e: &Expr, c: &Cursor, occupancy: &Occupancy) -> bool {
        if occupancy.stored.as_bool() == Some(true) {
            return true;
        }
        let Some((t, at)) = load(e) else { return false };
        let (tensor, k) = &self.fibres[t];
        let Some(below) = self.tensors[tensor].fibres.get(k + 1) else { return false };
        let first = &occupancy.positions.first;
        let none = Positions { first: first.clone(), end: first.clone() };
        let path = path(&none, &at[PATH].index);
        let below = Expr::load(below, path.chain(at[PATH + 1..].iter().cloned()).collect(), e.dtype());
        // (Not the single list that `squeezed` has for all fibres.)
        let is_list = |b: &Cursor| b.stepper().is_some_and(|s| s.ordered && !s.full && s.begin == s.end);
        let index = &c.index;
        self.position(&below).is_none()
            && self
                .cursor(&below)
                .is_some_and(|b| is_list(&b) && self.lookup_at(&b, index).is_none() && self.probe(&b, index).is_none())
    }

    /// Warns about runs that are traversed coordinate by coordinate.
    fn warn_of_steps(&mut self, nest: &LoopBuilder<'_>, lists: &[MergedList]) {
        let (Some(iter), Some(list)) = (nest.iter, lists.iter().find(|l| l.stepper.full)) else { return };
        let name = self.tensor_of(&list.cursor);
        let text = format!("the loop `{iter}` visits every coordinate, although it traverses `{name}`");
        let d = Diagnostic::warning("structured::scan", text).at(nest.s.origin().span());
        self.warn(
            d.help("its runs have too many combinations with those of other tensors: access fewer tensors in one loop"),
        );
    }
}

/// Body in which elements are distinguished by expressions.
struct BlendedBody {
    body: Stmt,
    /// Stores that set the values of the elements before it.
    values: Vec<Stmt>,
    scalars: Vec<Arc<Tensor>>,
}

/// Sets a list's next coordinate, which is `from` or comes after it.
fn set_next_coordinate(nest: &LoopBuilder<'_>, list: &MergedList, from: &Expr, limit: &Expr) -> Stmt {
    let to = match list.looplet() {
        Looplet::Spike(_) => list.now(&list.stepper.last),
        Looplet::Sequence(phases) => match &phases[..] {
            [Phase { end: Some(end), looplet: Looplet::Run(Fibre::Fill) }, ..] => end.max_with(from),
            _ => from.clone(),
        },
        _ => from.clone(),
    };
    let assumed = nest.assume(&list.stepper.assumptions.iter().map(|e| list.now(e)).collect::<Vec<_>>());
    let on = nest.block(assumed.into_iter().chain([nest.set(&list.at, &to)]));
    nest.block([nest.set(&list.at, limit), nest.branch(&list.state.is_left(), on, Stmt::nop())])
}

/// Returns the content of a looplet at a coordinate of its region; `None` if that takes a search.
fn occupancy_at(looplet: &Looplet, at: &Expr) -> Option<Occupancy> {
    let never = || Occupancy { stored: Expr::bool(false), positions: Positions::one(Expr::int(0)) };
    Some(match looplet {
        Looplet::Run(Fibre::Fill) | Looplet::Spike(Fibre::Fill) => never(),
        Looplet::Run(Fibre::At(p)) | Looplet::Spike(Fibre::At(p)) => {
            Occupancy { stored: Expr::bool(true), positions: p.clone() }
        }
        Looplet::Lookup(l) => {
            let stored = l.stored.clone().unwrap_or(Expr::bool(true));
            Occupancy { stored, positions: Positions::one(l.position.clone()) }
        }
        Looplet::Sequence(phases) => {
            let mut all = never();
            for p in phases.iter().rev() {
                let here = occupancy_at(&p.looplet, at)?;
                all = match &p.end {
                    None => here,
                    Some(end) => chosen(&at.less(end), here, all)?,
                };
            }
            all
        }
        Looplet::Switch { cond, then, otherwise } => {
            chosen(cond, occupancy_at(then, at)?, occupancy_at(otherwise, at)?)?
        }
        Looplet::Stepper(_) => return None,
    })
}

/// Selects one of two occupancies; `None` if one of them has several positions.
fn chosen(cond: &Expr, then: Occupancy, otherwise: Occupancy) -> Option<Occupancy> {
    let stored = either(&both(cond, &then.stored), &both(&cond.negate(), &otherwise.stored));
    let positions = match (then.stored.as_bool(), otherwise.stored.as_bool()) {
        (Some(false), _) => otherwise.positions,
        (_, Some(false)) => then.positions,
        _ if is_one(&then.positions) && is_one(&otherwise.positions) => {
            Positions::one(cond.select(&then.positions.first, &otherwise.positions.first))
        }
        _ => return None,
    };
    let stored = match (then.stored.as_bool(), otherwise.stored.as_bool()) {
        (Some(true), Some(true)) => Expr::bool(true),
        _ => stored,
    };
    Some(Occupancy { stored, positions })
}

fn is_one(p: &Positions) -> bool {
    poly::equal(&p.end, &p.first.plus(&Expr::int(1))) == Some(true)
}

/// Collects the accesses of a cursor in a statement, and whether they are written.
pub(super) fn elements_of(s: &Stmt, c: &Cursor) -> Vec<(Expr, bool)> {
    let mut found: Vec<(Expr, bool)> = Vec::new();
    let mut add = |e: &Expr, written: bool| {
        if c.drives(e) && !found.contains(&(e.clone(), written)) {
            found.push((e.clone(), written));
        }
    };
    s.walk(&mut |s| {
        access::target(s).into_iter().for_each(|e| add(&e, true));
        s.kind().exprs().into_iter().for_each(|e| e.walk(&mut |e| add(e, false)));
    });
    found
}
