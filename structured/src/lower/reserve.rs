//! Room for the elements that a loop over lists appends, made before the loop instead of at each element. The first
//! positions of a fibre's parents are set there too, if the loop appends to one fibre.
//!
//! ```text
//! grow(C.room1, C.crd1, C.val, C.n1 + (A.pos1[i + 1] - A.pos1[i]))
//! for r in range(C.opened1, i + 1): C.pos1[r] = C.n1
//! C.opened1 = i + 1
//! for p in range(A.pos1[i], A.pos1[i + 1]):
//!     C.crd1[C.n1] = A.crd1[p]; C.val[C.n1] = A.val[p]
//!     C.n1 += 1
//! ```

use super::cursor::{Cursor, above};
use super::exprs::load;
use super::merge_strategy::MergePlan;
use super::nest::{LoopBuilder, LoopRange};
use super::state::Lower;
use crate::access;
use crate::layout::TensorLevels;
use crate::looplet::is_spike;
use rustc_hash::FxHashMap;
use taffeta_analysis::pass::substitute;
use taffeta_analysis::query::effects;
use taffeta_ast::{Expr, ExprKind, Stmt, StmtKind, Symbol, print};

/// Appending writes in the body of a loop.
struct Appends {
    tensor: Symbol,
    /// Number of writes.
    count: i64,
    /// Position above the first level that is left, and this level, if all writes have the same.
    above: Option<(Expr, usize)>,
}

impl Lower {
    /// Makes room for the elements that a loop over the lists `leading` appends. It is registered until the loop is
    /// lowered.
    pub(super) fn reserve(
        &mut self,
        nest: &LoopBuilder<'_>,
        (plan, leading): (&MergePlan, &[Cursor]),
        range: LoopRange<'_>,
        body: &Stmt,
    ) -> Vec<Stmt> {
        // Duplicates of a coordinate are visited one by one: the loop inside has one iteration.
        let is_chain = match leading {
            [c] if c.stepper().is_some_and(|s| !s.unique) => {
                if nest.props.is_concurrent() || !self.is_chain(c, body, nest) {
                    return Vec::new();
                }
                true
            }
            _ => false,
        };
        let mut all = Vec::new();
        for appends in self.appends_in(body, is_chain) {
            let Some(most) = self.most_iterations((plan, leading), range, body) else { continue };
            let flat = self.tensors[&appends.tensor].clone();
            let Some(assembly) = &flat.assembly else { continue };
            // Below any other list, an element stores all elements of a dense level, and most make no new entry.
            let Some(k) = assembly.levels.iter().rposition(|own| own.how.adds_one() && own.is_last) else { continue };
            let count = &assembly.levels[k].counts[0];
            if self.reserved.counts.contains(&count.symbol) {
                continue;
            }
            let most = most.times(&Expr::int(appends.count));
            let origin = nest.s.origin().derive("structured", "reserve");
            all.extend(assembly.reserved(count, &most, &origin));
            if let Some(total) = self.most_in_all((plan, leading)) {
                let total = total.times(&Expr::int(appends.count));
                let known = self.totals.entry(appends.tensor.clone()).or_insert_with(|| total.clone());
                if *known != total {
                    *known = known.max_with(&total);
                }
            }
            self.reserved.counts.push(count.symbol.clone());
            let own = &assembly.levels[k];
            if let Some(opened) = &own.opened
                && let Some((position, level)) = &appends.above
                && *level == k
                && is_fixed(position, nest, body)
            {
                // A position out of range has no elements, or the first of them fails.
                let end = match self.is_coordinate(position, &own.parents, &nest.inside) {
                    true => position.plus(&Expr::int(1)),
                    false => position.plus(&Expr::int(1)).min_with(&own.parents).max_with(&opened.load([])),
                };
                all.extend(assembly.opened(own.how, (&appends.tensor, k), &end, &origin));
                self.reserved.opened.push((appends.tensor.clone(), k));
            }
        }
        all
    }

    /// Returns the number of elements for which each result has room from its beginning, in terms of the numbers of
    /// elements of parameters.
    pub(super) fn bounds(&self) -> FxHashMap<String, String> {
        let last = |flat: &TensorLevels| match flat.levels.last()?.positions.kind() {
            ExprKind::Var(size) => Some((size.clone(), Symbol::new(format!("nnz({})", flat.tensor.symbol)))),
            _ => None,
        };
        let counts: FxHashMap<Symbol, Symbol> = self.tensors.values().filter_map(last).collect();
        let named = |e: &Expr| match e.kind() {
            ExprKind::Var(size) => counts.get(size).map(Expr::var),
            _ => None,
        };
        let results = self.totals.iter().filter(|(tensor, _)| self.made.contains(tensor));
        let text = |e: &Expr| print::expr(&substitute::rewrite_expr(e, &mut |e| named(e), &mut FxHashMap::default()));
        results.map(|(tensor, total)| (tensor.name().to_string(), text(total))).collect()
    }

    /// Collects the appending writes of a loop's body, for each tensor that no inner loop appends to; `through` is
    /// whether a loop that is the whole body counts as its body.
    fn appends_in(&self, body: &Stmt, through: bool) -> Vec<Appends> {
        let mut found: Vec<Appends> = Vec::new();
        let mut inner: Vec<Symbol> = Vec::new();
        let body = match body.kind() {
            StmtKind::For { body, .. } if through => body,
            _ => body,
        };
        fn walk(s: &Stmt, in_loop: bool, f: &mut dyn FnMut(&Stmt, bool)) {
            f(s, in_loop);
            let in_loop = in_loop || matches!(s.kind(), StmtKind::For { .. } | StmtKind::While { .. });
            s.kind().inside().for_each(|s| walk(s, in_loop, f));
        }
        walk(body, false, &mut |s, in_loop| {
            let Some(target) = access::target(s) else { return };
            let Some((fibre, at)) = load(&target) else { return };
            let Some((tensor, from)) = self.fibres.get(fibre).cloned() else { return };
            if !self.appends(&tensor) || self.passes.contains_key(&tensor) {
                return;
            }
            if in_loop {
                inner.push(tensor);
                return;
            }
            let position = (above(at).positions.first, from);
            match found.iter_mut().find(|a| a.tensor == tensor) {
                Some(all) => {
                    all.count += 1;
                    all.above = all.above.take().filter(|other| *other == position);
                }
                None => found.push(Appends { tensor, count: 1, above: Some(position) }),
            }
        });
        found.retain(|a| !inner.contains(&a.tensor));
        found
    }

    /// Returns the number of iterations of a loop over lists in all of its executions, if each list is visited once, in
    /// terms of sizes that are known where the program begins.
    fn most_in_all(&self, (plan, leading): (&MergePlan, &[Cursor])) -> Option<Expr> {
        let one = |c: &Cursor| {
            let tensor = &self.tensors[self.tensor_of(c)];
            let positions = &self.level_of(c).positions;
            let is_size = |e: &Expr| match e.kind() {
                ExprKind::Load(..) => false,
                ExprKind::Var(size) => self.hidden.contains(size) || self.sizes.contains(size),
                _ => true,
            };
            (!tensor.tensor.role.is_local() && !positions.any(&mut |e| !is_size(e))).then(|| positions.clone())
        };
        let all = leading.iter().map(one).collect::<Option<Vec<Expr>>>()?;
        all.into_iter().reduce(|a, b| match plan {
            MergePlan::Leapfrog(_) => a.min_with(&b),
            MergePlan::Leader(_) | MergePlan::Merge => a.plus(&b),
        })
    }

    /// Returns a bound on the number of iterations of a loop over lists.
    fn most_iterations(
        &self,
        (plan, leading): (&MergePlan, &[Cursor]),
        range: LoopRange<'_>,
        body: &Stmt,
    ) -> Option<Expr> {
        let length = |c: &Cursor| {
            let stepper = c.stepper().filter(|s| is_spike(s))?;
            Some(stepper.end.minus(&stepper.begin))
        };
        let lengths = leading.iter().map(length).collect::<Option<Vec<Expr>>>()?;
        let first = lengths.first()?.clone();
        if !self.filled(body, leading).is_nop() {
            return Some(range.end.minus(range.begin).max_with(&Expr::int(0)));
        }
        Some(match plan {
            MergePlan::Leapfrog(_) => lengths[1..].iter().fold(first, |all, one| all.min_with(one)),
            MergePlan::Leader(_) | MergePlan::Merge => lengths[1..].iter().fold(first, |all, one| all.plus(one)),
        })
    }
}

/// Returns whether an expression has the same value in all iterations of a loop.
pub(super) fn is_fixed(e: &Expr, nest: &LoopBuilder<'_>, body: &Stmt) -> bool {
    let mut bound: Vec<Symbol> = nest.iter.into_iter().cloned().collect();
    body.walk(&mut |s| {
        if let StmtKind::For { iter, .. } = s.kind() {
            bound.push(iter.clone());
        }
    });
    let bound: Vec<&Symbol> = bound.iter().collect();
    !effects::mentions(e, &bound) && !e.any(&mut |e| matches!(e.kind(), ExprKind::Load(..)))
}
