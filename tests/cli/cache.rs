//! The compile cache, the C compiler, and their environment.

use super::{FLAGS, Folder, PROGRAM, finish};
use expect_test::expect;
use serde_json::Value as Json;
use std::os::unix::fs::PermissionsExt;

/// Returns the compilation stages that a run went through.
fn steps(folder: &Folder, args: &[&str]) -> Vec<String> {
    let (status, out, err) =
        finish(folder.command(&[args, &["--json"]].concat()).env("TAFFETA_CACHE_DIR", folder.cache()));
    assert_eq!(status, 0, "{err}");
    let json: Json = serde_json::from_str(&out).expect("JSON");
    json["compile_ms"].as_object().expect("steps").keys().cloned().collect()
}

#[test]
fn a_second_run_skips_the_pipeline() {
    let folder = Folder::new(&[
        ("f.ft", "from other import twice\n\ndef f(x: f32[n]) -> f32[n]:\n    y = twice(x)\n    return y\n"),
        ("other.ft", "def twice(x):\n    return 2 * x\n"),
    ]);
    let args = ["run", "f.ft", "--in", "x=[1, 2]"];
    let compiles = |args: &[&str]| steps(&folder, args).contains(&"C_compiler".to_string());
    assert!(compiles(&args));
    let second = steps(&folder, &args);
    assert!(!second.contains(&"parse".to_string()) && !second.contains(&"elaborate".to_string()), "{second:?}");
    assert!(!compiles(&args));
    // Each size needs a program of its own; a generic program serves all sizes, and with rules all that round to one
    // power of two.
    assert!(compiles(&["run", "f.ft", "--in", "x=[1, 2, 3]"]));
    for (schedule, others) in [("none", [false, false]), ("auto", [false, true])] {
        let generic = |x: &str| compiles(&["run", "f.ft", "--in", x, "--generic", "--schedule", schedule]);
        assert!(generic("x=[1, 2, 3]"));
        assert_eq!(["x=[1, 2, 3, 4, 5]", "x=[1, 2, 3, 4, 5, 6]"].map(generic), others, "{schedule}");
    }
    // A change of an imported file invalidates the entry.
    folder.write("other.ft", b"def twice(x):\n    return x + x + 0.0\n");
    assert!(compiles(&args));
    folder.write("f.ft", b"def f(x: f32[n]) -> f32[n]:\n    y = 3 * x\n    return y\n");
    assert!(compiles(&args));
    let (_, out, _) = finish(folder.command(&args).env("TAFFETA_CACHE_DIR", folder.cache()));
    assert_eq!(out, "y: f32[2]\n  [3, 6]\n  min 3  max 6  mean 4.5\n");
}

#[test]
fn errors_of_cached_programs_show_the_source() {
    let folder = Folder::new(&[("f.ft", PROGRAM)]);
    let args = ["run", "f.ft", "pick", "--in", "x=[1, 2, 7]", "--in", "index=[9]"];
    let first = folder.fails(&args);
    assert!(first.contains("f.ft:14:"), "{first}");
    assert_eq!(folder.fails(&args), first);
}

#[test]
fn programs_are_compiled_for_one_run_without_a_cache() {
    let folder = Folder::new(&[("f.ft", PROGRAM), ("file", ""), ("real/x", ""), ("tmp/x", "")]);
    std::os::unix::fs::symlink(folder.path().join("real"), folder.path().join("link")).expect("a link");
    let temporary = folder.path().join("tmp");
    let run = |args: &[&str], variable: &str, cache: &str| {
        let mut command = folder.command(args);
        command.env_remove("TAFFETA_CACHE_DIR").env_remove("XDG_CACHE_HOME").env("TMPDIR", &temporary);
        let (status, out, err) = finish(command.env(variable, cache));
        assert_eq!(status, 0, "{out}{err}");
        assert!(args[0] != "run" || out == "y: i64[1]\n  [9]\n  min 9  max 9  mean 9\n", "{out}");
        let left: Vec<_> =
            std::fs::read_dir(&temporary).expect("ours").map(|e| e.expect("an entry").file_name()).collect();
        assert_eq!(left, ["x"], "{args:?} leaves temporary files");
        err
    };
    // Every subcommand that compiles behaves in the same way; each probes the compiler, since nothing is kept.
    // The warning comes once, though the cache is opened for the manifest, the machine and the library.
    expect![[r#"
        warning: cannot keep compiled programs in `file`: it is not a directory
          set TAFFETA_CACHE_DIR to a directory of your own
          compiled programs are kept for this run only
    "#]]
    .assert_eq(&run(&["run", "f.ft", "power", "--in", "x=[3]"], "TAFFETA_CACHE_DIR", "file"));
    expect![[r#"
        warning: cannot keep compiled programs in `link`: it is a symbolic link, whose target may change
          set TAFFETA_CACHE_DIR to a directory of your own
          compiled programs are kept for this run only
    "#]]
    .assert_eq(&run(&["build", "f.ft", "power", "-o", "out"], "TAFFETA_CACHE_DIR", "link"));
    // A home directory that does not exist and cannot be created.
    let home = folder.path().join("file").join("home").display().to_string();
    let warned = run(&["doctor", "--json"], "HOME", &home);
    let told = format!("warning: cannot keep compiled programs in `{home}/.cache/taffeta`: Not a directory");
    assert!(warned.starts_with(&told) && warned.matches("warning").count() == 1, "{warned}");
}

#[test]
fn missing_compilers_are_reported_with_the_package() {
    let folder = Folder::new(&[("f.ft", PROGRAM)]);
    let mut command = folder.command(&["run", "f.ft", "power", "--in", "x=[1]"]);
    let (status, _, err) = finish(command.env("CC", "no-such-compiler"));
    assert_eq!(status, 1);
    expect![[r#"
        toolchain::missing

          × cannot find the C compiler `no-such-compiler`, named by the environment variable CC
          help: install one (`apt-get install gcc libc6-dev` on Debian and Ubuntu), or set CC to the one
                to use

        1 error
    "#]]
    .assert_eq(&err);
    // The interpreter needs no C compiler.
    let mut command = folder.command(&["run", "f.ft", "power", "--in", "x=[3]", "--backend", "interp"]);
    assert_eq!(finish(command.env("CC", "no-such-compiler")).0, 0);
}

#[test]
fn broken_entries_are_remade() {
    let folder = Folder::new(&[("f.ft", PROGRAM)]);
    let cache = folder.path().join("cache");
    let args = ["run", "f.ft", "power", "--in", "x=[3]"];
    assert!(steps(&folder, &args).contains(&"C_compiler".to_string()));
    assert_eq!(std::fs::metadata(&cache).expect("the cache").permissions().mode() & 0o777, 0o700);
    for entry in std::fs::read_dir(cache.join("entries")).expect("the cache") {
        let dir = entry.expect("an entry").path();
        for file in std::fs::read_dir(&dir).expect("an entry's files") {
            std::fs::write(file.expect("a file").path(), b"broken").expect("a write");
        }
    }
    assert!(steps(&folder, &args).contains(&"C_compiler".to_string()));
}

#[test]
fn broken_compilers_are_named_and_leave_no_files() {
    let folder = Folder::new(&[
        ("f.ft", PROGRAM),
        (
            "picky",
            "#!/bin/sh\ncase \"$*\" in *probe.c*) exec cc \"$@\";; *) echo 'error: no taste' >&2; exit 3;; esac\n",
        ),
        ("grumpy", "#!/bin/sh\necho 'cannot find my assembler' >&2\nexit 4\n"),
        ("scribbler", "#!/bin/sh\nwhile [ $# -gt 0 ]; do [ \"$1\" = -o ] && echo junk > \"$2\"; shift; done\nexit 0\n"),
    ]);
    for script in ["picky", "grumpy", "scribbler"] {
        let path = folder.path().join(script);
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("a script");
    }
    let cache = folder.path().join("cache");
    let run = |cc: &str| {
        let mut command = folder.command(&["run", "f.ft", "power", "--in", "x=[3]"]);
        let (status, out, err) = finish(command.env("CC", cc).env("TAFFETA_CACHE_DIR", &cache));
        assert_eq!(out, "", "{err}");
        (status, err)
    };
    // Number of entries, finished, in progress and failed; the manifest, which needs no compiler, is one.
    let count = |part: &str| std::fs::read_dir(cache.join(part)).expect("the cache").count();
    let entries = || count("entries") + count("making") + count("failed");
    let grumpy = format!("{}/grumpy", folder.path().display());
    let scribbler = format!("{}/scribbler", folder.path().display());
    for (cc, how, said) in [
        ("false", "does not work: it failed (exit status: 1)", "it printed no errors"),
        ("true", "does not work: it succeeded, but wrote no file", "it printed no errors"),
        (&grumpy, "does not work: it failed (exit status: 4)", "it printed: cannot find my assembler"),
        // Its output is not a program.
        (&scribbler, "builds programs that cannot be run", "Permission denied"),
    ] {
        let (status, err) = run(cc);
        assert_eq!(status, 1, "{err}");
        let flat = err.replace('│', " ").split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(err.contains("toolchain::broken") && flat.contains("set CC to another"), "{err}");
        // Long paths are wrapped, so compare without spaces.
        let (flat, what) = (flat.replace(' ', ""), format!("`{cc}` (environment variable CC) {how}"));
        assert!(flat.contains(&what.replace(' ', "")), "{err}");
        assert!(flat.contains(&said.replace(' ', "")), "{err}");
        assert!(cc == scribbler || err.contains("command: ") && err.contains("-shared"), "{err}");
        assert_eq!(entries(), 1, "{cc} leaves entries in the cache");
    }
    // A compiler that works but refuses the generated code, which another compiler accepts.
    let (status, err) = run(&format!("{}/picky", folder.path().display()));
    assert_eq!(status, 1, "{err}");
    assert!(err.contains("toolchain::refused") && err.contains("no taste") && err.contains("`cc` accepts it"), "{err}");
    assert!(err.contains("unset CC"), "{err}");
    // It compiles the probe and computes correctly: that verdict is kept.
    assert_eq!((count("entries"), count("making")), (2, 0));
    // With a working compiler the run succeeds.
    let mut command = folder.command(&["run", "f.ft", "power", "--in", "x=[3]"]);
    assert_eq!(finish(command.env("TAFFETA_CACHE_DIR", &cache)).0, 0);
}

/// Checks that user flags that break the generated code, but not an empty function, are named.
#[test]
fn flags_that_break_the_code_are_named() {
    let folder = Folder::new(&[("f.ft", PROGRAM)]);
    let run = |name: &str, flags: &str| {
        let mut command = folder.command(&["run", "f.ft", "power", "--in", "x=[3]"]);
        finish(command.env(name, flags).env("TAFFETA_CACHE_DIR", folder.cache()))
    };
    for (name, flags) in [("CFLAGS", "-DNULL=+ -Dfor=4"), ("HOST_CFLAGS", "-Dreturn=retrun")] {
        let (status, out, err) = run(name, flags);
        assert_eq!((status, out.as_str()), (1, ""), "{flags}: {err}");
        let flat = err.replace('│', " ").split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(err.contains("toolchain::") && flat.contains(&format!("{name}=\"{flags}\"")), "{flags}: {err}");
        assert!(!err.contains("internal::") && !err.contains("mistake in Taffeta"), "{err}");
    }
    assert_eq!(run("CFLAGS", FLAGS).0, 0);
}

/// Checks that a library planted by somebody with write access to the cache is not run.
#[test]
fn a_planted_library_is_not_run() {
    let folder = Folder::new(&[
        ("f.ft", "def answer(x: i64) -> i64:\n    return x + 1\n"),
        ("evil.c", "#include <stdio.h>\n__attribute__((constructor)) static void f(void) { puts(\"owned\"); }\n"),
    ]);
    let cache = folder.cache();
    let run = || {
        let mut command = folder.command(&["run", "f.ft", "--in", "x=1"]);
        finish(command.env("TAFFETA_CACHE_DIR", &cache))
    };
    assert_eq!(run(), (0, "out: i64 = 2\n".into(), String::new()));
    let library = std::fs::read_dir(cache.join("entries"))
        .expect("the cache")
        .map(|e| e.expect("an entry").path().join("libtaffeta_answer.so"))
        .find(|p| p.is_file())
        .expect("a library");
    let planted = folder.path().join("evil.so");
    let mut cc = std::process::Command::new("cc");
    let cc = cc.args(["-shared", "-fPIC", "-o"]).arg(&planted).arg(folder.path().join("evil.c"));
    assert!(cc.status().expect("a C compiler").success());
    // The planted library has a valid checksum, which somebody with write access can forge.
    let list_file = library.with_file_name("entry.json");
    let list = std::fs::read_to_string(&list_file).expect("a list");
    let mut list: Json = serde_json::from_str(&list).expect("JSON");
    let bytes = std::fs::read(&planted).expect("a library");
    std::fs::write(&library, &bytes).expect("ours");
    list["files"]["libtaffeta_answer.so"] = serde_json::json!([bytes.len(), blake3::hash(&bytes).to_hex().to_string()]);
    std::fs::write(&list_file, list.to_string()).expect("ours");
    std::fs::set_permissions(&cache, std::fs::Permissions::from_mode(0o777)).expect("ours");
    let (status, out, err) = run();
    assert_eq!((status, out.as_str()), (0, "out: i64 = 2\n"), "{err}");
    let told = "warning: discarded the contents of the cache `";
    assert!(err.starts_with(told) && err.contains("`: others could write it"), "{err}");
    assert_eq!(run(), (0, "out: i64 = 2\n".into(), String::new()), "the warning is printed once");
    // A cache in a directory that others can write is not used either.
    let parent = folder.path().join("open");
    std::fs::create_dir(&parent).expect("a folder");
    std::fs::set_permissions(&parent, std::fs::Permissions::from_mode(0o777)).expect("ours");
    let mut command = folder.command(&["run", "f.ft", "--in", "x=1"]);
    let (status, out, err) = finish(command.env("TAFFETA_CACHE_DIR", parent.join("cache")));
    assert_eq!((status, out.as_str()), (0, "out: i64 = 2\n"), "{err}");
    assert!(err.contains("above it can be written by others"), "{err}");
    assert!(err.contains("compiled programs are kept for this run only"), "{err}");
    assert!(!parent.join("cache").exists());
}

#[test]
fn the_cache_respects_its_size() {
    let folder = Folder::new(&[("f.ft", PROGRAM)]);
    let cache = folder.cache();
    let run = |size: &str, k: usize| {
        let set = format!("k={k}");
        let mut command = folder.command(&["run", "f.ft", "power", "--in", "x=[3]", "--set", &set]);
        finish(command.env("TAFFETA_CACHE_DIR", &cache).env("TAFFETA_CACHE_SIZE", size))
    };
    let entries = || std::fs::read_dir(cache.join("entries")).expect("the cache").count();
    for k in 1..4 {
        assert_eq!(run("1MB", k).0, 0);
    }
    // A manifest and a library for each program, the verdict on the compiler, and the two object files of the runtime.
    assert_eq!(entries(), 9);
    assert_eq!(run("1KB", 4).0, 0);
    assert_eq!(entries(), 1, "only the newest entry stays");
    let (status, _, err) = run("plenty", 5);
    assert_eq!(status, 1);
    assert!(err.contains("cache::size") && err.contains("TAFFETA_CACHE_SIZE"), "{err}");
}

/// Checks that the machine is measured once, when a rule first asks, and never for a hand-written schedule.
#[test]
fn the_machine_is_measured_once() {
    let program = "
def f(x: f32[n, m], y: inout[f32[n]]):
    for i in range(n):
        for j in range(m):
            y[i] += x[i, j]

@schedule(f)
def by_hand(s):
    s.parallelize(\"i\")

@schedule(f)
def by_a_rule(s):
    s.auto_vectorize()
";
    let folder = Folder::new(&[("f.ft", program)]);
    let run = |schedule: &str, sizes: [&str; 2], machine: &str| {
        let inputs = ["--in", "x=ones", "--in", "y=zeros"];
        let sizes = ["--size", sizes[0], "--size", sizes[1]];
        let args = [&["run", "f.ft", "f", "--schedule", schedule][..], &inputs, &sizes].concat();
        let mut command = folder.command(&args);
        command.env("TAFFETA_CACHE_DIR", folder.cache()).env("TAFFETA_MACHINE", machine);
        finish(command.env("TAFFETA_LOG", "debug"))
    };
    let measures = |schedule: &str, sizes: [&str; 2], machine: &str| {
        let (status, _, err) = run(schedule, sizes, machine);
        assert_eq!(status, 0, "{err}");
        assert!(!err.contains("cannot measure"), "{err}");
        err.contains("measured this machine")
    };
    let small = ["n=2", "m=3"];
    assert!(!measures("none", small, "this"));
    assert!(!measures("by_hand", small, "this"));
    assert!(!measures("auto", small, "portable"));
    assert!(measures("by_a_rule", small, "this"));
    for schedule in ["by_a_rule", "auto"] {
        assert!(!measures(schedule, small, "this"));
        assert!(!measures(schedule, ["n=5", "m=3"], "this"));
    }
    let (status, _, err) = run("auto", small, "that");
    assert_eq!(status, 1);
    assert!(err.contains("schedule::machine") && err.contains("`this` or `portable`"), "{err}");
}

/// Checks that a machine that cannot be measured is scheduled for as a typical one, and programs run.
#[test]
fn unmeasurable_machines_use_typical_prices() {
    let folder = Folder::new(&[("f.ft", PROGRAM)]);
    // A compiler that refuses only the program that measures.
    let cc = "#!/bin/sh\ncase \"$*\" in *machine.c*) exit 1;; esac\nexec cc \"$@\"\n";
    folder.write("some-cc", cc.as_bytes());
    let path = folder.path().join("some-cc");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("a program");
    let mut command = folder.command(&["run", "f.ft", "power", "--in", "x=[1, 2]", "--schedule", "auto"]);
    command.env("TAFFETA_CACHE_DIR", folder.path().join("cache")).env("TAFFETA_MACHINE", "this").env("CC", &path);
    let (status, out, err) = finish(&mut command);
    assert_eq!(status, 0, "{err}");
    assert!(out.starts_with("y: i64[2]\n  [1, 4]\n"), "{out}");
    assert!(err.contains("cannot measure this machine, so rules use a portable model"), "{err}");
}
