//! What processors begin meanwhile: while a sum waits for its additions, they are at the next iteration of the loop
//! around, if that needs nothing of this one.
//!
//! ```text
//! for j in range(n):
//!     dot = 0.0
//!     for c in range(64):                  # straight code, of 8 vectors: each addition waits for the one before,
//!         dot += q[c] * k[j, c]            # and meanwhile those of the next `j` are done
//!     score[j] = dot
//! ```
//!
//! So the iterations take no less than their instructions do, and no less than one of them does from its beginning to
//! its end, divided by how many are on the way: as many as there is room for in the instructions among which a
//! processor looks for one that it can begin (its reorder buffer). That holds of straight code alone: the end of a loop
//! is guessed wrong so often that little is begun behind it.

use super::Element;
use crate::auto::model::touch::{Growth, Touch};
use crate::auto::model::work::Work;
use crate::tree::Loop;
use rustc_hash::FxHashSet;
use taffeta_analysis::query::effects;
use taffeta_ast::{Expr, Stmt, StmtKind, Symbol};

/// Instructions among which a processor looks for one that it can begin: fewer than those of today have room for (224
/// to 512), since vector instructions have less of it.
const IN_FLIGHT: f64 = 200.0;
/// Instructions of an exponential.
const EXPONENTIAL: f64 = 20.0;

/// A reduction or a recurrence that waits for itself.
#[derive(Clone)]
pub(super) struct Chain {
    element: Element,
    /// What it waits, in nanoseconds.
    pub time: f64,
    /// What its values are computed from.
    reads: FxHashSet<Symbol>,
}

/// What a loop takes longer than its instructions do, because of chains.
#[derive(Clone)]
pub(super) struct Wait {
    pub chains: Vec<Chain>,
    pub time: f64,
}

/// What a loop is to the one around it.
#[derive(Clone, Default)]
pub(in crate::auto::model) struct Inner {
    /// What it waits for, which is in no other time.
    pub(super) waits: Vec<Wait>,
    /// All that are executed.
    pub(super) instructions: f64,
}

impl Inner {
    /// What is waited for if nothing is begun meanwhile.
    pub(super) fn waits(&self) -> f64 {
        self.waits.iter().map(|w| w.time).sum()
    }

    pub(super) fn add(&mut self, other: &Inner) {
        self.waits.extend(other.waits.iter().cloned());
        self.instructions += other.instructions;
    }

    /// What all iterations of a loop take, in which there is this: `time` without what is waited for.
    pub(super) fn overlapped(self, time: f64, l: &Loop, iterations: f64) -> f64 {
        if self.waits.is_empty() {
            return time;
        }
        let written = effects::writes(&l.body);
        let is_free = |w: &&Wait| w.chains.iter().all(|c| c.begins_anew(l, &written));
        let free: f64 = self.waits.iter().filter(is_free).map(|w| w.time).sum();
        let on_the_way = (IN_FLIGHT * iterations / self.instructions.max(1.0)).max(1.0);
        time.max((time + free) / on_the_way) + self.waits() - free
    }
}

impl Chain {
    pub(super) fn new(element: Element, time: f64, value: &Expr) -> Chain {
        Chain { element, time, reads: effects::loads(value) }
    }

    /// Adds what the same element waits for in another statement. Whether it is the same.
    pub(super) fn lengthen(&mut self, element: &Element, time: f64, value: &Expr) -> bool {
        let same = self.element == *element;
        if same {
            self.time += time;
            self.reads.extend(effects::loads(value));
        }
        same
    }

    /// Whether an iteration of a loop around needs nothing that one before it has `written` to begin with it.
    fn begins_anew(&self, l: &Loop, written: &FxHashSet<Symbol>) -> bool {
        let (tensor, at) = &self.element;
        let (mut own, mut waits) = (at.iter().any(|e| effects::mentions(e, &[&l.iter])), false);
        l.body.walk(&mut |s: &Stmt| match s.kind() {
            StmtKind::VarDef { tensor: t, .. } => own |= t.symbol == *tensor,
            StmtKind::Store { tensor: t, indices, value } if t == tensor => {
                own |= indices.iter().map(|a| &a.index).eq(at);
                waits |= !effects::loads(value).is_disjoint(written);
            }
            _ => {}
        });
        own && !waits && self.reads.is_disjoint(written)
    }
}

/// The instructions of a statement, each time that it is executed: what is in registers needs none.
pub(super) fn instructions(work: &Work, accesses: &[Touch], lanes: f64) -> f64 {
    let stays = |a: &&Touch| a.in_registers || a.last() == Some(Growth::None);
    let moved = accesses.iter().filter(|a| !stays(a)).count() as f64;
    (work.simple + work.divide + work.transcendental * EXPONENTIAL + moved) / lanes
}

#[cfg(test)]
mod tests {
    use crate::Schedule;
    use crate::auto::Target;
    use crate::auto::model::{Model, Stage};
    use std::collections::BTreeMap;
    use std::sync::Arc;
    use taffeta_frontend::{NoHooks, NoLoader, Program, Source};

    const PROGRAM: &str = "
def rows(q: f32[64], k: f32[n, 64], s: inout[f32[n]]):
    for j in range(n):
        dot: f32 = 0.0
        for c in range(64):
            dot += q[c] * k[j, c]
        s[j] = dot / 8.0

def in_place(q: f32[64], k: f32[n, 64], s: inout[f32[n]]):
    for j in range(n):
        for c in range(64):
            s[j] += q[c] * k[j, c]

def total(q: f32[64], k: f32[n, 64], s: inout[f32[n]]):
    dot: f32 = 0.0
    for j in range(n):
        for c in range(64):
            dot += q[c] * k[j, c]
    s[0] = dot

def from_the_last(q: f32[64], k: f32[n, 64], s: inout[f32[n]]):
    for j in range(1, n):
        dot: f32 = s[j - 1]
        for c in range(64):
            dot += q[c] * k[j, c]
        s[j] = dot / 8.0

def of_the_last(q: f32[64], k: f32[n, 64], s: inout[f32[n]]):
    for j in range(1, n):
        dot: f32 = 0.0
        for c in range(64):
            dot += s[j - 1] * k[j, c]
        s[j] = dot / 8.0

def long(q: f32[4096], k: f32[n, 4096], s: inout[f32[n]]):
    for j in range(n):
        dot: f32 = 0.0
        for c in range(4096):
            dot += q[c] * k[j, c]
        s[j] = dot / 8.0
";

    /// What a program takes, with lanes, where an addition takes so long.
    fn time(entry: &str, latency: f64) -> f64 {
        let program = Program::load(Source::inline("f.ft", PROGRAM), &NoLoader);
        let func = program.elaborate(entry, &Default::default(), &NoHooks).unwrap_or_else(|d| panic!("{d}"));
        let mut target = Target { sizes: BTreeMap::from([("n".to_string(), 50)]), ..Target::portable(1) };
        target.prices.latency = latency;
        let mut s = Schedule::new(func).aimed_at(Arc::new(target.clone()));
        s.vectorize("c").unwrap_or_else(|r| panic!("{}", r.message));
        Model::new(&target, Stage::Compiled).program(s.func())
    }

    #[test]
    fn short_sums_of_their_own_do_not_wait_for_each_other() {
        for entry in ["rows", "in_place"] {
            assert_eq!(time(entry, 1.0), time(entry, 1.5), "{entry}");
        }
        // One sum goes through all iterations, begins with the last one's or is made of it, or is too long.
        for entry in ["total", "from_the_last", "of_the_last", "long"] {
            assert!(time(entry, 1.5) > 1.2 * time(entry, 1.0), "{entry}");
        }
    }
}
