//! Wrong usage, wrong names, and unsupported commands.

use super::{Folder, PROGRAM};
use expect_test::expect;

fn folder() -> Folder {
    Folder::new(&[
        ("f.ft", PROGRAM),
        ("one.ft", "def only(x: f32[n]) -> f32[n]:\n    y = 2 * x\n    return y\n"),
        ("none.ft", "N = 3\n"),
    ])
}

#[test]
fn operators_are_shown() {
    let folder = folder();
    let (status, out, err) = folder.taffeta(&["doc", "softmax"]);
    assert_eq!((status, err.as_str()), (0, ""));
    assert!(out.starts_with("softmax(x, axis=-1)\n\nSoftmax: `y = exp(x - m) / Σ exp(x - m)`"), "{out}");
    assert!(out.contains("\nExample:\n    def example(x: f64[2, 2]) -> f64[2, 2]:\n"), "{out}");
    let (status, out, _) = folder.taffeta(&["doc"]);
    assert_eq!(status, 0);
    for name in ["softmax", "rand_normal", "conv2d", "tile2d"] {
        assert!(out.lines().any(|l| l.starts_with(&format!("  {name} "))), "{name} is not in\n{out}");
    }
    let (status, out, _) = folder.taffeta(&["doc", "exp"]);
    assert!(status == 0 && out.contains("part of the language"), "{out}");
    let (status, out, err) = folder.taffeta(&["doc", "sofmax"]);
    assert_eq!((status, out.as_str()), (1, ""));
    assert!(err.contains("the manual has no entry `sofmax`") && err.contains("did you mean `softmax`?"), "{err}");
    assert_eq!(folder.taffeta(&["doc", "_axes"]).0, 1);
    for (name, parts) in [
        ("split", &["s.split(", "Legal when:", "i~o"][..]),
        ("s.split", &["s.split("]),
        ("csr", &["@ csr", "format(dense, compressed)", "a list of coordinates", "taffeta doc compressed"]),
        ("bcsr", &["@ bcsr(2, 2)", "i // 2", "dense"]),
        ("compressed", &["| `pos` |"]),
        ("grad", &["grad(f, wrt=[\"w\"])", "floating-point number", "taffeta run --grad"]),
        ("jvp", &["tangents"]),
    ] {
        let text = folder.succeeds(&["doc", name]);
        assert!(parts.iter().all(|p| text.contains(p)), "{name}: {text}");
    }
    let listed = folder.succeeds(&["doc"]);
    for name in ["split", "csr", "hicoo", "compressed", "value_and_grad"] {
        assert!(listed.lines().any(|l| l.starts_with(&format!("  {name} "))), "{name} is not in\n{listed}");
    }
    assert_eq!(folder.taffeta(&["doc", "softmax", "more"]).0, 2);
}

#[test]
fn warnings_do_not_change_the_status() {
    let folder = Folder::new(&[
        (
            "w.ft",
            "def f(x: f64[n]) -> f32:\n    s: f32 = 0.0\n    for i in range(n):\n        s += x[i]\n    return s\n",
        ),
        (
            "e.ft",
            "def f(x: f64[n]) -> f32:\n    s: f32 = 0.0\n    for i in range(n):\n        s += x[i] + q\n    return s\n",
        ),
    ]);
    let (status, out, err) = folder.taffeta(&["check", "w.ft"]);
    assert_eq!((status, out.as_str()), (0, "w.ft: no errors in 1 entry\n"));
    assert!(err.contains("type::narrowing") && err.contains("1 warning\n"), "{err}");
    let (status, out, _) = folder.taffeta(&["check", "w.ft", "--json"]);
    assert!(status == 0 && out.contains("\"severity\":\"warning\""), "{out}");
    let (status, _, err) = folder.taffeta(&["check", "e.ft"]);
    assert!(status == 1 && err.contains("1 error\n"), "{err}");
}

#[test]
fn unwritten_elements_are_named() {
    let program = |last: &str| {
        format!(
            "def f(x: f64[n]) -> f64[n]:\n    t = empty((n,), f64)\n    for i in range({last}):\n        t[i] = x[i]\n    \
             y = t * 2.0\n    return y\n"
        )
    };
    let folder = Folder::new(&[("short.ft", &program("n - 1")), ("whole.ft", &program("n"))]);
    let (status, _, err) = folder.taffeta(&["check", "short.ft"]);
    let told = "`t[0]` is read here with n = 1, but never written";
    assert!(status == 0 && err.contains("value::unwritten") && err.contains(told), "{err}");
    let (status, _, err) = folder.taffeta(&["check", "whole.ft"]);
    assert_eq!((status, err.as_str()), (0, ""));
}

/// Checks the tips on a file in place of a command, a misspelt command, and an input without its option.
#[test]
fn commands_are_suggested() {
    let folder = folder();
    for (args, tip) in [
        (&["one.ft"][..], "tip: to run the program: taffeta run one.ft"),
        (&["one.ft", "--in", "x=[1]"], "tip: to run the program: taffeta run one.ft"),
        (&["rnu", "one.ft"], "tip: a similar subcommand exists: 'run'"),
        (&["chekc", "one.ft"], "tip: a similar subcommand exists: 'check'"),
        (&["run", "one.ft", "only", "x=[1]"], "tip: to give an input: --in 'x=[1]'"),
    ] {
        let (status, out, err) = folder.taffeta(args);
        assert_eq!((status, out.as_str()), (2, ""), "{args:?}");
        assert!(err.contains(tip) && err.matches("tip:").count() == 1, "{args:?}: {err}");
    }
    // A word unlike every command gets no proposal.
    let (_, _, err) = folder.taffeta(&["walk", "one.ft"]);
    assert!(!err.contains("tip:"), "{err}");
}

#[test]
fn wrong_usage_is_status_2() {
    let folder = folder();
    for args in [
        &["run"][..],
        &["walk", "f.ft"],
        &["run", "f.ft", "pick", "--in", "x"],
        &["run", "f.ft", "pick", "--in", "=3"],
        &["run", "f.ft", "pick", "--size", "n=many"],
        &["run", "f.ft", "pick", "--backend", "fortran"],
        &["run", "f.ft", "pick", "--repeat", "0"],
        &["run", "f.ft", "pick", "--wings"],
        &["show", "f.ft", "--stage", "baked"],
        &["run", "f.ft", "pick", "--threads", "4000000000"],
        &["run", "f.ft", "pick", "--threads", "1025"],
        &["run", "f.ft", "pick", "--threads", "-1"],
        &["bench", "f.ft", "pick", "--threads", "1025"],
        &["build", "f.ft", "pick"],
        &["check"],
    ] {
        let (status, out, err) = folder.taffeta(args);
        assert_eq!((status, out.as_str()), (2, ""), "{args:?}: {err}");
        assert!(err.starts_with("error: ") || err.contains("Usage:"), "{args:?}: {err}");
    }
}

#[test]
fn a_name_given_twice_is_wrong_usage() {
    let folder = folder();
    for args in [
        &["run", "f.ft", "pick", "--in", "x=[1]", "--in", "index=[0]", "--out", "y=a.npy", "--out", "y=b.npy"][..],
        &["run", "f.ft", "pick", "--in", "x=[1]", "--in", "x=[2]"],
        &["run", "f.ft", "pick", "--size", "n=1", "--size", "n=1"],
        &["run", "f.ft", "power", "--set", "k=1", "--set", "k=2"],
        &["bench", "f.ft", "power", "--set", "k=1", "--set", "k=2"],
        &["check-grad", "f.ft", "power", "--set", "k=1", "--set", "k=2"],
        &["show", "f.ft", "power", "--size", "n=1", "--size", "n=2"],
        &["build", "f.ft", "power", "-o", "out", "--set", "k=1", "--set", "k=2"],
    ] {
        let (status, out, err) = folder.taffeta(args);
        assert_eq!((status, out.as_str()), (2, ""), "{args:?}: {err}");
        let option = args[args.len() - 2];
        assert!(
            err.starts_with(&format!("error: `{option} ")) && err.contains("=…` is given twice"),
            "{args:?}: {err}"
        );
        assert!(err.contains(&format!("Usage: taffeta {}", args[0])), "{err}");
        assert_eq!(folder.files(), ["f.ft", "none.ft", "one.ft"]);
    }
}

#[test]
fn help_has_examples_for_every_command() {
    let folder = folder();
    assert!(folder.succeeds(&["--help"]).contains("Examples:"));
    for command in ["run", "check", "show", "deps", "grad", "check-grad", "build", "bench", "fmt", "convert"] {
        let help = folder.succeeds(&[command, "--help"]);
        assert!(help.contains("Examples:") && help.contains(&format!("taffeta {command} ")), "{command}: {help}");
    }
    assert!(folder.succeeds(&["--version"]).starts_with("taffeta "));
}

#[test]
fn unimplemented_commands_are_refused() {
    let folder = folder();
    for (args, nearest) in [(&["tune", "f.ft"][..], "--schedule auto"), (&["lsp"], "taffeta check")] {
        let err = folder.fails(args);
        assert!(err.contains("command::unsupported") && err.contains("is not supported yet"), "{args:?}: {err}");
        assert!(err.contains(nearest), "{args:?} has no suggestion: {err}");
    }
    assert!(folder.fails(&["run", "one.ft", "--schedule", "fast"]).contains("there is no schedule `fast`"));
}

#[test]
fn entries_are_found_or_suggested() {
    let folder = folder();
    assert!(folder.succeeds(&["run", "one.ft", "--in", "x=[1]"]).starts_with("y: f32[1]"));
    expect![[r#"
        entry::name

          × there is no entry `pikc`
          help: did you mean `pick`?
          note: entries: axpy, pick, power, halves, made

        1 error
    "#]]
    .assert_eq(&folder.fails(&["run", "f.ft", "pikc"]));
    expect![[r#"
        entry::which

          × this file has several entries
          help: name one of them: axpy, pick, power, halves, made

        1 error
    "#]]
    .assert_eq(&folder.fails(&["run", "f.ft"]));
    expect![[r#"
        entry::none

          × this file has no entry to run
          help: annotate all parameters of a function: `def f(x: f32[n]):`

        1 error
    "#]]
    .assert_eq(&folder.fails(&["run", "none.ft"]));
}

#[test]
fn names_are_suggested() {
    let folder = folder();
    expect![[r#"
        input::name

          × `pick` has no parameter `indx`
          help: did you mean `index`?

        1 error
    "#]]
    .assert_eq(&folder.fails(&["run", "f.ft", "pick", "--in", "indx=[1]", "--in", "x=[1]"]));
    expect![[r#"
        size::name

          × `made` has no size `edge`
          help: did you mean `edges`?

        1 error
    "#]]
    .assert_eq(&folder.fails(&["run", "f.ft", "made", "--in", "x=rand", "--in", "pairs=zeros", "--size", "edge=3"]));
    expect![[r#"
        input::name

          × `pick` has no parameter `n`
          help: `n` is a size: write --size n=N

        1 error
    "#]]
    .assert_eq(&folder.fails(&["run", "f.ft", "pick", "--in", "n=3"]));
    expect![[r#"
        output::name

          × `pick` has no result `z`
          help: its results are y

        1 error
    "#]]
    .assert_eq(&folder.fails(&["run", "f.ft", "pick", "--in", "x=[1]", "--in", "index=[0]", "--out", "z=z.npy"]));
    expect![[r#"
        entry::static

          × `power` has no static parameter `kk`
          help: its static parameters are k

        1 error
    "#]]
    .assert_eq(&folder.fails(&["run", "f.ft", "power", "--in", "x=[1]", "--set", "kk=3"]));
    expect![[r#"
        input::static

          × --set k: expected a static value (`32`, `0.5`, `True`, `"a"`, `(1, 2)`, `f32`), found `three`

        1 error
    "#]]
    .assert_eq(&folder.fails(&["run", "f.ft", "power", "--in", "x=[1]", "--set", "k=three"]));
}

#[test]
fn missing_inputs_are_listed_at_once() {
    expect![[r#"
        input::missing

          × `axpy`: 2 inputs are missing: `y: inout[f32[n]]`, `a: f32`
          help: give a file, a literal or a generator for each, for example
                --in y=rand --in a=0.5

        1 error
    "#]]
    .assert_eq(&folder().fails(&["run", "f.ft", "axpy", "--in", "x=rand"]));
}

#[test]
fn programs_are_formatted() {
    let folder = Folder::new(&[
        ("ugly.ft", "def f( x:f32[n] )->f32[n]:\n  y=x+1 # more\n  return y\n"),
        ("good.ft", "def f(x: f32[n]) -> f32[n]:\n    return x\n"),
        ("bad.ft", "def f(:\n"),
    ]);
    expect![[r#"
        format::differs

          × not formatted: ugly.ft
          help: run `taffeta fmt ugly.ft`

        1 error
    "#]]
    .assert_eq(&folder.fails(&["fmt", "--check", "ugly.ft", "good.ft"]));
    assert_eq!(folder.taffeta(&["fmt", "ugly.ft", "good.ft"]), (0, String::new(), "formatted ugly.ft\n".into()));
    let text = std::fs::read_to_string(folder.path().join("ugly.ft")).expect("the file");
    assert_eq!(text, "def f(x: f32[n]) -> f32[n]:\n    y = x + 1  # more\n    return y\n");
    assert_eq!(folder.succeeds(&["fmt", "--check", "ugly.ft", "good.ft"]), "");
    assert!(folder.fails(&["fmt", "bad.ft"]).contains("bad.ft:1"));
}

#[test]
fn codes_are_explained() {
    let folder = folder();
    let (status, out, err) = folder.taffeta(&["explain", "schedule::dependence"]);
    assert_eq!((status, err.as_str()), (0, ""));
    assert!(out.starts_with("schedule::dependence\n\n") && out.contains("witness"), "{out}");
    // Brackets, as copied from a diagnostic, are accepted.
    assert_eq!(folder.taffeta(&["explain", "[schedule::dependence]"]).1, out);
    let (status, all, _) = folder.taffeta(&["explain"]);
    assert_eq!(status, 0);
    for code in taffeta_ast::codes::groups().flat_map(|g| g.codes) {
        assert!(all.contains(&format!("\n  {} ", code.name)), "{} is not listed:\n{all}", code.name);
    }
    for (wrong, help) in [
        ("shape::mismatsch", "did you mean `shape::mismatch`?"),
        ("overflow", "related codes: `shape::overflow`, `size::overflow`"),
        ("nothing::like::it", "`taffeta explain` lists all codes"),
    ] {
        let (status, out, err) = folder.taffeta(&["explain", wrong]);
        assert_eq!((status, out.as_str()), (1, ""), "{err}");
        assert!(err.contains("command::code") && err.contains(help), "{err}");
    }
}

#[test]
fn check_finds_unwritten_elements() {
    let folder = Folder::new(&[(
        "a.ft",
        "
def f(x: f32[n]) -> (f32[n], f32):
    t = empty((n,), f32)
    y = zeros((n,), f32)
    for i in range(n):
        y[i] = t[i] + x[i]
    u = empty((n,), f32)
    s = sum(u)
    return y, s
",
    )]);
    let shown = folder.fails(&["check", "a.ft"]);
    assert!(shown.contains("`t` is read here, but never written"), "{shown}");
    assert!(shown.contains("[a.ft:6:"), "{shown}");
    // A read inside the library is reported at the call.
    assert!(shown.contains("`u` is read here, but never written") && shown.contains("[a.ft:8:9]"), "{shown}");
    assert_eq!(shown.matches("declared here without values").count(), 2, "{shown}");
    assert!(shown.ends_with("\n2 errors\n"), "{shown}");
}

/// Checks that strings are kept byte for byte, in files and on standard output.
#[test]
fn formatting_preserves_strings() {
    let doc = "\"\"\"Head \x0c of it   \n\n  \x1c tabs\t \n\x0c\n \x1f\x1b end  \"\"\"";
    let text = format!("def f(x: f32[n]) -> f32[n]:\n  {doc}\n  y=x # more   \n  '''  \x1c\n\n  '''\n  return y\n");
    let expected =
        format!("def f(x: f32[n]) -> f32[n]:\n    {doc}\n    y = x  # more\n    '''  \x1c\n\n  '''\n    return y\n");
    let folder = Folder::new(&[("f.ft", &text)]);
    let (status, out, err) = super::finish_with(&mut folder.command(&["fmt", "-"]), text.as_bytes());
    assert_eq!((status, err.as_str()), (0, ""));
    assert_eq!(out, expected);
    assert_eq!(folder.taffeta(&["fmt", "f.ft"]).0, 0);
    assert_eq!(std::fs::read_to_string(folder.path().join("f.ft")).expect("the file"), expected);
    assert_eq!(folder.succeeds(&["fmt", "--check", "f.ft"]), "");
}
