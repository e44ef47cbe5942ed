//! Signal handling: on termination (Ctrl-C, `kill`, a closed terminal), temporary files are removed before the process
//! ends as it would have.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use taffeta::codegen::temporary;

/// Removes temporary files on signals that end the process. An ignored signal (`nohup`) stays ignored.
pub fn clean_up() {
    let ignored = ignored();
    let heeded = [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|s| ignored >> (s - 1) & 1 == 0);
    // Without a handler, only the cleanup is lost.
    let Ok(mut signals) = Signals::new(heeded) else { return };
    let wait = move || {
        if let Some(signal) = signals.forever().next() {
            temporary::remove_all();
            // Returns only for a signal that does not end processes.
            let _ = emulate_default_handler(signal);
        }
    };
    let _ = std::thread::Builder::new().name("signals".into()).spawn(wait);
}

/// Returns the signals that the parent process set to be ignored, one bit each.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|l| l.strip_prefix("SigIgn:"));
    mask.and_then(|m| u64::from_str_radix(m.trim(), 16).ok()).unwrap_or(0)
}
