//! Temporary folders and files. Each is removed when it is dropped; those that are not (a process that ends keeps what
//! is static, and one that is told to end drops nothing) are on a list, which is removed when the process ends, or by
//! [`remove_all`].
//!
//! A child that is forked has a copy of the list, and leaves alone what is its parent's.

use std::collections::BTreeMap;
use std::fs::Permissions;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::time::Duration;
use tempfile::{Builder, NamedTempFile, TempDir};

/// What is there, each with the process that made it.
static ALL: Mutex<BTreeMap<PathBuf, u32>> = Mutex::new(BTreeMap::new());

/// How often a folder is removed in which others still make and remove files, a moment apart.
const ATTEMPTS: u32 = 400;
const MOMENT: Duration = Duration::from_millis(5);
/// Attempts to remove folders that another thread has made again since.
const AFTERWARDS: u32 = 4;

/// A folder that is the user's alone.
#[derive(Debug)]
pub struct Folder {
    // Removed first.
    dir: TempDir,
    _listed: Listed,
}

/// A file that gets another name or is removed.
#[derive(Debug)]
pub struct File {
    /// The file.
    pub file: NamedTempFile,
    _listed: Listed,
}

/// Keeps a path on the list.
#[derive(Debug)]
struct Listed(PathBuf);

impl Drop for Listed {
    fn drop(&mut self) {
        all().remove(&self.0);
    }
}

impl Folder {
    /// Makes one where temporary files are. Its name starts with `prefix`.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn new(prefix: &str) -> std::io::Result<Folder> {
        Folder::inside(&std::env::temp_dir(), prefix)
    }

    /// Makes one in `parent`.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn inside(parent: &Path, prefix: &str) -> std::io::Result<Folder> {
        let make = || Builder::new().prefix(prefix).permissions(Permissions::from_mode(0o700)).tempdir_in(parent);
        let (dir, listed) = listed(make, TempDir::path)?;
        Ok(Folder { dir, _listed: listed })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Leaves it there.
    pub fn keep(self) -> PathBuf {
        self.dir.keep()
    }
}

impl File {
    /// Makes one in `parent`, with these permissions as far as the user's umask allows them.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn inside(parent: &Path, prefix: &str, permissions: Permissions) -> std::io::Result<File> {
        let make = || Builder::new().prefix(prefix).permissions(permissions).tempfile_in(parent);
        let (file, listed) = listed(make, NamedTempFile::path)?;
        Ok(File { file, _listed: listed })
    }

    /// Gives it its name, in the place of what has that.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn persist(self, path: &Path) -> std::io::Result<()> {
        self.file.persist(path).map(drop).map_err(|e| e.error)
    }
}

/// Removes what this process has made and not removed yet, when it is going to end by a signal: whoever makes something
/// from here on waits for that end.
pub fn remove_all() {
    let all = all();
    remove(&all);
    // Another thread may be about to make a folder again in which it was going to write: once, and then it cannot.
    for _ in 0..AFTERWARDS {
        std::thread::sleep(MOMENT);
        remove(&all);
    }
    std::mem::forget(all);
}

/// Makes something, and lists it: nobody removes the list in between.
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
    // One that is held is `remove_all`'s, or that of a thread which had it when this process was forked.
    if let Ok(all) = ALL.try_lock() {
        remove(&all);
    }
}

fn remove(all: &BTreeMap<PathBuf, u32>) {
    for path in all.iter().filter(|(_, maker)| **maker == std::process::id()).map(|(path, _)| path) {
        for _ in 0..ATTEMPTS {
            let gone = match path.symlink_metadata() {
                Ok(meta) if meta.is_dir() => std::fs::remove_dir_all(path),
                Ok(_) => std::fs::remove_file(path),
                Err(_) => break,
            };
            match gone {
                // A file in it may be gone before it is removed here.
                Err(e) if matches!(e.kind(), ErrorKind::DirectoryNotEmpty | ErrorKind::NotFound) => {
                    std::thread::sleep(MOMENT);
                }
                _ => break,
            }
        }
    }
}

fn all() -> MutexGuard<'static, BTreeMap<PathBuf, u32>> {
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_the_users_alone_and_listed_while_it_is_there() {
        let folder = Folder::new("taffeta-test-").expect("a folder");
        let path = folder.path().to_path_buf();
        let mode = std::fs::metadata(&path).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        assert_eq!(all().get(&path), Some(&std::process::id()));
        drop(folder);
        assert!(!path.exists() && !all().contains_key(&path));
    }

    #[test]
    fn what_another_process_has_made_stays() {
        let (ours, theirs) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        std::fs::write(ours.path().join("file"), "").expect("a file");
        let id = std::process::id();
        remove(&[(ours.path().to_path_buf(), id), (theirs.path().to_path_buf(), id + 1)].into_iter().collect());
        assert!(!ours.path().exists() && theirs.path().exists());
    }
}
