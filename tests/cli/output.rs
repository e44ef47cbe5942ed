//! Where output goes when the place does not take it, and names of results.

use super::{Folder, PROGRAM, finish};
use serde_json::Value as Json;
use std::fs::File;
use std::process::Stdio;

/// A device that is always full.
fn full() -> Stdio {
    File::options().write(true).open("/dev/full").expect("the device").into()
}

#[test]
fn a_full_standard_output_is_an_error() {
    let folder = Folder::new(&[("f.ft", PROGRAM)]);
    let run = ["run", "f.ft", "power", "--in", "x=[3]"];
    for args in [
        &run[..],
        &[&run[..], &["--json"]].concat(),
        &["show", "f.ft", "power"],
        &["show", "f.ft", "power", "--stage", "parsed"],
        &["check", "f.ft"],
        &["check", "f.ft", "--json"],
        &["build", "f.ft", "power", "-o", "out"],
        &["bench", "f.ft", "power", "--in", "x=[3]", "--repeat", "1"],
        &["run", "f.ft", "power", "--json"],
        &["--help"],
        &["run", "--help"],
        &["--version"],
    ] {
        let child = folder.command(args).stdout(full()).stderr(Stdio::piped()).spawn().expect("it runs");
        let output = child.wait_with_output().expect("it ends");
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{args:?}: {err}");
        assert!(err.contains("output::write") && err.contains("standard output cannot be written: No space"), "{err}");
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let folder = Folder::new(&[("f.ft", PROGRAM)]);
    for args in
        [&["run", "f.ft", "power", "--in", "x=[3]"][..], &["show", "f.ft", "power", "--stage", "c"], &["--help"]]
    {
        let mut child = folder.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("it ends");
        assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()), (Some(0), ""), "{args:?}");
    }
}

#[test]
fn a_returned_parameter_is_a_result_of_its_name() {
    let folder = Folder::new(&[(
        "f.ft",
        "def f(x: f32[n], y: inout[f32[n]]) -> (f32[n], f32[n]):\n    y += x\n    return x, y\n",
    )]);
    for backend in ["c", "interp"] {
        let args = ["run", "f.ft", "--in", "x=[1, 2]", "--in", "y=[10, 20]", "--backend", backend];
        let (status, out, err) =
            folder.taffeta(&[&args[..], &["--json", "--out", "x=x.csv", "--out", "out1=z.csv"]].concat());
        assert_eq!(status, 0, "{err}");
        let json: Json = serde_json::from_str(&out).expect("JSON");
        let results = json["results"].as_array().expect("a list");
        let values: Vec<_> =
            results.iter().map(|r| (r["name"].as_str().expect("a name"), r["values"].to_string())).collect();
        let [y, x, out1] = ["[11.0,22.0]", "[1.0,2.0]", "[11.0,22.0]"].map(str::to_string);
        assert_eq!(values, [("y", y), ("x", x), ("out1", out1)]);
        let text = |name: &str| std::fs::read_to_string(folder.path().join(name)).expect("the file");
        assert_eq!((text("x.csv").as_str(), text("z.csv").as_str()), ("1.0\n2.0\n", "11.0\n22.0\n"));
    }
}

#[test]
fn no_file_is_written_twice() {
    let folder = Folder::new(&[("f.ft", PROGRAM), ("d/x", "")]);
    let run = |out: &[&str]| {
        let args = ["run", "f.ft", "axpy", "--in", "x=[1]", "--in", "y=[1]", "--in", "a=1"];
        let err = folder.fails(&[&args[..], out].concat());
        assert!(err.contains("output::twice"), "{err}");
    };
    run(&["--out", "y=a.npy", "--out", "total=./a.npy"]);
    run(&["--out", "y=d/total.npy", "--out-dir", "d"]);
}

/// A program that is stopped while it runs, or while its results are written, leaves the file that was there before.
#[test]
fn an_interrupted_run_changes_no_file() {
    let folder = Folder::new(&[
        (
            "slow.ft",
            "def slow(x: f64[n]) -> f64[n]:\n    y = x + 0.0\n    for t in range(1000000000):\n        for i in range(n):\n            \
             y[i] = sin(y[i])\n    return y\n",
        ),
        ("y.csv", "before\n"),
    ]);
    let mut command = folder.command(&["run", "slow.ft", "--in", "x=rand", "--size", "n=1000", "--out", "y=y.csv"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
    std::thread::sleep(std::time::Duration::from_secs(3));
    // Not by SIGINT, which shells have what they run in the background ignore, and its children too.
    let (status, _, err) = finish(std::process::Command::new("kill").args(["-TERM", &child.id().to_string()]));
    assert_eq!(status, 0, "{err}");
    let output = child.wait_with_output().expect("it ends");
    assert!(!output.status.success());
    assert_eq!(folder.files(), ["slow.ft", "y.csv"]);
    assert_eq!(std::fs::read_to_string(folder.path().join("y.csv")).expect("the file"), "before\n");
}
