//! The machine that a program is scheduled for, and the sizes that it is expected to run with.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, LazyLock};

/// The machine, as the cost model sees it, and what is expected of the program's sizes. Times are in nanoseconds, of
/// one thread; what a vector instruction does takes as long as the scalar one unless another price is given.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// Threads of a parallel loop.
    pub threads: usize,
    /// Bytes of a vector.
    pub vector_bytes: usize,
    /// Levels of the cache that a thread reads through, from the smallest one on; then memory, whose bytes are without
    /// end.
    pub levels: Vec<Level>,
    /// What instructions and events take.
    pub prices: Prices,
    /// Sizes of the entry that are known, or expected.
    pub sizes: BTreeMap<String, i64>,
    /// Which of them it has whenever it runs: they are compiled in.
    pub fixed: BTreeSet<String>,
    /// What a size is taken for of which nothing is known.
    pub unknown: f64,
    /// Whether rules leave sums and products of floats in the order in which the program computes them.
    pub strict_floats: bool,
}

/// A level of the cache, or memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level {
    /// What fits; of a level that threads share, what one of them can count on.
    pub bytes: f64,
    /// Nanoseconds for a byte that comes from there.
    pub per_byte: f64,
    /// By how much threads together are faster than one, at most.
    pub scales: f64,
}

/// What instructions and events take, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prices {
    /// An addition, a multiplication, a comparison: one instruction of those that a core does several of in a cycle.
    pub simple: f64,
    /// What a chain of additions waits for each of them.
    pub latency: f64,
    /// A load that the first level has.
    pub load: f64,
    /// A store.
    pub store: f64,
    /// An element that is loaded or stored at an address of its own by a vector instruction.
    pub gather: f64,
    /// An element of a vector whose elements lie apart: a float, and an integer, of which some compilers put vectors
    /// together in memory.
    pub strided: [f64; 2],
    /// Division and square root of floats; of a vector.
    pub divide: [f64; 2],
    /// `exp` and its like; of a vector.
    pub transcendental: [f64; 2],
    /// A branch.
    pub branch: f64,
    /// To enter a loop and to leave it.
    pub enter: f64,
    /// To allocate an array, and to free it.
    pub allocate: f64,
    /// To look up the address of a page.
    pub page: f64,
    /// To start the threads of a parallel loop, and to wait for the last one.
    pub region: f64,
    /// A byte that another core has written last.
    pub transfer: f64,
    /// An atomic update.
    pub atomic: f64,
    /// To call a library for a matrix product.
    pub call: f64,
    /// How fast a library is, as a part of how fast multiply-adds can be.
    pub library: f64,
}

/// A [`Target`] that is made when a rule first chooses by it: what asks no rule needs to know nothing of the machine.
#[derive(Clone)]
pub struct Aim(Arc<LazyLock<Arc<Target>, Make>>);

type Make = Box<dyn FnOnce() -> Arc<Target> + Send>;

impl Aim {
    /// The target that `make` gives when it is first asked for.
    pub fn at(make: impl FnOnce() -> Target + Send + 'static) -> Aim {
        Aim(Arc::new(LazyLock::new(Box::new(move || Arc::new(make())))))
    }

    /// The target.
    pub fn target(&self) -> Arc<Target> {
        LazyLock::force(&self.0).clone()
    }
}

impl From<Arc<Target>> for Aim {
    fn from(target: Arc<Target>) -> Aim {
        Aim(Arc::new(LazyLock::new(Box::new(move || target))))
    }
}

impl fmt::Debug for Aim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Aim")
    }
}

/// Bytes of a cache line.
pub const LINE: f64 = 64.0;
/// Bytes of a page of memory.
pub(super) const PAGE: f64 = 4096.0;
/// Pages whose addresses a core knows without looking them up.
pub(super) const PAGES: f64 = 1024.0;

impl Target {
    /// Registers of a vector that loops can keep values in; the others are for what is loaded meanwhile.
    pub(super) fn registers(&self) -> f64 {
        if self.vector_bytes >= 64 { 24.0 } else { 12.0 }
    }

    /// A machine like those that most people have, with so many threads: what is chosen for it is the same everywhere.
    pub fn portable(threads: usize) -> Target {
        let shared = threads.max(1) as f64;
        let level = |bytes: f64, per_byte: f64, scales: f64| Level { bytes, per_byte, scales };
        Target {
            threads: threads.max(1),
            vector_bytes: 32,
            levels: vec![
                level(32e3, 0.0, shared),
                level(1e6, 0.015, shared),
                level(8e6, 0.04, shared),
                level(f64::INFINITY, 0.1, shared.min(2.5)),
            ],
            prices: Prices {
                simple: 0.17,
                latency: 1.3,
                load: 0.17,
                store: 0.33,
                gather: 0.4,
                strided: [0.4, 1.6],
                divide: [1.4, 2.8],
                transcendental: [6.0, 9.0],
                branch: 0.6,
                enter: 1.5,
                page: 6.0,
                region: 2000.0,
                transfer: 0.1,
                atomic: 7.0,
                allocate: 100.0,
                call: 1000.0,
                library: 0.7,
            },
            sizes: BTreeMap::new(),
            fixed: BTreeSet::new(),
            unknown: 1000.0,
            strict_floats: false,
        }
    }
}
