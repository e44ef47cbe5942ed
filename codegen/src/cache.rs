//! Compiled programs, kept between runs.
//!
//! One directory for each key, with whatever files the caller makes and a list of them (`entry.json`: names, lengths,
//! checksums). An entry is made in a temporary directory beside it and renamed, so that other processes see all of it
//! or nothing; one that no longer fits its list is made again.
//!
//! Loading a library runs its code, so the cache must be a directory that only the user can write: its owner is the
//! user, its mode 0700, and it is no symbolic link.

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use taffeta_ast::Diagnostic;
use tempfile::TempDir;

const LIST: &str = "entry.json";

/// A directory of compiled programs.
#[derive(Debug)]
pub struct Cache {
    dir: PathBuf,
    /// Kept so that it is removed in the end, where the cache is a temporary directory.
    _temporary: Option<TempDir>,
}

#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct List {
    /// Length and checksum of each file.
    files: FxHashMap<String, (u64, u64)>,
}

impl Cache {
    /// The user's cache: `TAFFETA_CACHE_DIR`, else `taffeta` in `XDG_CACHE_HOME` or `~/.cache`. Where that cannot be
    /// used, a temporary directory for this process, with a warning.
    ///
    /// # Errors
    ///
    /// Not even a temporary directory can be made.
    pub fn open() -> Result<(Cache, Option<Diagnostic>), Diagnostic> {
        let warning = match default_dir().map(|dir| Cache::open_at(&dir)) {
            Some(Ok(cache)) => return Ok((cache, None)),
            Some(Err(d)) => d.note("compiled programs are kept for this run only"),
            None => Diagnostic::new("cache::nowhere", "neither TAFFETA_CACHE_DIR nor XDG_CACHE_HOME nor HOME is set")
                .note("compiled programs are kept for this run only"),
        };
        let temporary = tempfile::Builder::new()
            .prefix("taffeta-")
            .tempdir()
            .map_err(|e| Diagnostic::new("cache::nowhere", format!("cannot make a temporary directory: {e}")))?;
        Ok((Cache { dir: temporary.path().to_path_buf(), _temporary: Some(temporary) }, Some(warning)))
    }

    /// The cache in `dir`, which is made if it is not there.
    ///
    /// # Errors
    ///
    /// It cannot be made or written, or others could write it.
    pub fn open_at(dir: &Path) -> Result<Cache, Diagnostic> {
        let refuse = |why: String| {
            Diagnostic::new("cache::unusable", format!("cannot keep compiled programs in `{}`: {why}", dir.display()))
                .help("set TAFFETA_CACHE_DIR to a directory of your own")
        };
        if let Err(e) = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)
            && e.kind() != ErrorKind::AlreadyExists
        {
            return Err(refuse(e.to_string()));
        }
        let meta = std::fs::symlink_metadata(dir).map_err(|e| refuse(e.to_string()))?;
        if meta.file_type().is_symlink() {
            return Err(refuse("it is a symbolic link, which could be turned elsewhere".into()));
        }
        if !meta.is_dir() {
            return Err(refuse("it is not a directory".into()));
        }
        // A file that this process makes belongs to the user that it runs as.
        let probe = tempfile::Builder::new().prefix(".probe-").tempfile_in(dir).map_err(|e| refuse(e.to_string()))?;
        let user = probe.as_file().metadata().map_err(|e| refuse(e.to_string()))?.uid();
        if meta.uid() != user {
            return Err(refuse("it belongs to another user".into()));
        }
        if meta.mode() & 0o077 != 0 {
            std::fs::set_permissions(dir, std::fs::Permissions::from_mode(0o700))
                .map_err(|e| refuse(format!("others may use it: {e}")))?;
        }
        Ok(Cache { dir: dir.to_path_buf(), _temporary: None })
    }

    /// Where it is.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The directory of the entry with that key, if there is one and all of its files are as they were made.
    pub fn get(&self, key: &str) -> Option<PathBuf> {
        let dir = self.dir.join(file_name(key));
        let list: List = serde_json::from_slice(&std::fs::read(dir.join(LIST)).ok()?).ok()?;
        let whole = list.files.iter().all(|(name, (len, sum))| {
            !name.contains('/')
                && std::fs::read(dir.join(name)).is_ok_and(|data| data.len() as u64 == *len && checksum(&data) == *sum)
        });
        whole.then_some(dir)
    }

    /// The directory of the entry with that key, which `make` fills if there is none.
    ///
    /// # Errors
    ///
    /// Those of `make`; the cache cannot be written.
    pub fn get_or_make(
        &self,
        key: &str,
        make: impl FnOnce(&Path) -> Result<(), Diagnostic>,
    ) -> Result<PathBuf, Diagnostic> {
        if let Some(dir) = self.get(key) {
            return Ok(dir);
        }
        let refuse = |e: std::io::Error| {
            Diagnostic::new("cache::write", format!("cannot write to the cache `{}`: {e}", self.dir.display()))
                .help("make room, or set TAFFETA_CACHE_DIR to another directory")
        };
        let fresh = tempfile::Builder::new().prefix(".make-").tempdir_in(&self.dir).map_err(refuse)?;
        match make(fresh.path()) {
            Ok(()) => {}
            // Its files, a log among them, are what a report needs.
            Err(d) if d.code.starts_with("internal::") => {
                let kept = fresh.keep();
                return Err(d.note(format!("the generated files are in {}", kept.display())));
            }
            Err(d) => return Err(d),
        }
        let mut list = List::default();
        for file in std::fs::read_dir(fresh.path()).map_err(refuse)? {
            let file = file.map_err(refuse)?;
            let data = std::fs::read(file.path()).map_err(refuse)?;
            list.files.insert(file.file_name().to_string_lossy().into_owned(), (data.len() as u64, checksum(&data)));
        }
        let text = serde_json::to_vec(&list).map_err(|e| refuse(e.into()))?;
        std::fs::write(fresh.path().join(LIST), text).map_err(refuse)?;

        let dir = self.dir.join(file_name(key));
        if std::fs::rename(fresh.path(), &dir).is_err() {
            // Another process was faster, or what lies there is broken.
            if let Some(dir) = self.get(key) {
                return Ok(dir);
            }
            if dir.is_dir() { std::fs::remove_dir_all(&dir) } else { std::fs::remove_file(&dir) }.map_err(refuse)?;
            std::fs::rename(fresh.path(), &dir).map_err(refuse)?;
        }
        // Renamed: there is nothing left to remove.
        let _ = fresh.keep();
        Ok(dir)
    }
}

/// A key from everything that an entry depends on: 128 bits, so that two of them meet by no accident.
pub fn key(parts: &[&str]) -> String {
    let half = |seed: u8| {
        let mut h = DefaultHasher::new();
        (seed, parts).hash(&mut h);
        h.finish()
    };
    format!("{:016x}{:016x}", half(0), half(1))
}

/// Keys become names of directories: anything but a plain word is hashed.
fn file_name(key_text: &str) -> String {
    let plain = !key_text.is_empty()
        && key_text.len() <= 100
        && key_text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
    if plain { key_text.to_string() } else { key(&[key_text]) }
}

fn checksum(data: &[u8]) -> u64 {
    let mut h = DefaultHasher::new();
    data.hash(&mut h);
    h.finish()
}

fn default_dir() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    set("TAFFETA_CACHE_DIR")
        .or_else(|| set("XDG_CACHE_HOME").filter(|p| p.is_absolute()).map(|p| p.join("taffeta")))
        .or_else(|| set("HOME").map(|p| p.join(".cache").join("taffeta")))
}
