//! What instructions, memory and threads take on this machine, measured by a small program in a process of its own.

use super::{failed, finished};
use crate::c::{TAFFETA_H, TAFFETA_RUNTIME_H};
use crate::temporary::Folder;
use crate::toolchain::{CompileOptions, Toolchain};
use serde::{Deserialize, Serialize};
use std::path::Path;
use taffeta_ast::Diagnostic;

/// The program that measures.
const PROGRAM: &str = include_str!("machine.c");

/// What is to be measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Areas {
    /// Bytes of a vector.
    pub vector_bytes: usize,
    /// Threads of a parallel loop.
    pub threads: usize,
    /// For each level of the cache behind the first one, and then for memory: how many bytes one thread goes through
    /// alone, and each of all threads.
    pub bytes: Vec<[usize; 2]>,
}

/// What was measured, in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// A multiply-add of vectors that waits for nothing: of 16 bytes, and of the longest vectors.
    pub multiply_add: [f64; 2],
    /// An addition in a chain of them.
    pub latency: f64,
    /// A vector of the first level that is loaded.
    pub load: f64,
    /// A vector of the first level that is stored.
    pub store: f64,
    /// An element at an address of its own, of a vector.
    pub gather: f64,
    /// An element of a vector of which all lie equally far apart: a float, and an integer.
    pub strided: [f64; 2],
    /// A division, of a single number and of a vector.
    pub divide: [f64; 2],
    /// `exp`, of a single number and of a vector.
    pub transcendental: [f64; 2],
    /// To start the threads of a parallel loop and to wait for the last one, right after another parallel loop.
    pub region: f64,
    /// A byte that is loaded after another core has stored it.
    pub transfer: f64,
    /// An atomic addition, where other threads add to the same array.
    pub atomic: f64,
    /// Of each area: a byte, on one thread, and by how much all threads are faster together.
    pub levels: Vec<[f64; 2]>,
    /// What part of the cores the program had while it ran on all threads; the rest was taken by others.
    pub share: f64,
}

/// Tells programs that measure apart, for keys of a cache.
pub fn program_key() -> String {
    crate::cache::key(&[PROGRAM, TAFFETA_RUNTIME_H])
}

/// Compiles the program that measures, and runs it: half a second.
///
/// # Errors
///
/// The compiler does not work, or what it made does not run, or says something else than numbers that can be times.
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
    let wrong = |what: String| Diagnostic::new("toolchain::probe", format!("the program that measures {what}"));
    if !status.is_some_and(|s| s.success()) {
        return Err(wrong(status.map_or("does not end".to_string(), |s| format!("ends with {s}"))));
    }
    let text = String::from_utf8_lossy(&output);
    read(&text, areas.bytes.len()).ok_or_else(|| wrong(format!("says what cannot be: {text}")))
}

/// What the program says; `None` if a number is missing, or is not a time.
fn read(text: &str, levels: usize) -> Option<Measured> {
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

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "multiply_add 0.17 0.18\nlatency 1.3\nload 0.2\nstore 0.3\ngather 0.4\nstrided 0.5 1.2\n\
                        divide 1.4 2.8\n\
                        transcendental 6 9\nregion 2000\ntransfer 0.1\natomic 7\n\
                        level 0.015 2\nlevel 0.1 1.5\nshare 0.9\n";

    #[test]
    fn what_the_program_says_is_read() {
        let all = read(SAID, 2).expect("it is whole");
        assert_eq!((all.multiply_add, all.region, all.levels), ([0.17, 0.18], 2000.0, vec![[0.015, 2.0], [0.1, 1.5]]));
        for (what, instead) in [
            ("latency 1.3\n", ""),
            ("latency 1.3", "latency nan"),
            ("latency 1.3", "latency -1"),
            ("latency 1.3", "latency 0"),
            ("latency 1.3", "latency inf"),
            ("latency 1.3", "latency 1.3 2"),
            ("divide 1.4 2.8", "divide 1.4"),
            ("level 0.1 1.5\n", ""),
        ] {
            assert_eq!(read(&SAID.replace(what, instead), 2), None, "{instead}");
        }
    }

    /// That it compiles, runs and says all that is read; never how fast it is.
    #[test]
    fn this_machine_can_be_measured() {
        let toolchain = Toolchain::find().expect("there is a compiler");
        let vector_bytes = crate::lower::vector_bytes(false);
        for threads in [1, 2] {
            let areas = Areas { vector_bytes, threads, bytes: vec![[1 << 17; 2], [1 << 20; 2], [1 << 23, 1 << 22]] };
            let found = measure(&toolchain, &CompileOptions::default(), &areas).expect("it runs");
            assert_eq!(found.levels.len(), 3);
        }
    }
}
