//! Target machine of automatic schedules: this machine, as calibrated, or a typical one, with its part of cache keys.

mod calibrate;
mod machine;

use crate::options::{AUTO, Backend, MAX_THREADS, Options};
use taffeta_ast::Diagnostic;
use taffeta_schedule::auto::{LazyTarget, Target};

/// Environment variable that selects the target machine.
const MACHINE: &str = "TAFFETA_MACHINE";
/// Maximum number of threads in the cost model.
const THREAD_LIMIT: usize = MAX_THREADS as usize;

/// Returns whether rules schedule the program. The interpreter gains nothing from a schedule, and runs the program as
/// written.
pub(crate) fn is_automatic(options: &Options) -> bool {
    options.schedule.as_deref() == Some(AUTO) && options.backend != Backend::Interp
}

/// Target machine of the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Machine {
    /// Typical machine.
    Portable,
    /// Machine at hand, as calibrated.
    This,
}

fn machine(options: &Options) -> Result<Machine, Diagnostic> {
    match std::env::var(MACHINE).unwrap_or_default().trim() {
        "portable" => Ok(Machine::Portable),
        "" | "this" if options.portable => Ok(Machine::Portable),
        "" | "this" => Ok(Machine::This),
        other => {
            let what = format!("the environment variable {MACHINE} is `{other}`");
            Err(Diagnostic::new("schedule::machine", what).help("set it to `this` or `portable`"))
        }
    }
}

/// Returns the number of threads of a parallel loop: that of `OMP_NUM_THREADS`, or else the number of processors, and
/// at most [`THREAD_LIMIT`].
fn threads() -> usize {
    let told = std::env::var("OMP_NUM_THREADS").ok();
    let told = told.as_deref().and_then(|t| t.split(',').next()?.trim().parse().ok()).filter(|n: &usize| *n > 0);
    told.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from)).min(THREAD_LIMIT)
}

/// Returns the part of a cache key that identifies the target of the rules (machine, sizes, hints, strictness of
/// floats), without measuring anything.
pub(crate) fn key(options: &Options) -> Result<String, Diagnostic> {
    let threads = threads();
    let machine = match machine(options)? {
        Machine::Portable => format!("portable {threads}"),
        Machine::This => calibrate::identity(threads),
    };
    Ok(format!("{machine} {:?} {:?} {}", options.sizes, options.rounded_hints(), options.strict_floats))
}

/// Returns the lazily evaluated target machine and sizes. The machine at hand is measured when a rule first reads the
/// target, and never before.
pub(crate) fn aim(options: &Options) -> Result<LazyTarget, Diagnostic> {
    let machine = machine(options)?;
    let (fixed, strict_floats) = (options.sizes.keys().cloned().collect(), options.strict_floats);
    let sizes = options.rounded_hints().into_iter().chain(options.sizes.clone()).collect();
    Ok(LazyTarget::at(move || {
        let target = match machine {
            Machine::Portable => Target::portable(threads()),
            Machine::This => calibrate::target(threads()),
        };
        Target { sizes, fixed, strict_floats, ..target }
    }))
}

/// Returns whether compiling with these options must measure this machine first, which takes a second.
pub fn must_measure(options: &Options) -> bool {
    is_automatic(options) && is_unmeasured(options)
}

/// Returns whether an estimate for this machine would measure it first, which takes a second.
pub fn is_unmeasured(options: &Options) -> bool {
    machine(options) == Ok(Machine::This) && !calibrate::is_known(threads())
}

/// Measures this machine unless a measurement exists. The result is stored in the cache of compiled programs, so that
/// automatic schedules are reproducible; if measuring fails, rules target a typical machine.
pub fn measure() {
    calibrate::target(threads());
}
