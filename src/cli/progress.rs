//! Progress display of long operations, on terminals only.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use std::io::IsTerminal;
use std::path::Path;
use std::time::Duration;

/// Minimum total bytes of input files for a progress display.
const LARGE: u64 = 64 << 20;

/// Creates a progress bar that counts runs.
pub fn calls(n: u32) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(u64::from(n)), target());
    if let Ok(style) = ProgressStyle::with_template("{elapsed} {bar:40} {pos}/{len} runs") {
        bar.set_style(style);
    }
    bar
}

/// Spinner with the current operation and its elapsed time; cleared on drop.
pub struct Work(ProgressBar);

impl Work {
    /// Starts a spinner with a message.
    pub fn new(what: &'static str) -> Work {
        let bar = ProgressBar::with_draw_target(None, target());
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} {elapsed}") {
            bar.set_style(style);
        }
        bar.set_message(what);
        bar.enable_steady_tick(Duration::from_millis(100));
        Work(bar)
    }

    /// Replaces the message and restarts the elapsed time.
    pub fn say(&self, what: &str) {
        if self.0.message() != what {
            self.0.reset_elapsed();
            self.0.set_message(what.to_string());
        }
    }

    /// Suspends the spinner while `f` shows its own progress.
    pub fn aside<T>(&self, f: impl FnOnce() -> T) -> T {
        self.0.suspend(f)
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// Runs `f`, which reads the inputs, with a progress bar if their files are large.
pub fn while_reading<T>(inputs: &[(String, String)], f: impl FnOnce() -> T) -> T {
    let path = |text: &'_ String| text.rsplit_once(':').map_or(text.clone(), |(path, _)| path.to_string());
    while_reading_files(inputs.iter().map(|(_, text)| path(text)), f)
}

/// Runs `f`, which reads these files, with a progress bar if they are large: its share of their bytes, or the elapsed
/// time alone for formats whose bytes are not counted.
pub fn while_reading_files<T>(files: impl IntoIterator<Item = impl AsRef<Path>>, f: impl FnOnce() -> T) -> T {
    let total: u64 = files.into_iter().map(|path| std::fs::metadata(path).map_or(0, |m| m.len())).sum();
    if total < LARGE {
        return f();
    }
    let bar = ProgressBar::with_draw_target(None, target());
    let before = taffeta::io::bytes_read();
    let share = move |_: &ProgressState, out: &mut dyn std::fmt::Write| {
        let read = taffeta::io::bytes_read() - before;
        let _ = if read == 0 { Ok(()) } else { write!(out, "{} %", (read * 100 / total).min(100)) };
    };
    if let Ok(style) = ProgressStyle::with_template("{spinner} reading {share} {elapsed}") {
        bar.set_style(style.with_key("share", share));
    }
    bar.enable_steady_tick(Duration::from_millis(100));
    let result = f();
    bar.finish_and_clear();
    result
}

/// Runs the machine's calibration with a spinner.
pub fn while_measuring(measure: impl FnOnce()) {
    let work = Work::new("measuring this machine, once");
    measure();
    drop(work);
}

fn target() -> ProgressDrawTarget {
    if std::io::stderr().is_terminal() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() }
}
