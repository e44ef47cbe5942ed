//! `taffeta show`: a program at a stage of compilation, as text.

use super::args::EntryArgs;
use super::output::{Failure, print, print_json};
use super::session;
use clap::ValueEnum;
use std::path::PathBuf;
use taffeta::ast::Diagnostic;
use taffeta::schedule::Schedule;
use taffeta::schedule::show::program as listing;
use taffeta::{Options, Program};

/// Print a program at a stage of compilation
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    pub of: EntryArgs,
    /// The stage; the default is `scheduled` with a schedule, else `elaborated`
    #[arg(long, value_enum)]
    stage: Option<Stage>,
    /// Print the program after each step of the schedule, with the changes of the step
    #[arg(long)]
    steps: bool,
    /// Explain how the program runs under its schedule, instead of printing it: for each loop, whether it runs on
    /// threads and in lanes, or why not; estimates against the roofline; drivers of loops over structured tensors. With
    /// `--schedule auto`, or a schedule that consults rules: the options that were tried, estimated, refused and taken
    #[arg(long, conflicts_with_all = ["stage", "steps", "trace"])]
    explain: bool,
    /// Print the steps of the schedule as a schedule function, to be pasted into the file and developed further
    #[arg(long, requires = "schedules", conflicts_with_all = ["stage", "steps", "trace", "explain"])]
    as_function: bool,
    /// Print the output of --explain as JSON
    #[arg(long, requires = "explain")]
    pub json: bool,
    /// Write the schedule's steps to a file that --schedule accepts
    #[arg(long, value_name = "FILE.json")]
    trace: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Stages: `parsed` is the syntax tree, `elaborated` the logical program (valid Taffeta again), `structured` that \
program on the arrays of its structured tensors, `lowered` the program on flat buffers with its checks, `c` the C \
code. `scheduled` is the logical program after its schedule. `grad` is the gradient with respect to all floats; \
`taffeta grad` has more options, and --grad shows every other stage of the gradient. If the name of a loop in \
schedules differs, it follows the loop as a comment (`i~o`).

Examples:
  taffeta show f.ft main
  taffeta show f.ft main --stage c --size n=1024
  taffeta show f.ft main --explain --size n=1024       as written: why it is slow
  taffeta show f.ft main --schedule fast --explain --size n=1024
  taffeta show f.ft main --schedule auto --explain --size n=1024
  taffeta show f.ft main --schedule auto --as-function >> f.ft   the steps that rules chose, to edit
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
    let stage = match (args.stage, args.of.schedule()) {
        (Some(stage), _) => stage,
        (None, Some(_)) => Stage::Scheduled,
        (None, None) => Stage::Elaborated,
    };
    let program = Program::load(&args.of.file)?;
    let options = session::options(&args.of)?;
    if stage == Stage::Parsed {
        if args.of.schedule().is_some() {
            program.scheduled(&program.entry(args.of.entry.as_deref())?, &options)?;
        }
        if let Some(module) = program.front().module() {
            print(&taffeta::frontend::syntax::show::module(module))?;
        }
        return Ok(());
    }
    let entry = program.entry(args.of.entry.as_deref())?;
    let options = program.with_inputs(&entry, &options, &args.of.inputs, &args.of.sizes)?;
    if taffeta::must_measure(&options) || args.explain && taffeta::is_unmeasured(&options) {
        super::progress::while_measuring(taffeta::measure);
    }
    // Steps that are listed or written to a trace are those of the program with the tapes of `autodiff`, on which they
    // can be replayed.
    let options = options.choose_tapes(!(args.steps || args.trace.is_some()));
    if args.trace.is_some() {
        program.has_steps_of_an_entry(&entry, &options)?;
    }
    if args.as_function {
        return print(&program.schedule_function(&entry, &options)?);
    }
    if args.explain {
        let report = program.execution_report(&entry, &options)?;
        let stored = options.hints.iter().filter_map(|(name, n)| Some((name.strip_suffix(".stored")?, *n)));
        let (stored, sources) = (stored.collect(), program.sources());
        let found = super::explain_execution::ReportText { entry: &entry, report: &report, sources, stored };
        return if args.json { print_json(&found.json()) } else { print(&found.text()) };
    }
    if args.steps || args.trace.is_some() || stage == Stage::Scheduled && options.gradient.is_none() {
        let schedule = program.scheduled(&entry, &options)?;
        if let Some(file) = &args.trace {
            taffeta::io::output::write_text(file, &schedule.trace().to_json())?;
        }
        return match args.steps {
            true => print(&steps(&program, &entry, &options, &schedule)?),
            false if args.trace.is_some() => Ok(()),
            false => print(&listing(schedule.func())),
        };
    }
    let text = match stage {
        Stage::Elaborated => {
            if options.schedule.is_some() {
                // The schedule is not shown, but an invalid one must be reported.
                program.scheduled(&entry, &options)?;
            }
            listing(&program.logical(&entry, &options.schedule(None))?)
        }
        // With `--grad`, the gradient of the scheduled program.
        Stage::Grad | Stage::Scheduled => {
            let gradient = options.gradient.clone().unwrap_or_default();
            let options = options.gradient(gradient);
            match options.schedule.as_deref() {
                // Rules schedule the gradient after differentiation.
                Some(session::AUTO) => listing(program.scheduled(&entry, &options)?.func()),
                _ => listing(&program.logical(&entry, &options)?),
            }
        }
        Stage::Structured => listing(&program.structured(&entry, &options)?),
        Stage::Lowered => taffeta::ast::print::func(program.lowered(&entry, &options)?.func()),
        _ => program.c_source(&entry, &options)?.code,
    };
    print(&text)
}

/// Renders the program as written, then the effect of every step: lines removed (`-`) and added (`+`), and notes.
fn steps(program: &Program, entry: &str, options: &Options, last: &Schedule) -> Result<String, Failure> {
    let plain = options.clone().schedule(None);
    let func = program.logical(entry, &plain)?;
    let text = |f: &taffeta::ast::Func| listing(f).trim_end().to_string() + "\n";
    let mut before = text(&func);
    let mut out = format!("# as written\n{before}");
    let mut number = 0;
    let taken = last.trace().replay_on(last.afresh(func), &mut |step, now| {
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
        Err((n, _)) => Err(Diagnostic::new("internal::steps", format!("cannot replay step {n}")).into()),
    }
}
