//! Cache hierarchy of this machine, as the system reports it.

use std::path::Path;

/// Folder in which Linux describes the caches.
pub(super) const CACHES: &str = "/sys/devices/system/cpu/cpu0/cache";

/// Level of the cache hierarchy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cache {
    /// Number of the level, from 1.
    level: u32,
    /// Capacity in bytes.
    pub bytes: usize,
    /// Number of logical processors that share the cache.
    shared_by: usize,
}

impl Cache {
    /// Creates a level that is private to each processor.
    pub fn own(level: u32, bytes: usize) -> Cache {
        Cache { level, bytes, shared_by: 1 }
    }

    /// Returns the bytes per thread when `threads` threads run.
    pub fn of_a_thread(&self, threads: usize) -> usize {
        self.bytes / self.shared_by.min(threads).max(1)
    }
}

/// Returns the data caches in ascending order; `None` if the system describes fewer than two, or does so
/// inconsistently.
pub(super) fn caches(folder: &Path) -> Option<Vec<Cache>> {
    let mut found: Vec<Cache> = std::fs::read_dir(folder).ok()?.flatten().filter_map(|e| cache(&e.path())).collect();
    found.sort_by_key(|c| c.level);
    let grow = found.windows(2).all(|w| w[0].level < w[1].level && w[0].bytes < w[1].bytes);
    (found.len() >= 2 && grow).then_some(found)
}

fn cache(folder: &Path) -> Option<Cache> {
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).ok().map(|t| t.trim().to_string());
    if read("type")? == "Instruction" {
        return None;
    }
    let shared_by = read("shared_cpu_list").and_then(|l| processors(&l)).unwrap_or(1);
    Some(Cache { level: read("level")?.parse().ok()?, bytes: amount(&read("size")?)?, shared_by })
}

/// Parses a size such as `512K`.
fn amount(text: &str) -> Option<usize> {
    let (number, unit) = match text.strip_suffix('K') {
        Some(number) => (number, 1 << 10),
        None => text.strip_suffix('M').map_or((text, 1), |number| (number, 1 << 20)),
    };
    number.parse::<usize>().ok()?.checked_mul(unit).filter(|n| *n > 0)
}

/// Counts the processors in a list such as `0-3,8-11`.
fn processors(list: &str) -> Option<usize> {
    let range = |r: &str| {
        let (first, last) = r.split_once('-').unwrap_or((r, r));
        (last.parse::<usize>().ok()? + 1).checked_sub(first.parse().ok()?)
    };
    list.split(',').map(range).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(all: &[[&str; 4]]) -> Option<Vec<Cache>> {
        let folder = tempfile::tempdir().expect("a folder");
        for (k, texts) in all.iter().enumerate() {
            let own = folder.path().join(format!("index{k}"));
            std::fs::create_dir(&own).expect("a folder");
            for (name, text) in ["level", "type", "size", "shared_cpu_list"].iter().zip(texts) {
                std::fs::write(own.join(name), format!("{text}\n")).expect("a file");
            }
        }
        caches(folder.path())
    }

    #[test]
    fn caches_are_divided_among_threads() {
        let all = [
            ["1", "Data", "48K", "0,64"],
            ["1", "Instruction", "32K", "0,64"],
            ["3", "Unified", "260M", "0-31,64-95"],
            ["2", "Unified", "2048K", "0,64"],
        ];
        let found = described(&all).expect("they are understood");
        let parts = |threads: usize| found.iter().map(|c| c.of_a_thread(threads)).collect::<Vec<_>>();
        assert_eq!(parts(1), [48 << 10, 2 << 20, 260 << 20]);
        assert_eq!(parts(2), [24 << 10, 1 << 20, 130 << 20]);
        assert_eq!(parts(128), [24 << 10, 1 << 20, (260 << 20) / 64]);
    }

    #[test]
    fn unknown_descriptions_of_caches_are_ignored() {
        let first = ["1", "Data", "32K", "0"];
        assert_eq!(caches(Path::new("/nowhere/at/all")), None);
        assert_eq!(described(&[first]), None);
        assert_eq!(described(&[first, ["2", "Unified", "many", "0"]]), None);
        assert_eq!(described(&[first, ["2", "Unified", "16K", "0"]]), None);
        assert_eq!(described(&[first, ["1", "Data", "64K", "0"]]), None);
        assert_eq!(processors("3-1"), None);
    }
}
