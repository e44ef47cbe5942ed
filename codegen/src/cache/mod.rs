//! Persistent cache of compiled programs.
//!
//! ```text
//!  DIR/entries/KEY/   files, and a list of them (`entry.json`: the key, names, lengths, checksums)
//!  DIR/making/        entries that are being made (`leftovers.rs`)
//!  DIR/failed/        what the C compiler refused, for whoever looks into it
//!  DIR/state          how much all of it takes (`limit.rs`)
//! ```
//!
//! An entry is made in `making` and renamed into place, so other processes see either all of it or nothing. An entry
//! that differs from its list in any file is made again. Keys and checksums are BLAKE3 hashes, so nobody can construct
//! a program whose key collides with another's.
//!
//! Loading a library runs its code, so nothing is taken from a directory that another user could have written
//! (`private.rs`): this covers the cache, its parent directories, the entry and each file. `library.rs` loads;
//! `runtime.rs` keeps the object files of the C runtime.

mod leftovers;
mod library;
mod limit;
mod private;
mod runtime;

pub use library::LibraryEntry;

use crate::temporary::Folder;
use private::{Opened, Owner};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;
use taffeta_ast::Diagnostic;

const LIST: &str = "entry.json";
const ENTRIES: &str = "entries";
const MAKING: &str = "making";
const FAILED: &str = "failed";
const STATE: &str = "state";

/// Default size limit, in bytes: some ten thousand programs.
pub const DEFAULT_LIMIT: u64 = 1_000_000_000;

/// A directory of compiled programs.
#[derive(Debug)]
pub struct Cache {
    dir: PathBuf,
    owner: Owner,
    limit: u64,
}

/// Temporary replacement of a cache that cannot be used, until the process ends.
struct StandsIn {
    process: u32,
    dir: Folder,
    /// Warnings already reported.
    told: Vec<String>,
}

static STANDS_IN: Mutex<Option<StandsIn>> = Mutex::new(None);

/// Kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Kind {
    /// Files to be read.
    Data,
    /// A library to be loaded; only `library.rs` makes them.
    Library,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct List {
    kind: Kind,
    /// Key of the entry: one found under another name is invalid.
    key: String,
    /// Length and checksum of each file.
    files: FxHashMap<String, (u64, String)>,
}

impl Cache {
    /// Opens the user's cache: `TAFFETA_CACHE_DIR`, else `taffeta` in `XDG_CACHE_HOME` or `~/.cache`. If that cannot be
    /// used, opens a temporary directory of this process. The second component is a warning for the user, given once.
    ///
    /// # Errors
    ///
    /// Not even a temporary directory can be made.
    pub fn open() -> Result<(Cache, Option<Diagnostic>), Diagnostic> {
        let warning = match default_dir().map(|dir| Cache::open_at(&dir)) {
            Some(Ok((cache, told))) => match private::takes_files(&cache.dir.join(MAKING)) {
                Ok(()) => return Ok((cache, told)),
                Err(d) => d,
            },
            Some(Err(d)) => d,
            None => Diagnostic::new("cache::nowhere", "neither TAFFETA_CACHE_DIR nor XDG_CACHE_HOME nor HOME is set"),
        };
        let warning = warning.note("compiled programs are kept for this run only");
        let mut stands_in = STANDS_IN.lock().unwrap_or_else(PoisonError::into_inner);
        // A forked child makes its own replacement, since the parent removes the one that it made.
        if stands_in.as_ref().is_none_or(|s| s.process != std::process::id()) {
            let dir = Folder::new("taffeta-cache-")
                .map_err(|e| Diagnostic::new("cache::nowhere", format!("cannot make a temporary directory: {e}")))?;
            // Forget the parent's folder: dropping it in the child would remove it.
            std::mem::forget(stands_in.replace(StandsIn { process: std::process::id(), dir, told: Vec::new() }));
        }
        let Some(stands_in) = stands_in.as_mut() else { unreachable!("the replacement was made") };
        let (cache, _) = Cache::open_at(stands_in.dir.path())?;
        let new = !stands_in.told.contains(&warning.message);
        stands_in.told.extend(new.then(|| warning.message.clone()));
        Ok((cache, new.then_some(warning)))
    }

    /// Opens the cache in `dir`, creating the directory if necessary. The second component is a warning for the user:
    /// others could write the cache, so its contents were discarded.
    ///
    /// # Errors
    ///
    /// The directory cannot be made or written (`cache::unusable`), or others can write it or one of its parents, and
    /// the permissions are not ours to change (`cache::unsafe`).
    pub fn open_at(dir: &Path) -> Result<(Cache, Option<Diagnostic>), Diagnostic> {
        let Opened { dir, owner, discarded } = private::open(dir)?;
        let warning = discarded.map(|why| {
            let what = format!("discarded the contents of the cache `{}`: {why}", dir.display());
            Diagnostic::new("cache::discarded", what)
                .help("compiled programs run with your permissions, so only you may write them; they are recompiled")
        });
        Ok((Cache { dir, owner, limit: DEFAULT_LIMIT }, warning))
    }

    /// Limits the cache to this number of bytes; least recently used entries make room for new ones.
    #[must_use]
    pub fn limited(self, bytes: u64) -> Cache {
        Cache { limit: bytes, ..self }
    }

    /// Returns the directory of the cache.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns the directory of the entry with this key, if it exists and all of its files are intact.
    pub fn get(&self, key: &str) -> Option<PathBuf> {
        self.find_intact(key, Kind::Data)
    }

    /// Returns the directory of the entry with this key, which `make` fills if there is none.
    ///
    /// # Errors
    ///
    /// Those of `make`; the cache cannot be written.
    pub fn get_or_make(
        &self,
        key: &str,
        make: impl FnOnce(&Path) -> Result<(), Diagnostic>,
    ) -> Result<PathBuf, Diagnostic> {
        self.find_or_make(key, Kind::Data, make)
    }

    fn place(&self, key: &str) -> PathBuf {
        self.dir.join(ENTRIES).join(file_name(key))
    }

    /// Finds an entry of this kind and verifies it against its list: exactly the listed files, each intact, and none
    /// that another user could have written.
    fn find_intact(&self, key: &str, kind: Kind) -> Option<PathBuf> {
        let dir = self.place(key);
        self.owner.private_dir(&dir).ok()?;
        let list_file = dir.join(LIST);
        let list: List = serde_json::from_slice(&self.owner.read(&list_file).ok()?).ok()?;
        if list.kind != kind || list.key != key || list.files.is_empty() {
            return None;
        }
        let mut found = 0;
        for file in std::fs::read_dir(&dir).ok()? {
            let name = file.ok()?.file_name().into_string().ok()?;
            if name != LIST {
                let (length, sum) = list.files.get(&name)?;
                let data = self.owner.read(&dir.join(&name)).ok()?;
                if data.len() as u64 != *length || checksum(&data) != *sum {
                    return None;
                }
                found += 1;
            }
        }
        if found != list.files.len() {
            return None;
        }
        // The list's modification time records the last use. If it cannot be written, the entry keeps its age.
        let _ = std::fs::File::open(&list_file).and_then(|f| f.set_modified(SystemTime::now()));
        Some(dir)
    }

    /// Returns the directory of an intact entry. If there is none, `make` fills a scratch directory, which is sealed
    /// and renamed into place.
    fn find_or_make(
        &self,
        key: &str,
        kind: Kind,
        make: impl FnOnce(&Path) -> Result<(), Diagnostic>,
    ) -> Result<PathBuf, Diagnostic> {
        if let Some(dir) = self.find_intact(key, kind) {
            return Ok(dir);
        }
        let refuse = |e: std::io::Error| {
            Diagnostic::new("cache::write", format!("cannot write to the cache `{}`: {e}", self.dir.display()))
                .help("make room, or set TAFFETA_CACHE_DIR to another directory")
        };
        self.remove_leftovers();
        let scratch = self.scratch().map_err(refuse)?;
        match make(scratch.files()) {
            Ok(()) => {}
            // The generated files, with the log, are needed to find the mistake.
            Err(d) if d.code.starts_with("internal::") => {
                return Err(match self.keep_failed(scratch.files()) {
                    Ok(kept) => d.note(format!("the generated files are in {}", kept.display())),
                    Err(e) => d.note(format!("the generated files could not be kept: {e}")),
                });
            }
            Err(d) => return Err(d),
        }
        let size = self.seal(scratch.files(), key, kind).map_err(refuse)?;
        let place = self.place(key);
        while std::fs::rename(scratch.files(), &place).is_err() {
            // Another process was faster, or the entry in this place is broken.
            if let Some(dir) = self.find_intact(key, kind) {
                return Ok(dir);
            }
            self.discard(&place).map_err(refuse)?;
        }
        self.account(size, &place);
        Ok(place)
    }

    /// Writes the list of an entry's files, and revokes others' permissions. Returns the entry's size in bytes.
    fn seal(&self, dir: &Path, key: &str, kind: Kind) -> std::io::Result<u64> {
        let mut list = List { kind, key: key.to_string(), files: FxHashMap::default() };
        let mut size = 0;
        for file in std::fs::read_dir(dir)? {
            let file = file?;
            let name = file.file_name().into_string().map_err(|_| std::io::Error::other("a name that is not UTF-8"))?;
            private::close(&file.path())?;
            let data = self.owner.read(&file.path())?;
            size += data.len() as u64;
            list.files.insert(name, (data.len() as u64, checksum(&data)));
        }
        let text = serde_json::to_vec(&list)?;
        std::fs::write(dir.join(LIST), &text)?;
        private::close(&dir.join(LIST))?;
        Ok(size + text.len() as u64)
    }
}

/// Hashes everything that an entry depends on into a key.
pub fn key(parts: &[&str]) -> String {
    let mut hash = blake3::Hasher::new();
    for part in parts {
        // Length-prefixed, so that different divisions into parts differ.
        hash.update(&(part.len() as u64).to_le_bytes()).update(part.as_bytes());
    }
    hash.finalize().to_hex().to_string()
}

/// Returns the directory name of a key: plain words stand for themselves, anything else is hashed.
fn file_name(key_text: &str) -> String {
    let plain = !key_text.is_empty()
        && key_text.len() <= 100
        && key_text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
    if plain { key_text.to_string() } else { key(&[key_text]) }
}

fn checksum(data: &[u8]) -> String {
    blake3::hash(data).to_hex().to_string()
}

fn default_dir() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    set("TAFFETA_CACHE_DIR")
        .or_else(|| set("XDG_CACHE_HOME").filter(|p| p.is_absolute()).map(|p| p.join("taffeta")))
        .or_else(|| set("HOME").map(|p| p.join(".cache").join("taffeta")))
}
