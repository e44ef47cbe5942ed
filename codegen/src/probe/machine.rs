//! Costs of instructions, memory and threads on this machine, measured by a small program in a process of its own. The
//! cost model of automatic schedules is calibrated with them.

use super::{failed, finished};
use crate::c::{TAFFETA_H, TAFFETA_RUNTIME_H};
use crate::temporary::Folder;
use crate::toolchain::{CompileOptions, Toolchain};
use serde::{Deserialize, Serialize};
use std::path::Path;
use taffeta_ast::Diagnostic;

/// Source of the measuring program.
const PROGRAM: &str = include_str!("machine.c");

/// Parameters of a measurement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Areas {
    /// Size of a vector in bytes.
    pub vector_bytes: usize,
    /// Number of threads of a parallel loop.
    pub threads: usize,
    /// Working sets in bytes, for each cache level beyond the first, and then for memory: of one thread alone, and of
    /// each thread when all run.
    pub bytes: Vec<[usize; 2]>,
}

/// Measured costs, in nanoseconds unless stated otherwise.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Independent multiply-add of vectors: of 16 bytes, and of the longest vectors.
    pub multiply_add: [f64; 2],
    /// Latency of an addition in a dependence chain.
    pub latency: f64,
    /// Load of a vector from the first cache level.
    pub load: f64,
    /// Store of a vector to the first cache level.
    pub store: f64,
    /// Gather, per element.
    pub gather: f64,
    /// Strided load of a vector, per element: of a float, and of an integer.
    pub strided: [f64; 2],
    /// Division: scalar, and of a vector.
    pub divide: [f64; 2],
    /// `exp`: scalar, and of a vector.
    pub transcendental: [f64; 2],
    /// Fork and join of a parallel loop, right after another parallel loop.
    pub region: f64,
    /// Load of a byte that another core has stored.
    pub transfer: f64,
    /// Atomic addition, where other threads add to the same array.
    pub atomic: f64,
    /// For each working set of [`Areas::bytes`]: cost per byte on one thread, and the speed-up of all threads together.
    pub levels: Vec<[f64; 2]>,
    /// Fraction of the cores that the program had while it ran on all threads; other processes took the rest.
    pub share: f64,
}

/// Returns a key that identifies the measuring program, for cache keys.
pub fn program_key() -> String {
    crate::cache::key(&[PROGRAM, TAFFETA_RUNTIME_H])
}

/// Compiles and runs the measuring program, which takes half a second.
///
/// # Errors
///
/// The compiler does not work, or its output does not run, or prints anything but positive finite numbers.
pub fn measure(toolchain: &Toolchain, options: &CompileOptions, areas: &Areas) -> Result<Measured, Diagnostic> {
    let dir = Folder::new("taffeta-machine-").map_err(failed)?;
    let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).map_err(failed);
    write("machine.c", PROGRAM)?;
    write("machine.h", &header(areas))?;
    write("taffeta.h", TAFFETA_H)?;
    write("taffeta_runtime.h", TAFFETA_RUNTIME_H)?;
    let binary = toolchain.executable(dir.path(), "machine", &[], options)?;
    run(&binary, areas)
}

fn header(areas: &Areas) -> String {
    let bytes: Vec<String> = areas.bytes.iter().map(|[alone, each]| format!("{{{alone}, {each}}}")).collect();
    let (vector, threads) = (areas.vector_bytes, areas.threads);
    format!("#define VECTOR {vector}\n#define THREADS {threads}\n#define AREAS {}\n", bytes.join(", "))
}

fn run(binary: &Path, areas: &Areas) -> Result<Measured, Diagnostic> {
    let (status, output) = finished(binary).map_err(failed)?;
    let wrong = |what: String| Diagnostic::new("toolchain::probe", format!("the measuring program {what}"));
    if !status.is_some_and(|s| s.success()) {
        return Err(wrong(status.map_or("does not terminate".to_string(), |s| format!("ends with {s}"))));
    }
    let text = String::from_utf8_lossy(&output);
    read(&text, areas.bytes.len()).ok_or_else(|| wrong(format!("prints invalid results: {text}")))
}

/// Parses the program's output; `None` if a number is missing, or is not a valid time.
pub fn read(text: &str, levels: usize) -> Option<Measured> {
    let line = |name: &str| text.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(' '));
    let one = |name: &str| numbers(line(name)?).map(|[n]| n);
    let two = |name: &str| numbers(line(name)?);
    let all = text.lines().filter_map(|l| l.strip_prefix("level ")).map(numbers).collect::<Option<Vec<_>>>()?;
    let measured = Measured {
        multiply_add: two("multiply_add")?,
        latency: one("latency")?,
        load: one("load")?,
        store: one("store")?,
        gather: one("gather")?,
        strided: two("strided")?,
        divide: two("divide")?,
        transcendental: two("transcendental")?,
        region: one("region")?,
        transfer: one("transfer")?,
        atomic: one("atomic")?,
        levels: all,
        share: one("share")?,
    };
    (measured.levels.len() == levels).then_some(measured)
}

fn numbers<const N: usize>(text: &str) -> Option<[f64; N]> {
    let possible = |w: &str| w.parse().ok().filter(|n: &f64| *n > 0.0 && n.is_finite());
    let all: Vec<f64> = text.split_whitespace().map(possible).collect::<Option<_>>()?;
    all.try_into().ok()
}
