//! Merges of lists: all advance together from one of their coordinates to the next (coiteration: Looplets, section
//! 6.4).

use super::cursor::{Cursor, State};
use super::exprs::source_span;
use super::nest::{LoopBuilder, LoopRange, Region};
use super::scalars::{replaced, scalar, substituted};
use super::state::Lower;
use crate::explain::FibreRole;
use crate::looplet::{Fibre, Looplet, Positions, is_spike};
use std::sync::Arc;
use taffeta_ast::{DType, Expr, Stmt, StmtKind, Tensor};

/// Maximum number of lists merged by specialisation: one loop is emitted for each subset of remaining lists.
const MAX_LISTS: usize = 6;

/// Lists at a step of a merge.
struct MergedLists<'a> {
    /// Lists that are not exhausted.
    active: &'a [(&'a Cursor, &'a State)],
    /// Cursors that the merge does not advance.
    others: &'a [Cursor],
    /// The first coordinate that is not done, if the merge needs it.
    next: Option<&'a Tensor>,
}

/// Advance of a list in a merge.
struct Advance {
    /// Condition that the list has its element at the present coordinate, as branches have it, and as it is after other
    /// lists have advanced.
    here: Expr,
    ends: Expr,
    /// Facts about the position.
    assumptions: Vec<Expr>,
    position: Arc<Tensor>,
    /// Position of the list's next element.
    after: Expr,
    unique: bool,
}

impl Advance {
    /// Builds the statement that advances the list; if its condition holds, unless that is known.
    fn built(&self, nest: &LoopBuilder<'_>, known: Option<bool>) -> Option<Stmt> {
        match (known, self.unique) {
            (Some(false), _) => None,
            (Some(true), _) => Some(nest.set(&self.position, &self.after)),
            // A sum instead of a branch, since it is unpredictable which list advances.
            (None, true) => {
                let ends = self.ends.clone().cast(DType::I64);
                Some(nest.set(&self.position, &self.position.load([]).plus(&ends)))
            }
            (None, false) => Some(nest.branch(&self.ends, nest.set(&self.position, &self.after), Stmt::nop())),
        }
    }
}

impl Lower {
    /// Merges steppers: each iteration advances to the smallest end of their current segments. An exhausted list reads
    /// as the fill, so one loop is emitted for each subset of remaining lists, the largest first.
    ///
    /// ```text
    /// while p < p_end and q < q_end:
    ///     j = min(a.crd[p], b.crd[q])
    ///     if a.crd[p] == j: …
    ///     p += a.crd[p] == j
    ///     q += b.crd[q] == j
    /// while p < p_end: …
    /// ```
    pub(super) fn merged(
        &mut self,
        nest: &mut LoopBuilder<'_>,
        steppers: Vec<Cursor>,
        others: Vec<Cursor>,
        range: LoopRange<'_>,
        body: Stmt,
    ) -> Stmt {
        let LoopRange { begin, end, whole } = range;
        let Some(iter) = nest.iter else { unreachable!("a region is a loop's") };
        let names: Vec<String> = steppers.iter().map(|c| format!("`{}`", self.tensor_of(c))).collect();
        if nest.props.is_concurrent() {
            // In one list with `unique=False`, a coordinate may have several positions.
            let what = if names.len() > 1 { "merges" } else { "joins positions of" };
            let text = format!("the loop `{iter}` cannot be parallel or vectorised: it {what} {}", names.join(" and "));
            self.refuse_at(source_span(nest.s), text);
            return Stmt::nop();
        }
        if let Some(c) = steppers.iter().find(|c| c.stepper().is_some_and(|s| !s.ordered)) {
            let name = self.tensor_of(c);
            let text =
                format!("the loop `{iter}` cannot merge {}: the level of `{name}` is not ordered", names.join(" and "));
            self.refuse_at(source_span(nest.s), text);
            return Stmt::nop();
        }
        steppers.iter().for_each(|c| self.record_role(c, FibreRole::Merged));
        self.record_trip_count(&steppers.iter().collect::<Vec<_>>(), FibreRole::Merged);
        let states: Vec<State> = steppers.iter().map(|c| State::new(c, self.tensor_of(c))).collect();
        let next = scalar(format!("{}.next", iter.name()));
        // `next` bounds partial ranges, begins segments, and is needed for effects at coordinates that no list stores.
        let of_spikes = |c: &Cursor| c.stepper().is_none_or(is_spike);
        let between = !whole || !steppers.iter().all(of_spikes) || !self.filled(&body, &steppers).is_nop();
        let mut out: Vec<Stmt> = between.then(|| nest.set(&next, begin)).into_iter().collect();
        for (c, state) in steppers.iter().zip(&states) {
            let Some(stepper) = c.stepper() else { continue };
            out.push(self.start(nest, state, stepper));
            if !whole && !c.starts(begin) {
                out.push(self.seek(nest, state, stepper, begin));
            }
        }
        let listed: Vec<usize> =
            (0..steppers.len()).filter(|k| steppers[*k].stepper().is_some_and(|s| !s.full)).collect();
        // An intersection needs only the full set: its body has no effect once a list has ended.
        let is_union = !self.is_intersection(&steppers, &body);
        if is_union && listed.len() > MAX_LISTS {
            let text = format!("the loop `{iter}` merges more than {MAX_LISTS} lists: {}", names.join(", "));
            self.refuse_at(source_span(nest.s), text);
            return Stmt::nop();
        }
        let all = (1 << listed.len()) - 1;
        let mut sets: Vec<usize> = if is_union { (0..=all).collect() } else { vec![all] };
        sets.sort_by_key(|set| std::cmp::Reverse(set.count_ones()));
        let full = steppers.len() > listed.len();
        for set in sets {
            let has = |k: usize| listed.iter().position(|l| *l == k).is_none_or(|bit| set & (1 << bit) != 0);
            let (active, gone): (Vec<usize>, Vec<usize>) = (0..steppers.len()).partition(|k| has(*k));
            let body = self.filled(&body, gone.iter().map(|k| &steppers[*k]));
            if body.is_nop() {
                continue;
            }
            if active.is_empty() {
                out.push(self.region(nest, others.clone(), &Region::range(&next.load([]), end), body));
                continue;
            }
            let conditions = active.iter().filter(|k| listed.contains(k)).map(|k| states[*k].is_left());
            // Lists end with the dimension at the latest.
            let bounded = whole && (!full || set != 0);
            let conditions = conditions.chain((!bounded).then(|| next.load([]).less(end)));
            let Some(cond) = conditions.reduce(|a, b| a.and(&b)) else { unreachable!("a list is active") };
            let active: Vec<(&Cursor, &State)> = active.iter().map(|k| (&steppers[*k], &states[*k])).collect();
            let lists = MergedLists { active: &active, others: &others, next: between.then_some(&*next) };
            let inner = self.step(nest, &lists, range, body);
            out.push(nest.while_loop(cond, inner));
        }
        let scalars = between.then_some(next).into_iter().chain(states.into_iter().flat_map(|s| [s.position, s.end]));
        let all = nest.block(out);
        nest.with(scalars, all)
    }

    /// Builds one step of a merge, up to the smallest end of the current segments.
    fn step(&mut self, nest: &mut LoopBuilder<'_>, lists: &MergedLists<'_>, range: LoopRange<'_>, body: Stmt) -> Stmt {
        let MergedLists { active, others, next } = *lists;
        let LoopRange { end, whole, .. } = range;
        let Some(iter) = nest.iter else { unreachable!("a region is a loop's") };
        let last = scalar(iter.name().to_string());
        let mut inner = Vec::new();
        let (mut all, mut advance, mut scalars) = (others.to_vec(), Vec::new(), vec![last.clone()]);
        let mut first: Option<Expr> = None;
        let lasts = active.iter().filter_map(|(c, state)| {
            let stepper = c.stepper()?;
            Some(replaced(&stepper.last, &stepper.position, &state.position.load([])))
        });
        let lasts: Vec<Expr> = lasts.collect();
        let cursors: Vec<Cursor> = active.iter().map(|(c, _)| (*c).clone()).collect();
        let is_union = whole && next.is_none() && !self.is_intersection(&cursors, &body);
        for (k, (c, state)) in active.iter().enumerate() {
            let Some(stepper) = c.stepper() else { continue };
            let at = state.position.load([]);
            let to = |e: &Expr| replaced(e, &stepper.position, &at);
            inner.extend(nest.assume(&stepper.assumptions.iter().map(to).collect::<Vec<_>>()));
            let own = lasts[k].clone();
            first = Some(first.map_or(own.clone(), |f| f.min_with(&own)));
            // Of two lists, the one that is not behind the other ends.
            let ends = own.equals(&last.load([]));
            let here = match &lasts[..] {
                [a, b] if is_union => own.less_eq(if k == 0 { b } else { a }),
                _ => ends.clone(),
            };
            let mut looplet = substituted(&stepper.body, &stepper.position, &at).open_ended();
            let after = if stepper.unique {
                at.plus(&Expr::int(1))
            } else {
                let segment = scalar(format!("{}.to", state.position.symbol.name()));
                inner.push(self.segment(nest, state, stepper, &segment));
                if let Looplet::Spike(Fibre::At(positions)) = &mut looplet {
                    *positions = Positions { first: at.clone(), end: segment.load([]) };
                }
                scalars.push(segment.clone());
                segment.load([])
            };
            all.push(c.with(looplet, (active.len() > 1 || !whole).then(|| here.clone())));
            let alone = active.len() == 1 && whole;
            let (position, unique) = (state.position.clone(), stepper.unique);
            let assumptions = stepper.assumptions.iter().map(to).collect();
            advance.push((Advance { here, ends, assumptions, position, after, unique }, alone.then_some(true)));
        }
        let Some(first) = first else { unreachable!("a list is active") };
        let first = if whole { first } else { first.min_with(&end.minus(&Expr::int(1))) };
        inner.push(nest.set(&last, &first));
        let after = last.load([]).plus(&Expr::int(1));
        let region = match next {
            Some(next) => {
                Region::Range { begin: next.load([]), end: after.clone(), last: Some(last.load([])), whole: false }
            }
            None => Region::Point(last.load([])),
        };
        let here = self.region(nest, all, &region, body);
        // Where the body branches by the lists that end, they advance in the branches.
        let branches = |s: &Stmt| match s.kind() {
            StmtKind::If { cond, otherwise: Some(_), .. } => advance.iter().any(|(a, _)| a.here == *cond),
            _ => false,
        };
        match branches(&here) && next.is_none() && active.len() > 1 {
            true => inner.push(advanced(nest, &here, &advance.iter().map(|(a, _)| (a, None)).collect::<Vec<_>>())),
            false => {
                inner.push(here);
                inner.extend(advance.iter().filter_map(|(a, known)| a.built(nest, *known)));
            }
        }
        inner.extend(next.map(|next| nest.set(next, &after)));
        let inner = nest.block(inner);
        nest.with(scalars, inner)
    }
}

/// Advances lists behind a statement, inside of its branches by the conditions of which lists have their element there.
/// `known` has the truth of each condition that an enclosing branch decides; one of all conditions holds.
fn advanced(nest: &LoopBuilder<'_>, s: &Stmt, known: &[(&Advance, Option<bool>)]) -> Stmt {
    if let StmtKind::If { cond, then, otherwise } = s.kind()
        && let Some(k) = known.iter().position(|(a, is)| a.here == *cond && is.is_none())
    {
        let with = |is: bool| {
            let mut known = known.to_vec();
            known[k].1 = Some(is);
            known
        };
        let then = advanced(nest, then, &with(true));
        if known.iter().enumerate().all(|(other, (_, is))| other == k || *is == Some(false)) {
            return then;
        }
        let otherwise = advanced(nest, otherwise.as_ref().unwrap_or(&Stmt::nop()), &with(false));
        // The other branch has changed the positions, for the analysis of programs.
        let facts = known.iter().flat_map(|(a, _)| nest.assume(&a.assumptions)).collect::<Vec<Stmt>>();
        let otherwise = nest.block(facts.into_iter().chain([otherwise]));
        return s.with_kind(StmtKind::If { cond: cond.clone(), then, otherwise: Some(otherwise) });
    }
    let own = known.iter().filter_map(|(a, is)| a.built(nest, *is));
    let all: Vec<Stmt> = std::iter::once(s.clone()).filter(|s| !s.is_nop()).chain(own).collect();
    nest.block(all)
}
