//! `taffeta run`: compiles an entry, runs it on inputs, and prints or stores the results.

use super::args::ProgramArgs;
use super::output::{Failure, error_text, print, print_json};
use super::{finite, progress, session, summary};
use serde_json::{Value as Json, json};
use std::path::PathBuf;
use std::time::Duration;
use taffeta::Output;
use taffeta::Timings;
use taffeta::amount;
use taffeta::ast::{Diagnostic, Value};
use taffeta::codegen::signature::{Passing, Signature, TensorSig};
use taffeta::io::output::{Item, Target, folder_takes_files, write_all};

/// Compile and run an entry of a program
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    pub program: ProgramArgs,
    /// Write a result to a file; `-` is standard output (as `.npy`, a structured result as `.npz`), `-:csv` selects
    /// another format
    #[arg(long = "out", value_name = "NAME=FILE", value_parser = super::args::pair)]
    pub outputs: Vec<(String, String)>,
    /// Write every result to DIR/NAME.npy
    #[arg(long, value_name = "DIR")]
    out_dir: Option<PathBuf>,
    /// Number of runs, of which the fastest, median and slowest times are printed
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    repeat: u32,
    /// Print the duration of each step, and the memory used
    #[arg(long)]
    time: bool,
    /// Stop at the first statement that yields NaN or infinity from finite numbers, and name it
    #[arg(long)]
    check_finite: bool,
}

const EXAMPLES: &str = "\
Inputs are files (.npy .npz:key .csv .txt .mtx:rows .obj:faces .off:adjacency .png), literals (3, 2.5, [1, 2, 3], \
true) or generators (rand, rand(seed=1), randn, randint(lo,hi), zeros, ones, arange, sprand(density=0.01)). \
Structured parameters also take sparse files (.mtx .tns .tns.gz, SciPy's .npz). Results go to .npy .npz .csv .txt \
.png, structured ones also to .npz .mtx .tns.

Examples:
  taffeta run mesh.ft diff --in adj=bunny.off:adjacency --in e=rand --size feats=64 --out y=y.npy
  taffeta run blur.ft --in img=photo.png --set radius=3 --out img=blurred.png
  taffeta run f.ft --in x=data.npz:x --in 'k=[0.25, 0.5, 0.25]' --time --repeat 20
  taffeta run f.ft --in x=rand --size n=8 --backend interp --json
  taffeta run f.ft --in x=x.npy --check-finite
  taffeta run f.ft loss --grad w,b --in w=rand --in b=zeros --in x=x.npy --out w.grad=dw.npy";

/// Runs the command.
pub fn run(args: &Args) -> Result<(), Failure> {
    let progress = progress::Work::new("compiling");
    let gradient = || args.program.of.gradient();
    let mut options = session::run_options(&args.program, gradient())?.check_finite(args.check_finite);
    if args.check_finite {
        // Without `--schedule`, the unscheduled program runs, in which the first faulty statement is that of program
        // order.
        options = options.schedule(args.program.of.schedule());
    }
    let mut session = session::open_with(&args.program, options)?;
    let signature = session.signature().clone();
    let targets = targets(&signature, args)?;
    let mut files = Timings::default();
    let inputs = progress.aside(|| files.measure("read inputs", || session::read(&args.program.of, &mut session)))?;
    if session.must_measure() {
        progress.aside(|| progress::while_measuring(taffeta::measure));
    }
    let mut function = session::compile(&mut session, &args.program, &inputs.sizes)?;
    if targets.iter().any(Target::is_stdout) {
        function = function.on_print(session::print_to_stderr);
    }
    let warnings = progress.aside(|| session::warnings(&session, &args.program))?;

    let input_bytes = bytes(&inputs.values);
    let threads = args.program.threads;
    // Every run starts from the original inputs, since programs change `inout` parameters.
    let written = signature.params().any(|p| p.passing == Passing::InOut);
    let originals = if args.repeat > 1 && written { inputs.values.clone() } else { Vec::new() };
    let checked = args.check_finite.then(|| inputs.values.clone());
    progress.say("running");
    let (mut ran, mut outputs) = function.run_stored(inputs.values, &inputs.sizes, threads)?;
    if let Some(given) = checked {
        finite::check(&args.program, gradient(), &signature, (given, &inputs.sizes), (&ran.params, &outputs))?;
    }
    let mut times = vec![ran.usage.time];
    for k in 1..args.repeat {
        progress.say(&format!("running, {k} of {} runs done", args.repeat));
        if written {
            ran.params.clone_from(&originals);
        }
        times.push(function.run_stored_again(&mut ran, &mut outputs, &inputs.sizes, threads)?.time);
    }

    let results: Vec<(&TensorSig, Shown<'_>)> = results(&signature, &ran.params, &outputs);
    let item = |t: &Target| results.iter().find(|(s, _)| s.name == t.name).map(|(_, shown)| shown.item());
    let items = targets.iter().filter_map(|t| item(t).map(|item| item.map(|item| (t.clone(), item))));
    let pairs: Vec<(Target, Item<'_>)> = items.collect::<Result<_, _>>()?;
    progress.say("writing results");
    files.measure("write results", || write_results(args, &pairs))?;
    drop(progress);
    times.sort();
    let result_bytes: usize = outputs.iter().map(Output::bytes).sum();
    let mut memory = vec![("inputs", input_bytes as u64), ("results", result_bytes as u64)];
    memory.extend(ran.usage.scratch.map(|b| ("scratch", b as u64)));
    let compile = function.timings();
    let products = function.products();
    let (signature, sizes, files, times) = (&signature, &inputs.sizes, &files, &times);
    let report = RunReport { args, signature, sizes, compile, files, times, products, warnings };
    report.print(&results, &targets, &memory)
}

/// Result to be shown or written.
#[derive(Clone, Copy)]
enum Shown<'a> {
    /// `inout` parameter.
    Param(&'a Value),
    Result(&'a Output),
}

impl<'a> Shown<'a> {
    fn value(self) -> Result<&'a Value, Failure> {
        match self {
            Shown::Param(value) => Ok(value),
            Shown::Result(output) => Ok(output.value()?),
        }
    }

    /// Returns the contents of a file: the arrays, if the result has some.
    fn item(self) -> Result<Item<'a>, Failure> {
        match self {
            Shown::Result(output) if let Some(stored) = output.stored() => Ok(Item::Stored(stored)),
            _ => self.value().map(Item::Value),
        }
    }

    /// Counts the numbers that a file changes, and all numbers.
    fn clipped(self, target: &Target) -> (usize, usize) {
        match self {
            // Pictures are dense.
            Shown::Result(output) if output.stored().is_some() => (0, 0),
            _ => self.value().map_or((0, 0), |v| (target.clipped(v), v.data().len())),
        }
    }

    /// Returns the type and the shape: `f64[2, 3]`.
    fn text(self) -> String {
        let (dtype, shape) = match self {
            Shown::Param(value) => (value.dtype(), value.shape()),
            Shown::Result(output) => (output.dtype(), output.shape()),
        };
        format!("{dtype}{}", if shape.is_empty() { String::new() } else { taffeta::io::shape_text(shape) })
    }
}

/// Returns the `inout` parameters, then the results.
fn results<'a>(
    signature: &'a Signature,
    params: &'a [Value],
    outputs: &'a [Output],
) -> Vec<(&'a TensorSig, Shown<'a>)> {
    let written = signature.params().zip(params).filter(|(s, _)| s.passing == Passing::InOut);
    let written = written.map(|(s, v)| (s, Shown::Param(v)));
    written.chain(signature.results().zip(outputs).map(|(s, o)| (s, Shown::Result(o)))).collect()
}

/// Returns the targets of results; names, formats and directories are checked before anything runs.
fn targets(signature: &Signature, args: &Args) -> Result<Vec<Target>, Failure> {
    let all: Vec<&TensorSig> = signature.tensors.iter().filter(|t| t.passing != Passing::In).collect();
    let format = |t: &TensorSig| t.storage.as_ref().map(|s| s.format(t.dtype));
    let mut targets: Vec<Target> = Vec::new();
    let mut errors = Vec::new();
    for (name, path) in &args.outputs {
        let Some(t) = all.iter().find(|t| t.name == *name) else {
            let names: Vec<&str> = all.iter().map(|t| t.name.as_str()).collect();
            let d = Diagnostic::new("output::name", format!("`{}` has no result `{name}`", signature.name));
            errors.push(match taffeta::ast::spelling::nearest(name, names.iter().copied()) {
                Some(near) => d.help(format!("did you mean `{near}`?")),
                None if names.is_empty() => d.help("it has no results"),
                None => d.help(format!("its results are {}", names.join(", "))),
            });
            continue;
        };
        let target = Target { name: name.clone(), path: PathBuf::from(path), format: format(t) };
        if target.is_stdout() && args.program.json {
            let text = format!("cannot write result `{name}` to standard output: `--json` prints there");
            errors.push(Diagnostic::new("output::format", text).help("write it to a file"));
            continue;
        }
        if let Err(d) = target.check(t.dtype, t.shape.len()) {
            errors.push(d);
        }
        targets.push(target);
    }
    if let Some(dir) = &args.out_dir {
        if dir.exists() && !dir.is_dir() {
            errors.push(Diagnostic::new("output::directory", format!("`{}` is not a directory", dir.display())));
        } else if let Err(e) = folder_takes_files(dir) {
            errors.push(Diagnostic::new("output::write", format!("cannot write `{}`: {e}", dir.display())));
        }
        for t in all.iter().filter(|t| !args.outputs.iter().any(|(n, _)| *n == t.name)) {
            let target = Target { name: t.name.clone(), path: dir.join(format!("{}.npy", t.name)), format: format(t) };
            if dir.is_dir()
                && let Err(d) = target.check(t.dtype, t.shape.len())
            {
                errors.push(d);
            }
            targets.push(target);
        }
    }
    for (k, target) in targets.iter().enumerate() {
        if targets[..k].iter().any(|before| before.same_file(target)) {
            errors.push(Diagnostic::new("output::twice", format!("`{}` is written twice", target.path.display())));
        }
    }
    if errors.is_empty() { Ok(targets) } else { Err(errors.into()) }
}

fn write_results(args: &Args, pairs: &[(Target, Item<'_>)]) -> Result<(), Failure> {
    if let Some(dir) = &args.out_dir {
        std::fs::create_dir_all(dir).map_err(|e| {
            Failure::from(Diagnostic::new("output::directory", format!("cannot create `{}`: {e}", dir.display())))
        })?;
    }
    write_all(pairs).map_err(Failure::from)
}

fn size(v: &Value) -> usize {
    v.data().len() * v.dtype().size()
}

fn bytes(values: &[Value]) -> usize {
    values.iter().map(size).sum()
}

/// Report at the end of a run.
struct RunReport<'a> {
    args: &'a Args,
    signature: &'a Signature,
    sizes: &'a [i64],
    /// Durations of the compilation steps.
    compile: &'a Timings,
    /// Durations of reading inputs and writing results.
    files: &'a Timings,
    /// Sorted run times.
    times: &'a [Duration],
    /// Implementation of the matrix products, if there are any.
    products: Option<String>,
    /// Warnings about the program, as JSON.
    warnings: Json,
}

impl RunReport<'_> {
    fn print(
        &self,
        results: &[(&TensorSig, Shown<'_>)],
        targets: &[Target],
        memory: &[(&str, u64)],
    ) -> Result<(), Failure> {
        if self.args.program.json {
            return print_json(&self.json(results, targets, memory)?);
        }
        let mut out = String::new();
        for (sig, shown) in results {
            match targets.iter().find(|t| t.name == sig.name) {
                // A result that is written to a file is not summarised.
                Some(t) => {
                    out.push_str(&format!("{}: {} → {}\n", sig.name, shown.text(), t.path.display()));
                    let (clipped, all) = shown.clipped(t);
                    out.push_str(&summary::clipped(clipped, all));
                }
                None => out.push_str(&summary::text(&sig.name, shown.value()?)),
            }
        }
        if self.args.time || self.args.repeat > 1 {
            out.push_str(&self.timing(memory));
        }
        if targets.iter().any(Target::is_stdout) {
            error_text(&out);
            return Ok(());
        }
        print(&out)
    }

    fn timing(&self, memory: &[(&str, u64)]) -> String {
        let mut table = comfy_table::Table::new();
        table.load_preset(comfy_table::presets::NOTHING);
        let right = |t: String| comfy_table::Cell::new(t).set_alignment(comfy_table::CellAlignment::Right);
        if self.args.time {
            for (step, time) in self.compile.steps().chain(self.files.steps()) {
                table.add_row([comfy_table::Cell::new(step), right(duration(time))]);
            }
        }
        match self.times {
            [one] => {
                table.add_row([comfy_table::Cell::new("run"), right(duration(*one))]);
            }
            times => {
                for (what, t) in [
                    ("run, fastest", times[0]),
                    ("run, median", times[times.len() / 2]),
                    ("run, slowest", times[times.len() - 1]),
                ] {
                    table.add_row([comfy_table::Cell::new(what), right(duration(t))]);
                }
            }
        }
        if self.args.time {
            if let Some(name) = &self.products {
                table.add_row([comfy_table::Cell::new("matrix products"), right(name.clone())]);
            }
            for (what, bytes) in memory {
                table.add_row([comfy_table::Cell::new(format!("memory, {what}")), right(amount(*bytes))]);
            }
        }
        format!("{table}\n")
    }

    fn json(
        &self,
        results: &[(&TensorSig, Shown<'_>)],
        targets: &[Target],
        memory: &[(&str, u64)],
    ) -> Result<Json, Failure> {
        let ms = |d: Duration| json!(d.as_secs_f64() * 1e3);
        let sizes: serde_json::Map<String, Json> =
            self.signature.sizes.iter().zip(self.sizes).map(|(s, v)| (s.name.clone(), json!(v))).collect();
        let steps = |timings: &Timings| -> serde_json::Map<String, Json> {
            timings.steps().map(|(s, t)| (s.replace(' ', "_"), ms(t))).collect()
        };
        let memory: serde_json::Map<String, Json> = memory.iter().map(|(w, b)| ((*w).to_string(), json!(*b))).collect();
        let one = |(s, shown): &(&TensorSig, Shown<'_>)| -> Result<Json, Failure> {
            let target = targets.iter().find(|t| t.name == s.name);
            let file = target.map(|t| t.path.display().to_string());
            let mut found = summary::json(&s.name, shown.value()?, file.as_deref());
            if let Some(n) = target.map(|t| shown.clipped(t).0).filter(|n| *n > 0) {
                found["clipped"] = json!(n);
            }
            Ok(found)
        };
        let results = results.iter().map(one).collect::<Result<Vec<Json>, Failure>>()?;
        Ok(json!({
            "status": "ok",
            "entry": self.signature.name,
            "backend": if self.args.program.backend == super::args::Backend::C { "c" } else { "interp" },
            "sizes": sizes,
            "results": results,
            "compile_ms": steps(self.compile),
            "files_ms": steps(self.files),
            "run_ms": self.times.iter().map(|t| ms(*t)).collect::<Vec<_>>(),
            "memory_bytes": memory,
            "products": self.products,
            "diagnostics": self.warnings,
        }))
    }
}

/// Formats a duration: `1.25 ms`.
pub fn duration(d: Duration) -> String {
    let s = d.as_secs_f64();
    match s {
        s if s >= 1.0 => format!("{s:.2} s"),
        s if s >= 1e-3 => format!("{:.2} ms", s * 1e3),
        s => format!("{:.1} µs", s * 1e6),
    }
}
