//! The `.ft` programs of the repository and the commands in their comments.
//!
//! A line `# taffeta: run main --in x=arange --size n=5` is a command that the tests run in the program's folder, with
//! the file's name inserted after the first word. Inputs are generators, literals, or files that are part of the
//! project.

use rayon::prelude::*;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Flags of the C compiler in commands, which compile fast: other tests optimise the same programs.
pub const FLAGS: &str = "-Og";

/// Program with its commands.
pub struct Program {
    /// Path of the file.
    pub path: PathBuf,
    /// Commands, as written in the file.
    pub commands: Vec<String>,
}

impl Program {
    /// Returns the name below the repository's root, for messages.
    pub fn name(&self) -> String {
        self.path.strip_prefix(root()).unwrap_or(&self.path).display().to_string()
    }

    /// Splits a command into arguments, with the file's name inserted.
    pub fn arguments(&self, command: &str) -> Vec<String> {
        let file = self.path.file_name().expect("a file").to_string_lossy().into_owned();
        let mut words = words(command).into_iter();
        words.next().into_iter().chain([file]).chain(words).collect()
    }

    /// Runs `taffeta` in the program's folder.
    pub fn taffeta(&self, arguments: &[String]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_taffeta"))
            .args(arguments)
            .current_dir(self.path.parent().expect("a folder"))
            .env("NO_COLOR", "1")
            .env("COLUMNS", "100")
            // Estimates depend on the number of threads.
            .env("OMP_NUM_THREADS", "2")
            .env("TAFFETA_CACHE_DIR", cache())
            .env("CFLAGS", FLAGS)
            .output()
            .expect("taffeta runs")
    }
}

/// Splits a command line into words as a shell does: `'…'` is part of a word, with its blanks.
pub fn words(command: &str) -> Vec<String> {
    let (mut words, mut quoted) = (vec![String::new()], false);
    for c in command.chars() {
        match c {
            '\'' => quoted = !quoted,
            c if c.is_whitespace() && !quoted => words.push(String::new()),
            c => words.last_mut().expect("a word").push(c),
        }
    }
    words.retain(|w| !w.is_empty());
    words
}

/// Returns the root of the repository.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the cache for all tests of a run and for the next run: a private one, so that no test touches the user's.
pub fn cache() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("taffeta-cache")
}

/// Collects the programs below a folder of the repository, in order.
pub fn below(folder: &str) -> Vec<Program> {
    let mut folders = vec![root().join(folder)];
    let mut programs = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display())) {
            let path = entry.expect("an entry of the folder").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "ft") {
                let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
                let commands = text.lines().filter_map(|l| l.strip_prefix("# taffeta: ")).map(str::to_string).collect();
                programs.push(Program { path, commands });
            }
        }
    }
    programs.sort_by(|a, b| a.path.cmp(&b.path));
    programs
}

/// Applies `f` to each of `items`, on as many threads as there are processors; returns the results in order.
pub fn for_each<T: Sync, R: Send>(items: &[T], f: impl Fn(&T) -> R + Sync + Send) -> Vec<R> {
    items.par_iter().map(f).collect()
}

/// Checks that every program is laid out as by `taffeta fmt`; only those of `tests/corpus/errors` may fail to parse.
#[test]
fn every_program_is_formatted() {
    let folders = ["libop", "examples", "benches", "tests/polybench", "tests/corpus"];
    let all: Vec<Program> = folders.iter().flat_map(|folder| below(folder)).collect();
    assert!(all.len() > 150, "only {} programs: are the folders complete?", all.len());
    let unformatted = |program: &Program| {
        let text = std::fs::read_to_string(&program.path).expect("the file");
        match taffeta_frontend::format::format(&text, taffeta_ast::FileId(0)) {
            Ok(formatted) => (formatted != text).then(|| program.name()),
            Err(_) => (!program.name().starts_with("tests/corpus/errors/")).then(|| program.name()),
        }
    };
    let names: Vec<String> = for_each(&all, unformatted).into_iter().flatten().collect();
    assert!(names.is_empty(), "not formatted: run `taffeta fmt {}`", names.join(" "));
}
