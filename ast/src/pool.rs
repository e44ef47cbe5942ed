//! Threads for questions that are independent of each other.
//!
//! They are Taffeta's own: a program that compiles from its rayon workers, or a test that does, waits in those for
//! threads that answer here, and if these were the same workers, all would wait for each other.

use std::sync::OnceLock;

/// Runs parallel iterators. On a worker it stays where it is: while it waited for other workers, it would take up more
/// of its own pool's work, on top of its stack.
pub fn run<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    if rayon::current_thread_index().is_some() {
        return work();
    }
    static POOL: OnceLock<Option<rayon::ThreadPool>> = OnceLock::new();
    let name = |k| format!("taffeta-{k}");
    let pool = POOL.get_or_init(|| rayon::ThreadPoolBuilder::new().thread_name(name).build().ok());
    match pool {
        Some(pool) => pool.install(work),
        // No threads can be had: what rayon has will do.
        None => work(),
    }
}
