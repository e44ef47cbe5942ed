//! Working sets: the bytes that one iteration of a loop touches, of all tensors together.
//!
//! ```text
//! for i in range(n):
//!     for j in range(65):                          # k[i : i + 65] alone has room in the first level, and is there when
//!         score[j] = dot(q[i], k[i + j])           # the next `i` begins, if …
//!     for j in range(65):
//!         k_grad[i + j] += score_grad[j] * q[i]    # … what comes between has room beside it
//! ```

use super::Estimator;
use crate::auto::model::access::AccessPattern;
use crate::auto::model::enclosing::EnclosingLoop;
use crate::auto::model::footprint::{TensorFootprint, WorkingSet};
use crate::auto::target::LINE;
use crate::tree::Loop;
use std::rc::Rc;
use taffeta_ast::{Expr, ExprKind, Stmt, StmtKind, Symbol};

/// Ratio of working set to capacity up to which data stays in a level: caches evict nearly any line, not the oldest
/// one, so most of a slightly larger working set survives.
const SPILLS: f64 = 1.5;
/// Number of steps per doubling to which the bytes of indirect accesses are rounded.
const STEPS: f64 = 4.0;

impl Estimator<'_, '_> {
    /// Sets the fields of a loop context that depend on the working set: the levels that an iteration's working set
    /// exceeds, and the approximate bytes of indirect accesses in all iterations.
    pub(super) fn add_working_set(&mut self, l: &Loop, own: &mut EnclosingLoop) {
        let depth = self.around.len() + 1;
        let set = self.known_set(l).unwrap_or_else(|| self.working_set(l, own.clone()));
        let bytes: f64 = set.iter().map(|t| t.bytes[depth]).sum();
        let scattered = set.iter().filter(|t| t.pointed >= depth);
        let all: f64 = scattered.map(|t| t.bytes[depth - 1]).sum();
        // Rounding to steps keeps memoised estimates valid when a neighbouring loop touches a little more.
        own.scattered = (STEPS * all.max(1.0).log2()).round().exp2().powf(1.0 / STEPS);
        let exceeds = |(k, level): (usize, f64)| {
            let all = level * self.target.threads as f64;
            u32::from(bytes > SPILLS * level) << (2 * k) | u32::from(bytes > SPILLS * all) << (2 * k + 1)
        };
        own.overflows =
            self.target.levels.iter().map(|l| l.bytes).enumerate().take(16).map(exceeds).fold(0, |a, b| a | b);
    }

    /// Looks up the memoised working set of a loop, which depends on the loop and the loops around it.
    fn known_set(&self, l: &Loop) -> Option<Rc<WorkingSet>> {
        self.remembered.as_ref().and_then(|all| all.recall_set(&l.stmt, self.path()))
    }

    /// Computes the working set of a loop that was just entered.
    fn working_set(&mut self, l: &Loop, own: EnclosingLoop) -> Rc<WorkingSet> {
        let path = self.path();
        self.around.push(own);
        let mut set = WorkingSet::new();
        self.touch_all(&l.body, &mut set);
        self.around.pop();
        let set = Rc::new(set);
        if let Some(all) = &mut self.remembered {
            all.remember_set(&l.stmt, path, set.clone());
        }
        set
    }

    fn touch_all(&mut self, s: &Stmt, set: &mut WorkingSet) {
        if let (Some(l), StmtKind::For { props, .. }) = (Loop::of(s), s.kind()) {
            if props.library {
                return;
            }
            let inner = self.known_set(&l).unwrap_or_else(|| {
                let trips = self.values.enter(&l.iter, [&l.begin, &l.end, &l.step], &l.body);
                let own = self.enclosing_loop(&l, props, trips);
                let inner = self.working_set(&l, own);
                self.values.leave();
                inner
            });
            inner.iter().for_each(|t| self.add(set, (&t.tensor, t.pointed), &mut t.bytes.iter().copied()));
            return;
        }
        if let StmtKind::Store { tensor, indices, value } | StmtKind::ReduceTo { tensor, indices, value, .. } = s.kind()
        {
            let at: Vec<&Expr> = indices.iter().map(|a| &a.index).collect();
            self.touch(set, tensor, &at, value);
        }
        for e in s.kind().exprs() {
            e.walk(&mut |e| {
                if let ExprKind::Load(tensor, indices) = e.kind() {
                    let at: Vec<&Expr> = indices.iter().map(|a| &a.index).collect();
                    self.touch(set, tensor, &at, e);
                }
            });
        }
        s.kind().children().into_iter().for_each(|c| self.touch_all(c, set));
    }

    fn touch(&self, set: &mut WorkingSet, tensor: &Symbol, at: &[&Expr], element: &Expr) {
        if at.is_empty() {
            return;
        }
        let touch = AccessPattern::new(self.values, &self.around, tensor, at, element.dtype().size() as f64);
        if !touch.in_registers {
            let mut by_depth = (0..).map(|depth| touch.footprint(&self.around, depth, LINE));
            self.add(set, (tensor, touch.pointed()), &mut by_depth);
        }
    }

    /// Adds the footprint of an access; of two accesses to a tensor, the larger one counts.
    fn add(&self, set: &mut WorkingSet, (tensor, pointed): (&Symbol, usize), by_depth: &mut dyn Iterator<Item = f64>) {
        let by_depth = by_depth.take(self.around.len() + 1);
        let Some(known) = set.iter_mut().find(|t| t.tensor == *tensor) else {
            return set.push(TensorFootprint { tensor: tensor.clone(), bytes: by_depth.collect(), pointed });
        };
        known.bytes.iter_mut().zip(by_depth).for_each(|(known, by)| *known = known.max(by));
        known.pointed = known.pointed.max(pointed);
    }
}
