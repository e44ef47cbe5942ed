//! How a program that trains begins and ends.

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

/// Where its picture goes: the first argument, or `target/NAME.svg`.
pub fn picture(name: &str) -> PathBuf {
    std::env::args_os().nth(1).map_or_else(|| PathBuf::from(format!("target/{name}.svg")), PathBuf::from)
}

/// 0 if it has learned what it should, 1 if not, and 2, with the reason, if it could not try.
pub fn exit(name: &str, learned: Result<bool, Box<dyn Error>>) -> ExitCode {
    match learned {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(e) => {
            eprintln!("{name}: {e}");
            ExitCode::from(2)
        }
    }
}
