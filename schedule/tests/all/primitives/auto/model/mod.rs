//! Estimates of programs that C compilers transform, and of loops on threads. Submodules: one part of the model each.

mod memo;
mod memory_cost;
mod misprediction;
mod out_of_order;
mod working_set;

use crate::primitives::common::entry;
use taffeta_schedule::auto::Target;
use taffeta_schedule::{Arg, Schedule, Value};

/// Estimates a program on the portable machine, after marks on loops.
fn takes(text: &str, marks: &[(&str, &str)]) -> f64 {
    let mut s = Schedule::new(entry(text).0);
    for (method, l) in marks {
        s.call(method, &[Arg::from(Value::Str((*l).into()))]).unwrap_or_else(|r| panic!("{}", r.message));
    }
    let sizes = [("n".to_string(), 500), ("m".to_string(), 500)].into();
    s.estimate(&Target { sizes, ..Target::portable(2) })
}

#[test]
fn compilers_interchange_loops_without_marks() {
    let by_columns = "
def f(a: f64[n, m], b: f64[m, n], c: inout[f64[n, n]]):
    for i in range(n):
        for j in range(n):
            c[i, j] = 0.0
            for k in range(m):
                c[i, j] += a[i, k] * b[k, j]
";
    let by_rows = "
def f(a: f64[n, m], b: f64[m, n], c: inout[f64[n, n]]):
    for i in range(n):
        for j in range(n):
            c[i, j] = 0.0
        for k in range(m):
            for j in range(n):
                c[i, j] += a[i, k] * b[k, j]
";
    let (columns, rows) = (takes(by_columns, &[]), takes(by_rows, &[]));
    assert!((columns / rows - 1.0).abs() < 0.1, "{columns} {rows}");
    assert!(takes(by_columns, &[("vectorize", "k")]) > 2.0 * rows);
}

#[test]
fn compilers_do_not_interchange_loops_that_read_their_results() {
    let text = "
def f(c: inout[f64[n, n]]):
    for j in range(n):
        for i in range(1, n):
            c[i, j] = 0.5 * {read}
";
    let (kept, carried) = (text.replace("{read}", "j"), text.replace("{read}", "c[i - 1, j]"));
    assert!(takes(&carried, &[]) > 3.0 * takes(&kept, &[]));
}

#[test]
fn equality_with_an_iterator_holds_once() {
    let text = "
def f(x: inout[f64[n, m]]):
    for i in range(n):
        for k in range(n):
            if k {how} 0:
                for j in range(m):
                    x[i, j] += 1.0
";
    let of = |how: &str| takes(&text.replace("{how}", how), &[]);
    assert!(of("==") * 20.0 < of("!="));
}

#[test]
fn threads_copy_only_the_part_they_reduce_into() {
    let text = "
def f(a: f64[n, m], x: f64[m], y: inout[f64[n, n, n]]):
    for i in range(n):
        for k in range(m):
            y[i, {at}, {at}] += a[i, k] * x[k]
";
    let of = |at: &str| takes(&text.replace("{at}", at), &[("parallelize", "k")]);
    // One element for each thread, against n² elements.
    assert!(of("0") * 100.0 < of("k % n"));
}

/// Checks that the guard of `split` for a trip count that is no multiple is free: lowering makes it the bound of the
/// loop.
#[test]
fn guards_that_become_loop_bounds_cost_nothing() {
    let text = "
def f(a: f64[n, m], x: f64[m], y: inout[f64[n]]):
    for i in range(n):
        for j in range(m):
            if {guard}:
                y[i] += a[i, j] * x[j]
";
    let of = |guard: &str| takes(&text.replace("{guard}", guard), &[]);
    let (bounded, open) = (of("i + j < n + m"), of("j < m"));
    let lanes = |guard: &str| takes(&text.replace("{guard}", guard), &[("vectorize", "j")]);
    assert!(bounded < 1.01 * open, "{bounded} {open}");
    // A condition on a loaded value is a branch.
    assert!(of("x[j] < 0.5") > 1.05 * bounded);
    assert!(lanes("i + j < n + m") < 1.01 * lanes("j < m"));
}
