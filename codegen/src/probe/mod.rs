//! Tests of a C compiler for miscompilation, once for each combination of compiler, flags and CPU.
//!
//! Compilers have bugs, and `CFLAGS` may hold flags that change arithmetic (`-ffast-math`); both would silently give
//! wrong numbers. Before the first program, a small one (`checks`) is compiled with exactly the flags of programs and
//! run in a process of its own, and its results are compared with the reference interpreter's. Where results differ,
//! flags that are known to help are tried in the same way, and used if they do. If none helps, the compiler is refused,
//! with a list of the wrong results.
//!
//! The verdict is kept in the cache. Programs in the cache were made by a compiler that had passed, so a warm cache
//! runs no probe.
//!
//! Two more programs are compiled and run in the same way: `facts` reports about the compiler for `taffeta doctor`, and
//! `machine` measures the costs from which automatic schedules are chosen.

pub(crate) mod checks;
pub(crate) mod facts;
pub(crate) mod machine;

pub use checks::Wrong;
pub use facts::{Facts, facts};
pub use machine::{Areas, Measured, measure, program_key};

use crate::cache::{self, Cache};
use crate::temporary::Folder;
use crate::toolchain::{CompileOptions, RuntimePart, Toolchain};
use crate::{LowerOptions, c, lower};
use checks::Program;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};
use taffeta_ast::{Buffer, Diagnostic, SourceMap};

/// Flags that work around known miscompilations, in the order of trial: cheapest first.
const WORKAROUNDS: [&str; 6] = [
    "-DTAFFETA_NO_LIBMVEC",
    "-mno-avx512fp16",
    "-fno-fast-math",
    "-fno-tree-loop-if-convert",
    "-fno-tree-vectorize",
    "-O1",
];

/// Time limit of a program; the probe needs a few milliseconds, the longest measurement half a second.
const MAX_TIME: Duration = Duration::from_secs(20);

const VERDICT: &str = "verdict.json";

/// Outcome of the probe.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// Wrong results with the flags that programs would get.
    pub wrong: Vec<Wrong>,
    /// Flags that make the compiler correct: empty if nothing is wrong, `None` if no known flags help.
    pub workaround: Option<Vec<String>>,
    /// Whether `workaround` overrides flags of the environment (`CFLAGS`), and so stands after them.
    pub overrules: bool,
}

impl Verdict {
    /// Returns whether programs may be compiled.
    pub fn is_usable(&self) -> bool {
        self.workaround.is_some()
    }

    /// Adds flags to a compiler, in the position that the verdict demands.
    fn placed(&self, toolchain: Toolchain, flags: &[String]) -> Toolchain {
        if self.overrules { toolchain.overruled_by(flags) } else { toolchain.with_flags(flags) }
    }

    /// Makes the diagnostic for a compiler that must not be used; `None` if it may be.
    pub fn refusal(&self, compiler: &str) -> Option<Diagnostic> {
        if self.is_usable() {
            return None;
        }
        const TOLD: usize = 5;
        let what: Vec<&str> = self.wrong.iter().take(TOLD).map(|w| w.what.as_str()).collect();
        let more = if self.wrong.len() > TOLD { " and more" } else { "" };
        let text = format!("the C compiler `{compiler}` computes wrong results: {}{more}", what.join(", "));
        let mut d = Diagnostic::new("toolchain::wrong", text);
        for w in self.wrong.iter().take(TOLD) {
            d = d.note(format!("{}: {}", w.what, w.found));
        }
        let help = "set CC to another compiler, or check CFLAGS; no known flags correct the results";
        Some(d.help(help))
    }
}

/// Returns the compiler with the flags that make it correct. `stamp` distinguishes builds of Taffeta.
///
/// # Errors
///
/// The compiler does not work, or computes wrongly with all known flags.
pub fn conforming(
    toolchain: Toolchain,
    options: &CompileOptions,
    cache: &Cache,
    stamp: &str,
) -> Result<Toolchain, Diagnostic> {
    let verdict = verdict(&toolchain, options, cache, stamp)?;
    if let Some(refusal) = verdict.refusal(toolchain.command()) {
        return Err(refusal);
    }
    let flags = verdict.workaround.as_deref().unwrap_or_default();
    if !flags.is_empty() {
        let what: Vec<&str> = verdict.wrong.iter().map(|w| w.what.as_str()).collect();
        tracing::info!(flags = flags.join(" "), wrong = what.join(", "), "the C compiler needs workarounds");
    }
    Ok(verdict.placed(toolchain, flags))
}

/// Returns the verdict on a compiler, from the cache or by running the probe.
///
/// # Errors
///
/// The compiler does not work at all.
pub fn verdict(
    toolchain: &Toolchain,
    options: &CompileOptions,
    cache: &Cache,
    stamp: &str,
) -> Result<Verdict, Diagnostic> {
    let read = |dir: &Path| serde_json::from_slice::<Verdict>(&std::fs::read(dir.join(VERDICT)).ok()?).ok();
    if let Some(verdict) = cache.get(&key(toolchain, options, stamp)).and_then(|dir| read(&dir)) {
        return Ok(verdict);
    }
    let verdict = ask(toolchain, options)?;
    keep(&verdict, toolchain, options, cache, stamp);
    Ok(verdict)
}

fn key(toolchain: &Toolchain, options: &CompileOptions, stamp: &str) -> String {
    cache::key(&["probe", stamp, toolchain.identity(), &Toolchain::flags(options).join(" ")])
}

/// Stores a verdict in the cache.
pub fn keep(verdict: &Verdict, toolchain: &Toolchain, options: &CompileOptions, cache: &Cache, stamp: &str) {
    let kept = cache.get_or_make(&key(toolchain, options, stamp), |dir| {
        let failed = |e: String| Diagnostic::new("cache::write", format!("cannot cache the compiler probe: {e}"));
        let text = serde_json::to_vec(&verdict).map_err(|e| failed(e.to_string()))?;
        std::fs::write(dir.join(VERDICT), text).map_err(|e| failed(e.to_string()))
    });
    // If the verdict cannot be stored, the next program merely probes the compiler again.
    if let Err(d) = kept {
        tracing::warn!("{d}");
    }
}

/// Compiles and runs the probe, and tries workarounds for wrong results.
///
/// # Errors
///
/// The compiler does not work at all.
pub fn ask(toolchain: &Toolchain, options: &CompileOptions) -> Result<Verdict, Diagnostic> {
    let start = Instant::now();
    let probe = Probe::new()?;
    let by_part = probe.run(&probe.all(), toolchain, options)?;
    let suspects: Vec<usize> = probe.all().into_iter().filter(|k| !by_part[*k].is_empty()).collect();
    let wrong: Vec<Wrong> = by_part.into_iter().flatten().collect();
    tracing::debug!(ms = start.elapsed().as_millis() as u64, wrong = wrong.len(), "probed the C compiler");
    let mut verdict = Verdict { workaround: wrong.is_empty().then(Vec::new), wrong, overrules: false };
    // The environment's flags come last, unless they cause the wrong results.
    let places = if Toolchain::flags_of_user().is_empty() { &[false][..] } else { &[false, true] };
    for overrules in places {
        if verdict.workaround.is_none() {
            verdict.overrules = *overrules;
            verdict.workaround = probe.workaround(toolchain, options, &verdict, &suspects);
        }
    }
    Ok(verdict)
}

/// The probe's program in C, in parts.
struct Probe(Vec<ProbePart>);

impl Probe {
    fn new() -> Result<Probe, Diagnostic> {
        Program::parts().into_iter().map(ProbePart::new).collect::<Result<_, _>>().map(Probe)
    }

    /// Returns the numbers of all parts.
    fn all(&self) -> Vec<usize> {
        (0..self.0.len()).collect()
    }

    /// Finds flags with which the compiler passes the probe, in the position that the verdict demands: a single flag,
    /// else all flags that the compiler accepts. `suspects` are the parts that went wrong without them.
    fn workaround(
        &self,
        toolchain: &Toolchain,
        options: &CompileOptions,
        verdict: &Verdict,
        suspects: &[usize],
    ) -> Option<Vec<String>> {
        let others: Vec<usize> = self.all().into_iter().filter(|k| !suspects.contains(k)).collect();
        let passes = |flags: &[String]| -> Result<bool, Diagnostic> {
            let with = verdict.placed(toolchain.clone(), flags);
            let right = |parts: &[usize]| self.run(parts, &with, options).map(|wrong| wrong.iter().all(Vec::is_empty));
            Ok(right(suspects)? && right(&others)?)
        };
        let mut taken: Vec<String> = Vec::new();
        for flag in WORKAROUNDS {
            let flags = vec![flag.to_string()];
            match passes(&flags) {
                Ok(true) => return Some(flags),
                Ok(false) => taken.extend(flags),
                // The compiler does not know this flag.
                Err(_) => {}
            }
        }
        passes(&taken).is_ok_and(|passes| passes).then_some(taken)
    }

    /// Runs parts of the probe, and collects the wrong results of each. The parts are compiled concurrently, and linked
    /// with one object file of the runtime, as programs are.
    fn run(
        &self,
        parts: &[usize],
        toolchain: &Toolchain,
        options: &CompileOptions,
    ) -> Result<Vec<Vec<Wrong>>, Diagnostic> {
        let dir = Folder::new("taffeta-probe-").map_err(failed)?;
        // The parts define the runtime themselves if it cannot be compiled.
        let runtime = match parts {
            [] => None,
            _ => toolchain.object(RuntimePart::Runtime, dir.path(), options).ok(),
        };
        let runtime: Vec<PathBuf> = runtime.into_iter().collect();
        std::thread::scope(|scope| {
            let running: Vec<ScopedJoinHandle<'_, _>> =
                parts.iter().map(|k| scope.spawn(|| self.0[*k].run(toolchain, options, &runtime))).collect();
            running.into_iter().map(|p| p.join().unwrap_or_else(|e| std::panic::resume_unwind(e))).collect()
        })
    }
}

/// A part of the probe's program in C.
struct ProbePart {
    program: Program,
    source: c::CSource,
    main: String,
}

impl ProbePart {
    fn new(program: Program) -> Result<ProbePart, Diagnostic> {
        let lowered = lower(&program.func, &LowerOptions::default())
            .map_err(|d| d.0.into_iter().next().unwrap_or_else(|| internal("its program cannot be lowered")))?;
        let source = c::emit(&lowered, &SourceMap::default());
        let main = main(&program, &source);
        Ok(ProbePart { program, source, main })
    }

    /// Compiles and runs the part, and collects wrong results.
    fn run(
        &self,
        toolchain: &Toolchain,
        options: &CompileOptions,
        runtime: &[PathBuf],
    ) -> Result<Vec<Wrong>, Diagnostic> {
        let dir = Folder::new("taffeta-probe-").map_err(failed)?;
        Toolchain::write(&self.source, dir.path(), &self.source.signature.c_name)?;
        let file = dir.path().join("main.c");
        std::fs::write(&file, &self.main).map_err(failed)?;
        let compiled = toolchain.linked(dir.path(), &self.source.signature.c_name, &[file], options, runtime);
        // The program is plain C, which every C compiler must accept.
        let binary = compiled.map_err(|d| match d.code {
            "internal::c" => Diagnostic {
                code: "toolchain::broken",
                message: format!("the C compiler `{}` rejects a program in plain C", toolchain.command()),
                // The log is removed with the temporary folder.
                notes: d.notes.clone().into_iter().filter(|n| !n.starts_with("log: ")).collect(),
                help: Some("repair it, set CC to another compiler, or check CFLAGS".to_string()),
                labels: Vec::new(),
                ..d
            },
            _ => d,
        })?;
        let (status, output) = finished(&binary).map_err(|e| useless(toolchain, &e))?;
        let crashed = |how: String| vec![Wrong { what: "the probe program".to_string(), found: how }];
        let Some(status) = status else { return Ok(crashed(format!("it runs longer than {MAX_TIME:?}"))) };
        if !status.success() {
            return Ok(crashed(format!("it ends with {status}")));
        }
        match self.results(&output) {
            Some(results) => Ok(self.program.wrong(&results)),
            None => Ok(crashed("its results are incomplete".to_string())),
        }
    }

    fn results(&self, output: &[u8]) -> Option<Vec<Buffer>> {
        let mut left = output;
        self.program
            .results()
            .map(|dtype| {
                let (own, rest) = left.split_at_checked(checks::LENGTH * dtype.size())?;
                left = rest;
                checks::buffer(dtype, own)
            })
            .collect()
    }
}

/// Makes the diagnostic for a compiler whose output cannot be run.
fn useless(toolchain: &Toolchain, e: &std::io::Error) -> Diagnostic {
    Diagnostic::new("toolchain::broken", format!("{} builds programs that cannot be run: {e}", toolchain.name())).help(
        "repair it, or set CC to another compiler; if TMPDIR forbids running programs, set it to another directory",
    )
}

/// Makes the diagnostic for a probe that could not be run.
fn failed(e: std::io::Error) -> Diagnostic {
    Diagnostic::new("toolchain::probe", format!("cannot run the probe of the C compiler: {e}"))
        .help("make room for temporary files, or set TMPDIR to a directory that permits running programs")
}

fn internal(what: &str) -> Diagnostic {
    Diagnostic::new("internal::probe", format!("the probe of the C compiler: {what}"))
}

/// Makes the C `main` around the probe: it defines the operands and passes them.
fn main(program: &Program, source: &c::CSource) -> String {
    let mut out = String::from("#include \"taffeta.h\"\n");
    let mut line = |text: String| {
        let _ = writeln!(out, "{text}");
    };
    let name = &source.signature.c_name;
    line(format!("int {name}(taffeta_ctx *, taffeta_tensor *, size_t, const int64_t *);"));
    for (k, value) in program.inputs.iter().enumerate() {
        let bytes: Vec<String> = checks::bytes(value.data()).iter().map(u8::to_string).collect();
        // Not `const`: the compiler must not fold the computations.
        line(format!("static unsigned char input{k}[] __attribute__((aligned(64))) = {{{}}};", bytes.join(",")));
    }
    let inputs: Vec<String> = (0..program.inputs.len()).map(|k| format!("input{k}")).collect();
    line(format!("static unsigned char *const inputs[] = {{{}}};", inputs.join(", ")));
    let all: Vec<_> = program.func.interface().map(|t| t.dtype).collect();
    let list = |of: &dyn Fn(taffeta_ast::DType) -> String| all.iter().map(|d| of(*d)).collect::<Vec<_>>().join(", ");
    line(format!("static const int dtypes[] = {{{}}};", list(&|d| c::abi_name(d).to_string())));
    let dimensions: Vec<String> = program.func.interface().map(|t| t.ndim().to_string()).collect();
    line(format!("static const int dimensions[] = {{{}}};", dimensions.join(", ")));
    line(format!("static const size_t sizes[] = {{{}}};", list(&|d| d.size().to_string())));
    line(format!("enum {{ N_ARGS = {}, N_INPUTS = {} }};", all.len(), inputs.len()));
    line(format!("enum {{ LENGTH = {}, ROW = {} }};", checks::LENGTH, checks::ROW));
    line(format!("#define taffeta_probe {name}"));
    line(include_str!("main.c").to_string());
    out
}

/// Runs a program to its end, or kills it at the time limit; returns its exit status (`None` if killed) and its output.
fn finished(binary: &Path) -> std::io::Result<(Option<ExitStatus>, Vec<u8>)> {
    let mut child = Command::new(binary).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    let mut pipe = child.stdout.take();
    let reader = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        pipe.as_mut().map_or(Ok(0), |p| p.read_to_end(&mut bytes)).map(|_| bytes)
    });
    let start = Instant::now();
    let status = loop {
        match child.try_wait()? {
            Some(status) => break Some(status),
            None if start.elapsed() > MAX_TIME => {
                child.kill()?;
                child.wait()?;
                break None;
            }
            None => std::thread::sleep(Duration::from_millis(1)),
        }
    };
    let output = reader.join().unwrap_or_else(|_| Ok(Vec::new()))?;
    Ok((status, output))
}
