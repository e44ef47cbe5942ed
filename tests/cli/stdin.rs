//! `-` as standard input, wherever a file is read.

use super::{Folder, PROGRAM, finish_with};

const ONE: &str = "\
def only(x: f32[n]) -> f32[n]:
    y = zeros((n,), f32)
    for i in range(n):
        y[i] = 2 * x[i]
    return y


@schedule(only)
def fast(s):
    s.vectorize(\"i\")
";

/// Runs a command that must succeed, with bytes on standard input; returns its standard output.
fn given(folder: &Folder, args: &[&str], input: &[u8]) -> String {
    let (status, out, err) = finish_with(&mut folder.command(args), input);
    assert_eq!((status, err.as_str()), (0, ""), "{args:?}: {out}");
    out
}

#[test]
fn a_program_comes_from_standard_input() {
    let folder = Folder::new(&[("one.ft", ONE)]);
    for args in [
        &["run", "one.ft", "only", "--in", "x=[1, 2]"][..],
        &["run", "one.ft", "only", "--in", "x=[1, 2]", "--backend", "interp"],
        &["show", "one.ft", "only"],
        &["show", "one.ft", "--stage", "parsed"],
        &["deps", "one.ft", "only"],
        &["grad", "one.ft", "only"],
    ] {
        let piped: Vec<&str> = args.iter().map(|a| if *a == "one.ft" { "-" } else { *a }).collect();
        let expected = given(&folder, args, b"");
        assert_eq!(given(&folder, &piped, ONE.as_bytes()), expected, "{args:?}");
        // Once more, when the program may come from the cache.
        assert_eq!(given(&folder, &piped, ONE.as_bytes()), expected, "{args:?}");
    }
    for args in [
        &["check", "-"][..],
        &["check-grad", "-", "only", "--size", "n=2"],
        &["build", "-", "only", "-o", "out"],
        &["bench", "-", "only", "--in", "x=rand", "--size", "n=2", "--repeat", "2"],
        &["fmt", "-"],
    ] {
        given(&folder, args, ONE.as_bytes());
    }
    // Diagnostics point into standard input, and its imports are resolved in the current directory.
    let (status, _, err) = finish_with(&mut folder.command(&["check", "-"]), b"def f(x: f32[n]):\n    return z\n");
    assert!(status == 1 && err.contains("[-:2:"), "{err}");
    let importing = b"from one import only\n\ndef f(x: f32[n]) -> f32[n]:\n    y = only(x)\n    return y\n";
    assert!(given(&folder, &["run", "-", "f", "--in", "x=[4]"], importing).contains("[8]"));
}

#[test]
fn inputs_and_traces_come_from_standard_input() {
    let folder = Folder::new(&[("f.ft", PROGRAM), ("one.ft", ONE)]);
    let run = |input: &[u8]| given(&folder, &["run", "f.ft", "power", "--in", "x=-"], input);
    assert!(run(b"1\n2\n3\n").contains("[1, 4, 9]"));
    folder.succeeds(&["run", "f.ft", "power", "--in", "x=[2, 3]", "--out", "y=y.npy"]);
    let npy = std::fs::read(folder.path().join("y.npy")).expect("a file");
    assert!(run(&npy).contains("[16, 81]"));
    folder.succeeds(&["run", "f.ft", "power", "--in", "x=[2, 3]", "--out", "y=y.npz"]);
    let npz = std::fs::read(folder.path().join("y.npz")).expect("a file");
    assert!(given(&folder, &["run", "f.ft", "power", "--in", "x=-:y"], &npz).contains("[16, 81]"));
    let (status, _, err) = finish_with(&mut folder.command(&["run", "f.ft", "power", "--in", "x=-"]), b"no, numbers\n");
    assert_eq!(status, 1, "{err}");
    folder.succeeds(&["show", "one.ft", "only", "--schedule", "fast", "--trace", "fast.json"]);
    let trace = std::fs::read(folder.path().join("fast.json")).expect("a file");
    let by_name = folder.succeeds(&["show", "one.ft", "only", "--schedule", "fast", "--stage", "scheduled"]);
    assert_eq!(given(&folder, &["show", "one.ft", "only", "--schedule", "-"], &trace), by_name);
}

/// Checks that a reader that needs a file gets a hidden temporary one, which is removed in the end.
#[test]
fn inputs_from_standard_input_leave_no_file_and_have_a_name() {
    let program = "def f(A: f64[n, m] @ csr) -> f64:\n    return sum(A)\n\n\n\
                   def g(x: f64[n]) -> f64:\n    return sum(x)\n\n\ndef s(x: f64) -> f64:\n    return x\n";
    let folder = Folder::new(&[("f.ft", program), ("tmp/x", "")]);
    let temporary = folder.path().join("tmp");
    let run = |entry: &str, input: &[u8]| {
        let given = if entry == "f" { "A=-" } else { "x=-" };
        let mut command = folder.command(&["run", "f.ft", entry, "--in", given]);
        let (status, out, err) = finish_with(command.env("TMPDIR", &temporary), input);
        assert_eq!(std::fs::read_dir(&temporary).expect("ours").count(), 1, "{entry} leaves a file");
        if status == 0 {
            return out;
        }
        assert!(!err.contains("standard-input") && !err.contains("taffeta-input"), "{err}");
        let flat = err.replace('│', " ").split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains("standard input"), "{err}");
        flat
    };
    let matrix = b"%%MatrixMarket matrix coordinate real general\n2 2 1\n1 2 5\n";
    assert!(run("f", matrix).contains("= 5"));
    assert!(run("g", b"1\n2\n").contains("= 3"));
    assert!(run("f", &matrix[..50]).contains("data::"));
    assert!(run("g", b"1\nno\n").contains("standard input:2"));
    assert!(run("g", b"\x93NUMPY").contains("standard input: not a NumPy file"));
    assert!(run("s", b"1,2\n3,4\n").contains("standard input: the table has 2 rows and 2 columns"));
}
