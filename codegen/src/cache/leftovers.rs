//! Where entries are made, and what is left there when a process is killed.
//!
//! `making/make-X/lock` is locked by the process that makes something in `making/make-X/files`, for as long as it does;
//! a lock goes with its process. What is not locked, and is not brand new, is nobody's: the next one who makes
//! something removes it. `making/old-X` is on its way out.

use super::{Cache, FAILED, MAKING, private};
use crate::temporary::Folder;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;

const FRESH: &str = "make-";
const OLD: &str = "old-";
const LOCK: &str = "lock";
/// Between making a directory and locking it.
const GRACE: Duration = Duration::from_secs(60);

/// A directory in which an entry is made; removed with what is left in it.
pub(super) struct Scratch {
    files: PathBuf,
    _lock: File,
    _dir: Folder,
}

impl Scratch {
    /// Where the entry's files go.
    pub fn files(&self) -> &Path {
        &self.files
    }
}

impl Cache {
    pub(super) fn scratch(&self) -> std::io::Result<Scratch> {
        let making = self.dir.join(MAKING);
        let dir = Folder::inside(&making, FRESH)?;
        let lock = File::create_new(dir.path().join(LOCK))?;
        // Where there are no locks (some network file systems), old age alone says that a directory is nobody's.
        let _ = lock.lock();
        let files = dir.path().join("files");
        std::fs::create_dir(&files)?;
        std::fs::set_permissions(&files, private::only_ours())?;
        Ok(Scratch { files, _lock: lock, _dir: dir })
    }

    /// Removes what interrupted processes left. What cannot be removed stays for the next time.
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

    /// Takes an entry away at once, as others see it, and then removes it.
    pub(super) fn discard(&self, entry: &Path) -> std::io::Result<()> {
        let making = self.dir.join(MAKING);
        let old = Folder::inside(&making, OLD)?;
        match std::fs::rename(entry, old.path().join("entry")) {
            // Another process took it away.
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(e),
            _ => Ok(()),
        }
    }

    /// Keeps the files of an entry that could not be made.
    pub(super) fn keep_failed(&self, files: &Path) -> std::io::Result<PathBuf> {
        let failed = self.dir.join(FAILED);
        let dir = Folder::inside(&failed, "")?;
        // Over a directory that is empty.
        std::fs::rename(files, dir.path())?;
        let dir = dir.keep();
        self.account(super::limit::size(&dir), &dir);
        Ok(dir)
    }
}

/// Whether no process makes anything there any more.
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
