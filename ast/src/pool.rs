//! Threads for questions that are independent of each other.
//!
//! They are Taffeta's own: a program that compiles from its rayon workers, or a test that does, waits in those for
//! threads that answer here, and if these were the same workers, all would wait for each other.

use rayon::{ThreadPool, ThreadPoolBuilder};
use std::sync::{Arc, Mutex, PoisonError};

/// The threads of a process.
struct Pool {
    process: u32,
    /// None can be had.
    threads: Option<Arc<ThreadPool>>,
}

/// Runs parallel iterators. On a worker it stays where it is: while it waited for other workers, it would take up more
/// of its own pool's work, on top of its stack.
pub fn run<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    static POOL: Mutex<Option<Pool>> = Mutex::new(None);
    on(&POOL, "taffeta", work)
}

/// Runs parallel iterators whose items wait for threads of their own (elaboration has one, for its stack), which may
/// ask questions by [`run`]. These are other workers than those: the ones that answer never wait for the ones that ask.
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
        // What rayon has will do.
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
    // A child that was forked has its parent's pool without the threads, which dropping it would talk to.
    std::mem::forget(pool.replace(Pool { process, threads: threads.clone() }));
    threads
}
