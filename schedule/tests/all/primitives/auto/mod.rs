//! Rules of automatic scheduling, each on programs made for it, with its decisions; and the cost model.

mod accumulate;
mod fission;
mod fuse;
mod inline;
mod mem_type;
mod model;
mod parallelize;
mod polyhedral;
mod reorder;
mod scatter;
mod tile;
mod transpose;
mod trip_counts;
mod unroll;
mod use_lib;
mod vectorize;
mod window;

use crate::primitives::common::{body, entry, same};
use expect_test::{Expect, expect};
use std::sync::Arc;
use taffeta_schedule::Schedule;
use taffeta_schedule::auto::Target;

/// Checks the decisions of a rule on a program, for two threads and expected sizes, and the program after it.
fn decides(text: &str, method: &str, sizes: &[(&str, i64)], expected: Expect) {
    let (func, _) = entry(text);
    let mut target = Target::portable(2);
    target.sizes = sizes.iter().map(|(n, v)| ((*n).to_string(), *v)).collect();
    let mut s = Schedule::new(func.clone()).aimed_at(Arc::new(target));
    s.call(method, &[]).unwrap_or_else(|r| panic!("{}", r.message));
    same(&func, s.func());
    let decisions: String = s.decisions().iter().map(|d| d.text("")).collect();
    expected.assert_eq(&format!("{decisions}{}", body(s.func())));
}

const PRODUCT: &str = "
def f(a: f32[n, n], b: f32[n, n], c: inout[f32[n, n]]):
    for i in range(n):
        for j in range(n):
            for k in range(n):
                c[i, j] += a[i, k] * b[k, j]
";

/// Checks that loops marked by the user stay as they are.
#[test]
fn marks_of_users_stay() {
    let (func, _) = entry(PRODUCT);
    let mut target = Target::portable(2);
    target.sizes.insert("n".into(), 500);
    let mut s = Schedule::new(func.clone()).aimed_at(Arc::new(target));
    s.parallelize("j").unwrap_or_else(|r| panic!("{}", r.message));
    s.auto().unwrap_or_else(|r| panic!("{}", r.message));
    expect![[r#"
        for i in range(n):
            for j in range(n):  # parallel
                for k in range(n):  # vectorize, partial(c +)
                    c[i, j] += a[i, k] * b[k, j]
    "#]]
    .assert_eq(&body(s.func()));
}

/// Checks that the manual lists the rules in the order in which they run.
#[test]
fn the_manual_lists_all_rules_in_order() {
    let manual = taffeta_schedule::documentation().find(|d| d.name == "auto").expect("it is registered");
    let mut from = 0;
    for rule in taffeta_schedule::auto::rules() {
        let at = manual.text[from..].find(&format!("| `s.{}()` |", rule.method));
        from += at.unwrap_or_else(|| panic!("{} is not in its place", rule.method));
    }
}

/// Checks that loops that print stay in the order of their output.
#[test]
fn loops_that_print_are_left_alone() {
    let text = "
def f(x: f64[n, n], y: inout[f64[n]]):
    for i in range(n):
        print(i)
        for j in range(n):
            y[i] += x[i, j]
";
    let threads = |text: &str| {
        let target = Target { sizes: [("n".to_string(), 100_000)].into(), ..Target::portable(2) };
        let mut s = Schedule::new(entry(text).0).aimed_at(Arc::new(target));
        s.call("auto", &[]).unwrap_or_else(|r| panic!("{}", r.message));
        body(s.func()).contains("for i in range(n):  # parallel")
    };
    assert!(!threads(text) && threads(&text.replace("        print(i)\n", "")));
}

/// Checks the estimate of scalars that are computed from each other, cyclically and by repeated doubling.
#[test]
fn chains_of_scalars_are_estimated() {
    let doubled: String = (0..200).map(|k| format!("        d{} = d{k} + d{k}\n", k + 1)).collect();
    let (func, _) = entry(&format!(
        "
def f(x: inout[f64[n]]):
    for i in range(1, n):
        a = x[i - 1]
        b = 2.0 * a
        a = b + x[i]
        b = a * a
        d0 = b + x[i - 1]
{doubled}        x[i] = d200 + a
"
    ));
    let s = Schedule::new(func).aimed_at(Arc::new(Target::portable(2)));
    assert!(s.estimate(&Target::portable(2)) > 0.0);
}
