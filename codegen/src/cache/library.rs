//! Libraries in the cache: compiling them from generated code, finding and loading them.

#![allow(unsafe_code)] // `Compiled::load` runs the code that it loads

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
    /// Directory of the entry. Only this module sets the field, so the directory is known to hold a library.
    dir: PathBuf,
}

impl Cache {
    /// Finds the library with this key, if it exists and is intact.
    pub fn library(&self, key: &str) -> Option<LibraryEntry> {
        self.find_intact(key, Kind::Library).map(|dir| LibraryEntry { dir })
    }

    /// Returns the library with this key, compiling it from `source` if it is missing.
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
        let dir = self.find_or_make(key, Kind::Library, |dir| {
            Toolchain::write(source, dir, stem)?;
            let runtime = self.runtime(source, toolchain, options);
            let library = toolchain.shared(dir, stem, options, &runtime)?;
            // Test-load, since a library that cannot be loaded must not be cached.
            // SAFETY: the library was just compiled from this source, in a directory that only the user can access.
            if let Err(d) = unsafe { Compiled::load(&library, source.signature.clone()) } {
                return Err(toolchain.unloadable(dir, options, loads, d));
            }
            write_signature(&dir.join(SIGNATURE), &source.signature)
        })?;
        Ok(LibraryEntry { dir })
    }
}

impl LibraryEntry {
    /// Loads the program. Returns `None` if another process has removed the entry since it was found.
    ///
    /// # Errors
    ///
    /// A library that the system's loader refuses.
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
        // SAFETY: only `make_library` makes entries of this type; it compiles code made by `c::emit`, links it with
        // object files that are made and checked in the same way, and writes the signature of the same program beside
        // it. `find_intact` has compared every file with the checksum taken then, and found that only the user (and root)
        // can write the cache, its parent directories, the entry and each file.
        let loaded = unsafe { Compiled::load(&library, signature) };
        match loaded {
            Err(_) if !library.exists() => Ok(None),
            other => other.map(Some),
        }
    }
}

/// Checks that the system's loader takes `library`, which was compiled from an empty function.
fn loads(library: &Path) -> Result<(), String> {
    // SAFETY: the library has no initialisers of its own, as those compiled from programs.
    unsafe { Library::new(library) }.map(drop).map_err(|e| e.to_string())
}

fn write_signature(path: &Path, signature: &Signature) -> Result<(), Diagnostic> {
    let failed = |e: String| Diagnostic::new("cache::write", format!("cannot write `{}`: {e}", path.display()));
    let text = serde_json::to_vec(signature).map_err(|e| failed(e.to_string()))?;
    std::fs::write(path, text).map_err(|e| failed(e.to_string()))
}
