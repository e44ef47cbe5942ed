//! The C compiler, which makes shared libraries, static libraries and executables from generated C. It is found as the
//! `cc` crate finds it (`CC`, `CFLAGS` and their variants are respected), and run with a list of arguments, never
//! through a shell. Where compilation fails, `fault` attributes the failure: to the compiler, the user's environment,
//! or the generated code.

mod fault;
mod runtime;

use crate::c::{CSource, TAFFETA_GEMM_H, TAFFETA_H, TAFFETA_LEVELS_H, TAFFETA_RUNTIME_H};
use fault::{ToolOutcome, broken};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{LazyLock, Once};
use std::time::UNIX_EPOCH;
use taffeta_ast::Diagnostic;

pub use runtime::RuntimePart;

/// Libraries to link with: mathematics, and dynamic loading (`dlopen`).
const LIBRARIES: [&str; 2] = ["-lm", "-ldl"];

/// Options of compilation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CompileOptions {
    /// Code generation for the host CPU (`-march=native`), rather than for its whole architecture.
    pub native: bool,
    /// Contraction of a multiplication and an addition into one operation with one rounding.
    pub contract: bool,
    /// `-O3`, rather than `-Og`, which compiles in half of the time.
    pub optimize: bool,
    /// AddressSanitizer and UndefinedBehaviorSanitizer, which abort the process at the first error.
    pub sanitize: bool,
}

impl Default for CompileOptions {
    fn default() -> CompileOptions {
        CompileOptions { native: true, contract: true, optimize: true, sanitize: false }
    }
}

/// Files written by `taffeta build`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    /// The program in C.
    pub source: PathBuf,
    /// The declarations for callers.
    pub header: PathBuf,
    /// The published header included by `header`.
    pub taffeta_h: PathBuf,
}

/// One run of the compiler.
pub(crate) struct Job<'a> {
    /// Working directory, with the headers.
    pub dir: &'a Path,
    pub options: &'a CompileOptions,
    /// Flag for the kind of output; `None` for an executable.
    pub kind: Option<&'static str>,
    pub sources: &'a [PathBuf],
    /// Object files of the runtime to link with; without them, the program defines its functions.
    pub runtime: &'a [PathBuf],
    /// Output file.
    pub made: &'a Path,
}

/// A C compiler.
#[derive(Clone, Debug)]
pub struct Toolchain {
    program: PathBuf,
    /// Command as the user wrote it.
    command: String,
    /// Whether an environment variable names the compiler.
    named: bool,
    identity: String,
    /// Flags that work around miscompilation (see [`crate::probe`]).
    extra: Vec<String>,
    /// Flags that override those of the environment, and so stand after them.
    overruling: Vec<String>,
}

impl Toolchain {
    /// Finds the compiler without running it.
    ///
    /// # Errors
    ///
    /// No C compiler is found.
    pub fn find() -> Result<Toolchain, Diagnostic> {
        let set = |name: &&str| std::env::var(name).ok().filter(|s| !s.trim().is_empty());
        Toolchain::find_as(["CC", "HOST_CC", "TARGET_CC"].iter().find_map(set).as_deref())
    }

    /// Finds the compiler for this value of `CC`; `None` stands for an unset variable.
    pub(crate) fn find_as(wish: Option<&str>) -> Result<Toolchain, Diagnostic> {
        let command = wish.unwrap_or("cc");
        // `CC` may hold arguments, or a wrapper before the compiler: `ccache gcc`.
        let words: Vec<&str> = command.split_whitespace().collect();
        let program = words.first().and_then(|w| which(w)).or_else(|| which(command));
        let Some(program) = program else {
            let found = match wish {
                Some(cc) => format!("cannot find the C compiler `{cc}`, named by the environment variable CC"),
                None => "cannot find a C compiler: `cc` is not in PATH".to_string(),
            };
            return Err(Diagnostic::new("toolchain::missing", found).help(
                "install one (`apt-get install gcc libc6-dev` on Debian and Ubuntu), or set CC to the one to use",
            ));
        };
        let mut identity = String::from("1");
        for word in &words {
            identity.push_str(&format!("|{word}"));
            if let Some(meta) = which(word).and_then(|p| std::fs::metadata(p.canonicalize().ok()?).ok()) {
                let modified = meta.modified().ok().and_then(|t| t.duration_since(UNIX_EPOCH).ok());
                identity.push_str(&format!("@{}@{}", meta.len(), modified.map_or(0, |t| t.as_nanos())));
            }
        }
        for (name, value) in flag_variables() {
            identity.push_str(&format!("|{name}={value}"));
        }
        identity.push_str(&cpu());
        Ok(Toolchain {
            program,
            command: command.to_string(),
            named: wish.is_some(),
            identity,
            extra: Vec::new(),
            overruling: Vec::new(),
        })
    }

    /// Returns a string that identifies the compiler, its version, its flags and this machine's CPU, for cache keys.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// Returns the compiler's command as the user wrote it.
    pub fn command(&self) -> &str {
        &self.command
    }

    /// Adds flags of ours, before those of the environment.
    #[must_use]
    pub fn with_flags(mut self, flags: &[String]) -> Toolchain {
        self.extra.extend_from_slice(flags);
        self
    }

    /// Adds flags after those of the environment, which otherwise come last.
    #[must_use]
    pub fn overruled_by(mut self, flags: &[String]) -> Toolchain {
        self.overruling.extend_from_slice(flags);
        self
    }

    /// Returns the flags of the environment (`CFLAGS` and its variants), which come after ours.
    pub fn flags_of_user() -> String {
        // Order on the command line: the variables specific to this target come last, and so take precedence.
        flag_variables().into_iter().rev().map(|(_, value)| value).collect::<Vec<_>>().join(" ")
    }

    /// Returns the path of the compiler, or of the wrapper that runs it.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Returns the flags of every compilation, as `taffeta build` shows them.
    pub fn flags(options: &CompileOptions) -> Vec<&'static str> {
        let mut flags = vec!["-std=c99", "-fPIC", "-fwrapv", "-fno-math-errno", "-fno-trapping-math"];
        flags.push(if options.contract { "-ffp-contract=fast" } else { "-ffp-contract=off" });
        if options.sanitize {
            flags.extend([
                "-Og",
                "-g1",
                "-fsanitize=address,undefined,float-cast-overflow",
                "-fno-sanitize-recover=all",
            ]);
            return flags;
        }
        flags.push(if options.optimize { "-O3" } else { "-Og" });
        if options.native {
            flags.push(if cfg!(any(target_arch = "x86", target_arch = "x86_64")) {
                "-march=native"
            } else {
                "-mcpu=native"
            });
            if has_avx512() {
                flags.push("-mprefer-vector-width=512");
            }
        }
        flags
    }

    /// Writes the program and its headers into `dir`.
    ///
    /// # Errors
    ///
    /// The directory cannot be written.
    pub fn write(source: &CSource, dir: &Path, stem: &str) -> Result<Files, Diagnostic> {
        let files = Files {
            source: dir.join(format!("{stem}.c")),
            header: dir.join(format!("{stem}.h")),
            taffeta_h: dir.join("taffeta.h"),
        };
        write(&files.source, &source.code)?;
        write(&files.header, &source.header)?;
        write(&files.taffeta_h, TAFFETA_H)?;
        write(&dir.join("taffeta_runtime.h"), TAFFETA_RUNTIME_H)?;
        if source.products {
            write(&dir.join("taffeta_gemm.h"), TAFFETA_GEMM_H)?;
        }
        if source.levels {
            write(&dir.join("taffeta_levels.h"), TAFFETA_LEVELS_H)?;
        }
        Ok(files)
    }

    /// Compiles `dir/stem.c` to the shared library `dir/libstem.so`, linked with object files of the runtime
    /// ([`Toolchain::object`]); without any, the library has everything in one file.
    ///
    /// # Errors
    ///
    /// The compiler is missing, or refuses the code.
    pub fn shared(
        &self,
        dir: &Path,
        stem: &str,
        options: &CompileOptions,
        runtime: &[PathBuf],
    ) -> Result<PathBuf, Diagnostic> {
        let library = dir.join(format!("lib{stem}{}", std::env::consts::DLL_SUFFIX));
        let sources = &[dir.join(format!("{stem}.c"))];
        self.compile(&Job { dir, options, kind: Some("-shared"), sources, runtime, made: &library }, stem)?;
        Ok(library)
    }

    /// Compiles `dir/stem.c` to the static library `dir/libstem.a`.
    ///
    /// # Errors
    ///
    /// The compiler or `ar` is missing, or refuses the code.
    pub fn archive(&self, dir: &Path, stem: &str, options: &CompileOptions) -> Result<PathBuf, Diagnostic> {
        let object = dir.join(format!("{stem}.o"));
        let sources = &[dir.join(format!("{stem}.c"))];
        let job = Job { dir, options, kind: Some("-c"), sources, runtime: &[], made: &object };
        self.compile(&job, stem)?;
        let library = dir.join(format!("lib{stem}.a"));
        let mut ar = self.archiver(dir)?;
        // `ar` would keep the old members of an existing archive.
        let _ = std::fs::remove_file(&library);
        let made = run(ar.arg(&library).arg(&object), &library)?;
        // Our objects are ordinary, so a failure is the archiver's.
        if made.ok() {
            Ok(library)
        } else {
            Err(broken("the archiver `ar`", &made).help("repair it, or set AR to another one"))
        }
    }

    /// Compiles an executable from `sources` and `dir/stem.c`: drivers of tests and examples.
    ///
    /// # Errors
    ///
    /// The compiler is missing, or refuses the code.
    pub fn executable(
        &self,
        dir: &Path,
        stem: &str,
        sources: &[PathBuf],
        options: &CompileOptions,
    ) -> Result<PathBuf, Diagnostic> {
        self.linked(dir, stem, sources, options, &[])
    }

    /// Compiles an executable from `sources` and `dir/stem.c`, linked with object files of the runtime
    /// ([`Toolchain::object`]).
    ///
    /// # Errors
    ///
    /// The compiler is missing, or refuses the code.
    pub fn linked(
        &self,
        dir: &Path,
        stem: &str,
        sources: &[PathBuf],
        options: &CompileOptions,
        runtime: &[PathBuf],
    ) -> Result<PathBuf, Diagnostic> {
        let program = dir.join(format!("{stem}.bin"));
        let all: Vec<PathBuf> = sources.iter().cloned().chain([dir.join(format!("{stem}.c"))]).collect();
        self.compile(&Job { dir, options, kind: None, sources: &all, runtime, made: &program }, stem)?;
        Ok(program)
    }

    fn compile(&self, job: &Job<'_>, stem: &str) -> Result<(), Diagnostic> {
        // An object file may be gone, or be of no use with flags of the environment (`-flto`).
        if !job.runtime.is_empty() {
            return match self.run(self.tool(job, true)?.to_command(), job)?.ok() {
                true => Ok(()),
                false => self.compile(&Job { runtime: &[], ..*job }, stem),
            };
        }
        let tool = self.tool(job, true)?;
        let first = self.run(tool.to_command(), job)?;
        if first.ok() {
            return Ok(());
        }
        // Clang may be installed without OpenMP's run-time library: loops then run on one thread.
        if tool.is_like_clang() && self.run(self.tool(job, false)?.to_command(), job)?.ok() {
            static SAID: Once = Once::new();
            SAID.call_once(|| tracing::warn!("the C compiler has no OpenMP: parallel loops run on one thread"));
            return Ok(());
        }
        Err(self.fault(job, stem, &first)?)
    }

    /// Makes the compiler's command with our flags, followed by those of the environment.
    pub(crate) fn tool(&self, job: &Job<'_>, openmp: bool) -> Result<cc::Tool, Diagnostic> {
        let ours = self.ours(job, openmp);
        self.build(job.dir, ours).try_get_compiler().map_err(|e| missing("the C compiler", &e.to_string()))
    }

    /// Makes the archiver's command, to be followed by the archive and its members.
    pub(crate) fn archiver(&self, dir: &Path) -> Result<Command, Diagnostic> {
        let mut ar = self.build(dir, Vec::new()).try_get_archiver().map_err(|e| missing("ar", &e.to_string()))?;
        Ok(at_its_path(ar.arg("crs")))
    }

    /// Collects all flags but those of the environment.
    fn ours(&self, job: &Job<'_>, openmp: bool) -> Vec<OsString> {
        let mut all: Vec<OsString> = Toolchain::flags(job.options).iter().map(OsString::from).collect();
        all.extend(openmp.then(|| "-fopenmp".into()));
        all.extend((!job.runtime.is_empty()).then(|| runtime::LINKED.into()));
        all.extend(["-I".into(), job.dir.into()]);
        all.extend(self.extra.iter().map(OsString::from));
        all.extend(job.kind.map(OsString::from));
        all
    }

    /// Runs a compiler whose flags are set, on the sources of `job`.
    fn run(&self, mut compiler: Command, job: &Job<'_>) -> Result<ToolOutcome, Diagnostic> {
        compiler.args(&self.overruling).args(job.sources).args(job.runtime).arg("-o").arg(job.made);
        if job.kind != Some("-c") {
            compiler.args(LIBRARIES);
        }
        run(compiler.current_dir(job.dir).env("LC_ALL", "C"), job.made)
    }

    /// Configures the `cc` crate to find tools, with `flags` before those of the environment.
    fn build(&self, dir: &Path, flags: Vec<OsString>) -> cc::Build {
        /// The `cc` crate runs a compiler to learn its family, once for all clones of a configuration.
        static FAMILIES: LazyLock<cc::Build> = LazyLock::new(cc::Build::new);
        let triple = triple();
        let mut build = FAMILIES.clone();
        build
            .target(&triple)
            .host(&triple)
            .opt_level(3)
            .out_dir(dir)
            .flags(flags)
            .no_default_flags(true)
            .warnings(false)
            .cargo_metadata(false)
            .cargo_warnings(false)
            .cargo_debug(false);
        // By absolute path: to look a name up in PATH, the standard library forks, and OpenBLAS's fork handler ends its
        // threads; a product just begun by another thread of this process would wait for them forever.
        if self.program.is_absolute() && !self.command.contains(char::is_whitespace) {
            build.compiler(&self.program);
        }
        build
    }
}

/// Returns a command with its program's path for the name, as `Toolchain::build` does for the compiler.
fn at_its_path(command: &Command) -> Command {
    let path = command.get_program().to_str().and_then(which).filter(|p| p.is_absolute());
    let mut found = path.map_or_else(|| Command::new(command.get_program()), Command::new);
    found.args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => found.env(name, value),
            None => found.env_remove(name),
        };
    }
    found
}

/// Returns the target triple, by which the `cc` crate selects environment variables and defaults.
fn triple() -> String {
    format!("{}-unknown-{}-gnu", std::env::consts::ARCH, std::env::consts::OS)
}

/// Returns the names and values of the environment variables with flags for the C compiler that the `cc` crate reads,
/// as far as they are set.
fn flag_variables() -> Vec<(String, String)> {
    let triple = triple();
    let of_target = [format!("CFLAGS_{triple}"), format!("CFLAGS_{}", triple.replace(['-', '.'], "_"))];
    let names = of_target.into_iter().chain(["HOST_CFLAGS", "TARGET_CFLAGS", "CFLAGS"].map(String::from));
    let set = |name: String| std::env::var(&name).ok().filter(|v| !v.trim().is_empty()).map(|v| (name, v));
    names.filter_map(set).collect()
}

fn missing(what: &str, why: &str) -> Diagnostic {
    Diagnostic::new("toolchain::missing", format!("cannot use {what}: {why}")).help(
        "install one (`apt-get install gcc libc6-dev binutils` on Debian and Ubuntu), or set CC to the one to use",
    )
}

/// Runs a tool that is to make the file `made`.
fn run(command: &mut Command, made: &Path) -> Result<ToolOutcome, Diagnostic> {
    // Program and arguments only: `Command`'s own output includes environment variables, possibly with secrets.
    tracing::debug!(command = words(command), "running");
    // A stale file would be taken for the output of a run that failed.
    let _ = std::fs::remove_file(made);
    let output = command.output().map_err(|e| missing(&command.get_program().to_string_lossy(), &e.to_string()))?;
    Ok(ToolOutcome {
        command: words(command),
        status: output.status,
        said: String::from_utf8_lossy(&output.stderr).into_owned(),
        made: made.is_file(),
    })
}

/// Returns the command line, without quotes.
fn words(command: &Command) -> String {
    let all = std::iter::once(command.get_program()).chain(command.get_args());
    all.map(|w| w.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}

fn write(path: &Path, text: &str) -> Result<(), Diagnostic> {
    std::fs::write(path, text)
        .map_err(|e| Diagnostic::new("io::write", format!("cannot write `{}`: {e}", path.display())))
}

/// Resolves a command's name to a file. A path is taken as it is: running a file that is not executable reports the
/// error.
fn which(name: &str) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(|p| p.is_file());
    }
    which::which(name).ok()
}

#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
fn has_avx512() -> bool {
    std::arch::is_x86_feature_detected!("avx512f")
}

#[cfg(not(any(target_arch = "x86", target_arch = "x86_64")))]
fn has_avx512() -> bool {
    false
}

/// Returns a description of the CPU, on which `-march=native` depends.
fn cpu() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = |key: &str| info.lines().find(|l| l.starts_with(key)).unwrap_or_default().to_string();
    format!("|{}|{}|{}", std::env::consts::ARCH, line("model name"), line("flags"))
}
