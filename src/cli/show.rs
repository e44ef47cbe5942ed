//! `taffeta show`: a program at a stage of compilation, as text.

use super::output::{Failure, print};
use super::session;
use clap::ValueEnum;
use std::path::PathBuf;
use taffeta::ast::Diagnostic;
use taffeta::schedule::Schedule;
use taffeta::{Gradient, Options, Program};

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
    /// The program after each step of the schedule, and what the step changed
    #[arg(long)]
    steps: bool,
    /// Write the schedule's steps to a file that --schedule takes
    #[arg(long, value_name = "FILE.json")]
    trace: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Stages: `parsed` is the syntax tree, `elaborated` the logical program (valid Taffeta again), `lowered` the program on flat
buffers with its checks, `c` the C that is compiled. `grad` is the gradient with respect to all floats (`taffeta grad` has more). `scheduled` is the logical program after its schedule.

Examples:
  taffeta show f.ft main
  taffeta show f.ft main --stage c --size n=1024
  taffeta show f.ft main --schedule fast --steps
  taffeta show f.ft main --schedule fast --trace fast.json";

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
    if args.stage == Stage::Structured {
        return Err(Diagnostic::new(
            "command::unsupported",
            "this stage is not supported yet: structured tensors come in a later version",
        )
        .help("stages so far: parsed, elaborated, grad, scheduled, lowered, c")
        .into());
    }
    let program = Program::load(&args.file)?;
    if args.stage == Stage::Parsed {
        if let Some(module) = program.front().module() {
            print(&taffeta::frontend::syntax::show::module(module))?;
        }
        return Ok(());
    }
    let entry = program.entry(args.entry.as_deref())?;
    let options = Options::default()
        .statics(session::statics(&args.statics)?)
        .sizes(args.sizes.iter().cloned())
        .schedule(args.schedule.as_deref());
    if args.steps || args.trace.is_some() || args.stage == Stage::Scheduled {
        let schedule = program.scheduled(&entry, &options)?;
        if let Some(file) = &args.trace {
            taffeta::io::output::write_text(file, &schedule.trace().to_json())?;
        }
        return match args.steps {
            true => print(&steps(&program, &entry, &options, &schedule)?),
            false if args.trace.is_some() => Ok(()),
            false => print(&taffeta::ast::print::func(schedule.func())),
        };
    }
    let text = match args.stage {
        Stage::Elaborated => {
            let plain = options.schedule(None);
            taffeta::ast::print::func(&program.logical(&entry, &plain)?)
        }
        Stage::Grad => {
            let gradient = options.gradient(Gradient::default());
            taffeta::ast::print::func(&program.logical(&entry, &gradient)?)
        }
        Stage::Lowered => taffeta::ast::print::func(program.lowered(&entry, &options)?.func()),
        _ => program.c_source(&entry, &options)?.code,
    };
    print(&text)
}

/// The program as it is written, then what every step made of it: lines that it took away (`-`) and put there (`+`),
/// and what is said of it.
fn steps(program: &Program, entry: &str, options: &Options, last: &Schedule) -> Result<String, Failure> {
    let plain = options.clone().schedule(None);
    let func = program.logical(entry, &plain)?;
    let text = |f: &taffeta::ast::Func| taffeta::ast::print::func(f).trim_end().to_string() + "\n";
    let mut before = text(&func);
    let mut out = format!("# as it is written\n{before}");
    let mut number = 0;
    let taken = last.trace().replay_with(func, &mut |step, now| {
        number += 1;
        let after = text(now.func());
        out += &format!("\n# step {number}: {step}\n");
        for note in &step.notes {
            out += &format!("# note: {note}\n");
        }
        for change in similar::TextDiff::from_lines(&before, &after).iter_all_changes() {
            let sign = match change.tag() {
                similar::ChangeTag::Delete => '-',
                similar::ChangeTag::Insert => '+',
                similar::ChangeTag::Equal => ' ',
            };
            out += &format!("{sign} {change}");
        }
        before = after;
    });
    match taken {
        Ok(_) => Ok(out),
        // The steps were taken on this very program.
        Err((n, _)) => Err(Diagnostic::new("internal::steps", format!("step {n} cannot be taken again")).into()),
    }
}
