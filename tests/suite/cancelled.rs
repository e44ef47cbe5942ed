//! Calls that the caller cancels: outer loops stop, sequential ones, those on threads, and those that all threads run.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use taffeta::ast::{Buffer, Value};
use taffeta::{Options, Program};

const PROGRAM: &str = r#"
def steps(x: f64[n, m], rounds: i64) -> f64[n, m]:
    y = zeros((n, m), f64)
    for t in range(rounds):
        print("round", t)
        for i in range(n):
            for j in range(m):
                y[i, j] = y[i, j] * 0.5 + x[i, j]
        for k in range(n):
            for j in range(m):
                y[k, j] += 1.0
    return y

@schedule(steps)
def threads(s):
    s.parallelize("i")
    s.parallelize("k")

def rows(x: f64[n, m]) -> f64[n]:
    y = zeros((n,), f64)
    for i in range(n):
        print("row", i)
        for j in range(m):
            y[i] += x[i, j]
    return y

@schedule(rows)
def rows_on_threads(s):
    s.parallelize("i")
"#;

/// Cancels a call when its third line comes; returns the number of lines, and the error.
fn lines_of(entry: &str, schedule: Option<&str>, rounds: Option<i64>) -> (i32, Option<String>) {
    let program = Program::from_source("steps.ft", PROGRAM).unwrap_or_else(|e| panic!("{e}"));
    let options = Options::default().optimize(false).schedule(schedule);
    let function = program.compile(entry, &options).unwrap_or_else(|e| panic!("{entry}: {e}"));
    let [flag, lines] = [(); 2].map(|()| Arc::new(AtomicI32::new(0)));
    let (set, count) = (flag.clone(), lines.clone());
    let function = function.cancelled_by(flag).on_print(move |_| {
        if count.fetch_add(1, Ordering::SeqCst) == 2 {
            set.store(1, Ordering::SeqCst);
        }
    });
    let x = Value::new(vec![2000, 3], Buffer::F64(vec![1.0; 6000])).expect("it is whole");
    let call = function.call().value("x", &x).threads(2);
    let ran = rounds.into_iter().fold(call, |call, n| call.scalar("rounds", n)).run();
    let code = ran.err().map(|e| e.report().diagnostics[0].code.to_string());
    (lines.load(Ordering::SeqCst), code)
}

#[test]
fn outer_loops_stop_when_the_call_is_cancelled() {
    for schedule in [None, Some("threads")] {
        let (lines, code) = lines_of("steps", schedule, Some(100_000));
        assert_eq!(code.as_deref(), Some("run::cancelled"), "{schedule:?}");
        assert!((3..10).contains(&lines), "{schedule:?}: {lines} rounds");
        // A call that ends before its loops look at the flag is complete.
        assert_eq!(lines_of("steps", schedule, Some(2)), (2, None), "{schedule:?}");
    }
    for schedule in [None, Some("rows_on_threads")] {
        let (lines, code) = lines_of("rows", schedule, None);
        assert_eq!(code.as_deref(), Some("run::cancelled"), "{schedule:?}");
        assert!((3..200).contains(&lines), "{schedule:?}: {lines} rows");
    }
}
