//! `weft grad`: the gradient of a program, as a program.

use super::output::{Failure, print};
use super::session;
use std::path::PathBuf;
use weft::{Gradient, Options, Program, Tape, Timings};

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
    /// How the program is scheduled before it is differentiated
    #[arg(long, value_name = "NAME|auto|none")]
    schedule: Option<String>,
}

/// How a gradient is made.
#[derive(clap::Args, Clone, Debug)]
pub struct GradientArgs {
    /// Which values made in loops are kept for the backward pass: `auto` (what costs less than to compute them again), `all`,
    /// `none`, or those of these tensors
    #[arg(long, value_name = "auto|all|none|NAMES", default_value = "auto")]
    pub tape: String,
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
        let wrt = wrt.iter().map(|n| n.trim().to_string()).filter(|n| !n.is_empty()).collect();
        Gradient { wrt, tape, ..Gradient::default() }
    }
}

const EXAMPLES: &str = "\
The program that is printed computes the results, then the gradients: `x.grad` for every parameter x that is asked for, given
a seed `y.grad` for every result y (and for the final value of every `inout` parameter, whose answer replaces the seed).
`t.tape` is a value that is kept for the backward pass, `i~b` the backward copy of the loop i.

Examples:
  weft grad f.ft loss --wrt w,b
  weft grad f.ft loss --wrt w --tape none
  weft run f.ft loss --grad w --in w=rand --in x=rand --size n=100      run it, with seeds of ones";

/// Runs the command.
pub fn run(args: &Args) -> Result<(), Failure> {
    let program = Program::load(&args.file)?;
    let entry = program.entry(args.entry.as_deref())?;
    let options = Options {
        statics: session::statics(&args.statics)?,
        schedule: args.schedule.clone(),
        gradient: Some(args.gradient.of(&args.wrt)),
        ..Options::default()
    };
    print(&weft_ast::print::func(&program.logical(&entry, &options, &mut Timings::default())?))
}
