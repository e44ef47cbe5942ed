//! Subscripts with typed integers in them, which may wrap: what is proved of them, and what is said where nothing is.

use crate::args;
use crate::common::{call, entry, refused};
use expect_test::expect;
use taffeta_schedule::Schedule;

/// The steps are all taken, each on the program as it is written.
fn free(text: &str) {
    let (func, _) = entry(text);
    for step in ["parallelize", "vectorize", "reverse"] {
        let mut s = Schedule::new(func.clone());
        if let Err(r) = call(&mut s, step, args!["i"]) {
            panic!("{step}: {} {:?}\n{text}", r.message, r.notes);
        }
    }
}

#[test]
fn typed_integers_in_subscripts() {
    // A name for a number, before the loop and in it.
    free(
        "def f(y: inout[f32[n]]):\n    h: i64 = n // 2\n    for i in range(n // 2):\n        y[h + i] = y[h + i] + 1\n",
    );
    free("def f(y: inout[f32[2 * n]]):\n    for i in range(n):\n        p: i64 = 2 * i\n        y[p] = y[p] * 3\n");
    free(
        "def f(y: inout[f32[4 * n]]):\n    for i in range(n):\n        p: i64 = 2 * i\n        q: i64 = p + p + 1\n        \
         y[q] = y[q - 1] * 3\n",
    );
    // Numbers that are given, of which nothing is known.
    for dtype in ["i8", "i32", "i64", "u8", "u32"] {
        free(&format!("def f(y: inout[f32[n]], lo: {dtype}):\n    for i in range(n):\n        y[lo + i] = 1\n"));
        free(&format!("def f(y: inout[f32[n]], lo: {dtype}):\n    for i in range(n):\n        y[2 * i - lo] = 1\n"));
        free(&format!(
            "def f(y: inout[f32[n, m]], lo: {dtype}):\n    for i in range(n):\n        for j in range(m):\n            \
             y[i + lo, j - lo] = y[i + lo, j - lo] + 1\n"
        ));
    }
    free("def f(y: inout[f32[n]], k: i64[m]):\n    for i in range(n):\n        y[k[0] - i] = 1\n");
    free("def f(y: inout[f32[n]], k: i64[m]):\n    h: i64 = k[0]\n    for i in range(n):\n        y[h - i] = 1\n");
}

#[test]
fn values_that_change_are_not_taken_for_their_definition() {
    // `p` has another value by the time that it is read.
    let text = "
def f(y: inout[f32[n]]):
    for i in range(n):
        p: i64 = i
        p = p // 2
        y[p] = y[p] + i
        y[p] = y[p] * 2
";
    let (func, _) = entry(text);
    for step in ["parallelize", "vectorize", "reverse"] {
        assert!(call(&mut Schedule::new(func.clone()), step, args!["i"]).is_err(), "{step}");
    }
    // What it is made of changes.
    let text = "
def f(y: inout[f32[n]], k: inout[i64[n]]):
    for i in range(n):
        p: i64 = k[0] + i
        k[0] = 3 - i
        y[p] = i
";
    let (func, _) = entry(text);
    assert!(call(&mut Schedule::new(func), "reverse", args!["i"]).is_err());
}

#[test]
fn says_which_subscript_is_not_understood() {
    refused(
        "def f(y: inout[f32[n]], h: i64):\n    for i in range(n):\n        y[h * i] = y[h * i] + i * y[0]\n",
        |s| call(s, "parallelize", args!["i"]).map(drop),
        expect![[""]],
    );
    // Multiples by an even number may meet.
    refused(
        "def f(y: inout[f32[n]], a: i64, b: i64):\n    for i in range(a, b):\n        y[6 * i] = i\n",
        |s| call(s, "parallelize", args!["i"]).map(drop),
        expect![[""]],
    );
}
