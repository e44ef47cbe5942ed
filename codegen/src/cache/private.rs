//! Checks that no other user could have written a directory or a file.
//!
//! The cache and its contents must belong to the user, its parent directories and the symbolic links in its path to a
//! *trusted* user: the user or root. A directory is *open* if its group or others may write it. A parent directory must
//! not be open, with two exceptions: a group that is the user's own (equal number, as where every user has a group),
//! and the sticky bit (`/tmp`), which keeps users from moving each other's files. The cache itself and its contents are
//! not reached through links.
//!
//! An open cache was open before we looked, so closing it is not enough: its contents are discarded. That is done only
//! to a directory that looks like a cache. A directory with other contents is neither emptied nor closed, but refused.

use super::{ENTRIES, FAILED, MAKING, STATE};
use rustix::fs::{Access, AtFlags, CWD, accessat};
use std::ffi::OsString;
use std::fs::{DirBuilder, Metadata, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};
use taffeta_ast::Diagnostic;

/// Maximum number of symbolic links in a path; more are taken for a cycle.
const MAX_LINKS: u32 = 40;
/// Permission bits for writing by the group or by others.
const WRITTEN_BY_OTHERS: u32 = 0o022;
const STICKY: u32 = 0o1000;

/// A directory that may be used as a cache.
pub(super) struct Opened {
    pub dir: PathBuf,
    pub owner: Owner,
    /// Reason for which its contents were discarded, if they were.
    pub discarded: Option<String>,
}

/// User to whom the cache belongs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Owner {
    user: u32,
}

/// Reason for which the path to a cache cannot be used.
enum Unfit {
    /// Component that others can change, with the reason.
    Untrusted(PathBuf, String),
    /// More symbolic links than [`MAX_LINKS`].
    Links,
}

fn unusable(dir: &Path, why: &str) -> Diagnostic {
    Diagnostic::new("cache::unusable", format!("cannot keep compiled programs in `{}`: {why}", dir.display()))
        .help("set TAFFETA_CACHE_DIR to a directory of your own")
}

/// Checks that files can be created in a directory of the cache, whose file system may be read-only.
pub(super) fn takes_files(dir: &Path) -> Result<(), Diagnostic> {
    accessat(CWD, dir, Access::WRITE_OK, AtFlags::EACCESS)
        .map_err(|e| unusable(dir, &std::io::Error::from(e).to_string()))
}

/// Opens a directory as a cache: creates it, or revokes others' permissions.
pub(super) fn open(dir: &Path) -> Result<Opened, Diagnostic> {
    let refuse = |why: String| unusable(dir, &why);
    let distrust = |why: String, help: String| {
        Diagnostic::new("cache::unsafe", format!("compiled programs are not kept in `{}`: {why}", dir.display()))
            .help(help)
    };
    let dir = std::path::absolute(dir).map_err(|e| refuse(e.to_string()))?;
    let owner = Owner { user: rustix::process::geteuid().as_raw() };
    let on_the_way = || {
        let parent = dir.parent().unwrap_or(Path::new("/"));
        owner.check_parents(parent).map_err(|unfit| match unfit {
            Unfit::Untrusted(at, why) => {
                let help = format!(
                    "others could add programs: remove their write permission from `{}` (chmod go-w), or set \
                     TAFFETA_CACHE_DIR to a directory of your own",
                    at.display()
                );
                distrust(format!("the directory `{}` above it {why}", at.display()), help)
            }
            Unfit::Links => refuse(format!("its path leads through more than {MAX_LINKS} symbolic links")),
        })
    };
    on_the_way()?;
    if let Err(e) = DirBuilder::new().recursive(true).mode(0o700).create(&dir)
        && e.kind() != ErrorKind::AlreadyExists
    {
        return Err(refuse(e.to_string()));
    }
    // Check again, with the directories created meanwhile.
    on_the_way()?;
    let meta = std::fs::symlink_metadata(&dir).map_err(|e| refuse(e.to_string()))?;
    if meta.file_type().is_symlink() {
        return Err(refuse("it is a symbolic link, whose target may change".into()));
    }
    if !meta.is_dir() {
        return Err(refuse("it is not a directory".into()));
    }
    if meta.uid() != owner.user {
        return Err(refuse("it belongs to another user".into()));
    }
    let failed = |e: std::io::Error| refuse(e.to_string());
    let open = meta.mode() & WRITTEN_BY_OTHERS != 0;
    let held = names(&dir).map_err(failed)?;
    let is_cache = held.iter().all(|n| [ENTRIES, MAKING, FAILED, STATE].iter().any(|ours| n == ours));
    if open && !is_cache {
        let help = "set TAFFETA_CACHE_DIR to an empty directory, or remove others' write permission (chmod go-w)";
        return Err(distrust("others can write it, and it contains other files".into(), help.into()));
    }
    // Permissions of a directory with other contents stay as they are, if others may only read it.
    if is_cache && meta.mode() & 0o077 != 0 {
        std::fs::set_permissions(&dir, only_ours()).map_err(failed)?;
    }
    let mut discarded = None;
    if open && !held.is_empty() {
        // After the directory is closed, so that nothing enters it again.
        for part in [ENTRIES, MAKING, FAILED, STATE].map(|part| dir.join(part)) {
            if part.symlink_metadata().is_ok() {
                remove(&part).map_err(failed)?;
            }
        }
        discarded = Some("others could write it".to_string());
    }
    for part in [ENTRIES, MAKING, FAILED] {
        let part = dir.join(part);
        if part.symlink_metadata().is_ok()
            && let Err(why) = owner.private_dir(&part)
        {
            remove(&part).map_err(failed)?;
            discarded = Some(format!("`{}` {why}", part.display()));
        }
        match DirBuilder::new().mode(0o700).create(&part) {
            Err(e) if e.kind() != ErrorKind::AlreadyExists => return Err(failed(e)),
            _ => {}
        }
    }
    Ok(Opened { dir, owner, discarded })
}

impl Owner {
    /// Checks that the path is a directory that only the user can write, and no link; the error names the defect.
    pub fn private_dir(self, dir: &Path) -> Result<(), String> {
        let meta = std::fs::symlink_metadata(dir).map_err(|e| e.to_string())?;
        if meta.is_dir() { self.private(&meta) } else { Err("is not a directory".into()) }
    }

    /// Reads a file that only the user can write; links are refused.
    pub fn read(self, file: &Path) -> std::io::Result<Vec<u8>> {
        let meta = std::fs::symlink_metadata(file)?;
        if !meta.is_file() {
            return Err(std::io::Error::other("not a file"));
        }
        self.private(&meta).map_err(std::io::Error::other)?;
        std::fs::read(file)
    }

    fn private(self, meta: &Metadata) -> Result<(), String> {
        match meta {
            m if m.uid() != self.user => Err("belongs to another user".into()),
            m if m.mode() & WRITTEN_BY_OTHERS != 0 => Err("can be written by others".into()),
            _ => Ok(()),
        }
    }

    /// Checks every component of the path to a directory, following symbolic links.
    fn check_parents(self, dir: &Path) -> Result<(), Unfit> {
        let mut at = PathBuf::from("/");
        self.step(&at)?;
        let mut rest = parts(dir);
        let mut links = 0;
        while let Some(part) = rest.pop() {
            if part == ".." {
                at.pop();
                continue;
            }
            let next = at.join(part);
            let meta = match std::fs::symlink_metadata(&next) {
                Ok(meta) => meta,
                // A missing component is created by us; one that cannot be examined cannot be used either.
                Err(_) => return Ok(()),
            };
            if !meta.file_type().is_symlink() {
                self.step(&next)?;
                at = next;
                continue;
            }
            if !self.trusts(meta.uid()) {
                return Err(Unfit::Untrusted(next, "is a symbolic link of another user".into()));
            }
            links += 1;
            if links > MAX_LINKS {
                return Err(Unfit::Links);
            }
            let target = std::fs::read_link(&next).map_err(|e| Unfit::Untrusted(next, e.to_string()))?;
            if target.is_absolute() {
                at = PathBuf::from("/");
            }
            rest.extend(parts(&target));
        }
        Ok(())
    }

    /// Checks one directory of a path.
    fn step(self, dir: &Path) -> Result<(), Unfit> {
        let because = |why: &str| Err(Unfit::Untrusted(dir.to_path_buf(), why.to_string()));
        let Ok(meta) = std::fs::metadata(dir) else { return Ok(()) };
        if !self.trusts(meta.uid()) {
            return because("belongs to another user");
        }
        // Where every user has a group of their own, the user's directories may be writable by that group.
        let own_group = self.user != 0 && meta.gid() == self.user && meta.mode() & 0o002 == 0;
        if meta.mode() & WRITTEN_BY_OTHERS != 0 && meta.mode() & STICKY == 0 && !own_group {
            return because("can be written by others");
        }
        Ok(())
    }

    fn trusts(self, user: u32) -> bool {
        user == 0 || user == self.user
    }
}

/// Returns permissions for the user alone: read, write, enter.
pub(super) fn only_ours() -> Permissions {
    Permissions::from_mode(0o700)
}

/// Revokes the permissions of the group and of others.
pub(super) fn close(file: &Path) -> std::io::Result<()> {
    let meta = std::fs::symlink_metadata(file)?;
    if meta.is_file() {
        std::fs::set_permissions(file, Permissions::from_mode(meta.mode() & 0o700))?;
    }
    Ok(())
}

/// Removes a file or a directory tree; of a link, only the link.
pub(super) fn remove(path: &Path) -> std::io::Result<()> {
    let meta = std::fs::symlink_metadata(path)?;
    if meta.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) }
}

fn names(dir: &Path) -> std::io::Result<Vec<OsString>> {
    std::fs::read_dir(dir)?.map(|e| e.map(|e| e.file_name())).collect()
}

/// Returns the components of a path, the last one first.
fn parts(path: &Path) -> Vec<OsString> {
    let part = |c: Component<'_>| match c {
        Component::Normal(name) => Some(name.to_os_string()),
        Component::ParentDir => Some(OsString::from("..")),
        _ => None,
    };
    let mut all: Vec<OsString> = path.components().filter_map(part).collect();
    all.reverse();
    all
}
