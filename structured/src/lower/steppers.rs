//! Loops driven by steppers ([`Looplet::Stepper`]: lists, runs, blocks). A single driver becomes a counted loop over
//! its positions; several drivers become a merge loop or a leapfrog join, as `merge_strategy` decides.

use super::cursor::Cursor;
use super::cursor::State;
use super::exprs::{each_access, first_effect, source_span};
use super::merge_strategy::MergePlan;
use super::nest::{LoopBuilder, LoopRange, PositionRange, Region};
use super::scalars::replaced;
use super::scalars::scalar;
use super::scalars::substituted;
use super::state::Lower;
use crate::access;
use crate::explain::FibreRole;
use crate::looplet::is_spike;
use crate::looplet::{Fibre, Looplet};
use taffeta_ast::expr::Protocol;
use taffeta_ast::stmt::{LoopProps, Routine};
use taffeta_ast::{Expr, Extent, Stmt, StmtKind};

impl Lower {
    /// Returns whether the steppers need a union merge: there are several, the loop is sequential, none of them
    /// gallops, and the body has an effect where at least one of them stores nothing.
    pub(super) fn needs_union_merge(&self, nest: &LoopBuilder<'_>, steppers: &[Cursor], body: &Stmt) -> bool {
        let gallops = |c: &Cursor| c.protocol == Protocol::Gallop;
        steppers.len() > 1
            && !nest.props.is_concurrent()
            && !steppers.iter().any(gallops)
            && !self.is_intersection(steppers, body)
    }

    /// Returns whether the body has no effect where any one of these steppers stores nothing.
    pub(super) fn is_intersection(&self, steppers: &[Cursor], body: &Stmt) -> bool {
        steppers.iter().all(|c| self.filled(body, [c]).is_nop())
    }

    /// Lowers a region that steppers drive.
    pub(super) fn steppers(
        &mut self,
        nest: &mut LoopBuilder<'_>,
        cursors: Vec<Cursor>,
        range: LoopRange<'_>,
        body: Stmt,
    ) -> Stmt {
        let drives = |c: &Cursor| c.stepper().is_some() && c.saved_position.is_none();
        let (mut steppers, mut others): (Vec<Cursor>, Vec<Cursor>) = cursors.into_iter().partition(drives);
        if steppers.is_empty() {
            // Cursors with a saved position are normally looked up. No other stepper drives this region, so they do.
            others.iter_mut().for_each(|c| c.saved_position = None);
            (steppers, others) = others.into_iter().partition(drives);
        }
        let (steppers, sorts) = self.sorted_lists(nest, steppers);
        if !sorts.is_empty() {
            let done = self.steppers(nest, steppers.into_iter().chain(others).collect(), range, body);
            return nest.block(sorts.into_iter().chain([done]));
        }
        let (steppers, known) = self.split_lookups(steppers, &body, nest);
        others.extend(known.into_iter().filter_map(|c| {
            let at = Expr::var(nest.iter?);
            let lookup = self.lookup_at(&c, &at)?;
            Some(c.with(Looplet::Lookup(lookup), None))
        }));
        let (steppers, looked_up) = self.split_unordered(steppers, range, &body, nest);
        if steppers.is_empty() {
            // No stepper drives the loop: all are looked up at each coordinate.
            let LoopRange { begin, end, whole } = range;
            self.warn_of_order(nest, &looked_up);
            let region = Region::Range { begin: begin.clone(), end: end.clone(), last: None, whole };
            return self.region(nest, others, &region, body);
        }
        others.extend(looked_up);
        if self.predicated
            && self.needs_union_merge(nest, &steppers, &body)
            && let Some(done) = self.predicated_merge(nest, (&steppers, &others), range, &body)
        {
            return done;
        }
        let (steppers, mut following) = self.following(steppers, &body, nest);
        let drive = self.merge_plan(nest, &steppers, &body);
        let mut leading = Vec::new();
        for (k, c) in steppers.into_iter().enumerate() {
            let leads = match &drive {
                MergePlan::Leader(leader) => *leader == k,
                MergePlan::Leapfrog(leaders) => leaders.contains(&k),
                MergePlan::Merge => true,
            };
            if leads { leading.push(c) } else { following.push(c) }
        }
        // Followers continue from their position if they are queried for increasing coordinates.
        let rises = |c: &Cursor| c.stepper().is_some_and(|s| s.ordered && is_spike(s));
        let rises = !nest.props.is_concurrent() && leading.iter().all(rises);
        let (mut all, scalars) = match rises {
            true => self.save_positions(nest, &mut following, [range.begin, &Expr::bool(range.whole)]),
            false => (Vec::new(), Vec::new()),
        };
        let others = [following, others].concat();
        let (reserved, held) = (self.reserved.clone(), self.held.clone());
        let (counters, [before, after]) = self.hold_counters(nest, &body);
        all.extend(before);
        all.extend(self.reserve(nest, (&drive, &leading), range, &body));
        all.push(match (&drive, &leading[..]) {
            (MergePlan::Leapfrog(_), _) => self.leapfrog(nest, leading, others, range, body),
            (MergePlan::Leader(_), [leader]) => self.counted(nest, leader, &others, range, body),
            (MergePlan::Merge, [c])
                if c.stepper().is_some_and(|s| s.unique)
                    || !nest.props.is_concurrent() && self.is_chain(c, &body, nest) =>
            {
                self.counted(nest, c, &others, range, body)
            }
            _ => self.merged(nest, leading, others, range, body),
        });
        (self.reserved, self.held) = (reserved, held);
        all.extend(after);
        let all = nest.block(all);
        nest.with(scalars.into_iter().chain(counters), all)
    }

    /// Sorts the lists of workspaces whose elements are copied in the order of their coordinates.
    fn sorted_lists(&self, nest: &LoopBuilder<'_>, steppers: Vec<Cursor>) -> (Vec<Cursor>, Vec<Stmt>) {
        let mut sorts = Vec::new();
        let sorted = |mut c: Cursor| {
            let flat = &self.tensors[self.tensor_of(&c)];
            if let (Looplet::Stepper(stepper), Some(level)) = (&mut c.looplet, flat.levels.last())
                && self.sorted.borrow().contains(&flat.tensor.symbol)
                && !stepper.ordered
            {
                let tensors = vec![level.arrays[crate::levels::workspace::CRD].symbol.clone()];
                let operands = vec![stepper.begin.clone(), stepper.end.clone()];
                sorts.push(nest.derived(StmtKind::Call { routine: Routine::Sort, tensors, operands }, "sort"));
                stepper.ordered = true;
            }
            c
        };
        (steppers.into_iter().map(sorted).collect(), sorts)
    }

    /// Returns whether duplicates of a coordinate may be visited one at a time: the body is a single unit-step loop
    /// over the whole level below, without an effect where nothing is stored.
    pub(super) fn is_chain(&self, c: &Cursor, body: &Stmt, nest: &LoopBuilder<'_>) -> bool {
        let StmtKind::For { iter, extent: Extent::Range { begin, end, step }, body: inner, .. } = body.kind() else {
            return false;
        };
        let Some(Looplet::Spike(Fibre::At(at))) = c.stepper().map(|s| (*s.body).clone()) else { return false };
        let mut bound = nest.inside.clone();
        c.stepper().into_iter().for_each(|s| drop(bound.insert(s.position.clone(), None)));
        let inner = &self.consumed(inner, c, &at);
        let below = self.cursors(inner, iter, [&bound, &bound]);
        // A lookup at another coordinate may match any of the positions.
        let mut asked = false;
        let mut look = |e: &Expr, _: &Expr, _: bool| {
            asked |= self.cursor(e).is_some_and(|b| b.above.positions == at && b.index != Expr::var(iter));
        };
        each_access(inner, true, &mut look);
        let same = |b: &Cursor| b.above.positions == at && self.tensor_of(b) == self.tensor_of(c);
        step.as_int() == Some(1)
            && !asked
            && below.len() == 1
            && below.iter().all(|b| same(b) && self.is_whole(b, [begin, end]) && b.protocol != Protocol::Gallop)
            && self.filled(inner, &below).is_nop()
    }

    /// Lowers a loop over the positions of one stepper. If its body has an effect where nothing is stored, it also runs
    /// over the coordinates in between.
    ///
    /// ```text
    /// next = 0
    /// for j.p in range(pos[i], pos[i + 1]):
    ///     for j in range(next, crd[j.p]):
    ///         …                                   where nothing is stored
    ///     …                                       at crd[j.p]
    ///     next = crd[j.p] + 1
    /// for j in range(next, m):
    ///     …                                       where nothing is stored
    /// ```
    fn counted(
        &mut self,
        nest: &mut LoopBuilder<'_>,
        cursor: &Cursor,
        others: &[Cursor],
        range: LoopRange<'_>,
        body: Stmt,
    ) -> Stmt {
        let Some(stepper) = cursor.stepper() else { unreachable!("the driver is a stepper") };
        let LoopRange { begin, end, whole } = range;
        // Without order, the coordinates of a range may be at any position.
        if whole || !stepper.ordered {
            let (first, stop) = (&stepper.begin, &stepper.end);
            let positions = PositionRange { first, end: stop, coordinates: [begin, end], inside: whole };
            return self.over(nest, cursor, others, positions, body);
        }
        let state = State::new(cursor, self.tensor_of(cursor));
        // Spikes in the range are exactly those between the two positions; longer looplets are clipped.
        let [first, last] = ["first", "last"].map(|what| scalar(format!("{}.{what}", state.position.symbol.name())));
        let mut found = vec![self.start(nest, &state, stepper)];
        if !cursor.starts(begin) {
            found.push(self.seek(nest, &state, stepper, begin));
        }
        found.push(nest.set(&first, &state.position.load([])));
        let of_spikes = is_spike(stepper);
        let to = match of_spikes {
            true => end.clone(),
            false => end.minus(&Expr::int(1)),
        };
        found.push(self.seek(nest, &state, stepper, &to));
        let stop = match of_spikes {
            true => state.position.load([]),
            false => state.position.load([]).plus(&Expr::int(1)).min_with(&state.end.load([])),
        };
        found.push(nest.set(&last, &stop));
        let props = nest.props.clone();
        let [from, to] = [first.load([]), last.load([])];
        let positions = PositionRange { first: &from, end: &to, coordinates: [begin, end], inside: true };
        found.push(self.over(nest, cursor, others, positions, body));
        nest.props = props;
        let scalars = [state.position.clone(), state.end.clone(), first, last];
        let all = nest.block(found);
        nest.with(scalars, all)
    }

    /// Builds the loop over these positions of a stepper.
    pub(super) fn over(
        &mut self,
        nest: &mut LoopBuilder<'_>,
        cursor: &Cursor,
        others: &[Cursor],
        positions: PositionRange<'_>,
        body: Stmt,
    ) -> Stmt {
        let PositionRange { first, end: stop, coordinates: [begin, end], inside } = positions;
        let Some(stepper) = cursor.stepper().cloned() else { unreachable!("the driver is a stepper") };
        let Some(iter) = nest.iter else { unreachable!("a region is a loop's") };
        self.record_role(cursor, FibreRole::Drives);
        self.record_trip_count(&[cursor], FibreRole::Drives);
        let skipped = self.filled(&body, [cursor]);
        let of_spikes = is_spike(&stepper);
        // Effects between unordered coordinates come after the loop.
        let between = match stepper.ordered || skipped.is_nop() {
            true => None,
            false => self.between(nest, cursor, &skipped, [begin, end]),
        };
        let skipped = if between.is_some() { Stmt::nop() } else { skipped };
        let next = (!skipped.is_nop() || !of_spikes).then(|| scalar(format!("{}.next", iter.name())));
        let props = nest.props.clone();
        if let Some(what) = self.illegality(cursor, &props, next.is_some(), &skipped, &body) {
            self.refuse_at(source_span(nest.s), what);
            return Stmt::nop();
        }
        nest.props = LoopProps::default();
        let position = stepper.position.fresh();
        let at = |e: &Expr| replaced(e, &stepper.position, &Expr::var(&position));
        let outer = nest.inside.clone();
        nest.inside.insert(position.clone(), None);
        let coordinate = at(&stepper.last);
        let looplet = substituted(&stepper.body, &stepper.position, &Expr::var(&position)).open_ended();
        let child = [cursor.with(looplet, None)];
        let all = others.iter().cloned().chain(child).collect();
        let region = match &next {
            _ if of_spikes && skipped.is_nop() => Region::Point(coordinate.clone()),
            Some(next) => {
                let after = coordinate.plus(&Expr::int(1));
                // The segments at the first and the last position may extend beyond the range.
                let whole = self.is_whole(cursor, [begin, end]) || of_spikes;
                let end = if whole { after } else { after.min_with(end) };
                let last = Some(coordinate.clone()).filter(|_| of_spikes);
                Region::Range { begin: next.load([]), end, last, whole: false }
            }
            None => unreachable!("a segment has a first coordinate"),
        };
        // The loop over positions keeps the id of the original loop; inner statements get derived ids.
        let id_taken = std::mem::replace(&mut nest.id_taken, true);
        let mut inner = nest.assume(&stepper.assumptions.iter().map(at).collect::<Vec<_>>());
        if inside && of_spikes && !self.is_whole(cursor, [begin, end]) {
            // These positions were searched for, so they are in range.
            inner.extend(nest.assume(&[begin.less_eq(&coordinate).and(&coordinate.less(end))]));
        }
        let here = self.region(nest, all, &region, body);
        inner.push(match inside {
            true => here,
            false => nest.branch(&begin.less_eq(&coordinate).and(&coordinate.less(end)), here, Stmt::nop()),
        });
        if let Some(next) = &next {
            inner.push(nest.set(next, &coordinate.plus(&Expr::int(1))));
        }
        nest.inside = outer;
        nest.id_taken = id_taken;
        let extent = Extent::Range { begin: first.clone(), end: stop.clone(), step: Expr::int(1) };
        let props = LoopProps { library: false, ..props };
        let inner = nest.block(inner);
        let stored = nest.statement(StmtKind::For { iter: position, extent, props, body: inner }, "positions");
        if let Some(between) = between {
            nest.bodies += 1;
            let after = self.emitted_run(nest, &between);
            return nest.block([stored, after]);
        }
        let Some(next) = next else { return stored };
        let rest = match stepper.full {
            true => Stmt::nop(),
            false => self.region(nest, others.to_vec(), &Region::range(&next.load([]), end), skipped),
        };
        let all = nest.block([nest.set(&next, begin), stored, rest]);
        nest.with([next], all)
    }

    /// Returns the reason why a counted loop over the stepper's positions would be illegal; `None` if it is legal.
    /// `has_next`: the loop carries the next coordinate from one iteration to the next.
    fn illegality(
        &self,
        cursor: &Cursor,
        props: &LoopProps,
        has_next: bool,
        skipped: &Stmt,
        body: &Stmt,
    ) -> Option<String> {
        let name = self.tensor_of(cursor);
        let iter = &cursor.index;
        let iter = taffeta_ast::print::expr(iter);
        if has_next && props.is_concurrent() {
            let why = match skipped.is_nop() {
                true => format!("positions of `{name}`, which it traverses, may span several coordinates"),
                false => format!("it has effects where `{name}`, which it traverses, stores nothing"),
            };
            return Some(format!("the loop `{iter}` cannot be parallel or vectorised: {why}"));
        }
        let ordered = cursor.stepper().is_none_or(|s| s.ordered);
        if !ordered && (first_effect(skipped).is_some() || !self.only_reduces(body, cursor)) {
            return Some(format!(
                "the loop `{iter}` traverses `{name}` without order, and does more than reduce its stored elements"
            ));
        }
        None
    }

    /// Builds a leapfrog join: leaders jump to the largest of their coordinates, where the others are looked up
    /// (jumpers: Looplets, section 6.5).
    ///
    /// ```text
    /// while p < p_end and q < q_end:
    ///     j = max(a.crd[p], b.crd[q])
    ///     p, q = the first positions at j or after it
    ///     if p < p_end and q < q_end and a.crd[p] == j and b.crd[q] == j:
    ///         …
    ///         p += 1; q += 1
    /// ```
    fn leapfrog(
        &mut self,
        nest: &mut LoopBuilder<'_>,
        leaders: Vec<Cursor>,
        followers: Vec<Cursor>,
        LoopRange { begin, end, whole }: LoopRange<'_>,
        body: Stmt,
    ) -> Stmt {
        let Some(iter) = nest.iter else { unreachable!("a region is a loop's") };
        leaders.iter().for_each(|c| self.record_role(c, FibreRole::Leaps));
        self.record_trip_count(&leaders.iter().collect::<Vec<_>>(), FibreRole::Leaps);
        let states: Vec<State> = leaders.iter().map(|c| State::new(c, self.tensor_of(c))).collect();
        let last = scalar(iter.name().to_string());
        let mut out = Vec::new();
        let (mut cond, mut inner) = (Expr::bool(true), Vec::new());
        let (mut largest, mut found, mut advance) = (None::<Expr>, Expr::bool(true), Vec::new());
        let (mut all_left, mut seeks, mut assumed, mut all) = (Expr::bool(true), Vec::new(), Vec::new(), followers);
        for (c, state) in leaders.iter().zip(&states) {
            let Some(stepper) = c.stepper() else { continue };
            let at = state.position.load([]);
            let to = |e: &Expr| replaced(e, &stepper.position, &at);
            let assumptions: Vec<Expr> = stepper.assumptions.iter().map(to).collect();
            out.push(self.start(nest, state, stepper));
            if !whole {
                out.push(self.seek(nest, state, stepper, end));
                out.push(nest.set(&state.end, &state.position.load([])));
                out.push(nest.set(&state.position, &stepper.begin));
                out.push(self.seek(nest, state, stepper, begin));
            }
            cond = and(cond, state.is_left());
            inner.extend(nest.assume(&assumptions));
            let own = to(&stepper.last);
            largest = Some(largest.map_or(own.clone(), |l| l.max_with(&own)));
            seeks.push(self.seek(nest, state, stepper, &last.load([])));
            all_left = and(all_left, state.is_left());
            assumed.extend(nest.assume(&assumptions));
            found = and(found, own.equals(&last.load([])));
            advance.push(nest.set(&state.position, &at.plus(&Expr::int(1))));
            let looplet = match &*stepper.body {
                Looplet::Spike(fibre) => Looplet::Run(fibre.clone()),
                other => other.clone(),
            };
            all.push(c.with(substituted(&looplet, &stepper.position, &at), None));
        }
        let Some(largest) = largest else { unreachable!("a merge has a leader") };
        inner.push(nest.set(&last, &largest));
        inner.extend(seeks);
        let here = self.region(nest, all, &Region::Point(last.load([])), body);
        let here = nest.block(std::iter::once(here).chain(advance));
        assumed.push(nest.branch(&found, here, Stmt::nop()));
        let assumed = nest.block(assumed);
        inner.push(nest.branch(&all_left, assumed, Stmt::nop()));
        let inner = nest.block(inner);
        out.push(nest.while_loop(cond, nest.with([last], inner)));
        let all = nest.block(out);
        nest.with(states.into_iter().flat_map(|s| [s.position, s.end]), all)
    }
}

fn and(a: Expr, b: Expr) -> Expr {
    if a.as_bool() == Some(true) { b } else { a.and(&b) }
}

impl Lower {
    /// Returns whether the only effects of a statement are reductions into tensors that it does not read, stores to the
    /// cursor's element, which differs at each position, and writes to tensors that the program makes. The latter come
    /// once to each element; the order of those that are listed does not matter, and of others it does not depend on
    /// that of a level with `ordered=False` ([`crate::assemble`]).
    pub(super) fn only_reduces(&self, s: &Stmt, cursor: &Cursor) -> bool {
        let mut only = true;
        let is_ordered = cursor.stepper().is_none_or(|s| s.ordered)
            || !self.unsorted.borrow().contains(self.tensor_of(cursor))
                && !self.level_of(cursor).level.lists_without_order();
        let is_made = |t: &taffeta_ast::Symbol| {
            let tensor = self.fibres.get(t).map(|(tensor, _)| tensor).filter(|t| self.appends(t));
            tensor.is_some_and(|t| !is_ordered && self.any_order.contains(t) || self.collected.contains_key(t))
        };
        s.walk(&mut |s| match s.kind() {
            StmtKind::Store { tensor, .. } => {
                only &= is_made(tensor) || access::target(s).is_some_and(|element| cursor.drives(&element));
            }
            StmtKind::Print { .. } | StmtKind::Assert { .. } => only = false,
            _ => {}
        });
        let written = taffeta_analysis::query::effects::writes(s);
        only && !s.any_expr(&mut |e| matches!(e.kind(), taffeta_ast::ExprKind::Load(t, _) if written.contains(t)))
    }
}
