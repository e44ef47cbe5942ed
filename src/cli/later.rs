//! Commands of later versions: they are known, and say which command does the nearest thing.

use super::output::Failure;
use taffeta::ast::Diagnostic;

/// Anything at all: what the command will take is not checked before it exists.
#[derive(clap::Args)]
pub struct Args {
    /// Not read yet
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    rest: Vec<String>,
}

/// Says that the command is not there yet, and what does the nearest thing.
pub fn refuse(command: &'static str) -> Result<(), Failure> {
    let nearest = match command {
        "convert" => {
            "`taffeta run` reads and writes `.mtx`, `.tns`, `.npz` and `.npy`: a program that copies `A: f64[n, m] @ csr` \
             into a result `@ pattern(A)`, with `--in A=a.mtx --out B=b.npz`"
        }
        "tune" => {
            "`--schedule auto` chooses by a model of this machine without trying (`taffeta show --schedule auto \
             --explain` says why), and `taffeta bench --schedule NAME` measures a schedule"
        }
        _ => "`taffeta check FILE.ft --json` gives diagnostics with their places, and `taffeta fmt -` formats",
    };
    let text = format!("`taffeta {command}` is not there yet");
    Err(Failure::from(Diagnostic::new("command::unsupported", text).help(nearest)))
}
