//! CPython and NumPy, where the machine has them. Tests that need them say so when they are absent.

use crate::programs::root;
use std::path::Path;
use std::process::Command;

/// The interpreter: `TAFFETA_PYTHON` if it is set, otherwise `python3`.
fn interpreter() -> String {
    std::env::var("TAFFETA_PYTHON").unwrap_or_else(|_| "python3".into())
}

/// Whether Python can import a module; `None` prints why the test is skipped. Where `CI` is set nothing may be skipped:
/// an oracle that is quietly absent is a test that cannot fail.
fn available(module: &str) -> Option<()> {
    let found = Command::new(interpreter()).args(["-c", &format!("import {module}")]).output();
    let why = match found {
        Ok(output) if output.status.success() => return Some(()),
        Ok(_) => format!("{} has no module {module} (pip install numpy scipy, or set TAFFETA_PYTHON)", interpreter()),
        Err(e) => format!("{} cannot be run ({e})", interpreter()),
    };
    assert!(std::env::var_os("CI").is_none(), "{why}");
    eprintln!("skipped: {why}");
    None
}

/// Runs a script of the repository that needs NumPy and SciPy; gives what it prints. `None` if they are absent.
pub fn run(script: &str, arguments: &[&Path]) -> Option<String> {
    available("numpy")?;
    available("scipy")?;
    let output = Command::new(interpreter()).arg(root().join(script)).args(arguments).output().expect("python runs");
    let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{script} failed\n{text}{errors}");
    Some(text.into_owned())
}

#[test]
fn every_program_is_python() {
    if available("ast").is_none() {
        return;
    }
    let programs: Vec<_> = ["tests", "examples", "benches", "libop"]
        .into_iter()
        .flat_map(crate::programs::below)
        // These are wrong on purpose, in ways that are wrong in Python too.
        .filter(|p| !p.name().starts_with("tests/corpus/errors/syntax/"))
        .collect();
    let script =
        "import ast, sys\nfor path in sys.argv[1:]:\n    ast.parse(open(path, encoding='utf-8').read(), path)\n";
    let output = Command::new(interpreter())
        .args(["-c", script])
        .args(programs.iter().map(|p| &p.path))
        .output()
        .expect("python runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
