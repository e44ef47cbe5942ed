//! The C compiler: found as the `cc` crate finds it (`CC`, `CFLAGS` and their variants are respected), run with a list of
//! arguments and never through a shell.

use crate::c::{CSource, WEFT_H, WEFT_RUNTIME_H};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::UNIX_EPOCH;
use weft_ast::Diagnostic;

/// How a program is compiled.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CompileOptions {
    /// For the machine that compiles (`-march=native`), rather than for any of its architecture.
    pub native: bool,
    /// A multiplication and an addition may become one operation with one rounding.
    pub contract: bool,
    /// `-O3`, rather than as fast as the compiler itself can be.
    pub optimize: bool,
    /// With AddressSanitizer and UndefinedBehaviorSanitizer, which stop the process at the first error.
    pub sanitize: bool,
}

impl Default for CompileOptions {
    fn default() -> CompileOptions {
        CompileOptions { native: true, contract: true, optimize: true, sanitize: false }
    }
}

/// What `weft build` leaves in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    /// The program in C.
    pub source: PathBuf,
    /// The declarations for callers.
    pub header: PathBuf,
    /// The published header that it includes.
    pub weft_h: PathBuf,
}

/// A C compiler.
#[derive(Clone, Debug)]
pub struct Toolchain {
    program: PathBuf,
    identity: String,
}

impl Toolchain {
    /// Finds the compiler without running it.
    ///
    /// # Errors
    ///
    /// There is none.
    pub fn find() -> Result<Toolchain, Diagnostic> {
        let set = |name: &&str| std::env::var(name).ok().filter(|s| !s.trim().is_empty());
        Toolchain::find_as(["CC", "HOST_CC", "TARGET_CC"].iter().find_map(set).as_deref())
    }

    /// The compiler for that value of `CC`.
    fn find_as(wish: Option<&str>) -> Result<Toolchain, Diagnostic> {
        let command = wish.unwrap_or("cc");
        // `CC` may hold arguments, or a wrapper before the compiler: `ccache gcc`.
        let words: Vec<&str> = command.split_whitespace().collect();
        let program = words.first().and_then(|w| which(w)).or_else(|| which(command));
        let Some(program) = program else {
            let found = match wish {
                Some(cc) => format!("there is no C compiler `{cc}`, which the environment variable CC names"),
                None => "there is no C compiler: `cc` is not in PATH".to_string(),
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
        for name in ["CFLAGS", "HOST_CFLAGS", "TARGET_CFLAGS"] {
            identity.push_str(&format!("|{}", std::env::var(name).unwrap_or_default()));
        }
        identity.push_str(&cpu());
        Ok(Toolchain { program, identity })
    }

    /// Tells compilers, their versions and this machine's CPU apart; for keys of a cache.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// The compiler, or the wrapper that runs it.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Flags for every compilation, as `weft build` shows them.
    pub fn flags(options: &CompileOptions) -> Vec<&'static str> {
        let mut flags = vec!["-std=c99", "-fPIC", "-fwrapv", "-fno-math-errno", "-fno-trapping-math"];
        flags.push(if options.contract { "-ffp-contract=fast" } else { "-ffp-contract=off" });
        if options.sanitize {
            flags.extend([
                "-O1",
                "-g",
                "-fsanitize=address,undefined,float-cast-overflow",
                "-fno-sanitize-recover=all",
            ]);
            return flags;
        }
        flags.push(if options.optimize { "-O3" } else { "-O1" });
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
            weft_h: dir.join("weft.h"),
        };
        write(&files.source, &source.code)?;
        write(&files.header, &source.header)?;
        write(&files.weft_h, WEFT_H)?;
        write(&dir.join("weft_runtime.h"), WEFT_RUNTIME_H)?;
        Ok(files)
    }

    /// Compiles `dir/stem.c` to the shared library `dir/libstem.so`.
    ///
    /// # Errors
    ///
    /// The compiler is missing, or refuses the code.
    pub fn shared(&self, dir: &Path, stem: &str, options: &CompileOptions) -> Result<PathBuf, Diagnostic> {
        let library = dir.join(format!("lib{stem}{}", std::env::consts::DLL_SUFFIX));
        let mut args: Vec<OsString> = vec!["-shared".into()];
        args.extend([dir.join(format!("{stem}.c")).into(), "-o".into(), library.clone().into(), "-lm".into()]);
        self.compile(dir, stem, options, &args)?;
        Ok(library)
    }

    /// Compiles `dir/stem.c` to the static library `dir/libstem.a`.
    ///
    /// # Errors
    ///
    /// The compiler or `ar` is missing, or refuses the code.
    pub fn archive(&self, dir: &Path, stem: &str, options: &CompileOptions) -> Result<PathBuf, Diagnostic> {
        let object = dir.join(format!("{stem}.o"));
        let args: [OsString; 4] =
            ["-c".into(), dir.join(format!("{stem}.c")).into(), "-o".into(), object.clone().into()];
        self.compile(dir, stem, options, &args)?;
        let library = dir.join(format!("lib{stem}.a"));
        let mut ar = self.build(dir).try_get_archiver().map_err(|e| missing("ar", &e.to_string()))?;
        // An archive that is there already would keep its old members.
        let _ = std::fs::remove_file(&library);
        run(ar.arg("crs").arg(&library).arg(&object), &dir.join(format!("{stem}.log")))?;
        Ok(library)
    }

    /// Compiles a program of other C sources with an entry's (`dir/stem.c`): drivers of tests and examples.
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
        let program = dir.join(format!("{stem}.bin"));
        let mut args: Vec<OsString> = sources.iter().map(|p| p.clone().into()).collect();
        args.extend([dir.join(format!("{stem}.c")).into(), "-o".into(), program.clone().into(), "-lm".into()]);
        self.compile(dir, stem, options, &args)?;
        Ok(program)
    }

    fn compile(&self, dir: &Path, stem: &str, options: &CompileOptions, args: &[OsString]) -> Result<(), Diagnostic> {
        let tool = self.build(dir).try_get_compiler().map_err(|e| missing("the C compiler", &e.to_string()))?;
        let log = dir.join(format!("{stem}.log"));
        let command = |openmp: bool| {
            let mut c = tool.to_command();
            c.current_dir(dir).env("LC_ALL", "C").args(Self::flags(options));
            if openmp {
                c.arg("-fopenmp");
            }
            c.arg("-I").arg(dir).args(args);
            c
        };
        let first = run(&mut command(true), &log);
        // Clang comes without OpenMP's run-time library where that was not installed beside it: loops then run on one thread.
        if first.is_err() && tool.is_like_clang() && run(&mut command(false), &log).is_ok() {
            tracing::warn!("the C compiler has no OpenMP: parallel loops run on one thread");
            return Ok(());
        }
        first
    }

    fn build(&self, dir: &Path) -> cc::Build {
        let triple = format!("{}-unknown-{}-gnu", std::env::consts::ARCH, std::env::consts::OS);
        let mut build = cc::Build::new();
        build
            .target(&triple)
            .host(&triple)
            .opt_level(3)
            .out_dir(dir)
            .no_default_flags(true)
            .warnings(false)
            .cargo_metadata(false)
            .cargo_warnings(false)
            .cargo_debug(false);
        build
    }
}

fn missing(what: &str, why: &str) -> Diagnostic {
    Diagnostic::new("toolchain::missing", format!("cannot use {what}: {why}")).help(
        "install one (`apt-get install gcc libc6-dev binutils` on Debian and Ubuntu), or set CC to the one to use",
    )
}

fn run(command: &mut Command, log: &Path) -> Result<(), Diagnostic> {
    tracing::debug!(?command, "running");
    let output = command.output().map_err(|e| missing(&command.get_program().to_string_lossy(), &e.to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    let text = format!("{command:?}\n{}\n{errors}", output.status);
    let mut d = Diagnostic::new("internal::c", "the C compiler refused the generated code")
        .help("this is a mistake in Weft, not in your program; please report it with the log");
    if std::fs::write(log, text).is_ok() {
        d = d.note(format!("log: {}", log.display()));
    }
    for line in errors.lines().filter(|l| l.contains("error") || l.contains("undefined reference")).take(3) {
        d = d.note(line.to_string());
    }
    Err(d)
}

fn write(path: &Path, text: &str) -> Result<(), Diagnostic> {
    std::fs::write(path, text)
        .map_err(|e| Diagnostic::new("io::write", format!("cannot write `{}`: {e}", path.display())))
}

/// The file that a command's name stands for.
fn which(name: &str) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(|p| p.is_file());
    }
    std::env::split_paths(&std::env::var_os("PATH")?).map(|dir| dir.join(name)).find(|p| p.is_file())
}

#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
fn has_avx512() -> bool {
    std::arch::is_x86_feature_detected!("avx512f")
}

#[cfg(not(any(target_arch = "x86", target_arch = "x86_64")))]
fn has_avx512() -> bool {
    false
}

/// What `-march=native` depends on.
fn cpu() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = |key: &str| info.lines().find(|l| l.starts_with(key)).unwrap_or_default().to_string();
    format!("|{}|{}|{}", std::env::consts::ARCH, line("model name"), line("flags"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compiler_that_is_not_there_is_named() {
        let missing = Toolchain::find_as(Some("no-such-compiler -O2")).expect_err("there is none of that name");
        assert_eq!(missing.code, "toolchain::missing");
        let expected = "there is no C compiler `no-such-compiler -O2`, which the environment variable CC names";
        assert_eq!(missing.message, expected);
        assert!(missing.help.is_some_and(|h| h.contains("apt-get install")));
    }

    #[test]
    fn identities_tell_compilers_apart() {
        // Any two programs do; they are not run.
        let of = |cc: &str| Toolchain::find_as(Some(cc)).expect("it is there").identity().to_string();
        assert_ne!(of("/bin/sh"), of("/bin/ls"));
        assert_ne!(of("/bin/sh"), of("/bin/sh -m32"));
        assert_eq!(of("/bin/sh"), of("/bin/sh"));
    }

    #[test]
    fn values_are_never_reassociated() {
        for options in [CompileOptions::default(), CompileOptions { sanitize: true, ..CompileOptions::default() }] {
            let flags = Toolchain::flags(&options);
            assert!(flags.contains(&"-fwrapv"));
            assert!(
                flags.iter().all(|f| !f.contains("fast-math") && !f.contains("associative") && !f.contains("finite"))
            );
        }
    }
}
