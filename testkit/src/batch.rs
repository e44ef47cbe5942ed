//! Many programs in one translation unit and one library: starting the C compiler and reading the headers would take
//! most of the time.

#![allow(unsafe_code)] // `Compiled::load` runs the compiled code

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use taffeta_codegen::Compiled;
use taffeta_codegen::c::CSource;
use taffeta_codegen::cache::Cache;
use taffeta_codegen::toolchain::{CompileOptions, Toolchain};

/// Compiles entries together, into an empty directory. Their names must be distinct.
pub fn compile(sources: &[CSource], dir: &Path, flags: &CompileOptions) -> Result<Vec<Compiled>, String> {
    let Some(together) = join(sources) else { return Ok(Vec::new()) };
    Toolchain::write(&together, dir, "batch").map_err(|d| d.to_string())?;
    let compiler = Toolchain::find().map_err(|d| d.to_string())?;
    let runtime = runtime(&together, &compiler, flags);
    let library =
        compiler.shared(dir, "batch", flags, &runtime).map_err(|d| format!("the C compiler refuses it: {d:?}"))?;
    // SAFETY: the library was just built from this C, in a directory of this test.
    let load = |s: &CSource| unsafe { Compiled::load(&library, s.signature.clone()) };
    sources.iter().map(|s| load(s).map_err(|d| d.to_string())).collect()
}

/// Returns the object files of the runtime for a source, from the cache of all tests (`tmp` of the target folder).
pub fn runtime(source: &CSource, compiler: &Toolchain, flags: &CompileOptions) -> Vec<PathBuf> {
    let test = std::env::current_exe().expect("the test has a path");
    let target = test.ancestors().nth(3).expect("it is TARGET/PROFILE/deps/NAME");
    let (cache, _) = Cache::open_at(&target.join("tmp").join("taffeta-cache")).unwrap_or_else(|d| panic!("{d}"));
    cache.runtime(source, compiler, flags)
}

/// Joins entries with distinct names into one source; `None` if there are none.
pub fn join(sources: &[CSource]) -> Option<CSource> {
    let first = sources.first()?;
    let (products, levels) = (sources.iter().any(|s| s.products), sources.iter().any(|s| s.levels));
    // The run-time header is included once, so a macro that one program defines for it applies to all.
    const FIRST: [&str; 2] = ["#define TAFFETA_CONDITIONAL_LOADS\n", "#define TAFFETA_SELECTIONS\n"];
    let said = FIRST.iter().filter(|first| sources.iter().any(|s| s.code.contains(**first)));
    let code = FIRST.iter().fold(joined(sources), |code, first| code.replace(first, ""));
    Some(CSource { code: said.copied().collect::<String>() + &code, products, levels, ..first.clone() })
}

/// Joins several files into one, with a single copy of common helpers and includes.
fn joined(sources: &[CSource]) -> String {
    let (mut out, mut seen) = (String::new(), HashSet::new());
    for item in sources.iter().flat_map(|s| items(&s.code)) {
        if seen.insert(item.clone()) {
            out += &item;
        }
    }
    out
}

/// Splits a file into its top-level items: directives, declarations and functions.
fn items(code: &str) -> Vec<String> {
    let (mut out, mut item, mut inside) = (Vec::new(), String::new(), false);
    for line in code.lines() {
        item += line;
        item.push('\n');
        let first = !line.starts_with([' ', '#']);
        inside |= first && line.ends_with('{');
        let ends = match inside {
            // Labels, directives and empty lines in a body also begin in the first column, so only a brace ends the
            // item.
            true => line.starts_with('}'),
            false => {
                !line.ends_with('\\')
                    && !line.starts_with(' ')
                    && (item.starts_with('#') || line.is_empty() || [";", "*/", "}"].iter().any(|e| line.ends_with(e)))
            }
        };
        if ends {
            out.push(std::mem::take(&mut item));
            inside = false;
        }
    }
    out.push(item);
    out
}
