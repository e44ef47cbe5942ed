//! The compile cache, the C compiler, and the surroundings.

use super::{Folder, PROGRAM, finish};
use expect_test::expect;
use serde_json::Value as Json;
use std::os::unix::fs::PermissionsExt;

/// The steps of compilation that a run took.
fn steps(folder: &Folder, args: &[&str]) -> Vec<String> {
    let (status, out, err) =
        finish(folder.command(&[args, &["--json"]].concat()).env("TAFFETA_CACHE_DIR", folder.path().join("cache")));
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
    // Another size is another program; without sizes one program serves all.
    assert!(compiles(&["run", "f.ft", "--in", "x=[1, 2, 3]"]));
    assert!(compiles(&["run", "f.ft", "--in", "x=[1, 2]", "--generic"]));
    assert!(!compiles(&["run", "f.ft", "--in", "x=[1, 2, 3]", "--generic"]));
    // A change in an imported file is a change.
    folder.write("other.ft", b"def twice(x):\n    return x + x + 0.0\n");
    assert!(compiles(&args));
    folder.write("f.ft", b"def f(x: f32[n]) -> f32[n]:\n    y = 3 * x\n    return y\n");
    assert!(compiles(&args));
    let (_, out, _) = finish(folder.command(&args).env("TAFFETA_CACHE_DIR", folder.path().join("cache")));
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
fn an_unusable_cache_is_refused() {
    let folder = Folder::new(&[("f.ft", PROGRAM), ("file", ""), ("real/x", "")]);
    std::os::unix::fs::symlink(folder.path().join("real"), folder.path().join("link")).expect("a link");
    let run = |cache: &str| {
        let mut command = folder.command(&["run", "f.ft", "power", "--in", "x=[1]"]);
        let (status, out, err) = finish(command.env("TAFFETA_CACHE_DIR", cache));
        assert_eq!((status, out.as_str()), (1, ""), "{err}");
        err
    };
    expect![[r#"
        cache::unusable

          × cannot keep compiled programs in `file`: it is not a directory
          help: set TAFFETA_CACHE_DIR to a directory of your own

        1 error
    "#]]
    .assert_eq(&run("file"));
    expect![[r#"
        cache::unusable

          × cannot keep compiled programs in `link`: it is a symbolic link, which could be turned
          │ elsewhere
          help: set TAFFETA_CACHE_DIR to a directory of your own

        1 error
    "#]]
    .assert_eq(&run("link"));
}

#[test]
fn a_missing_compiler_says_what_to_install() {
    let folder = Folder::new(&[("f.ft", PROGRAM)]);
    let mut command = folder.command(&["run", "f.ft", "power", "--in", "x=[1]"]);
    let (status, _, err) = finish(command.env("CC", "no-such-compiler"));
    assert_eq!(status, 1);
    expect![[r#"
        toolchain::missing

          × there is no C compiler `no-such-compiler`, which the environment variable CC names
          help: install one (`apt-get install gcc libc6-dev` on Debian and Ubuntu), or set CC to the one
                to use

        1 error
    "#]]
    .assert_eq(&err);
    // The interpreter needs none.
    let mut command = folder.command(&["run", "f.ft", "power", "--in", "x=[3]", "--backend", "interp"]);
    assert_eq!(finish(command.env("CC", "no-such-compiler")).0, 0);
}

#[test]
fn a_broken_entry_is_made_again() {
    let folder = Folder::new(&[("f.ft", PROGRAM)]);
    let cache = folder.path().join("cache");
    let args = ["run", "f.ft", "power", "--in", "x=[3]"];
    assert!(steps(&folder, &args).contains(&"C_compiler".to_string()));
    assert_eq!(std::fs::metadata(&cache).expect("the cache").permissions().mode() & 0o777, 0o700);
    for entry in std::fs::read_dir(&cache).expect("the cache") {
        let dir = entry.expect("an entry").path();
        for file in std::fs::read_dir(&dir).expect("an entry's files") {
            std::fs::write(file.expect("a file").path(), b"broken").expect("a write");
        }
    }
    assert!(steps(&folder, &args).contains(&"C_compiler".to_string()));
}

#[test]
fn a_compiler_that_does_not_work_is_named_and_leaves_nothing() {
    let folder = Folder::new(&[
        ("f.ft", PROGRAM),
        (
            "picky",
            "#!/bin/sh\ncase \"$*\" in *probe.c*) exec cc \"$@\";; *) echo 'error: no taste' >&2; exit 3;; esac\n",
        ),
        ("grumpy", "#!/bin/sh\necho 'cannot find my assembler' >&2\nexit 4\n"),
    ]);
    for script in ["picky", "grumpy"] {
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
    // What lies in the cache besides the manifest, which needs no compiler.
    let entries = || std::fs::read_dir(&cache).expect("the cache").count();
    let grumpy = format!("{}/grumpy", folder.path().display());
    for (cc, how, said) in [
        ("false", "it failed (exit status: 1)", "it printed no error"),
        ("true", "it ended well and made no file", "it printed no error"),
        (&grumpy, "it failed (exit status: 4)", "it said: cannot find my assembler"),
    ] {
        let (status, err) = run(cc);
        assert_eq!(status, 1, "{err}");
        let flat = err.replace('│', " ").split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(err.contains("toolchain::broken") && flat.contains("set CC to another"), "{err}");
        assert!(flat.contains(&format!("the C compiler `{cc}` does not work: {how}")), "{err}");
        assert!(err.contains(said) && err.contains("what was run: ") && err.contains("-shared"), "{err}");
        assert_eq!(entries(), 1, "{cc} left something in the cache");
    }
    // A compiler that works, but not for what we made, is a mistake of ours: the files stay for the report.
    let (status, err) = run(&format!("{}/picky", folder.path().display()));
    assert_eq!(status, 70, "{err}");
    assert!(
        err.contains("internal::c") && err.contains("no taste") && err.contains("the generated files are in"),
        "{err}"
    );
    assert_eq!(entries(), 2);
    // And with a compiler that works everything is as it should be.
    let mut command = folder.command(&["run", "f.ft", "power", "--in", "x=[3]"]);
    assert_eq!(finish(command.env("TAFFETA_CACHE_DIR", &cache)).0, 0);
}
