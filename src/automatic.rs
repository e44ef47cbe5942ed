//! Automatic schedules: the machine that rules choose for, and when they are asked.

use crate::program::Options;
use std::sync::Arc;
use taffeta_ast::{Diagnostics, Func, Span};
use taffeta_schedule::Schedule;
use taffeta_schedule::auto::Target;

/// Whether a schedule is the automatic one.
pub(crate) fn is_automatic(schedule: Option<&str>) -> bool {
    schedule == Some("auto")
}

/// This machine, and the sizes that are known. With `--portable` one like those that most people have.
pub(crate) fn target(options: &Options) -> Target {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut target = Target::portable(threads);
    if !options.portable {
        target.vector_bytes = taffeta_codegen::lower::vector_bytes(false);
    }
    target.sizes = options.sizes.clone();
    target
}

/// A program under the schedule that rules choose.
pub(crate) fn schedule(func: Func, options: &Options) -> Result<Schedule, Diagnostics> {
    let mut schedule = Schedule::new(func).aimed_at(Arc::new(target(options)));
    schedule.auto().map_err(|r| r.diagnostic("auto", Span::NONE))?;
    Ok(schedule)
}
