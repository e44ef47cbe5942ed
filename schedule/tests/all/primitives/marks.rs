//! Loops whose marks are proved again after a step.

use crate::args;
use crate::primitives::common::entry;
use rustc_hash::FxHashSet;
use taffeta_ast::{Expr, Func, Stmt, StmtKind};
use taffeta_schedule::testing::{changed, every, proof_depends_on_outside};
use taffeta_schedule::{Arg, Schedule, selector};

fn program(text: &str) -> Func {
    entry(text).0
}

fn call(s: &mut Schedule, method: &str, args: &[Arg]) {
    s.call(method, args).unwrap_or_else(|r| panic!("{}", r.message));
}

fn names(marked: &[Stmt]) -> Vec<&str> {
    marked.iter().filter_map(selector::name).collect()
}

#[test]
fn marked_loops_changed_by_a_step_are_found() {
    let loops: String = (0..6)
        .map(|k| {
            format!("    for i{k} in range(n):\n        for j{k} in range(n):\n            y[i{k}, j{k}] += x[j{k}]\n")
        })
        .collect();
    let f = program(&format!("def f(x: f64[n]) -> f64[n, n]:\n    y = zeros((n, n), f64)\n{loops}    return y\n"));
    let mut s = Schedule::new(f);
    (0..6).for_each(|k| call(&mut s, "parallelize", args![format!("i{k}")]));
    assert_eq!(every(s.func()).len(), 6);
    let before = s.func().clone();
    call(&mut s, "split", args!["j2", 4]);
    assert_eq!(names(&changed(&before, s.func(), &FxHashSet::default())), ["i2"]);
    let before = s.func().clone();
    call(&mut s, "parallelize", args!["y.d0"]);
    assert_eq!(names(&changed(&before, s.func(), &FxHashSet::default())), ["y.d0"]);
}

#[test]
fn changed_assertions_affect_later_marked_loops() {
    let with = |condition: &str| {
        program(&format!(
            "def f(x: f64[n]) -> f64[n]:\n    y = zeros((n,), f64)\n    assert {condition}\n    \
             for i in range(n):\n        y[i] = x[i]\n    return y\n"
        ))
    };
    let f = with("n > 4");
    let mut s = Schedule::new(f.clone());
    call(&mut s, "parallelize", args!["i"]);
    let marked = s.func().clone();
    assert!(changed(&marked, &marked, &FxHashSet::default()).is_empty());
    // The same nodes after another assertion.
    let StmtKind::Seq(all) = marked.body.kind() else { panic!("a sequence") };
    let other = all.iter().map(|s| match s.kind() {
        StmtKind::Assert { message, kind, .. } => {
            let cond = Expr::var(&f.sizes[0]).less(&Expr::int(9));
            s.with_kind(StmtKind::Assert { cond, message: message.clone(), kind: *kind })
        }
        _ => s.clone(),
    });
    let after = marked.with_body(marked.body.with_kind(StmtKind::Seq(other.collect())));
    assert_eq!(names(&changed(&marked, &after, &FxHashSet::default())), ["i"]);
}

#[test]
fn proofs_that_depend_on_outer_integers_are_detected() {
    let f = program(
        "def f(x: f64[n]) -> f64[2 * n]:\n    y = zeros((2 * n,), f64)\n    h: i64 = n // 2\n    \
         for i in range(n):\n        y[h + i] = x[i]\n    for k in range(n):\n        y[k] = x[k]\n    \
         return y\n",
    );
    let mut loops = Vec::new();
    f.body.walk(&mut |s| loops.extend(matches!(s.kind(), StmtKind::For { .. }).then(|| s.clone())));
    let rests: Vec<(Option<&str>, bool)> =
        loops.iter().map(|s| (selector::name(s), proof_depends_on_outside(&f, s))).collect();
    assert_eq!(rests, [(Some("y.d0"), false), (Some("i"), true), (Some("k"), false)]);
}
