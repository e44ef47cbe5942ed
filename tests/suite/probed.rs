//! Caches of their own for tests, without a probe of the C compiler in each.

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;
use std::sync::{LazyLock, Mutex};

/// Entry of a cache: its name, and its files with their names.
type Entry = (String, Vec<(String, Vec<u8>)>);

/// Verdicts on the C compiler, by the flags of the environment.
static VERDICTS: LazyLock<Mutex<HashMap<String, Entry>>> = LazyLock::new(Mutex::default);

/// Makes a cache that holds the verdict on the C compiler with these flags (`CFLAGS`), and nothing else. The probe, some
/// seconds of processor time, runs once for all tests.
pub fn make_cache(dir: &Path, flags: &str) {
    let mut verdicts = VERDICTS.lock().expect("no other test failed to probe the compiler");
    let (name, files) = verdicts.entry(flags.to_string()).or_insert_with(|| probed(flags));
    let entry = dir.join("entries").join(name);
    std::fs::create_dir_all(&entry).expect("a folder");
    for (name, bytes) in files {
        std::fs::write(entry.join(name), bytes).expect("a file");
    }
}

fn probed(flags: &str) -> Entry {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("f.ft"), "def f(x: i64) -> i64:\n    return x\n").expect("a file");
    let mut command = Command::new(env!("CARGO_BIN_EXE_taffeta"));
    command.args(["run", "f.ft", "--in", "x=1"]).current_dir(folder.path()).env("TAFFETA_CACHE_DIR", "cache");
    let output = command.env("CFLAGS", flags).output().expect("taffeta runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let names = |path: &Path| -> Vec<String> {
        let entries = std::fs::read_dir(path).expect("a folder");
        entries.map(|e| e.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
    };
    let entries = folder.path().join("cache/entries");
    let is_verdict = |name: &String| entries.join(name).join("verdict.json").is_file();
    let name = names(&entries).into_iter().find(is_verdict).expect("the probe's verdict");
    let entry = entries.join(&name);
    let files = names(&entry).into_iter().map(|file| (file.clone(), std::fs::read(entry.join(&file)).expect("a file")));
    let files = files.collect();
    (name, files)
}
