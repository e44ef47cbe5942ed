//! `taffeta doctor`, and the treatment of C compilers that miscompile.

use super::{Folder, finish};
use serde_json::Value as Json;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

const PROGRAM: &str = "def clip(x: f32[n]) -> f32[n]:\n    return max(x, 0)\n";

/// Makes a folder with a program and a compiler that runs `cc` by a script. The script adds `-Og`, with which the probe
/// compiles in half of the time.
fn with_compiler(script: &str) -> (Folder, PathBuf) {
    let folder = Folder::new(&[("clip.ft", PROGRAM)]);
    folder.write("compiler", format!("#!/bin/sh\n{script} -Og\n").as_bytes());
    let compiler = folder.path().join("compiler");
    std::fs::set_permissions(&compiler, std::fs::Permissions::from_mode(0o755)).expect("it is ours");
    (folder, compiler)
}

/// Runs with that compiler and a cache in the folder; returns status, standard output and standard error.
fn taffeta(folder: &Folder, compiler: &PathBuf, args: &[&str]) -> (i32, String, String) {
    let mut command = folder.command(args);
    finish(command.env("CC", compiler).env_remove("CFLAGS").env("TAFFETA_CACHE_DIR", folder.path().join("cache")))
}

fn json(text: &str) -> Json {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

#[test]
fn this_machine_computes_rightly() {
    let folder = Folder::new(&[]);
    let shown = folder.succeeds(&["doctor"]);
    for name in ["compiler", "flags", "vectors", "OpenMP", "libmvec", "BLAS", "z3", "isl", "cache", "threads"] {
        assert!(shown.lines().any(|l| l.starts_with(name)), "no {name} in\n{shown}");
    }
    assert!(shown.lines().any(|l| l.split_whitespace().collect::<Vec<_>>() == ["computes", "rightly"]), "{shown}");
    let all = json(&folder.succeeds(&["doctor", "--json"]));
    assert_eq!(all["status"], "ok");
    assert_eq!(all["compiler"]["probe"], serde_json::json!({ "wrong": [], "workaround": [] }));
    assert!(all["compiler"]["openmp_threads"].as_u64().is_some_and(|n| n > 0), "{all}");
    assert!(all["z3"].as_str().is_some_and(|v| v.starts_with(|c: char| c.is_ascii_digit())), "{all}");
    assert!(all["isl"].as_str().is_some_and(|v| !v.is_empty()), "{all}");
    assert!(all["cache"]["entries"].as_u64().is_some_and(|n| n > 0), "{all}");
}

#[test]
fn workarounds_override_flags_that_compute_wrongly() {
    // -ffast-math comes first, so that later flags override it.
    let (folder, compiler) = with_compiler("exec cc -ffast-math \"$@\"");
    let all = json(&taffeta(&folder, &compiler, &["doctor", "--json"]).1);
    let probe = &all["compiler"]["probe"];
    assert_eq!(probe["workaround"], serde_json::json!(["-fno-fast-math"]), "{all}");
    let wrong: Vec<&str> =
        probe["wrong"].as_array().expect("a list").iter().filter_map(|w| w["what"].as_str()).collect();
    assert!(wrong.iter().any(|w| w.contains("imum of f32")) && wrong.iter().any(|w| w.contains("isnan")), "{wrong:?}");
    // NaN wins, as the language specifies, although the compiler would have lost it.
    let run = ["run", "clip.ft", "--in", "x=[nan,-1,2]", "--json"];
    let (status, out, err) = taffeta(&folder, &compiler, &run);
    assert_eq!(status, 0, "{out}{err}");
    let all = json(&out);
    assert!(all["compile_ms"]["probe"].is_number(), "{all}");
    assert!(out.contains("nan") || out.contains("NaN"), "{out}");
}

#[test]
fn compilers_that_compute_wrongly_are_refused_with_the_results() {
    // -ffinite-math-only comes last, so that no flag restores NaN.
    let (folder, compiler) = with_compiler("exec cc \"$@\" -ffinite-math-only");
    let (status, out, err) = taffeta(&folder, &compiler, &["run", "clip.ft", "--in", "x=[1,2]"]);
    assert_eq!((status, out.as_str()), (1, ""), "{err}");
    let flat = err.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(err.contains("toolchain::wrong") && flat.contains("computes wrong results:"), "{err}");
    assert!(flat.contains("isnan"), "{err}");
    let (status, out, err) = taffeta(&folder, &compiler, &["doctor"]);
    assert!(status == 1 && out.contains("wrongly:") && err.contains("toolchain::wrong"), "{out}\n{err}");
    let (status, _, err) = taffeta(&folder, &compiler, &["build", "clip.ft", "-o", "out"]);
    assert!(status == 1 && err.contains("toolchain::wrong") && !folder.path().join("out").exists(), "{err}");
}

/// Program with a product and a sum: rounded twice they give 1 - 1, contracted the product's rounding error.
const CONTRACTED: &str = "\
def f(a: f64[n], b: f64[n], c: f64[n]) -> f64[n]:
    y = zeros((n,), f64)
    for i in range(n):
        y[i] = a[i] * b[i] + c[i]
    return y
";

#[test]
fn flags_of_the_environment_come_last() {
    let (folder, compiler) = with_compiler("echo \"$@\" >> \"$0.log\"; exec cc \"$@\"");
    folder.write("f.ft", CONTRACTED.as_bytes());
    let run = |args: &[&str], cflags: &str| {
        let mut command = folder.command(args);
        let cache = folder.path().join("cache");
        finish(command.env("CC", &compiler).env("CFLAGS", cflags).env("TAFFETA_CACHE_DIR", cache))
    };
    let small = ["run", "f.ft", "--in", "a=[1.0000000001]", "--in", "b=[0.9999999999]", "--in", "c=[-1]"];
    let (status, out, err) = run(&small, "-ffp-contract=off -O2");
    assert_eq!((status, err.as_str()), (0, ""), "{out}");
    assert!(out.contains("[0]"), "the product was not rounded: {out}");
    let log = std::fs::read_to_string(folder.path().join("compiler.log")).expect("it ran");
    let compilations: Vec<&str> = log.lines().filter(|l| l.contains("-fwrapv")).collect();
    assert!(compilations.len() >= 2, "{log}");
    for line in compilations {
        let (before, after) = line.split_once("-ffp-contract=off -O2").unwrap_or_else(|| panic!("{line}"));
        assert!(before.contains("-ffp-contract=fast") && before.contains("-O3") && before.contains("-fopenmp"));
        // Only files and libraries follow, which an object file does not have.
        let flags: Vec<&str> = after.split_whitespace().filter(|w| w.starts_with('-')).collect();
        let libraries = if line.contains(" -c ") { &[][..] } else { &["-lm", "-ldl"] };
        assert_eq!(flags, [&["-o"], libraries].concat(), "{line}");
    }
    let shown = run(&["doctor"], "-ffp-contract=off").1;
    assert!(shown.contains("CFLAGS     -ffp-contract=off, after all other flags\n"), "{shown}");
    // CFLAGS that break arithmetic are undone after them, since no earlier flag could.
    let probe = json(&run(&["doctor", "--json"], "-ffast-math").1)["compiler"].clone();
    assert_eq!(probe["probe"]["workaround"], serde_json::json!(["-fno-fast-math"]), "{probe}");
    assert_eq!(probe["cflags"], "-ffast-math -fno-fast-math", "{probe}");
    let (status, out, err) = run(&["run", "clip.ft", "--in", "x=[nan,-1,2]"], "-ffast-math");
    assert!(status == 0 && out.contains("nan"), "{out}{err}");
}

/// Checks the newest clang, by hand: `TAFFETA_CLANG=clang-22 cargo test --test suite -- --ignored the_newest_clang`.
#[test]
#[ignore = "takes a compiler that TAFFETA_CLANG names"]
fn the_newest_clang_computes_rightly() {
    let named = std::env::var("TAFFETA_CLANG").expect("TAFFETA_CLANG names a clang");
    let folder = Folder::new(&[("halves.ft", HALVES)]);
    let mut command = folder.command(&["doctor", "--json"]);
    let all = json(&finish(command.env("CC", &named)).1);
    assert_eq!((&all["status"], &all["compiler"]["kind"]), (&Json::from("ok"), &Json::from("clang")), "{all}");
    assert!(all["compiler"]["probe"]["workaround"].is_array(), "{all}");
    // Conversions in a loop with lanes, and in one with a loop-carried dependence.
    let args = ["run", "halves.ft", "--in", "x=[1,0.333,65504,-3e-8]"];
    let mut command = folder.command(&args);
    let (status, compiled, err) = finish(command.env("CC", &named));
    assert_eq!(status, 0, "{err}");
    assert_eq!(compiled, folder.succeeds(&[&args[..], &["--backend", "interp"]].concat()));
}

const HALVES: &str = "\
def f(x: f16[n]) -> (f16[n], f16):
    y = zeros((n,), f16)
    s: f16 = 0.0
    for i in range(n):
        y[i] = x[i] * x[i]
        s = s * 0.75 + x[i]
    return y, s
";

#[test]
fn warm_caches_run_no_compiler() {
    let (folder, compiler) = with_compiler("echo run >> \"$0.count\"; exec cc \"$@\"");
    let count = || std::fs::read_to_string(folder.path().join("compiler.count")).map_or(0, |t| t.lines().count());
    let run = |x: &str| {
        let (status, out, err) = taffeta(&folder, &compiler, &["run", "clip.ft", "--in", x]);
        assert_eq!(status, 0, "{out}{err}");
    };
    // The probe, then the program. (The `cc` crate also queries the kind of compiler.)
    run("x=[1,2]");
    let first = count();
    assert!(first >= 2, "{first}");
    run("x=[1,2]");
    assert_eq!(count(), first);
    // Another program is compiled, without another probe.
    run("x=[1,2,3]");
    assert!(count() < 2 * first, "{first}, then {}", count());
}

#[test]
fn missing_compilers_are_reported() {
    let folder = Folder::new(&[]);
    let mut command = folder.command(&["doctor", "--json"]);
    let (status, out, err) = finish(command.env("CC", "no-such-compiler"));
    assert_eq!(status, 1);
    let all = json(&out);
    assert_eq!((&all["status"], &all["compiler"]), (&Json::from("error"), &Json::Null), "{all}");
    assert!(err.contains("toolchain::missing"), "{err}");
}
