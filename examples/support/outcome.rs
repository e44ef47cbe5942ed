//! Beginning and end of a program that draws a picture.

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

/// Returns the path of the picture: the first argument, or this file in `target`.
pub fn picture(file: &str) -> PathBuf {
    std::env::args_os().nth(1).map_or_else(|| PathBuf::from("target").join(file), PathBuf::from)
}

/// Returns 0 if the program reached its goal, 1 if not, and 2, with the reason, if it could not try.
pub fn exit(name: &str, well: Result<bool, Box<dyn Error>>) -> ExitCode {
    match well {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(e) => {
            eprintln!("{name}: {e}");
            ExitCode::from(2)
        }
    }
}
