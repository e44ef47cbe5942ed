//! Lowering of a loop: collects the fibres that its body traverses, hoists the bounds checks that precede it, and
//! lowers its range as a region of their looplets (`region`).

use super::cursor::{Cursor, PATH, shift_of};
use super::exprs::{each_access, first_effect, load, loads, range};
use super::nest::{LoopBuilder, Region};
use super::run_reductions;
use super::state::{Bindings, Lower};
use crate::access;
use crate::looplet::{Fibre, Looplet, Phase};
use taffeta_analysis::query::effects;
use taffeta_ast::stmt::LoopProps;
use taffeta_ast::{Access, Diagnostic, Expr, Extent, Stmt, StmtKind, Symbol};

impl Lower {
    /// Lowers a loop: in reverse over a list, in blocks, as a region of the fibres that it traverses, or else as it is,
    /// with its body lowered in place.
    pub(super) fn lower_loop(&mut self, s: &Stmt, bound: &Bindings) -> Stmt {
        let StmtKind::For { iter, extent, props, body } = s.kind() else { unreachable!("only loops are lowered here") };
        let mut inside = bound.clone();
        inside.insert(iter.clone(), self.parts.get(iter).cloned().or_else(|| range(extent)));
        let plain = |pass: &mut Lower, body: &Stmt| {
            let body = pass.stmt(body, &inside);
            s.with_kind(StmtKind::For { iter: iter.clone(), extent: extent.clone(), props: props.clone(), body })
        };
        self.refuse_races(s, iter, props, body);
        self.refuse_insertions(s, iter, props, body);
        if let Some(done) = self.backwards(s, bound) {
            return done;
        }
        // In loops of another step than 1, coordinates are looked up one by one.
        let Extent::Range { begin, end, step } = extent else { return plain(self, body) };
        if step.as_int() != Some(1) {
            return plain(self, body);
        }
        if let Some(by) = self.block_of(body, (iter, [begin, end]), bound) {
            let blocks = self.in_blocks(s, &by);
            return self.stmt(&blocks, bound);
        }
        let body = self.resolve_positions(body, &inside);
        // Bounds checks on loop-invariant indices are hoisted, guarded by `begin < end`.
        let checks_of = |pass: &Lower, e: &Expr| pass.checks_of(s, e, &Expr::bool(true), bound);
        let (sure, unsure): (Vec<(Expr, bool)>, _) =
            self.indexed(&body, iter, bound).into_iter().partition(|(_, a)| *a);
        let [sure, unsure] = [sure, unsure].map(|all| all.into_iter().map(|(e, _)| e).collect::<Vec<Expr>>());
        let checks: Vec<Stmt> = sure.iter().flat_map(|e| checks_of(self, e)).collect();
        let asked = !checks.is_empty() || self.needs_nonempty_loop(&body, iter, bound);
        let nonempty = if asked { begin.less(end) } else { Expr::bool(true) };
        // An access that may not be evaluated is checked in place. It is located before the loop only if its check
        // would pass.
        let inside_of = |check: Stmt| match check.kind() {
            StmtKind::Assert { cond, .. } => Some(cond.clone()),
            _ => None,
        };
        let known = unsure.iter().flat_map(|e| checks_of(self, e)).filter_map(inside_of);
        let known = known.fold(Expr::bool(true), |all, cond| all.and(&cond));
        let props = LoopProps { library: false, ..props.clone() };
        let mut nest = LoopBuilder {
            s,
            iter: Some(iter),
            props: props.clone(),
            inside: inside.clone(),
            bodies: 0,
            id_taken: false,
        };
        let found = [&sure[..], &unsure].concat();
        let Some(mut all) = self.traverse(&mut nest, [begin, end], &body, &found, bound) else {
            return plain(self, &body);
        };
        if known.as_bool() != Some(true) {
            let records = (self.warnings.clone(), self.explained.clone());
            nest.props = props;
            let stops = self.traverse(&mut nest, [begin, end], &body, &sure, bound);
            let stops = stops.unwrap_or_else(|| self.region(&mut nest, Vec::new(), &Region::range(begin, end), body));
            (self.warnings, self.explained) = records;
            all = nest.branch(&known, all, stops);
        }
        let all = nest.block(checks.into_iter().chain([all]));
        nest.branch(&nonempty, all, Stmt::nop())
    }

    /// Lowers a loop over a range that traverses the fibres in its body, with the accesses `found` located before it;
    /// `None` if there are no fibres.
    pub(super) fn traverse(
        &mut self,
        nest: &mut LoopBuilder<'_>,
        [begin, end]: [&Expr; 2],
        body: &Stmt,
        found: &[Expr],
        bound: &Bindings,
    ) -> Option<Stmt> {
        let (s, Some(iter)) = (nest.s, nest.iter) else { return None };
        let fits = |e: &Expr| found.contains(e);
        let body = &access::rebuild(body, &mut |e| if fits(&e) { self.locate(e, bound, &|_| true) } else { e });
        let mut cursors = self.cursors(body, iter, [bound, &nest.inside]);
        if cursors.is_empty() {
            return None;
        }
        for d in self.contradictions(body, iter, &cursors) {
            if !self.found.contains(&d) {
                self.found.push(d);
            }
        }
        for c in &mut cursors {
            if !self.is_whole(c, [begin, end]) {
                self.bounded(c, [begin, end]);
            }
        }
        self.record_visited(body, &cursors);
        let lists = |c: &Cursor| matches!(&c.looplet, Looplet::Stepper(s) if !s.full);
        if cursors.iter().all(lists) {
            self.warn_of_scan(s, (iter, [begin, end]), &cursors, body);
        }
        let whole = cursors.iter().all(|c| self.is_whole(c, [begin, end]));
        let region = Region::Range { begin: begin.clone(), end: end.clone(), last: None, whole };
        if self.depth > 0 || self.predicated {
            return Some(self.region(nest, cursors, &region, body.clone()));
        }
        Some(self.lower_with_fewer_bodies(nest, cursors, &region, body))
    }

    /// Warns about a loop that runs coordinate by coordinate because its body has an effect where none of its cursors
    /// stores an element.
    pub(super) fn warn_of_scan(
        &mut self,
        s: &Stmt,
        (iter, range): (&Symbol, [&Expr; 2]),
        cursors: &[Cursor],
        body: &Stmt,
    ) {
        let filled = self.filled(body, cursors);
        let Some(effect) =
            first_effect(&filled).filter(|_| run_reductions::summed(&filled, iter, range, self.rules()).is_none())
        else {
            return;
        };
        let name = self.tensor_of(&cursors[0]);
        let text = format!("the loop `{iter}` visits every coordinate, although it traverses `{name}`");
        let d = Diagnostic::warning("structured::scan", text).at(s.origin().span());
        self.warn(d.label(effect.origin().span(), "this also has an effect where nothing is stored"));
    }

    /// Surrounds the looplet of a cursor by the fill if the loop may leave the dimension.
    pub(super) fn bounded(&self, cursor: &mut Cursor, [begin, end]: [&Expr; 2]) {
        if cursor.inside || self.stays_inside(cursor, [begin, end]) {
            return;
        }
        cursor.within = false;
        // Lists store nothing there anyway.
        if matches!(&cursor.looplet, Looplet::Stepper(s) if !s.full) {
            return;
        }
        let nothing = |end: Option<Expr>| Phase { end, looplet: Looplet::Run(Fibre::Fill) };
        let shift = &cursor.shift;
        let before = cursor.coordinate(begin).as_int().is_none_or(|b| b < 0);
        let before = before.then(|| nothing(Some(Expr::int(0).minus(shift))));
        let inside = Phase { end: Some(self.size(&cursor.fibre).minus(shift)), looplet: cursor.looplet.clone() };
        cursor.looplet = Looplet::Sequence(before.into_iter().chain([inside, nothing(None)]).collect());
    }

    /// Collects the accesses in a loop's body whose outer coordinates are loop-invariant and whose next coordinate is
    /// the loop's, each with whether every iteration evaluates it.
    pub(super) fn indexed(&self, body: &Stmt, iter: &Symbol, bound: &Bindings) -> Vec<(Expr, bool)> {
        let mut out: Vec<(Expr, bool)> = Vec::new();
        let written = effects::writes(body);
        each_access(body, true, &mut |e, guard, always| {
            let Some((t, at)) = load(e) else { return };
            let next =
                |at: &[Access]| at.get(PATH + 1).is_some_and(|a| shift_of(&a.index, iter, bound, &written).is_some());
            // An index that may stop the program may precede the loop only if the first iteration evaluates it in any
            // case.
            if guard.as_bool() == Some(true)
                && self.is_known(e, bound)
                && next(at)
                && (always || !at[PATH].index.may_fail() && !self.is_remapped(t))
                && !at[..=PATH].iter().any(|a| loads(&a.index, &written))
                && !self.is_made_of(e, &written)
                && !self.is_inner(t)
                && self.position(e).is_some()
            {
                match out.iter_mut().find(|(other, _)| other == e) {
                    Some((_, before)) => *before |= always,
                    None => out.push((e.clone(), always)),
                }
            }
        });
        out
    }
}
