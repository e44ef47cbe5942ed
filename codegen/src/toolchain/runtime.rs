//! Functions of the C runtime that are not inlined, in object files. Compiled with every program, they take two thirds
//! of its time: 0.18 of 0.55 s are left for the product of a CSR matrix and a vector.

use super::{CompileOptions, Job, Toolchain, write};
use crate::c::{CSource, TAFFETA_H, TAFFETA_LEVELS_H, TAFFETA_RUNTIME_H};
use std::path::{Path, PathBuf};
use taffeta_ast::Diagnostic;

/// Flag of programs that are linked with the object files.
pub(super) const LINKED: &str = "-DTAFFETA_LINKED";

/// Header whose functions are in an object file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RuntimePart {
    /// `taffeta_runtime.h`.
    Runtime,
    /// `taffeta_levels.h`.
    Levels,
}

impl RuntimePart {
    /// Returns the parts that a program calls.
    pub fn of(source: &CSource) -> &'static [RuntimePart] {
        match source.levels {
            true => &[RuntimePart::Runtime, RuntimePart::Levels],
            false => &[RuntimePart::Runtime],
        }
    }

    /// Returns the name of the header without its ending.
    pub fn name(self) -> &'static str {
        match self {
            RuntimePart::Runtime => "taffeta_runtime",
            RuntimePart::Levels => "taffeta_levels",
        }
    }

    fn text(self) -> String {
        let macro_name = match self {
            RuntimePart::Runtime => "TAFFETA_RUNTIME_OBJECT",
            RuntimePart::Levels => "TAFFETA_LEVELS_OBJECT",
        };
        format!(
            "#define _POSIX_C_SOURCE 200112L\n#define TAFFETA_LINKED\n#define {macro_name}\n#include \"{}.h\"\n",
            self.name()
        )
    }
}

impl Toolchain {
    /// Compiles a part of the runtime to an object file in `dir`.
    ///
    /// # Errors
    ///
    /// The directory cannot be written; the compiler is missing, or refuses the code.
    pub fn object(&self, part: RuntimePart, dir: &Path, options: &CompileOptions) -> Result<PathBuf, Diagnostic> {
        write(&dir.join("taffeta.h"), TAFFETA_H)?;
        write(&dir.join("taffeta_runtime.h"), TAFFETA_RUNTIME_H)?;
        write(&dir.join("taffeta_levels.h"), TAFFETA_LEVELS_H)?;
        let (stem, object) = (part.name(), dir.join(format!("{}.o", part.name())));
        let source = dir.join(format!("{stem}.c"));
        write(&source, &part.text())?;
        let job = Job { dir, options, kind: Some("-c"), sources: &[source], runtime: &[], made: &object };
        self.compile(&job, stem)?;
        Ok(object)
    }

    /// Returns a string that identifies the compiler and all flags, for the keys of object files.
    pub(crate) fn identity_with(&self, options: &CompileOptions) -> String {
        let ours = Toolchain::flags(options).join(" ");
        format!("{}|{ours}|{}|{}", self.identity, self.extra.join(" "), self.overruling.join(" "))
    }
}
