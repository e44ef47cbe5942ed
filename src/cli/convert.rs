//! `taffeta convert`: reads a tensor, converts it to another format by a generated program, and writes or summarises
//! it.

use super::args::MAX_THREADS;
use super::explain_assembly;
use super::output::{Failure, print, print_json};
use super::progress;
use super::run::duration;
use serde_json::{Value as Json, json};
use std::fmt::Write as _;
use std::path::PathBuf;
use taffeta::ast::Diagnostic;
use taffeta::ast::format::{Format, Level};
use taffeta::convert::{Conversion, parse_format};
use taffeta::io::declared::{declared, read_declared};
use taffeta::io::output::{Item, Target, write_all};
use taffeta::io::shape_text;
use taffeta::structured::{Stored, array_names};
use taffeta::{DType, Options, Timings, amount};

/// Convert a tensor to another storage format
#[derive(clap::Args)]
#[command(after_help = "\
The tensor is read with the file's type (.mtx .tns .tns.gz .npz .npy); an element that is listed several times is \
summed. FORMAT is an expression as after `@` in a program, or FILE.ft:NAME, where NAME is a format of that file or a \
call of a function that returns one. Explicit zeros of lists are kept; those of regions (blocks, diagonals, runs) are \
left out. Without -o, a summary is printed.

Examples:
  taffeta convert a.mtx --to csr -o a.npz
  taffeta convert a.npz --to 'bcsr(4, 4)' --dtype f32
  taffeta convert t.tns --to 'format(dense, compressed, compressed)' --shape 100,80,60 -o t.npz
  taffeta convert a.npz --to 'mine.ft:blocks' --explain")]
pub struct Args {
    /// Tensor to convert
    #[arg(value_name = "IN")]
    input: PathBuf,
    /// Format: `csr`, `bcsr(2, 2)`, `format(dense, hashed)`, FILE.ft:NAME
    #[arg(long, value_name = "FORMAT")]
    to: String,
    /// File to write: .npz, .mtx, .tns, or .npy for all elements
    #[arg(short, long, value_name = "OUT", allow_hyphen_values = true)]
    output: Option<PathBuf>,
    /// Sizes of the dimensions, if the file does not have them
    #[arg(long, value_name = "N,M", value_delimiter = ',')]
    shape: Option<Vec<usize>>,
    /// Type of the elements (default: the file's), to which they are converted as by `cast`
    #[arg(long, value_name = "TYPE", value_parser = dtype)]
    dtype: Option<DType>,
    /// Type of the index arrays: u8, u16, i32 or i64
    #[arg(long, value_name = "TYPE", value_parser = index)]
    index: Option<DType>,
    /// Threads that read and convert; 0 lets OpenMP decide
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=MAX_THREADS))]
    threads: u32,
    /// Print the duration of each step
    #[arg(long)]
    time: bool,
    /// Print the program that converts, and how it assembles the result
    #[arg(long)]
    explain: bool,
    /// Print the summary as JSON on standard output
    #[arg(long)]
    pub json: bool,
}

fn dtype(text: &str) -> Result<DType, String> {
    DType::parse(text).ok_or_else(|| format!("expected a type such as f32 or i64, found `{text}`"))
}

fn index(text: &str) -> Result<DType, String> {
    match text {
        "u8" => Ok(DType::U8),
        "u16" => Ok(DType::U16),
        "i32" => Ok(DType::I32),
        "i64" => Ok(DType::I64),
        other => Err(format!("expected u8, u16, i32 or i64, found `{other}`")),
    }
}

/// Runs the command.
pub fn run(args: &Args) -> Result<(), Failure> {
    let mut timings = Timings::default();
    let declared = declared(&args.input)?;
    let ndim = declared.ndim;
    let format = target(args, ndim)?;
    let out =
        args.output.as_ref().map(|path| Target { name: "B".into(), path: path.clone(), format: Some(format.clone()) });
    let read = || read_declared(&args.input, declared, args.shape.as_deref());
    if args.json && out.as_ref().is_some_and(Target::is_stdout) {
        let text = "cannot write the tensor to standard output: `--json` prints there";
        return Err(Diagnostic::new("output::format", text).help("write it to a file").into());
    }
    let tensor = timings.measure("read", || progress::while_reading_files([&args.input], read))?;
    if let Some(out) = &out {
        out.check(args.dtype.unwrap_or(tensor.dtype()), ndim)?;
    }
    let conversion = Conversion::to(&tensor, &format, args.dtype.unwrap_or(tensor.dtype()))?;
    let explained = if args.explain { Some(explained(&conversion)?) } else { None };
    let progress = progress::Work::new("compiling");
    let function = timings.measure("compile", || conversion.compile(&tensor, &Options::default()))?;
    progress.say("converting");
    let made = timings.measure("convert", || conversion.call(function.as_ref(), &tensor, args.threads))?;
    if let Some(out) = &out {
        progress.say("writing");
        timings.measure("write", || write_all(&[(out.clone(), Item::Stored(&made))]))?;
    }
    drop(progress);
    let summary = Summary { args, tensor: &tensor, made: &made, timings: &timings, explained };
    match (args.json, out.as_ref().is_some_and(Target::is_stdout)) {
        (true, _) => print_json(&summary.json()),
        (false, false) => print(&summary.text()),
        // Standard output has the tensor.
        (false, true) => {
            super::session::print_to_stderr(summary.text().trim_end());
            Ok(())
        }
    }
}

/// Returns the format to convert to.
fn target(args: &Args, ndim: usize) -> Result<Format, Failure> {
    let (file, text) = match args.to.split_once(".ft:") {
        Some((stem, name)) => (Some(PathBuf::from(format!("{stem}.ft"))), name),
        None => (None, args.to.as_str()),
    };
    let format = parse_format(text, ndim, file.as_deref())?;
    let Some(index) = args.index else { return Ok(format) };
    let one = |l: &Level| Level { index: l.kind.has_indices().then_some(index), ..*l };
    Ok(Format { levels: format.levels.iter().map(one).collect(), ..format })
}

/// Explanation of a conversion.
struct Explained {
    program: String,
    assembled: String,
    json: Json,
}

fn explained(conversion: &Conversion) -> Result<Explained, Failure> {
    let program = conversion.program()?;
    let options = Options::default().schedule(None);
    let logical = program.logical("convert", &options)?;
    let structured = taffeta::structured::lower(&logical).map_err(|d| Failure::from(d.0))?;
    let (assembled, sources) = (&structured.assembled, program.sources());
    let (text, json) = (explain_assembly::text(assembled, sources), explain_assembly::json(assembled, sources));
    Ok(Explained { program: conversion.text.clone(), assembled: text, json })
}

/// Report of a conversion.
struct Summary<'a> {
    args: &'a Args,
    tensor: &'a Stored,
    made: &'a Stored,
    timings: &'a Timings,
    explained: Option<Explained>,
}

impl Summary<'_> {
    /// Returns the arrays with their names.
    fn arrays(&self) -> Vec<(String, &'static str, usize, u64)> {
        let names = array_names(self.made.format()).unwrap_or_default().into_iter().chain(["data".to_string()]);
        let one = |(name, array): (String, &taffeta::Value)| {
            let (dtype, count) = (array.dtype(), array.data().len());
            (name, dtype.name(), count, (count * dtype.size()) as u64)
        };
        names.zip(self.made.arrays()).map(one).collect()
    }

    fn text(&self) -> String {
        let (from, to) = (self.tensor.format(), self.made.format());
        let mut out = format!("{}{} @ {to}, from {from}\n", self.made.dtype(), shape_text(self.made.shape()));
        let arrays = self.arrays();
        let bytes: u64 = arrays.iter().map(|(.., bytes)| bytes).sum();
        match &self.args.output {
            Some(path) => {
                let _ = writeln!(out, "  {} → {}", amount(bytes), path.display());
            }
            None => {
                let count = self.made.arrays().last().map_or(0, |v| v.data().len());
                let each = bytes as f64 / count.max(1) as f64;
                let _ = writeln!(out, "  {count} elements stored, {}, {each:.1} bytes for each", amount(bytes));
                for (name, dtype, count, bytes) in &arrays {
                    let _ = writeln!(out, "  {name:<6} {dtype}[{count}]  {}", amount(*bytes));
                }
            }
        }
        if self.args.time {
            for (step, time) in self.timings.steps() {
                let _ = writeln!(out, "  {step:<8} {:>10}", duration(time));
            }
        }
        if let Some(Explained { program, assembled, .. }) = &self.explained {
            let _ = write!(out, "\n# Program\n{program}\n# Assembly{assembled}");
        }
        out
    }

    fn json(&self) -> Json {
        let arrays = self.arrays();
        let one = |array: &(String, &'static str, usize, u64)| {
            let (name, dtype, count, bytes) = array;
            json!({"name": name, "dtype": dtype, "length": count, "bytes": bytes})
        };
        let ms = self.timings.steps().map(|(step, time)| (step.to_string(), json!(time.as_secs_f64() * 1e3)));
        json!({
            "status": "ok",
            "from": self.tensor.format().to_string(),
            "format": self.made.format().to_string(),
            "dtype": self.made.dtype().name(),
            "shape": self.made.shape(),
            "stored": self.made.arrays().last().map_or(0, |v| v.data().len()),
            "arrays": arrays.iter().map(one).collect::<Vec<Json>>(),
            "file": self.args.output.as_ref().map(|path| path.display().to_string()),
            "ms": ms.collect::<serde_json::Map<String, Json>>(),
            "program": self.explained.as_ref().map(|e| e.program.clone()),
            "assembled": self.explained.as_ref().map(|e| e.json.clone()),
            "diagnostics": [],
        })
    }
}
