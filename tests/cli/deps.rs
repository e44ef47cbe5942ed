//! `taffeta deps`.

use super::Folder;
use expect_test::{Expect, expect};

const PROGRAM: &str = "\
def scan(x: inout[f32[n]], idx: i32[m], y: inout[f32[n]]) -> f32:
    total: f32 = 0.0
    for i in range(1, n):
        x[i] = x[i - 1] * 0.5
    for j in range(m):
        y[idx[j]] = 1.0
    for i in range(n):
        total += y[i]
    return total


def twice(x: f32[n, m]) -> f32[n, m]:
    y = empty((n, m), f32)
    for i in range(n):
        for j in range(m):
            y[i, j] = 2 * x[i, j]
    return y


def stencil(x: inout[f32[n, m]]):
    for t in range(1, n):
        for i in range(1, m - 1):
            x[t, i] = x[t - 1, i + 1]
";

/// Program whose statements overwrite one element.
const CHAIN: &str = "\
def chain(x: f32[n], y: inout[f32[n]]):
    for i in range(n):
        y[i] = y[i] * x[i] + 1
        y[i] = y[i] * x[i] + 2
        y[i] = y[i] * x[i] + 3
";

fn check(args: &[&str], expected: Expect) {
    let folder = Folder::new(&[("f.ft", PROGRAM)]);
    expected.assert_eq(&folder.succeeds(&[&["deps", "f.ft"], args].concat()));
}

#[test]
fn dependences_are_printed_with_lines_loops_and_witnesses() {
    check(
        &["scan"],
        expect![[r#"
            scan: 4 dependences

            total: result f32
              RAW carried by no loop
                line 2 writes `total`: total: f32 = 0.0
                line 8 updates `total` at i = 0: total += y[i]
                for example with n = 1, m = 0

            x: inout f32[n]
              RAW carried by `i#1` (line 3), distance i#1: +1
                line 4 writes `x[i]` at i = 1: x[i] = x[i - 1] * 0.5
                line 4 reads `x[i - 1]` at i = 2: x[i] = x[i - 1] * 0.5
                the element is x[1] with n = 3, m = 0

            y: inout f32[n]
              WAW carried by `j` (line 5), distance j: later
                line 6 writes `y[idx[j]]` at j = 0: y[idx[j]] = 1.0
                line 6 writes `y[idx[j]]` at j = 1: y[idx[j]] = 1.0
                the element is y[0] with n = 1, m = 2, if `idx[0]` is 0 and `idx[1]` is 0
              RAW carried by no loop
                line 6 writes `y[idx[j]]` at j = 0: y[idx[j]] = 1.0
                line 8 reads `y[i]` at i = 0: total += y[i]
                the element is y[0] with n = 1, m = 1, if `idx[0]` is 0

            loops
              line 3, `i#1` carries dependences on x
              line 5, `j` carries dependences on y
              line 7, `i#2` carries nothing but reductions into total
        "#]],
    );
}

#[test]
fn constant_distances_are_printed_for_every_loop() {
    check(
        &["stencil"],
        expect![[r#"
            stencil: 1 dependence

            x: inout f32[n, m]
              RAW carried by `t` (line 21), distance t: +1, i: -1
                line 23 writes `x[t, i]` at t = 1, i = 2: x[t, i] = x[t - 1, i + 1]
                line 23 reads `x[t - 1, i + 1]` at t = 2, i = 1: x[t, i] = x[t - 1, i + 1]
                the element is x[1, 2] with n = 3, m = 4

            loops
              line 21, `t` carries dependences on x
              line 22, `i` has no loop-carried dependence: it can be parallel, vectorised or reversed
        "#]],
    );
}

#[test]
fn programs_without_dependences() {
    check(
        &["twice"],
        expect![[r#"
        twice: no dependences

        loops
          line 14, `i` has no loop-carried dependence: it can be parallel, vectorised or reversed
          line 15, `j` has no loop-carried dependence: it can be parallel, vectorised or reversed
    "#]],
    );
}

#[test]
fn transitive_dependences_are_listed_on_request() {
    let folder = Folder::new(&[("f.ft", CHAIN)]);
    let text = folder.succeeds(&["deps", "f.ft"]);
    expect![[r#"
        chain: 2 dependences, and transitive ones (`--all` lists them)

        y: inout f32[n]
          RAW within one iteration of `i`
            line 3 writes `y[i]` at i = 0: y[i] = y[i] * x[i] + 1
            line 4 reads `y[i]` at i = 0: y[i] = y[i] * x[i] + 2
            the element is y[0] with n = 1
          RAW within one iteration of `i`
            line 4 writes `y[i]` at i = 0: y[i] = y[i] * x[i] + 2
            line 5 reads `y[i]` at i = 0: y[i] = y[i] * x[i] + 3
            the element is y[0] with n = 1

        loops
          line 2, `i` has no loop-carried dependence: it can be parallel, vectorised or reversed
    "#]]
    .assert_eq(&text);
    let every = folder.succeeds(&["deps", "f.ft", "--all"]);
    // Each of the three pairs of statements has a RAW, a WAR and a WAW dependence.
    assert!(every.starts_with("chain: 9 dependences\n"), "{every}");
    let loops = |text: &str| text.split("\nloops\n").nth(1).map(str::to_string);
    assert_eq!(loops(&text), loops(&every));
    let json = |args: &[&str]| -> serde_json::Value {
        serde_json::from_str(&folder.succeeds(&[&["deps", "f.ft", "--json"], args].concat())).unwrap()
    };
    let (direct, every) = (json(&[]), json(&["--all"]));
    assert_eq!((direct["dependences"].as_array().map(Vec::len), &direct["more"]), (Some(2), &true.into()));
    assert_eq!((every["dependences"].as_array().map(Vec::len), &every["more"]), (Some(9), &false.into()));
}

#[test]
fn dependences_as_json() {
    let folder = Folder::new(&[("f.ft", PROGRAM)]);
    let json: serde_json::Value =
        serde_json::from_str(&folder.succeeds(&["deps", "f.ft", "stencil", "--json"])).unwrap();
    assert_eq!(json["status"], "ok");
    let d = &json["dependences"][0];
    assert_eq!((&d["kind"], &d["tensor"], &d["carrier"]["loop"]), (&"RAW".into(), &"x".into(), &"t".into()));
    assert_eq!((d["loops"][0]["distance"].as_i64(), d["loops"][1]["distance"].as_i64()), (Some(1), Some(-1)));
    assert_eq!(
        (&d["source"]["line"], &d["source"]["does"], &d["sink"]["element"]),
        (&23.into(), &"writes".into(), &"x[t - 1, i + 1]".into())
    );
    assert_eq!(d["witness"]["exact"], true);
    assert_eq!((&json["loops"][0]["parallel"], &json["loops"][1]["parallel"]), (&false.into(), &true.into()));
}

#[test]
fn wrong_programs_and_entries_are_diagnostics() {
    let folder = Folder::new(&[("f.ft", PROGRAM), ("bad.ft", "def f(:\n")]);
    assert!(folder.fails(&["deps", "f.ft"]).contains("scan"));
    assert!(!folder.fails(&["deps", "bad.ft"]).is_empty());
    let (status, out, _) = folder.taffeta(&["deps", "bad.ft", "--json"]);
    assert_eq!(status, 1);
    assert!(out.contains("\"status\":\"error\""), "{out}");
}

/// Program with loops of one name, of library operators and of array statements; a schedule adds others.
const LOOPS: &str = "\
def f(x: f32[n, m], a: f32[n, m]) -> f32[n, m]:
    y = softmax(x)
    b = a * 2.0
    c = b + y
    for i in range(n):
        for j in range(m):
            c[i, j] += a[i, j]
    for i in range(n):
        for k in range(1, m):
            c[i, k] = c[i, k - 1]
    return c
";

/// Collects the loop names in a text: after `for` or in the comment there, and between the backticks of `deps`.
fn names_of_loops(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    for line in text.lines().map(str::trim_start) {
        if let Some(rest) = line.strip_prefix("for ").filter(|rest| rest.contains(" in ")) {
            let name = line.split_once("  # \"").map_or(rest, |(_, comment)| comment);
            out.extend(name.split([' ', '"']).next().map(str::to_string));
        }
        if line.contains("carried by `")
            || line.contains("iteration of `")
            || line.contains("carr") && line.contains("`")
        {
            let known = line.split('(').next().unwrap_or_default();
            out.extend(known.split('`').skip(1).step_by(2).filter(|n| !n.contains(['[', ' '])).map(str::to_string));
        }
    }
    out
}

#[test]
fn names_of_loops_can_be_copied_into_a_schedule() {
    let schedule = "\n\n@schedule(f)\ndef fast(s):\n    s.split(\"j\", 4)\n    s.split(\"b.d1\", 8)\n";
    let folder = Folder::new(&[("f.ft", LOOPS), ("g.ft", &format!("{LOOPS}{schedule}"))]);
    let printed = [
        (folder.succeeds(&["deps", "f.ft"]), ""),
        (folder.succeeds(&["show", "f.ft"]), ""),
        (folder.succeeds(&["show", "g.ft", "--schedule", "fast"]), schedule),
    ];
    for (text, steps) in printed {
        let mut names = names_of_loops(&text);
        names.sort();
        names.dedup();
        let wanted = ["softmax.i", "softmax.k#2", "b.d0", "c.d1", "i#1", "k"];
        wanted.iter().for_each(|w| assert!(names.iter().any(|n| n == w), "{w} is not in {names:?}:\n{text}"));
        if !steps.is_empty() {
            ["j~o", "j~i", "b.d1~o"].iter().for_each(|w| assert!(names.iter().any(|n| n == w), "{w}: {names:?}"));
        }
        let head = if steps.is_empty() { "\n\n@schedule(f)\ndef fast(s):\n" } else { steps };
        let copied: String = names.iter().map(|n| format!("    found = s.loops(\"{n}\")\n")).collect();
        let copy = Folder::new(&[("h.ft", &format!("{LOOPS}{head}{copied}"))]);
        copy.succeeds(&["show", "h.ft", "--schedule", "fast"]);
    }
}
