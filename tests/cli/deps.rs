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
            line 2 writes total: total: f32 = 0.0
            line 8 combines total: total += y[i]
            with n = 1, m = 0, total is written and combined at i = 0

        x: inout f32[n]
          RAW carried by `i` (line 3), distance i: +1
            line 4 writes x[i]: x[i] = x[i - 1] * 0.5
            line 4 reads x[i - 1]: x[i] = x[i - 1] * 0.5
            with n = 3, m = 0, x[1] is written at i = 1 and read at i = 2

        y: inout f32[n]
          WAW carried by `j` (line 5), distance j: later
            line 6 writes y[idx[j]]: y[idx[j]] = 1.0
            line 6 writes y[idx[j]]: y[idx[j]] = 1.0
            with n = 1, m = 2, y[0] is written at j = 0 and written again at j = 1, if idx[0] is 0 and idx[1] is 0
          RAW carried by no loop
            line 6 writes y[idx[j]]: y[idx[j]] = 1.0
            line 8 reads y[i]: total += y[i]
            with n = 1, m = 1, y[0] is written at j = 0 and read at i = 0, if idx[0] is 0

        loops
          line 3, `i` carries dependences on x
          line 5, `j` carries dependences on y
          line 7, `i` carries nothing but reductions into total
    "#]],
    );
}

#[test]
fn constant_distances_are_said_for_every_loop() {
    check(
        &["stencil"],
        expect![[r#"
        stencil: 1 dependence

        x: inout f32[n, m]
          RAW carried by `t` (line 21), distance t: +1, i: -1
            line 23 writes x[t, i]: x[t, i] = x[t - 1, i + 1]
            line 23 reads x[t - 1, i + 1]: x[t, i] = x[t - 1, i + 1]
            with n = 3, m = 4, x[1, 2] is written at t = 1, i = 2 and read at t = 2, i = 1

        loops
          line 21, `t` carries dependences on x
          line 22, `i` has no loop-carried dependence: it can be parallel, vectorised or reversed
    "#]],
    );
}

#[test]
fn a_program_without_dependences_is_said_to_have_none() {
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
fn machines_get_json() {
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
fn a_wrong_program_or_entry_is_a_diagnostic() {
    let folder = Folder::new(&[("f.ft", PROGRAM), ("bad.ft", "def f(:\n")]);
    assert!(folder.fails(&["deps", "f.ft"]).contains("scan"));
    assert!(!folder.fails(&["deps", "bad.ft"]).is_empty());
    let (status, out, _) = folder.taffeta(&["deps", "bad.ft", "--json"]);
    assert_eq!(status, 1);
    assert!(out.contains("\"status\":\"error\""), "{out}");
}
