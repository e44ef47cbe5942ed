//! Sequential loops around parallel ones whose threads are called once, and not for every loop.
//!
//! *does*: finds the outermost sequential loops of which every thread can run all iterations, meeting the others after
//! each parallel loop in them. To call threads and to wait for them takes three times as long as a meeting: with loops
//! of 10 µs in a loop over time that is a fifteenth of all.
//!
//! *requires*: flat indices, places, and loops as they will be printed. *ensures*: nothing changes; the emitter
//! (`c/regions`) asks which loops they are.
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
//! A region does not last: it ends with the iteration in which it is a millisecond old, and another one begins, so that
//! there are fewer threads where something else takes their cores (`wf_fork` in `taffeta_runtime.h`).
//!
//! *leaves alone*: a loop with
//!
//! - a parallel loop that has partial results, which are combined where one thread runs alone;
//! - a scalar that changes, or an array on the stack or of its own memory, around a parallel loop in it, which would be
//!   another one for each thread; and what writes into scalars around it;
//! - parallel loops under conditions, or loops around them with ends that it writes itself;
//! - matrix products that a library may take, which has threads of its own;
//! - more places where one thread works alone than parallel loops: they cost a meeting too.

use super::invariants::first_value;
use rustc_hash::FxHashSet;
use taffeta_analysis::query::effects;
use taffeta_ast::stmt::Memory;
use taffeta_ast::{Expr, ExprKind, Extent, Func, LoopProps, Sharing, Stmt, StmtId, StmtKind, Symbol};

/// Where threads are called once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Regions {
    /// The sequential loops that all threads run.
    pub loops: FxHashSet<StmtId>,
    /// The statements that are parallel loops, or have some inside.
    pub parallel: FxHashSet<StmtId>,
}

/// How often threads meet in one iteration.
#[derive(Default)]
struct Meetings {
    /// After parallel loops.
    parallel: usize,
    /// After what one thread does alone.
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

/// A loop that may be a region.
struct Candidate {
    written: FxHashSet<Symbol>,
    /// Its iterator, and those of sequential loops in it around parallel ones.
    iterators: FxHashSet<Symbol>,
    meetings: Meetings,
}

impl Pass {
    /// Finds local scalars, and what has parallel loops inside; whether this has.
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
        let mut c = Candidate {
            written: effects::writes(body),
            iterators: FxHashSet::from_iter([iter.clone()]),
            meetings: Meetings::default(),
        };
        is_plain(props)
            && step.as_int().is_some_and(|s| s != 0)
            && self.all_run(body, &mut c)
            && c.meetings.alone <= c.meetings.parallel
    }

    /// Whether every thread can run this statement, with parts of it by one thread alone.
    fn all_run(&self, s: &Stmt, c: &mut Candidate) -> bool {
        if !self.found.parallel.contains(&s.id()) {
            c.meetings.alone += 1;
            return self.one_runs(s);
        }
        match s.kind() {
            StmtKind::Seq(v) => self.sequence(v, c),
            StmtKind::VarDef { tensor, body } => match tensor.memory {
                // The same place for all of them.
                Memory::Arena => self.all_run(body, c),
                // The same value, that never changes.
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
                    // Whether there are threads at all is decided before the region begins.
                    let known = parallel.above.is_none() || bounds.iter().all(|e| is_known_before(e, &c.iterators));
                    return known && !partial && !props.library && !self.changes_scalars(body);
                }
                c.iterators.insert(iter.clone());
                is_plain(props) && self.all_run(body, c)
            }
            _ => false,
        }
    }

    fn sequence(&self, v: &[Stmt], c: &mut Candidate) -> bool {
        self.found.parts(v).into_iter().all(|part| match part {
            Part::All(s) => self.all_run(s, c),
            Part::One(v) => {
                c.meetings.alone += 1;
                v.iter().all(|s| self.one_runs(s))
            }
        })
    }

    /// Whether one thread can run this statement while others wait.
    fn one_runs(&self, s: &Stmt) -> bool {
        let mut libraries = false;
        s.walk(&mut |s| libraries |= matches!(s.kind(), StmtKind::For { props, .. } if props.library));
        !libraries && !self.changes_scalars(s)
    }

    /// Whether it writes into scalars that are declared outside of it.
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

/// A part of a sequence inside of a region.
pub(crate) enum Part<'s> {
    /// What every thread runs.
    All(&'s Stmt),
    /// What one thread runs alone.
    One(&'s [Stmt]),
}

impl Regions {
    /// A sequence as what every thread runs, and what one of them runs alone.
    pub(crate) fn parts<'s>(&self, v: &'s [Stmt]) -> Vec<Part<'s>> {
        let mut parts = Vec::new();
        let all = |s: &Stmt| self.parallel.contains(&s.id());
        for same in v.chunk_by(|a, b| !all(a) && !all(b)) {
            match same {
                [s] if all(s) => parts.push(Part::All(s)),
                // (For the analysis alone.)
                _ if same.iter().all(|s| matches!(s.kind(), StmtKind::Assume { .. })) => {}
                _ => parts.push(Part::One(same)),
            }
        }
        parts
    }
}

/// A loop that threads can run as it stands.
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
