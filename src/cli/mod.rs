//! Command line: one file for each subcommand, on top of the library's public interface.
//!
//! Results go to standard output, diagnostics to standard error. Exit status: 0; 1 for a diagnostic about the user's
//! program or data; 2 for wrong usage; 70 for an internal error.

mod args;
mod bench;
mod build;
mod check;
mod check_grad;
mod completions;
mod convert;
mod deps;
mod doc;
mod doctor;
mod explain;
mod explain_assembly;
mod explain_execution;
mod explain_loops;
mod finite;
mod fmt;
mod grad;
mod later;
mod output;
mod progress;
mod run;
mod session;
mod show;
mod signals;
mod summary;

use clap::error::{ContextKind, ContextValue};
use clap::{FromArgMatches, Parser, Subcommand};
use output::{Failure, Printer};
use std::process::ExitCode;

/// A language and compiler for free-form tensor programs.
#[derive(Parser)]
#[command(name = "taffeta", version, max_term_width = 100, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  taffeta run f.ft --in x=data.npy --out y=y.npy     compile to C, run, keep the result
  taffeta run f.ft main --in x=rand --size n=1000    random input of a given size
  taffeta check f.ft                                 diagnostics only
  taffeta show f.ft --stage c                        the generated C
  taffeta build f.ft main -o out                     C source, header and libraries

`taffeta COMMAND --help` has more. TAFFETA_LOG=debug shows each step, NO_COLOR=1 disables colours, and \
FORCE_COLOR=1 enables them without a terminal.
Exit status: 0; 1 a diagnostic about the program or its data; 2 wrong usage; 70 an internal error.";

#[derive(Subcommand)]
enum Command {
    /// Compile and run an entry of a program
    Run(run::Args),
    /// Report errors and warnings of programs
    Check(check::Args),
    /// Print a program at a stage of compilation
    Show(show::Args),
    /// Make C source, a header and libraries
    Build(build::Args),
    /// Measure the run time of an entry
    Bench(bench::Args),
    /// Format programs
    Fmt(fmt::Args),
    /// Print the dependences of a program, and the loops that carry them
    Deps(deps::Args),
    /// Show the manual entry of a name of the language or the library
    Doc(doc::Args),
    /// Print the gradient of a program
    Grad(grad::Args),
    /// Check the gradient of a program against finite differences and forward mode
    CheckGrad(check_grad::Args),
    /// Show the tools that compile programs, and whether the C compiler computes correctly
    Doctor(doctor::Args),
    /// Explain the code of a diagnostic
    Explain(explain::Args),
    /// Print the completion script of a shell
    Completions(completions::Args),
    /// Print a page for `man`
    Man(completions::ManArgs),
    /// Convert a tensor to another storage format
    Convert(convert::Args),
    // Help does not list commands that are refused.
    /// Search for a good schedule (not supported yet)
    #[command(hide = true)]
    Tune(later::Args),
    /// Serve editors (not supported yet)
    #[command(hide = true)]
    Lsp(later::Args),
}

/// Returns clap's description of the command line.
fn command() -> clap::Command {
    let all = <Cli as clap::CommandFactory>::command();
    if output::forced_color() { all.color(clap::ColorChoice::Always) } else { all }
}

/// Returns clap's description of a subcommand.
fn subcommand(name: &str) -> clap::Command {
    let mut all = command();
    all.build();
    all.find_subcommand(name).cloned().unwrap_or(all)
}

/// Parses the command line, runs the command, and returns the exit status.
pub fn main() -> ExitCode {
    output::install_panic_hook();
    output::install_log();
    signals::clean_up();
    let parsed = command().try_get_matches().and_then(|m| Cli::from_arg_matches(&m));
    let cli = match parsed.and_then(|cli| each_once(&cli.command).map(|()| cli)) {
        Ok(cli) => cli,
        // Help and version are not errors; clap determines stream and status.
        Err(mut e) => match output::written(advised(&mut e)) {
            Err(unwritten) if !e.use_stderr() => return Printer { json: false }.failure(&unwritten),
            _ => return ExitCode::from(u8::try_from(e.exit_code()).unwrap_or(2)),
        },
    };
    // Unwinding, unlike aborting, removes temporary files.
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| dispatch(cli.command))) {
        Ok(status) => status,
        Err(_) => ExitCode::from(output::INTERNAL_ERROR),
    }
}

/// Prints clap's error with a suggestion.
fn advised(e: &mut clap::Error) -> std::io::Result<()> {
    let word = |kind| match e.get(kind) {
        Some(ContextValue::String(word)) => Some(word.clone()),
        _ => None,
    };
    let commands = <Cli as clap::CommandFactory>::command();
    let names = commands.get_subcommands().filter(|c| !c.is_hide_set()).map(clap::Command::get_name);
    let tip = |text: String| ContextValue::StyledStrs(vec![text.into()]);
    if let Some(word) = word(ContextKind::InvalidSubcommand) {
        if word.ends_with(".ft") {
            // Discard clap's suggestion: the file's name resembles a command by accident.
            e.remove(ContextKind::SuggestedSubcommand);
            e.insert(ContextKind::Suggested, tip(format!("to run the program: taffeta run {word}")));
        } else if let Some(near) = taffeta::ast::spelling::nearest(&word, names) {
            e.insert(ContextKind::SuggestedSubcommand, ContextValue::String(near.to_string()));
        }
    } else if let Some(word) = word(ContextKind::InvalidArg).filter(|w| w.contains('=') && !w.starts_with('-')) {
        e.insert(ContextKind::Suggested, tip(format!("to give an input: --in '{word}'")));
    }
    e.print()
}

/// Refuses repeated names, which clap does not detect.
fn each_once(command: &Command) -> Result<(), clap::Error> {
    match command {
        Command::Run(a) => {
            a.program.of.each_once(&|| subcommand("run"))?;
            args::once(&|| subcommand("run"), "--out", &a.outputs)
        }
        Command::Bench(a) => a.program.of.each_once(&|| subcommand("bench")),
        Command::CheckGrad(a) => a.program.of.each_once(&|| subcommand("check-grad")),
        Command::Show(a) => a.of.each_once(&|| subcommand("show")),
        Command::Build(a) => a.of.each_once(&|| subcommand("build")),
        Command::Grad(a) => a.of.each_once(&|| subcommand("grad")),
        Command::Deps(a) => a.of.each_once(&|| subcommand("deps")),
        _ => Ok(()),
    }
}

fn dispatch(command: Command) -> ExitCode {
    let (json, result): (bool, Result<(), Failure>) = match command {
        Command::Run(a) => (a.program.json, run::run(&a)),
        Command::Check(a) => (a.json, check::run(&a)),
        Command::Show(a) => (a.json, show::run(&a)),
        Command::Build(a) => (a.json, build::run(&a)),
        Command::Bench(a) => (a.program.json, bench::run(&a)),
        Command::Fmt(a) => (false, fmt::run(&a)),
        Command::Deps(a) => (a.json, deps::run(&a)),
        Command::Doc(a) => (false, doc::run(&a)),
        Command::Grad(a) => (false, grad::run(&a)),
        Command::CheckGrad(a) => (a.program.json, check_grad::run(&a)),
        Command::Doctor(a) => (a.json, doctor::run(&a)),
        Command::Explain(a) => (false, explain::run(&a)),
        Command::Completions(a) => (false, completions::run(&a, self::command())),
        Command::Man(a) => (false, completions::man(&a, self::command())),
        Command::Convert(a) => (a.json, convert::run(&a)),
        Command::Tune(_) => (false, later::refuse("tune")),
        Command::Lsp(_) => (false, later::refuse("lsp")),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => Printer { json }.failure(&failure),
    }
}

#[cfg(test)]
mod tests {
    use super::command;

    /// Returns all commands listed in help, and the command line itself.
    fn commands() -> Vec<clap::Command> {
        let mut all = command();
        all.build();
        let shown = all.get_subcommands().filter(|c| !c.is_hide_set() && c.get_name() != "help").cloned();
        shown.chain([all.clone()]).collect()
    }

    #[test]
    fn the_page_of_the_command_line_has_every_command_and_option() {
        const PAGE: &str = include_str!("../../docs/src/cli.md");
        let mut missing = Vec::new();
        let mut options = 0;
        for c in commands() {
            let name = c.get_name();
            if name != "taffeta" && !PAGE.contains(&format!("\ntaffeta {name} ")) {
                missing.push(format!("taffeta {name}"));
            }
            for long in c.get_arguments().flat_map(|a| a.get_long_and_visible_aliases().unwrap_or_default()) {
                options += 1;
                let stands = PAGE.match_indices(&format!("--{long}")).any(|(at, found)| {
                    let next = PAGE[at + found.len()..].chars().next();
                    next.is_none_or(|c| !c.is_ascii_alphanumeric() && c != '-')
                });
                if !stands && !["help", "version"].contains(&long) {
                    missing.push(format!("taffeta {name} --{long}"));
                }
            }
        }
        assert!(options > 60, "only {options} options were checked");
        assert_eq!(missing, Vec::<String>::new());
    }

    /// Checks the line structure of help: clap wraps lines at the terminal's width, and would break hard-wrapped text
    /// twice.
    #[test]
    fn help_has_one_line_per_paragraph_and_examples_fit() {
        const WIDTH: usize = 100;
        for c in commands() {
            for text in
                [c.get_after_help(), c.get_before_help(), c.get_about(), c.get_long_about()].into_iter().flatten()
            {
                let text = text.to_string();
                let lines: Vec<&str> = text.lines().collect();
                for line in &lines {
                    let fits = !line.starts_with(' ') || line.chars().count() <= WIDTH;
                    assert!(fits, "{}: an example of more than {WIDTH} characters: {line}", c.get_name());
                }
                for pair in lines.windows(2) {
                    let inside = [pair[0], pair[1]].iter().all(|l| !l.is_empty() && !l.starts_with(' '));
                    let ends = pair[0].ends_with(['.', ':']);
                    assert!(!inside || ends, "{}: a paragraph of several lines: {pair:?}", c.get_name());
                }
            }
        }
    }
}
