//! Facts about a compiler and the machine, reported by a small program, for `taffeta doctor`.

use super::{failed, finished};
use crate::c::{TAFFETA_GEMM_H, TAFFETA_H, TAFFETA_RUNTIME_H};
use crate::temporary::Folder;
use crate::toolchain::{CompileOptions, Toolchain};
use std::collections::BTreeMap;
use taffeta_ast::Diagnostic;

/// Facts that `taffeta doctor` shows of a working compiler.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Family of the compiler: `gcc`, `clang`, or another name.
    pub kind: String,
    /// Version as the compiler reports it.
    pub version: String,
    /// Version of OpenMP; `None` where loops run on one thread.
    pub openmp: Option<String>,
    /// Number of threads that OpenMP starts for a parallel loop.
    pub threads: usize,
    /// Whether mathematical functions have vector versions.
    pub libmvec: bool,
    /// Library for matrix products (`as_lib`); `None` for our own kernel.
    pub blas: Option<String>,
}

/// Compiles and runs the reporting program.
///
/// # Errors
///
/// The compiler does not work.
pub fn facts(toolchain: &Toolchain, options: &CompileOptions) -> Result<Facts, Diagnostic> {
    let dir = Folder::new("taffeta-facts-").map_err(failed)?;
    let files = [
        ("facts.c", include_str!("facts.c")),
        ("taffeta.h", TAFFETA_H),
        ("taffeta_runtime.h", TAFFETA_RUNTIME_H),
        ("taffeta_gemm.h", TAFFETA_GEMM_H),
    ];
    for (name, text) in files {
        std::fs::write(dir.path().join(name), text).map_err(failed)?;
    }
    let binary = toolchain.executable(dir.path(), "facts", &[], options)?;
    let (status, output) = finished(&binary).map_err(failed)?;
    if !status.is_some_and(|s| s.success()) {
        let how = status.map_or("it does not terminate".to_string(), |s| s.to_string());
        let message = format!("a program compiled by `{}` does not run: {how}", toolchain.command());
        return Err(Diagnostic::new("toolchain::broken", message).help("set CC to another compiler"));
    }
    Ok(read(&String::from_utf8_lossy(&output)))
}

/// Parses the program's output.
pub fn read(text: &str) -> Facts {
    let all: BTreeMap<&str, &str> = text.lines().filter_map(|l| l.split_once(' ')).collect();
    let get = |name: &str| all.get(name).map_or("", |v| v.trim());
    Facts {
        kind: if get("kind").is_empty() { "a compiler" } else { get("kind") }.to_string(),
        version: get("version").to_string(),
        openmp: openmp(get("openmp")),
        threads: get("threads").parse().unwrap_or(1),
        libmvec: get("libmvec") == "1",
        blas: Some(get("blas").to_string()).filter(|b| !b.is_empty()),
    }
}

/// Returns the OpenMP version for a value of `_OPENMP`, which is the month of its specification.
fn openmp(month: &str) -> Option<String> {
    let name = match month {
        "" | "0" => return None,
        "201107" => "3.1",
        "201307" => "4.0",
        "201511" => "4.5",
        "201811" => "5.0",
        "202011" => "5.1",
        "202111" => "5.2",
        "202411" => "6.0",
        other => return Some(format!("of {other}")),
    };
    Some(name.to_string())
}
