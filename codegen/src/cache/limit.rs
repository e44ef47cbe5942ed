//! Size limit of a cache, with eviction of the least recently used entries.
//!
//! `state` holds the total size of all entries in bytes, and is locked for updates. The total may be too high (an entry
//! was made again) or too low (a process was killed before its update), so it only triggers a recount: above the limit,
//! the sizes of all entries are added up, and entries are evicted until a fifth of the room is free. A process that has
//! found an entry and not yet loaded it makes it again if the entry is gone by then (`library.rs`); a loaded library
//! does not need its file.

use super::{Cache, ENTRIES, FAILED, LIST, STATE};
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// An entry's directory, size and time of last use.
struct Item {
    dir: PathBuf,
    size: u64,
    used: SystemTime,
}

impl Cache {
    /// Adds `size` to the total, and makes room if the limit is exceeded; the new entry `made` is never evicted.
    /// Failures are logged only, since a cache works without its total.
    pub(super) fn account(&self, size: u64, made: &Path) {
        if let Err(e) = self.try_account(size, made) {
            tracing::debug!("cannot update the size of the cache `{}`: {e}", self.dir.display());
        }
    }

    fn try_account(&self, size: u64, made: &Path) -> std::io::Result<()> {
        let path = self.dir.join(STATE);
        let mut state =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(&path)?;
        // Without file locks, two processes may both make room.
        let _ = state.lock();
        let mut text = String::new();
        (&state).take(32).read_to_string(&mut text)?;
        let total = match text.trim().parse::<u64>() {
            Ok(before) if before.saturating_add(size) <= self.limit => before + size,
            _ => self.make_room(made)?,
        };
        rewrite(&mut state, total)
    }

    /// Recounts all entries, and if they exceed the limit, evicts some until a fifth of the room is free. Returns the
    /// total size of the remaining ones.
    fn make_room(&self, made: &Path) -> std::io::Result<u64> {
        let mut items = Vec::new();
        for part in [ENTRIES, FAILED] {
            for entry in std::fs::read_dir(self.dir.join(part))?.flatten() {
                items.push(item(entry.path()));
            }
        }
        let mut total: u64 = items.iter().map(|i| i.size).sum();
        if total <= self.limit {
            return Ok(total);
        }
        let enough = self.limit / 5 * 4;
        items.sort_by_key(|i| i.used);
        for item in items.iter().filter(|i| i.dir != made) {
            if total <= enough {
                break;
            }
            self.discard(&item.dir)?;
            tracing::debug!("removed `{}` from the cache, which is full", item.dir.display());
            total -= item.size;
        }
        Ok(total)
    }
}

fn rewrite(state: &mut File, total: u64) -> std::io::Result<()> {
    state.set_len(0)?;
    state.rewind()?;
    write!(state, "{total}")
}

fn item(dir: PathBuf) -> Item {
    let modified = |path: &Path| std::fs::symlink_metadata(path).and_then(|m| m.modified());
    // A directory without a list, such as a failed compilation's, is as old as its last change; an unreadable one is
    // evicted first.
    let used = modified(&dir.join(LIST)).or_else(|_| modified(&dir)).unwrap_or(SystemTime::UNIX_EPOCH);
    Item { size: size(&dir), used, dir }
}

/// Sums the sizes of the files in a directory (not recursive: entries have no subdirectories).
pub(super) fn size(dir: &Path) -> u64 {
    let Ok(files) = std::fs::read_dir(dir) else { return 0 };
    files.flatten().filter_map(|f| f.metadata().ok()).map(|m| m.len()).sum()
}
