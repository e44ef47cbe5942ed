//! Compiled programs, kept between runs.
//!
//! ```text
//!  DIR/entries/KEY/   files, and a list of them (`entry.json`: the key, names, lengths, checksums)
//!  DIR/making/        entries that are being made (`leftovers.rs`)
//!  DIR/failed/        what the C compiler refused, for whoever looks into it
//!  DIR/state          how much all of it takes (`limit.rs`)
//! ```
//!
//! An entry is made in `making` and renamed, so that other processes see all of it or nothing. One that does not fit
//! its list, file by file, is made again. Keys and checksums are BLAKE3's, so that nobody finds a program whose key is
//! that of another one.
//!
//! Loading a library runs its code, so nothing is taken from a directory that anybody else could have written
//! (`private.rs`): not the cache, not what it lies in, not an entry, not a file. `library.rs` loads.

mod leftovers;
mod library;
mod limit;
mod private;

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

/// How much a cache holds, unless it is told otherwise: some ten thousand programs.
pub const DEFAULT_LIMIT: u64 = 1_000_000_000;

/// A directory of compiled programs.
#[derive(Debug)]
pub struct Cache {
    dir: PathBuf,
    owner: Owner,
    limit: u64,
}

/// What is in the place of a cache that cannot be used, until the process ends.
struct StandsIn {
    process: u32,
    dir: Folder,
    /// What was said of caches that cannot be used.
    told: Vec<String>,
}

static STANDS_IN: Mutex<Option<StandsIn>> = Mutex::new(None);

/// What an entry is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Kind {
    /// Files that are read.
    Data,
    /// A library, which is loaded: only `library.rs` makes them.
    Library,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct List {
    kind: Kind,
    /// An entry under another name than its own is none.
    key: String,
    /// Length and checksum of each file.
    files: FxHashMap<String, (u64, String)>,
}

impl Cache {
    /// The user's cache: `TAFFETA_CACHE_DIR`, else `taffeta` in `XDG_CACHE_HOME` or `~/.cache`. Where that cannot be
    /// used, a temporary directory of this process. What the user should know of that is the second part, the first
    /// time.
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
        // A child that was forked has one of its own: its parent removes this one.
        if stands_in.as_ref().is_none_or(|s| s.process != std::process::id()) {
            let dir = Folder::new("taffeta-cache-")
                .map_err(|e| Diagnostic::new("cache::nowhere", format!("cannot make a temporary directory: {e}")))?;
            // The parent's is not the child's to remove, which dropping it would be.
            std::mem::forget(stands_in.replace(StandsIn { process: std::process::id(), dir, told: Vec::new() }));
        }
        let Some(stands_in) = stands_in.as_mut() else { unreachable!("it was made") };
        let (cache, _) = Cache::open_at(stands_in.dir.path())?;
        let new = !stands_in.told.contains(&warning.message);
        stands_in.told.extend(new.then(|| warning.message.clone()));
        Ok((cache, new.then_some(warning)))
    }

    /// The cache in `dir`, which is made if it is not there, and what the user should know of it: that others could
    /// write it, so that what it held was discarded.
    ///
    /// # Errors
    ///
    /// It cannot be made or written (`cache::unusable`), or others can write it or what it lies in, and that is not
    /// ours to change (`cache::unsafe`).
    pub fn open_at(dir: &Path) -> Result<(Cache, Option<Diagnostic>), Diagnostic> {
        let Opened { dir, owner, discarded } = private::open(dir)?;
        let warning = discarded.map(|why| {
            let what = format!("what the cache `{}` held was discarded: {why}", dir.display());
            Diagnostic::new("cache::discarded", what)
                .help("compiled programs run as you do, so nobody else may write them; programs are compiled again")
        });
        Ok((Cache { dir, owner, limit: DEFAULT_LIMIT }, warning))
    }

    /// With room for so many bytes; what was not used for longest makes room for what is new.
    #[must_use]
    pub fn limited(self, bytes: u64) -> Cache {
        Cache { limit: bytes, ..self }
    }

    /// Where it is.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The directory of the entry with that key, if there is one and all of its files are as they were made.
    pub fn get(&self, key: &str) -> Option<PathBuf> {
        self.whole(key, Kind::Data)
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
        self.whole_or_made(key, Kind::Data, make)
    }

    fn place(&self, key: &str) -> PathBuf {
        self.dir.join(ENTRIES).join(file_name(key))
    }

    /// An entry of that kind, if it is exactly what its list says: these files and no others, each as it was made, and
    /// nothing that anybody else could have written.
    fn whole(&self, key: &str, kind: Kind) -> Option<PathBuf> {
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
        // When it was used last. Where that cannot be written, it is as old as it was.
        let _ = std::fs::File::open(&list_file).and_then(|f| f.set_modified(SystemTime::now()));
        Some(dir)
    }

    fn whole_or_made(
        &self,
        key: &str,
        kind: Kind,
        make: impl FnOnce(&Path) -> Result<(), Diagnostic>,
    ) -> Result<PathBuf, Diagnostic> {
        if let Some(dir) = self.whole(key, kind) {
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
            // Its files, a log among them, are what somebody needs to see what is wrong.
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
            // Another process was faster, or what lies there is broken.
            if let Some(dir) = self.whole(key, kind) {
                return Ok(dir);
            }
            self.discard(&place).map_err(refuse)?;
        }
        self.account(size, &place);
        Ok(place)
    }

    /// Writes the list of an entry's files, and closes them to others. Gives what they take.
    fn seal(&self, dir: &Path, key: &str, kind: Kind) -> std::io::Result<u64> {
        let mut list = List { kind, key: key.to_string(), files: FxHashMap::default() };
        let mut size = 0;
        for file in std::fs::read_dir(dir)? {
            let file = file?;
            let name = file.file_name().into_string().map_err(|_| std::io::Error::other("a name that is not text"))?;
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

/// A key from everything that an entry depends on.
pub fn key(parts: &[&str]) -> String {
    let mut hash = blake3::Hasher::new();
    for part in parts {
        // With its length, so that parts cannot be cut elsewhere.
        hash.update(&(part.len() as u64).to_le_bytes()).update(part.as_bytes());
    }
    hash.finalize().to_hex().to_string()
}

/// Keys become names of directories: anything but a plain word is hashed.
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
