//! The command line from outside: output and exit status.

mod build;
mod cache;
mod check_grad;
mod convert;
mod data;
mod deps;
mod doctor;
mod finite;
mod gradients;
mod library;
mod limits;
mod options;
mod output;
mod public;
mod published;
mod run;
mod schedule;
mod shell;
mod sparse;
mod stdin;
mod strict;
mod surroundings;
mod usage;

use crate::probed::make_cache;
use crate::programs::{self, FLAGS};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// Temporary folder with some files, in which `taffeta` is run.
pub struct Folder(TempDir);

impl Folder {
    /// Creates the folder and its files.
    pub fn new(files: &[(&str, &str)]) -> Folder {
        let folder = Folder(tempfile::tempdir().expect("a temporary folder"));
        for (name, text) in files {
            folder.write(name, text.as_bytes());
        }
        folder
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn write(&self, name: &str, bytes: &[u8]) {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, bytes).expect("a file");
    }

    /// Returns the sorted names of the files in the folder.
    pub fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.path()).expect("the folder");
        let mut names: Vec<String> =
            entries.map(|e| e.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// Returns a cache in the folder that holds the verdict on the C compiler and the compiled runtime.
    pub fn cache(&self) -> PathBuf {
        let cache = self.path().join("cache");
        if !cache.exists() {
            make_cache(&cache, FLAGS);
        }
        cache
    }

    /// Makes a command, which the caller may change before running it. C is compiled fast.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_taffeta"));
        command
            .args(args)
            .current_dir(self.path())
            .env("TAFFETA_CACHE_DIR", programs::cache())
            .env("CFLAGS", FLAGS)
            .env_remove("RUST_BACKTRACE");
        command
    }

    /// Runs a command line; returns status, standard output and standard error.
    pub fn taffeta(&self, args: &[&str]) -> (i32, String, String) {
        finish(&mut self.command(args))
    }

    /// Runs a command line that must fail with status 1; returns its standard error.
    pub fn fails(&self, args: &[&str]) -> String {
        let (status, out, err) = self.taffeta(args);
        assert_eq!((status, out.as_str()), (1, ""), "taffeta {args:?}\n{err}");
        err
    }

    /// Runs a command line that must succeed; returns its standard output.
    pub fn succeeds(&self, args: &[&str]) -> String {
        let (status, out, err) = self.taffeta(args);
        assert_eq!((status, err.as_str()), (0, ""), "taffeta {args:?}\n{out}");
        out
    }
}

/// Runs a command with bytes on standard input; returns status, standard output and standard error.
pub fn finish_with(command: &mut Command, input: &[u8]) -> (i32, String, String) {
    use std::io::Write;
    use std::process::Stdio;
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
    // A command that fails may not read all of its input.
    let _ = child.stdin.take().expect("a pipe").write_all(input);
    let output = child.wait_with_output().expect("it ends");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().expect("an exit status"), text(&output.stdout), text(&output.stderr))
}

/// Runs a command; returns status, standard output and standard error.
pub fn finish(command: &mut Command) -> (i32, String, String) {
    let output = command.output().expect("it runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().expect("an exit status"), text(&output.stdout), text(&output.stderr))
}

/// Programs that the tests run.
pub const PROGRAM: &str = r#"
def axpy(x: f32[n], y: inout[f32[n]], a: f32) -> f32:
    """Adds a multiple of x to y, and sums it up."""
    total: f32 = 0.0
    for i in range(n):
        y[i] += a * x[i]
        total += y[i]
    return total


def pick(x: f64[n], index: i32[m]) -> f64[m]:
    y = zeros((m,), f64)
    for i in range(m):
        y[i] = x[index[i]]
    return y


def power(x: i64[n], k: static = 2):
    y = x ** k
    return y


def halves(x: f32[2 * n]) -> (f32[n], f32[n]):
    a = x[:n]
    b = x[n:]
    return a, b


def made(x: f64[rows, columns], pairs: i32[edges, 2]) -> f64:
    s: f64 = 0.0
    for e in range(edges):
        s += x[pairs[e, 0] % rows, pairs[e, 1] % columns]
    return s
"#;
