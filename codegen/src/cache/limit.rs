//! How much a cache may hold. What was not used for longest goes first.
//!
//! `state` has the bytes of all that was made, and is locked by who changes it. It may be too much (something was made
//! again) or too little (a process was killed before it counted), so that it only says when to look: beyond the limit
//! everything is counted, and entries go until a fifth of the room is free. A process that has found an entry and not
//! yet loaded it makes it again if it is gone by then (`library.rs`); a library that is loaded needs its file no more.

use super::{Cache, ENTRIES, FAILED, LIST, STATE};
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// An entry, as far as it matters here.
struct Item {
    dir: PathBuf,
    size: u64,
    used: SystemTime,
}

impl Cache {
    /// Counts what was made in `made`, and makes room if there is too much; `made` itself stays. A cache that cannot be
    /// counted works all the same.
    pub(super) fn account(&self, size: u64, made: &Path) {
        if let Err(e) = self.try_account(size, made) {
            tracing::debug!("cannot count what the cache `{}` holds: {e}", self.dir.display());
        }
    }

    fn try_account(&self, size: u64, made: &Path) -> std::io::Result<()> {
        let path = self.dir.join(STATE);
        let mut state =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(&path)?;
        // Where there are no locks, two processes may both make room.
        let _ = state.lock();
        let mut text = String::new();
        (&state).take(32).read_to_string(&mut text)?;
        let total = match text.trim().parse::<u64>() {
            Ok(before) if before.saturating_add(size) <= self.limit => before + size,
            _ => self.make_room(made)?,
        };
        rewrite(&mut state, total)
    }

    /// Removes entries until there is room; gives what the others take.
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
    // What cannot be looked at, or has no list, is not an entry and goes first.
    let used = modified(&dir.join(LIST)).or_else(|_| modified(&dir)).unwrap_or(SystemTime::UNIX_EPOCH);
    Item { size: size(&dir), used, dir }
}

/// The bytes of the files in a directory (not deeper: entries have no directories).
pub(super) fn size(dir: &Path) -> u64 {
    let Ok(files) = std::fs::read_dir(dir) else { return 0 };
    files.flatten().filter_map(|f| f.metadata().ok()).map(|m| m.len()).sum()
}
