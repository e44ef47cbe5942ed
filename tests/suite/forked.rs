//! Forked processes: a child has one thread, whatever its parent had; functions compiled before the fork run in it, and
//! it can compile.

#![allow(unsafe_code)] // forks

use std::process::Command;
use taffeta::{Function, Options, Program};

const PROGRAM: &str = "
def scale(x: f64[n], a: f64) -> f64[n]:
    y = zeros((n,), f64)
    for i in range(n):
        y[i] = a * x[i]
    return y


@schedule(scale)
def fast(s):
    s.parallelize(\"i\")


def shift(x: f64[n], a: f64) -> f64[n]:
    y = zeros((n,), f64)
    for i in range(n):
        y[i] = a + x[i]
    return y


@schedule(shift)
def fast_shift(s):
    s.parallelize(\"i\")
";

fn compiled(entry: &str, schedule: &str) -> Function {
    let program = Program::from_source("forked.ft", PROGRAM).expect("a program");
    program.compile(entry, &Options::default().schedule(schedule)).expect("it compiles")
}

fn second(function: &Function) -> f64 {
    let x = ndarray::Array1::from_iter((0..1000).map(f64::from));
    let out = function.call().input("x", x.view()).scalar("a", 3.0).threads(2).run().expect("it runs");
    out.array::<f64>("y").expect("an array")[[1]]
}

/// Checks the child of a process of its own, since other threads of this one may hold locks during the fork.
#[test]
fn forked_children_compile_and_run() {
    let this = std::env::current_exe().expect("a program");
    let mut command = Command::new(this);
    command.args(["--exact", "forked::forked_process", "--ignored", "--nocapture", "--test-threads=1"]);
    let cache = tempfile::tempdir().expect("a folder");
    let output = command.env("TAFFETA_CACHE_DIR", cache.path()).output().expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {text}", output.status);
}

#[test]
#[ignore = "forks: `forked_children_compile_and_run` runs it"]
fn forked_process() {
    let scale = compiled("scale", "fast");
    assert_eq!(second(&scale), 3.0);
    // SAFETY: no other thread of this process holds a lock: all wait for work.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // A child that waits for threads that do not exist is killed.
        // SAFETY: `alarm` has no preconditions.
        unsafe { libc::alarm(100) };
        let right = second(&scale) == 3.0 && second(&compiled("shift", "fast_shift")) == 4.0;
        // SAFETY: the child is done; its parent cleans up static state.
        unsafe { libc::_exit(if right { 0 } else { 1 }) };
    }
    let mut status = 0;
    // SAFETY: `status` outlives the call.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0, "the child ends with {status:#x} (0xe: it hangs)");
    assert_eq!(second(&scale), 3.0);
}
