//! Machine that a program is scheduled for, and the sizes that it is expected to run with: the parameters of the cost
//! model.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, LazyLock};

/// Machine as the cost model sees it, and expected program sizes. Times are in nanoseconds on one thread; a vector
/// instruction takes as long as the scalar one unless another price is given.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// Number of threads of a parallel loop.
    pub threads: usize,
    /// Vector width in bytes.
    pub vector_bytes: usize,
    /// Cache levels that a thread reads through, smallest first; then memory, of infinite capacity.
    pub levels: Vec<Level>,
    /// Costs of instructions and events.
    pub prices: Prices,
    /// Known or expected sizes of the entry by name, and numbers of stored elements by `tensor.stored`.
    pub sizes: BTreeMap<String, i64>,
    /// Names of the sizes that are the same in every run and compiled in.
    pub fixed: BTreeSet<String>,
    /// Value assumed for an unknown size.
    pub unknown: f64,
    /// Whether rules keep sums and products of floats in program order.
    pub strict_floats: bool,
}

/// Cache level, or memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level {
    /// Capacity; for a level shared by threads, the share that one of them can count on.
    pub bytes: f64,
    /// Nanoseconds per byte transferred from this level.
    pub per_byte: f64,
    /// Maximum bandwidth of all threads together, as a multiple of one thread's.
    pub scales: f64,
}

/// Costs of instructions and events, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prices {
    /// Addition, multiplication or comparison: an instruction of which a core issues several per cycle.
    pub simple: f64,
    /// Latency of one addition in a chain of dependent additions.
    pub latency: f64,
    /// Load that hits the first cache level.
    pub load: f64,
    /// Store.
    pub store: f64,
    /// Element of a gather or scatter by a vector instruction.
    pub gather: f64,
    /// Element of a vector of strided elements: of floats, and of integers, whose vectors some compilers assemble in
    /// memory.
    pub strided: [f64; 2],
    /// Float division or square root; the second price is for a vector.
    pub divide: [f64; 2],
    /// `exp` and similar functions; the second price is for a vector.
    pub transcendental: [f64; 2],
    /// Branch.
    pub branch: f64,
    /// Entry and exit of a loop.
    pub enter: f64,
    /// Allocation and release of an array.
    pub allocate: f64,
    /// TLB miss: address lookup of a page.
    pub page: f64,
    /// Fork and join of a parallel loop's threads.
    pub region: f64,
    /// Byte last written by another core.
    pub transfer: f64,
    /// Atomic update.
    pub atomic: f64,
    /// Library call of a matrix product.
    pub call: f64,
    /// Library throughput as a fraction of peak multiply-add throughput.
    pub library: f64,
}

/// Lazily made [`Target`]: a program to which no rule is applied needs no description of the machine.
#[derive(Clone)]
pub struct LazyTarget(Arc<LazyLock<Arc<Target>, Make>>);

type Make = Box<dyn FnOnce() -> Arc<Target> + Send>;

impl LazyTarget {
    /// Wraps `make`, which is called when the target is first requested.
    pub fn at(make: impl FnOnce() -> Target + Send + 'static) -> LazyTarget {
        LazyTarget(Arc::new(LazyLock::new(Box::new(move || Arc::new(make())))))
    }

    /// Returns the target, made on the first call.
    pub fn target(&self) -> Arc<Target> {
        LazyLock::force(&self.0).clone()
    }
}

impl From<Arc<Target>> for LazyTarget {
    fn from(target: Arc<Target>) -> LazyTarget {
        LazyTarget(Arc::new(LazyLock::new(Box::new(move || target))))
    }
}

impl fmt::Debug for LazyTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LazyTarget")
    }
}

/// Cache line size in bytes.
pub const LINE: f64 = 64.0;
/// Page size in bytes.
pub(super) const PAGE: f64 = 4096.0;
/// TLB capacity of a core, in pages.
pub(super) const PAGES: f64 = 1024.0;

impl Target {
    /// Returns the number of vector registers that loops can keep values in; the others hold loaded operands.
    pub(super) fn registers(&self) -> f64 {
        if self.vector_bytes >= 64 { 24.0 } else { 12.0 }
    }

    /// Returns a typical machine with this many threads; schedules for it are the same everywhere.
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
