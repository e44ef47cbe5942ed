//! Command-line arguments shared by several commands.

use clap::ValueEnum;
use clap::error::ErrorKind;
use std::path::PathBuf;
use taffeta::{Gradient, Tape};

/// Program, entry and inputs: the arguments of every command that runs or shows programs.
#[derive(clap::Args, Clone, Debug)]
pub struct EntryArgs {
    /// The program; `-` is standard input
    #[arg(value_name = "FILE.ft")]
    pub file: PathBuf,
    /// The entry; may be left out if the file has only one
    pub entry: Option<String>,
    /// An input: a file (`-` is standard input), a literal or a generator. Commands that run nothing use only its sizes
    #[arg(long = "in", value_name = "NAME=VALUE", value_parser = pair)]
    pub inputs: Vec<(String, String)>,
    /// A size that no input determines
    #[arg(long = "size", value_name = "NAME=N", value_parser = size)]
    pub sizes: Vec<(String, i64)>,
    /// The value of a `static` parameter
    #[arg(long = "set", value_name = "NAME=LITERAL", value_parser = pair)]
    pub statics: Vec<(String, String)>,
    /// The schedule: a schedule function of the file, a trace file (`-` is standard input), `auto` (rules choose for
    /// this machine and the known sizes), or `none`. The default is `auto` for programs that run or are built in C, and
    /// `none` for all others
    #[arg(long = "schedule", value_name = "NAME|FILE|auto|none")]
    pub schedules: Vec<String>,
    /// Replace the program by its gradient with respect to these parameters; seeds are ones unless `--in y.grad=…` sets
    /// them
    #[arg(long, visible_alias = "wrt", value_name = "NAMES", value_delimiter = ',')]
    pub grad: Option<Vec<String>>,
    #[command(flatten)]
    pub tape: GradientArgs,
    /// Compute floats in C as the interpreter does, to the last bit except for functions of the C library: products are
    /// rounded before additions, and sums keep their order unless a schedule function reorders them
    #[arg(long)]
    pub strict_floats: bool,
}

/// Arguments of commands that run an entry.
#[derive(clap::Args, Clone, Debug)]
pub struct ProgramArgs {
    #[command(flatten)]
    pub of: EntryArgs,
    /// The execution engine
    #[arg(long, value_enum, default_value_t = Backend::C)]
    pub backend: Backend,
    /// Threads of parallel loops; 0 lets OpenMP decide
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=MAX_THREADS))]
    pub threads: u32,
    /// Keep sizes symbolic instead of compiling them in
    #[arg(long)]
    pub generic: bool,
    /// Print machine-readable results, timings and diagnostics on standard output
    #[arg(long)]
    pub json: bool,
}

/// Maximum number of threads, in clap's type.
pub const MAX_THREADS: i64 = taffeta::MAX_THREADS as i64;

/// Execution engine of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Backend {
    /// Compiled C with OpenMP
    C,
    /// The reference interpreter: slow, and checks everything
    Interp,
}

impl EntryArgs {
    /// Returns the gradient that `--grad` requests, if given.
    pub fn gradient(&self) -> Option<Gradient> {
        self.grad.as_ref().map(|wrt| self.tape.of(wrt))
    }

    /// Returns the gradient with respect to the parameters of `--grad`, by default all floating-point ones.
    pub fn gradient_in_any_case(&self) -> Gradient {
        self.tape.of(self.grad.as_deref().unwrap_or_default())
    }

    /// Returns the named schedule, if any; of several for `bench`, the first.
    pub fn schedule(&self) -> Option<&str> {
        self.schedules.first().map(String::as_str)
    }

    /// Refuses repeated names, and repeated schedules except for `bench`, which compares them.
    pub fn each_once(&self, command: Described<'_>) -> Result<(), clap::Error> {
        if self.schedules.len() > 1 && command().get_name() != "bench" {
            return Err(wrong(command, "`--schedule` is given twice; `taffeta bench` compares schedules"));
        }
        once(command, "--in", &self.inputs)?;
        once(command, "--size", &self.sizes)?;
        once(command, "--set", &self.statics)
    }
}

/// Arguments of gradients.
#[derive(clap::Args, Clone, Debug)]
pub struct GradientArgs {
    /// The tape of a gradient: values from loops that are kept for the backward pass. `auto` (values that cost less to
    /// keep than to recompute), `all`, `none`, or the values of the named tensors
    #[arg(long, value_name = "auto|all|none|NAMES", default_value = "auto")]
    pub tape: String,
    /// Maximum memory of a gradient's local tensors (512MB, 64KiB). Values beyond the budget are recomputed, and loops
    /// that overwrite their state run again from checkpoints
    #[arg(long, value_name = "AMOUNT", value_parser = taffeta::parse_memory)]
    pub memory: Option<u64>,
}

impl GradientArgs {
    /// Builds the gradient with respect to the given parameters.
    pub fn of(&self, wrt: &[String]) -> Gradient {
        let tape = match self.tape.as_str() {
            "auto" => Tape::Auto,
            "all" => Tape::All,
            "none" => Tape::None,
            names => Tape::Named(names.split(',').map(|n| n.trim().to_string()).collect()),
        };
        let wrt = wrt.iter().map(|n| n.trim()).filter(|n| !n.is_empty());
        Gradient::default().wrt(wrt).tape(tape).memory(self.memory)
    }
}

/// Parses `NAME=VALUE`.
pub fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => Ok((name.trim().to_string(), value.to_string())),
        _ => Err("expected NAME=VALUE".into()),
    }
}

/// Parses `NAME=N`.
pub fn size(text: &str) -> Result<(String, i64), String> {
    let (name, value) = pair(text)?;
    match value.trim().replace('_', "").parse() {
        Ok(n) => Ok((name, n)),
        Err(_) => Err(format!("`{value}` is not an integer")),
    }
}

/// Refuses a name that an option sets twice: only the user knows the intended value.
pub fn once<T>(command: Described<'_>, option: &str, given: &[(String, T)]) -> Result<(), clap::Error> {
    for (k, (name, _)) in given.iter().enumerate() {
        if given[..k].iter().any(|(before, _)| before == name) {
            let message = format!("`{option} {name}=…` is given twice");
            return Err(wrong(command, &message));
        }
    }
    Ok(())
}

/// Function that builds clap's description of a subcommand, for its errors.
pub type Described<'a> = &'a dyn Fn() -> clap::Command;

/// Creates clap's error for wrong usage of a subcommand.
fn wrong(command: Described<'_>, message: &str) -> clap::Error {
    command().error(ErrorKind::ArgumentConflict, message)
}
