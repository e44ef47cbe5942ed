//! What `taffeta doctor` shows: what there is on this machine to compile programs with, and whether it computes
//! rightly.

use crate::store::{Store, stamp};
use serde_json::{Value as Json, json};
use std::path::{Path, PathBuf};
use taffeta_ast::Diagnostic;
use taffeta_codegen::cache::Cache;
use taffeta_codegen::probe::{self, Facts, Verdict};
use taffeta_codegen::toolchain::{CompileOptions, Toolchain};

/// What was found.
#[derive(Debug)]
pub struct Findings {
    /// The version of Taffeta.
    pub taffeta: &'static str,
    /// The C compiler, if there is one.
    pub compiler: Option<CompilerFindings>,
    /// The bytes of a vector that programs are compiled for.
    pub vector_bytes: usize,
    /// The version of z3.
    pub z3: String,
    /// The version of isl.
    pub isl: String,
    /// Compiled programs that are kept.
    pub cache: Option<CacheFindings>,
    /// What this machine can run at once.
    pub threads: usize,
    /// What is missing or wrong, without which no program can be compiled.
    pub problems: Vec<Diagnostic>,
}

/// A C compiler that is there.
#[derive(Debug)]
pub struct CompilerFindings {
    /// As the user wrote it (`CC`), or `cc`.
    pub command: String,
    /// The file of that name.
    pub path: PathBuf,
    /// The flags that every program gets, with those that make up for a fault of the compiler.
    pub flags: Vec<String>,
    /// What the environment adds after these (`CFLAGS`), with the flags that undo what it breaks.
    pub added: String,
    /// What it has, if it works.
    pub facts: Option<Facts>,
    /// What it computes rightly and wrongly, if it works.
    pub verdict: Option<Verdict>,
}

/// The cache.
#[derive(Debug)]
pub struct CacheFindings {
    /// Where it is.
    pub dir: PathBuf,
    /// How many programs, manifests and verdicts are in it.
    pub entries: usize,
    /// The bytes of their files.
    pub bytes: u64,
}

/// Looks at everything that compiling and running needs.
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
    // Asked for by someone who may just have changed something: a verdict from before is not believed.
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

/// Entries of the cache and the bytes of their files. What cannot be read is not counted.
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
    /// All of it, for machines.
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
