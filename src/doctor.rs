//! Findings of `taffeta doctor`: the tools on this machine that compile programs, and whether the C compiler computes
//! correctly.

use crate::store::{Store, stamp};
use serde_json::{Value as Json, json};
use std::path::{Path, PathBuf};
use taffeta_ast::Diagnostic;
use taffeta_codegen::cache::Cache;
use taffeta_codegen::probe::{self, Facts, Verdict};
use taffeta_codegen::toolchain::{CompileOptions, Toolchain};

/// Results of the examination.
#[derive(Debug)]
pub struct Findings {
    /// Version of Taffeta.
    pub taffeta: &'static str,
    /// C compiler, if one exists.
    pub compiler: Option<CompilerFindings>,
    /// Vector width of compiled programs, in bytes.
    pub vector_bytes: usize,
    /// Version of z3.
    pub z3: String,
    /// Version of isl.
    pub isl: String,
    /// Cache of compiled programs.
    pub cache: Option<CacheFindings>,
    /// Number of hardware threads.
    pub threads: usize,
    /// Missing or faulty components without which no program can be compiled.
    pub problems: Vec<Diagnostic>,
}

/// Findings about the C compiler.
#[derive(Debug)]
pub struct CompilerFindings {
    /// Command as the user wrote it (`CC`), or `cc`.
    pub command: String,
    /// File of the command.
    pub path: PathBuf,
    /// Flags of every compilation, including workarounds for a fault of the compiler.
    pub flags: Vec<String>,
    /// Flags that the environment appends (`CFLAGS`), with the flags that undo their faults.
    pub added: String,
    /// Properties of the compiler; `None` if it does not work.
    pub facts: Option<Facts>,
    /// Verdict of the probe; `None` if the compiler does not work.
    pub verdict: Option<Verdict>,
}

/// Findings about the cache.
#[derive(Debug)]
pub struct CacheFindings {
    /// Folder of the cache.
    pub dir: PathBuf,
    /// Number of entries: programs, manifests and verdicts.
    pub entries: usize,
    /// Total size of the files in bytes.
    pub bytes: u64,
}

/// Examines everything that compiling and running require.
pub fn doctor() -> Findings {
    let mut problems = Vec::new();
    let cache = match Store::open() {
        Ok(store) => Some(store.into_cache()),
        Err(e) => {
            problems.extend(e.report().diagnostics.iter().cloned());
            None
        }
    };
    let compiler = match Toolchain::find() {
        Ok(toolchain) => Some(compiler(&toolchain, cache.as_ref(), &mut problems)),
        Err(d) => {
            problems.push(d);
            None
        }
    };
    let (z3, isl) = taffeta_analysis::versions();
    Findings {
        taffeta: env!("CARGO_PKG_VERSION"),
        compiler,
        vector_bytes: taffeta_codegen::lower::vector_bytes(false),
        z3,
        isl,
        cache: cache.map(|c| {
            let (mut entries, mut bytes) = (0, 0);
            count(c.dir(), &mut entries, &mut bytes);
            CacheFindings { dir: c.dir().to_path_buf(), entries, bytes }
        }),
        threads: std::thread::available_parallelism().map_or(1, usize::from),
        problems,
    }
}

fn compiler(toolchain: &Toolchain, cache: Option<&Cache>, problems: &mut Vec<Diagnostic>) -> CompilerFindings {
    let options = CompileOptions::default();
    let mut found = CompilerFindings {
        command: toolchain.command().to_string(),
        path: toolchain.program().to_path_buf(),
        flags: Toolchain::flags(&options).into_iter().map(str::to_string).collect(),
        added: Toolchain::flags_of_user(),
        facts: None,
        verdict: None,
    };
    // The user may just have changed something, so the probe runs anew instead of reading a stored verdict.
    match probe::ask(toolchain, &options) {
        Ok(verdict) => {
            if let Some(cache) = cache {
                probe::keep(&verdict, toolchain, &options, cache, &stamp());
            }
            let mending = verdict.workaround.clone().unwrap_or_default();
            match verdict.overrules {
                true => found.added = format!("{} {}", found.added, mending.join(" ")),
                false => found.flags.extend(mending),
            }
            problems.extend(verdict.refusal(toolchain.command()));
            found.verdict = Some(verdict);
        }
        Err(d) => {
            problems.push(d);
            return found;
        }
    }
    match probe::facts(toolchain, &options) {
        Ok(facts) => found.facts = Some(facts),
        Err(d) => problems.push(d),
    }
    found
}

/// Counts the entries of the cache and the bytes of their files, skipping unreadable files.
fn count(dir: &Path, entries: &mut usize, bytes: &mut u64) {
    for file in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let Ok(meta) = std::fs::symlink_metadata(file.path()) else { continue };
        if meta.is_dir() {
            count(&file.path(), entries, bytes);
        } else {
            *bytes += meta.len();
            *entries += usize::from(file.file_name() == "entry.json");
        }
    }
}

impl Findings {
    /// Returns the findings as JSON.
    pub fn json(&self) -> Json {
        let compiler = self.compiler.as_ref().map(|c| {
            let wrong = |v: &Verdict| -> Vec<Json> {
                v.wrong.iter().map(|w| json!({ "what": w.what, "found": w.found })).collect()
            };
            json!({
                "command": c.command,
                "path": c.path.display().to_string(),
                "kind": c.facts.as_ref().map(|f| &f.kind),
                "version": c.facts.as_ref().map(|f| &f.version),
                "flags": c.flags,
                "cflags": c.added,
                "openmp": c.facts.as_ref().and_then(|f| f.openmp.as_ref()),
                "openmp_threads": c.facts.as_ref().map(|f| f.threads),
                "libmvec": c.facts.as_ref().map(|f| f.libmvec),
                "blas": c.facts.as_ref().and_then(|f| f.blas.as_ref()),
                "probe": c.verdict.as_ref().map(|v| json!({ "wrong": wrong(v), "workaround": v.workaround })),
            })
        });
        json!({
            "taffeta": self.taffeta,
            "compiler": compiler,
            "vector_bytes": self.vector_bytes,
            "z3": self.z3,
            "isl": self.isl,
            "cache": self.cache.as_ref().map(|c| {
                json!({ "path": c.dir.display().to_string(), "entries": c.entries, "bytes": c.bytes })
            }),
            "threads": self.threads,
        })
    }
}
