//! `taffeta grad`: the gradient of a program, as a program.

use super::output::{Failure, print};
use super::session;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use taffeta::ast::{Diagnostic, Func, SourceMap};
use taffeta::{Explanation, Gradient, Options, Program, Tape};

/// Print the gradient of a program
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The program
    #[arg(value_name = "FILE.ft")]
    file: PathBuf,
    /// The entry; may be left out if the file has only one
    entry: Option<String>,
    #[command(flatten)]
    pub gradient: GradientArgs,
    /// The parameters with respect to which it is differentiated; all of floating-point numbers if they are not given
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    wrt: Vec<String>,
    /// The value of a `static` parameter
    #[arg(long = "set", value_name = "NAME=LITERAL", value_parser = super::args::pair)]
    pub statics: Vec<(String, String)>,
    /// Print a table of what is kept for the backward pass in the place of the program: how much, and why
    #[arg(long)]
    explain: bool,
    /// A size, or the value of a parameter that is a single integer, for `--explain` and `--memory`
    #[arg(long = "size", value_name = "NAME=NUMBER", value_parser = super::args::pair)]
    sizes: Vec<(String, String)>,
    /// How the program is scheduled before it is differentiated
    #[arg(long, value_name = "NAME|auto|none")]
    schedule: Option<String>,
}

/// How a gradient is made.
#[derive(clap::Args, Clone, Debug)]
pub struct GradientArgs {
    /// Which values made in loops are kept for the backward pass: `auto` (what costs less than to compute them again),
    /// `all`, `none`, or those of these tensors
    #[arg(long, value_name = "auto|all|none|NAMES", default_value = "auto")]
    pub tape: String,
    /// How much memory the gradient's local tensors may take (512MB, 64KiB): what does not fit is computed again, and
    /// loops that overwrite their state run again from checkpoints
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

const EXAMPLES: &str = "\
The program that is printed computes the results, then the gradients: `x.grad` for every parameter x that is asked for, given
a seed `y.grad` for every result y (and for the final value of every `inout` parameter, whose answer replaces the seed).
`t.tape` is a value that is kept for the backward pass, `i~b` the backward copy of the loop i.

Examples:
  taffeta grad f.ft loss --wrt w,b
  taffeta grad f.ft loss --wrt w --tape none
  taffeta grad f.ft loss --wrt w --explain --size n=1000            what is kept, how large it is, and why
  taffeta grad f.ft loss --wrt w --memory 512MB --size steps=100000 within a budget
  taffeta run f.ft loss --grad w --in w=rand --in x=rand --size n=100      run it, with seeds of ones";

/// Runs the command.
pub fn run(args: &Args) -> Result<(), Failure> {
    let program = Program::load(&args.file)?;
    let entry = program.entry(args.entry.as_deref())?;
    let options = Options::default()
        .statics(session::statics(&args.statics)?)
        .schedule(args.schedule.as_deref())
        .gradient(args.gradient.of(&args.wrt))
        .sizes(sizes(&args.sizes)?);
    let (func, explanation) = program.explained(&entry, &options)?;
    unknown(&func, &options.sizes)?;
    if args.explain {
        return print(&table(&entry, &explanation, program.sources()));
    }
    if let Some(excess) = &explanation.excess {
        eprintln!("note: {}\n  help: {}", excess.message, excess.help);
    }
    print(&taffeta::ast::print::func(&func))
}

/// The numbers after `--size`.
fn sizes(given: &[(String, String)]) -> Result<BTreeMap<String, i64>, Failure> {
    let one = |(name, text): &(String, String)| match text.parse() {
        Ok(v) if v >= 0 => Ok((name.clone(), v)),
        _ => {
            let what = format!("--size {name}: `{text}` is not a size");
            Err(Failure::from(vec![Diagnostic::new("input::size", what).help("write a number that is not negative")]))
        }
    };
    given.iter().map(one).collect()
}

/// Refuses numbers for what the program does not have.
fn unknown(func: &Func, given: &BTreeMap<String, i64>) -> Result<(), Failure> {
    let single = |p: &&taffeta::ast::Param| p.tensor.ndim() == 0 && p.tensor.dtype.is_int();
    let mut names: Vec<&str> = func.sizes.iter().map(|s| s.name()).collect();
    names.extend(func.params.iter().filter(single).map(|p| p.tensor.symbol.name()));
    let Some(odd) = given.keys().find(|n| !names.contains(&n.as_str())) else { return Ok(()) };
    let d = Diagnostic::new("input::size", format!("`{}` has no size `{odd}`", func.name));
    Err(Failure::from(vec![match taffeta::ast::spelling::nearest(odd, names.iter().copied()) {
        Some(near) => d.help(format!("did you mean `{near}`?")),
        None => d.help(format!("its sizes are {}", names.join(", "))),
    }]))
}

/// What is kept, for people.
fn table(entry: &str, of: &Explanation, sources: &SourceMap) -> String {
    let mut out = String::new();
    if of.rows.is_empty() {
        let _ = writeln!(out, "{entry}: the backward pass needs no value of the forward pass");
    } else {
        let _ = writeln!(out, "{entry}: what the backward pass needs of the forward pass\n");
        let mut table = comfy_table::Table::new();
        table.load_preset(comfy_table::presets::NOTHING);
        let right = |t: &str| comfy_table::Cell::new(t).set_alignment(comfy_table::CellAlignment::Right);
        let mut head: Vec<comfy_table::Cell> = ["tensor", "line"].map(comfy_table::Cell::new).into();
        head.extend(["versions", "bytes"].map(right));
        head.extend(["decision", "why"].map(comfy_table::Cell::new));
        table.add_row(head);
        for r in &of.rows {
            let line = sources.line_col(r.span).map_or(String::new(), |at| at.line.to_string());
            let bytes = match r.amount {
                Some(_) if r.bytes.parse::<u64>().is_ok() => r.bytes.clone(),
                Some(n) => format!("{} = {n}", r.bytes),
                None => r.bytes.clone(),
            };
            let mut row = vec![comfy_table::Cell::new(&r.tensor), right(&line), right(&r.versions), right(&bytes)];
            row.extend([r.decision, &r.why].map(comfy_table::Cell::new));
            table.add_row(row);
        }
        table.to_string().lines().for_each(|l| out += &format!("{}\n", l.trim_end()));
    }
    for note in &of.notes {
        let _ = writeln!(out, "\n{note}");
    }
    let _ = match &of.peak {
        Ok(bytes) => writeln!(out, "\nlocal tensors take {} at most ({bytes} bytes)", taffeta::amount(*bytes)),
        Err(missing) => {
            writeln!(out, "\nhow much local tensors take depends on {}: give sizes with --size", missing.join(", "))
        }
    };
    out
}
