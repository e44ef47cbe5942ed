//! `taffeta run`, `check`, `show` and `bench` on correct input.

use super::{Folder, PROGRAM};
use crate::programs;
use expect_test::expect;
use serde_json::Value as Json;

#[test]
fn results_are_summarised() {
    let folder = Folder::new(&[("f.ft", PROGRAM)]);
    for backend in ["c", "interp"] {
        let out = folder.succeeds(&[
            "run",
            "f.ft",
            "axpy",
            "--in",
            "x=arange",
            "--in",
            "y=ones",
            "--in",
            "a=0.5",
            "--size",
            "n=9",
            "--backend",
            backend,
        ]);
        expect![[r#"
            y: f32[9]
              [1, 1.5, 2, …, 4, 4.5, 5]
              min 1  max 5  mean 3
            total: f32 = 27
        "#]]
        .assert_eq(&out);
        let out =
            folder.succeeds(&["run", "f.ft", "power", "--in", "x=[1, -2, 3]", "--set", "k=3", "--backend", backend]);
        expect![[r#"
            y: i64[3]
              [1, -8, 27]
              min -8  max 27  mean 6.66667
        "#]]
        .assert_eq(&out);
    }
}

#[test]
fn sizes_are_solved_for() {
    let folder = Folder::new(&[("f.ft", PROGRAM)]);
    let out = folder.succeeds(&["run", "f.ft", "halves", "--in", "x=[1, 2, 3, 4]"]);
    expect![[r#"
        a: f32[2]
          [1, 2]
          min 1  max 2  mean 1.5
        b: f32[2]
          [3, 4]
          min 3  max 4  mean 3.5
    "#]]
    .assert_eq(&out);
}

#[test]
fn generic_and_specialised_agree() {
    let folder = Folder::new(&[("f.ft", PROGRAM)]);
    let args = [
        "run",
        "f.ft",
        "pick",
        "--in",
        "x=rand(seed=3)",
        "--in",
        "index=randint(0,7)",
        "--size",
        "n=7",
        "--size",
        "m=5",
        "--threads",
        "2",
    ];
    let specialised = folder.succeeds(&args);
    assert_eq!(folder.succeeds(&[&args[..], &["--generic"]].concat()), specialised);
    assert_eq!(folder.succeeds(&[&args[..], &["--schedule", "none"]].concat()), specialised);
}

#[test]
fn results_round_trip_through_files() {
    let folder = Folder::new(&[("f.ft", PROGRAM)]);
    let args = ["run", "f.ft", "axpy", "--in", "x=[1, 2, 3]", "--in", "y=zeros", "--in", "a=2"];
    let out = folder.succeeds(&[&args[..], &["--out", "y=y.npy", "--out", "total=t.csv"]].concat());
    expect![[r#"
        y: f32[3] → y.npy
        total: f32 → t.csv
    "#]]
    .assert_eq(&out);
    assert_eq!(std::fs::read_to_string(folder.path().join("t.csv")).expect("the file"), "12.0\n");
    let out = folder.succeeds(&[
        "run",
        "f.ft",
        "axpy",
        "--in",
        "x=y.npy",
        "--in",
        "y=y.npy",
        "--in",
        "a=1",
        "--out-dir",
        "results",
    ]);
    expect![[r#"
        y: f32[3] → results/y.npy
        total: f32 → results/total.npy
    "#]]
    .assert_eq(&out);
    assert!(folder.path().join("results/y.npy").is_file() && folder.path().join("results/total.npy").is_file());
}

#[test]
fn every_format_is_read() {
    let folder = Folder::new(&[
        ("f.ft", PROGRAM),
        ("x.csv", "a,b\n1,2\n3,4\n"),
        ("e.txt", "# pairs\n0 1\n1 1\n"),
        ("m.mtx", "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 2 5\n2 2 7\n"),
        ("t.obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n"),
        (
            "mesh.ft",
            "def area(v: f64[n, 3], f: i32[m, 3], a: i32[m, 3]) -> (f64, i32):\n    s: f64 = 0.0\n    t: i32 = 0\n    for i in range(m):\n        s += v[f[i, 1], 0] * v[f[i, 2], 1] / 2\n        t += a[i, 0]\n    return s, t\n",
        ),
    ]);
    let made = |x: &str| folder.succeeds(&["run", "f.ft", "made", "--in", &format!("x={x}"), "--in", "pairs=e.txt"]);
    assert_eq!(made("x.csv"), "s: f64 = 6\n");
    assert_eq!(made("m.mtx"), "s: f64 = 12\n");
    let area = folder.succeeds(&[
        "run",
        "mesh.ft",
        "--in",
        "v=t.obj:vertices",
        "--in",
        "f=t.obj:faces",
        "--in",
        "a=t.obj:adjacency",
    ]);
    assert_eq!(area, "s: f64 = 0.5\nt: i32 = 0\n");
}

#[test]
fn json_has_results_timings_and_memory() {
    let folder = Folder::new(&[("f.ft", PROGRAM)]);
    let out = folder.succeeds(&["run", "f.ft", "power", "--in", "x=[1, 2, 3]", "--json", "--repeat", "3"]);
    let json: Json = serde_json::from_str(&out).expect("JSON");
    assert_eq!(json["status"], "ok");
    assert_eq!(json["sizes"]["n"], 3);
    assert_eq!(json["results"][0]["values"], serde_json::json!([1, 4, 9]));
    assert_eq!(json["results"][0]["dtype"], "i64");
    assert_eq!(json["run_ms"].as_array().map(Vec::len), Some(3));
    assert!(json["compile_ms"]["load"].is_number());
    let steps = |key: &str| json[key].as_object().expect("steps").keys().cloned().collect::<Vec<_>>();
    assert_eq!(steps("files_ms"), ["read_inputs", "write_results"]);
    assert!(steps("compile_ms").iter().all(|s| !s.contains("inputs") && !s.contains("results")));
    assert_eq!(json["memory_bytes"]["inputs"], 24);
    let (status, out, err) = folder.taffeta(&["run", "f.ft", "power", "--json"]);
    let json: Json = serde_json::from_str(&out).expect("JSON");
    assert_eq!((status, &json["status"]), (1, &Json::from("error")), "{err}");
    assert_eq!(json["diagnostics"][0]["code"], "input::missing");
}

/// Programs with local tensors; sizes are multiples of 64 bytes, to which their places in memory are rounded.
const DECLARED: &str = "\
def fused(x: f32[n], a: f32) -> f32[n]:
    y = a * x + exp(x) - sqrt(x * x)
    return y

def together(x: f64[n]) -> f64[n]:
    once = empty((n,), f64)
    pairs = empty((n, 2), f64)
    for i in range(n):
        once[i] = x[i] + 1
    for i in range(n):
        pairs[i, 0] = once[n - 1 - i]
        pairs[i, 1] = x[i]
    y = empty((n,), f64)
    for i in range(n):
        y[i] = pairs[n - 1 - i, 0] + once[i]
    return y

def in_turn(x: f32[n]) -> f32[n]:
    y = zeros((n,), f32)
    for step in range(3):
        t = empty((n,), f32)
        for i in range(n):
            t[i] = x[n - 1 - i] + y[i]
        for i in range(n):
            y[i] = t[n - 1 - i]
    if n > 0:
        u = empty((2 * n,), f32)
        for i in range(2 * n):
            u[i] = x[i // 2]
        for i in range(n):
            y[i] += u[2 * n - 1 - i]
    return y

def ragged(x: f64[n]) -> f64[n]:
    y = empty((n,), f64)
    for i in range(n):
        row = empty((8 * (i + 1),), f64)
        for k in range(8 * (i + 1)):
            row[k] = x[i] + k
        y[i] = row[7 * i]
    return y
";

#[test]
fn memory_of_runs_is_the_declared_memory() {
    let folder = Folder::new(&[("declared.ft", DECLARED)]);
    let memory = |entry: &str, n: usize, generic: bool| -> [u64; 3] {
        let size = format!("n={n}");
        let mut args = vec!["run", "declared.ft", entry, "--in", "x=ones", "--size", &size, "--json"];
        args.extend(["--schedule", "none"]);
        args.extend(if entry == "fused" { &["--in", "a=2"][..] } else { &[] });
        args.extend(generic.then_some("--generic"));
        let json: Json = serde_json::from_str(&folder.succeeds(&args)).expect("JSON");
        ["inputs", "results", "scratch"].map(|k| json["memory_bytes"][k].as_u64().expect("bytes"))
    };
    for n in [6400, 64_000] {
        let (f32s, f64s) = (4 * n as u64, 8 * n as u64);
        for generic in [true, false] {
            // An expression is one loop, however long it is.
            assert_eq!(memory("fused", n, generic), [f32s + 4, f32s, 0]);
            // Tensors that are live together lie beside each other.
            assert_eq!(memory("together", n, generic), [f64s, f64s, 3 * f64s]);
            // Tensors with disjoint live ranges share memory: the largest counts.
            assert_eq!(memory("in_turn", n, generic), [f32s, f32s, 2 * f32s]);
        }
    }
    // Attention written in two ways: row by row, with rows small enough for the stack; and in three stages over whole
    // arrays, of which there are two.
    let attention = |entry: &str| {
        let file = programs::root().join("examples/longformer/longformer.ft").display().to_string();
        let inputs =
            ["--in", "q=rand", "--in", "k=rand", "--in", "v=rand", "--set", "w=3", "--json", "--schedule", "none"];
        let sizes = ["--size", "heads=2", "--size", "n=640", "--size", "d=16"];
        let json: Json =
            serde_json::from_str(&folder.succeeds(&[&["run", &file, entry], &inputs[..], &sizes[..]].concat()))
                .expect("JSON");
        json["memory_bytes"]["scratch"].as_u64()
    };
    assert_eq!(attention("attention"), Some(0));
    assert_eq!(attention("attention_staged"), Some(2 * 2 * 640 * 7 * 4));
    // Of tensors allocated in turn, each in memory of its own, the last is the largest.
    assert_eq!(memory("ragged", 50, true), [400, 400, 50 * 64]);
    let args = ["run", "declared.ft", "together", "--in", "x=ones", "--size", "n=6400", "--time", "--schedule", "none"];
    let time = folder.succeeds(&args);
    let line = time.lines().find(|l| l.contains("memory, scratch")).expect("it is listed");
    assert!(line.trim_end().ends_with("153.60 kB"), "{time}");
}

#[test]
fn repeated_runs_start_from_the_same_inputs() {
    let folder = Folder::new(&[("f.ft", PROGRAM)]);
    for backend in ["c", "interp"] {
        let out = folder.succeeds(&[
            "run",
            "f.ft",
            "axpy",
            "--in",
            "x=ones",
            "--in",
            "y=zeros",
            "--in",
            "a=1",
            "--size",
            "n=2",
            "--repeat",
            "5",
            "--json",
            "--backend",
            backend,
        ]);
        let json: Json = serde_json::from_str(&out).expect("JSON");
        assert_eq!(json["results"][0]["values"], serde_json::json!([1.0, 1.0]));
    }
}

#[test]
fn steps_are_timed_separately() {
    let folder = Folder::new(&[("f.ft", PROGRAM)]);
    let out = folder.succeeds(&["run", "f.ft", "power", "--in", "x=[1]", "--time"]);
    for step in ["load", "read inputs", "run", "memory, inputs", "memory, results", "memory, scratch"] {
        assert!(out.contains(step), "{step}: {out}");
    }
}

#[test]
fn check_counts_entries() {
    let folder = Folder::new(&[("f.ft", PROGRAM)]);
    assert_eq!(folder.succeeds(&["check", "f.ft"]), "f.ft: no errors in 5 entries\n");
    assert_eq!(folder.succeeds(&["check", "f.ft", "--json"]), "{\"diagnostics\":[],\"status\":\"ok\"}\n");
}

#[test]
fn show_prints_every_stage() {
    let folder = Folder::new(&[("f.ft", PROGRAM)]);
    let elaborated = folder.succeeds(&["show", "f.ft", "pick"]);
    expect![[r#"
        def pick(x: f64[n], index: i32[m]) -> f64[m]:
            y = empty((m,), f64)
            for y.d0 in range(m):
                y[y.d0] = 0.0
            for i in range(m):
                y[i] = x[cast(index[i], i64)]
            return y
    "#]]
    .assert_eq(&elaborated);
    // The output is a program again, and the same one.
    folder.write("g.ft", elaborated.as_bytes());
    assert_eq!(folder.succeeds(&["show", "g.ft"]), elaborated);
    assert!(folder.succeeds(&["show", "f.ft", "pick", "--stage", "parsed"]).contains("def pick("));
    assert!(folder.succeeds(&["show", "f.ft", "pick", "--stage", "lowered"]).contains("assert"));
    let c = folder.succeeds(&["show", "f.ft", "pick", "--stage", "c", "--size", "m=4"]);
    assert!(c.contains("/* f.ft:14: y[i] = x[index[i]] */"), "{c}");
    assert!(c.contains("i < 4"), "{c}");
}

#[test]
fn bench_reports_rates() {
    let folder = Folder::new(&[("f.ft", PROGRAM)]);
    let args = [
        "bench", "f.ft", "axpy", "--in", "x=ones", "--in", "y=zeros", "--in", "a=1", "--size", "n=1000", "--repeat",
        "5", "--flops", "2000",
    ];
    let out = folder.succeeds(&args);
    assert!(out.starts_with("axpy: median ") && out.contains("GB/s") && out.contains("GFLOP/s"), "{out}");
    let json: Json = serde_json::from_str(&folder.succeeds(&[&args[..], &["--json"]].concat())).expect("JSON");
    assert_eq!(json["bytes"], 4000.0 + 8000.0 + 4.0 + 4.0);
    assert!(json["median_ms"].as_f64() >= json["min_ms"].as_f64());
}

/// Checks that schedules are benchmarked in turn, each beside the model's estimate.
#[test]
fn bench_compares_schedules() {
    let folder = Folder::new(&[("f.ft", PROGRAM)]);
    let args = [
        "bench",
        "f.ft",
        "axpy",
        "--in",
        "x=ones",
        "--in",
        "y=zeros",
        "--in",
        "a=1",
        "--size",
        "n=1000",
        "--repeat",
        "5",
        "--schedule",
        "auto",
        "--schedule",
        "none",
    ];
    let out = folder.succeeds(&args);
    let rows: Vec<&str> = out.lines().collect();
    assert_eq!(rows[0], "axpy: 5 runs of each, in turn", "{out}");
    assert!(rows[1].trim_start().starts_with("schedule ") && rows[1].ends_with("roofline"), "{out}");
    assert!(rows[2].starts_with("  auto ") && rows[2].contains(" 1.00 ") && rows[3].starts_with("  none "), "{out}");
    let json: Json = serde_json::from_str(&folder.succeeds(&[&args[..], &["--json"]].concat())).expect("JSON");
    assert_eq!(json["schedules"][1]["schedule"], "none");
    assert!(json["schedules"][1]["estimate_ns"].as_f64() >= json["schedules"][1]["roofline_ns"].as_f64(), "{json}");
    // No other command accepts several schedules.
    let (status, _, err) = folder.taffeta(&["run", "f.ft", "axpy", "--schedule", "auto", "--schedule", "none"]);
    assert_eq!(status, 2, "{err}");
    assert!(err.contains("`--schedule` is given twice; `taffeta bench` compares schedules"), "{err}");
}
