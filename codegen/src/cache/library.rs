//! Libraries of the cache: made by the C compiler from generated code, found again, loaded.

#![allow(unsafe_code)] // `Compiled::load` runs what it loads

use super::{Cache, Kind};
use crate::c::CSource;
use crate::load::Compiled;
use crate::signature::Signature;
use crate::toolchain::{CompileOptions, Toolchain};
use libloading::Library;
use std::path::{Path, PathBuf};
use taffeta_ast::Diagnostic;

const SIGNATURE: &str = "signature.json";

/// A compiled program in the cache, ready to be loaded.
#[derive(Clone, Debug)]
pub struct LibraryEntry {
    /// Only this module writes it.
    dir: PathBuf,
}

impl Cache {
    /// The library with that key, if it is there and as it was made.
    pub fn library(&self, key: &str) -> Option<LibraryEntry> {
        self.whole(key, Kind::Library).map(|dir| LibraryEntry { dir })
    }

    /// The library with that key, compiled from `source` unless it is there.
    ///
    /// # Errors
    ///
    /// The compiler is missing, or refuses the code; the cache cannot be written.
    pub fn make_library(
        &self,
        key: &str,
        source: &CSource,
        toolchain: &Toolchain,
        options: &CompileOptions,
    ) -> Result<LibraryEntry, Diagnostic> {
        let stem = &source.signature.c_name;
        let dir = self.whole_or_made(key, Kind::Library, |dir| {
            Toolchain::write(source, dir, stem)?;
            let library = toolchain.shared(dir, stem, options)?;
            // What cannot be loaded is not kept.
            // SAFETY: made from this source just now, in a directory that is the user's alone.
            if let Err(d) = unsafe { Compiled::load(&library, source.signature.clone()) } {
                return Err(toolchain.unloadable(dir, options, loads, d));
            }
            write_signature(&dir.join(SIGNATURE), &source.signature)
        })?;
        Ok(LibraryEntry { dir })
    }
}

impl LibraryEntry {
    /// Loads the program. `None` if another process has removed the entry since it was found.
    ///
    /// # Errors
    ///
    /// A library that the system's loader does not take.
    pub fn load(&self) -> Result<Option<Compiled>, Diagnostic> {
        let broken = |what: String| {
            Diagnostic::new("cache::broken", format!("`{}`: {what}", self.dir.display())).help("remove the directory")
        };
        let text = match std::fs::read(self.dir.join(SIGNATURE)) {
            Ok(text) => text,
            Err(_) if !self.dir.exists() => return Ok(None),
            Err(e) => return Err(broken(e.to_string())),
        };
        let signature: Signature = serde_json::from_slice(&text).map_err(|e| broken(e.to_string()))?;
        let library = self.dir.join(format!("lib{}{}", signature.c_name, std::env::consts::DLL_SUFFIX));
        // SAFETY: an entry of this type is made by `make_library` alone, which compiles what `c::emit` made, and writes
        // the signature of the same program beside it. `whole` has compared every file with the checksum that it had
        // then, and found that the cache, what it lies in, the entry and each file can be written by nobody but the
        // user (and root).
        let loaded = unsafe { Compiled::load(&library, signature) };
        match loaded {
            Err(_) if !library.exists() => Ok(None),
            other => other.map(Some),
        }
    }
}

/// Whether the system's loader takes a library that the C compiler made of an empty function; else what it says.
fn loads(library: &Path) -> Result<(), String> {
    // SAFETY: it has no initialisers of its own, as the libraries that programs are compiled to.
    unsafe { Library::new(library) }.map(drop).map_err(|e| e.to_string())
}

fn write_signature(path: &Path, signature: &Signature) -> Result<(), Diagnostic> {
    let failed = |e: String| Diagnostic::new("cache::write", format!("cannot write `{}`: {e}", path.display()));
    let text = serde_json::to_vec(signature).map_err(|e| failed(e.to_string()))?;
    std::fs::write(path, text).map_err(|e| failed(e.to_string()))
}
