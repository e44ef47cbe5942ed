//! Calibration: costs of instructions, memory and threads on this machine, measured once and stored in the cache of
//! compiled programs, so that choices are reproducible. A machine that cannot be measured is modelled as a typical one.

use super::machine::{self, Cache};
use crate::store::Store;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Instant;
use taffeta_ast::Diagnostic;
use taffeta_codegen::cache;
use taffeta_codegen::lower::vector_bytes;
use taffeta_codegen::probe::{self, Areas, Measured};
use taffeta_codegen::toolchain::{CompileOptions, Toolchain};
use taffeta_schedule::auto::{Level, Prices, Target};

/// File name within the cache entry.
const FILE: &str = "machine.json";
/// Environment variables that control waiting and placement of threads.
const THREADS: [&str; 5] = ["OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME", "OMP_PROC_BIND", "OMP_PLACES"];
/// Minimum share of the cores for a valid measurement of thread costs; a busy machine has less.
const UNDISTURBED: f64 = 0.8;
/// Maximum time to start undisturbed threads, in nanoseconds.
const LONGEST_REGION: f64 = 1e5;
/// Maximum time to transfer a byte between two cores, in nanoseconds.
const MAX_TRANSFER: f64 = 1.0;
/// Minimum speed-up of memory reads by two or more threads over one.
const MIN_SCALE: f64 = 1.3;
/// Minimum and maximum bytes of the area measured for memory, which is at most 1/`PART_OF_FREE` of the free memory.
const MEMORY: [usize; 2] = [64 << 20, 512 << 20];
const PART_OF_FREE: usize = 8;

/// Returns the cache key of this machine with `threads` threads and its C compiler.
pub(super) fn identity(threads: usize) -> String {
    static COMPILER: OnceLock<String> = OnceLock::new();
    let compiler = COMPILER.get_or_init(|| Toolchain::find().map_or(String::new(), |t| t.identity().to_string()));
    let waiting = THREADS.map(|name| std::env::var(name).unwrap_or_default());
    let flags = Toolchain::flags(&CompileOptions::default()).join(" ");
    let (program, version) = (probe::program_key(), env!("CARGO_PKG_VERSION"));
    cache::key(&["machine", version, &program, compiler, &flags, &threads.to_string(), &waiting.join("|")])
}

/// Measurements that this process has loaded or made, by machine identity; `None` after a failed measurement.
static KNOWN: Mutex<BTreeMap<String, Option<Measured>>> = Mutex::new(BTreeMap::new());

/// Returns whether this process or an earlier one has measured this machine.
pub(super) fn is_known(threads: usize) -> bool {
    let key = identity(threads);
    let known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    known.contains_key(&key) || Store::open().is_ok_and(|store| load_measurement(&store.into_cache(), &key).is_some())
}

/// Returns this machine, with `threads` threads, as a target.
pub(super) fn target(threads: usize) -> Target {
    let caches = caches();
    let portable = Target { vector_bytes: vector_bytes(false), ..Target::portable(threads) };
    let key = identity(threads);
    // Concurrent callers wait for the measurement.
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let measured = known.entry(key.clone()).or_insert_with(|| known_or_measured(&key, threads, &caches));
    match measured {
        Some(measured) => target_of(measured, &parts(&caches, threads), portable),
        None => portable,
    }
}

fn known_or_measured(key: &str, threads: usize, caches: &[Cache]) -> Option<Measured> {
    // Without a usable cache, every process measures.
    let cache = Store::open().map(Store::into_cache).ok();
    if let Some(measured) = cache.as_ref().and_then(|c| load_measurement(c, key)) {
        return Some(measured);
    }
    let start = Instant::now();
    let measured = Toolchain::find().and_then(|toolchain| {
        let areas = areas(caches, threads, free_memory());
        probe::measure(&toolchain, &CompileOptions::default(), &areas)
    });
    match measured {
        Ok(measured) => {
            tracing::debug!(ms = start.elapsed().as_millis() as u64, "measured this machine");
            if let Some(Err(d)) = cache.map(|c| store_measurement(&c, key, &measured)) {
                tracing::warn!("cannot save the measurements of this machine: {d}");
            }
            Some(measured)
        }
        Err(d) => {
            tracing::warn!("cannot measure this machine, so rules use a portable model: {d}");
            None
        }
    }
}

fn load_measurement(cache: &cache::Cache, key: &str) -> Option<Measured> {
    serde_json::from_slice(&std::fs::read(cache.get(key)?.join(FILE)).ok()?).ok()
}

fn store_measurement(cache: &cache::Cache, key: &str, measured: &Measured) -> Result<(), Diagnostic> {
    let failed = |e: String| Diagnostic::new("cache::write", e);
    let made = cache.get_or_make(key, |dir| {
        let text = serde_json::to_vec(measured).map_err(|e| failed(e.to_string()))?;
        std::fs::write(dir.join(FILE), text).map_err(|e| failed(e.to_string()))
    });
    made.map(drop)
}

/// Returns the caches of this machine, or typical ones if the system lists none.
fn caches() -> Vec<Cache> {
    let usual = || [32 << 10, 1 << 20, 8 << 20].into_iter().zip(1..).map(|(bytes, k)| Cache::own(k, bytes)).collect();
    machine::caches(Path::new(machine::CACHES)).unwrap_or_else(usual)
}

/// Returns the bytes per thread of each cache level, skipping levels that give a thread no more than the level before.
fn parts(caches: &[Cache], threads: usize) -> Vec<usize> {
    let mut parts: Vec<usize> = Vec::new();
    for part in caches.iter().map(|c| c.of_a_thread(threads)) {
        if parts.last().is_none_or(|last| part > *last) {
            parts.push(part);
        }
    }
    parts
}

/// Returns the areas to measure: midway between the capacities of successive levels, and for memory, more than the
/// largest cache holds.
fn areas(caches: &[Cache], threads: usize, free: usize) -> Areas {
    let parts = parts(caches, threads);
    let mut bytes: Vec<[usize; 2]> = parts.windows(2).map(|w| [w[0].midpoint(w[1]); 2]).collect();
    let largest = caches.iter().map(|c| c.bytes).max().unwrap_or(0);
    let all = (2 * largest).clamp(MEMORY[0], MEMORY[1]).min(free / PART_OF_FREE).max(1 << 20);
    bytes.push([all, all / threads]);
    Areas { vector_bytes: vector_bytes(false), threads, bytes }
}

/// Returns the bytes available to this process: the minimum of the system's free memory and the container's limit.
fn free_memory() -> usize {
    let read = |file: &str| std::fs::read_to_string(file).unwrap_or_default();
    let number = |text: &str| text.split_whitespace().next().and_then(|w| w.parse::<usize>().ok());
    let system = read("/proc/meminfo").lines().find_map(|l| number(l.strip_prefix("MemAvailable:")?));
    let container = number(&read("/sys/fs/cgroup/memory.max"));
    system.map_or(usize::MAX, |kb| kb.saturating_mul(1 << 10)).min(container.unwrap_or(usize::MAX))
}

/// Rounds to two significant digits; more are not reproducible.
fn rounded(x: f64) -> f64 {
    format!("{x:.1e}").parse().unwrap_or(x)
}

/// Builds a target from a measurement; costs that were not measured are those of `like`.
fn target_of(measured: &Measured, parts: &[usize], like: Target) -> Target {
    // A CPU that executes long vectors in halves is modelled by its short vectors.
    let [short, long] = measured.multiply_add;
    let halvings = (long / short).log2().round().clamp(0.0, 2.0) as u32;
    let vector_bytes = (like.vector_bytes >> halvings).max(16);
    let shorter = (like.vector_bytes / vector_bytes) as f64;
    let alone = measured.share < UNDISTURBED;
    let threads = like.threads as f64;

    let first = parts.first().map_or(32e3, |b| *b as f64);
    let mut levels = vec![Level { bytes: first, per_byte: 0.0, scales: threads }];
    let behind = parts.iter().skip(1).map(|b| *b as f64).chain([f64::INFINITY]);
    for (bytes, [per_byte, scales]) in behind.zip(&measured.levels) {
        let faster = levels.last().map_or(0.0, |l| l.per_byte);
        let usual = if bytes.is_finite() { threads } else { like.levels.last().map_or(threads, |l| l.scales) };
        let scales = if alone { usual } else { scales.clamp(MIN_SCALE.min(threads), threads) };
        levels.push(Level { bytes, per_byte: rounded(*per_byte).max(faster), scales: rounded(scales) });
    }

    let vector = |[one, all]: [f64; 2]| [rounded(one), rounded(all / shorter)];
    let prices = Prices {
        simple: rounded(long / shorter),
        latency: rounded(measured.latency),
        load: rounded(measured.load / shorter),
        store: rounded(measured.store / shorter),
        gather: rounded(measured.gather),
        strided: measured.strided.map(rounded),
        divide: vector(measured.divide),
        transcendental: vector(measured.transcendental),
        // Threads that sleep between regions have a low share of the cores too. Longer times than `LONGEST_REGION`
        // contain a time slice of another program and are not the cost of a region.
        region: match alone && measured.region > LONGEST_REGION {
            true => like.prices.region,
            false => rounded(measured.region.clamp(100.0, LONGEST_REGION)),
        },
        // The system places threads anew in each run. Two threads that share a cache are luck, so the measurement is
        // averaged with the typical cost.
        transfer: match alone {
            true => like.prices.transfer,
            false => {
                let other = measured.transfer.max(like.prices.transfer);
                rounded(((measured.transfer + other) / 2.0).min(MAX_TRANSFER))
            }
        },
        atomic: if alone { like.prices.atomic } else { rounded(measured.atomic.clamp(1.0, 100.0)) },
        ..like.prices
    };
    Target { vector_bytes, levels, prices, ..like }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured() -> Measured {
        Measured {
            multiply_add: [0.1512, 0.1534],
            latency: 0.9259,
            load: 0.2,
            store: 0.37,
            gather: 0.42,
            strided: [0.407, 1.16],
            divide: [1.389, 1.394],
            transcendental: [4.0, 4.4],
            region: 648.7,
            transfer: 0.194,
            atomic: 9.28,
            levels: vec![[0.0141, 1.9], [0.012, 1.96], [0.0483, 1.12]],
            share: 0.97,
        }
    }

    const PARTS: [usize; 3] = [32 << 10, 512 << 10, 16 << 20];

    fn like() -> Target {
        Target { vector_bytes: 64, ..Target::portable(2) }
    }

    #[test]
    fn measurements_become_prices() {
        let target = target_of(&measured(), &PARTS, like());
        let p = target.prices;
        assert_eq!((p.simple, p.latency, p.region, p.atomic), (0.15, 0.93, 650.0, 9.3));
        assert_eq!((p.gather, p.strided), (0.42, [0.41, 1.2]));
        assert_eq!(p.transfer, 0.19);
        // A transfer between cores that share a cache.
        let lucky = target_of(&Measured { transfer: 0.03, ..measured() }, &PARTS, like());
        assert_eq!(lucky.prices.transfer, 0.065);
        assert_eq!((p.divide, p.transcendental, p.enter), ([1.4, 1.4], [4.0, 4.4], like().prices.enter));
        assert_eq!((target.vector_bytes, target.threads), (64, 2));
        let levels: Vec<[f64; 3]> = target.levels.iter().map(|l| [l.bytes, l.per_byte, l.scales]).collect();
        // A level is never faster than its predecessor.
        let l3 = [PARTS[2] as f64, 0.014, 2.0];
        let memory = [f64::INFINITY, 0.048, 1.3];
        assert_eq!(levels, [[PARTS[0] as f64, 0.0, 2.0], [PARTS[1] as f64, 0.014, 1.9], l3, memory]);
    }

    #[test]
    fn vectors_executed_in_halves_count_as_short() {
        let halves = Measured { multiply_add: [0.15, 0.302], ..measured() };
        let target = target_of(&halves, &PARTS, like());
        assert_eq!((target.vector_bytes, target.prices.simple, target.prices.load), (32, 0.15, 0.1));
        assert_eq!(target.prices.transcendental, [4.0, 2.2]);
    }

    #[test]
    fn thread_costs_of_busy_machines_are_not_used() {
        let busy = Measured { share: 0.5, region: 8e6, atomic: 400.0, levels: vec![[0.01, 0.2]; 3], ..measured() };
        let target = target_of(&busy, &PARTS, like());
        assert_eq!((target.prices.region, target.prices.atomic), (like().prices.region, like().prices.atomic));
        assert!(target.levels.iter().all(|l| l.scales == 2.0), "{:?}", target.levels);
        // Sleeping threads have a low share without being disturbed.
        let asleep = Measured { share: 0.76, region: 52e3, ..measured() };
        assert_eq!(target_of(&asleep, &PARTS, like()).prices.region, 52e3);
    }

    #[test]
    fn measured_areas_lie_between_cache_sizes() {
        let caches: Vec<Cache> = PARTS.into_iter().zip(1..).map(|(bytes, level)| Cache::own(level, bytes)).collect();
        let memory = |threads, free| areas(&caches, threads, free).bytes;
        assert_eq!(memory(1, 16 << 30), [[272 << 10; 2], [8448 << 10; 2], [64 << 20; 2]]);
        assert_eq!(memory(4, 16 << 30)[2], [64 << 20, 16 << 20]);
        // Little memory is free, and the area is a fraction of it.
        assert_eq!(memory(1, 256 << 20)[2], [32 << 20; 2]);
    }

    #[test]
    fn stored_measurements_are_found() {
        let folder = tempfile::tempdir().expect("a folder");
        let (cache, _) = cache::Cache::open_at(folder.path()).expect("it can be used");
        assert_eq!(load_measurement(&cache, "a"), None);
        store_measurement(&cache, "a", &measured()).expect("it is written");
        assert_eq!((load_measurement(&cache, "a"), load_measurement(&cache, "b")), (Some(measured()), None));
        // A broken entry is measured again and replaced.
        let file = cache.get("a").expect("it is there").join(FILE);
        std::fs::write(file, "{").expect("it can be written");
        assert_eq!(load_measurement(&cache, "a"), None);
        let other = Measured { region: 1.0, ..measured() };
        store_measurement(&cache, "a", &other).expect("it is written");
        assert_eq!(load_measurement(&cache, "a"), Some(other));
    }
}
