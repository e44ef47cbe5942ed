//! Integers whose old values are recovered by inversion.

use crate::check::{check, check_tapes, floats_of, ints, program};
use taffeta_ast::{Buffer, Value};
use taffeta_autodiff::{Kind, Request, Tape, explain};

/// Returns the decisions for a tensor.
fn decision(text: &str, tensor: &str, tape: Tape) -> Vec<&'static str> {
    let func = program(text);
    let wrt = vec!["x".to_string()];
    let request = Request { tape, ..Request::new(Kind::Vjp, "g", &func, &wrt) };
    let (_, explanation) = explain(&request).unwrap_or_else(|d| panic!("{d}"));
    explanation.rows.iter().filter(|r| r.tensor == tensor).map(|r| r.decision).collect()
}

fn integer(v: i64) -> Value {
    Value::scalar(Buffer::I64(vec![v])).expect("one")
}

#[test]
fn counters_are_inverted() {
    // Updates next to recomputed values of the same iteration, after them, and in loops and branches of their own.
    let text = "def f(x: f64[n], k: f64[m], h: inout[i64[3]]) -> f64[n]:
    y = empty((n,), f64)
    at: i64 = 0
    for t in range(n):
        y[t] = x[t] * k[at % m] * sin(x[t] + h[at % 3])
        if x[t] > 0.5:
            at += 2
            for r in range(2):
                h[(t + r) % 3] += r + 1
    return y
";
    let h = Value::new(vec![3], Buffer::I64(vec![3, -1, 4])).expect("as many");
    check(text, &[floats_of(&[7], 1), floats_of(&[4], 2), h], &[]);
    assert_eq!(decision(text, "at", Tape::Auto), ["inverted"]);
    assert_eq!(decision(text, "h", Tape::None), ["inverted"]);
    assert_eq!(decision(text, "at", Tape::All), ["copied"]);
    // A loop whose trip count is data: no tape would be long enough.
    let text = "def f(x: f64[n], k: i32[m]) -> f64:
    s: f64 = 0.0
    at: i32 = 0
    for i in range(m):
        for r in range(k[i]):
            s += x[at % n] * (at + 1)
            at += r
    return s
";
    let given = [floats_of(&[3], 1), ints(&[4], &[2, 0, 3, 1])];
    check_tapes(&program(text), &given, &Default::default(), 1, &[Tape::Auto, Tape::None]);
    assert_eq!(decision(text, "at", Tape::Auto), ["inverted"]);
    // A type that wraps around.
    let text = "def f(x: f64[n], by: i64) -> f64:
    s: f64 = 0.0
    at: u8 = 250
    for i in range(20):
        s += x[cast(at, i64) % n] * i
        at += 3
    return s * by
";
    check(text, &[floats_of(&[5], 1), integer(2)], &[]);
    assert_eq!(decision(text, "at", Tape::Auto), ["inverted"]);
}

#[test]
fn irreversible_updates_are_taped() {
    // Stored again, multiplied, added to itself, added to under a condition on itself, read after an addition in a
    // recomputed iteration.
    for (before, update) in [
        ("", "at = at * 2 + 1"),
        ("", "at *= 3"),
        ("", "at += at + 1"),
        ("", "at += 1 if at < 4 else 2"),
        ("at += 1", "at += 1"),
        ("at = 0", "at += 1"),
    ] {
        let text = format!(
            "def f(x: f64[n]) -> f64:
    s: f64 = 0.0
    at: i64 = 1
    for t in range(6):
        {}
        s += sin(x[at % n] * cos(x[t % n])) * t
        {update}
    return s
",
            if before.is_empty() { "pass" } else { before }
        );
        check(&text, &[floats_of(&[5], 1)], &[]);
        assert_eq!(decision(&text, "at", Tape::Auto).iter().filter(|d| **d == "inverted").count(), 0, "{text}");
    }
}
