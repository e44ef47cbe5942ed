//! Progress of long work, on terminals only.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::time::Duration;

/// Files that are larger together take long enough to say so.
const LARGE: u64 = 64 << 20;

/// Counts calls.
pub fn calls(n: u32) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(u64::from(n)), target());
    if let Ok(style) = ProgressStyle::with_template("{elapsed} {bar:40} {pos}/{len} calls") {
        bar.set_style(style);
    }
    bar
}

/// Runs `f`, which reads the inputs, with a sign of life if their files are large.
pub fn while_reading<T>(inputs: &[(String, String)], f: impl FnOnce() -> T) -> T {
    let size = |text: &String| {
        std::fs::metadata(text.rsplit_once(':').map_or(text.as_str(), |(path, _)| path)).map_or(0, |m| m.len())
    };
    let total: u64 = inputs.iter().map(|(_, text)| size(text)).sum();
    if total < LARGE {
        return f();
    }
    let spinner = ProgressBar::with_draw_target(None, target());
    spinner.set_message("reading inputs");
    spinner.enable_steady_tick(Duration::from_millis(100));
    let result = f();
    spinner.finish_and_clear();
    result
}

fn target() -> ProgressDrawTarget {
    if std::io::stderr().is_terminal() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() }
}
