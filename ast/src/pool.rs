//! Thread pools for independent queries.
//!
//! Taffeta has pools of its own, apart from rayon's global one: a program or test may compile on its own rayon workers,
//! which block until the threads of these pools answer. With shared workers, all of them could block on each other.

use rayon::{ThreadPool, ThreadPoolBuilder};
use std::sync::{Arc, Mutex, PoisonError};

/// Thread pool of a process.
struct Pool {
    process: u32,
    /// `None`: no pool could be created.
    threads: Option<Arc<ThreadPool>>,
}

/// Runs `work`, whose parallel iterators use the pool of queries. A caller that is itself a rayon worker runs it in its
/// own pool: a worker that waits for another pool would steal further jobs of its own pool, on top of its stack.
pub fn run<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    static POOL: Mutex<Option<Pool>> = Mutex::new(None);
    on(&POOL, "taffeta", work)
}

/// Runs `work`, whose parallel items wait for threads of their own (elaboration has one, for its stack), which may
/// issue queries through [`run`]. The two pools are separate, so that workers answering queries never wait for those
/// that issue them.
pub fn run_waiting<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    static POOL: Mutex<Option<Pool>> = Mutex::new(None);
    on(&POOL, "taffeta-item", work)
}

fn on<R: Send>(pool: &Mutex<Option<Pool>>, name: &'static str, work: impl FnOnce() -> R + Send) -> R {
    if rayon::current_thread_index().is_some() {
        return work();
    }
    match threads(pool, name) {
        Some(threads) => threads.install(work),
        // Without a pool, rayon's global one serves.
        None => work(),
    }
}

fn threads(pool: &Mutex<Option<Pool>>, name: &'static str) -> Option<Arc<ThreadPool>> {
    let process = std::process::id();
    let mut pool = pool.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(pool) = pool.as_ref().filter(|p| p.process == process) {
        return pool.threads.clone();
    }
    let threads = ThreadPoolBuilder::new().thread_name(move |k| format!("{name}-{k}")).build().ok().map(Arc::new);
    // A forked child inherits the pool without its threads, which dropping the pool would signal.
    std::mem::forget(pool.replace(Pool { process, threads: threads.clone() }));
    threads
}
