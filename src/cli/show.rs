//! `weft show`: a program at a stage of compilation, as text.

use super::output::{Failure, print};
use super::session;
use clap::ValueEnum;
use std::path::PathBuf;
use weft::{Options, Program, Timings};
use weft_ast::Diagnostic;

/// Print a program at a stage of compilation
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The program
    #[arg(value_name = "FILE.ft")]
    file: PathBuf,
    /// The entry; may be left out if the file has only one
    entry: Option<String>,
    /// Which stage
    #[arg(long, value_enum, default_value_t = Stage::Elaborated)]
    stage: Stage,
    /// A size to compile in
    #[arg(long = "size", value_name = "NAME=N", value_parser = super::args::size)]
    pub sizes: Vec<(String, i64)>,
    /// The value of a `static` parameter
    #[arg(long = "set", value_name = "NAME=LITERAL", value_parser = super::args::pair)]
    pub statics: Vec<(String, String)>,
    /// How it is scheduled
    #[arg(long, value_name = "NAME|auto|none")]
    schedule: Option<String>,
}

const EXAMPLES: &str = "\
Stages: `parsed` is the syntax tree, `elaborated` the logical program (valid Weft again), `lowered` the program on flat
buffers with its checks, `c` the C that is compiled.

Examples:
  weft show f.ft main
  weft show f.ft main --stage c --size n=1024";

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Stage {
    Parsed,
    Elaborated,
    Grad,
    Scheduled,
    Structured,
    Lowered,
    C,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<(), Failure> {
    if let Some(what) = match args.stage {
        Stage::Grad => Some("gradients"),
        Stage::Scheduled => Some("schedules"),
        Stage::Structured => Some("structured tensors"),
        _ => None,
    } {
        return Err(Diagnostic::new(
            "command::unsupported",
            format!("this stage is not supported yet: {what} come in a later version"),
        )
        .help("stages so far: parsed, elaborated, lowered, c")
        .into());
    }
    let program = Program::load(&args.file)?;
    if args.stage == Stage::Parsed {
        if let Some(module) = program.front().module() {
            print(&weft_frontend::syntax::show::module(module))?;
        }
        return Ok(());
    }
    let entry = program.entry(args.entry.as_deref())?;
    let options = Options {
        statics: session::statics(&args.statics)?,
        sizes: args.sizes.iter().cloned().collect(),
        schedule: args.schedule.clone(),
        ..Options::default()
    };
    let text = match args.stage {
        Stage::Elaborated => weft_ast::print::func(&program.logical(&entry, &options, &mut Timings::default())?),
        Stage::Lowered => weft_ast::print::func(program.lowered(&entry, &options)?.func()),
        _ => program.c_source(&entry, &options)?.code,
    };
    print(&text)
}
