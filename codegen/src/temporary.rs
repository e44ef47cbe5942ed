//! Temporary folders and files, each removed on drop. Some are never dropped (statics at process exit, everything when
//! a signal ends the process), so all of them are in a registry, which is cleared at process exit or by [`remove_all`].
//!
//! A forked child inherits a copy of the registry, and skips its parent's entries.

use std::collections::BTreeMap;
use std::fs::Permissions;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::time::Duration;
use tempfile::{Builder, NamedTempFile, TempDir};

/// Registry of existing paths, each with the id of the process that created it.
static ALL: Mutex<BTreeMap<PathBuf, u32>> = Mutex::new(BTreeMap::new());

/// Maximum number of attempts to remove a folder in which other threads still create and remove files, [`MOMENT`]
/// apart.
const ATTEMPTS: u32 = 400;
const MOMENT: Duration = Duration::from_millis(5);
/// Number of further passes over the registry, for folders that another thread has recreated.
const AFTERWARDS: u32 = 4;

/// A temporary folder that only the user can access.
#[derive(Debug)]
pub struct Folder {
    // Dropped first, while the path is still registered.
    dir: TempDir,
    _listed: Listed,
}

/// A temporary file, to be renamed or removed.
#[derive(Debug)]
pub struct File {
    /// The open file.
    pub file: NamedTempFile,
    _listed: Listed,
}

/// Registration of a path, withdrawn on drop.
#[derive(Debug)]
struct Listed(PathBuf);

impl Drop for Listed {
    fn drop(&mut self) {
        all().remove(&self.0);
    }
}

impl Folder {
    /// Creates a folder in the system's temporary directory. Its name starts with `prefix`.
    ///
    /// # Errors
    ///
    /// I/O errors of the creation.
    pub fn new(prefix: &str) -> std::io::Result<Folder> {
        Folder::inside(&std::env::temp_dir(), prefix)
    }

    /// Creates a folder in `parent`.
    ///
    /// # Errors
    ///
    /// I/O errors of the creation.
    pub fn inside(parent: &Path, prefix: &str) -> std::io::Result<Folder> {
        let make = || Builder::new().prefix(prefix).permissions(Permissions::from_mode(0o700)).tempdir_in(parent);
        let (dir, listed) = listed(make, TempDir::path)?;
        Ok(Folder { dir, _listed: listed })
    }

    /// Returns the folder's path.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Keeps the folder on disk and returns its path.
    pub fn keep(self) -> PathBuf {
        self.dir.keep()
    }
}

impl File {
    /// Creates a file in `parent`, with these permissions as far as the user's umask allows them.
    ///
    /// # Errors
    ///
    /// I/O errors of the creation.
    pub fn inside(parent: &Path, prefix: &str, permissions: Permissions) -> std::io::Result<File> {
        let make = || Builder::new().prefix(prefix).permissions(permissions).tempfile_in(parent);
        let (file, listed) = listed(make, NamedTempFile::path)?;
        Ok(File { file, _listed: listed })
    }

    /// Renames the file to `path`, replacing any existing file.
    ///
    /// # Errors
    ///
    /// I/O errors of the renaming.
    pub fn persist(self, path: &Path) -> std::io::Result<()> {
        self.file.persist(path).map(drop).map_err(|e| e.error)
    }
}

/// Removes everything that this process has created and not removed yet, before a signal ends it. The registry stays
/// locked: any thread that creates a temporary file afterwards blocks until the process ends.
pub fn remove_all() {
    let all = all();
    remove(&all);
    // Another thread may be about to recreate a folder to write into; it can do so once, and then blocks on the
    // registry.
    for _ in 0..AFTERWARDS {
        std::thread::sleep(MOMENT);
        remove(&all);
    }
    std::mem::forget(all);
}

/// Creates a file or folder and registers it under one lock, so that no cleanup runs in between.
fn listed<T>(
    make: impl FnOnce() -> std::io::Result<T>,
    path: impl FnOnce(&T) -> &Path,
) -> std::io::Result<(T, Listed)> {
    static AT_EXIT: Once = Once::new();
    AT_EXIT.call_once(|| {
        shutdown_hooks::add_shutdown_hook(at_exit);
    });
    let mut all = all();
    let made = make()?;
    let path = std::path::absolute(path(&made))?;
    all.insert(path.clone(), std::process::id());
    Ok((made, Listed(path)))
}

extern "C" fn at_exit() {
    // The lock may be held by `remove_all`, or by a thread of the parent at the time of the fork.
    if let Ok(all) = ALL.try_lock() {
        remove(&all);
    }
}

pub(crate) fn remove(all: &BTreeMap<PathBuf, u32>) {
    for path in all.iter().filter(|(_, maker)| **maker == std::process::id()).map(|(path, _)| path) {
        for _ in 0..ATTEMPTS {
            let gone = match path.symlink_metadata() {
                Ok(meta) if meta.is_dir() => std::fs::remove_dir_all(path),
                Ok(_) => std::fs::remove_file(path),
                Err(_) => break,
            };
            match gone {
                // A concurrent thread may add a file, or remove one before this call does.
                Err(e) if matches!(e.kind(), ErrorKind::DirectoryNotEmpty | ErrorKind::NotFound) => {
                    std::thread::sleep(MOMENT);
                }
                _ => break,
            }
        }
    }
}

pub(crate) fn all() -> MutexGuard<'static, BTreeMap<PathBuf, u32>> {
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}
