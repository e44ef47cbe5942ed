//! Searches for positions: for a traversal that begins in the middle of a dimension, and for random access.
//!
//! A search continues from the current position, in steps that double, and then bisects the last of them (galloping):
//! from one coordinate to the next it takes the logarithm of the distance.
//!
//! ```text
//! top = end; probe = p; by = 1
//! while probe < top:
//!     if crd[probe] < j: p = probe + 1; probe += by; by *= 2
//!     else: top = probe
//! while p < top:
//!     mid = (p + top) // 2
//!     if crd[mid] < j: p = mid + 1
//!     else: top = mid
//! ```

use super::cursor::Cursor;
use super::cursor::State;
use super::exprs::source_span;
use super::nest::{LoopBuilder, Region};
use super::predicated_merge::elements_of;
use super::scalars::flag;
use super::scalars::{replaced, scalar, substituted};
use super::state::Lower;
use crate::explain::FibreRole;
use crate::levels;
use crate::looplet::is_spike;
use crate::looplet::{Fibre, Looplet, Positions, Probe, Stepper};
use std::sync::Arc;
use taffeta_ast::stmt::LoopProps;
use taffeta_ast::{Expr, Extent, Op, Stmt, StmtKind, Tensor};

impl Lower {
    /// Sets a stepper to its first position.
    pub(super) fn start(&self, nest: &LoopBuilder<'_>, state: &State, stepper: &Stepper) -> Stmt {
        nest.block([nest.set(&state.position, &stepper.begin), nest.set(&state.end, &stepper.end)])
    }

    /// Advances to the first position whose last coordinate is not before `to`, by doubling steps and bisection.
    pub(super) fn seek(&self, nest: &LoopBuilder<'_>, state: &State, stepper: &Stepper, to: &Expr) -> Stmt {
        let p = &state.position;
        let name = p.symbol.name();
        let [top, probe, by, mid] = ["top", "probe", "by", "mid"].map(|what| scalar(format!("{name}.{what}")));
        let one = Expr::int(1);
        let before = |at: &Expr| replaced(&stepper.last, &stepper.position, at).less(to);
        let assumed = |at: &Expr| {
            let all: Vec<Expr> = stepper.assumptions.iter().map(|e| replaced(e, &stepper.position, at)).collect();
            nest.assume(&all)
        };
        let probed = probe.load([]);
        let on = nest.block([
            nest.set(p, &probed.plus(&one)),
            nest.set(&probe, &probed.plus(&by.load([]))),
            nest.set(&by, &by.load([]).times(&Expr::int(2))),
        ]);
        let mut doubling = assumed(&probed);
        doubling.push(nest.branch(&before(&probed), on, nest.set(&top, &probed)));
        let doubling = nest.block(doubling);
        let doubling = nest.derived(StmtKind::While { cond: probed.less(&top.load([])), body: doubling }, "seek");
        let middle = mid.load([]);
        let half = p.load([]).plus(&top.load([]).minus(&p.load([])).floor_div(&Expr::int(2)));
        let mut halving = vec![nest.set(&mid, &half)];
        halving.extend(assumed(&middle));
        let right = nest.set(p, &middle.plus(&one));
        halving.push(nest.branch(&before(&middle), right, nest.set(&top, &middle)));
        let halving = nest.with([mid], nest.block(halving));
        let halving = nest.derived(StmtKind::While { cond: p.load([]).less(&top.load([])), body: halving }, "seek");
        let begin = nest.block([
            nest.set(&top, &state.end.load([])),
            nest.set(&probe, &p.load([])),
            nest.set(&by, &one),
            doubling,
            halving,
        ]);
        nest.with([top, probe, by], begin)
    }

    /// Advances to the first position whose last coordinate is not before `to`, from one position to the next. The
    /// branch is well predicted, since the position sought is mostly the current one or the next, so that nothing waits
    /// for the comparison; a branch-free sum would wait.
    ///
    /// ```text
    /// more = p < p_end
    /// while more:
    ///     if end[p] <= j: p += 1; more = p < p_end
    ///     else: more = false
    /// ```
    fn walk(&self, nest: &LoopBuilder<'_>, state: &State, stepper: &Stepper, to: &Expr) -> Stmt {
        let p = &state.position;
        let more = flag(format!("{}.more", p.symbol.name()));
        let at = |e: &Expr| replaced(e, &stepper.position, &p.load([]));
        // A stepper that ends with the dimension has a position for every coordinate.
        let is_left = if stepper.full { Expr::bool(true) } else { state.is_left() };
        let on = nest.block([nest.set(p, &p.load([]).plus(&Expr::int(1))), nest.set(&more, &is_left)]);
        let mut body = nest.assume(&stepper.assumptions.iter().map(at).collect::<Vec<_>>());
        body.push(nest.branch(&at(&stepper.last).less(to), on, nest.set(&more, &Expr::bool(false))));
        let body = nest.block(body);
        let body = nest.derived(StmtKind::While { cond: more.load([]), body }, "walk");
        let all = nest.block([nest.set(&more, &is_left), body]);
        nest.with([more], all)
    }

    /// Initialises the positions of steppers that are queried for increasing coordinates, from each of which the next
    /// lookup continues. Returns the statements before the loop, and the scalars of the positions.
    pub(super) fn save_positions(
        &self,
        nest: &LoopBuilder<'_>,
        cursors: &mut [Cursor],
        [begin, whole]: [&Expr; 2],
    ) -> (Vec<Stmt>, Vec<Arc<Tensor>>) {
        let (mut before, mut scalars) = (Vec::new(), Vec::new());
        for c in cursors {
            let Some(stepper) = c.stepper().cloned() else { continue };
            let state = State::new(c, self.tensor_of(c));
            before.push(self.start(nest, &state, &stepper));
            if whole.as_bool() != Some(true) && !c.starts(begin) {
                before.push(self.seek(nest, &state, &stepper, begin));
            }
            scalars.extend([state.position.clone(), state.end.clone()]);
            c.saved_position = Some(state);
        }
        (before, scalars)
    }

    /// Computes into `to` the position after the last one that has the current coordinate.
    pub(super) fn segment(&self, nest: &LoopBuilder<'_>, state: &State, stepper: &Stepper, to: &Tensor) -> Stmt {
        let more = flag(format!("{}.more", to.symbol.name()));
        let at = |e: &Expr| replaced(&stepper.last, &stepper.position, e);
        let is_left = to.load([]).less(&state.end.load([]));
        let same = at(&to.load([])).equals(&at(&state.position.load([])));
        let on = nest.block([nest.set(to, &to.load([]).plus(&Expr::int(1))), nest.set(&more, &is_left)]);
        let assumptions: Vec<Expr> =
            stepper.assumptions.iter().map(|e| replaced(e, &stepper.position, &to.load([]))).collect();
        let mut body = nest.assume(&assumptions);
        body.push(nest.branch(&same, on, nest.set(&more, &Expr::bool(false))));
        let body = nest.block(body);
        let all = nest.block([
            nest.set(to, &state.position.load([]).plus(&Expr::int(1))),
            nest.set(&more, &is_left),
            nest.derived(StmtKind::While { cond: more.load([]), body }, "segment"),
        ]);
        nest.with([more], all)
    }

    /// Looks up the first of these steppers at a coordinate, and lowers the body there.
    pub(super) fn found(
        &mut self,
        nest: &mut LoopBuilder<'_>,
        mut cursors: Vec<Cursor>,
        at: &Expr,
        body: Stmt,
    ) -> Stmt {
        let k = cursors.iter().position(|c| c.stepper().is_some());
        let c = cursors.remove(k.unwrap_or_else(|| unreachable!("a stepper is left")));
        let Some(stepper) = c.stepper().cloned() else { unreachable!("found a stepper") };
        if !stepper.ordered
            && c.saved_position.is_none()
            && let Some(lookup) = self.lookup_at(&c, at)
        {
            cursors.push(c.with(Looplet::Lookup(lookup), None));
            return self.region(nest, cursors, &Region::Point(at.clone()), body);
        }
        if !(stepper.ordered || stepper.unique && is_spike(&stepper)) {
            // A scan of the list is accepted at a constant coordinate, but not for each coordinate of a loop.
            if at.as_int().is_some() && self.adds_up(&c, &stepper, &body) {
                return self.at_each(nest, (&c, &stepper), cursors, at, body);
            }
            let name = self.tensor_of(&c);
            let text = format!(
                "cannot look up one coordinate of `{name}`: its level is not ordered, and may store it at several \
                 positions"
            );
            let help = format!(
                "convert it before, by a local tensor in another format (`T: … @ csr = {name}`), or run the program \
                 with `--backend interp`"
            );
            self.refuse_with(source_span(nest.s), text, &help);
            return Stmt::nop();
        }
        let state = c.saved_position.clone().unwrap_or_else(|| State::new(&c, self.tensor_of(&c)));
        // One test whether the coordinate is stored, so that the other case is emitted once.
        let is_here = flag(format!("{}.found", state.position.symbol.name()));
        let p = state.position.load([]);
        let assumptions: Vec<Expr> = stepper.assumptions.iter().map(|e| replaced(e, &stepper.position, &p)).collect();
        let mut looplet = substituted(&stepper.body, &stepper.position, &p).open_ended();
        let mut scalars = vec![is_here.clone()];
        let mut out = vec![nest.set(&is_here, &Expr::bool(false))];
        let probe = self.probe(&c, at).filter(|_| c.saved_position.is_none());
        let walks = c.saved_position.is_some() && c.walks();
        self.record_role(
            &c,
            if probe.is_some() {
                FibreRole::Probed
            } else if walks {
                FibreRole::Follows
            } else {
                FibreRole::Searched
            },
        );
        if let Some(probe) = &probe {
            scalars.push(state.position.clone());
            out.push(self.probed(nest, (&state, &stepper), probe, &is_here, at));
        } else if c.saved_position.is_none() {
            scalars.extend([state.position.clone(), state.end.clone()]);
            out.push(self.start(nest, &state, &stepper));
        }
        if probe.is_none() && !stepper.ordered {
            out.push(self.scanned(nest, (&state, &stepper), &is_here, at));
        } else if probe.is_none() {
            out.push(if walks { self.walk(nest, &state, &stepper, at) } else { self.seek(nest, &state, &stepper, at) });
            let here = is_spike(&stepper).then(|| replaced(&stepper.last, &stepper.position, &p).equals(at));
            let mut asked = nest.assume(&assumptions);
            asked.push(nest.set(&is_here, &here.unwrap_or(Expr::bool(true))));
            if !stepper.unique {
                let segment = scalar(format!("{}.to", state.position.symbol.name()));
                asked.push(self.segment(nest, &state, &stepper, &segment));
                out.push(nest.set(&segment, &p));
                if let Looplet::Spike(Fibre::At(positions)) = &mut looplet {
                    *positions = Positions { first: p.clone(), end: segment.load([]) };
                }
                scalars.push(segment);
            }
            let asked = nest.block(asked);
            let is_left = if stepper.full { Expr::bool(true) } else { state.is_left() };
            out.push(nest.branch(&is_left, asked, Stmt::nop()));
        }
        let looplet = match looplet {
            Looplet::Spike(fibre) => Looplet::Run(fibre),
            other => other,
        };
        let point = Region::Point(at.clone());
        let with = |looplet: Looplet| cursors.iter().cloned().chain([c.with(looplet, None)]).collect();
        let then = self.region(nest, with(looplet), &point, body.clone());
        let then = nest.block(nest.assume(&assumptions).into_iter().chain([then]));
        if stepper.full && stepper.ordered && !is_spike(&stepper) {
            out.push(then);
            let all = nest.block(out);
            return nest.with(scalars, all);
        }
        let otherwise = self.region(nest, with(Looplet::Run(Fibre::Fill)), &point, body);
        out.push(nest.branch(&is_here.load([]), then, otherwise));
        let all = nest.block(out);
        nest.with(scalars, all)
    }

    /// Returns whether the effect at the positions of a coordinate, one after the other and in any order, equals the
    /// effect at all of them together: the body reduces one element of each, and does nothing where none is stored.
    fn adds_up(&self, c: &Cursor, stepper: &Stepper, body: &Stmt) -> bool {
        is_spike(stepper)
            && elements_of(body, c).len() == 1
            && self.only_reduces(body, c)
            && self.filled(body, [c]).is_nop()
    }

    /// Lowers the body at each position of a list that has the coordinate `at`, by a scan of the list, whose order does
    /// not matter.
    fn at_each(
        &mut self,
        nest: &mut LoopBuilder<'_>,
        (c, stepper): (&Cursor, &Stepper),
        mut others: Vec<Cursor>,
        at: &Expr,
        body: Stmt,
    ) -> Stmt {
        self.record_role(c, FibreRole::Searched);
        let position = stepper.position.fresh();
        let p = Expr::var(&position);
        let own = |e: &Expr| replaced(e, &stepper.position, &p);
        let Looplet::Spike(fibre) = substituted(&stepper.body, &stepper.position, &p) else {
            unreachable!("a list of single coordinates consists of spikes")
        };
        others.push(c.with(Looplet::Run(fibre), None));
        let outer = nest.inside.clone();
        nest.inside.insert(position.clone(), None);
        let here = self.region(nest, others, &Region::Point(at.clone()), body);
        nest.inside = outer;
        let here = nest.branch(&own(&stepper.last).equals(at), here, Stmt::nop());
        let assumed = nest.assume(&stepper.assumptions.iter().map(own).collect::<Vec<_>>());
        let body = nest.block(assumed.into_iter().chain([here]));
        let extent = Extent::Range { begin: stepper.begin.clone(), end: stepper.end.clone(), step: Expr::int(1) };
        nest.derived(StmtKind::For { iter: position, extent, props: LoopProps::default(), body }, "scan")
    }

    /// Returns the hash table in which a cursor's coordinate is found, if its level has one.
    pub(super) fn probe(&self, cursor: &Cursor, at: &Expr) -> Option<Probe> {
        let (tensor, k) = &self.fibres[&cursor.fibre];
        let level = &self.tensors[tensor].levels[*k];
        levels::of_level(level)?.probe(level, &cursor.above, &cursor.coordinate(at))
    }

    /// Probes the slots of a hash table:
    ///
    /// ```text
    /// slot = hash & mask; more = true
    /// while more:
    ///     p = tbl[slot] - 1
    ///     more = 0 <= p
    ///     if more:
    ///         found = crd[p] == j
    ///         more = not found
    ///         slot = (slot + 1) & mask
    /// ```
    fn probed(
        &self,
        nest: &LoopBuilder<'_>,
        (state, stepper): (&State, &Stepper),
        probe: &Probe,
        is_here: &Tensor,
        at: &Expr,
    ) -> Stmt {
        let name = state.position.symbol.name();
        let [mask, slot] = ["mask", "slot"].map(|what| scalar(format!("{name}.{what}")));
        let more = flag(format!("{name}.more"));
        let masked = |e: Expr| Expr::apply(Op::BitAnd, vec![e, mask.load([])]);
        let here = |e: &Expr| replaced(e, &probe.slot, &slot.load([]));
        let p = state.position.load([]);
        let own = |e: &Expr| replaced(e, &stepper.position, &p);
        let mut taken = nest.assume(&stepper.assumptions.iter().map(own).collect::<Vec<_>>());
        taken.push(nest.set(is_here, &own(&stepper.last).equals(at)));
        taken.push(nest.set(&more, &is_here.load([]).negate()));
        taken.push(nest.set(&slot, &masked(slot.load([]).plus(&Expr::int(1)))));
        let taken = nest.block(taken);
        let mut body = nest.assume(&probe.assumptions.iter().map(here).collect::<Vec<_>>());
        body.push(nest.set(&state.position, &here(&probe.entry)));
        body.push(nest.set(&more, &Expr::int(0).less_eq(&p)));
        body.push(nest.branch(&more.load([]), taken, Stmt::nop()));
        let body = nest.block(body);
        let all = nest.block([
            nest.set(&mask, &probe.mask),
            nest.set(&slot, &masked(probe.hash.clone())),
            nest.set(&more, &Expr::bool(true)),
            nest.derived(StmtKind::While { cond: more.load([]), body }, "probe"),
        ]);
        nest.with([mask, slot, more], all)
    }

    /// Scans the positions of a list without order, up to the one that has the coordinate.
    fn scanned(
        &self,
        nest: &LoopBuilder<'_>,
        (state, stepper): (&State, &Stepper),
        is_here: &Tensor,
        at: &Expr,
    ) -> Stmt {
        let more = flag(format!("{}.more", state.position.symbol.name()));
        let p = state.position.load([]);
        let own = |e: &Expr| replaced(e, &stepper.position, &p);
        let mut body = nest.assume(&stepper.assumptions.iter().map(own).collect::<Vec<_>>());
        body.push(nest.set(is_here, &own(&stepper.last).equals(at)));
        let on = nest.block([nest.set(&state.position, &p.plus(&Expr::int(1))), nest.set(&more, &state.is_left())]);
        body.push(nest.branch(&is_here.load([]), nest.set(&more, &Expr::bool(false)), on));
        let body = nest.block(body);
        let all = nest.block([
            nest.set(&more, &state.is_left()),
            nest.derived(StmtKind::While { cond: more.load([]), body }, "scan"),
        ]);
        nest.with([more], all)
    }
}
