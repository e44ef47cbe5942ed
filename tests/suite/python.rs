//! CPython with NumPy and SciPy. Tests that need them fail where they are absent: with an oracle that is silently
//! absent, a test cannot fail. `TAFFETA_SKIP_NUMPY=1` does without them.

use crate::programs::root;
use std::path::Path;
use std::process::Command;

/// Returns the Python interpreter: `TAFFETA_PYTHON` if it is set, otherwise the one that `tools/setup.sh test` makes,
/// if it exists, or `python3`.
pub fn interpreter() -> String {
    let made = root().join(".venv/bin/python");
    let otherwise = || if made.is_file() { made.display().to_string() } else { "python3".into() };
    std::env::var("TAFFETA_PYTHON").ok().filter(|p| !p.is_empty()).unwrap_or_else(otherwise)
}

/// Returns the reason why `python` cannot import a module; `None` if it can.
fn missing(python: &str, module: &str) -> Option<String> {
    match Command::new(python).args(["-c", &format!("import {module}")]).output() {
        Ok(output) if output.status.success() => None,
        Ok(_) => Some(format!("{python} has no module {module}")),
        Err(e) => Some(format!("{python} cannot be run ({e})")),
    }
}

/// Returns whether to go on despite a missing module; the error lists the remedies.
fn go_on(why: Option<String>, skip: bool) -> Result<bool, String> {
    match why {
        None => Ok(true),
        Some(_) if skip => Ok(false),
        Some(why) => Err(format!(
            "{why}, and this test compares with NumPy and SciPy. Type `tools/setup.sh test`, which makes a .venv with \
             both; or set TAFFETA_PYTHON to a Python that has them (`pip install numpy scipy`); or set \
             TAFFETA_SKIP_NUMPY=1 to do without these tests"
        )),
    }
}

/// Checks that Python can import a module; returns `None` if it cannot and `TAFFETA_SKIP_NUMPY=1` permits that.
pub fn available(module: &str) -> Option<()> {
    let why = missing(&interpreter(), module);
    let skip = std::env::var("TAFFETA_SKIP_NUMPY").is_ok_and(|v| v == "1");
    if let (Some(why), true) = (&why, skip) {
        eprintln!("skipped: {why}");
    }
    go_on(why, skip).unwrap_or_else(|why| panic!("{why}")).then_some(())
}

/// Runs a script of the repository that needs NumPy and SciPy; returns its output, or `None` if they are absent and may
/// be.
pub fn run(script: &str, arguments: &[&Path]) -> Option<String> {
    available("numpy")?;
    available("scipy")?;
    let mut command = Command::new(interpreter());
    // The matrices are small, and OpenBLAS's idle threads would spin.
    let command = command.arg(root().join(script)).args(arguments).env("OPENBLAS_NUM_THREADS", "1");
    let output = command.output().expect("python runs");
    let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{script} failed\n{text}{errors}");
    Some(text.into_owned())
}

#[test]
fn every_program_parses_as_python() {
    if available("ast").is_none() {
        return;
    }
    let programs: Vec<_> = ["tests", "examples", "benches", "libop"]
        .into_iter()
        .flat_map(crate::programs::below)
        // These have deliberate syntax errors, which are errors in Python too.
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

/// Checks that a missing Python, and one without the module, fail the test unless they may be absent.
#[test]
fn missing_python_fails_tests() {
    let [nowhere, without] =
        [missing("/nowhere/python", "ast"), missing(&interpreter(), "no_such_module")].map(|why| why.expect("missing"));
    assert!(nowhere.starts_with("/nowhere/python cannot be run ("), "{nowhere}");
    assert!(without.ends_with(" has no module no_such_module"), "{without}");
    for why in [nowhere, without] {
        assert_eq!(go_on(Some(why.clone()), true), Ok(false));
        let message = go_on(Some(why.clone()), false).expect_err("it is missing");
        let told = ["tools/setup.sh test", "TAFFETA_PYTHON", "TAFFETA_SKIP_NUMPY=1"];
        assert!(message.starts_with(&why) && told.iter().all(|t| message.contains(t)), "{message}");
    }
    assert_eq!(go_on(None, false), Ok(true));
}
