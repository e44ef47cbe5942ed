//! Threads for questions that are independent of each other.
//!
//! They are Taffeta's own: a program that compiles from its rayon workers, or a test that does, waits in those for
//! threads that answer here, and if these were the same workers, all would wait for each other.

use std::sync::OnceLock;

/// Runs parallel iterators. On a worker it stays where it is: while it waited for other workers, it would take up more
/// of its own pool's work, on top of its stack.
pub fn run<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    static POOL: OnceLock<Option<rayon::ThreadPool>> = OnceLock::new();
    on(&POOL, "taffeta", work)
}

/// Runs parallel iterators whose items wait for threads of their own (elaboration has one, for its stack), which may
/// ask questions by [`run`]. These are other workers than those: the ones that answer never wait for the ones that ask.
pub fn run_waiting<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    static POOL: OnceLock<Option<rayon::ThreadPool>> = OnceLock::new();
    on(&POOL, "taffeta-item", work)
}

fn on<R: Send>(
    pool: &'static OnceLock<Option<rayon::ThreadPool>>,
    name: &'static str,
    work: impl FnOnce() -> R + Send,
) -> R {
    if rayon::current_thread_index().is_some() {
        return work();
    }
    let threads = || rayon::ThreadPoolBuilder::new().thread_name(move |k| format!("{name}-{k}")).build().ok();
    match pool.get_or_init(threads) {
        Some(pool) => pool.install(work),
        // No threads can be had: what rayon has will do.
        None => work(),
    }
}
