//! The corpus: the output of each command of each program in `tests/corpus` is in the `.expect` file beside it. Runs
//! are by the interpreter, and every second one of a program by C, too.
//!
//! Every `run` is executed twice, in the interpreter and as compiled C, and must print the same text both times:
//! results, and the errors that stop a program. `UPDATE_EXPECT=1` writes the files. To add a test, add a file.

use crate::programs::{self, Program};
use std::fmt::Write as _;

/// Returns the output of a command, and its exit status if that is not 0.
fn printed(program: &Program, arguments: &[String]) -> String {
    let output = program.taffeta(arguments);
    let mut text = String::new();
    for part in [&output.stdout, &output.stderr] {
        for line in String::from_utf8_lossy(part).lines() {
            writeln!(text, "{}", line.trim_end()).expect("memory");
        }
    }
    match output.status.code() {
        Some(0) => {}
        Some(code) => writeln!(text, "exit status {code}").expect("memory"),
        None => writeln!(text, "killed: {}", output.status).expect("memory"),
    }
    text
}

/// Returns the transcript of all commands of a program, and its faults regardless of the expected text.
fn transcript(program: &Program) -> (String, Vec<String>) {
    let mut text = String::new();
    let mut faults = Vec::new();
    for (k, command) in program.commands.iter().enumerate() {
        let arguments = program.arguments(command);
        writeln!(text, "$ taffeta {}", arguments.join(" ")).expect("memory");
        let shown = if command.starts_with("run ") {
            let by = |backend: &str| {
                let chosen = ["--backend".to_string(), backend.to_string()];
                printed(program, &[&arguments[..], &chosen].concat())
            };
            let interpreted = by("interp");
            let compiled = k.is_multiple_of(2).then(|| by("c"));
            if let Some(compiled) = compiled.filter(|compiled| *compiled != interpreted) {
                faults.push(format!("{command}\n--- interpreter\n{interpreted}--- compiled C\n{compiled}"));
            }
            interpreted
        } else {
            printed(program, &arguments)
        };
        if shown.contains("exit status 70") || shown.contains("killed") || shown.contains("panicked") {
            faults.push(format!("{command}\n{shown}"));
        }
        text.push_str(&shown);
        text.push('\n');
    }
    (text, faults)
}

#[test]
fn every_command_prints_its_expected_output() {
    let all = programs::below("tests/corpus");
    assert!(all.len() > 50, "only {} programs: is the folder complete?", all.len());
    let faults: Vec<String> = programs::for_each(&all, |program| {
        let (found, mut faults) = transcript(program);
        let path = program.path.with_extension("expect");
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            if program.commands.is_empty() {
                let _ = std::fs::remove_file(&path);
            } else {
                std::fs::write(&path, &found).expect("the file can be written");
            }
        } else if !program.commands.is_empty() {
            let expected = std::fs::read_to_string(&path).unwrap_or_default();
            if expected != found {
                faults.push(format!("expected\n{expected}--- found\n{found}"));
            }
        }
        faults.into_iter().map(|f| format!("{}: {f}", program.name())).collect::<Vec<_>>()
    })
    .concat();
    assert!(
        faults.is_empty(),
        "{}\n{} faults (UPDATE_EXPECT=1 accepts what is printed now)",
        faults.join("\n"),
        faults.len()
    );
}
