//! Output to destinations that cannot take it, and names of results.

use super::{Folder, PROGRAM, finish};
use serde_json::Value as Json;
use std::fs::File;
use std::process::Stdio;

/// Opens a device that is always full.
fn full() -> Stdio {
    File::options().write(true).open("/dev/full").expect("the device").into()
}

#[test]
fn full_standard_output_is_an_error() {
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
        assert!(err.contains("output::write") && err.contains("cannot write standard output: No space"), "{err}");
    }
}

#[test]
fn closed_pipes_are_not_errors() {
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
fn returned_parameters_are_results_of_their_name() {
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

/// Checks that links to one file count as one file.
#[test]
fn links_to_one_file_are_one_file() {
    let folder = Folder::new(&[("f.ft", PROGRAM), ("real.npy", "before")]);
    for name in ["a.npy", "b.npy"] {
        std::os::unix::fs::symlink("real.npy", folder.path().join(name)).expect("a link");
    }
    let args = ["run", "f.ft", "axpy", "--in", "x=[1]", "--in", "y=[1]", "--in", "a=1", "--out", "y=a.npy"];
    for other in ["total=b.npy", "total=real.npy", "total=./real.npy"] {
        let err = folder.fails(&[&args[..], &["--out", other]].concat());
        assert!(err.contains("output::twice"), "{other}: {err}");
    }
    assert_eq!(folder.taffeta(&args).0, 0);
    assert!(folder.path().join("a.npy").is_symlink());
    assert!(std::fs::read(folder.path().join("real.npy")).expect("the file").starts_with(b"\x93NUMPY"));
}

/// Checks that destinations are tested before the program runs, perhaps for minutes.
#[test]
fn destinations_are_checked_before_the_run() {
    let endless = "def f(x: f64[n]) -> f64[n]:\n    y = x + 0.0\n    for t in range(1000000000):\n        \
                   for i in range(n):\n            y[i] = sin(y[i])\n    return y\n";
    let folder = Folder::new(&[("f.ft", endless), ("file", ""), ("d.npy/x", ""), ("out/y.npy/x", "")]);
    std::os::unix::fs::symlink("/dev/null", folder.path().join("null.npy")).expect("a link");
    let args = ["run", "f.ft", "--in", "x=rand", "--size", "n=1000"];
    for place in [
        &["--out", "y=/proc/y.npy"][..],
        &["--out", "y=no/y.npy"],
        &["--out", "y=file/y.npy"],
        &["--out", "y=d.npy"],
        &["--out", "y=null.npy"],
        &["--out-dir", "/proc/new/folder"],
        &["--out-dir", "file/new"],
        &["--out-dir", "file"],
        &["--out-dir", "out"],
    ] {
        let err = folder.fails(&[&args[..], place].concat());
        assert!(err.contains("output::"), "{place:?}: {err}");
    }
    assert!(folder.files().iter().all(|f| !f.starts_with(".taffeta")), "nothing is left behind");
}

#[test]
fn clipping_in_pictures_is_reported() {
    let folder = Folder::new(&[("f.ft", "def f(x: f32[n, m]) -> f32[n, m]:\n    y = x + 0.0\n    return y\n")]);
    let run = |x: &str| folder.succeeds(&["run", "f.ft", "--in", &format!("x={x}"), "--out", "y=y.png"]);
    assert_eq!(
        run("[[0, 1.5], [-0.25, 0.5]]"),
        "y: f32[2, 2] → y.png\n  2 of 4 numbers (50 %) are outside of 0 to 1, and were clipped\n"
    );
    assert_eq!(run("[[0, 1], [1, 0.5]]"), "y: f32[2, 2] → y.png\n");
    let json = folder.succeeds(&["run", "f.ft", "--in", "x=[[2]]", "--out", "y=y.png", "--json"]);
    let json: Json = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["results"][0]["clipped"], 1);
}

/// Checks that a program that is killed while it runs leaves the previous output file.
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
    // Not SIGINT, which shells make background processes and their children ignore.
    let (status, _, err) = finish(std::process::Command::new("kill").args(["-TERM", &child.id().to_string()]));
    assert_eq!(status, 0, "{err}");
    let output = child.wait_with_output().expect("it ends");
    assert!(!output.status.success());
    assert_eq!(folder.files(), ["slow.ft", "y.csv"]);
    assert_eq!(std::fs::read_to_string(folder.path().join("y.csv")).expect("the file"), "before\n");
}
