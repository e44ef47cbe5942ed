//! Attribution of compiler failures: to the compiler, to the flags or the compiler named by the user's environment, or
//! to the generated code. Each suspect is tested by leaving it out.

use super::{CompileOptions, Job, Toolchain, flag_variables, which, write};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use taffeta_ast::Diagnostic;

/// Outcome of running a tool.
pub(super) struct ToolOutcome {
    pub command: String,
    pub status: ExitStatus,
    /// Text on the tool's standard error.
    pub said: String,
    /// Whether the requested file exists.
    pub made: bool,
}

impl ToolOutcome {
    pub fn ok(&self) -> bool {
        self.status.success() && self.made
    }
}

impl Toolchain {
    /// Explains why the compiler refuses an entry's C (`dir/stem.c`); `first` is the outcome of compiling it.
    pub(super) fn fault(&self, job: &Job<'_>, stem: &str, first: &ToolOutcome) -> Result<Diagnostic, Diagnostic> {
        // A compiler that fails on an empty function is broken, whatever our code.
        let (probed, _) = self.probe(job.dir, job.options)?;
        if !probed.ok() {
            return Ok(self.useless(broken(&self.name(), &probed)));
        }
        let openmp = !self.tool(job, true)?.is_like_clang();
        let flags = flag_variables();
        if !flags.is_empty() && self.run(self.plain(job, openmp), job)?.ok() {
            return Ok(disliked(format!("the C compiler rejects the generated code with {}", list(&flags)), first)
                .note("it accepts the code without these flags")
                .help(format!("check {}, or unset it", names(&flags))));
        }
        let default = which("cc").filter(|cc| self.named && *cc != self.program);
        if let Some(cc) = default
            && self.run(with(Command::new(cc), self.ours(job, true)), job)?.ok()
        {
            return Ok(disliked(format!("{} rejects the generated code", self.name()), first)
                .note("`cc` accepts it")
                .help("unset CC, or set it to another compiler that supports C99, OpenMP and GNU extensions"));
        }
        Ok(refused(first, &job.dir.join(format!("{stem}.log"))))
    }

    /// Explains why a library that was just compiled cannot be loaded: returns `ours` if a library of an empty function
    /// can be loaded, and otherwise a diagnostic about the compiler.
    pub(crate) fn unloadable(
        &self,
        dir: &Path,
        options: &CompileOptions,
        loads: impl FnOnce(&Path) -> Result<(), String>,
        ours: Diagnostic,
    ) -> Diagnostic {
        let (probed, library) = match self.probe(dir, options) {
            Ok(found) => found,
            Err(d) => return d,
        };
        if !probed.ok() {
            return self.useless(broken(&self.name(), &probed));
        }
        match loads(&library) {
            Ok(()) => ours,
            Err(why) => {
                let what = format!("{} builds libraries that cannot be loaded", self.name());
                let d = Diagnostic::new("toolchain::broken", what).note(format!("command: {}", probed.command));
                self.useless(d.note(why))
            }
        }
    }

    /// Compiles an empty function to a library, with all flags.
    fn probe(&self, dir: &Path, options: &CompileOptions) -> Result<(ToolOutcome, PathBuf), Diagnostic> {
        let (source, library) = (dir.join("probe.c"), dir.join("probe.out"));
        write(&source, "int taffeta_probe(void) { return 0; }\n")?;
        let job = Job { dir, options, kind: Some("-shared"), sources: &[source], runtime: &[], made: &library };
        let mut tool = self.tool(&job, true)?;
        if tool.is_like_clang() {
            tool = self.tool(&job, false)?;
        }
        let ran = self.run(tool.to_command(), &job)?;
        Ok((ran, library))
    }

    /// Makes the compiler's command without the flags of the environment.
    fn plain(&self, job: &Job<'_>, openmp: bool) -> Command {
        let mut plain = Command::new(&self.program);
        // `CC` may be a path with spaces in it, or a program with arguments.
        if which(&self.command).is_none() {
            plain.args(self.command.split_whitespace().skip(1));
        }
        with(plain, self.ours(job, openmp))
    }

    pub(crate) fn name(&self) -> String {
        let from = if self.named { " (environment variable CC)" } else { "" };
        format!("the C compiler `{}`{from}", self.command)
    }

    fn useless(&self, d: Diagnostic) -> Diagnostic {
        let flags = flag_variables();
        let look = match flags.as_slice() {
            [] => String::new(),
            some => format!(", or check {}", list(some)),
        };
        d.help(format!(
            "repair it (`apt-get install gcc libc6-dev` on Debian and Ubuntu; OpenMP is needed), or set CC to another \
             one{look}"
        ))
    }
}

fn with(mut compiler: Command, flags: Vec<OsString>) -> Command {
    compiler.args(flags);
    compiler
}

/// Formats variables: `CFLAGS="-O2"`.
fn list(variables: &[(String, String)]) -> String {
    variables.iter().map(|(name, value)| format!("{name}=\"{value}\"")).collect::<Vec<_>>().join(" and ")
}

fn names(variables: &[(String, String)]) -> String {
    variables.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(" and ")
}

/// Makes the diagnostic for failures caused by the user's environment.
fn disliked(what: String, ran: &ToolOutcome) -> Diagnostic {
    let d = Diagnostic::new("toolchain::refused", what).note(format!("command: {}", ran.command));
    errors(ran).into_iter().fold(d, Diagnostic::note)
}

/// Returns the first three lines with errors.
fn errors(ran: &ToolOutcome) -> Vec<String> {
    let is_error = |l: &&str| l.contains("error") || l.contains("undefined reference");
    ran.said.lines().filter(is_error).take(3).map(String::from).collect()
}

/// Makes the diagnostic for a tool that does not work at all.
pub(super) fn broken(tool: &str, ran: &ToolOutcome) -> Diagnostic {
    let how = if ran.status.success() {
        "it succeeded, but wrote no file".to_string()
    } else {
        format!("it failed ({})", ran.status)
    };
    let d = Diagnostic::new("toolchain::broken", format!("{tool} does not work: {how}"));
    let d = d.note(format!("command: {}", ran.command));
    match ran.said.lines().filter(|l| !l.trim().is_empty()).take(5).collect::<Vec<_>>().as_slice() {
        [] => d.note("it printed no errors"),
        lines => d.note(format!("it printed: {}", lines.join("\n"))),
    }
}

/// Makes the diagnostic for generated code that a working compiler refuses, and writes the log.
fn refused(ran: &ToolOutcome, log: &Path) -> Diagnostic {
    let d = Diagnostic::new("internal::c", "the C compiler rejects the generated code")
        .help("this is a mistake in Taffeta, not in your program; keep the program, the log and what was printed");
    let d = match std::fs::write(log, format!("{}\n{}\n{}", ran.command, ran.status, ran.said)) {
        Ok(()) => d.note(format!("log: {}", log.display())),
        Err(_) => d,
    };
    errors(ran).into_iter().fold(d, Diagnostic::note)
}
