//! Integration with the shell: completions, man pages, colours, pipes, and several files.

use super::{Folder, PROGRAM, finish, finish_with};

#[test]
fn completions_and_man_pages_cover_the_command_line() {
    let folder = Folder::new(&[]);
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let text = folder.succeeds(&["completions", shell]);
        for word in ["check-grad", "strict-floats", "schedule"] {
            assert!(text.contains(word), "the completions for {shell} lack {word}");
        }
    }
    let script = folder.succeeds(&["completions", "bash"]);
    let (status, _, err) = finish_with(std::process::Command::new("bash").arg("-n"), script.as_bytes());
    assert_eq!((status, err.as_str()), (0, ""), "bash does not read it");
    assert_eq!(folder.taffeta(&["completions", "sh"]).0, 2);

    let page = folder.succeeds(&["man"]);
    assert!(page.starts_with(".ie") && page.contains(".TH taffeta 1") && page.contains("check"), "{page}");
    let page = folder.succeeds(&["man", "run"]);
    assert!(page.contains(".TH taffeta-run 1") && page.contains("check\\-finite"), "{page}");
    assert!(folder.fails(&["man", "rum"]).contains("did you mean `run`?"));
}

#[test]
fn colours_can_be_requested() {
    let folder = Folder::new(&[("f.ft", "def f(x: f32[n]):\n    return z\n")]);
    let coloured = |variables: &[(&str, &str)]| {
        let mut command = folder.command(&["check", "f.ft"]);
        command.env_remove("NO_COLOR").env_remove("FORCE_COLOR").envs(variables.iter().copied());
        finish(&mut command).2.contains('\x1b')
    };
    assert!(coloured(&[("FORCE_COLOR", "1")]));
    assert!(coloured(&[("FORCE_COLOR", "1"), ("NO_COLOR", "1")]), "`FORCE_COLOR` overrides `NO_COLOR`");
    assert!(!coloured(&[]) && !coloured(&[("FORCE_COLOR", "0")]) && !coloured(&[("FORCE_COLOR", "")]));
}

#[test]
fn several_files_are_checked() {
    let folder = Folder::new(&[
        ("a.ft", "def f(x: f32[n]) -> f32[n]:\n    return x\n"),
        ("b.ft", "def g(x: f32[n]):\n    return z\n"),
        ("c.ft", "def h(x: f32[n]):\n    y = q\n    return y\n"),
        ("d.ft", "def k(x: f32[n]) -> f32[n]:\n    return x\n"),
    ]);
    assert_eq!(folder.succeeds(&["check", "a.ft", "d.ft"]), "a.ft: no errors in 1 entry\nd.ft: no errors in 1 entry\n");
    let (status, out, err) = folder.taffeta(&["check", "a.ft", "b.ft", "c.ft", "nowhere.ft", "d.ft"]);
    assert_eq!((status, out.as_str()), (1, "a.ft: no errors in 1 entry\nd.ft: no errors in 1 entry\n"));
    // Each diagnostic points to its own file and line.
    assert!(err.contains("[b.ft:2:") && err.contains("return z") && err.contains("[c.ft:2:"), "{err}");
    assert!(err.contains("y = q") && err.contains("nowhere.ft: there is no such file"), "{err}");
    assert!(err.contains("3 errors"), "{err}");
    let (status, out, _) = folder.taffeta(&["check", "a.ft", "b.ft", "c.ft", "--json"]);
    let all: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!((status, all["diagnostics"].as_array().map(Vec::len)), (1, Some(2)), "{all}");
    assert!(all["diagnostics"][1].to_string().contains("c.ft"), "{all}");
}

#[test]
fn results_go_to_standard_output() {
    let matrix = "def same(A: f64[n, m] @ csr) -> f64[n, m] @ pattern(A):\n    B = zeros((n, m), f64)\n    for i in range(n):\n        \
                  for j in range(m):\n            B[i, j] = 2.0 * A[i, j]\n    return B\n";
    let print = "def p(x: i64) -> i64:\n    print(\"x is\", x)\n    return x\n";
    let folder = Folder::new(&[("f.ft", PROGRAM), ("m.ft", matrix), ("p.ft", print)]);
    let bytes = |args: &[&str]| {
        let output = folder.command(args).output().expect("it runs");
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        (output.stdout, String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (npy, said) = bytes(&["run", "f.ft", "power", "--in", "x=[2,3]", "--out", "y=-"]);
    assert!(npy.starts_with(b"\x93NUMPY") && said == "y: i64[2] → -\n", "{said}");
    // `-` also reads the result back.
    let mut again = folder.command(&["run", "f.ft", "power", "--in", "x=-"]);
    let (status, out, err) = finish_with(&mut again, &npy);
    assert!(status == 0 && out.contains("[16, 81]"), "{out}{err}");
    let (csv, _) = bytes(&["run", "f.ft", "power", "--in", "x=[2,3]", "--out", "y=-:csv"]);
    assert_eq!(String::from_utf8_lossy(&csv), "4\n9\n");
    let (text, said) = bytes(&["run", "p.ft", "--in", "x=3", "--out", "x=-:txt"]);
    assert_eq!((&*String::from_utf8_lossy(&text), said.contains("x is 3")), ("3\n", true), "{said}");
    let (npz, _) = bytes(&["run", "m.ft", "--in", "A=[[0,1],[2,0]]", "--out", "B=-"]);
    assert!(npz.starts_with(b"PK"));
    let (mtx, _) = bytes(&["run", "m.ft", "--in", "A=[[0,1],[2,0]]", "--out", "B=-:mtx"]);
    assert!(mtx.starts_with(b"%%MatrixMarket"), "{}", String::from_utf8_lossy(&mtx));
    for (more, told) in [
        (&["--out", "a=-", "--out", "b=-:csv"][..], "is written twice"),
        (&["--out", "a=-", "--json"], "`--json` prints there"),
        (&["--out", "a=-:docx"], "cannot write files that end in `.docx`"),
    ] {
        let args = [&["run", "f.ft", "halves", "--in", "x=[1,2,3,4]"], more].concat();
        let (status, _, err) = folder.taffeta(&args);
        assert!(status == 1 && err.contains(told), "{more:?}: {err}");
    }
}
