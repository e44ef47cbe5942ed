//! Caches of their own for tests, without a probe of the C compiler and the runtime being compiled in each.

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;
use std::sync::{LazyLock, Mutex};

/// Entry of a cache: its name, and its files with their names.
type Entry = (String, Vec<(String, Vec<u8>)>);

/// Entries that every program needs, by the flags of the environment.
static ENTRIES: LazyLock<Mutex<HashMap<String, Vec<Entry>>>> = LazyLock::new(Mutex::default);

/// Program that needs all parts of the runtime.
const PROGRAM: &str = "
def f(x: i64[n] @ format(compressed)) -> i64:
    sum: i64 = 0
    for i in range(n):
        sum += x[i]
    return sum
";

/// Makes a cache that holds the verdict on the C compiler with these flags (`CFLAGS`), and the compiled runtime. The
/// probe, some seconds of processor time, runs once for all tests.
pub fn make_cache(dir: &Path, flags: &str) {
    let mut all = ENTRIES.lock().expect("no other test failed to probe the compiler");
    for (name, files) in all.entry(flags.to_string()).or_insert_with(|| probed(flags)) {
        let entry = dir.join("entries").join(name);
        std::fs::create_dir_all(&entry).expect("a folder");
        for (name, bytes) in files {
            std::fs::write(entry.join(name), bytes).expect("a file");
        }
    }
}

fn probed(flags: &str) -> Vec<Entry> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("f.ft"), PROGRAM).expect("a file");
    let mut command = Command::new(env!("CARGO_BIN_EXE_taffeta"));
    command.args(["run", "f.ft", "--in", "x=[1]"]).current_dir(folder.path()).env("TAFFETA_CACHE_DIR", "cache");
    let output = command.env("CFLAGS", flags).output().expect("taffeta runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let names = |path: &Path| -> Vec<String> {
        let entries = std::fs::read_dir(path).expect("a folder");
        entries.map(|e| e.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
    };
    let entries = folder.path().join("cache/entries");
    let is_needed = |file: &String| file == "verdict.json" || file.ends_with(".o");
    let needed = names(&entries).into_iter().filter(|name| names(&entries.join(name)).iter().any(is_needed));
    let read = |name: String| {
        let entry = entries.join(&name);
        let files = names(&entry).into_iter().map(|file| {
            let bytes = std::fs::read(entry.join(&file)).expect("a file");
            (file, bytes)
        });
        let files = files.collect();
        (name, files)
    };
    let all: Vec<Entry> = needed.map(read).collect();
    assert_eq!(all.len(), 3, "expected the verdict and the two parts of the runtime");
    all
}
