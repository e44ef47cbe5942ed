//! What a program takes, estimated: the cost model by which rules choose.
//!
//! The statements directly in a loop take, all together,
//!
//! ```text
//! max(max(Σ compute, Σ levels) + Σ waits, max chain) · executions + events
//! ```
//!
//! - *compute*: what operations, loads and stores take, divided by the lanes of the innermost loop where that is made
//!   of vector instructions: it is marked so, or C compilers do it by themselves (`compilers`);
//! - *chain*: where the innermost loop reduces into one element, each addition waits for the one before, but for those
//!   of other lanes; the chains of several elements run beside each other. An iteration that loads what the one before
//!   it has stored waits for all that is computed in between (`recurrence`). Short sums of straight code do not wait for
//!   those of the next iteration of the loop around (`part/overlap.rs`);
//! - *levels*: for every level of the cache, the bytes that come from behind it. An iteration of a loop finds what the
//!   one before it has touched if all of that fits the level, with what other statements touch in between
//!   (`part/working_set.rs`); so the bytes are those that the outermost such loop touches while it runs, each cache line
//!   once, windows that overlap as one (`touch`). What an access before it in the same iteration of a loop around has
//!   touched is in the first level, and so are the neighbours of a stencil. Pages are counted likewise: of those that a
//!   core does not know, each is looked up;
//! - *waits*: elements that a tensor points to are pointed to again, and where all that a loop points to has no room in
//!   a level, part of them has gone by then. They come only once they are asked for (`part/prices.rs`), and a branch
//!   that asks them, and is guessed wrong, waits for them (`part/guess.rs`);
//! - *events*: loops that are entered, threads that are started, copies for partial results, atomic updates, and lines
//!   that move between the caches of cores (`transfer`).
//!
//! What a statement touches that another one of the same iteration has touched before costs nothing again, and what
//! stays the same in the innermost loop is in a register, as long as there are registers. So are local arrays of a few
//! elements whose indices are constants once loops are unrolled. Where all tensors of the program fit a level, nothing
//! comes from behind it.
//!
//! Threads divide compute and chain, and bytes as far as the level's bandwidth scales. Trip counts are estimates
//! (`trips`); a branch that is not known is taken half of the time (`branch`), and a guard of all that is in a loop is
//! a bound of the loop, which nothing asks inside.
//!
//! Rules that choose the structure of a program ask before lanes are marked: until then an innermost loop takes what it
//! would take with lanes, where it may have them. Of a program that no rule will change, C compilers change the order
//! of some loops (`Stage`).
//!
//! The parts of a program are added up, so an estimate is a sum over its outermost statements, each of which is
//! remembered as long as it stays the same node; so are the loops in them (`remembered`).

pub(super) mod branch;
pub(super) mod compilers;
mod part;
mod recurrence;
mod remembered;
pub(super) mod touch;
mod transfer;
pub(super) mod work;

use super::target::Target;
use super::trips::{Estimate, Known, Values};
use crate::tree::{self, Loop};
use part::Part;
use remembered::Remembered;
use rustc_hash::FxHashMap;
use taffeta_ast::{Expr, Func, Stmt, StmtId, StmtKind, Symbol};

/// What comes after a program that is estimated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Rules mark loops: innermost ones are taken to get lanes where that pays and they may.
    Structure,
    /// Rules for marks go on.
    Marks,
    /// C compilers have it as it is.
    Compiled,
}

/// Estimates programs for a machine.
pub(super) struct Model<'t> {
    pub target: &'t Target,
    stage: Stage,
    /// What outermost statements took when they were asked about, with the node that this is true of.
    known: FxHashMap<StmtId, (Stmt, f64)>,
    /// What loops inside of them took.
    loops: Remembered,
}

/// A loop around a statement.
#[derive(Clone)]
struct Around {
    iter: Symbol,
    trips: Estimate,
    threads: bool,
    lanes: bool,
    /// Whether C compilers make it of vector instructions without being asked.
    by_itself: bool,
    /// Elements of four bytes that lanes take at once.
    width: f64,
    /// Guards that become its bounds.
    bounds: Vec<Expr>,
    /// The levels of the cache for which an iteration touches too much.
    overflows: u32,
    /// About how many bytes all iterations touch of what a tensor points to.
    scattered: f64,
    /// The same for loops that are the same but for that, with those around them.
    path: u64,
    /// The same for loops that are the same to what is in them, with those around them.
    number: u64,
}

/// Iterations of a loop of which C compilers make straight code, and vectors.
const UNROLLED: [f64; 2] = [16.0, 8.0];

impl Around {
    /// Whether C compilers replace it by its iterations. (With a guard as a bound, how many there are is not known.)
    fn is_unrolled(&self) -> bool {
        let [scalars, vectors] = UNROLLED;
        let most = if self.lanes || self.by_itself { scalars.max(vectors * self.width) } else { scalars };
        self.trips.known == Known::Fact && self.trips.value <= most && self.bounds.is_empty()
    }
}

impl<'t> Model<'t> {
    pub fn new(target: &'t Target, stage: Stage) -> Model<'t> {
        Model { target, stage, known: FxHashMap::default(), loops: Remembered::default() }
    }

    /// What comes after the programs that are estimated from now on.
    pub fn set_stage(&mut self, stage: Stage) {
        if self.stage != stage {
            self.known.clear();
            self.loops.clear();
            self.stage = stage;
        }
    }

    /// What a program takes, in nanoseconds.
    pub fn program(&mut self, func: &Func) -> f64 {
        self.parts(func, &|_| true)
    }

    /// What the outermost statement around another one takes.
    pub fn part(&mut self, func: &Func, inside: StmtId) -> f64 {
        self.parts(func, &|s| tree::find(s, inside).is_some())
    }

    /// The outermost statements, with what they take.
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
                    let values = values.get_or_insert_with(|| Values::new(func, self.target));
                    let time = Part::new(self.target, values, self.stage).remembering(&mut self.loops).whole(s);
                    self.known.insert(s.id(), (s.clone(), time));
                    time
                }
            })
            .sum()
    }

    /// What a statement takes each time that it is executed.
    pub fn once(&self, func: &Func, around: &[Stmt], stmt: &Stmt) -> f64 {
        let mut values = self.inside(func, around);
        Part::new(self.target, &mut values, self.stage).whole(stmt)
    }

    /// What an outermost statement takes; what its arithmetic takes at least, and its bytes.
    pub fn against_roof(&self, func: &Func, stmt: &Stmt) -> (f64, f64, f64) {
        let mut values = Values::new(func, self.target);
        let estimate = Part::new(self.target, &mut values, self.stage).whole(stmt);
        let mut values = Values::new(func, self.target);
        let (arithmetic, memory) = Part::new(self.target, &mut values, self.stage).roof(stmt);
        (estimate, arithmetic, memory)
    }

    /// The trip count of a loop, in the loops around it.
    pub fn trips(&self, func: &Func, around: &[Stmt], l: &Loop) -> Estimate {
        self.inside(func, around).enter(&l.iter, [&l.begin, &l.end, &l.step], &l.body)
    }

    fn inside(&self, func: &Func, around: &[Stmt]) -> Values<'t> {
        let mut values = Values::new(func, self.target);
        for l in around.iter().filter_map(Loop::of) {
            values.enter(&l.iter, [&l.begin, &l.end, &l.step], &l.body);
        }
        values
    }
}

/// The statements that a program consists of, without the declarations around them.
fn outermost<'s>(s: &'s Stmt, out: &mut Vec<&'s Stmt>) {
    match s.kind() {
        StmtKind::Seq(all) => all.iter().for_each(|s| outermost(s, out)),
        StmtKind::VarDef { body, .. } => outermost(body, out),
        _ => out.push(s),
    }
}

/// Whether an estimate rests on what nobody has said.
pub(super) fn is_guess(e: Estimate) -> bool {
    e.known == Known::Guess
}
