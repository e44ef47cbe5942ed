//! Options with one meaning in every command that runs or shows a program, and help that offers nothing unsupported.

use super::Folder;
use std::collections::BTreeSet;

const PROGRAM: &str = "\
def f(x: f64[n], y: f64[n], w: static = 2) -> f64:
    s: f64 = 0.0
    for i in range(n):
        s += w * x[i] * y[i]
    return s


@schedule(f)
def fast(s):
    s.split(\"i\", 4)
";

const COMMANDS: [&str; 7] = ["run", "show", "deps", "grad", "check-grad", "build", "bench"];

fn folder() -> Folder {
    Folder::new(&[("f.ft", PROGRAM)])
}

/// Builds a command line with the further arguments that each command needs.
fn line<'a>(command: &'a str, options: &[&'a str]) -> Vec<&'a str> {
    let mut all = vec![command, "f.ft", "f"];
    all.extend(options);
    match command {
        "build" => all.extend(["-o", "out"]),
        "bench" => all.extend(["--repeat", "1", "--warmup", "0"]),
        "show" => all.extend(["--stage", "lowered"]),
        _ => {}
    }
    all
}

#[test]
fn every_command_takes_the_same_options() {
    let folder = folder();
    let options: Vec<&str> =
        "--in x=[1,2] --in y=ones --size n=2 --set w=3 --schedule none --grad x --tape all --memory 1MB"
            .split(' ')
            .collect();
    for command in COMMANDS {
        let (status, _, err) = folder.taffeta(&line(command, &options));
        assert_eq!(status, 0, "{command}: {err}");
    }
}

#[test]
fn every_command_refuses_the_same_values() {
    let folder = folder();
    let full = ["--in", "x=[1, 2]", "--in", "y=ones"];
    for (option, value, code) in [
        ("--in", "z=[1]", "input::name"),
        ("--size", "m=2", "size::name"),
        ("--size", "n=3", "size::mismatch"),
        ("--set", "v=2", "entry::static"),
        ("--set", "w=many", "input::static"),
        ("--schedule", "nope", "no schedule `nope`"),
        ("--schedule", "nope.json", "data::missing_file"),
        ("--grad", "z", "no parameter `z`"),
    ] {
        for command in COMMANDS {
            let all = line(command, &[&full[..], &[option, value]].concat());
            let (status, out, err) = folder.taffeta(&all);
            assert_eq!((status, out.as_str()), (1, ""), "{all:?}: {err}");
            assert!(err.contains(code), "{all:?}: {err}");
        }
    }
    for command in COMMANDS {
        let (status, _, err) = folder.taffeta(&line(command, &["--size", "n=many"]));
        assert_eq!(status, 2, "{command}: {err}");
    }
}

/// Checks that sizes fixed by inputs are compiled in, even by commands that run nothing.
#[test]
fn inputs_fix_sizes_where_nothing_runs() {
    let folder = folder();
    let by_size = folder.succeeds(&["show", "f.ft", "f", "--stage", "c", "--size", "n=2"]);
    assert_eq!(folder.succeeds(&["show", "f.ft", "f", "--stage", "c", "--in", "x=[1, 2]"]), by_size);
    assert_ne!(folder.succeeds(&["show", "f.ft", "f", "--stage", "c"]), by_size);
    let c = folder.succeeds(&["show", "f.ft", "f", "--stage", "c", "--grad", "x"]);
    assert!(c.contains("x.grad"), "{c}");
    let deps = folder.succeeds(&["deps", "f.ft", "f", "--size", "n=1"]);
    assert!(!deps.contains("with n ="), "{deps}");
}

/// Checks that a given schedule is applied, or its fault reported, at every stage.
#[test]
fn show_never_forgets_a_schedule() {
    let folder = folder();
    for stage in ["parsed", "elaborated", "grad", "scheduled", "lowered", "c"] {
        for schedule in ["nope.json", "nope"] {
            let err = folder.fails(&["show", "f.ft", "f", "--stage", stage, "--schedule", schedule]);
            assert!(err.contains("nope"), "{stage}: {err}");
        }
    }
    assert!(folder.fails(&["show", "f.ft", "f", "--schedule", "nope.json"]).contains("nope.json"));
    let taken = folder.succeeds(&["show", "f.ft", "f", "--schedule", "fast"]);
    assert_eq!(taken, folder.succeeds(&["show", "f.ft", "f", "--schedule", "fast", "--stage", "scheduled"]));
    assert_ne!(taken, folder.succeeds(&["show", "f.ft", "f"]));
}

/// Collects the values that help lists for an option.
fn possible(help: &str, option: &str) -> BTreeSet<String> {
    let at = help.find(&format!(" --{option} ")).unwrap_or_else(|| panic!("no --{option} in {help}"));
    let rest = &help[at + 3..];
    let text = &rest[..rest.find("\n      --").unwrap_or(rest.len())];
    match text.split("[possible values: ").nth(1).and_then(|t| t.split(']').next()) {
        Some(list) => list.split(',').map(|v| v.split_whitespace().collect::<String>()).collect(),
        None => {
            let lines = text.lines().filter_map(|l| l.trim().strip_prefix("- "));
            lines.map(|l| l.split(':').next().unwrap_or(l).trim().to_string()).collect()
        }
    }
}

#[test]
fn every_option_in_help_is_accepted() {
    let folder = folder();
    let help = folder.succeeds(&["--help"]);
    let commands: Vec<&str> = help
        .split("Commands:\n")
        .nth(1)
        .and_then(|t| t.split("\n\n").next())
        .expect("commands")
        .lines()
        .filter_map(|l| l.split_whitespace().next())
        .filter(|c| *c != "help")
        .collect();
    for command in COMMANDS {
        assert!(commands.contains(&command), "{commands:?}");
    }
    assert!(!help.contains("not supported"), "{help}");
    for command in &commands {
        let help = folder.succeeds(&[command, "--help"]);
        assert!(!help.contains("not supported") && !help.contains("NAME|auto"), "{command}: {help}");
    }
    let stages = possible(&folder.succeeds(&["show", "--help"]), "stage");
    assert!(stages.contains("lowered") && stages.len() >= 6, "{stages:?}");
    for stage in stages {
        folder.succeeds(&["show", "f.ft", "f", "--stage", &stage]);
    }
    let backends = possible(&folder.succeeds(&["run", "--help"]), "backend");
    assert_eq!(backends.len(), 2, "{backends:?}");
    let run = ["run", "f.ft", "f", "--in", "x=[1]", "--in", "y=[1]"];
    for backend in backends {
        folder.succeeds(&[&run[..], &["--backend", &backend]].concat());
    }
    for tape in ["auto", "all", "none", "s"] {
        let (status, _, err) = folder.taffeta(&[&run[..], &["--grad", "x", "--tape", tape]].concat());
        assert_eq!(status, 0, "{tape}: {err}");
    }
    // An unsupported extension gets a list of the supported formats.
    let err = folder.fails(&["run", "f.ft", "f", "--in", "x=x.jpg", "--in", "y=[1]"]);
    assert!(err.contains(".npy") && err.contains(".tns") && !err.contains(".bed"), "{err}");
}
