//! Object files of the C runtime in the cache, one for each compiler and its flags.

use super::{Cache, key};
use crate::c::{CSource, TAFFETA_H, TAFFETA_LEVELS_H, TAFFETA_RUNTIME_H};
use crate::toolchain::{CompileOptions, RuntimePart, Toolchain};
use std::path::PathBuf;
use taffeta_ast::Diagnostic;

impl Cache {
    /// Returns the object files of the runtime that a program is linked with, compiling those that are missing; none if
    /// they cannot be made.
    pub fn runtime(&self, source: &CSource, toolchain: &Toolchain, options: &CompileOptions) -> Vec<PathBuf> {
        let one = |part: &RuntimePart| -> Result<PathBuf, Diagnostic> {
            let texts = [TAFFETA_H, TAFFETA_RUNTIME_H, TAFFETA_LEVELS_H];
            let identity = toolchain.identity_with(options);
            let key = key(&[&["runtime", part.name(), &identity], &texts[..]].concat());
            let dir = self.get_or_make(&key, |dir| toolchain.object(*part, dir, options).map(drop))?;
            Ok(dir.join(format!("{}.o", part.name())))
        };
        let all: Result<Vec<PathBuf>, Diagnostic> = RuntimePart::of(source).iter().map(one).collect();
        all.unwrap_or_else(|d| {
            tracing::debug!("no object file of the runtime: {d}");
            Vec::new()
        })
    }
}
