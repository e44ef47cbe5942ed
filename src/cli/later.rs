//! Commands of later versions: recognised, and refused with a pointer to the nearest existing command.

use super::output::Failure;
use taffeta::ast::Diagnostic;

/// Arguments of a later command, accepted without checks.
#[derive(clap::Args)]
pub struct Args {
    /// Ignored
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    rest: Vec<String>,
}

/// Refuses a command of a later version, naming the nearest existing one.
pub fn refuse(command: &'static str) -> Result<(), Failure> {
    let nearest = match command {
        "tune" => {
            "`--schedule auto` chooses by a model of this machine without trying (`taffeta show --schedule auto \
             --explain` says why), and `taffeta bench --schedule NAME` measures a schedule"
        }
        _ => "`taffeta check FILE.ft --json` gives diagnostics with their places, and `taffeta fmt -` formats",
    };
    let text = format!("`taffeta {command}` is not supported yet");
    Err(Failure::from(Diagnostic::new("command::unsupported", text).help(nearest)))
}
