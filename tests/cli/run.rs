//! `weft run`, `check`, `show` and `bench` where everything is right.

use super::{Folder, PROGRAM};
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
fn results_go_to_files_and_come_back() {
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
    assert_eq!(json["memory_bytes"]["inputs"], 24);
    let (status, out, err) = folder.weft(&["run", "f.ft", "power", "--json"]);
    let json: Json = serde_json::from_str(&out).expect("JSON");
    assert_eq!((status, &json["status"]), (1, &Json::from("error")), "{err}");
    assert_eq!(json["diagnostics"][0]["code"], "input::missing");
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
fn steps_are_timed_apart() {
    let folder = Folder::new(&[("f.ft", PROGRAM)]);
    let out = folder.succeeds(&["run", "f.ft", "power", "--in", "x=[1]", "--time"]);
    for step in ["load", "read inputs", "run", "memory, inputs", "memory, results", "memory, scratch"] {
        assert!(out.contains(step), "{step}: {out}");
    }
}

#[test]
fn checking_counts_entries() {
    let folder = Folder::new(&[("f.ft", PROGRAM)]);
    assert_eq!(folder.succeeds(&["check", "f.ft"]), "f.ft: no errors in 5 entries\n");
    assert_eq!(folder.succeeds(&["check", "f.ft", "--json"]), "{\"diagnostics\":[],\"status\":\"ok\"}\n");
}

#[test]
fn stages_are_shown() {
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
    // What is shown is a program again, and the same one.
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
