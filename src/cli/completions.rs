//! `taffeta completions` and `taffeta man`: shell completions and manual pages.

use super::output::{Failure, print};
use clap_complete::Shell;
use taffeta::ast::{Diagnostic, spelling};

/// Print the completion script of a shell
#[derive(clap::Args)]
#[command(after_help = "Examples:
  taffeta completions bash > ~/.local/share/bash-completion/completions/taffeta
  taffeta completions zsh > ~/.zfunc/_taffeta                    in a folder of $fpath
  taffeta completions fish > ~/.config/fish/completions/taffeta.fish")]
pub struct Args {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Print a page for `man`
#[derive(clap::Args)]
#[command(after_help = "Examples:
  taffeta man > taffeta.1                the page of the command line; `man ./taffeta.1` shows it
  taffeta man run > taffeta-run.1        the page of a command")]
pub struct ManArgs {
    /// The command; the whole command line by default
    #[arg(value_name = "COMMAND")]
    command: Option<String>,
}

/// Runs `taffeta completions`.
pub fn run(args: &Args, mut all: clap::Command) -> Result<(), Failure> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut all, "taffeta", &mut text);
    print(&String::from_utf8_lossy(&text))
}

/// Runs `taffeta man`.
pub fn man(args: &ManArgs, mut all: clap::Command) -> Result<(), Failure> {
    all.build();
    let page = match &args.command {
        None => all,
        Some(name) => match all.get_subcommands().find(|c| c.get_name() == name && !c.is_hide_set()) {
            Some(found) => found.clone().display_name(format!("taffeta-{name}")),
            None => return Err(unknown(&all, name).into()),
        },
    };
    let mut text = Vec::new();
    let failed = |e: std::io::Error| Diagnostic::new("output::write", format!("cannot generate the page: {e}"));
    clap_mangen::Man::new(page).render(&mut text).map_err(failed)?;
    print(&String::from_utf8_lossy(&text))
}

fn unknown(all: &clap::Command, name: &str) -> Diagnostic {
    let names: Vec<&str> = all.get_subcommands().filter(|c| !c.is_hide_set()).map(clap::Command::get_name).collect();
    let d = Diagnostic::new("name::unknown", format!("there is no command `{name}`"));
    match spelling::nearest(name, names.iter().copied()) {
        Some(near) => d.help(format!("did you mean `{near}`?")),
        None => d.help(format!("the commands are {}", names.join(", "))),
    }
}
