//! Automatic schedules: the machine that rules choose for, and when they are asked.

mod calibrate;
mod machine;

use crate::program::{Backend, Options};
use crate::timing::Timings;
use taffeta_ast::{Diagnostic, Diagnostics, Func};
use taffeta_schedule::Schedule;
use taffeta_schedule::auto::{Aim, Target};

/// The schedule that rules choose.
pub(crate) const AUTO: &str = "auto";
/// The variable of the environment that says which machine rules choose for.
const MACHINE: &str = "TAFFETA_MACHINE";
/// The most threads that are reckoned with.
const MOST_THREADS: usize = crate::MAX_THREADS as usize;

/// Whether rules choose how the program runs. The interpreter runs it as it is written: it has nothing to gain.
pub(crate) fn is_automatic(options: &Options) -> bool {
    options.schedule.as_deref() == Some(AUTO) && options.backend != Backend::Interp
}

/// The machine that rules choose for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Machine {
    /// One like those that most people have.
    Portable,
    /// This one.
    This,
}

fn machine(options: &Options) -> Result<Machine, Diagnostic> {
    match std::env::var(MACHINE).unwrap_or_default().trim() {
        "portable" => Ok(Machine::Portable),
        "" | "this" if options.portable => Ok(Machine::Portable),
        "" | "this" => Ok(Machine::This),
        other => {
            let what = format!("the environment variable {MACHINE} is `{other}`");
            Err(Diagnostic::new("schedule::machine", what).help("`this` and `portable` are what it can be"))
        }
    }
}

/// Threads of a parallel loop: as OpenMP is told, or as many as there are processors.
fn threads() -> usize {
    let told = std::env::var("OMP_NUM_THREADS").ok();
    let told = told.as_deref().and_then(|t| t.split(',').next()?.trim().parse().ok()).filter(|n: &usize| *n > 0);
    told.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from)).min(MOST_THREADS)
}

/// The machine and the sizes that rules choose for, as part of a key. Nothing is measured for it.
pub(crate) fn key(options: &Options) -> Result<String, Diagnostic> {
    let threads = threads();
    let machine = match machine(options)? {
        Machine::Portable => format!("portable {threads}"),
        Machine::This => calibrate::identity(threads),
    };
    Ok(format!("{machine} {:?} {:?} {}", options.sizes, options.rounded_hints(), options.strict_floats))
}

/// The machine and the sizes that rules choose for: this machine, which is measured when a rule first asks, and never
/// before.
pub(crate) fn aim(options: &Options) -> Result<Aim, Diagnostic> {
    let machine = machine(options)?;
    let (fixed, strict_floats) = (options.sizes.keys().cloned().collect(), options.strict_floats);
    let sizes = options.rounded_hints().into_iter().chain(options.sizes.clone()).collect();
    Ok(Aim::at(move || {
        let target = match machine {
            Machine::Portable => Target::portable(threads()),
            Machine::This => calibrate::target(threads()),
        };
        Target { sizes, fixed, strict_floats, ..target }
    }))
}

/// Whether compiling with these options must measure this machine first, which takes a second.
pub fn must_measure(options: &Options) -> bool {
    is_automatic(options) && is_unmeasured(options)
}

/// Returns whether an estimate for this machine would measure it first, which takes a second.
pub fn is_unmeasured(options: &Options) -> bool {
    machine(options) == Ok(Machine::This) && !calibrate::is_known(threads())
}

/// Measures this machine, if nobody has. What automatic schedules choose by is kept in the cache of compiled programs,
/// so that they choose the same the next time; where it cannot be measured, they choose for a machine like others.
pub fn measure() {
    calibrate::target(threads());
}

/// A program under the schedule that rules choose. Where what they chose cannot be lowered, since checks or searches
/// are left in a loop of vectors, none is made of vectors; one that goes wrong in any other way runs as it is written.
pub(crate) fn schedule(func: Func, options: &Options) -> Result<Schedule, Diagnostics> {
    let plain = Schedule::new(func).lowered_by(crate::scheduler::lowers).aimed_at(aim(options)?);
    let without_vectors = || taffeta_schedule::auto::rules().map(|r| r.method).filter(|r| *r != "auto_vectorize");
    let mut wrong = None;
    for rules in [vec![AUTO], without_vectors().collect()] {
        let mut schedule = plain.clone();
        for rule in rules {
            // A refused rule leaves the program as it is.
            if let Err(r) = schedule.call(rule, &[]) {
                tracing::debug!("`{rule}` is refused: {}", r.message);
            }
        }
        match unfit(&schedule, options) {
            None => return Ok(schedule),
            Some(why) => {
                tracing::debug!("`{}` cannot run as rules schedule it: {why}", plain.func().name);
                wrong = Some(why);
            }
        }
    }
    // What is wrong with the program itself is said of that.
    if let Some(why) = wrong.filter(|_| lowered(&plain, options).is_ok()) {
        tracing::warn!("`{}` runs as it is written: {why}", plain.func().name);
    }
    Ok(plain)
}

/// What stands against running what rules chose, if anything.
fn unfit(schedule: &Schedule, options: &Options) -> Option<Diagnostics> {
    if schedule.trace().steps.is_empty() {
        return None;
    }
    let valid = taffeta_ast::validate::stage(schedule.func(), "an automatic schedule").map_err(Diagnostics::from);
    valid.and_then(|()| lowered(schedule, options)).err()
}

fn lowered(schedule: &Schedule, options: &Options) -> Result<(), Diagnostics> {
    crate::pipeline::lowered(schedule.func(), options, &mut Timings::default()).map(drop)
}
