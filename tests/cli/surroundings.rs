//! The process's environment: variables, threads, terminals and signals.

use super::{FLAGS, Folder, PROGRAM, finish};
use crate::programs::root;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Checks that a log, which is copied into reports, shows no environment variables, which may hold passwords.
#[test]
fn logs_contain_no_environment_variables() {
    for filter in ["debug", "trace"] {
        let folder = Folder::new(&[("f.ft", PROGRAM)]);
        let mut command = folder.command(&["run", "f.ft", "power", "--in", "x=[3]"]);
        let (status, _, err) = finish(
            command
                .env("TAFFETA_LOG", filter)
                .env("TAFFETA_CACHE_DIR", folder.cache())
                .env("SOME_API_TOKEN", "correct-horse-battery-staple"),
        );
        assert_eq!(status, 0, "{err}");
        assert!(err.contains("running") && err.contains("-shared"), "the compiler's command is shown: {err}");
        assert!(!err.contains("correct-horse") && !err.contains("SOME_API_TOKEN"), "{err}");
    }
}

/// Checks that numbers of threads at which libgomp crashes are refused.
#[test]
fn too_many_threads_are_refused() {
    let program = "def f(x: inout[f32[n]]):\n    for i in range(n):\n        x[i] = x[i] + 1.0\n\n\n\
                   @schedule(f)\ndef fast(s):\n    s.parallelize(\"i\")\n";
    let folder = Folder::new(&[("f.ft", program)]);
    let run = |args: &[&str], value: &str| {
        let given = ["run", "f.ft", "f", "--in", "x=ones", "--size", "n=100", "--schedule", "fast"];
        finish(folder.command(&[&given, args].concat()).env("OMP_NUM_THREADS", value))
    };
    for value in ["1000000", "1025,4", "99999999999999999999", " 2000 "] {
        let (status, out, err) = run(&[], value);
        assert_eq!((status, out.as_str()), (1, ""), "{value}: {err}");
        let first = value.split(',').next().unwrap_or(value).trim();
        let expected = format!("OMP_NUM_THREADS asks for {first} threads, but");
        assert!(err.contains("input::threads") && err.contains(&expected), "{err}");
    }
    for value in ["3", "2,1000000", "many"] {
        assert_eq!(run(&[], value).0, 0, "{value}");
    }
    assert_eq!(run(&["--threads", "2"], "1000000").0, 0, "`--threads` overrides the environment");
    assert_eq!(run(&["--threads", "1025"], "2").0, 2);
}

/// Runs a command line with a terminal as standard error; returns the terminal's output.
fn on_a_terminal(folder: &Folder, args: &[&str]) -> String {
    let mut command = Command::new(crate::python::interpreter());
    command.arg(root().join("tests/cli/terminal.py")).arg(env!("CARGO_BIN_EXE_taffeta")).args(args);
    command.current_dir(folder.path()).env("TAFFETA_CACHE_DIR", folder.cache()).env("TERM", "xterm");
    command.env("CFLAGS", FLAGS);
    let (status, out, err) = finish(&mut command);
    assert_eq!(status, 0, "{out}{err}");
    out
}

#[test]
fn progress_is_shown_on_terminals_alone() {
    if crate::python::available("pty").is_none() {
        return;
    }
    let program = "def slow(x: f64[n]) -> f64:\n    s: f64 = 0.0\n    for k in range(30000):\n        \
                   for i in range(n):\n            s += sin(x[i] + s)\n    return s\n";
    let folder = Folder::new(&[("f.ft", program)]);
    let args = ["run", "f.ft", "--in", "x=rand", "--size", "n=1000"];
    let shown = on_a_terminal(&folder, &args);
    assert!(shown.contains("compiling"), "{shown:?}");
    assert!(shown.contains("running"), "{shown:?}");
    for (args, what) in [
        (&["bench", "f.ft", "--in", "x=rand", "--size", "n=10", "--repeat", "2"][..], "compiling"),
        (&["build", "f.ft", "-o", "out"], "compiling"),
        (&["check-grad", "f.ft", "--size", "n=2", "--backend", "interp"], "comparing derivatives"),
        (&["doctor"], "examining the C compiler"),
    ] {
        assert!(on_a_terminal(&folder, args).contains(what), "{args:?} shows nothing");
    }
    let mut command = folder.command(&args);
    let (status, out, err) = finish(command.env("TAFFETA_CACHE_DIR", folder.cache()));
    assert_eq!((status, err.as_str()), (0, ""));
    assert!(!out.contains("running"), "{out}");
}

/// Checks that a process ended by a signal removes its temporary files.
#[test]
fn terminated_processes_remove_temporary_files() {
    use std::os::unix::process::ExitStatusExt;
    let run = ["run", "f.ft", "power", "--in", "x=[3]"];
    let build = ["build", "f.ft", "power", "-o", "out"];
    for (args, signal, number) in [(&run[..], "TERM", 15), (&build, "TERM", 15), (&["doctor"], "HUP", 1)] {
        // A compiler that runs until its parent process is gone.
        let folder = Folder::new(&[
            ("f.ft", PROGRAM),
            ("tmp/x", ""),
            ("cc", "#!/bin/sh\n: > \"$0.started\"\nwhile kill -0 $PPID; do sleep 0.05; done\n"),
        ]);
        let compiler = folder.path().join("cc");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&compiler, mode).expect("ours");
        let count = |path: &str| std::fs::read_dir(folder.path().join(path)).map_or(0, Iterator::count);
        // Under `nohup`, and in the background of a shell, signals are ignored, and a process inherits that.
        let mut command = Command::new("env");
        command.args(["--default-signal", env!("CARGO_BIN_EXE_taffeta")]).args(args).current_dir(folder.path());
        command.env("CC", &compiler).env("TMPDIR", folder.path().join("tmp")).env("TAFFETA_CACHE_DIR", "cache");
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it runs");
        let started = folder.path().join("cc.started");
        while !started.exists() {
            assert_eq!(child.try_wait().expect("it is ours"), None, "{args:?} ends early");
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(count("tmp") + count("cache/making") > 1, "{args:?} creates no temporary files");
        let told = Command::new("kill").arg(format!("-{signal}")).arg(child.id().to_string()).status();
        assert!(told.expect("it runs").success());
        assert_eq!(child.wait().expect("it is ours").signal(), Some(number), "{args:?} does not end by the signal");
        assert_eq!((count("tmp"), count("cache/making")), (1, 0), "{args:?} leaves files behind");
    }
}
