//! Lowering of a region of coordinates, and of its cursors' looplets there, to loops (Looplets, section 6). The order
//! of looplets is one table, from the rule that simplifies most to the loops:
//!
//! ```text
//! Run         the same at every coordinate: its value stands in the body, or its fill
//! Switch      a branch around the region
//! Spike       what is before the last coordinate, then the last coordinate
//! Sequence    one region after the other
//! Stepper     one: a loop over its positions; several: they are merged
//! Lookup      a loop over the coordinates
//! ```
//!
//! The body of a loop is emitted once for each region in which something is left of it after fills are propagated; all
//! but the first are copies.

use super::cursor::Cursor;
use super::exprs::source_span;
use super::nest::{LoopBuilder, LoopRange, Region};
use super::run_reductions;
use super::state::Lower;
use crate::explain::FibreRole;
use crate::looplet::{Fibre, Lookup, Looplet, Phase};
use taffeta_analysis::pass::copy::Copier;
use taffeta_analysis::pass::substitute;
use taffeta_ast::{Expr, Extent, Op, Stmt, StmtKind};

/// Maximum number of times that the body of a loop is emitted.
const MAX_BODIES: usize = 256;
/// Maximum number of bodies emitted for all loops inside of an outermost one, as nested loops multiply. Programs
/// written by people have a few dozen; with a thousand, the C has megabytes, for which its compiler takes minutes.
const MAX_TOTAL: usize = 1024;

/// Message and help for loops with too many bodies.
const TOO_MANY: &str = "too many combinations of stored and absent elements in one loop";
const LESS: &str = "use `locate` in some of its accesses, as in `A[i, locate(j)]`, to look up one element at a time, \
                    or run it with `--backend interp`";

impl Lower {
    /// Lowers a region to loops.
    pub(super) fn region(
        &mut self,
        nest: &mut LoopBuilder<'_>,
        cursors: Vec<Cursor>,
        region: &Region,
        body: Stmt,
    ) -> Stmt {
        let (mut rest, mut body) = (Vec::new(), body);
        for c in cursors {
            match &c.looplet {
                Looplet::Run(Fibre::Fill) => body = self.filled(&body, [&c]),
                Looplet::Run(Fibre::At(positions)) => body = self.consumed(&body, &c, positions),
                _ => rest.push(c),
            }
        }
        if body.is_nop() {
            return body;
        }
        let found = |of: fn(&Looplet) -> bool| rest.iter().position(|c| of(&c.looplet));
        if let Some(k) = found(|l| matches!(l, Looplet::Switch { .. })) {
            let c = rest.remove(k);
            let Looplet::Switch { cond, then, otherwise } = c.looplet.clone() else { unreachable!("found a switch") };
            let [then, otherwise] = [then, otherwise].map(|looplet| {
                let all = rest.iter().cloned().chain([c.with(*looplet, c.here.clone())]).collect();
                self.region(nest, all, region, body.clone())
            });
            return nest.branch(&cond, then, otherwise);
        }
        if found(|l| matches!(l, Looplet::Spike(_))).is_some() {
            return self.spikes(nest, rest, region, body);
        }
        if let Some(k) = found(|l| matches!(l, Looplet::Sequence(_))) {
            let c = rest.remove(k);
            let Looplet::Sequence(phases) = c.looplet.clone() else { unreachable!("found a sequence") };
            return self.sequence(nest, (c, &phases), &rest, region, body);
        }
        if found(|l| matches!(l, Looplet::Stepper(_))).is_some() {
            return match region {
                Region::Point(at) => self.found(nest, rest, at, body),
                Region::Range { begin, end, whole, .. } => {
                    self.steppers(nest, rest, LoopRange { begin, end, whole: *whole }, body)
                }
            };
        }
        for c in rest {
            let Looplet::Lookup(lookup) = &c.looplet else { unreachable!("only lookups are left") };
            body = self.lookup(nest, &c, lookup, &body);
        }
        self.bodies(nest, region, &body)
    }

    /// Lowers the coordinates before the last one, where the spikes have the fill, then the last coordinate.
    fn spikes(&mut self, nest: &mut LoopBuilder<'_>, mut cursors: Vec<Cursor>, region: &Region, body: Stmt) -> Stmt {
        let at = match region {
            Region::Point(at) => at.clone(),
            Region::Range { begin, end, last, .. } => {
                let last = last.clone().unwrap_or_else(|| end.minus(&Expr::int(1)));
                let is_spike = |c: &&Cursor| matches!(c.looplet, Looplet::Spike(_));
                let others: Vec<Cursor> = cursors.iter().filter(|c| !is_spike(c)).cloned().collect();
                let skipped = self.filled(&body, cursors.iter().filter(is_spike));
                let before = self.region(nest, others, &Region::range(begin, &last), skipped);
                let at = self.region(nest, cursors, &Region::Point(last), body);
                return nest.block([before, at]);
            }
        };
        if let Some(all_here) = self.all_here(&cursors, &body) {
            let run = |c: &Cursor| match &c.looplet {
                Looplet::Spike(fibre) => c.with(Looplet::Run(fibre.clone()), None),
                _ => c.clone(),
            };
            let then = self.region(nest, cursors.iter().map(run).collect(), &Region::Point(at), body);
            return nest.branch(&all_here, then, Stmt::nop());
        }
        let k = cursors.iter().position(|c| matches!(c.looplet, Looplet::Spike(_)));
        let c = cursors.remove(k.unwrap_or_else(|| unreachable!("a spike is left")));
        let Looplet::Spike(fibre) = &c.looplet else { unreachable!("found a spike") };
        let run = |fibre: &Fibre| {
            cursors.iter().cloned().chain([c.with(Looplet::Run(fibre.clone()), None)]).collect::<Vec<_>>()
        };
        let point = Region::Point(at);
        let then = self.region(nest, run(fibre), &point, body.clone());
        match &c.here {
            None => then,
            Some(here) => {
                let otherwise = self.region(nest, run(&Fibre::Fill), &point, body);
                nest.branch(here, then, otherwise)
            }
        }
    }

    /// Returns the condition that each of several spikes has its element at the region's coordinate, if nothing is left
    /// of the body unless all have. The condition does not short-circuit: which list is behind is unpredictable,
    /// whereas a match is predictably rare.
    fn all_here(&self, cursors: &[Cursor], body: &Stmt) -> Option<Expr> {
        let spikes: Vec<&Cursor> = cursors.iter().filter(|c| matches!(c.looplet, Looplet::Spike(_))).collect();
        let here: Vec<Expr> = spikes.iter().filter_map(|c| c.here.clone()).collect();
        if spikes.len() < 2 || here.len() < spikes.len() || !spikes.iter().all(|c| self.filled(body, [*c]).is_nop()) {
            return None;
        }
        here.into_iter().reduce(|a, b| Expr::apply(Op::BitAnd, vec![a, b]))
    }

    /// Lowers phases one after the other; at a single coordinate, branches to the phase that contains it.
    fn sequence(
        &mut self,
        nest: &mut LoopBuilder<'_>,
        (cursor, phases): (Cursor, &[Phase]),
        others: &[Cursor],
        region: &Region,
        body: Stmt,
    ) -> Stmt {
        match region {
            Region::Point(_) => self.record_role(&cursor, FibreRole::Asked),
            // A sequence without lookups surrounds a dimension by the fill (`Lower::bounded`), which limits nothing.
            Region::Range { .. } if phases.iter().any(|p| matches!(p.looplet, Looplet::Lookup(_))) => {
                self.record_role(&cursor, FibreRole::Limits);
                self.record_trip_count(&[&cursor], FibreRole::Limits);
            }
            Region::Range { .. } => {}
        }
        let with = |p: &Phase| others.iter().cloned().chain([cursor.with(p.looplet.clone(), None)]).collect();
        match region {
            Region::Point(at) => {
                let mut out = Stmt::nop();
                for p in phases.iter().rev() {
                    let here = self.region(nest, with(p), region, body.clone());
                    out = match &p.end {
                        None => here,
                        Some(end) => nest.branch(&at.less(end), here, out),
                    };
                }
                out
            }
            Region::Range { begin, end, whole, .. } => {
                let clamp = |op: Op, a: &Expr, b: &Expr| match whole {
                    true => b.clone(),
                    false => Expr::apply(op, vec![a.clone(), b.clone()]),
                };
                let (mut all, mut first) = (Vec::new(), begin.clone());
                for p in phases {
                    let last = p.end.as_ref().map_or(end.clone(), |e| clamp(Op::Min, end, e));
                    all.push(self.region(nest, with(p), &Region::range(&first, &last), body.clone()));
                    first = p.end.as_ref().map_or(end.clone(), |e| clamp(Op::Max, begin, e));
                }
                nest.block(all)
            }
        }
    }

    /// Lowers the body at coordinates with computed positions.
    fn lookup(&mut self, nest: &LoopBuilder<'_>, cursor: &Cursor, lookup: &Lookup, body: &Stmt) -> Stmt {
        self.record_role(cursor, if lookup.stored.is_some() { FibreRole::Asked } else { FibreRole::Located });
        let [stored, filled] = self.looked_up(body, cursor, lookup);
        let stored = nest.block(nest.assume(&lookup.assumptions).into_iter().chain([stored]));
        match &lookup.stored {
            None => stored,
            Some(cond) => nest.branch(cond, stored, self.copied(&filled, "fill")),
        }
    }

    /// Emits the body for every coordinate of a region in which no structure is left.
    fn bodies(&mut self, nest: &mut LoopBuilder<'_>, region: &Region, body: &Stmt) -> Stmt {
        let is_outermost = self.depth == 0;
        if is_outermost && nest.bodies == 0 {
            self.emitted = 0;
        }
        nest.bodies += 1;
        self.emitted += 1;
        let mut done = Stmt::nop();
        if nest.bodies <= MAX_BODIES && self.emitted <= MAX_TOTAL {
            self.depth += 1;
            done = self.emitted_body(nest, region, body);
            self.depth -= 1;
        }
        // The outermost loop reports the excess for all loops inside of it.
        if nest.bodies > MAX_BODIES || is_outermost && self.emitted > MAX_TOTAL {
            self.refuse_with(source_span(nest.s), TOO_MANY.to_string(), LESS);
        }
        done
    }

    /// Lowers the statement that replaces a loop over a run.
    pub(super) fn emitted_run(&mut self, nest: &LoopBuilder<'_>, all: &Stmt) -> Stmt {
        let all = if nest.bodies > 1 { self.copied(all, "run") } else { all.clone() };
        self.stmt(&all, &nest.inside)
    }

    fn emitted_body(&mut self, nest: &mut LoopBuilder<'_>, region: &Region, body: &Stmt) -> Stmt {
        let Some(iter) = nest.iter else {
            // Without an iterator, the body is a statement that is no loop.
            let body = if nest.bodies > 1 { self.copied(body, "case") } else { body.clone() };
            return self.stmt(&body, &nest.inside);
        };
        if let Region::Range { begin, end, .. } = region
            && let Some(all) = run_reductions::summed(body, iter, [begin, end], self.rules())
        {
            return self.emitted_run(nest, &all);
        }
        let mut copier = Copier::new("structured", "case");
        match region {
            Region::Point(at) => {
                let body = if nest.bodies > 1 {
                    copier.scalars.insert(iter.clone(), at.clone());
                    self.copied_by(&mut copier, body)
                } else {
                    substitute::variable(body, iter, at)
                };
                self.stmt(&body, &nest.inside)
            }
            Region::Range { begin, end, .. } => {
                let mut inside = nest.inside.clone();
                let (iter, body) = if nest.bodies > 1 {
                    let new = iter.fresh();
                    copier.scalars.insert(iter.clone(), Expr::var(&new));
                    let range = inside.get(iter).cloned().flatten();
                    inside.insert(new.clone(), range);
                    (new, self.copied_by(&mut copier, body))
                } else {
                    (iter.clone(), body.clone())
                };
                let appends_runs = self.appends_runs(&body, &iter);
                let run_end = std::mem::replace(&mut self.run_end, appends_runs.then(|| end.clone()));
                let body = self.stmt(&self.resolve_positions(&body, &inside), &inside);
                self.run_end = run_end;
                let body = nest.block(nest.stays_inside(&iter, [begin, end]).into_iter().chain([body]));
                // (A run has one iteration, if any.)
                let last = if appends_runs { begin.plus(&Expr::int(1)).min_with(end) } else { end.clone() };
                let extent = Extent::Range { begin: begin.clone(), end: last, step: Expr::int(1) };
                nest.statement(StmtKind::For { iter, extent, props: nest.props.clone(), body }, "gap")
            }
        }
    }
}
