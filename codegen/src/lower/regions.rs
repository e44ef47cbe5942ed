//! Sequential loops around parallel ones that run inside one parallel region, with one fork for all iterations.
//!
//! **Does**: finds the outermost sequential loops all of whose iterations every thread can execute, with a barrier
//! after each parallel loop inside. A fork and join costs three times as much as a barrier: with parallel loops of 10
//! µs in a time loop, this saves a fifteenth of the total.
//!
//! **Requires**: flat indices, placement, and loops as they will be printed. **Ensures**: the program is unchanged; the
//! emitter (`c/regions`) looks up these loops.
//!
//! ```text
//! for t in range(steps):                             every thread:
//!     for i in range(n):  # parallel                     for t in range(steps):
//!         b[i] = a[i] + a[i + 1]                             its part of i; meets the others
//!     b[0] = c[t]                               →            b[0] = c[t], if it is the first; meets the others
//!     for i in range(n):  # parallel                         its part of i; meets the others
//!         a[i] = b[i]
//! ```
//!
//! A region is short-lived: it ends with the iteration in which it is a millisecond old, and another one is forked,
//! with fewer threads if other processes take their cores (`taf_fork` in `taffeta_runtime.h`).
//!
//! **Leaves alone**: a loop with
//!
//! - a parallel loop that has partial results, which are combined outside of parallel regions;
//! - around a parallel loop inside it, a scalar that changes, or an array on the stack or the heap, since each thread
//!   would have its own; or a write to a scalar declared outside;
//! - parallel loops under conditions, or loops around them whose bounds it writes;
//! - matrix products that may be calls of a library, which has threads of its own;
//! - more single-threaded parts than parallel loops: a barrier follows these too.

use super::hoist_lane_invariants::first_value;
use rustc_hash::FxHashSet;
use taffeta_analysis::query::effects;
use taffeta_ast::stmt::Memory;
use taffeta_ast::{Expr, ExprKind, Extent, Func, LoopProps, Sharing, Stmt, StmtId, StmtKind, Symbol};

/// Parallel regions of a program.
#[derive(Clone, Debug, Default)]
pub(crate) struct Regions {
    /// Sequential loops that all threads run.
    pub loops: FxHashSet<StmtId>,
    /// Parallel loops, and all statements that contain one.
    pub parallel: FxHashSet<StmtId>,
}

/// Number of barriers in one iteration.
#[derive(Default)]
struct Barriers {
    /// Barriers after parallel loops.
    parallel: usize,
    /// Barriers after parts that one thread runs alone.
    alone: usize,
}

pub(super) fn find(func: &Func) -> Regions {
    let mut pass = Pass { found: Regions::default(), scalars: FxHashSet::default() };
    pass.gather(&func.body);
    pass.stmt(&func.body);
    pass.found
}

struct Pass {
    found: Regions,
    /// All local scalars.
    scalars: FxHashSet<Symbol>,
}

/// A loop that may become a region.
struct RegionCandidate {
    written: FxHashSet<Symbol>,
    /// Iterators of this loop, and of sequential loops in it around parallel ones.
    iterators: FxHashSet<Symbol>,
    meetings: Barriers,
}

impl Pass {
    /// Collects local scalars, and statements that contain parallel loops; returns whether this one does.
    fn gather(&mut self, s: &Stmt) -> bool {
        if let StmtKind::VarDef { tensor, .. } = s.kind()
            && tensor.memory == Memory::Register
        {
            self.scalars.insert(tensor.symbol.clone());
        }
        let mut parallel = matches!(s.kind(), StmtKind::For { props, .. } if props.parallel.is_some());
        for c in s.kind().children() {
            parallel |= self.gather(c);
        }
        if parallel {
            self.found.parallel.insert(s.id());
        }
        parallel
    }

    fn stmt(&mut self, s: &Stmt) {
        if !self.found.parallel.contains(&s.id()) {
            return;
        }
        if let StmtKind::For { props, .. } = s.kind() {
            if props.parallel.is_some() {
                return;
            }
            if self.is_region(s) {
                self.found.loops.insert(s.id());
                return;
            }
        }
        s.kind().children().into_iter().for_each(|c| self.stmt(c));
    }

    fn is_region(&self, s: &Stmt) -> bool {
        let StmtKind::For { iter, extent: Extent::Range { step, .. }, props, body } = s.kind() else { return false };
        let mut c = RegionCandidate {
            written: effects::writes(body),
            iterators: FxHashSet::from_iter([iter.clone()]),
            meetings: Barriers::default(),
        };
        is_plain(props)
            && step.as_int().is_some_and(|s| s != 0)
            && self.runs_on_all_threads(body, &mut c)
            && c.meetings.alone <= c.meetings.parallel
    }

    /// Returns whether every thread can run this statement, except for parts that one thread runs alone.
    fn runs_on_all_threads(&self, s: &Stmt, c: &mut RegionCandidate) -> bool {
        if !self.found.parallel.contains(&s.id()) {
            c.meetings.alone += 1;
            return self.runs_on_one_thread(s);
        }
        match s.kind() {
            StmtKind::Seq(v) => self.sequence(v, c),
            StmtKind::VarDef { tensor, body } => match tensor.memory {
                // The same memory for all threads.
                Memory::Arena => self.runs_on_all_threads(body, c),
                // A value that is equal in all threads and never changes.
                Memory::Register => first_value(&tensor.symbol, body).is_some_and(|(value, rest)| {
                    effects::loads(value).is_disjoint(&c.written) && self.sequence(rest, c)
                }),
                _ => false,
            },
            StmtKind::For { iter, extent: Extent::Range { begin, end, step }, props, body } => {
                let bounds = [begin, end, step];
                if !bounds.iter().all(|e| effects::loads(e).is_disjoint(&c.written)) {
                    return false;
                }
                if let Some(parallel) = &props.parallel {
                    c.meetings.parallel += 1;
                    let partial = props.reductions.iter().any(|r| r.sharing == Sharing::Partial);
                    // The threshold for starting threads (`above`) is evaluated before the region begins.
                    let known = parallel.above.is_none() || bounds.iter().all(|e| is_known_before(e, &c.iterators));
                    return known && !partial && !props.library && !self.changes_scalars(body);
                }
                c.iterators.insert(iter.clone());
                is_plain(props) && self.runs_on_all_threads(body, c)
            }
            _ => false,
        }
    }

    fn sequence(&self, v: &[Stmt], c: &mut RegionCandidate) -> bool {
        self.found.parts(v).into_iter().all(|part| match part {
            RegionPart::All(s) => self.runs_on_all_threads(s, c),
            RegionPart::One(v) => {
                c.meetings.alone += 1;
                v.iter().all(|s| self.runs_on_one_thread(s))
            }
        })
    }

    /// Returns whether one thread can run this statement while the others wait.
    fn runs_on_one_thread(&self, s: &Stmt) -> bool {
        let libraries = s.any(&mut |s| matches!(s.kind(), StmtKind::For { props, .. } if props.library));
        !libraries && !self.changes_scalars(s)
    }

    /// Returns whether a statement writes to scalars declared outside it.
    fn changes_scalars(&self, s: &Stmt) -> bool {
        let mut own = FxHashSet::default();
        s.walk(&mut |s| {
            if let StmtKind::VarDef { tensor, .. } = s.kind() {
                own.insert(tensor.symbol.clone());
            }
        });
        effects::writes(s).iter().any(|t| self.scalars.contains(t) && !own.contains(t))
    }
}

/// A part of a sequence inside a region.
pub(crate) enum RegionPart<'s> {
    /// A statement that every thread runs.
    All(&'s Stmt),
    /// Statements that one thread runs alone.
    One(&'s [Stmt]),
}

impl Regions {
    /// Splits a sequence into parts that every thread runs and parts that one thread runs alone.
    pub(crate) fn parts<'s>(&self, v: &'s [Stmt]) -> Vec<RegionPart<'s>> {
        let mut parts = Vec::new();
        let all = |s: &Stmt| self.parallel.contains(&s.id());
        for same in v.chunk_by(|a, b| !all(a) && !all(b)) {
            match same {
                [s] if all(s) => parts.push(RegionPart::All(s)),
                // Assumptions print no code.
                _ if same.iter().all(|s| matches!(s.kind(), StmtKind::Assume { .. })) => {}
                _ => parts.push(RegionPart::One(same)),
            }
        }
        parts
    }
}

/// Returns whether a loop is sequential as printed: not concurrent, not unrolled, no library call.
fn is_plain(props: &LoopProps) -> bool {
    !props.is_concurrent() && !props.unroll && !props.library
}

fn is_known_before(e: &Expr, iterators: &FxHashSet<Symbol>) -> bool {
    let mut known = true;
    e.walk(&mut |e| match e.kind() {
        ExprKind::Load(..) => known = false,
        ExprKind::Var(v) => known &= !iterators.contains(v),
        _ => {}
    });
    known
}
