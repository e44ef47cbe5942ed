//! Cost model: the estimated run time of a program, by which rules choose.
//!
//! The statements directly in a loop together take
//!
//! ```text
//! max(max(Σ compute, Σ levels) + Σ waits, max chain) · executions + events
//! ```
//!
//! - *compute*: operations, loads and stores, divided by the lanes of the innermost loop where that is vectorised, by a
//!   mark or by C compilers of their own accord (`c_compiler`);
//! - *chain*: where the innermost loop reduces into one element, each addition depends on its predecessor in its lane;
//!   the chains of several elements overlap. An iteration that loads an element stored by its predecessor waits for all
//!   operations in between (`recurrence`). Short sums of straight-line code do not wait for the sums of the next
//!   iteration of the enclosing loop (`estimator/out_of_order.rs`);
//! - *levels*: for every cache level, the bytes that come from behind it. An iteration of a loop finds the data of the
//!   one before if all of the data fits the level, together with data that other statements touch in between
//!   (`estimator/working_set.rs`); so the bytes are the footprint of the outermost such loop, with each cache line and
//!   each part of overlapping windows counted once (`access`). Data touched by an earlier access in the same iteration
//!   of an enclosing loop is in the first level, and so are the neighbours of a stencil. Pages are counted by the same
//!   rules: each TLB miss is a lookup;
//! - *waits*: indirect accesses return to elements, and where all elements that a loop reaches indirectly exceed a
//!   level, a part of them has been evicted by then. They are fetched on demand only (`estimator/memory_cost.rs`), and
//!   a mispredicted branch on them waits for them (`estimator/misprediction.rs`);
//! - *events*: loop entries, thread starts, copies of partial results, atomic updates, and cache lines that move
//!   between cores (`coherence`).
//!
//! A repeated access to an element in one iteration is free, and invariants of the innermost loop are in registers, as
//! long as there are registers. So are small local arrays whose indices are constants once loops are unrolled. Where
//! all tensors of the program fit a level, no bytes come from behind it.
//!
//! Threads divide compute and chain, and bytes as far as the level's bandwidth scales. Trip counts are estimates
//! (`trip_counts`); an unknown branch is taken half of the time (`branch`), and a guard of a whole loop body is a bound
//! of the loop, which costs no test inside.
//!
//! Rules that choose the structure of a program run before lanes are marked: until then an innermost loop is priced
//! with lanes where it may get them. In a program that no rule will change, C compilers interchange some loops (`Stage`
//! tells these cases apart).
//!
//! An estimate is a sum over the program's outermost statements, each of which is memoised for as long as it is the
//! same node; so are the loops in them (`memo`).

pub(super) mod access;
pub(super) mod branch;
pub(super) mod c_compiler;
mod coherence;
pub(in crate::auto) mod enclosing;
mod estimator;
mod footprint;
mod hash;
mod memo;
mod recurrence;
pub(super) mod work;

use super::target::Target;
use super::trip_counts::{Basis, Declared, Estimate, Values};
use crate::auto::model::enclosing::EnclosingLoop;
use crate::auto::model::enclosing::Stage;
use crate::tree::{self, Loop};
use estimator::Estimator;
use memo::Memo;
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::rc::Rc;
use taffeta_ast::{Func, Stmt, StmtId, StmtKind};

/// Estimate of a statement, and the lower bounds of its time, in nanoseconds.
pub(super) struct RoofComparison {
    pub estimate: f64,
    pub arithmetic: f64,
    pub memory: f64,
}

/// Estimator of programs for a machine.
pub(super) struct Model<'t> {
    pub target: &'t Target,
    stage: Stage,
    /// Estimates of outermost statements, with the nodes they are valid for.
    known: FxHashMap<StmtId, (Stmt, f64)>,
    /// Memo of estimates of the loops inside of outermost statements.
    loops: Memo,
    /// Sizes and tensors of the last program that [`Model::inside`] saw, with its body.
    declared: RefCell<Option<(Stmt, Rc<Declared>)>>,
    /// Trip counts above which threads pay, by loop.
    thresholds: RefCell<FxHashMap<StmtId, Threshold>>,
}

/// Trip count above which threads pay for a loop, and the nodes it was computed for.
struct Threshold {
    /// Loops around the loop, and the loop itself.
    nodes: Vec<Stmt>,
    trips: Option<i64>,
}

/// Maximum trip counts that C compilers unroll completely: in scalar iterations, and in vectors.
const UNROLLED: [f64; 2] = [16.0, 8.0];

impl EnclosingLoop {
    /// Returns whether C compilers unroll the loop completely. (With a guard as a bound, the trip count is unknown.)
    fn is_unrolled(&self) -> bool {
        let [scalars, vectors] = UNROLLED;
        let most = if self.lanes || self.auto_vectorized { scalars.max(vectors * self.width) } else { scalars };
        self.trips.basis == Basis::Fact && self.trips.value <= most && self.bounds.is_empty()
    }
}

impl<'t> Model<'t> {
    pub fn new(target: &'t Target, stage: Stage) -> Model<'t> {
        let (known, declared, thresholds) = (FxHashMap::default(), RefCell::default(), RefCell::default());
        Model { target, stage, known, loops: Memo::default(), declared, thresholds }
    }

    /// Sets the stage of subsequent estimates.
    pub fn set_stage(&mut self, stage: Stage) {
        if self.stage != stage {
            self.known.clear();
            self.loops.clear();
            self.stage = stage;
        }
    }

    /// Forgets the estimates of outermost statements; those of the loops in them stay.
    pub fn forget_statements(&mut self) {
        self.known.clear();
    }

    /// Returns the estimated time of a program in nanoseconds.
    pub fn program(&mut self, func: &Func) -> f64 {
        self.parts(func, &|_| true)
    }

    /// Returns the estimate of the outermost statement around another one.
    pub fn part(&mut self, func: &Func, inside: StmtId) -> f64 {
        self.parts(func, &|s| tree::find(s, inside).is_some())
    }

    /// Returns the outermost statements with their estimates.
    pub fn statements(&mut self, func: &Func) -> Vec<(Stmt, f64)> {
        let mut parts = Vec::new();
        outermost(&func.body, &mut parts);
        parts.into_iter().map(|s| (s.clone(), self.parts(func, &|other| other.same_node(s)))).collect()
    }

    fn parts(&mut self, func: &Func, which: &dyn Fn(&Stmt) -> bool) -> f64 {
        let mut parts = Vec::new();
        outermost(&func.body, &mut parts);
        let mut values = None;
        parts
            .into_iter()
            .filter(|s| which(s))
            .map(|s| match self.known.get(&s.id()) {
                Some((node, known)) if node.same_node(s) => *known,
                _ => {
                    let values = values.get_or_insert_with(|| Values::of(self.declared(func), self.target));
                    let time = Estimator::new(self.target, values, self.stage).remembering(&mut self.loops).whole(s);
                    self.known.insert(s.id(), (s.clone(), time));
                    time
                }
            })
            .sum()
    }

    /// Returns the estimate of a single execution of a statement.
    pub fn once(&self, func: &Func, around: &[Stmt], stmt: &Stmt) -> f64 {
        let mut values = self.inside(func, around);
        Estimator::new(self.target, &mut values, self.stage).whole(stmt)
    }

    /// Returns the estimate of an outermost statement, and the lower bounds of its arithmetic and its memory transfers.
    pub fn against_roof(&self, func: &Func, stmt: &Stmt) -> RoofComparison {
        let mut values = Values::of(self.declared(func), self.target);
        let estimate = Estimator::new(self.target, &mut values, self.stage).whole(stmt);
        let mut values = Values::of(self.declared(func), self.target);
        let (arithmetic, memory) = Estimator::new(self.target, &mut values, self.stage).roof(stmt);
        RoofComparison { estimate, arithmetic, memory }
    }

    /// Returns the trip count of a loop in the loops around it.
    pub fn trips(&self, func: &Func, around: &[Stmt], l: &Loop) -> Estimate {
        self.inside(func, around).enter(&l.iter, [&l.begin, &l.end, &l.step], &l.body)
    }

    /// Returns the trip count above which threads pay for a loop, computed unless it is known for the same nodes.
    pub fn threshold(&self, around: &[Stmt], l: &Stmt, compute: impl FnOnce() -> Option<i64>) -> Option<i64> {
        let nodes = || around.iter().chain([l]);
        if let Some(known) = self.thresholds.borrow().get(&l.id())
            && known.nodes.len() == around.len() + 1
            && known.nodes.iter().zip(nodes()).all(|(a, b)| a.same_node(b))
        {
            return known.trips;
        }
        let trips = compute();
        self.thresholds.borrow_mut().insert(l.id(), Threshold { nodes: nodes().cloned().collect(), trips });
        trips
    }

    /// Returns a model for the same programs on a machine that differs in the values it assumes.
    pub fn with_target<'a>(&self, target: &'a Target, stage: Stage) -> Model<'a> {
        Model { declared: self.declared.clone(), ..Model::new(target, stage) }
    }

    /// Returns the sizes and tensors that a program declares.
    fn declared(&self, func: &Func) -> Rc<Declared> {
        let mut last = self.declared.borrow_mut();
        match &*last {
            Some((body, declared)) if body.same_node(&func.body) => declared.clone(),
            _ => {
                let declared = Rc::new(Declared::of(func));
                *last = Some((func.body.clone(), declared.clone()));
                declared
            }
        }
    }

    fn inside(&self, func: &Func, around: &[Stmt]) -> Values<'t> {
        let mut values = Values::of(self.declared(func), self.target);
        for l in around.iter().filter_map(Loop::of) {
            values.enter(&l.iter, [&l.begin, &l.end, &l.step], &l.body);
        }
        values
    }
}

/// Collects the outermost statements of a program, without the declarations around them.
fn outermost<'s>(s: &'s Stmt, out: &mut Vec<&'s Stmt>) {
    match s.kind() {
        StmtKind::Seq(all) => all.iter().for_each(|s| outermost(s, out)),
        StmtKind::VarDef { body, .. } => outermost(body, out),
        _ => out.push(s),
    }
}
