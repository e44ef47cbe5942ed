//! Schedules from the command line: run, shown step by step, recorded, taken again, refused.

use super::Folder;

const PROGRAM: &str = "
def rows(a: f32[n, m]) -> f32[n]:
    y = zeros((n,), f32)
    for i in range(n):
        t: f32 = 0
        for j in range(m):
            t += a[i, j]
        y[i] = t
    return y

@schedule(rows)
def tiled(s, factor=4):
    outer, inner = s.split(\"i\", factor)
    s.parallelize(outer)
    if s.can(\"reorder\", [\"j\", inner]):
        s.reorder([\"j\", inner])

@schedule(rows)
def wrong(s):
    s.reorder([\"j\", \"i\"])
";

fn folder() -> Folder {
    Folder::new(&[("rows.ft", PROGRAM)])
}

const INPUT: [&str; 6] = ["--in", "a=rand(seed=3)", "--size", "n=11", "--size", "m=7"];

fn run(folder: &Folder, more: &[&str]) -> String {
    let args: Vec<&str> = ["run", "rows.ft"].iter().chain(&INPUT).chain(more).copied().collect();
    folder.succeeds(&args)
}

#[test]
fn what_is_computed_stays_the_same() {
    let folder = folder();
    let plain = run(&folder, &["--schedule", "none"]);
    for more in [&["--schedule", "tiled"][..], &["--schedule", "tiled", "--backend", "interp"]] {
        assert_eq!(run(&folder, more), plain);
    }
    for threads in ["1", "2", "5"] {
        assert_eq!(run(&folder, &["--schedule", "tiled", "--generic", "--threads", threads]), plain);
    }
}

#[test]
fn steps_are_shown_recorded_and_taken_again() {
    let folder = folder();
    let steps = folder.succeeds(&["show", "rows.ft", "--schedule", "tiled", "--steps"]);
    assert!(steps.contains("# step 1: s.split(\"i\", 4)\n"), "{steps}");
    assert!(steps.contains("# step 2: s.parallelize(\"i~o\")\n"), "{steps}");
    assert!(steps.contains("\n-     for i in range(n):\n"), "{steps}");
    assert!(steps.contains("\n+     for i_o in range((n + 3) // 4):  # parallel\n"), "{steps}");
    // What a step says of the program is shown with it, whoever takes it.
    folder.write(
        "columns.ft",
        b"def columns(x: f32[n, m]) -> f32[m]:
    y = zeros((m,), f32)
    for j in range(m):
        for i in range(n):
            y[j] += x[i, j]
    return y

@schedule(columns)
def fast(s):
    s.vectorize(\"i\")
",
    );
    folder.succeeds(&["show", "columns.ft", "--schedule", "fast", "--trace", "columns.json"]);
    for schedule in ["fast", "columns.json"] {
        let strided = folder.succeeds(&["show", "columns.ft", "--schedule", schedule, "--steps"]);
        let said = "# step 1: s.vectorize(\"i\")\n# note: `x[i, j]` is strided: lanes are apart in dimension 0, and not in the last one alone\n";
        assert!(strided.contains(said), "{strided}");
    }
    // The question was asked, and the answer was no.
    assert!(!steps.contains("step 3"), "{steps}");

    folder.succeeds(&["show", "rows.ft", "--schedule", "tiled", "--trace", "t.json"]);
    let by_name = folder.succeeds(&["show", "rows.ft", "--schedule", "tiled", "--stage", "scheduled"]);
    assert_eq!(folder.succeeds(&["show", "rows.ft", "--schedule", "t.json", "--stage", "scheduled"]), by_name);
    assert_eq!(run(&folder, &["--schedule", "t.json"]), run(&folder, &[]));

    folder.write(
        "bad.json",
        b"{\"version\": 1, \"entry\": \"rows\", \"steps\": [{\"method\": \"split\", \"args\": []}]}",
    );
    let err = folder.fails(&["run", "rows.ft", "--schedule", "bad.json"]);
    assert!(err.contains("`loop` is missing") && err.contains("this is step 1 of bad.json"), "{err}");
    let err = folder.fails(&["run", "rows.ft", "--schedule", "missing.json"]);
    assert!(err.contains("missing.json"), "{err}");
}

#[test]
fn a_refusal_shows_both_instances_on_their_lines() {
    let err = folder().fails(&["show", "rows.ft", "--schedule", "wrong", "--stage", "scheduled"]);
    for part in [
        "schedule::illegal",
        "`reorder` is refused: the nest is not perfect, and `j` may not run at all",
        "t: f32 = 0",
        "s.reorder([\"j\", \"i\"])",
    ] {
        assert!(err.contains(part), "{part}\n{err}");
    }
}
