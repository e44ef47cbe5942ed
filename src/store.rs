//! Compile cache: manifests and libraries, with which a second run of a program skips compilation.
//!
//! A **manifest** is keyed by facts known before parsing (the file's text, the entry, its `static` parameters, gradient
//! and schedule) and holds the entry's signature and the list of imported files; with it, inputs are read and checked
//! without the front end. A **library** is keyed by all source texts, the entry with these options, the compiled-in
//! sizes, the types of index arrays, the compiler with its flags and this machine's CPU; it is the compiled program
//! with its own signature.
//!
//! Every key includes the version of Taffeta and the identity of the running executable, so that a new compiler never
//! loads entries of an old one. Writes only to the cache's directory (`taffeta_codegen::cache` explains why that is
//! safe).

use crate::error::{Error, Report};
use crate::timing::Timings;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;
use taffeta_ast::Diagnostic;
use taffeta_codegen::c::CSource;
use taffeta_codegen::cache::{self, Cache};
use taffeta_codegen::probe;
use taffeta_codegen::toolchain::{CompileOptions, Toolchain};
use taffeta_codegen::{Compiled, Signature};

const MANIFEST: &str = "manifest.json";
/// Maximum number of compilations of a library that other processes keep evicting before it is loaded.
const ATTEMPTS: usize = 3;

/// Manifest: the facts about an entry that are available without the front end.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Manifest {
    /// Name of the entry.
    pub entry: String,
    /// Interface, without compiled-in sizes.
    pub signature: Signature,
    /// Imported files, with the key of each text.
    pub imports: Vec<(PathBuf, String)>,
    /// Key of all texts.
    pub texts: String,
    /// Whether the loops have warnings ([`crate::Session::warnings`]).
    pub warns: bool,
}

/// User's cache, as this process opened it.
pub(crate) struct Store {
    cache: Cache,
}

impl Store {
    /// Opens the user's cache. A directory that is not writable (a missing home, in containers and clusters) or
    /// writable by others is replaced, with a single warning.
    pub fn open() -> Result<Store, Error> {
        let system = |d: Diagnostic| Error::System(Report::without_sources(vec![d]));
        let limit = limit().map_err(system)?;
        Ok(Store { cache: opened().map_err(system)?.limited(limit) })
    }

    /// Returns the underlying cache.
    pub fn into_cache(self) -> Cache {
        self.cache
    }

    /// Looks up a manifest; `None` if an imported file has changed.
    pub fn manifest(&self, key: &str) -> Option<Manifest> {
        let dir = self.cache.get(key)?;
        let manifest: Manifest = serde_json::from_slice(&std::fs::read(dir.join(MANIFEST)).ok()?).ok()?;
        let current =
            |(path, sum): &(PathBuf, String)| std::fs::read_to_string(path).is_ok_and(|t| cache::key(&[&t]) == *sum);
        manifest.imports.iter().all(current).then_some(manifest)
    }

    /// Stores a manifest. A failure only slows down the next run.
    pub fn keep_manifest(&self, key: &str, manifest: &Manifest) {
        let made = self.cache.get_or_make(key, |dir| write_json(&dir.join(MANIFEST), manifest));
        if let Err(d) = made {
            tell(&d);
        }
    }

    /// Loads a library, or compiles it from the C that `make` returns.
    pub fn library(
        &self,
        key: &str,
        options: &CompileOptions,
        toolchain: impl FnOnce() -> Result<Toolchain, Diagnostic>,
        timings: &mut Timings,
        make: impl FnOnce(&mut Timings) -> Result<CSource, Error>,
    ) -> Result<Compiled, Error> {
        let system = |d: Diagnostic| Error::System(Report::without_sources(vec![d]));
        if let Some(entry) = self.cache.library(key)
            && let Some(compiled) = timings.measure("load", || entry.load()).map_err(system)?
        {
            return Ok(compiled);
        }
        let source = make(timings)?;
        let toolchain = toolchain().map_err(system)?;
        let toolchain = timings
            .measure("probe", || probe::conforming(toolchain, options, &self.cache, &stamp()))
            .map_err(system)?;
        for _ in 0..ATTEMPTS {
            let made = timings.measure("C compiler", || self.cache.make_library(key, &source, &toolchain, options));
            if let Some(compiled) = timings.measure("load", || made?.load()).map_err(system)? {
                return Ok(compiled);
            }
        }
        let what = format!("compiled programs vanish from the cache `{}`", self.cache.dir().display());
        Err(system(Diagnostic::new("cache::broken", what).help("set TAFFETA_CACHE_DIR to another directory")))
    }
}

/// Opens the user's cache, or a substitute with a warning.
fn opened() -> Result<Cache, Diagnostic> {
    let (cache, problem) = Cache::open()?;
    // Without a home there is no place for a cache, and nothing to warn the user about.
    if let Some(d) = problem.filter(|d| d.code != "cache::nowhere") {
        tell(&d);
    }
    Ok(cache)
}

/// Reads the cache's maximum size from `TAFFETA_CACHE_SIZE`.
fn limit() -> Result<u64, Diagnostic> {
    let set = std::env::var("TAFFETA_CACHE_SIZE").ok().filter(|text| !text.trim().is_empty());
    let Some(text) = set else { return Ok(cache::DEFAULT_LIMIT) };
    taffeta_ast::bytes::parse(&text).map_err(|what| {
        Diagnostic::new("cache::size", format!("the environment variable TAFFETA_CACHE_SIZE: {what}"))
            .help("set it to the maximum size of the cache of compiled programs")
    })
}

/// Emits a warning. The command line prints it; other programs handle it as a tracing event.
fn tell(d: &Diagnostic) {
    let more = d.help.iter().chain(&d.notes).map(|text| format!("\n  {text}"));
    tracing::warn!("{}{}", d.message, more.collect::<String>());
}

fn write_json(path: &Path, value: &impl Serialize) -> Result<(), Diagnostic> {
    let failed = |e: String| Diagnostic::new("cache::write", format!("cannot write `{}`: {e}", path.display()));
    let text = serde_json::to_vec(value).map_err(|e| failed(e.to_string()))?;
    std::fs::write(path, text).map_err(|e| failed(e.to_string()))
}

/// Returns the compiler with workaround flags for its faults, as found by a probe in this process or a stored one (see
/// [`taffeta_codegen::probe`]). Without a usable cache, the probe runs each time.
///
/// # Errors
///
/// A compiler that does not work, or that computes wrongly with every workaround.
pub fn conforming(toolchain: Toolchain, options: &CompileOptions) -> Result<Toolchain, Diagnostic> {
    probe::conforming(toolchain, options, &opened()?, &stamp())
}

/// Returns the identity of this build of Taffeta.
pub(crate) fn stamp() -> String {
    let program = std::env::current_exe().ok().and_then(|p| std::fs::metadata(p).ok());
    let modified = program.as_ref().and_then(|m| m.modified().ok()).and_then(|t| t.duration_since(UNIX_EPOCH).ok());
    format!(
        "taffeta {} {} {}",
        env!("CARGO_PKG_VERSION"),
        program.map_or(0, |m| m.len()),
        modified.map_or(0, |t| t.as_nanos())
    )
}
