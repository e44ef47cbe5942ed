//! Scratch directories for new entries, and removal of those left by killed processes.
//!
//! The process that fills `making/make-X/files` holds a lock on `making/make-X/lock` meanwhile; the lock ends with the
//! process. A directory that is not locked and older than a grace period is abandoned, and the next process that makes
//! an entry removes it. `making/old-X` is being removed.

use super::{Cache, FAILED, MAKING, private};
use crate::temporary::Folder;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;

const FRESH: &str = "make-";
const OLD: &str = "old-";
const LOCK: &str = "lock";
/// Grace period between creating a directory and locking it.
const GRACE: Duration = Duration::from_secs(60);

/// A directory in which an entry is made; removed on drop with its remaining contents.
pub(super) struct Scratch {
    files: PathBuf,
    _lock: File,
    _dir: Folder,
}

impl Scratch {
    /// Returns the directory of the entry's files.
    pub fn files(&self) -> &Path {
        &self.files
    }
}

impl Cache {
    pub(super) fn scratch(&self) -> std::io::Result<Scratch> {
        let making = self.dir.join(MAKING);
        let dir = Folder::inside(&making, FRESH)?;
        let lock = File::create_new(dir.path().join(LOCK))?;
        // Without file locks (some network file systems), only the age shows that a directory is abandoned.
        let _ = lock.lock();
        let files = dir.path().join("files");
        std::fs::create_dir(&files)?;
        std::fs::set_permissions(&files, private::only_ours())?;
        Ok(Scratch { files, _lock: lock, _dir: dir })
    }

    /// Removes the leftovers of interrupted processes. Directories that cannot be removed stay until the next attempt.
    pub(super) fn remove_leftovers(&self) {
        let Ok(all) = std::fs::read_dir(self.dir.join(MAKING)) else { return };
        for entry in all.flatten() {
            let nobodys = match entry.file_name().to_string_lossy() {
                name if name.starts_with(OLD) => true,
                name if name.starts_with(FRESH) => abandoned(&entry.path()),
                _ => true,
            };
            if nobodys && let Err(e) = private::remove(&entry.path()) {
                tracing::debug!("cannot remove `{}`: {e}", entry.path().display());
            }
        }
    }

    /// Discards an entry: renames it, so that it vanishes atomically for other processes, and then removes it.
    pub(super) fn discard(&self, entry: &Path) -> std::io::Result<()> {
        let making = self.dir.join(MAKING);
        let old = Folder::inside(&making, OLD)?;
        match std::fs::rename(entry, old.path().join("entry")) {
            // Another process has renamed the entry already.
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(e),
            _ => Ok(()),
        }
    }

    /// Keeps the files of an entry that failed to compile.
    pub(super) fn keep_failed(&self, files: &Path) -> std::io::Result<PathBuf> {
        let failed = self.dir.join(FAILED);
        let dir = Folder::inside(&failed, "")?;
        // The rename replaces an empty directory.
        std::fs::rename(files, dir.path())?;
        let dir = dir.keep();
        self.account(super::limit::size(&dir), &dir);
        Ok(dir)
    }
}

/// Returns whether a scratch directory is in use by no process.
fn abandoned(dir: &Path) -> bool {
    let old = |path: &Path| {
        let modified = std::fs::symlink_metadata(path).and_then(|m| m.modified()).ok();
        modified.and_then(|m| m.elapsed().ok()).is_some_and(|age| age > GRACE)
    };
    let lock = dir.join(LOCK);
    match File::open(&lock) {
        Ok(file) => old(&lock) && !matches!(file.try_lock(), Err(TryLockError::WouldBlock)),
        Err(_) => old(dir),
    }
}
