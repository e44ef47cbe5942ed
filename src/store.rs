//! The compile cache: what a second run of the same program can skip.
//!
//! *Two kinds of entry.* A **manifest** is found by what is known before anything is parsed (the file's text, the
//! entry, the values of `static` parameters) and holds the entry's signature and which other files were read; with it,
//! inputs are read and checked without the front end. A **library** is found by all texts, the sizes that are compiled
//! in, the compiler with its flags and this machine's CPU, and is the compiled program with its own signature.
//!
//! *Stamps.* Every key has the version of Taffeta and the identity of the running program in it, so that a new compiler
//! never meets what an old one made. *May touch*: the cache's directory (`taffeta_codegen::cache` says why it is safe).

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
/// How often a library that another process removes before it is loaded is compiled again.
const ATTEMPTS: usize = 3;

/// What is known of an entry without the front end.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Manifest {
    /// The entry's name.
    pub entry: String,
    /// Its interface, with no size compiled in.
    pub signature: Signature,
    /// The other files that the program is made of, with the key of each text.
    pub imports: Vec<(PathBuf, String)>,
    /// The key of all texts.
    pub texts: String,
    /// Whether there is something to be said of its loops ([`crate::Session::warnings`]).
    pub warns: bool,
}

/// The cache of this process.
pub(crate) struct Store {
    cache: Cache,
}

impl Store {
    /// Opens the user's cache. One that cannot be written (a home that is not there, in containers and clusters), or
    /// that others could write, is not used, and the user is told, once.
    pub fn open() -> Result<Store, Error> {
        let system = |d: Diagnostic| Error::System(Report::without_sources(vec![d]));
        let limit = limit().map_err(system)?;
        Ok(Store { cache: opened().map_err(system)?.limited(limit) })
    }

    /// The cache itself.
    pub fn into_cache(self) -> Cache {
        self.cache
    }

    /// The manifest with that key, if none of the files changed.
    pub fn manifest(&self, key: &str) -> Option<Manifest> {
        let dir = self.cache.get(key)?;
        let manifest: Manifest = serde_json::from_slice(&std::fs::read(dir.join(MANIFEST)).ok()?).ok()?;
        let current =
            |(path, sum): &(PathBuf, String)| std::fs::read_to_string(path).is_ok_and(|t| cache::key(&[&t]) == *sum);
        manifest.imports.iter().all(current).then_some(manifest)
    }

    /// Keeps a manifest. Where that fails the next run is slower, and nothing else.
    pub fn keep_manifest(&self, key: &str, manifest: &Manifest) {
        let made = self.cache.get_or_make(key, |dir| write_json(&dir.join(MANIFEST), manifest));
        if let Err(d) = made {
            tell(&d);
        }
    }

    /// The library with that key, compiled from what `make` gives if there is none.
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

/// The user's cache, or what stands in for it; the user is told.
fn opened() -> Result<Cache, Diagnostic> {
    let (cache, problem) = Cache::open()?;
    // Without a home there is nowhere to keep anything, and nothing that anyone could have meant.
    if let Some(d) = problem.filter(|d| d.code != "cache::nowhere") {
        tell(&d);
    }
    Ok(cache)
}

/// `TAFFETA_CACHE_SIZE`: how much the cache may hold.
fn limit() -> Result<u64, Diagnostic> {
    let set = std::env::var("TAFFETA_CACHE_SIZE").ok().filter(|text| !text.trim().is_empty());
    let Some(text) = set else { return Ok(cache::DEFAULT_LIMIT) };
    taffeta_ast::bytes::parse(&text).map_err(|what| {
        Diagnostic::new("cache::size", format!("the environment variable TAFFETA_CACHE_SIZE: {what}"))
            .help("it is how much the cache of compiled programs may hold")
    })
}

/// Says what is not an error. The command line prints warnings; other programs do with them what they do with events.
fn tell(d: &Diagnostic) {
    let more = d.help.iter().chain(&d.notes).map(|text| format!("\n  {text}"));
    tracing::warn!("{}{}", d.message, more.collect::<String>());
}

fn write_json(path: &Path, value: &impl Serialize) -> Result<(), Diagnostic> {
    let failed = |e: String| Diagnostic::new("cache::write", format!("cannot write `{}`: {e}", path.display()));
    let text = serde_json::to_vec(value).map_err(|e| failed(e.to_string()))?;
    std::fs::write(path, text).map_err(|e| failed(e.to_string()))
}

/// The compiler with the flags that make it compute rightly: it was asked, now or by a run before (see
/// [`taffeta_codegen::probe`]). Without a cache that can be used it is asked each time.
///
/// # Errors
///
/// It does not work, or computes wrongly whatever is tried.
pub fn conforming(toolchain: Toolchain, options: &CompileOptions) -> Result<Toolchain, Diagnostic> {
    probe::conforming(toolchain, options, &opened()?, &stamp())
}

/// What tells one build of Taffeta from another.
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
