//! Arguments that several commands share.

use clap::ValueEnum;
use clap::error::ErrorKind;
use std::path::PathBuf;
use taffeta::{Gradient, Tape};

/// Which program, which entry, and what is known of its inputs: the same for every command that runs or shows programs.
#[derive(clap::Args, Clone, Debug)]
pub struct EntryArgs {
    /// The program; `-` is standard input
    #[arg(value_name = "FILE.ft")]
    pub file: PathBuf,
    /// The entry; may be left out if the file has only one
    pub entry: Option<String>,
    /// An input: a file (`-` is standard input), a literal or a generator. Where nothing runs, what it says of sizes is
    /// taken
    #[arg(long = "in", value_name = "NAME=VALUE", value_parser = pair)]
    pub inputs: Vec<(String, String)>,
    /// A size that no input fixes
    #[arg(long = "size", value_name = "NAME=N", value_parser = size)]
    pub sizes: Vec<(String, i64)>,
    /// The value of a `static` parameter
    #[arg(long = "set", value_name = "NAME=LITERAL", value_parser = pair)]
    pub statics: Vec<(String, String)>,
    /// How it is scheduled: a schedule function of the file, a file with a trace (`-` is standard input), `auto` (rules
    /// choose for this machine and the sizes that are known), or `none`. What runs or is built in C is scheduled by
    /// `auto` unless it is said here; everything else is shown as it is written
    #[arg(long = "schedule", value_name = "NAME|FILE|auto|none")]
    pub schedules: Vec<String>,
    /// The gradient with respect to these parameters in the place of the program; where it runs, seeds are ones unless
    /// `--in y.grad=…` gives others
    #[arg(long, visible_alias = "wrt", value_name = "NAMES", value_delimiter = ',')]
    pub grad: Option<Vec<String>>,
    #[command(flatten)]
    pub tape: GradientArgs,
    /// Floats in C are those of the interpreter, to the last bit but for functions of the C library: products are
    /// rounded before they are added, and sums stay in their order unless a schedule function asks for another one
    #[arg(long)]
    pub strict_floats: bool,
}

/// An entry that runs.
#[derive(clap::Args, Clone, Debug)]
pub struct ProgramArgs {
    #[command(flatten)]
    pub of: EntryArgs,
    /// What runs it
    #[arg(long, value_enum, default_value_t = Backend::C)]
    pub backend: Backend,
    /// Threads of parallel loops; 0 lets OpenMP decide
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=MAX_THREADS))]
    pub threads: u32,
    /// Keep sizes symbolic instead of compiling them in
    #[arg(long)]
    pub generic: bool,
    /// Machine-readable results, timings and diagnostics on standard output
    #[arg(long)]
    pub json: bool,
}

/// As a bound of clap's.
const MAX_THREADS: i64 = taffeta::MAX_THREADS as i64;

/// What runs a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Backend {
    /// Compiled C with OpenMP
    C,
    /// The reference interpreter: slow, and checks everything
    Interp,
}

impl EntryArgs {
    /// The gradient, where `--grad` asks for it.
    pub fn gradient(&self) -> Option<Gradient> {
        self.grad.as_ref().map(|wrt| self.tape.of(wrt))
    }

    /// The gradient with respect to what `--grad` says, or to all floating-point parameters.
    pub fn gradient_in_any_case(&self) -> Gradient {
        self.tape.of(self.grad.as_deref().unwrap_or_default())
    }

    /// Returns the schedule, where one is named; `bench` alone takes several, of which this is the first.
    pub fn schedule(&self) -> Option<&str> {
        self.schedules.first().map(String::as_str)
    }

    /// Refuses names that are given twice, and several schedules but for `bench`, which compares them.
    pub fn each_once(&self, command: &str) -> Result<(), clap::Error> {
        if self.schedules.len() > 1 && command != "bench" {
            return Err(wrong(command, "`--schedule` is given twice; `taffeta bench` compares schedules"));
        }
        once(command, "--in", &self.inputs)?;
        once(command, "--size", &self.sizes)?;
        once(command, "--set", &self.statics)
    }
}

/// How a gradient is made.
#[derive(clap::Args, Clone, Debug)]
pub struct GradientArgs {
    /// Of a gradient: which values made in loops are kept for the backward pass. `auto` (what costs less than to
    /// compute them again), `all`, `none`, or those of these tensors
    #[arg(long, value_name = "auto|all|none|NAMES", default_value = "auto")]
    pub tape: String,
    /// Of a gradient: how much memory its local tensors may take (512MB, 64KiB). What does not fit is computed again,
    /// and loops that overwrite their state run again from checkpoints
    #[arg(long, value_name = "AMOUNT", value_parser = taffeta::parse_memory)]
    pub memory: Option<u64>,
}

impl GradientArgs {
    /// The gradient with respect to these parameters.
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

/// `NAME=VALUE`
pub fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => Ok((name.trim().to_string(), value.to_string())),
        _ => Err("NAME=VALUE is expected".into()),
    }
}

/// `NAME=N`
pub fn size(text: &str) -> Result<(String, i64), String> {
    let (name, value) = pair(text)?;
    match value.trim().replace('_', "").parse() {
        Ok(n) => Ok((name, n)),
        Err(_) => Err(format!("`{value}` is not an integer")),
    }
}

/// Refuses a name that stands twice behind one option: which of the values is meant, only the user knows.
pub fn once<T>(command: &str, option: &str, given: &[(String, T)]) -> Result<(), clap::Error> {
    for (k, (name, _)) in given.iter().enumerate() {
        if given[..k].iter().any(|(before, _)| before == name) {
            let message = format!("`{option} {name}=…` is given twice");
            return Err(wrong(command, &message));
        }
    }
    Ok(())
}

/// Wrong usage of a subcommand, as clap says it.
fn wrong(command: &str, message: &str) -> clap::Error {
    let mut all = super::command();
    all.build();
    match all.find_subcommand_mut(command) {
        Some(found) => found.error(ErrorKind::ArgumentConflict, message),
        None => all.error(ErrorKind::ArgumentConflict, message),
    }
}
