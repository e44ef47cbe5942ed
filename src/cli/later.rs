//! Commands of later parts: they are known, and refused.

use super::output::Failure;
use taffeta::ast::Diagnostic;

/// Anything at all: what the command will take is not checked before it exists.
#[derive(clap::Args)]
pub struct Args {
    /// Not read yet
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    rest: Vec<String>,
}

/// Says that the command is not there yet.
pub fn refuse(command: &'static str, what: &str) -> Result<(), Failure> {
    Err(Failure::from(
        Diagnostic::new(
            "command::unsupported",
            format!("`taffeta {command}` is not supported yet: {what} come in a later version"),
        )
        .help("supported are run, check, show, deps, grad, check-grad, build, bench, explain and fmt"),
    ))
}
