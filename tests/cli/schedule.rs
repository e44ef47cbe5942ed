//! Schedules on the command line: run, shown step by step, recorded, replayed, refused.

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
fn schedules_preserve_results() {
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
fn steps_are_shown_recorded_and_replayed() {
    let folder = folder();
    let steps = folder.succeeds(&["show", "rows.ft", "--schedule", "tiled", "--steps"]);
    assert!(steps.contains("# step 1: s.split(\"i\", 4)\n"), "{steps}");
    assert!(steps.contains("# step 2: s.parallelize(\"i~o\")\n"), "{steps}");
    assert!(steps.contains("\n-     for i in range(n):\n"), "{steps}");
    assert!(steps.contains("\n+     for i_o in range((n + 3) // 4):  # \"i~o\", parallel\n"), "{steps}");
    // Notes about a step are shown with it, whether a schedule function or a trace applies it.
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
    // `can` returned false, so there is no further step.
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
    assert!(err.contains("`loop` is missing") && err.contains("found at step 1 of bad.json"), "{err}");
    let err = folder.fails(&["run", "rows.ft", "--schedule", "missing.json"]);
    assert!(err.contains("missing.json"), "{err}");
}

/// Checks that steps on structured programs are shown, and replayed from a trace.
#[test]
fn steps_of_structured_programs_are_shown() {
    let program = "
def spmv(A: f64[n, m] @ csr, x: f64[m]) -> f64[n]:
    y = zeros((n,), f64)
    for i in range(n):
        for j in range(m):
            y[i] += A[i, j] * x[j]
    return y

@schedule(spmv)
def cut(s):
    s.split(\"i\", 4)

@schedule(spmv)
def copied(s):
    s.unroll(\"i\", factor=3)
";
    let folder = Folder::new(&[("spmv.ft", program)]);
    for (schedule, step) in [("cut", "s.split(\"i\", 4)"), ("copied", "s.unroll(\"i\", factor=3)")] {
        let steps = folder.succeeds(&["show", "spmv.ft", "--schedule", schedule, "--steps"]);
        assert!(steps.contains(&format!("# step 1: {step}\n")) && steps.contains("\n+ "), "{steps}");
        folder.succeeds(&["show", "spmv.ft", "--schedule", schedule, "--trace", "t.json"]);
        assert_eq!(folder.succeeds(&["show", "spmv.ft", "--schedule", "t.json", "--steps"]), steps);
    }
}

#[test]
fn refusals_show_both_instances_on_their_lines() {
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

#[test]
fn check_runs_schedules_and_derives_gradients() {
    let entry = "
def f(x: f32[n]) -> f32[n]:
    y = zeros((n,), f32)
    for i in range(n):
        y[i] = 2.0 * x[i]
    return y

";
    let said = |more: &str| {
        let folder = Folder::new(&[("a.ft", &format!("{entry}{more}"))]);
        let shown = folder.fails(&["check", "a.ft"]);
        let message = shown.lines().find_map(|l| l.trim().strip_prefix("× ")).unwrap_or("").to_string();
        let place = shown.lines().find_map(|l| l.split("[a.ft:").nth(1)).unwrap_or("").to_string();
        format!("{message} @{place}")
    };
    let schedule = |step: &str| format!("@schedule(f)\ndef fast(s, by=4):\n    {step}\n");
    assert_eq!(said(&schedule("s.split(\"j\", by)")), "`split`: there is no loop `j` @10:13]");
    assert_eq!(said(&schedule("s.split(\"i\", factr=by)")), "`split`: there is no parameter `factr` @10:24]");
    assert_eq!(said(&schedule("s.splt(\"i\", by)")), "`splt`: a schedule has no method `splt` @10:5]");
    assert_eq!(
        said("g = grad(f)\n"),
        "`grad` needs one floating-point scalar result, but `f` has `y` of f32 with 1 dimensions @8:5]"
    );
    // A schedule with parameters that have no defaults is not run.
    let folder = Folder::new(&[("a.ft", &format!("{entry}@schedule(f)\ndef fast(s, by):\n    s.split(\"j\", by)\n"))]);
    assert_eq!(folder.succeeds(&["check", "a.ft"]), "a.ft: no errors in 1 entry and 1 schedule\n");
}

#[test]
fn schedules_query_illegal_steps_without_an_error() {
    let folder = Folder::new(&[(
        "a.ft",
        "
def scaled(x):
    y = x
    for i in range(x.shape[0]):
        y[i] = 2.0 * x[i]
    return y

def f(x: inout[f32[n, m]], c: f32) -> f32:
    t = c + 1.0
    u = t * c
    for i in range(1, n):
        for j in range(1, m):
            x[i, j] += x[i - 1, j - 1] * t
    v = scaled(x[0])
    return u + v[0]

@schedule(f)
def asked(s):
    assert not s.can(\"split\", \"nowhere\", 4)
    assert not s.can(\"split\", \"i\", 4, shift=-1)
    assert not s.can(\"split\", \"i\", 0)
    assert not s.can(\"var_split\", \"u\", 0, 4)
    assert not s.can(\"cache\", \"i\", \"nothing\")
    assert s.can(\"permute\", [\"i\", \"j\"], lambda i, j: (j, i))
    assert not s.can(\"permute\", [\"i\", \"j\"], lambda i, j: (-i, j))
    # The loop of the function itself, and not the one that `scaled` has.
    assert s.can(\"split\", \"i\", 4)
    assert s.can(\"split\", \"scaled.i\", 4)
    outer, inner = s.split(\"i#2\", 4)
    s.inline(\"t\")
    assert not s.can(\"inline\", \"t\")

@schedule(f)
def unknown(s):
    if s.can(\"splitt\", \"i\", 4):
        pass

@schedule(f)
def missing(s):
    if s.can(\"split\"):
        pass
",
    )]);
    let shown = folder.fails(&["check", "a.ft"]);
    assert!(!shown.contains("assert"), "{shown}");
    assert_eq!(shown.matches("× ").count(), 2, "{shown}");
    assert!(shown.contains("a schedule has no method `splitt`") && shown.contains("`loop` is missing"), "{shown}");
}

/// Checks that rules choose a schedule, list the alternatives, and leave an ordinary trace.
#[test]
fn schedules_are_chosen_by_rules() {
    let folder = folder();
    assert_eq!(run(&folder, &["--schedule", "auto"]), run(&folder, &["--schedule", "none"]));
    let sizes = ["--size", "n=4000", "--size", "m=4000"];
    let shown = |more: &[&str]| {
        let args: Vec<&str> =
            ["show", "rows.ft", "--schedule", "auto"].iter().chain(&sizes).chain(more).copied().collect();
        folder.succeeds(&args)
    };
    let text = shown(&["--explain"]);
    for rule in ["# auto_reorder: ", "# auto_vectorize: ", "# auto_parallelize: ", "    keep ", "  * vectorize(\"j\")"]
    {
        assert!(text.contains(rule), "{rule}: {text}");
    }
    assert!(text.contains("# Estimates against the roofline\n") && text.contains(" (memory), "), "{text}");
    assert!(!text.contains("warning: "), "{text}");
    let json: serde_json::Value = serde_json::from_str(&shown(&["--explain", "--json"])).expect("it is JSON");
    assert!(json["nests"][0]["memory_ns"].as_f64() > Some(0.0), "{json}");
    let decisions = json["decisions"].as_array().expect("a list");
    assert!(decisions.iter().any(|d| d["rule"] == "auto_vectorize" && d["taken"] == 1), "{json}");
    assert!(shown(&[]).contains("for j in range(m):  # vectorize, partial(t +)"));
    shown(&["--trace", "chosen.json"]);
    assert_eq!(run(&folder, &["--schedule", "chosen.json"]), run(&folder, &["--schedule", "none"]));
    // Rules schedule a gradient after it is derived.
    let gradient = ["--grad", "a", "--schedule", "auto"];
    assert_eq!(run(&folder, &gradient), run(&folder, &["--grad", "a"]));
    assert!(shown(&["--grad", "a", "--explain"]).contains("`i~b`"));
    // `--schedule` applies a trace before differentiation, so a gradient's trace has no entry to apply to.
    for more in [&["--trace", "back.json"][..], &["--as-function"]] {
        let refused = folder.fails(&[&["show", "rows.ft"], &gradient[..], more].concat());
        assert!(refused.contains("the gradient, which is not an entry") && refused.contains("vjp("), "{refused}");
    }
}

/// Checks that loops estimated far above the roofline are warned about, with the obstacle.
#[test]
fn loops_far_from_the_roofline_are_warned_about() {
    let program = "
def filtered(x: f64[n]) -> f64[n]:
    y = empty((n,), f64)
    last: f64 = 0
    for i in range(n):
        last = 0.5 * last + sin(x[i]) / 3
        y[i] = last
    return y
";
    let folder = Folder::new(&[("filter.ft", program)]);
    let text = folder.succeeds(&["show", "filter.ft", "--schedule", "auto", "--explain", "--size", "n=1000000"]);
    let told = text.split("warning: ").nth(1).unwrap_or_else(|| panic!("{text}"));
    assert!(told.starts_with("the estimate of `i` is "), "{told}");
    assert!(told.contains("  in the way: vectorize(\"i\"): the loop `i` has a loop-carried dependence"), "{told}");
}

/// Checks that under any schedule each loop is explained: whether it runs on threads and in lanes, or why not.
#[test]
fn loops_are_explained_under_any_schedule() {
    let program = "
def running(x: f64[n], rows: f64[n, m]) -> (f64[n], f64[n]):
    y = zeros((n,), f64)
    for i in range(1, n):
        y[i] = 0.5 * y[i - 1] + x[i]
    total = zeros((n,), f64)
    for k in range(n):
        for j in range(m):
            total[k] += rows[k, j]
    return y, total

@schedule(running)
def fast(s):
    s.parallelize(\"k\")
    s.vectorize(\"j\")
";
    let folder = Folder::new(&[("running.ft", program)]);
    let shown = |more: &[&str]| {
        let sizes = ["--explain", "--size", "n=1000", "--size", "m=1000"];
        folder.succeeds(&[&["show", "running.ft"], &sizes[..], more].concat())
    };
    for more in [&[][..], &["--schedule", "none"], &["--schedule", "fast"], &["--schedule", "auto"]] {
        let text = shown(more);
        assert!(
            text.contains("# Threads and lanes\n") && text.contains("# Estimates against the roofline\n"),
            "{text}"
        );
        assert!(text.contains("  threads  no: the loop `i` has a loop-carried dependence\n"), "{text}");
    }
    let plain = shown(&[]);
    assert!(
        plain.contains("no schedule asks for it: `s.parallelize(\"k\")` is legal, and changes the estimate from "),
        "{plain}"
    );
    assert!(plain.contains("it reduces floats into one element, and C compilers keep the order"), "{plain}");
    assert!(plain.ends_with("no steps\n"), "{plain}");
    let fast = shown(&["--schedule", "fast"]);
    assert!(fast.contains("for `k`   # running.ft:7\n  threads  yes: static distribution\n"), "{fast}");
    assert!(fast.contains("  for `j`   # running.ft:8\n    lanes    yes: lanes: "), "{fast}");
    assert!(fast.contains("2 steps:\n  s.parallelize(\"k\")"), "{fast}");
    let trace = shown(&["--schedule", "auto"]);
    assert!(trace.contains("`total.d0`   # running.ft:6\n"), "decisions have a line: {trace}");
    let json: serde_json::Value = serde_json::from_str(&shown(&["--json"])).expect("it is JSON");
    let first = json["execution"].as_array().and_then(|all| all.iter().find(|l| l["loop"] == "i"));
    let why = first.map(|l| &l["threads"]["no"]);
    assert!(why.is_some_and(|why| *why == "the loop `i` has a loop-carried dependence"), "{json}");
}

/// Checks that a loop that prints is explained as ordered, although the schedule vectorises it.
#[test]
fn ordered_loops_are_explained() {
    let program = "
def shown(x: f64[n]) -> f64[n]:
    y = empty((n,), f64)
    for i in range(n):
        y[i] = x[i] + 1.0
        print(y[i])
    return y

@schedule(shown)
def lanes(s):
    s.vectorize(\"i\")
";
    let folder = Folder::new(&[("shown.ft", program)]);
    let text = folder.succeeds(&["show", "shown.ft", "--schedule", "lanes", "--explain"]);
    assert!(text.contains("  lanes    no: its iterations run in order: the loop prints\n"), "{text}");
}

/// Checks that each decision of the rules is listed once, and its untried options on one line.
#[test]
fn decisions_are_listed_once() {
    let program = "
def product(a: f32[n, k], b: f32[k, m]) -> f32[n, m]:
    c = zeros((n, m), f32)
    for i in range(n):
        for j in range(m):
            for l in range(k):
                c[i, j] += a[i, l] * b[l, j]
    return c
";
    let folder = Folder::new(&[("product.ft", program)]);
    let sizes = ["--size", "n=300", "--size", "m=300", "--size", "k=300"];
    let text = folder.succeeds(&[&["show", "product.ft", "--schedule", "auto", "--explain"], &sizes[..]].concat());
    for decision in text.split("\n\n").filter(|d| d.starts_with('`')) {
        let lines: Vec<&str> = decision.lines().skip(1).collect();
        assert!(lines.iter().all(|l| lines.iter().filter(|m| m[4..] == l[4..]).count() == 1), "{decision}");
        assert!(lines.iter().filter(|l| l.contains("not tried")).count() <= 1, "{decision}");
    }
}
